"""Tests in which many servers count the same first reports: what those say about the tail is worked out once.

It is a function of the reports alone (`test_the_same_first_reports_give_the_same_belief`), and takes longer than all
that such a test asks of a server.
"""

import numpy as np
import pytest

from deniable.streams.local import threshold_choice
from deniable.streams.local.tail_belief import smooth_tail
from deniable.streams.local.value_distribution import FirstReports

_known = {}


def _remembered(reports):
    key = reports.protocol, reports.horizon, np.asarray(reports.counts, dtype=np.float64).tobytes()
    if key not in _known:
        _known[key] = smooth_tail(FirstReports(reports.protocol, reports.counts.copy(), reports.horizon))
    return _known[key]


@pytest.fixture(scope="module", autouse=True)
def _remembered_tails():
    """For the module that imports this fixture."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threshold_choice, "smooth_tail", _remembered)
        yield
    _known.clear()
