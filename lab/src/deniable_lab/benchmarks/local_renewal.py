"""Streams without trust as a whole: errors of random windows with one θ for ever, and with θ that is renewed.

The error of a window is computed, not sampled: the noise of each θ that was announced while it ran, and the square of
what cutting took from its values beyond what is added back. A share of users sends first reports instead of second
ones, and the others stand for them: their noise counts 1/(1 − share) times, and so does the chance of who they are.
It is given as a multiple of the error of the one θ that is best for the whole stream, which nobody knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.randomness import SeededSource
from deniable.streams import ToPL
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.streams.local.threshold_choice import candidates
from deniable_lab.benchmarks.local_streams import MOST_REGRET, streams_at_hand
from deniable_lab.benchmarks.stream_error import Row, figure
from deniable_lab.experiments import drawn_streams
from deniable_lab.experiments.stream_data import SIZE
from deniable_lab.experiments.stream_reference import WARMUP, Figure, queries

SHARE = 0.05
EPSILONS = (0.5, 1.0, 2.0)
_STEP = 1 << 12  # values between two looks at which θ holds
_BEST = Figure(1.0, 0.0)


def renewed_streams(data: Any, repetitions: int) -> Iterator[Row]:
    """All streams at hand, none of which took part in a choice. Target: twice the best θ's error, over the stream."""
    for stream in streams_at_hand(data):
        for epsilon in EPSILONS:
            yield _row(stream.name, stream.values, stream.bound, epsilon, repetitions)


def drawn_renewals(repetitions: int) -> Iterator[Row]:
    """Drawn streams with odd seeds, which chose nothing: so many of each shape, and all together."""
    for epsilon in EPSILONS:
        everything: dict[str, list[float]] = {"one θ": [], "renewed": []}
        for seed in range(1, 2 * len(drawn_streams.SHAPES) * repetitions, 2):
            stream = drawn_streams.drawn(seed, SIZE)
            errors = both(stream.values, stream.bound, epsilon, seed)
            for name, error in zip(everything, errors, strict=True):
                everything[name].append(error[0])
        for name, regrets in everything.items():
            logs = np.log(regrets)
            note = f"geometric mean {np.exp(logs.mean()):.2f}, {np.mean(logs <= np.log(MOST_REGRET)):.0%} at most 2, "
            note += f"median {np.median(regrets):.2f}, worst {max(regrets):.1f}"
            yield Row(f"drawn ε={epsilon:g}, {name}", figure(np.array(regrets)), _BEST, None, note)


def _row(name: str, values: Integers, bound: float, epsilon: float, repetitions: int) -> Row:
    results = [both(values, bound, epsilon, seed) for seed in range(repetitions)]
    once, renewed = (np.array([result[which] for result in results]) for which in (0, 1))
    ours = figure(renewed[:, 0]) if repetitions > 1 else Figure(float(renewed[0, 0]), 0.0)
    note = (
        f"one θ: {once[:, 0].mean():.2f}; nothing added back: {renewed[:, 1].mean():.2f}, one θ {once[:, 1].mean():.2f}"
    )
    note += f"; {renewed[:, 2].mean():.1f} thresholds"
    return Row(f"{name} B={bound:,} ε={epsilon:g}", ours, _BEST, ours.mean <= MOST_REGRET, note)


def both(values: Integers, bound: float, epsilon: float, seed: int) -> tuple[Floats, Floats]:
    """Errors with one θ and with renewed ones: as they are, with nothing added back, and how many θ there were."""
    best = best_error(values[WARMUP:], bound, epsilon)
    once, renewed = (errors(values, bound, epsilon, seed, share) for share in (0.0, SHARE))
    return once / [best, best, 1], renewed / [best, best, 1]


def best_error(published: Integers, bound: float, epsilon: float) -> float:
    """The mean squared error of the best single θ, with nothing added back."""
    protocol = ToPLProtocol(epsilon, bound)
    return min(
        _mean_square(published, [(0, published.size, float(theta), 0.0)], protocol)
        for theta in candidates(protocol)[::8]
    )


def errors(values: Integers, bound: float, epsilon: float, seed: int, share: float) -> Floats:
    """The mean squared error of a release, with and without what is added back; and how many θ it announced."""
    settings: dict[str, Any] = {"keep": False, "renewal": share, "source": SeededSource(seed), "simulation": True}
    topl = ToPL(epsilon, bound, **settings)
    topl.publish(values[:WARMUP])
    ends, phases = [], []
    for start in range(WARMUP, values.size, _STEP):
        ends.append(min(start + _STEP, values.size) - WARMUP)
        phases.append(len(topl.server.thetas) - 1)
        topl.publish(values[start : start + _STEP])
    borders = np.flatnonzero(np.diff(phases)).tolist()
    starts, stops = [0, *(ends[at] for at in borders)], [*(ends[at] for at in borders), ends[-1]]
    chosen = [topl.server._phases._all[phases[at]].choice for at in (*borders, len(phases) - 1)]
    parts = [(a, b, choice.theta, choice.excess) for a, b, choice in zip(starts, stops, chosen, strict=True)]
    plain = [(a, b, theta, 0.0) for a, b, theta, _ in parts]
    published = values[WARMUP:]
    squares = [_mean_square(published, some, topl.protocol) for some in (parts, plain)]
    return np.array([*squares, len(parts)])


def _mean_square(published: Integers, parts: list[tuple[int, int, float, float]], protocol: ToPLProtocol) -> float:
    """The mean over random windows; `parts` are stretches with their θ and what is added back to each value."""
    starts, stops = queries()
    noise, off = np.zeros(starts.size), np.zeros(starts.size)
    share = protocol.renewal
    for begin, end, theta, added in parts:
        mine = published[begin:end].astype(np.float64)
        cut = np.minimum(mine, theta)
        lost = np.concatenate(([0.0], np.cumsum(mine - cut - added)))
        low, high = np.clip(starts, begin, end) - begin, np.clip(stops, begin, end) - begin
        square = float(np.square(cut).mean())
        noise += (
            (high - low) * (protocol.mean_variance(theta, float(cut.mean()), square) + share * square) / (1 - share)
        )
        off += lost[high] - lost[low]
    return float(np.mean(noise + off**2))
