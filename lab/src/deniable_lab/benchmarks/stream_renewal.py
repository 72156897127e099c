"""What it costs to learn θ again after every epoch where a stream stays as it is, and what it gains where one does not.

Streams are drawn, with seeds that chose nothing. Errors are mean squares of sums over random windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.randomness import SeededSource
from deniable.streams import ToPS
from deniable_lab.benchmarks.stream_error import Row, figure
from deniable_lab.experiments import drawn_streams
from deniable_lab.experiments.ratios import geometric_mean, ratio
from deniable_lab.experiments.stream_reference import Figure

STEADY = ("geometric", "zeros and a tail", "money", "heavy tail", "two kinds", "flags")
"""Shapes of the family whose values are independent of each other, and of their place."""
HORIZON, EPOCHS = 1 << 16, 3
EPSILONS, SHIFTS = (0.1, 1.0), (10.0, 0.1)
LARGEST_PRICE, LARGEST_SHIFT = 1.15, 2.0
_WINDOWS, _DRAWS = 400, 2


def renewal(repetitions: int) -> Iterator[Row]:
    """The price on streams that stay as they are, by shape; then the first whole epoch behind a shift by ten.

    "Theirs" is `renew=False` with the same warm-up, and behind shifts a publisher that was started there.
    """
    for epsilon in EPSILONS:
        quotients = []
        for shape in STEADY:
            ours, theirs = _steady(shape, epsilon, repetitions)
            quotients.append(ratio(ours, theirs))
            yield Row(f"{shape}, ε={epsilon:g}", ours, theirs, ours.mean <= LARGEST_PRICE * theirs.mean)
        mean = geometric_mean(quotients)
        met = mean.mean <= LARGEST_PRICE
        yield Row(f"stays as it is, ε={epsilon:g}, geometric mean", Figure(mean.mean, mean.stderr), None, met)
    for epsilon in EPSILONS:
        for factor in SHIFTS:
            ours, theirs = _shifted(epsilon, factor, repetitions)
            what = f"shift by {factor:g}, ε={epsilon:g}, first whole epoch behind it"
            yield Row(what, ours, theirs, ours.mean <= LARGEST_SHIFT * theirs.mean)


def _steady(shape: str, epsilon: float, repetitions: int) -> tuple[Figure, Figure]:
    """Errors with and without renewal, for each of some draws in units of the mean error without it."""
    number, shapes = list(drawn_streams.SHAPES).index(shape), len(drawn_streams.SHAPES)
    errors: list[Floats] = []
    for draw in range(_DRAWS):
        stream = drawn_streams.drawn(2 * (number + shapes * draw) + 1, (EPOCHS + 1) * HORIZON)
        by_renewal = np.empty((2, repetitions))
        for seed in range(repetitions):
            for renew in (False, True):
                settings: dict[str, Any] = {"warmup": HORIZON, "horizon": HORIZON, "renew": renew}
                tops = ToPS(epsilon, stream.bound, **settings, source=SeededSource(seed), simulation=True)
                tops.push_many(stream.values)
                by_renewal[int(renew), seed] = _error(tops, stream.values[HORIZON:], 0, EPOCHS * HORIZON)
        errors.append(by_renewal / by_renewal[0].mean())
    without, renewed = np.concatenate(errors, axis=1)
    return figure(renewed), figure(without)


def _shifted(epsilon: float, factor: float, repetitions: int) -> tuple[Figure, Figure]:
    errors: list[tuple[float, float]] = []
    for seed in range(repetitions):
        rng = np.random.default_rng([seed, 5])
        level = np.full(6 * HORIZON, 200.0)
        shift = int((2 + rng.random()) * HORIZON)
        level[shift:] *= factor
        values = rng.gamma(2.0, level).round().astype(np.int64)
        tops = ToPS(epsilon, 100_000, horizon=HORIZON, source=SeededSource(seed), simulation=True)
        tops.push_many(values)
        begins = [epoch.begin for epoch in tops.epoch_facts()]
        warmup = tops.settings.warmup
        whole = [a for a, b in pairwise(begins) if a + warmup >= shift and b - a == HORIZON]
        settings: dict[str, Any] = {"warmup": HORIZON, "renew": False}
        fresh = ToPS(epsilon, 100_000, horizon=HORIZON, source=SeededSource(seed), simulation=True, **settings)
        fresh.push_many(values[shift : shift + 2 * HORIZON])
        ours = _error(tops, values[warmup:], whole[0], whole[0] + HORIZON)
        errors.append((ours, _error(fresh, values[shift + HORIZON :], 0, HORIZON)))
    ours, theirs = np.array(errors).T
    return figure(ours), figure(theirs)


def _error(tops: ToPS, values: Integers, low: int, high: int) -> float:
    """The mean square error of random windows between two positions."""
    ends: Floats = np.sort(np.random.default_rng(3).integers(low, high + 1, (_WINDOWS, 2)), axis=1)
    prefix = np.concatenate(([0], np.cumsum(values)))
    answers = tops.released.sums(ends[:, 0], ends[:, 1])
    return float(np.mean((answers.values - (prefix[ends[:, 1]] - prefix[ends[:, 0]])) ** 2))
