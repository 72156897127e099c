"""Error of published streams by ε: ToPS next to its baselines  [WCZ21, Fig. 3]."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable.streams import NME, PAK, Flat, Hc16, PAKPercentile, SmoothThreshold, ToPS
from deniable_lab.experiments import stream_reference as reference
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.stream_data import FILES
from deniable_lab.experiments.streams._publishing import (
    EPSILONS,
    SETTING,
    curves,
    formats,
    published,
    short,
    simulated,
    spread,
)
from deniable_lab.experiments.writing import markdown_table

ZERO, PAPER = "always zero", "ToPS (paper)"
METHODS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "ours": (ToPS, {}),
    "ToPS (paper)": (ToPS, {"paper": True}),
    "NM-E": (NME, {}),
    "Ĥc16": (Hc16, {"threshold": SmoothThreshold(cap=False)}),
    "Ĥc16, θ ≤ B": (Hc16, {}),
    "PAK": (PAK, {"threshold": PAKPercentile(cap=False)}),
    "PAK, θ ≤ B": (PAK, {}),
    "flat": (Flat, {}),
    ZERO: (ToPS, {}),
}
STYLES = formats(METHODS, ("o-C0", "s-C1", "^-C2", "v-C3", "v--C3", "D-C4", "D--C4", "x:C5", "-k"))


def settings(data: Data, quick: bool) -> list[Setting]:
    """Methods by data and ε."""
    names = data.streams("POS", "DNS", "Fare") if quick else data.streams("POS", "DNS", "Kosarak", "Fare")
    return [{"data": name, "epsilon": e, "method": method} for name in names for e in EPSILONS for method in METHODS]


def measure(setting: Setting, seed: int, data: Data) -> Measured:
    """Errors of one published stream."""
    stream = data.stream(str(setting["data"]))
    if setting["method"] == ZERO:
        return stream.errors(0 * stream.published).numbers()
    kind, parts = METHODS[str(setting["method"])]
    return published(simulated(kind, float(setting["epsilon"]), stream, seed, **parts), stream)


def plot(rows: Rows, figure: Any) -> None:
    """One panel per stream."""
    curves(figure, rows.of("MSE"), "method", STYLES, "MSE of a random range")


def describe(rows: Rows) -> str:
    """Ratios to ours and to the paper's."""
    errors, lines, orders = rows.of("MSE"), [], []
    parts = errors.split("data")
    for method in METHODS:
        ratios = [part.where(method=method).means / part.where(method=PAPER).means for _, part in parts]
        lines.append([method, *(spread(ratio.min(), ratio.max()) for ratio in ratios)])
    for name, part in parts:
        paper = np.log10(part.where(method=PAPER).means)
        free, capped = (np.log10(part.where(method=method).means) - paper for method in ("PAK", "PAK, θ ≤ B"))
        orders.append(
            f"{name} {free.min():.1f} to {free.max():.1f}, of which {(free - capped).min():.1f} to "
            f"{(free - capped).max():.1f} go with the cap"
        )
    return (
        f"MSE as a multiple of that of the paper's ToPS, over ε = {EPSILONS[0]:g} to {EPSILONS[-1]:g}:\n\n"
        + markdown_table(["", *(name for name, _ in parts)], lines)
        + f"\n\nOrders of magnitude between ToPS and PAK: {'; '.join(orders)}. The paper's plots show 7 to 10. Its PAK "
        "has thresholds far above the public bound B; the cap θ ≤ B costs nothing. "
        + _next_to_authors(errors)
        + "Ĥc16 is as the text has it, with plain smooth sensitivity, whose thresholds are often the lowest possible. "
        "PAK and Ĥc16 are (ε, δ)-DP, the others ε-DP."
    )


def _next_to_authors(errors: Rows) -> str:
    """The authors' code on the same data and ranges."""
    cells = []
    for name, part in errors.split("data"):
        for epsilon, theirs in reference.TOPS.get(FILES.get(name, ""), {}).items():
            mine, paper = (part.only(method=method, epsilon=epsilon) for method in ("ours", PAPER))
            cells.append(
                [
                    f"{name}, ε = {epsilon:g}",
                    *(f"{short(figure.mean)} ± {short(figure.stderr)}" for figure in (mine, paper, theirs)),
                ]
            )
    table = markdown_table(["MSE", "ours", PAPER, "authors"], cells)
    head = (
        "ToPS next to the authors' code (60 repetitions; at ε = 0.05 it takes blocks of 4,096, where Eq. (7) has 256)"
    )
    return f"\n\n{head}:\n\n{table}\n\n" if cells else ""


EXPERIMENT = Experiment(
    "Error of published streams by ε",
    "[WCZ21, Fig. 3]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(5, 40),
    setting=SETTING,
)
