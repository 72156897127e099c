"""When a new θ is worth announcing, and what earlier first reports still say. All of it is post-processing of reports.

The more first reports, the better θ is known, so a renewed θ comes from all of them. Only if the stream has changed do
earlier ones count less. They are compared with those since the last θ in a few bins of outputs; with shares p and q of
n and m reports the distance Σ (p − q)²/mean has the expectation (bins − 1)·(1/n + 1/m) if nothing has changed. What is
above that is the square of a change. Earlier shares lie from the present ones as far as those of fewer reports would:
n reports and a squared change c weigh as much as 1/(1/n + c/(bins − 1)) do.

θ is looked at again whenever there are enough new first reports, which everybody can count. A new θ is announced if the
present one has a twentieth more predicted error than it, or if the stream has changed.
"""

from __future__ import annotations

import numpy as np

from deniable.arrays import Floats
from deniable.streams.local.threshold_choice import mean_regrets
from deniable.streams.local.value_distribution import DistributionBelief, FirstReports

AUTO, ASKED = RENEWALS = ("auto", "asked")
"""When θ is looked at again: after enough new first reports, or only if somebody says so."""
COMPARED_BINS = 16
_SURELY = 37.7  # chi-square of 15 degrees of freedom: one in a thousand is larger
_WORTH_IT = 1.05
_FEWEST_NEW_REPORTS = 1024


def reports_until_next(first: int) -> int:
    """How many new first reports θ is looked at again after: a tenth of the first phase, and 1,024 at least.

    >>> reports_until_next(65_536), reports_until_next(20)
    (6553, 1024)
    """
    return max(first // 10, _FEWEST_NEW_REPORTS)


def weight_of_earlier(earlier: Floats, latest: Floats) -> float:
    """How much each earlier report still counts, next to the latest ones: 1 unless the stream has surely changed.

    >>> level = np.full(64, 1000.0)
    >>> weight_of_earlier(level, level / 10), weight_of_earlier(level, np.arange(64) * 3.0) < 0.01
    (1.0, True)
    """
    before, now = (_coarse(counts) for counts in (earlier, latest))
    n, m = before.sum(), now.sum()
    if not n or not m:
        return 1.0
    expected = 1 / n + 1 / m
    both = np.maximum((before + now) / (n + m), 1e-12)
    distance = float(((before / n - now / m) ** 2 / both).sum())
    if distance < _SURELY * expected:
        return 1.0
    return float(1 / (1 + n * (distance / (COMPARED_BINS - 1) - expected)))


def _coarse(counts: Floats) -> Floats:
    edges = np.linspace(0, counts.size, COMPARED_BINS + 1).astype(np.int64)[:-1]
    return np.asarray(np.add.reduceat(counts, edges))


def is_worth_it(belief: DistributionBelief, reports: FirstReports, present: float, new: float) -> bool:
    """Whether the present θ has so much more predicted error than the new one that it pays to announce that."""
    old, better = mean_regrets(belief, reports, np.array([present, new]))
    return bool(old > _WORTH_IT * better)
