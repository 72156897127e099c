"""The drawings of the background pages: ideas of the papers, and how data flows through the rooms of the code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from deniable.figure import INK, TRUTH, new_figure, save

PALE, GREY = "#dce8f3", "#5a5a5a"
DPI = 140

Step = tuple[str, str]
"""What happens, and the room of the code where it happens (empty for what comes in and goes out)."""


def board(width: float, height: float) -> tuple[Any, Any]:
    """An empty sheet, one unit per inch."""
    figure = new_figure(width, height)
    axis = figure.subplots()
    axis.set_xlim(0, width)
    axis.set_ylim(0, height)
    axis.axis("off")
    return figure, axis


def box(axis: Any, x: float, y: float, width: float, height: float, text: str, *, fill: str = PALE) -> None:
    """A box with text in it."""
    from matplotlib.patches import FancyBboxPatch

    axis.add_patch(FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0.03,rounding_size=0.08", fc=fill, ec=INK))
    axis.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=10)


def arrow(axis: Any, start: tuple[float, float], stop: tuple[float, float], text: str = "") -> None:
    """An arrow, with a label next to it."""
    axis.annotate(
        "", stop, start, arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1.3, "shrinkA": 0, "shrinkB": 0}
    )
    if text:
        x, y = (start[0] + stop[0]) / 2, (start[1] + stop[1]) / 2
        axis.text(x + 0.08, y + 0.06, text, ha="left", va="bottom", fontsize=10, color=GREY)


def border(axis: Any, x: float, low: float, high: float, text: str) -> None:
    """A dashed line that data crosses only after it was randomised, with its meaning below."""
    axis.plot([x, x], [low + 0.22, high], color=TRUTH, lw=1.3, ls="--")
    axis.text(x, low, text, ha="center", va="bottom", fontsize=9, color=TRUTH)


# Ideas of the papers --------------------------------------------------------------------------------------------------


def tables(path: Path) -> None:
    """One user, two services, one ε."""
    figure, axis = board(8, 3)
    box(axis, 0.2, 1.8, 1.7, 0.8, "age 31, single\n(service 1)", fill="white")
    box(axis, 0.2, 0.5, 1.7, 0.8, "7 orders\n(service 2)", fill="white")
    axis.text(1.05, 2.75, "one user's device", ha="center", fontsize=10, color=GREY)
    box(axis, 2.6, 1.8, 1.7, 0.8, "draw a view,\nrandomise: ε/2")
    box(axis, 2.6, 0.5, 1.7, 0.8, "draw 1 row of ≤ 10,\nrandomise: ε/2")
    box(axis, 5.0, 1.8, 1.1, 0.8, "1 report")
    box(axis, 5.0, 0.5, 1.1, 0.8, "1 report\n(always)")
    box(axis, 6.7, 0.95, 1.1, 1.2, "join on uid,\nmultiply,\nadd over\nusers")
    for y in (2.2, 0.9):
        arrow(axis, (1.95, y), (2.55, y))
        arrow(axis, (4.35, y), (4.95, y))
    arrow(axis, (6.15, 2.2), (6.65, 1.75))
    arrow(axis, (6.15, 0.9), (6.65, 1.35))
    border(axis, 4.65, 0.02, 2.9, "what leaves the device")
    save(figure, path, dpi=DPI)


def weights(path: Path) -> None:
    """A range on a tree: the fewest nodes, or small weights on many; both add up to the range along every path."""
    figure, axis = board(8, 3.1)
    sizes, leaves = (1, 3, 9), 9
    paths = np.array(
        [[leaf * count // leaves == node for count in sizes for node in range(count)] for leaf in range(leaves)]
    )
    wanted = np.array([0, 1, 1, 1, 1, 1, 0, 0, 0])
    greedy = np.array([0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0])
    least = np.linalg.pinv(paths.astype(float)) @ wanted
    for left, title, alpha in ((0.2, "greedy: the fewest nodes", greedy), (4.2, "optimal: the least squares", least)):
        if not np.allclose(paths @ alpha, wanted):
            raise AssertionError(title)
        axis.text(left + 1.8, 2.9, f"{title}, Σα² = {float(alpha @ alpha):.2f}", ha="center", fontsize=11)
        node = 0
        for level, count in enumerate(sizes):
            for index in range(count):
                x, y, wide = left + index * 3.6 / count, 2.2 - level * 0.75, 3.6 / count
                axis.add_patch(rectangle(x + 0.02, y, wide - 0.04, 0.5, float(alpha[node])))
                if abs(alpha[node]) > 1e-9:
                    color = "white" if alpha[node] > 0.8 else "black"
                    label = f"{alpha[node]:.2f}".removesuffix(".00")
                    axis.text(x + wide / 2, y + 0.25, label, ha="center", va="center", fontsize=8, color=color)
                node += 1
        axis.plot([left + 0.4, left + 2.4], [0.5, 0.5], color=TRUTH, lw=3, solid_capstyle="butt")
        axis.text(left + 1.4, 0.2, "the range in question", ha="center", fontsize=9, color=TRUTH)
    save(figure, path, dpi=DPI)


def rectangle(x: float, y: float, width: float, height: float, shade: float) -> Any:
    """A node, the darker the larger its weight; red where that is negative."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    colour = to_rgba(INK if shade >= 0 else TRUTH)[:3]
    return Rectangle((x, y), width, height, fc=(*colour, min(abs(shade), 1.0)), ec=INK, lw=0.8)


def streams(path: Path) -> None:
    """What happens to a stream with a trusted server."""
    figure, axis = board(8, 2.2)
    steps = (
        ("values\n3, 7, 2, 90, …", "white"),
        ("warm-up:\nchoose θ\nprivately", PALE),
        ("cut at θ,\nadd up\nin blocks", PALE),
        ("noise tree,\nmade\nconsistent", PALE),
        ("smooth\ninside\nblocks", PALE),
        ("private\nstream", "white"),
    )
    for number, (text, fill) in enumerate(steps):
        x = 0.1 + number * 1.34
        box(axis, x, 0.75, 1.05, 0.95, text, fill=fill)
        if number:
            arrow(axis, (x - 0.25, 1.22), (x - 0.04, 1.22))
    axis.text(3.3, 1.9, "trusted server", ha="center", fontsize=10, color=GREY)
    border(axis, 6.64, 0.02, 2.1, "what is published")
    save(figure, path, dpi=DPI)


def local_streams(path: Path) -> None:
    """What happens to a stream without trust."""
    figure, axis = board(8, 2.6)
    box(axis, 0.2, 1.65, 1.5, 0.8, "first users:\nvalue", fill="white")
    box(axis, 0.2, 0.5, 1.5, 0.8, "later users:\nvalue", fill="white")
    box(axis, 2.2, 1.65, 1.5, 0.8, "square wave, ε")
    box(axis, 2.2, 0.5, 1.5, 0.8, "cut at θ,\nhybrid, ε")
    box(axis, 4.8, 1.65, 1.4, 0.8, "distribution,\nchoose θ")
    box(axis, 4.8, 0.5, 1.4, 0.8, "add up")
    box(axis, 6.7, 0.5, 1.1, 0.8, "sums,\nmeans", fill="white")
    for y in (2.05, 0.9):
        arrow(axis, (1.75, y), (2.15, y))
        arrow(axis, (3.75, y), (4.75, y))
    arrow(axis, (6.25, 0.9), (6.65, 0.9))
    arrow(axis, (4.75, 1.7), (3.3, 1.35), "θ")
    border(axis, 4.25, 0.02, 2.55, "what leaves the device")
    save(figure, path, dpi=DPI)


# Flows through the rooms ----------------------------------------------------------------------------------------------

BOX, CHANNEL, GAP, WIDTH = 0.82, 0.85, 0.32, 8.0
"""The height of a step, the space between two lanes, the space between two steps, and the width of a sheet."""


def flow(
    path: Path,
    first: tuple[str, Sequence[Step]],
    second: tuple[str, Sequence[Step]],
    *,
    into: int = 0,
    back: tuple[int, int, str] | None = None,
    crossing: str = "",
) -> None:
    """Two lanes of steps with their rooms. The end of the first leads `into` a step of the second.

    `back` is an arrow from a step of the second lane to one of the first; `crossing` names the border between them.
    """
    columns = max(len(steps) for _, steps in (first, second))
    wide = (WIDTH - 0.1 - GAP * (columns - 1)) / columns
    figure, axis = board(WIDTH, 2 * BOX + CHANNEL + 0.4)

    def middle(column: int) -> float:
        return 0.05 + column * (wide + GAP) + wide / 2

    top, bottom = BOX + CHANNEL + 0.05, 0.05
    _lane(axis, top, wide, first[1])
    _lane(axis, bottom, wide, second[1])
    axis.text(0.05, top + BOX + 0.12, first[0], fontsize=10, color=GREY)
    axis.text(middle(0) + 0.12 if into == 0 else 0.05, bottom + BOX + 0.1, second[0], fontsize=10, color=GREY)
    if crossing:
        axis.plot([0, WIDTH], [top - 0.4] * 2, color=TRUTH, lw=1.3, ls="--")
        axis.text(WIDTH - 0.05, top - 0.45, crossing, ha="right", va="top", fontsize=9, color=TRUTH)
    last = middle(len(first[1]) - 1)
    axis.plot([last, last, middle(into)], [top - 0.04, top - 0.2, top - 0.2], color=INK, lw=1.3)
    arrow(axis, (middle(into), top - 0.2), (middle(into), bottom + BOX + 0.02))
    if back:
        start, stop, label = back
        arrow(axis, (middle(start), bottom + BOX + 0.04), (middle(stop), top - 0.03), label)
    save(figure, path, dpi=DPI)


def _lane(axis: Any, y: float, wide: float, steps: Sequence[Step]) -> None:
    """One row of boxes: what happens, and below it the room; arrows between them."""
    for column, (text, room) in enumerate(steps):
        x = 0.05 + column * (wide + GAP)
        box(axis, x, y, wide, BOX, "", fill=PALE if room else "white")
        axis.text(x + wide / 2, y + BOX / 2 + (0.1 if room else 0), text, ha="center", va="center", fontsize=9)
        axis.text(x + wide / 2, y + 0.13, room, ha="center", va="center", fontsize=7.5, color=GREY, family="monospace")
        if column:
            arrow(axis, (x - GAP + 0.04, y + BOX / 2), (x - 0.03, y + BOX / 2))


def report_flow(path: Path) -> None:
    """Rows of one user become reports of 32 bytes, and those of all users a folder."""
    flow(
        path,
        (
            "on a device",
            (
                ("rows of\none user", ""),
                ("positions in\nthe domains", "tables/schema"),
                ("τ rows,\nor dummies", "tables/device"),
                ("draw a view,\nfind the cell", "tables/designs"),
                ("randomise\nthe cell", "mechanisms"),
            ),
        ),
        (
            "on a server",
            (
                ("32 bytes", "tables/reports"),
                ("gather, each\nslot once", "engines/collecting"),
                ("folder of\nParquet files", "engines/reports"),
                ("validate\nand connect", "engines/reports"),
                ("Database", ""),
            ),
        ),
        crossing="what leaves the device",
    )


def question_flow(path: Path) -> None:
    """SQL becomes a plan of weights on cells; the plan turns reports into an answer with its error."""
    flow(
        path,
        (
            "the question",
            (
                ("SQL text", ""),
                ("recognise\nevery node", "queries/parsing"),
                ("sums of\nproducts", "queries/question"),
                ("weights\non cells", "queries/weights"),
                ("plan", "queries/planning"),
            ),
        ),
        (
            "the reports",
            (
                ("reports", ""),
                ("blocks of\nwhole users", "engines/reports"),
                ("contributions,\nmoments", "engines/kernel"),
                ("estimates\nand errors", "queries/answers"),
                ("Result", ""),
            ),
        ),
        into=2,
    )


def stream_flow(path: Path) -> None:
    """A value becomes part of a block; a noisy block is published, and windows are asked of it."""
    flow(
        path,
        (
            "trusted publisher",
            (
                ("value", ""),
                ("put on an\ninteger grid", "streams/structure"),
                ("warm-up:\nlearn θ", "streams/central"),
                ("cut at θ,\nadd to block", "streams/central"),
                ("noise of the\ntree, smoother", "streams/central"),
            ),
        ),
        (
            "everybody",
            (
                ("private\nvalue", ""),
                ("Parquet\nfile", "stores"),
                ("windows", "streams/released"),
                ("noise and\nsmoothing error", "streams/released"),
                ("sum or mean\n± error", ""),
            ),
        ),
        crossing="what is published",
    )


def local_stream_flow(path: Path) -> None:
    """A device sends one report in its life; a server learns θ from the first ones and adds up the others."""
    flow(
        path,
        (
            "on a device",
            (
                ("value", ""),
                ("sent before?\nrepeat it", "streams/local"),
                ("put on scale,\nor cut at θ", "streams/local"),
                ("square wave;\nwith θ: hybrid", "mechanisms"),
                ("16 bytes", "streams/local"),
            ),
        ),
        (
            "on a server",
            (
                ("each user\nonce", "streams/local"),
                ("first reports:\nchoose θ", "streams/local"),
                ("later reports:\nestimates", "streams/local"),
                ("windows", "streams/released"),
                ("sum or mean\n± error", ""),
            ),
        ),
        back=(1, 2, "θ"),
        crossing="what leaves the device",
    )


def grid_flow(path: Path) -> None:
    """Views are chosen for a workload before anything is collected; reports then show how smooth the data is."""
    flow(
        path,
        (
            "before anything is collected",
            (
                ("workload, ε,\nusers", ""),
                ("plan the\nquestions", "queries/planning"),
                ("choose views\nand cells", "queries/grids"),
                ("predict\nthe errors", "queries/forecasts"),
                ("specification", "tables/specification"),
            ),
        ),
        (
            "after collecting",
            (
                ("reports", ""),
                ("weights of\nleast error", "queries/grids"),
                ("moments, counts\nof cells", "engines/kernel"),
                ("how smooth\nis the data?", "queries/grids"),
                ("answer ± error\n± model error", "queries/answers"),
            ),
        ),
    )


DRAWINGS = (tables, weights, streams, local_streams)
FLOWS = (report_flow, question_flow, stream_flow, local_stream_flow, grid_flow)


def draw_all(folder: Path) -> None:
    """Every drawing, by its name."""
    for draw in DRAWINGS:
        draw(folder / f"{draw.__name__.replace('_', '-')}-drawing.png")
    for draw in FLOWS:
        draw(folder / f"{draw.__name__.replace('_', '-')}.png")
