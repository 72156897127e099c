"""Figures: the only module that imports matplotlib, which is the extra `deniable[plot]`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deniable.disk_faults import writing
from deniable.errors import BadInput, MissingExtra

ENDINGS = (".png", ".svg", ".pdf")
INK, SOFT, TRUTH, TREND = "#1f4e79", "#8a8a8a", "#d1495b", "#7a5195"


def check_ending(path: str | Path) -> None:
    """Refuse a file of another type before anything is computed."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise BadInput(
            f"the name of a plot must end in {', '.join(ENDINGS)}. Nothing was drawn. Name it out.png, for example."
        )


def require_plotting() -> None:
    """Refuse if matplotlib is not installed, before anything is computed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtra("matplotlib", "plot") from None


def new_figure(width: float, height: float) -> Any:
    """A figure of this size in inches, which needs no display."""
    require_plotting()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def tidy(axis: Any) -> None:
    """Two spines, a light grid, numbers with commas."""
    axis.spines[["top", "right"]].set_visible(False)
    axis.grid(axis="y", color="#e6e6e6", lw=0.8)
    axis.set_axisbelow(True)
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")


def save(figure: Any, path: str | Path, *, dpi: int = 150) -> None:
    """Write a picture in the format that the file's name ends in, whole or not at all."""
    check_ending(path)
    with writing(f"the picture {Path(path).name!r}", "Nothing was drawn"):
        figure.savefig(path, dpi=dpi)
