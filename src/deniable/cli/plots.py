"""Pictures of answers: an estimate is a point, its interval a bar."""

from __future__ import annotations

import math
from datetime import date
from pathlib import Path
from typing import Any

from deniable.errors import BadInput
from deniable.queries.result import Result

ENDINGS = (".png", ".svg", ".pdf")
MOST_ROWS = 200
MOST_LABELS = 40
INK, SOFT = "#1f4e79", "#8a8a8a"


def check_ending(path: str) -> None:
    """Refuse a file of another kind before anything is computed."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise BadInput(f"a plot ends in {', '.join(ENDINGS)}. Nothing was drawn. Name it out.png, for example.")


def draw(result: Result, path: str) -> None:
    """One panel per answer, one point with its interval per row."""
    check_ending(path)
    if not len(result):
        raise BadInput("the answer has no rows. Nothing was drawn. Ask for something that has.")
    if len(result) > MOST_ROWS:
        raise BadInput(f"the answer has over {MOST_ROWS} rows. Nothing was drawn. Group by bins, or use LIMIT.")
    from matplotlib.figure import Figure

    panels = len(result.answers)
    width = min(max(5.0, 2.5 + 0.35 * len(result)), 14.0)
    figure = Figure(figsize=(width, 1.2 + 2.6 * panels), layout="constrained")
    axes = figure.subplots(panels, 1, squeeze=False, sharex=True)[:, 0]
    places, ticks = _places(result)
    for axis, (name, estimates) in zip(axes, result.answers.items(), strict=True):
        clear = [(place, one) for place, one in zip(places, estimates, strict=True) if not math.isnan(one.value)]
        unclear = [place for place, one in zip(places, estimates, strict=True) if math.isnan(one.value)]
        values = [one.value for _, one in clear]
        reach = [one.interval[1] - one.value for _, one in clear]
        axis.errorbar([place for place, _ in clear], values, yerr=reach, fmt="o", ms=4, lw=1.4, capsize=3, color=INK)
        for place in unclear:
            axis.text(place, 0.5, "unclear", transform=axis.get_xaxis_transform(), rotation=90, color=SOFT,
                      ha="center", va="center", fontsize=8)  # fmt: skip
        if clear and min(values) >= 0 and min(values) < max(values) / 2:
            axis.axhline(0.0, color=SOFT, lw=0.8)
        axis.set_ylabel(name, parse_math=False)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="#e6e6e6", lw=0.8)
        axis.set_axisbelow(True)
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
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
    figure.suptitle(f"estimates with {100 * confidence.confidence:.4g} % intervals{together}", fontsize=10)
    try:
        figure.savefig(path, dpi=150)
    except OSError:
        raise BadInput(f"{Path(path).name!r} cannot be written. Nothing was drawn. Name another file.") from None


def _places(result: Result) -> tuple[list[Any], list[str] | None]:
    """Where rows stand on the axis: at their number, or one beside the other with labels."""
    columns = list(result.groups.values())
    if len(columns) == 1 and len(result) > 1:
        values = list(columns[0])
        if all(isinstance(one, (int, float, date)) and not isinstance(one, bool) for one in values):
            return values, None
    labels = [", ".join("NULL" if one is None else str(one) for one in row) for row in zip(*columns, strict=True)]
    return list(range(len(result))), labels or [""]
