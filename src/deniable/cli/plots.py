"""Pictures of answers: an estimate is a point, its interval a bar."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from deniable.errors import BadInput
from deniable.plotting.figure import INK, SOFT, TRUTH, check_ending, new_figure, save, tidy
from deniable.queries.answers.result import Result

MOST_ROWS = 200
MOST_LABELS = 40


def draw(
    result: Result, path: str | Path, *, truth: Mapping[str, Sequence[float]] | None = None, dpi: int = 150
) -> None:
    """One panel per answer, one point with its interval per row; the truth beside it where somebody knows it."""
    check_ending(path)
    if not len(result):
        raise BadInput("the answer has no rows. Nothing was drawn. Ask for something that has.")
    if len(result) > MOST_ROWS:
        raise BadInput(f"the answer has over {MOST_ROWS} rows. Nothing was drawn. Group by bins, or use LIMIT.")
    panels = len(result.answers)
    width = min(max(5.0, 2.5 + 0.35 * len(result)), 14.0)
    figure = new_figure(width, 1.2 + 2.6 * panels)
    axes = figure.subplots(panels, 1, squeeze=False, sharex=True)[:, 0]
    places, ticks = _places(result)
    for axis, (name, estimates) in zip(axes, result.answers.items(), strict=True):
        clear = [(place, one) for place, one in zip(places, estimates, strict=True) if not math.isnan(one.value)]
        unclear = [place for place, one in zip(places, estimates, strict=True) if math.isnan(one.value)]
        values = [one.value for _, one in clear]
        reach = [one.interval[1] - one.value for _, one in clear]
        axis.errorbar([place for place, _ in clear], values, yerr=reach, fmt="o", ms=4, lw=1.4, capsize=3, color=INK,
                      label="estimate")  # fmt: skip
        if truth is not None:
            axis.plot(places, truth[name], "_", ms=14, mew=2, color=TRUTH, label="truth")
            axis.legend(frameon=False)
        for place in unclear:
            axis.text(place, 0.5, "unclear", transform=axis.get_xaxis_transform(), rotation=90, color=SOFT,
                      ha="center", va="center", fontsize=8)  # fmt: skip
        if clear and min(values) >= 0 and min(values) < max(values) / 2:
            axis.axhline(0.0, color=SOFT, lw=0.8)
        axis.set_ylabel(name, parse_math=False)
        tidy(axis)
    last = axes[-1]
    if ticks is not None:
        shown = range(0, len(places), math.ceil(len(places) / MOST_LABELS))
        long = max(len(ticks[place]) for place in shown) * len(shown) > 9 * width
        last.set_xticks([places[place] for place in shown], [ticks[place] for place in shown])
        for text in last.get_xticklabels():
            text.set(parse_math=False, rotation=60 if long else 0, ha="right" if long else "center")
        last.set_xlim(-0.6, len(places) - 0.4)
    else:  # unclear rows have their place too
        reach = (max(places) - min(places)) * 0.05
        last.set_xlim(min(places) - reach, max(places) + reach)
    last.set_xlabel(", ".join(result.groups), parse_math=False)
    confidence = next(iter(result.answers.values()))[0]
    together = ", all at once" if confidence.together > 1 else ""
    figure.suptitle(
        f"estimates with {100 * confidence.confidence:.4g} % intervals{together}{', simulation' * result.simulation}",
        fontsize=10,
    )
    save(figure, path, dpi=dpi)


def _places(result: Result) -> tuple[list[Any], list[str] | None]:
    """Where rows stand on the axis: at their number, or one beside the other with labels."""
    columns = list(result.groups.values())
    if len(columns) == 1 and len(result) > 1:
        values = list(columns[0])
        if all(isinstance(one, (int, float, date)) and not isinstance(one, bool) for one in values):
            return values, None
    labels = [", ".join("NULL" if one is None else str(one) for one in row) for row in zip(*columns, strict=True)]
    return list(range(len(result))), labels or [""]
