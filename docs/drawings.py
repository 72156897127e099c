"""The drawings of the background pages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from deniable.plotting.figure import INK, SOFT, TRUTH, new_figure, save

PALE = "#dce8f3"


def board(width: float, height: float) -> tuple[Any, Any]:
    """An empty sheet, one unit per inch."""
    figure = new_figure(width, height)
    axis = figure.subplots()
    axis.set_xlim(0, width)
    axis.set_ylim(0, height)
    axis.axis("off")
    return figure, axis


def box(axis: Any, x: float, y: float, width: float, height: float, text: str, *, fill: str = PALE) -> None:
    """A box with words in it."""
    from matplotlib.patches import FancyBboxPatch

    axis.add_patch(FancyBboxPatch((x, y), width, height, boxstyle="round,pad=0.03,rounding_size=0.08", fc=fill, ec=INK))
    axis.text(x + width / 2, y + height / 2, text, ha="center", va="center", fontsize=9)


def arrow(axis: Any, start: tuple[float, float], stop: tuple[float, float], text: str = "") -> None:
    """From here to there, with words beside it."""
    axis.annotate("", stop, start, arrowprops={"arrowstyle": "-|>", "color": INK, "lw": 1.2})
    if text:
        axis.text((start[0] + stop[0]) / 2, (start[1] + stop[1]) / 2 + 0.1, text, ha="center", fontsize=8, color=SOFT)


def tables(path: Path) -> None:
    """One user, two services, one ε."""
    figure, axis = board(8, 3)
    box(axis, 0.2, 1.8, 1.7, 0.8, "age 31, single\n(service 1)", fill="white")
    box(axis, 0.2, 0.4, 1.7, 0.8, "7 orders\n(service 2)", fill="white")
    axis.text(1.05, 2.75, "one user's device", ha="center", fontsize=9, color=SOFT)
    box(axis, 2.7, 1.8, 1.5, 0.8, "draw a view,\nrandomise: ε/2")
    box(axis, 2.7, 0.4, 1.5, 0.8, "draw 1 row of ≤ 10,\nrandomise: ε/2")
    box(axis, 5.0, 1.8, 1.1, 0.8, "1 report")
    box(axis, 5.0, 0.4, 1.1, 0.8, "1 report\n(always)")
    box(axis, 6.7, 0.9, 1.1, 1.2, "join on uid,\nmultiply,\nadd over\nusers")
    for y in (2.2, 0.8):
        arrow(axis, (1.95, y), (2.65, y))
        arrow(axis, (4.25, y), (4.95, y))
    arrow(axis, (6.15, 2.2), (6.65, 1.7))
    arrow(axis, (6.15, 0.8), (6.65, 1.3))
    axis.plot([4.62, 4.62], [0.1, 2.9], color=TRUTH, lw=1.2, ls="--")
    axis.text(4.62, 0.02, "what leaves the device", ha="center", fontsize=8, color=TRUTH)
    save(figure, path, dpi=90)


def weights(path: Path) -> None:
    """A range on a tree: the fewest nodes, or small weights on many; both add up to the range along every path."""
    figure, axis = board(8, 3.1)
    sizes, leaves = (1, 3, 9), 9
    paths = np.array(
        [[leaf * count // leaves == node for count in sizes for node in range(count)] for leaf in range(9)]
    )
    wanted = np.array([0, 1, 1, 1, 1, 1, 0, 0, 0])
    greedy = np.array([0, 0, 1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0])
    least = np.linalg.pinv(paths.astype(float)) @ wanted
    for left, title, alpha in ((0.2, "greedy: the fewest nodes", greedy), (4.2, "optimal: the least squares", least)):
        if not np.allclose(paths @ alpha, wanted):
            raise AssertionError(title)
        axis.text(left + 1.8, 2.9, f"{title}, Σα² = {float(alpha @ alpha):.2f}", ha="center", fontsize=10)
        node = 0
        for level, count in enumerate(sizes):
            for place in range(count):
                x, y, wide = left + place * 3.6 / count, 2.2 - level * 0.75, 3.6 / count
                axis.add_patch(rectangle(x + 0.02, y, wide - 0.04, 0.5, float(alpha[node])))
                if abs(alpha[node]) > 1e-9:
                    dark = "white" if abs(alpha[node]) > 0.55 else "black"
                    axis.text(
                        x + wide / 2, y + 0.25, f"{alpha[node]:.2g}", ha="center", va="center", fontsize=7, color=dark
                    )
                node += 1
        axis.plot([left + 0.4, left + 2.4], [0.5, 0.5], color=TRUTH, lw=3, solid_capstyle="butt")
        axis.text(left + 1.4, 0.22, "the range that is asked for", ha="center", fontsize=8, color=TRUTH)
    save(figure, path, dpi=90)


def rectangle(x: float, y: float, width: float, height: float, shade: float) -> Any:
    """A node, the darker the larger its weight; red where that is negative."""
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Rectangle

    colour = to_rgba(INK if shade >= 0 else TRUTH)[:3]
    return Rectangle((x, y), width, height, fc=(*colour, min(abs(shade), 1.0)), ec=INK, lw=0.8)


def streams(path: Path) -> None:
    """What happens to a stream with a trusted server."""
    figure, axis = board(8, 2.4)
    steps = (
        ("values\n3, 7, 2, 90, …", "white"),
        ("warm-up:\nchoose θ\nprivately", PALE),
        ("cut at θ,\nadd up\nin blocks", PALE),
        ("noise tree,\nmade\nconsistent", PALE),
        ("smooth\ninside\nblocks", PALE),
        ("private\nstream", "white"),
    )
    for place, (text, fill) in enumerate(steps):
        x = 0.15 + place * 1.32
        box(axis, x, 0.9, 1.05, 0.95, text, fill=fill)
        if place:
            arrow(axis, (x - 0.24, 1.37), (x - 0.03, 1.37))
    axis.text(3.3, 0.45, "trusted server", ha="center", fontsize=9, color=SOFT)
    axis.plot([6.65, 6.65], [0.3, 2.2], color=TRUTH, lw=1.2, ls="--")
    axis.text(6.65, 0.12, "what is published", ha="center", fontsize=8, color=TRUTH)
    save(figure, path, dpi=90)


def local_streams(path: Path) -> None:
    """What happens to a stream without trust."""
    figure, axis = board(8, 2.6)
    box(axis, 0.2, 1.55, 1.5, 0.8, "first users:\nvalue", fill="white")
    box(axis, 0.2, 0.4, 1.5, 0.8, "later users:\nvalue", fill="white")
    box(axis, 2.2, 1.55, 1.5, 0.8, "square wave, ε")
    box(axis, 2.2, 0.4, 1.5, 0.8, "cut at θ,\nhybrid, ε")
    box(axis, 4.8, 1.55, 1.4, 0.8, "distribution,\nchoose θ")
    box(axis, 4.8, 0.4, 1.4, 0.8, "add up")
    box(axis, 6.7, 0.4, 1.1, 0.8, "sums,\nmeans", fill="white")
    for y in (1.95, 0.8):
        arrow(axis, (1.75, y), (2.15, y))
        arrow(axis, (3.75, y), (4.75, y))
    arrow(axis, (6.25, 0.8), (6.65, 0.8))
    arrow(axis, (4.75, 1.6), (3.3, 1.25), "θ")
    axis.plot([4.1, 4.1], [0.2, 2.5], color=TRUTH, lw=1.2, ls="--")
    axis.text(4.1, 0.05, "what leaves the device", ha="center", fontsize=8, color=TRUTH)
    save(figure, path, dpi=90)


def draw_all(folder: Path) -> None:
    """Every drawing, by its name."""
    for draw in (tables, weights, streams, local_streams):
        draw(folder / f"{draw.__name__.replace('_', '-')}-drawing.png")
