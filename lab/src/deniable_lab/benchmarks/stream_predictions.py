"""What is published inside blocks: by the smoother that was learnt, next to the mean of the block before.

Streams are drawn, with seeds that chose nothing. Errors are mean squares of published sums from the beginning of a
block up to each of its values, against the cut stream, in the epochs that have the horizon's length.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from deniable.arrays import Floats
from deniable.randomness import SeededSource
from deniable.streams import Recent, ToPS
from deniable.streams.central.smoother_choice import FITTED_SMOOTHERS
from deniable_lab.benchmarks.stream_error import Row
from deniable_lab.experiments import drawn_streams
from deniable_lab.experiments.stream_reference import Figure

EPSILONS, HORIZON, EPOCHS = (0.1, 1.0), 1 << 18, 4


def predictions(draws: int, *, first: int = 1) -> Iterator[Row]:
    """By shape the ratio of errors, learnt to the block before, in the geometric mean of some draws; then of all."""
    shapes = list(drawn_streams.SHAPES)
    for epsilon in EPSILONS:
        all_logs = []
        for number, shape in enumerate(shapes):
            logs = []
            for draw in range(draws):
                stream = drawn_streams.drawn(2 * (number + len(shapes) * draw) + first, EPOCHS * HORIZON)
                tops = ToPS(epsilon, stream.bound, horizon=HORIZON, source=SeededSource(draw), simulation=True)
                tops.push_many(stream.values)
                errors = _errors(tops, stream.values[tops.settings.warmup :].astype(np.float64))
                if errors[1] > 0:
                    logs.append(np.log(errors / errors[1]))
            if logs:
                yield _row(f"{shape}, ε={epsilon:g}", np.array(logs))
                all_logs.append(np.mean(logs, axis=0))
        yield _row(f"ε={epsilon:g}, geometric mean", np.array(all_logs))


def _errors(tops: ToPS, values: Floats) -> Floats:
    """Sums of squares: by the learnt smoothers, by the block before, and by each of the others throughout."""
    result = np.zeros(1 + len(FITTED_SMOOTHERS))
    for begin, learnt, blocks in tops._blocks.parts() if tops._blocks else []:
        size, totals = blocks.plan.block, blocks.totals()
        if size == 1 or blocks.plan.horizon < HORIZON or not totals.size:
            continue
        cut = np.minimum(values[begin : begin + totals.size * size], learnt.theta)
        totals = totals[: cut.size // size]  # the last block of the epoch may be shorter
        cut, lengths = cut[: totals.size * size].reshape(-1, size), np.full(totals.size, size)
        mean = learnt.theta / 2 if learnt.mean is None else learnt.mean
        for index, smoother in enumerate((blocks.plan.smoother, *FITTED_SMOOTHERS)):
            rates = smoother.follow(smoother.begin(mean, size), totals, lengths)[0]
            before = np.concatenate(([mean], rates[:-1]))
            result[index] += np.square(np.cumsum(before[:, None] - cut[:, :-1], axis=1)).sum()
    return result


def _row(what: str, logs: Floats) -> Row:
    means = np.exp(logs.mean(axis=0))
    spread = logs[:, 0].std(ddof=1) / np.sqrt(len(logs)) if len(logs) > 1 else 0.0
    others = ", ".join(f"{smoother!r} {mean:.2f}" for smoother, mean in zip(FITTED_SMOOTHERS, means[1:], strict=True))
    figure = Figure(float(means[0]), float(means[0] * spread))
    return Row(
        what, figure, Figure(float(means[1 + FITTED_SMOOTHERS.index(Recent())]), 0.0), None, f"throughout: {others}"
    )
