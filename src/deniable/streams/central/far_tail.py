"""How far values may lie above θ, where no private answer tells.

Of a value above θ, at most three times θ counts as measured excess, and noise may be larger than that. What is left
has to be judged from what is known below: the share of values above θ, and the mean of values that are cut at θ. A
power law S(t) = u·(t/θ)^(−α), at most 1, has the right share u and the right mean for one α. It has a heavier tail
than most streams with the same two figures, and a light one where values lie close together. If the mean is no more
than u·θ, all that is not 0 lies above θ, and α is 0: then nothing says how large these values are, and the bound alone
limits them.
"""

from __future__ import annotations

import math

from deniable.streams.central.evidence import EXCESS_REACH

_LARGEST_POWER = 64.0
_HALVINGS = 50


def power_excess(share: float, mean: float, bound: float) -> tuple[float, float]:
    """Under that power law: what is measured of E[(v − θ)+], and E[(v − 4θ)+], which is not.

    `mean`, `bound` and the results are in units of θ; `share` is that of values above θ.

    >>> [tuple(round(part, 5) for part in power_excess(0.001, mean, 100.0)) for mean in (0.5, 0.1, 0.01, 0.001)]
    [(0.00013, 0.0), (0.0006, 9e-05), (0.00131, 0.00254), (0.003, 0.096)]
    """
    if share <= 0:
        return 0.0, 0.0
    power, reach = power_of(share, mean), EXCESS_REACH + 1.0
    near = _integral(power, 1.0, min(reach, max(bound, 1.0)))
    return share * near, share * _integral(power, reach, max(bound, reach))


def power_of(share: float, mean: float) -> float:
    """α of the power law with that share above θ, and that mean of cut values in units of θ.

    >>> [round(power_of(0.001, mean), 1) for mean in (0.5, 0.1, 0.01, 0.001)]
    [8.4, 2.4, 1.1, 0.0]
    """
    low, high = 0.0, _LARGEST_POWER
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean_below(share, middle) < mean else (low, middle)
    return low


def _mean_below(share: float, power: float) -> float:
    """∫ min(1, share·t^(−power)) dt from 0 to 1: the mean of cut values."""
    flat = min(share, 1.0) ** (1 / power) if power > 0 else 0.0
    return flat + share * _integral(power, flat, 1.0)


def _integral(power: float, start: float, stop: float) -> float:
    """∫ t^(−power) dt."""
    if abs(power - 1) < 1e-9:
        return math.log(stop / start)
    return float((stop ** (1 - power) - start ** (1 - power)) / (1 - power))
