"""From supports to counts: what every frequency oracle shares.

A report supports the true cell with probability p and any other cell with probability q. Of n reports, c of which
truly hold a cell, it is supported by c·p + (n − c)·q on average, and that line is solved for c.  [WBLJ17, Eq. (2)]
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from deniable.arrays import Floats


def unbiased_counts(supports: Any, reports: int, p: Fraction, q: Fraction) -> Floats:
    """(supports − n·q)/(p − q): unbiased estimates of counts."""
    counts: Floats = (supports - reports * float(q)) / float(p - q)
    return counts


def count_variance(reports: int, count: Any, p: Fraction, q: Fraction) -> Any:
    """Variance of such an estimate when `count` of the reports truly hold the cell.

        (c·p(1 − p) + (n − c)·q(1 − q)) / (p − q)²

    The signal p − q is formed exactly: at small ε it is a small difference of two large numbers.
    """
    signal = float(p - q)
    return (count * float(p * (1 - p)) + (reports - count) * float(q * (1 - q))) / signal**2
