"""Tents next to the tree: the variance of a window's sum, by its length."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable.streams.central.perturber import Perturber
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.tables._pictures import add_legend
from deniable_lab.experiments.writing import markdown_table

EPSILON, THETA, FANOUT = 1.0, 1, 16
HORIZON = 2**20
LENGTHS = (*(4**power for power in range(2, 10)), HORIZON)
KINDS = {"tree": "s-C1", "tent": "o-C0"}
_WINDOWS = 2_000


def settings(data: Data, quick: bool) -> list[Setting]:  # noqa: ARG001 - nothing is drawn
    """Both hierarchies."""
    return [{"data": "WINDOWS", "hierarchy": kind} for kind in KINDS]


def measure(setting: Setting, seed: int, data: Data) -> Measured:  # noqa: ARG001 - nothing is drawn
    """Exact variances times ε²/θ², over evenly spread windows of each length, and over random windows of a chunk."""
    noise = Perturber(EPSILON, THETA, HORIZON, 1, FANOUT, True, str(setting["hierarchy"]))
    unit = noise.node_variance * EPSILON**2 / THETA**2
    spread = np.arange(_WINDOWS) * 0.6180339887498949 % 1
    measured: list[tuple[Setting, dict[str, float]]] = []
    for length in LENGTHS:
        starts = (spread * (HORIZON - length + 1)).astype(np.int64)
        measured.append(({"length": length}, {"V": unit * float(noise.tree.variance(starts, starts + length).mean())}))
    measured.append(({"length": "random"}, {"V": unit * noise.tree.mean_variance()}))
    return measured


def plot(rows: Rows, figure: Any) -> None:
    """V by length."""
    axes = figure.subplots()
    for kind, part in rows.split("hierarchy"):
        known = [row for row in part if row["length"] != "random"]
        axes.plot([row["length"] for row in known], [row.mean for row in known], KINDS[kind], label=kind)
        axes.axhline(part.only(length="random").mean, color=KINDS[kind][2:], linestyle=":", linewidth=1.0)
    axes.set_xscale("log", base=4)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("length of the window (dotted: random windows)")
    axes.set_ylabel("variance · ε²/θ²")
    add_legend(figure, [axes], columns=2)


def describe(rows: Rows) -> str:
    """The figures of both."""
    lines = []
    for length in [*LENGTHS, "random"]:
        tree, tent = (rows.only(hierarchy=kind, length=length).mean for kind in KINDS)
        name = f"{length:,}" if isinstance(length, int) else "random windows"
        lines.append([name, f"{tree:,.0f}", f"{tent:,.0f}", f"{tent / tree:.2f}"])
    return f"""Variance of a window's sum times ε²/θ², in a chunk of 2^20 values:

{markdown_table(["length", "tree", "tent", "tent over tree"], lines)}

Whole chunks are the exception: there the tree has less noise, and the forecast takes it if such windows are asked."""


EXPERIMENT = Experiment(
    "Tents",
    "Beyond the papers",
    settings,
    measure,
    plot,
    describe,
    repetitions=(1, 1),
    size=(5.0, 3.2),
    setting=f"Fan-out {FANOUT} for both, blocks of one value, consistent.",
)
