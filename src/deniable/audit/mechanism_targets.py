"""Mechanisms under attack on a worst pair of inputs: in bulk (`perturb`) and one value at a time (`perturb_one`)."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deniable.arrays import Integers
from deniable.audit.attack import Target
from deniable.audit.features import HINT
from deniable.audit.output import Column, Output
from deniable.exact import RandBelow
from deniable.mechanisms import (
    CauchyNoise,
    DiscreteLaplace,
    GaussianNoise,
    Hybrid,
    LaplaceNoise,
    LocalHashing,
    NoisyMax,
    PAKThreshold,
    PermuteAndFlip,
    Piecewise,
    RandomizedResponse,
    SmoothPercentile,
    SquareWave,
    StochasticRounding,
    SubsetSelection,
)
from deniable.mechanisms.frequency_oracle import FrequencyOracle
from deniable.randomness import SeededSource, Source

Make = Callable[[float], Target]
_SINGLE = ", one value"
_SINGLE_MOST, _SINGLE_BATCH = 20_000, 1_000
_CHOICE_MOST, _CHOICE_ONE_MOST = 20_000, 5_000
_PERCENTILE_MOST = 2_000

VALUES: dict[str, tuple[Callable[[float], Any], Sequence[Any]]] = {
    "randomized-response": (lambda epsilon: RandomizedResponse(epsilon, 4), (0, 1)),
    "local-hashing": (lambda epsilon: LocalHashing(epsilon, 64), (0, 1)),
    "subset-selection": (lambda epsilon: SubsetSelection(epsilon, 8, 2), (0, 1)),
    "binary-hashing": (lambda epsilon: LocalHashing.binary(epsilon, 64), (0, 1)),
    "stochastic-rounding": (StochasticRounding, (-1.0, 1.0)),
    "piecewise": (Piecewise, (-1.0, 1.0)),
    "hybrid": (Hybrid, (-1.0, 1.0)),
    "square-wave": (SquareWave, (0.0, 1.0)),
    "discrete-laplace": (DiscreteLaplace, (0, 1)),
}
"""Mechanisms for values: how they are made, and the two values."""

# One candidate draws level with its rivals. Against several of them nearly all of ε shows.
_SCORES = ((0, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1))
CHOICES: dict[str, Callable[[float], Any]] = {
    "noisy-max": lambda epsilon: NoisyMax(epsilon, monotone=True),
    "permute-and-flip": lambda epsilon: PermuteAndFlip(epsilon, monotone=True),
}


def _percentile(noise: Any, delta: float) -> Callable[[float], Any]:
    return lambda epsilon: SmoothPercentile(epsilon, bound=1000, percentile=0.5, cap=False, delta=delta, noise=noise)


# The median jumps from one end of the domain to the other: the largest move that the noise has to hide.
_DATASETS = ((0, 0, 1000), (0, 1000, 1000))
PERCENTILES: dict[str, Callable[[float], Any]] = {
    "smooth-laplace": _percentile(LaplaceNoise(), 1e-3),
    "smooth-gaussian": _percentile(GaussianNoise(), 1e-3),
    "smooth-cauchy": _percentile(CauchyNoise(), 0.0),
    "pak": lambda epsilon: PAKThreshold(epsilon, bound=1000, percentile=0.5, delta=1e-3, cap=False),
}


def mechanism_targets() -> dict[str, Make]:
    """Every mechanism by name; those with a path for single values twice."""
    made: dict[str, Make] = {}
    for name, (mechanism, pair) in VALUES.items():
        made[name] = _maker(value_target, name, mechanism, pair)
        made[name + _SINGLE] = _maker(single_target, name + _SINGLE, mechanism, pair)
    for name, mechanism in CHOICES.items():
        made[name] = _maker(choice_target, name, mechanism)
        made[name + _SINGLE] = _maker(single_target, name + _SINGLE, mechanism, _SCORES, _CHOICE_ONE_MOST)
    for name, mechanism in PERCENTILES.items():
        made[name] = _maker(percentile_target, name, mechanism)
    return made


def _maker(target: Callable[..., Target], name: str, mechanism: Callable[[float], Any], *rest: Any) -> Make:
    return lambda epsilon: target(name, mechanism(epsilon), *rest)


def value_target(name: str, mechanism: Any, pair: Sequence[Any]) -> Target:
    """A mechanism for arrays of values, on two of them."""

    def draw(worlds: Integers, source: Source) -> Output:
        reports = mechanism.perturb(np.asarray(pair)[worlds], source=source, simulation=source.simulation)
        if _has_seed(mechanism):
            return _seeded(mechanism, pair, reports.seeds, reports.buckets)
        return Output({"y": reports})

    return Target(name, mechanism.epsilon, draw)


def single_target(name: str, mechanism: Any, pair: Sequence[Any], most: int = _SINGLE_MOST) -> Target:
    """A mechanism that takes one input at a time, with the standard library."""

    def draw(worlds: Integers, source: Source) -> Output:
        randbelow = device_draws(source)
        reports = [mechanism.perturb_one(pair[world], randbelow=randbelow) for world in worlds]
        if _has_seed(mechanism):
            return _seeded(mechanism, pair, *(np.array(column) for column in zip(*reports, strict=True)))
        return Output({"y": np.array(reports)})

    return Target(name, mechanism.epsilon, draw, most=most, batch=_SINGLE_BATCH)


def device_draws(source: Source) -> RandBelow:
    """What a device draws from: the operating system, unless the audit itself is a seeded simulation."""
    return source.simulated_randbelow if isinstance(source, SeededSource) else secrets.randbelow


def _has_seed(mechanism: Any) -> bool:
    return isinstance(mechanism, FrequencyOracle) and mechanism.seeds > 1


def _seeded(oracle: FrequencyOracle, pair: Sequence[int], seeds: Integers, y: Integers) -> Output:
    first, second = (oracle.supports(cell, seeds, y) for cell in pair)
    return Output({"y": y, HINT: first + 2 * second}, {"seed": seeds.astype(np.uint32)})


def choice_target(name: str, mechanism: Any, scores: Sequence[Sequence[int]] = _SCORES) -> Target:
    """A mechanism that chooses a candidate by scores."""

    def draw(worlds: Integers, source: Source) -> Output:
        chosen = [
            mechanism.perturb(list(scores[world]), source=source, simulation=source.simulation) for world in worlds
        ]
        return Output({"choice": np.array(chosen)})

    return Target(name, mechanism.epsilon, draw, most=_CHOICE_MOST, batch=_SINGLE_BATCH)


def percentile_target(name: str, mechanism: Any, datasets: Sequence[Sequence[int]] = _DATASETS) -> Target:
    """A mechanism that answers one number about a dataset."""

    def draw(worlds: Integers, source: Source) -> Output:
        drawn = [
            mechanism.perturb(list(datasets[world]), source=source, simulation=source.simulation) for world in worlds
        ]
        return Output({"y": _bounded(drawn)})

    return Target(name, mechanism.epsilon, draw, mechanism.delta, most=_PERCENTILE_MOST, batch=_SINGLE_BATCH)


def _bounded(numbers: Sequence[int]) -> Column:
    """Whole numbers of any size as 64-bit ones; what lies beyond counts as the end."""
    return np.array([min(max(int(number), -(2**62)), 2**62) for number in numbers])
