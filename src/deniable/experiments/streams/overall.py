"""Error of published streams by ε: ToPS beside its baselines  [WCZ21, Fig. 3]."""

from __future__ import annotations

from typing import Any

from deniable.experiments.harness import Data, Experiment, Found, Rows, Setting
from deniable.experiments.streams._publishing import EPSILONS, SETTING, panels, published, simulated
from deniable.experiments.writing import markdown_table
from deniable.streams import NME, PAK, Flat, Hc16, PAKPercentile, SmoothThreshold, ToPS

ZERO = "always zero"
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
STYLES = {"ours": "o-C0", "ToPS (paper)": "s-C1", "NM-E": "^-C2", "Ĥc16": "v-C3", "Ĥc16, θ ≤ B": "v--C3"}
STYLES |= {"PAK": "D-C4", "PAK, θ ≤ B": "D--C4", "flat": "x:C5", ZERO: "-k"}


def settings(data: Data, quick: bool) -> list[Setting]:
    """Methods by data and ε."""
    names = data.streams("POS", "DNS", "Fare") if quick else data.streams("POS", "DNS", "Kosarak", "Fare")
    return [{"data": name, "epsilon": e, "method": method} for name in names for e in EPSILONS for method in METHODS]


def measure(setting: Setting, seed: int, data: Data) -> Found:
    """Errors of one published stream."""
    stream = data.stream(str(setting["data"]))
    if setting["method"] == ZERO:
        return stream.errors(0 * stream.published).numbers()
    kind, parts = METHODS[str(setting["method"])]
    return published(simulated(kind, float(setting["epsilon"]), stream, seed, **parts), stream)


def plot(rows: Rows, figure: Any) -> None:
    """One panel per stream."""
    for axes, _, part in panels(figure, rows.of("MSE")):
        for method, line in part.split("method"):
            axes.errorbar(line.column("epsilon"), line.means, line.stderrs, fmt=STYLES[method], label=method)
        axes.set(xscale="log", yscale="log", xlabel="ε", xticks=EPSILONS, xticklabels=[f"{e:g}" for e in EPSILONS])
        axes.minorticks_off()
    first = figure.axes[0]
    first.set_ylabel("MSE of a random range")
    figure.legend(*first.get_legend_handles_labels(), loc="outside right center")


def describe(rows: Rows) -> str:
    """Ratios to ours and to the paper's."""
    errors = rows.of("MSE")
    lines = []
    for method in METHODS:
        ratios = []
        for name, part in errors.split("data"):
            ours, other = part.where(method="ToPS (paper)").means, part.where(method=method).means
            ratios.append((name, other / ours))
        lines.append([method, *(f"{ratio.min():.2g} to {ratio.max():.2g}" for _, ratio in ratios)])
    names = [name for name, _ in errors.split("data")]
    table = markdown_table(["MSE as a multiple of the paper's ToPS", *names], lines)
    return f"Over ε = {EPSILONS[0]:g} to {EPSILONS[-1]:g}:\n\n{table}\n\n"


EXPERIMENT = Experiment(
    "Error of published streams by ε",
    "[WCZ21, Fig. 3]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(3, 40),
    setting=SETTING,
)
