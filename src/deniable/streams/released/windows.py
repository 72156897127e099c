"""Answers for windows of a released stream: a sum or mean, and how far it may be off."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats
from deniable.queries.answers.result import Estimate

SINGLE_LAPLACE = 3.0
"""The excess kurtosis of one Laplace noise; that of a sum of k of them is 3/k, and 0 is a normal distribution."""
_BETWEEN = 0.7
PRESSED = "published sums press against θ: the stream has risen, and sums are lower bounds until θ is renewed"
LOWER_BOUND = (
    "sums are lower bounds: published sums press against θ, or noise may hide values near the bound that outweigh all "
    "others. A tighter bound or a larger ε helps"
)
_CUT_UP, _CUT_DOWN = 1.6, 0.7
"""Standard errors of what values above θ add count so many times up and down: it is rarely more than said, but then far
more, and it is not far less.
"""
_NEARLY, _MOST_OF_THE_WAY = 0.92, 2 / 3
"""Of θ, and of the way from what was learnt to θ: where the mean of cut values lies higher, most of them are cut."""
_MOSTLY_CUT = 0.25
"""Of θ: an excess that says already that most values are cut."""
_RARELY = 0.05
"""How often a window may hold a value so large that the spread of its sum does not count it: as often as 95 % leave."""


@dataclass(frozen=True, slots=True)
class Rise:
    """Where an epoch's values rose far above θ, as its blocks and the epoch after it show; in steps of the grid.

    Blocks of a mean above `certain` have risen, from `level` to `high` as far as they have that mean; values that have
    lost `excess` each, by how much that may be off as a variance. `noise` is that of a block's mean.
    """

    level: float
    certain: float
    high: float
    excess: float
    variance: float
    noise: float

    def shares(self, rates: Floats) -> Floats:
        """The share of values that have risen, for blocks of these means."""
        shares = (rates - self.level) / (self.high - self.level)
        return np.where(rates > self.certain, np.clip(shares, 0.0, 1.0), 0.0)

    def added(self, count: Floats, risen: Floats, block: int) -> tuple[Floats, Floats]:
        """What is added to sums of so many values, so many of which have risen, and its variance."""
        unseen = self.noise / (self.high - self.level) * self.excess
        return risen * self.excess, risen**2 * self.variance + unseen**2 * block * count


@dataclass(frozen=True, slots=True)
class Truncation:
    """What is known about the values that were cut at θ; all in steps of the grid.

    `excess` is a private estimate of E[(v − θ)+], the mean that cutting takes from a value, with its variance. It is
    added back. Where nothing measured it, `share` may estimate how many values lie above θ, each of which loses at most
    bound − θ; `tail` is the share of θ that they are assumed to lose on average.
    """

    theta: float
    bound: float
    share: float | None = None
    share_stderr: float = 0.0
    tail: float = 1.0
    excess: float | None = None
    excess_variance: float = 0.0
    excess_square: float = 0.0
    """E[(v − θ)+²]: what a few values lose differs from window to window."""
    level: float | None = None
    """The mean of cut values when all this was learnt."""
    empty_below: float | None = None
    """Blocks with a smaller published mean lost nothing, and nothing is added back to them."""
    hidden: float = 0.0
    """The share of values that may lie anywhere up to the bound without being seen, where it matters."""

    uncounted: float = 0.0
    """By how much stand-ins for events that did not count are off per value, as a standard error."""
    far: tuple[float, float] | None = None
    """A share of values above θ, and the power by which larger ones are rarer: how much windows differ by chance."""
    rise: Rise | None = None
    growth: tuple[float, float] | None = None
    """A level of cut values at which the excess holds, and the power of the level that it grows as."""

    @classmethod
    def read(cls, facts: dict[str, Any]) -> Truncation:
        """What `asdict` wrote, after JSON. `sparse` is of earlier versions: all values that are not 0 may be hidden."""
        known = {"hidden": float(facts.get("sparse", False)), **facts}
        known.pop("sparse", None)
        for name in ("far", "growth"):
            if known.get(name) is not None:
                known[name] = tuple(known[name])
        if known.get("rise") is not None:
            known["rise"] = Rise(**known["rise"])
        return cls(**known)

    def pressed(self, rates: Floats, noise: float) -> NDArray[np.bool_]:
        """Whether blocks of these mean values press against θ: most of what they hold may be cut.

        Their mean is above three fourths of θ, or has jumped to three times what it was when θ was learnt and above a
        third of θ; by more than three standard errors of noise, and to twice what it was at least. A stream whose
        values are all close to θ was like that before. Or their mean has come nearly all the way from there to θ: then
        most of their values are as large as θ, or larger.
        """
        shown = self.excess is not None and self.excess > _MOSTLY_CUT * self.theta  # by a later, larger θ
        if self.level is None or self.theta >= self.bound or shown:
            return np.zeros(rates.shape, dtype=bool)
        jumped = max(3 * self.level, self.theta / 3)
        risen = rates - 3 * noise > max(2 * self.level, min(0.75 * self.theta, jumped))
        if self.level >= _NEARLY * self.theta:
            return np.asarray(risen)
        nearly = max(_NEARLY * self.theta, self.level + _MOST_OF_THE_WAY * (self.theta - self.level))
        return np.asarray(risen | (rates - 2 * noise > nearly))

    def loss(self, count: Floats) -> Floats:
        """What truncation may have taken from sums of `count` values: an estimate plus two standard errors, or NaN."""
        if self.excess is not None:
            return np.zeros(count.shape)
        share = math.nan if self.share is None else min(max(self.share + 2 * self.share_stderr, 0.0), 1.0)
        each = max(min(self.bound - self.theta, self.tail * self.theta), 0)
        return np.asarray(count * (share * each if each else 0.0), dtype=np.float64)

    def added(self, count: Floats, lose: Floats | None = None, doubt: Floats | None = None) -> tuple[Floats, Floats]:
        """What is added back to sums of `count` values, and its variance.

        Where levels have moved, values lose as much as `lose` values did, or with some doubt as `doubt` values did.
        """
        if self.excess is None:
            return np.zeros(count.shape), np.zeros(count.shape)
        lose, doubt = count if lose is None else lose, count if doubt is None else doubt
        chance = np.maximum(doubt * self.excess_square, self._chance(doubt))
        moved = (np.maximum(doubt - count, 0.0) * self.excess) ** 2  # other tails grow as other powers
        return lose * self.excess, doubt**2 * self.excess_variance + moved + chance

    @property
    def most_growth(self) -> float:
        """How many times as much values may lose, until that may be all that is left of them."""
        lost = (self.excess or 0.0) + math.sqrt(self.excess_variance)
        return (self.level or 0.0) / lost if lost > 0 else 1.0

    def _chance(self, count: Floats) -> Floats:
        """How much sums of the excess differ from window to window, if ever larger values are rarer by a power law.

        Squares are added up to a value so large that one in twenty windows holds a larger one: n·u·∫ 2(t − 1)t^(−α) dt.
        """
        if self.far is None:
            return np.zeros(count.shape)
        share, power = self.far
        number = count * share
        above = max(self.bound / self.theta, 1.0)
        largest = np.clip(np.maximum(number / _RARELY, 1.0) ** (1 / max(power, 0.1)), 1.0, above)
        ones, twos = (_power_integral(exponent, largest) for exponent in (power, power - 1))
        return np.asarray(2 * number * (twos - ones) * self.theta**2)


def _power_integral(power: float, stop: Floats) -> Floats:
    """∫ t^(−power) dt from 1 on."""
    return np.asarray(np.log(stop) if abs(power - 1) < 1e-9 else (stop ** (1 - power) - 1) / (1 - power))


@dataclass(frozen=True, slots=True)
class WindowEstimate(Estimate):
    """A sum or mean over a window. `stderr` is the exact standard error of the noise that was added, and nothing else.

    `smoothing` is an estimated standard error: how far values inside blocks may be off. `excess` is what was added back
    for values that were cut at θ, `cut` the standard error of that. The interval covers all three, and uses the
    quantiles of the noise: `tails` is its excess kurtosis, 3 for the Laplace noise of a single block. `truncation` is
    what cutting may have taken away where nothing was measured that could be added back, None if nothing is known. The
    interval does not cover it. `beyond` is for stretches that press against θ, of which a `note` warns: the upper end
    of the interval then is what it would be if all their values were as large as the bound. Where noise may hide a
    share of large values that would outweigh all others, it is what it would be if those were.

    >>> answer = WindowEstimate(100.0, 3.0, smoothing=4.0)
    >>> answer.interval[1] - answer.value > 1.95 * 5
    True
    """

    smoothing: float = 0.0
    truncation: float | None = 0.0
    excess: float = 0.0
    cut: float = 0.0
    tails: float = 0.0
    beyond: float = 0.0

    @property
    def note(self) -> str | None:
        """A warning from the published numbers themselves, if there is one."""
        return LOWER_BOUND if self.beyond else None

    @property
    def error(self) -> float:
        """Noise, smoothing and what was added back, together."""
        return math.hypot(self.stderr, self.smoothing, self.cut)

    @property
    def interval(self) -> tuple[float, float]:
        """Low and high end."""
        errors = self.stderr, math.hypot(self.stderr, self.smoothing), self.cut, self.excess
        down, up = (float(side) for side in _sides(*errors, self.tails, self.confidence))
        return self.value - down, self.value + up + self.beyond


@dataclass(frozen=True, slots=True)
class Windows:
    """Answers for many windows at once, one entry each. The fields are those of `WindowEstimate`."""

    values: Floats
    stderrs: Floats
    smoothing: Floats
    truncation: Floats
    excess: Floats
    cut: Floats
    tails: Floats
    beyond: Floats

    @property
    def errors(self) -> Floats:
        """Noise, smoothing and what was added back, together."""
        return np.sqrt(self.stderrs**2 + self.smoothing**2 + self.cut**2)

    def intervals(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Low and high ends.

        >>> import numpy as np
        >>> nothing = np.zeros(1)
        >>> Windows(nothing, np.ones(1), *[nothing] * 6).intervals()[1].round(2)
        array([1.96])
        """
        errors = self.stderrs, np.hypot(self.stderrs, self.smoothing), self.cut, self.excess
        down, up = _sides(*errors, self.tails, confidence)
        return self.values - down, self.values + up + self.beyond


def _sides(
    stderr: float | Floats, error: float | Floats, cut: float | Floats, excess: float | Floats, tails: Any, level: float
) -> tuple[Floats, Floats]:
    """How far an interval reaches down and up. `error` is that of the sum of cut values.

    No sum is smaller than that of its cut values: downwards, what was added back is wrong by no more than all of it.
    """
    down, up = (_reach(np.hypot(error, side * np.asarray(cut)), stderr, tails, level) for side in (_CUT_DOWN, _CUT_UP))
    return np.minimum(down, _reach(error, stderr, tails, level) + np.maximum(excess, 0.0)), up


def _reach(error: float | Floats, stderr: float | Floats, tails: float | Floats, confidence: float) -> Floats:
    """How far an interval reaches to one side: as heavy-tailed as the part of the error that is noise."""
    errors = np.asarray(error, dtype=np.float64)
    share = np.divide(stderr, errors, out=np.zeros_like(errors), where=errors > 0)
    return quantile(confidence, tails * share**4) * errors


def quantile(confidence: float, kurtosis: float | Floats) -> Floats:
    """How many standard errors hold with this confidence, for noise between a normal and a Laplace distribution.

    Exact at both ends. In between, sums of k Laplace noises have excess kurtosis 3/k; the power was fitted to these,
    and is within 1 % of them at confidences from 0.8 to 0.99.

    >>> float(quantile(0.95, 0.0).round(3)), float(quantile(0.95, 3.0).round(3))
    (1.96, 2.118)
    """
    normal = NormalDist().inv_cdf(0.5 + confidence / 2)
    laplace = -math.log(1 - confidence) / math.sqrt(2)
    share = np.clip(np.asarray(kurtosis) / SINGLE_LAPLACE, 0.0, 1.0) ** _BETWEEN
    return np.asarray(normal + (laplace - normal) * share)
