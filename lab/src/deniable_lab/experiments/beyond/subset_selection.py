"""Subset selection next to randomized response and local hashing: variances of a cell's count."""

from __future__ import annotations

from typing import Any

from deniable.mechanisms import LocalHashing, RandomizedResponse, SubsetSelection
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.tables._pictures import add_legend
from deniable_lab.experiments.writing import markdown_table

CELLS = (2, 4, 8, 16, 25, 40, 63)
EPSILONS = (0.25, 0.5, 1.0, 2.0, 4.0)
SHARE = 0.1
"""Of the people in the cell that is counted, on the right."""
SETTLED = 100_000
ORACLES = {
    "randomized response": RandomizedResponse,
    "local hashing": LocalHashing,
    "subset selection": SubsetSelection,
}
OURS = "subset selection"


def settings(data: Data, quick: bool) -> list[Setting]:  # noqa: ARG001 - nothing is drawn
    """Cells by ε."""
    return [{"data": "CELLS", "epsilon": epsilon, "cells": cells} for epsilon in EPSILONS for cells in CELLS]


def measure(setting: Setting, seed: int, data: Data) -> Measured:  # noqa: ARG001 - nothing is drawn
    """The exact variance of an empty cell's count and of one with a tenth of the people, over the best other one."""
    epsilon, cells = float(setting["epsilon"]), int(setting["cells"])
    variances = {
        name: [float(oracle(epsilon, cells).variance(SETTLED, count)) for count in (0.0, SHARE * SETTLED)]
        for name, oracle in ORACLES.items()
    }
    others = [min(column) for column in zip(*(variances[name] for name in ORACLES if name != OURS), strict=True)]
    return {"empty": variances[OURS][0] / others[0], "a tenth": variances[OURS][1] / others[1]}


def plot(rows: Rows, figure: Any) -> None:
    """One line for each ε: an empty cell on the left, a full one on the right."""
    panels = figure.subplots(1, 2, sharey=True)
    for axes, quantity in zip(panels, ("empty", "a tenth"), strict=True):
        for number, (epsilon, part) in enumerate(rows.of(quantity).split("epsilon")):
            axes.plot(part.column("cells"), part.means, f"C{number}o-", label=f"ε = {epsilon:g}")
        axes.axhline(1.0, color="0.5", linewidth=0.8)
        axes.set_xscale("log", base=2)
        axes.set_xticks(CELLS, [str(cells) for cells in CELLS])
        axes.minorticks_off()
        axes.set_xlabel("cells")
    panels[0].set_title("an empty cell")
    panels[1].set_title("a cell with a tenth of the people")
    panels[0].set_ylabel("variance over that of the better other")
    add_legend(figure, list(panels), columns=5)


def describe(rows: Rows) -> str:
    """The gain by ε."""
    lines = []
    for epsilon, part in rows.of("empty").split("epsilon"):
        full = rows.of("a tenth").where(epsilon=epsilon).means
        at_25 = part.only(cells=25).mean
        lines.append(
            [f"{epsilon:g}", f"{part.means.min():.2f}", f"{at_25:.2f}", f"{full.min():.2f}", f"{full.max():.2f}"]
        )
    head = ["ε of the report", "empty cell, best", "empty cell, 25 cells", "a tenth, best", "a tenth, worst"]
    return f"""The variance of a cell's count over that of the better of randomized response and local hashing:

{markdown_table(head, lines)}

A report is one of C(k, ω) subsets, and its outcome has to fit into 64 bits with a cell each: it stops at 63 cells."""


EXPERIMENT = Experiment(
    "Subset selection",
    "Beyond the papers",
    settings,
    measure,
    plot,
    describe,
    repetitions=(1, 1),
    setting="Exact variances from the mechanisms' own laws.",
)
