"""What experiments on streams share: one run of a publisher, and how their lines look."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.randomness import SeededSource
from deniable.streams import Publisher
from deniable_lab.experiments.harness import Rows, Setting
from deniable_lab.experiments.stream_data import Stream
from deniable_lab.experiments.stream_reference import HORIZON, WARMUP

SETTING = (
    "The first 65,536 values are for the threshold, 2^20 are published; errors are those of sums over the same 200 "
    "random ranges (of means for MMSE and MMAE). Ours publishes after 256 to 4,096 values, by ε; the ranges are the "
    "same."
)
EPSILONS = (0.01, 0.02, 0.05, 0.1)


def simulated(kind: type[Any], epsilon: float, stream: Stream, seed: int, **parts: Any) -> Publisher:
    """A publisher for a stream, seeded."""
    made: Publisher = kind(epsilon, stream.bound, source=SeededSource(seed), simulation=True, **parts)
    return made


def published(
    publisher: Publisher, stream: Stream, cut_at: float | None = None, *, corrected: bool = True
) -> dict[str, float]:
    """Errors of one run, and the threshold it chose; against the truth cut at a given θ, if there is one.

    Without `corrected`, what θ cuts off is not added back.
    """
    private = publisher.push_many(stream.values)
    if publisher.settings.measure_start:
        answers = _answers(publisher, stream.starts, stream.stops, cut=cut_at is not None or not corrected)
        errors = stream.apart(answers, np.inf if cut_at is None else cut_at)
    else:
        errors = stream.errors(private) if cut_at is None else stream.errors(private, cut_at)
    return {**errors.numbers(), "theta": float(publisher.learnt.theta if publisher.learnt else 0)}


def _answers(publisher: Publisher, starts: Any, stops: Any, *, cut: bool = False) -> Floats:
    """Sums of ranges: ours answers from complete blocks, where the paper adds up what was published."""
    early = WARMUP - publisher.settings.warmup  # what a shorter warm-up publishes before the ranges begin
    return publisher.released.sums(starts + early, stops + early, cut=cut).values


def published_means(publisher: Publisher, stream: Stream, window: int) -> Floats:
    """Means of consecutive windows, as one run of a publisher tells them."""
    private = publisher.push_many(stream.values)[-HORIZON:]
    if not publisher.settings.measure_start:
        return window_means(private, window)
    starts = np.arange(0, HORIZON, window)
    return np.asarray(_answers(publisher, starts, starts + window) / window)


def window_means(values: Any, window: int) -> Floats:
    """Means of consecutive windows."""
    return np.asarray(np.asarray(values, dtype=np.float64).reshape(-1, window).mean(axis=1))


def by_window(shown: Floats, stream: Stream, window: int) -> list[tuple[Setting, dict[str, float]]]:
    """What a picture of a stream shows. For drawn streams only: values of real ones are not written down."""
    pairs = zip(window_means(stream.published, window), shown, strict=True)
    return [({"window": number}, {"truth": true, "published": mean}) for number, (true, mean) in enumerate(pairs)]


def panels(figure: Any, rows: Rows, column: str = "data", **shared: Any) -> list[tuple[Any, Any, Rows]]:
    """One panel next to the other for every value of a column: its axes, the value, its rows."""
    parts = rows.split(column)
    grid = figure.subplots(1, len(parts), squeeze=False, **shared)[0]
    for axes, (value, _) in zip(grid, parts, strict=True):
        axes.set_title(value)
    return [(axes, value, part) for axes, (value, part) in zip(grid, parts, strict=True)]


def short(number: float) -> str:
    """Two digits: 0.25, 12, 3.1e+09."""
    return f"{number:.2g}" if number < 1 or number >= 1000 else f"{number:.2f}" if number < 10 else f"{number:.0f}"


def spread(low: float, high: float) -> str:
    """A range of numbers."""
    return short(low) if short(low) == short(high) else f"{short(low)} to {short(high)}"


def logs(axes: Any, ticks: Any = None, **labels: Any) -> None:
    """Both axes in logs, with ticks where the settings are."""
    axes.set(xscale="log", yscale="log", **labels)
    axes.xaxis.set_minor_formatter("")
    if ticks is not None:
        axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.minorticks_off()


def curves(
    figure: Any, rows: Rows, column: str, styles: Mapping[str, Mapping[str, str]], ylabel: str, ticks: Any = EPSILONS
) -> None:
    """Errors by ε: one panel per stream, one line per value of a column."""
    for axes, _, part in panels(figure, rows):
        for name, line in part.split(column):
            axes.errorbar(line.column("epsilon"), line.means, line.stderrs, label=name, **styles[name])
        logs(axes, ticks, xlabel="ε")
    figure.axes[0].set_ylabel(ylabel)
    legend_at_side(figure)


def formats(names: Iterable[str], forms: Iterable[str]) -> dict[str, dict[str, str]]:
    """Line styles in matplotlib's short form."""
    return {name: {"fmt": form} for name, form in zip(names, forms, strict=True)}


def legend_at_side(figure: Any, axes: Any = None) -> None:
    """One legend for all panels."""
    handles, names = (axes or figure.axes[0]).get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right center")
