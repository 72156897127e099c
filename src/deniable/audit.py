"""Try to tell two inputs apart from samples: what an attacker can show about a mechanism's ε.

A claim of ε says that no event is more than e^ε times as likely under one of two neighbouring inputs as under the other
(plus δ, where one is claimed). An audit runs the mechanism on a worst pair, finds the most telling event in the first
half of the samples, and measures it in the second half. Clopper-Pearson bounds turn the two counts into a lower bound
on ε that holds with 99 % confidence. A bound above the claim proves the claim wrong; a bound below it proves nothing,
which is why the exact figure from the law stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidData, InvalidParameter
from deniable.mechanisms import (
    DiscreteLaplace,
    Hybrid,
    LocalHashing,
    NoisyMax,
    PermuteAndFlip,
    Piecewise,
    RandomizedResponse,
    SquareWave,
    StochasticRounding,
)
from deniable.mechanisms._window import SlidingWindow
from deniable.mechanisms.admissible_noise import CauchyNoise, GaussianNoise, LaplaceNoise
from deniable.mechanisms.hashing import bucket_array
from deniable.mechanisms.pak_threshold import PAKThreshold
from deniable.mechanisms.smooth_sensitivity import SmoothPercentile
from deniable.randomness import Integers, Source

CONFIDENCE = 0.99
_BATCH = 1 << 16
_SIDE = 24

Law = Sequence[Fraction | float]


@dataclass(frozen=True, slots=True)
class Case:
    """A mechanism, a worst pair of inputs for it, and the few outcomes an attacker looks at."""

    name: str
    epsilon: float
    exact: float
    outcomes: int
    draw: Callable[[int, int, Source], Integers]
    """(which of the two inputs, how many runs, source) → the outcome of each run."""
    delta: float = 0.0
    most_trials: int = 10**9
    """A mechanism that works on whole datasets is slow, one run at a time."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What an audit of one case showed."""

    case: Case
    trials: int
    bound: float

    @property
    def broken(self) -> bool:
        """Whether the samples contradict the claim."""
        return self.bound > self.case.epsilon


def audit(case: Case, trials: int, source: Source, advance: Callable[[int], None] = lambda _: None) -> Finding:
    """Run a case `trials` times on each input. `advance` hears of every batch of runs."""
    if trials < 100:
        raise InvalidParameter("trials", "must be at least 100", "Use 100000 for a telling audit.")
    trials = min(trials, case.most_trials)
    pilot, test = trials // 2, trials - trials // 2
    seen = [_count(case, world, pilot, source, advance) for world in (0, 1)]
    choices = [(*_best_event(seen[first], seen[1 - first], pilot, case.delta), first) for first in (0, 1)]
    _, event, first = max(choices, key=lambda choice: choice[0])
    likely, unlikely = (_count(case, world, test, source, advance)[event].sum() for world in (first, 1 - first))
    return Finding(case, trials, _lower_epsilon(int(likely), int(unlikely), test, case.delta))


def _count(case: Case, world: int, runs: int, source: Source, advance: Callable[[int], None]) -> Integers:
    counts = np.zeros(case.outcomes, dtype=np.int64)
    for start in range(0, runs, _BATCH):
        size = min(_BATCH, runs - start)
        drawn = np.asarray(case.draw(world, size, source))
        if (
            drawn.shape != (size,)
            or drawn.dtype.kind not in "iu"
            or not 0 <= drawn.min() <= drawn.max() < case.outcomes
        ):
            raise InvalidData(
                "a draw did not give one whole number from 0 to outcomes − 1 per run",
                "Return an array of as many integers as there are runs.",
                cost="Nothing was measured",
            )
        counts += np.bincount(drawn, minlength=case.outcomes)
        advance(size)
    return counts


def _best_event(likely: Integers, unlikely: Integers, runs: int, delta: float) -> tuple[float, NDArray[np.int64]]:
    """The set of outcomes with the highest bound, among those that take outcomes in order of their ratio."""
    order = np.argsort(-(likely + 1.0) / (unlikely + 1.0), kind="stable")
    sums = zip(np.cumsum(likely[order]), np.cumsum(unlikely[order]), strict=True)
    bounds = [_lower_epsilon(int(a), int(b), runs, delta) for a, b in sums]
    best = int(np.argmax(bounds))
    return bounds[best], order[: best + 1]


def _lower_epsilon(likely: int, unlikely: int, runs: int, delta: float) -> float:
    """ln((P₁ − δ)/P₂) from the lower Clopper-Pearson bound of P₁ and the upper one of P₂; zero if there is none."""
    from scipy.special import betaincinv  # here, because it takes longer to import than most commands to run

    miss = (1 - CONFIDENCE) / 2
    low = float(betaincinv(likely, runs - likely + 1, miss)) if likely else 0.0
    high = float(betaincinv(unlikely + 1, runs - unlikely, 1 - miss)) if unlikely < runs else 1.0
    return max(0.0, math.log((low - delta) / high)) if low > delta else 0.0


def worst_ratio(laws: Iterable[tuple[Law, Law]], delta: float = 0.0) -> float:
    """The smallest ε that pairs of laws satisfy, in either direction, with the given δ.

    >>> worst_ratio([((0.75, 0.25), (0.25, 0.75))]) == math.log(3)
    True
    """
    laws = list(laws)
    if not laws or any(len(a) != len(b) for a, b in laws):
        raise InvalidParameter("laws", "must be pairs of equally many probabilities", "Give one pair at least.")
    return max(max(_smallest_epsilon(a, b, delta), _smallest_epsilon(b, a, delta)) for a, b in laws)


def _smallest_epsilon(likely: Law, unlikely: Law, delta: float) -> float:
    if delta == 0:
        # A law with 100,000 outputs holds few different numbers, each one object: look at every pair of them once.
        pairs = {(id(a), id(b)): (a, b) for a, b in zip(likely, unlikely, strict=True)}
        return max((_log_ratio(a, b) for a, b in pairs.values() if a), default=0.0)
    p, q = np.array(likely, dtype=float), np.array(unlikely, dtype=float)
    low, high = 0.0, 100.0
    for _ in range(60):
        middle = (low + high) / 2
        leak = float(np.maximum(p - math.exp(middle) * q, 0).sum())
        low, high = (low, middle) if leak <= delta else (middle, high)
    return high


def _log_ratio(a: Fraction | float, b: Fraction | float) -> float:
    return math.inf if not b else math.log(a / b)


# The cases -----------------------------------------------------------------------------------------------------------


def _randomized_response(epsilon: float) -> Case:
    mechanism = RandomizedResponse(epsilon, 4)

    def draw(world: int, runs: int, source: Source) -> Integers:
        return mechanism.perturb(np.full(runs, world), source=source, simulation=True)

    return Case("randomized-response", epsilon, worst_ratio([(mechanism.law(0), mechanism.law(1))]), 4, draw)


def _hashing(name: str, mechanism: LocalHashing) -> Case:
    def draw(world: int, runs: int, source: Source) -> Integers:
        reports = mechanism.perturb(np.full(runs, world), source=source, simulation=True)
        first, second = (bucket_array(reports.seeds, np.full(runs, cell), mechanism.g) for cell in (0, 1))
        return np.where(reports.buckets == first, 1, 0) + np.where(reports.buckets == second, 2, 0)

    laws = [(mechanism.law(0, seed), mechanism.law(1, seed)) for seed in range(64)]
    return Case(name, mechanism.epsilon, worst_ratio(laws), 4, draw)


def _stochastic_rounding(epsilon: float) -> Case:
    mechanism = StochasticRounding(epsilon)

    def draw(world: int, runs: int, source: Source) -> Integers:
        return mechanism.perturb(np.full(runs, 2.0 * world - 1), source=source, simulation=True)

    return Case("stochastic-rounding", epsilon, worst_ratio([(mechanism.law(-1), mechanism.law(1))]), 2, draw)


def _in_windows(window: SlidingWindow, reports: Integers) -> Integers:
    """Whether reports lie in the window of the smallest input (1), the largest (2), both (3) or neither (0)."""
    return (reports < window.width) + 2 * (reports >= window.inputs - 1)


def _window_ratio(window: SlidingWindow) -> float:
    """The worst ratio of a window's law: an output inside one window and outside another. The grid may be huge."""
    inside, outside = window.weights
    return math.log(inside / outside)


def _piecewise(epsilon: float) -> Case:
    mechanism = Piecewise(epsilon)

    def draw(world: int, runs: int, source: Source) -> Integers:
        reports = mechanism.perturb(np.full(runs, 2.0 * world - 1), source=source, simulation=True)
        return _in_windows(mechanism.window, reports)

    return Case("piecewise", epsilon, _window_ratio(mechanism.window), 4, draw)


def _hybrid(epsilon: float) -> Case:
    mechanism = Hybrid(epsilon)

    def draw(world: int, runs: int, source: Source) -> Integers:
        reports = mechanism.perturb(np.full(runs, 2.0 * world - 1), source=source, simulation=True)
        return np.where(reports < 2, reports, 2 + _in_windows(mechanism.piecewise.window, reports - 2))

    exact = worst_ratio([(mechanism.rounding.law(-1), mechanism.rounding.law(1))])
    if mechanism.alpha:
        exact = max(exact, _window_ratio(mechanism.piecewise.window))
    return Case("hybrid", epsilon, exact, 6, draw)


def _square_wave(epsilon: float) -> Case:
    mechanism = SquareWave(epsilon)

    def draw(world: int, runs: int, source: Source) -> Integers:
        reports = mechanism.perturb(np.full(runs, float(world)), source=source, simulation=True)
        return _in_windows(mechanism.window, reports)

    return Case("square-wave", epsilon, _window_ratio(mechanism.window), 4, draw)


def _discrete_laplace(epsilon: float) -> Case:
    mechanism = DiscreteLaplace(epsilon)

    def draw(world: int, runs: int, source: Source) -> Integers:
        noisy = mechanism.perturb(np.full(runs, world), source=source, simulation=True)
        return np.clip(noisy, -1, 2) + 1

    return Case("discrete-laplace", epsilon, worst_ratio([(mechanism.law(0, -1, 2), mechanism.law(1, -1, 2))]), 4, draw)


def _selection(name: str, mechanism: NoisyMax | PermuteAndFlip) -> Case:
    worlds = ([0, 2], [0, 3])

    def draw(world: int, runs: int, source: Source) -> Integers:
        return np.array([mechanism.perturb(worlds[world], source=source, simulation=True) for _ in range(runs)])

    return Case(name, mechanism.epsilon, worst_ratio([(mechanism.law(worlds[0]), mechanism.law(worlds[1]))]), 2, draw)


def percentile_case(name: str, mechanism: SmoothPercentile | PAKThreshold) -> Case:
    """The median jumps from one end of the domain to the other: the largest move that the noise has to hide.

    Outcomes are bins of a quarter of the noise's scale, on both sides of the first centre; the result is not capped.
    """
    worlds = ([0, 0, mechanism.bound], [0, mechanism.bound, mechanism.bound])
    first = mechanism.centre(worlds[0])
    width = math.ceil(mechanism.scale(worlds[0]) / 4)
    edges = [first + width * place for place in range(-_SIDE + 1, _SIDE)]

    def draw(world: int, runs: int, source: Source) -> Integers:
        drawn = [mechanism.perturb(worlds[world], source=source, simulation=True) for _ in range(runs)]
        return np.searchsorted(edges, drawn, side="right")

    def law(world: int) -> list[float]:
        centre, scale = mechanism.centre(worlds[world]), mechanism.scale(worlds[world])
        tails = [1.0, *(mechanism.noise.tail(edge - centre, scale) for edge in edges), 0.0]
        return [max(above - below, 0.0) for above, below in pairwise(tails)]

    exact = worst_ratio([(law(0), law(1))], mechanism.delta)
    return Case(name, mechanism.epsilon, exact, len(edges) + 1, draw, mechanism.delta, most_trials=20_000)


CASES: dict[str, Callable[[float], Case]] = {
    "randomized-response": _randomized_response,
    "local-hashing": lambda epsilon: _hashing("local-hashing", LocalHashing(epsilon, 64)),
    "binary-hashing": lambda epsilon: _hashing("binary-hashing", LocalHashing.binary(epsilon, 64)),
    "stochastic-rounding": _stochastic_rounding,
    "piecewise": _piecewise,
    "hybrid": _hybrid,
    "square-wave": _square_wave,
    "discrete-laplace": _discrete_laplace,
    "noisy-max": lambda epsilon: _selection("noisy-max", NoisyMax(epsilon, monotone=True)),
    "permute-and-flip": lambda epsilon: _selection("permute-and-flip", PermuteAndFlip(epsilon, monotone=True)),
    "smooth-laplace": lambda epsilon: percentile_case(
        "smooth-laplace",
        SmoothPercentile(epsilon, bound=1000, percentile=0.5, cap=False, delta=1e-3, noise=LaplaceNoise()),
    ),
    "smooth-gaussian": lambda epsilon: percentile_case(
        "smooth-gaussian",
        SmoothPercentile(epsilon, bound=1000, percentile=0.5, cap=False, delta=1e-3, noise=GaussianNoise()),
    ),
    "smooth-cauchy": lambda epsilon: percentile_case(
        "smooth-cauchy",
        SmoothPercentile(epsilon, bound=1000, percentile=0.5, cap=False, delta=0.0, noise=CauchyNoise()),
    ),
    "pak": lambda epsilon: percentile_case(
        "pak", PAKThreshold(epsilon, bound=1000, percentile=0.5, delta=1e-3, cap=False)
    ),
}
"""Every mechanism by its name on the command line."""
