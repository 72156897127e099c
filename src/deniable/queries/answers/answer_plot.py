"""Plots of answers: each estimate is a point, its interval a bar."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deniable.errors import BadInput
from deniable.figure import INK, SOFT, TRUTH, check_ending, new_figure, save, tidy

if TYPE_CHECKING:
    from deniable.queries.answers.result import Result

MOST_ROWS = 200
MOST_TICKS = 40


def draw(
    result: Result, path: str | Path, *, truth: Mapping[str, Sequence[float]] | None = None, dpi: int = 150
) -> None:
    """Draw an answer into a file. See `answer_figure`."""
    check_ending(path)
    save(answer_figure(result, truth), path, dpi=dpi)


def answer_figure(result: Result, truth: Mapping[str, Sequence[float]] | None = None) -> Any:
    """One panel per answer, and one point with its interval per row, with the truth if it is given."""
    if not result.answers:
        raise BadInput("the answer has no numbers. Nothing was drawn. Ask for COUNT(*), for example.")
    if not len(result):
        raise BadInput("the answer has no rows. Nothing was drawn. Ask without LIMIT, OFFSET or HAVING.")
    if len(result) > MOST_ROWS:
        raise BadInput(f"the answer has over {MOST_ROWS} rows. Nothing was drawn. Group by bins, or use LIMIT.")
    panels = len(result.answers)
    width = min(max(5.0, 2.5 + 0.35 * len(result)), 14.0)
    figure = new_figure(width, 1.2 + 2.6 * panels)
    axes = figure.subplots(panels, 1, squeeze=False, sharex=True)[:, 0]
    positions, ticks = _positions(result)
    for axis, (name, estimates) in zip(axes, result.answers.items(), strict=True):
        points = list(zip(positions, estimates, strict=True))
        clear = [(x, estimate) for x, estimate in points if not math.isnan(estimate.value)]
        unclear = [x for x, estimate in points if math.isnan(estimate.value)]
        values = [estimate.value for _, estimate in clear]
        reach = [estimate.interval[1] - estimate.value for _, estimate in clear]
        axis.errorbar([x for x, _ in clear], values, yerr=reach, fmt="o", ms=4, lw=1.4, capsize=3, color=INK,
                      label="estimate")  # fmt: skip
        if truth is not None:
            axis.plot(positions, truth[name], "_", ms=14, mew=2, color=TRUTH, label="truth")
            axis.legend(frameon=False)
        for x in unclear:
            axis.text(x, 0.5, "unclear", transform=axis.get_xaxis_transform(), rotation=90, color=SOFT,
                      ha="center", va="center", fontsize=8)  # fmt: skip
        if clear and (0 <= min(values) < max(values) / 2 or min(values) < 0 < max(values)):
            axis.axhline(0.0, color=SOFT, lw=0.8)
        axis.set_ylabel(name, parse_math=False)
        tidy(axis)
    last = axes[-1]
    if ticks is not None:
        labelled = range(0, len(positions), math.ceil(len(positions) / MOST_TICKS))
        long = max(len(ticks[row]) for row in labelled) * len(labelled) > 9 * width
        last.set_xticks([positions[row] for row in labelled], [ticks[row] for row in labelled])
        for text in last.get_xticklabels():
            text.set(parse_math=False, rotation=60 if long else 0, ha="right" if long else "center")
        last.set_xlim(-0.6, len(positions) - 0.4)
    else:  # so that unclear rows are shown too
        margin = (max(positions) - min(positions)) * 0.05
        last.set_xlim(min(positions) - margin, max(positions) + margin)
    last.set_xlabel(", ".join(result.groups), parse_math=False)
    confidence = next(iter(result.answers.values()))[0]
    together = ", all at once" if confidence.together > 1 else ""
    figure.suptitle(
        f"estimates with {100 * confidence.confidence:.4g} % intervals{together}{', simulation' * result.simulation}",
        fontsize=10,
    )
    return figure


def _positions(result: Result) -> tuple[list[Any], list[str] | None]:
    """The position of each row on the axis: its number or date, or evenly spaced with labels."""
    columns = list(result.groups.values())
    if len(columns) == 1 and len(result) > 1:
        values = list(columns[0])
        if all(isinstance(value, (int, float, date)) and not isinstance(value, bool) for value in values):
            return values, None
    labels = [", ".join("NULL" if value is None else str(value) for value in row) for row in zip(*columns, strict=True)]
    return list(range(len(result))), labels or [""]
