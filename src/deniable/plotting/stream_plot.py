"""A plot of a released stream: means of consecutive windows, their intervals, and the truth if it is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidParameter
from deniable.figure import INK, TREND, TRUTH, check_ending, new_figure, save, tidy
from deniable.stores.sources.batch import Columns
from deniable.stores.sources.readers import read_file

WINDOWS_SHOWN = 200


class Windowed(Protocol):
    """What a plot needs of a released stream."""

    @property
    def about(self) -> Any:
        """Public settings."""

    @property
    def first(self) -> int:
        """Number of the first value."""

    @property
    def simulation(self) -> bool:
        """Whether it protects nobody."""

    def __len__(self) -> int: ...

    def means(self, starts: Any, stops: Any) -> Any:
        """Means of windows with their errors."""

    def trend(self, *, cell: int | None = None) -> Any:
        """A smooth curve with its band."""


def draw(
    released: Windowed,
    output: str | Path,
    *,
    window: int | None = None,
    truth: NDArray[Any] | None = None,
    trend: bool = False,
    unit: str = "values",
    dpi: int = 150,
) -> None:
    """Write the plot, in the format that the file's name ends in. `truth` is the whole stream, with the warm-up.

    `trend` adds a smooth curve with its simultaneous band.
    """
    check_ending(output)
    if len(released) == 0:
        raise InvalidParameter("the stream", "is empty", "Publish something first.")
    size = window
    if size is None:  # whole blocks, so that no point shows the correction at the end of one
        block = int(released.about.get("s", 1))
        size = min(max(-(-len(released) // (WINDOWS_SHOWN * block)), 1) * block, len(released))
    if not 1 <= size <= len(released):
        raise InvalidParameter("--window", f"must be 1 to {len(released):,}", "Use a smaller one.")
    figure = new_figure(6.5, 3.4)
    axes = figure.subplots()
    starts = np.arange(0, len(released) - size + 1, size)
    answers = released.means(starts, starts + size)
    low, high = answers.intervals()
    middle = starts + size / 2
    # What noted windows may lack is as large as the bound allows, and would hide everything else.
    axes.fill_between(middle, low, high - answers.beyond, alpha=0.2, lw=0, color=INK, label="95 % interval")
    axes.plot(middle, answers.values, color=INK, label="private")
    if trend:
        curve = released.trend(cell=size)
        at = (curve.starts + curve.stops) / 2
        axes.fill_between(at, curve.lows, curve.highs, alpha=0.3, lw=0, color=TREND, label="band, everywhere at once")
        axes.plot(at, curve.values, color=TREND, label="trend")
    if truth is not None:
        skip = int(released.about.get("warmup", 0)) + released.first
        prefix = np.concatenate(([0.0], np.cumsum(truth[skip:][: len(released)], dtype=np.float64)))
        shown = starts[starts + size < prefix.size]
        axes.plot(shown + size / 2, (prefix[shown + size] - prefix[shown]) / size, color=TRUTH, lw=1, label="truth")
    tidy(axes)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")
    axes.set_xlabel("position in the stream")
    axes.set_ylabel(f"mean of {size:,} {unit}")
    names = {"epsilon": "ε", "theta": "θ"}
    known = ", ".join(f"{names[name]} = {released.about[name]:g}" for name in names if name in released.about)
    axes.set_title(f"{known}, simulation" if released.simulation else known, loc="left", fontsize=10)
    axes.legend(frameon=False, ncols=3, loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0)
    save(figure, output, dpi=dpi)


def read_truth(path: str, column: str) -> NDArray[Any]:
    """The values of a file, to be drawn next to what was published."""
    return np.concatenate([batch.values for batch in read_file(path, Columns(column))])
