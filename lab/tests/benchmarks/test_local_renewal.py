"""Errors of whole streams without trust: with one θ they are the known ones, and a shift is what renewal is for."""

import numpy as np
import pytest

from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable_lab.benchmarks.local_renewal import _mean_square, best_error, both
from deniable_lab.experiments.stream_data import SIZE, stream
from deniable_lab.experiments.stream_reference import WARMUP
from deniable_lab.experiments.streams._local import best_theta, expected


def test_the_error_of_one_threshold_is_that_of_the_other_experiments():
    made, protocol = stream("POS stand-in", None), ToPLProtocol(1.0, 1638)
    for theta in (20.0, 60.0):
        computed = _mean_square(made.published, [(0, made.published.size, theta, 0.0)], protocol)
        assert computed == pytest.approx(expected(made, protocol, theta))
    assert best_error(made.published, 1638, 1.0) == pytest.approx(
        expected(made, protocol, best_theta(made, protocol)), rel=1e-6
    )


def test_a_stream_that_grows_has_less_error_with_renewed_thresholds():
    rng = np.random.default_rng(1)
    values = rng.geometric(0.2, SIZE) * np.where(np.arange(SIZE) < WARMUP + 2**18, 1, 10)
    once, renewed = both(values, 2_000, 2.0, 1)
    assert (once[2], renewed[2] > 1) == (1, True)
    assert renewed[0] < once[0] / 2
