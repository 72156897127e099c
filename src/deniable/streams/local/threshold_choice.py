"""Where to cut values, from first reports: the threshold of least predicted error.

A random window of at most r values has E[L] ≈ r/3 and E[L²] ≈ r²/6; a report on [0, θ] has variance (θ/2)²·Var. So the
error of a window's sum is predicted as

    (r/3)·(θ/2)²·Var(ε) + (r²/6)·(Σ_{t>θ} f_t·(t − θ))²        [WCZ21, Section 4.1, with the constants derived here]

The distribution f is not known but believed (`value_distribution`). The regret of θ under one distribution is its
predicted error as a multiple of the best one's. A rule takes the θ of least mean regret over the belief. Too small a θ
is punished if the tail may be heavy, too large a θ if it may be light. What cutting takes from a value is estimated by
the same measure: of all numbers that could be added back it is the one of least mean regret. The plain mean would be
ruled by a few distributions with very heavy tails, under which every θ is far off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from deniable.arrays import Floats
from deniable.checks import check_flag
from deniable.errors import InvalidData, InvalidParameter
from deniable.streams.local.stream_protocol import LOG_STEPS, ToPLProtocol
from deniable.streams.local.tail_belief import smooth_tail
from deniable.streams.local.value_distribution import DistributionBelief, FirstReports, reconstructed
from deniable.streams.released.windows import Truncation

_CANDIDATES = 400
_DISTRIBUTIONS_AT_ONCE = 512  # distributions, so that what is computed about them stays in the cache


@dataclass(frozen=True, slots=True)
class LocalChoice:
    """A threshold, and what first reports say about it. All of these are estimates, and all are public.

    >>> LocalChoice(theta=40.0, above=0.01, above_stderr=0.001).theta
    40.0
    """

    theta: float
    above: float = 1.0
    """Share of values above θ."""
    above_stderr: float = 0.0
    excess: float = 0.0
    """What cutting takes from a value on average: the estimate of least mean regret."""
    mean: float | None = None
    """Mean of min(value, θ), and of its square."""
    square: float | None = None
    excess_stderr: float = 0.0
    """How far `excess` may be off, as a standard error, and the mean square of what cutting takes from a value."""
    excess_square: float = 0.0

    def truncation(self, bound: float) -> Truncation:
        """What is known about the values above θ."""
        if self.mean is None:
            return Truncation(self.theta, bound)
        # A loss is stated as an estimate plus two standard errors: of the share above θ, times what each loses of θ.
        above, excess = self.above + 2 * self.above_stderr, self.excess + 2 * self.excess_stderr
        tail = excess / (above * self.theta) if above > 0 else 0.0
        return Truncation(self.theta, bound, self.above, self.above_stderr, tail)


class LocalRule(Protocol):
    """How a server turns first reports into a threshold."""

    kind: ClassVar[str]

    def belief(self, reports: FirstReports) -> DistributionBelief:
        """What first reports say about the distribution of values."""

    def choose(self, reports: FirstReports, belief: DistributionBelief | None = None) -> LocalChoice:
        """The threshold to announce; `belief` is what `belief` gave for the same reports, if that is known."""


@dataclass(frozen=True, slots=True)
class SmoothTail:
    """Least regret over all distributions with a smooth tail that explain the reports: the default.

    >>> SmoothTail().kind
    'smooth tail'
    """

    kind: ClassVar[str] = "smooth tail"

    def belief(self, reports: FirstReports) -> DistributionBelief:
        """All distributions that explain the reports, by how well they do."""
        return smooth_tail(reports)

    def choose(self, reports: FirstReports, belief: DistributionBelief | None = None) -> LocalChoice:
        """The threshold to announce."""
        return _of_least_regret(belief or self.belief(reports), reports)


@dataclass(frozen=True, slots=True)
class Reconstructed:
    """Least predicted error on the plain EMS estimate, where noise in the tail decides. For comparison.

    `smooth=False` takes the EM estimate, as the authors' code does.

    >>> Reconstructed().kind
    'reconstructed'
    """

    smooth: bool = True
    kind: ClassVar[str] = "reconstructed"

    def __post_init__(self) -> None:
        _check_smooth(self.smooth)

    def belief(self, reports: FirstReports) -> DistributionBelief:
        """The reconstruction."""
        return reconstructed(reports, smooth=self.smooth)

    def choose(self, reports: FirstReports, belief: DistributionBelief | None = None) -> LocalChoice:
        """The threshold to announce."""
        return _of_least_regret(belief or self.belief(reports), reports)


@dataclass(frozen=True, slots=True)
class CutTail:
    """Least predicted error on the EMS estimate without its last few per cent, which may be noise. For comparison.

    It leaves out `deviations` standard errors of a share: those of n coins, divided by the signal that ε leaves.
    `smooth=False` takes the EM estimate.

    >>> CutTail(deviations=2.0).kind
    'cut tail'
    """

    deviations: float = 3.0
    smooth: bool = True
    kind: ClassVar[str] = "cut tail"

    def __post_init__(self) -> None:
        _check_smooth(self.smooth)

    def belief(self, reports: FirstReports) -> DistributionBelief:
        """The reconstruction without its end."""
        belief = reconstructed(reports, smooth=self.smooth)
        inside, outside = map(float, reports.protocol.wave.window.weights)
        signal = (inside - outside) * reports.protocol.wave.window.width
        doubtful = self.deviations * 0.5 / (signal * np.sqrt(reports.number))
        tail = np.cumsum(belief.shares[0, ::-1])[::-1]
        kept = np.where(tail > doubtful, belief.shares[0], 0.0)
        shares = (kept / kept.sum())[None, :] if kept.any() else belief.shares
        return DistributionBelief(belief.values, shares, belief.weights)

    def choose(self, reports: FirstReports, belief: DistributionBelief | None = None) -> LocalChoice:
        """The threshold to announce."""
        return _of_least_regret(belief or self.belief(reports), reports)


@dataclass(frozen=True, slots=True)
class LocalPercentile:
    """A percentile of the EMS estimate: right for some streams, wrong for others. For comparison.

    `smooth=False` takes the EM estimate.

    >>> LocalPercentile(0.95).kind
    'percentile'
    """

    percentile: float = 0.995
    smooth: bool = True
    kind: ClassVar[str] = "percentile"

    def __post_init__(self) -> None:
        _check_smooth(self.smooth)
        if not 0 < self.percentile <= 1:
            raise InvalidParameter("percentile", "must lie above 0 and not above 1", "Use 0.995, for example.")

    def belief(self, reports: FirstReports) -> DistributionBelief:
        """The reconstruction."""
        return reconstructed(reports, smooth=self.smooth)

    def choose(self, reports: FirstReports, belief: DistributionBelief | None = None) -> LocalChoice:
        """The threshold to announce."""
        belief = belief or self.belief(reports)
        index = int(np.searchsorted(np.cumsum(belief.shares[0]), self.percentile * (1 - 1e-12)))
        return _choice(belief, _rounded(belief.values[min(index, belief.values.size - 1)], reports.protocol.bound))


@dataclass(frozen=True, slots=True)
class NoThreshold:
    """θ is the bound: nothing is cut, and noise grows with the bound. For comparison.

    >>> NoThreshold().kind
    'none'
    """

    kind: ClassVar[str] = "none"

    def belief(self, reports: FirstReports) -> DistributionBelief:
        """The reconstruction."""
        return reconstructed(reports)

    def choose(self, reports: FirstReports, belief: DistributionBelief | None = None) -> LocalChoice:
        """The threshold to announce."""
        return _choice(belief or self.belief(reports), float(reports.protocol.bound))


RULES_BY_KIND: dict[str, type[LocalRule]] = {
    rule.kind: rule for rule in (SmoothTail, Reconstructed, CutTail, LocalPercentile, NoThreshold)
}


def _check_smooth(smooth: bool) -> None:
    check_flag("smooth", smooth, "Use False for EM without smoothing.")


def candidates(protocol: ToPLProtocol) -> Floats:
    """Thresholds to choose from: 400 between bound/2047 and the bound, each 2 % above the last."""
    steps = np.linspace(0, 1, _CANDIDATES)
    return np.asarray(protocol.bound * float(LOG_STEPS) ** (steps - 1))


def predicted_error(protocol: ToPLProtocol, horizon: int, thetas: Floats, excess: Floats) -> Floats:
    """The mean squared error of the sum over a random window, by the formula above."""
    # Where the variance is largest or (hybrid) the same everywhere; without noise something tiny decides for a small θ.
    unit = max(protocol.second(1.0).variance(0.5), 1e-9)
    result: Floats = np.square(excess)
    result *= horizon**2 / 6  # in place, because there may be thousands of distributions
    result += horizon / 3 * unit * thetas**2
    return result


def least_regret(belief: DistributionBelief, protocol: ToPLProtocol, horizon: int) -> float:
    """The candidate of least mean regret. For a single distribution it is the one of least predicted error."""
    return _least_regret(belief, protocol, horizon)[0]


def _least_regret(belief: DistributionBelief, protocol: ToPLProtocol, horizon: int) -> tuple[float, Floats]:
    """The candidate of least mean regret, and how much each distribution weighs in a mean regret: 1/its best error."""
    thetas = candidates(protocol)
    regrets, stakes = np.zeros(thetas.size), np.empty(belief.weights.size)
    for first in range(0, belief.weights.size, _DISTRIBUTIONS_AT_ONCE):
        part = slice(first, first + _DISTRIBUTIONS_AT_ONCE)
        some = DistributionBelief(belief.values, belief.shares[part], belief.weights[part])
        errors = predicted_error(protocol, horizon, thetas, some.excess(thetas))
        stakes[part] = some.weights / errors.min(axis=1)
        regrets += stakes[part] @ errors
    return _rounded(thetas[int(regrets.argmin())], protocol.bound), stakes / stakes.sum()


def _of_least_regret(belief: DistributionBelief, reports: FirstReports) -> LocalChoice:
    theta, stakes = _least_regret(belief, reports.protocol, reports.horizon)
    return _choice(belief, theta, stakes)


def told_of(theta: float, belief: DistributionBelief, reports: FirstReports) -> LocalChoice:
    """What is believed about a threshold that was announced before."""
    return _choice(belief, theta, _least_regret(belief, reports.protocol, reports.horizon)[1])


def mean_regrets(belief: DistributionBelief, reports: FirstReports, thetas: Floats) -> Floats:
    """The mean regrets of thresholds, as multiples of some number that is the same for all of them."""
    stakes = _least_regret(belief, reports.protocol, reports.horizon)[1]
    return np.asarray(stakes @ predicted_error(reports.protocol, reports.horizon, thetas, belief.excess(thetas)))


def _rounded(theta: float, bound: float) -> float:
    """Four digits are plenty, and easy to announce."""
    return min(float(f"{theta:.4g}"), float(bound))


def _choice(belief: DistributionBelief, theta: float, stakes: Floats | None = None) -> LocalChoice:
    if not np.isfinite(theta) or theta <= 0:
        raise InvalidData("the first reports give no threshold", "Set a threshold by hand.")
    above = belief.above(theta)
    mean = float(belief.weights @ above)
    spread = float(np.sqrt(belief.weights @ (above - mean) ** 2))
    cut = np.minimum(belief.values, theta)
    excesses = belief.excess(np.array([theta]))[:, 0]
    excess = float((belief.weights if stakes is None else stakes) @ excesses)
    error = float(np.sqrt(belief.weights @ (excesses - excess) ** 2))
    beyond = belief.mean((belief.values - cut) ** 2)
    return LocalChoice(theta, mean, spread, excess, belief.mean(cut), belief.mean(cut**2), error, beyond)
