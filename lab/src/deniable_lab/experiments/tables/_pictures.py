"""How errors of tables are drawn: measured ones as marks, those that the answers themselves state as lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deniable_lab.experiments.harness import Rows
from deniable_lab.experiments.tables._errors import AVG, NOTHING
from deniable_lab.experiments.tables._lines import Line

LABELS = {"COUNT": "NMSE of COUNT", "SUM": "NMSE of SUM", "AVG": "relative error of AVG"}


def draw_errors(
    axes: Any, rows: Rows, lines: Sequence[Line], aggregate: str, column: str, places: Any = None, dash: str = "-"
) -> None:
    """One panel: errors of an aggregate by a column. `places` are where its values stand; themselves if left out."""
    part = rows.where(aggregate=aggregate)
    for line in lines:
        measured = part.of("RE" if aggregate == AVG else "NMSE").where(method=line.name)
        if not len(measured):
            continue
        at = np.array([value if places is None else places[value] for value in measured.column(column)])
        order = np.argsort(at)
        at, means, errors = at[order], measured.means[order], np.minimum(measured.stderrs, 0.9 * measured.means)[order]
        fill = "full" if line.marker in "xP*" or not line.paper else "none"
        style = {"color": line.colour, "marker": line.marker, "fillstyle": fill}
        stated = part.of("stated").where(method=line.name)
        if len(stated):
            axes.plot(at, stated.means[order], color=line.colour, linewidth=1.0, alpha=0.7, linestyle=dash)
        joined = {"linestyle": dash if aggregate == AVG else "none"}
        axes.errorbar(at, means, errors, elinewidth=0.8, label=line.name, **style, **joined)
    nothing = part.where(method=NOTHING)
    if len(nothing):
        at = np.array([value if places is None else places[value] for value in nothing.column(column)])
        order = np.argsort(at)
        axes.plot(at[order], nothing.means[order], color="0.6", linewidth=2.5, linestyle=dash, label="0 for all")
    axes.set_yscale("log")
    axes.set_ylabel(LABELS[aggregate])


def add_legend(figure: Any, axes: Sequence[Any], columns: int = 7) -> None:
    """One legend for all panels, on top."""
    handles: dict[str, Any] = {}
    for panel in axes:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=min(len(handles), columns))
