"""What experiments on streams share: one run of a publisher, and how their lines look."""

from __future__ import annotations

from typing import Any

from deniable.experiments.harness import Rows
from deniable.experiments.stream_data import Stream
from deniable.randomness import SeededSource
from deniable.streams import Publisher

SETTING = (
    "The first 65,536 values are for the threshold, 2^20 are published; errors are those of sums over the same 200 "
    "random ranges (of means for MMSE and MMAE)."
)
EPSILONS = (0.01, 0.02, 0.05, 0.1)


def simulated(kind: type[Any], epsilon: float, stream: Stream, seed: int, **parts: Any) -> Publisher:
    """A publisher for a stream, seeded."""
    made: Publisher = kind(epsilon, stream.bound, source=SeededSource(seed), simulation=True, keep=False, **parts)
    return made


def published(publisher: Publisher, stream: Stream, cut_at: float | None = None) -> dict[str, float]:
    """Errors of one run, and the threshold it chose; against the truth cut at a given θ, if there is one."""
    released = publisher.push_many(stream.values)
    errors = stream.errors(released) if cut_at is None else stream.errors(released, cut_at)
    return {**errors.numbers(), "theta": float(publisher.learnt.theta if publisher.learnt else 0)}


def panels(figure: Any, rows: Rows, column: str = "data", **shared: Any) -> list[tuple[Any, Any, Rows]]:
    """One panel beside the other for every value of a column: its axes, the value, its rows."""
    parts = rows.split(column)
    grid = figure.subplots(1, len(parts), squeeze=False, **shared)[0]
    for axes, (value, _) in zip(grid, parts, strict=True):
        axes.set_title(value)
    return [(axes, value, part) for axes, (value, part) in zip(grid, parts, strict=True)]
