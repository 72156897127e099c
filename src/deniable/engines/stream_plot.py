"""A picture of a released stream: means of consecutive windows, their intervals, and the truth where it is given."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import numpy as np

from deniable.engines.stream_files import read_batches
from deniable.errors import InvalidParameter

POINTS = 200


class Windowed(Protocol):
    """What a picture needs of a released stream."""

    @property
    def about(self) -> Any:
        """Public settings."""

    @property
    def first(self) -> int:
        """Number of the first value."""

    def __len__(self) -> int: ...

    def means(self, starts: Any, stops: Any) -> Any:
        """Means of windows with their errors."""


def draw(released: Windowed, output: str, window: int | None, truth: str | None, column: str) -> None:
    """Write the picture; its format is the file's ending."""
    if Path(output).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InvalidParameter("--output", "must end in .png, .svg or .pdf", "Name it so.")
    if len(released) == 0:
        raise InvalidParameter("the stream", "is empty", "Publish something first.")
    size = window
    if size is None:  # whole blocks, so that no point shows the correction at the end of one
        block = int(released.about.get("s", 1))
        size = min(max(-(-len(released) // (POINTS * block)), 1) * block, len(released))
    if not 1 <= size <= len(released):
        raise InvalidParameter("--window", f"must be 1 to {len(released):,}", "Use a smaller one.")
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    starts = np.arange(0, len(released) - size + 1, size)
    answers = released.means(starts, starts + size)
    reach = 1.96 * np.hypot(answers.stderrs, answers.smoothing)
    figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
    middle = starts + size / 2
    axes.fill_between(middle, answers.values - reach, answers.values + reach, alpha=0.25, label="95 % interval")
    axes.plot(middle, answers.values, label="private")
    if truth is not None:
        skip = int(released.about.get("warmup", 0)) + released.first
        values = np.concatenate([batch.values for batch in read_batches(truth, column, None)])[skip:]
        prefix = np.concatenate(([0.0], np.cumsum(values[: len(released)], dtype=np.float64)))
        shown = starts[starts + size < prefix.size]
        axes.plot(shown + size / 2, (prefix[shown + size] - prefix[shown]) / size, label="truth", linewidth=1)
    axes.set_xlabel("position")
    axes.set_ylabel(f"mean of {size:,} values")
    axes.set_title(
        ", ".join(f"{name} = {released.about[name]:g}" for name in ("epsilon", "theta") if name in released.about)
    )
    axes.legend()
    figure.savefig(output, dpi=150)
    plt.close(figure)
