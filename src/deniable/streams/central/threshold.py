"""Thresholds: where values are cut, chosen privately from values that are never published.

Every rule looks at the first m values of the stream, as whole numbers 0 … bound, and returns θ ≥ 1. A low θ loses what
lies above it, a high θ costs noise everywhere.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from deniable.arrays import Integers
from deniable.checks import check_integer, check_number
from deniable.errors import InvalidParameter, SimulationOnly
from deniable.mechanisms import NoisyMax, PAKThreshold, PermuteAndFlip, SmoothPercentile
from deniable.mechanisms.smooth_sensitivity import DEFAULT_DELTA
from deniable.randomness import Source, release_source
from deniable.streams.structure.hierarchy import Hierarchy

_SCORE_UNIT = 1 << 16  # scores are integers in this fraction of a count
_MOST_CANDIDATES = 1 << 16
_USUAL_CHANGE = 0.25
"""By how much ln θ usually changes from one epoch to the next."""
_MEMORY, _MOST_MEMORY = 4.0, 9.0
"""How much a θ chosen before counts at most, in scales of noise: if from as much information, and if from 32 times as
much or more. A fourth of it counts 2 at most: more information may show a tail that was hidden.

Of fifty candidates' noises the largest is about 4 scales, and in one choice of sixteen it is more than 6. What 32 times
the information did not show is noise rather than a change, of which there is one in 32 epochs, to any of the fifty.
"""


@dataclass(frozen=True, slots=True)
class Situation:
    """The public facts that a rule may use.

    `error` is the predicted squared error of a random window per θ². `epsilon` pays for publishing, `cost` for the
    threshold: here and in earlier epochs that look alike.
    """

    bound: int
    warmup: int
    horizon: int
    epsilon: float
    error: float
    tail: float
    cost: float = math.inf


class PrivateRule(ABC):
    """A rule that spends ε on the choice of θ."""

    __slots__ = ()

    def choose(
        self, values: Integers, situation: Situation, epsilon: float, source: Source, *, simulation: bool = False
    ) -> int:
        """θ, for a cost of ε (and δ, if the rule has one)."""
        return self.draw(values, situation, epsilon, release_source(source, simulation=simulation, epsilon=epsilon))

    @abstractmethod
    def draw(self, values: Integers, situation: Situation, epsilon: float, source: Source) -> int:
        """`choose` for a source that has been checked."""


@dataclass(frozen=True, slots=True)
class PredictedError(PrivateRule):
    """Noisy max over θ of the predicted error of a random window, in logs. The default.

        Q(θ)² = θ²·A + (r²/6)·(N(θ)/m · tail·θ)²,   N(θ) = #{v_i > θ},   A the exact error per θ²

    The first part is the noise of the tree and smoother that will be used; in the second a share N/m of all values
    loses tail·θ each, and a random window of up to r values has E[L²] = r²/6. With N_0 = √(6A)·m/(r·tail), minimising Q
    is minimising 2·N_0·ln θ + G(N(θ)), G(n) = N_0·ln(1 + (n/N_0)²). G has slope 1 at n = N_0 and less elsewhere; above
    N_0 it is continued with slope 1, which costs no privacy, leaves the minimum where it is, and keeps hopelessly small
    θ from ever winning.

    ε-DP when one value is replaced. Replacing v by a larger v' raises N(θ) by 1 for v ≤ θ < v' and leaves the rest, a
    smaller one lowers it likewise: all counts move the same way by at most 1. The table of G is built of integer steps
    between 0 and one unit, so all scores move the same way by at most one unit, whatever rounding did: the monotone
    form of noisy max needs noise of scale 1/ε  [DR14, Claim 3.9], and so does permute and flip  [MS20].

    Candidates are `per_octave` to each doubling of θ, so θ is found to within a factor 2^(1/per_octave); few candidates
    also mean few chances for noise to win.

    >>> PredictedError(per_octave=2).candidates(10)
    array([ 1,  2,  3,  4,  6,  8, 10])
    """

    mechanism: str = "noisy-max"
    per_octave: int = 4
    kind: ClassVar[str] = "predicted-error"
    private: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_mechanism(self.mechanism)
        check_integer("per_octave", self.per_octave, 1, 256)

    def candidates(self, bound: int) -> Integers:
        """The thresholds that are compared: 1 to the bound, evenly spaced in logs."""
        steps = math.ceil(math.log2(bound) * self.per_octave) + 1
        return np.unique(np.minimum(np.rint(2.0 ** (np.arange(steps) / self.per_octave)), bound).astype(np.int64))

    def tipping(self, situation: Situation) -> float:
        """N_0: that many values above θ cost as much as the noise does. At least 1.4/cost, at most m/(4·ln bound).

        With less, noise of the choice itself would raise θ by several doublings. With more, 2·N_0·ln θ would outweigh
        any count, so that θ = 1 won however large the values are: with the limit, half of the values above a θ always
        outweigh what the doublings up to the bound cost.
        """
        exact = math.sqrt(6 * situation.error) * situation.warmup / (situation.horizon * situation.tail)
        limit = situation.warmup / (4 * math.log(max(situation.bound, 3)))
        return max(min(max(exact, 1.4 / situation.cost), limit, 1e9), 1e-3)

    def aim(self, situation: Situation) -> float:
        """The share of values above the best θ where excesses are tail·θ: N = N_0·√(tail/(1 − tail)), public."""
        tail = min(situation.tail, 0.5)
        return min(self.tipping(situation) * math.sqrt(tail / (1 - tail)) / situation.warmup, 1.0)

    def scores(self, values: Integers, situation: Situation) -> Integers:
        """One integer score per candidate. Larger is better."""
        return self.scores_by_counts(_counts_above(values, self.candidates(situation.bound)), situation)

    def scores_by_counts(self, above: Integers, situation: Situation) -> Integers:
        """The same, from the numbers of values above each candidate."""
        tipping = self.tipping(situation)
        penalty = np.rint(2 * tipping * np.log(self.candidates(situation.bound)) * _SCORE_UNIT).astype(np.int64)
        return -penalty - _loss(tipping, above)

    def draw(self, values: Integers, situation: Situation, epsilon: float, source: Source) -> int:
        """θ, for a cost of ε; the source has been checked."""
        above = _counts_above(values, self.candidates(situation.bound))
        return self.draw_by_counts(above, situation, epsilon, source)

    def draw_by_counts(
        self,
        above: Integers,
        situation: Situation,
        epsilon: float,
        source: Source,
        earlier: tuple[int, float] | None = None,
    ) -> int:
        """The same, from the numbers of values above each candidate.

        `earlier` is a θ that was chosen before, and from how many times as much information.
        Thresholds far from that one have to be better by more than the noise of the choice. Which θ was chosen before
        is public, so this is a public constant for every candidate.
        """
        scores, candidates = self.scores_by_counts(above, situation), self.candidates(situation.bound)
        if earlier is not None and math.isfinite(epsilon):
            known, times = earlier
            apart = times * np.square(np.log(candidates / known) / _USUAL_CHANGE) / 2
            scores = scores - np.rint(np.minimum(apart, memory(times)) / epsilon * _SCORE_UNIT).astype(np.int64)
        winner = _winner(self.mechanism, scores, epsilon, source)
        return int(candidates[winner])


@dataclass(frozen=True, slots=True)
class PaperScore(PrivateRule):
    """Noisy max on  [WCZ21, Eq. (6)]  with its sign corrected.

        q(θ) = −(3mθ/(c·r·ε))·√(2(b − 1)·log_b³ r) − #{v_i > θ}

    As printed, with #{v_i ≤ θ}, θ = 1 always wins. ε-DP by the argument of `PredictedError`. Candidates are 1 … bound;
    where these are more than 65,536, every ⌈bound/65536⌉-th of them and the bound itself.

    >>> PaperScore().candidates(5)
    array([1, 2, 3, 4, 5])
    """

    c: float = 60.0
    fanout: int = 16
    levels: int | None = None
    mechanism: str = "noisy-max"
    kind: ClassVar[str] = "paper"
    private: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_mechanism(self.mechanism)
        check_number("c", self.c, "must be positive", "Use 60, as the paper does.", above=0)

    def candidates(self, bound: int) -> Integers:
        """The thresholds that are compared."""
        step = -(-bound // _MOST_CANDIDATES)
        return np.append(np.arange(step, bound, step), bound) if bound > 1 else np.ones(1, dtype=np.int64)

    def scores(self, values: Integers, situation: Situation) -> Integers:
        """One integer score per candidate. Larger is better."""
        thetas = self.candidates(situation.bound)
        levels = self.levels or Hierarchy(situation.horizon, self.fanout).height
        noise = math.sqrt(2 * (self.fanout - 1) * levels**3)
        slope = 3 * situation.warmup / (self.c * situation.horizon * situation.epsilon) * noise
        penalty = np.rint(np.minimum(slope * thetas * _SCORE_UNIT, 2.0**60)).astype(np.int64)
        return np.asarray(-penalty - _SCORE_UNIT * _counts_above(values, thetas))

    def draw(self, values: Integers, situation: Situation, epsilon: float, source: Source) -> int:
        """θ, for a cost of ε; the source has been checked."""
        winner = _winner(self.mechanism, self.scores(values, situation), epsilon, source)
        return int(self.candidates(situation.bound)[winner])


@dataclass(frozen=True, slots=True)
class SmoothThreshold(PrivateRule):
    """A percentile with noise of its smooth sensitivity: (ε, δ)-DP  [NRS07]. `cap` keeps it at most the bound.

    >>> SmoothThreshold(percentile=0.99).private
    True
    """

    percentile: float = 0.995
    delta: float = DEFAULT_DELTA
    cap: bool = True
    kind: ClassVar[str] = "smooth"
    private: ClassVar[bool] = True
    _mechanism: ClassVar[type[SmoothPercentile | PAKThreshold]] = SmoothPercentile

    def draw(self, values: Integers, situation: Situation, epsilon: float, source: Source) -> int:
        """θ, for a cost of (ε, δ); the source has been checked."""
        mechanism = self._mechanism(epsilon, situation.bound, self.percentile, self.delta, cap=self.cap)
        return max(mechanism.draw(values, source), 1)


@dataclass(frozen=True, slots=True)
class PAKPercentile(SmoothThreshold):
    """PAK's raised percentile: (ε, δ)-DP  [PAK19]. `cap` keeps it at most the bound, which published plots do not.

    >>> PAKPercentile().percentile
    0.99575
    """

    percentile: float = 0.99575
    kind: ClassVar[str] = "pak"
    _mechanism: ClassVar[type[SmoothPercentile | PAKThreshold]] = PAKThreshold


@dataclass(frozen=True, slots=True)
class FixedPercentile:
    """A percentile without noise: not private. For experiments, and refused without simulation=True.

    >>> FixedPercentile(0.9).private
    False
    """

    percentile: float
    kind: ClassVar[str] = "percentile"
    private: ClassVar[bool] = False

    def choose(self, values: Integers, *_: Any, simulation: bool = False) -> int:
        """θ, for no ε at all."""
        if not simulation:
            raise SimulationOnly("a percentile without noise is a value of the data", "Use PredictedError()")
        return self.draw(values)

    def draw(self, values: Integers, *_: Any) -> int:
        """θ, for no ε at all; the caller knows that this is a simulation."""
        return max(int(np.quantile(values, self.percentile, method="inverted_cdf")), 1)


@dataclass(frozen=True, slots=True)
class PublicThreshold:
    """A θ that is known without looking at the data, in the stream's own unit. Costs nothing.

    >>> PublicThreshold(40)
    PublicThreshold(theta=40)
    """

    theta: float
    kind: ClassVar[str] = "public"
    private: ClassVar[bool] = True

    def choose(self, *_: Any, **__: Any) -> int:
        """Never called: the publisher puts θ on its grid."""
        raise InvalidParameter("theta", "is public and needs no choice", "Read .theta.")


Threshold = PredictedError | PaperScore | SmoothThreshold | PAKPercentile | FixedPercentile | PublicThreshold
THRESHOLDS_BY_KIND: dict[str, type[Threshold]] = {
    kind.kind: kind
    for kind in (PredictedError, PaperScore, SmoothThreshold, PAKPercentile, FixedPercentile, PublicThreshold)
}


def memory(times: float) -> float:
    """How many scales of noise a θ outweighs at most that was chosen before, from so many times as much information.

    >>> memory(1.0), memory(1e-9)
    (4.0, 0.0)
    """
    return min(max(_MEMORY + math.log2(times), 0.0), _MOST_MEMORY)


def _check_mechanism(name: str) -> None:
    if name not in ("noisy-max", "permute-and-flip"):
        raise InvalidParameter("mechanism", "is unknown", "Use 'noisy-max' or 'permute-and-flip'.")


def _winner(mechanism: str, scores: Integers, epsilon: float, source: Source) -> int:
    """The index of the winner."""
    kind = NoisyMax if mechanism == "noisy-max" else PermuteAndFlip
    return kind(epsilon, sensitivity=_SCORE_UNIT, monotone=True).draw(scores, source)


def _counts_above(values: Integers, thetas: Integers) -> Integers:
    """#{v_i > θ} for ascending θ, in O(m + candidates) steps and a sort."""
    ordered = np.sort(values)
    return np.asarray(values.size - np.searchsorted(ordered, thetas, side="right"), dtype=np.int64)


def _loss(tipping: float, counts: Integers) -> Integers:
    """G of every count in units of 2^-16: integer steps of at least 0 and at most one unit, by construction.

    Below the tipping point G is added up from a table of its steps. Above it every count is one unit more.
    """
    size = math.ceil(tipping)
    n = np.arange(size + 1, dtype=np.float64)
    below = tipping * np.log1p((np.minimum(n, tipping) / tipping) ** 2)
    loss = (below + np.maximum(n - tipping, 0.0)) * _SCORE_UNIT
    steps = np.clip(np.rint(np.diff(loss)), 0, _SCORE_UNIT).astype(np.int64)
    table = np.concatenate(([0], np.cumsum(steps)))
    return np.asarray(table[np.minimum(counts, size)] + np.maximum(counts - size, 0) * _SCORE_UNIT)
