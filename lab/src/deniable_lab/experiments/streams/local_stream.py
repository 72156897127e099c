"""A stream published without trust, and its error by ε  [WCZ21, Fig. 9]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from deniable.streams import CutTail, Reconstructed
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.stream_data import FILES
from deniable_lab.experiments.stream_reference import HORIZON, LOCAL
from deniable_lab.experiments.streams._local import EPSILONS, simulated
from deniable_lab.experiments.streams._publishing import by_window, logs, short, window_means
from deniable_lab.experiments.writing import markdown_table

WINDOW, SHOWN = 1 << 14, 1.0
METHODS: dict[str, dict[str, Any]] = {
    "ours": {},
    "ToPL, EMS": {"rule": Reconstructed(), "scale": "linear"},
    "ToPL, EMS, tail cut": {"rule": CutTail(), "scale": "linear"},
}
STYLES = dict(zip(METHODS, ("o-C0", "s-C1", "v-C3"), strict=True))
DRAWN = "Fare stand-in"


def settings(data: Data, quick: bool) -> list[Setting]:
    """Streams by ε; a drawn one is shown window by window."""
    names = data.streams("POS", "DNS") if quick else data.streams("POS", "DNS", "Kosarak", "Fare")
    cells: list[Setting] = [
        {"data": name, "epsilon": e, "method": m} for name in names for e in EPSILONS for m in METHODS
    ]
    return cells + [{"data": DRAWN, "epsilon": SHOWN, "method": method} for method in METHODS if DRAWN not in names]


def measure(setting: Setting, seed: int, data: Data) -> Measured:
    """All four errors; of the first run on the drawn stream also means over windows."""
    stream = data.stream(str(setting["data"]))
    topl = simulated(float(setting["epsilon"]), stream, seed, **METHODS[str(setting["method"])])
    private = topl.publish(stream.values)
    numbers: list[tuple[Setting, dict[str, float]]] = [
        ({"window": "all"}, {**stream.errors(private).numbers(), "theta": float(topl.theta or math.nan)})
    ]
    if stream.name == DRAWN and setting["epsilon"] == SHOWN and seed == 0:
        numbers += by_window(window_means(private, WINDOW), stream, WINDOW)
    return numbers


def plot(rows: Rows, figure: Any) -> None:
    """The drawn stream, then errors by ε."""
    errors = rows.of("MSE").split("data")
    several = [(name, part) for name, part in errors if len({row["epsilon"] for row in part}) > 1]
    first, *others = figure.subplots(1, 1 + len(several), width_ratios=[1.4, *[1] * len(several)])
    drawn = Rows(tuple(row for row in rows.where(data=DRAWN) if row["window"] != "all"))
    places = np.arange(HORIZON // WINDOW) * WINDOW / 1e6
    for method, line in drawn.of("published").split("method"):
        first.plot(places, line.means, STYLES[method][-2:], linewidth=0.8, label=method)
    first.plot(places, drawn.of("truth").where(method="ours").means, "k", linewidth=1.0, label="truth")
    first.set(xlabel="position (millions)", ylabel=f"mean of {WINDOW:,} values", title=f"{DRAWN}, ε = {SHOWN:g}")
    for axes, (name, part) in zip(others, several, strict=True):
        for method, line in part.split("method"):
            axes.errorbar(line.column("epsilon"), line.means, line.stderrs, fmt=STYLES[method], label=method)
        theirs = LOCAL.get(FILES.get(name, ""), {})
        if theirs:
            axes.plot(list(theirs), [figure.mean for figure in theirs.values()], "x--k", label="authors' code")
        logs(axes, EPSILONS, xlabel="ε", title=name)
    if others:
        others[0].set_ylabel("MSE of a random range")
    lines = {text: line for axes in figure.axes for line, text in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=len(lines))


def describe(rows: Rows) -> str:
    """Next to the authors' code, where that was measured on the same data."""
    lines = []
    for name, part in rows.of("MSE").split("data"):
        for epsilon, cell in part.split("epsilon"):
            theirs = LOCAL.get(FILES.get(name, ""), {}).get(epsilon)
            known = short(theirs.mean) if theirs else "not measured"
            figures = (f"{short(row.mean)} ± {short(row.stderr)}" for row in cell)
            lines.append([f"{name}, ε = {epsilon:g}", *figures, known])
    means = [
        f"{name} {short(part.means[0])} to {short(part.means[-1])}"
        for name, part in rows.of("MMAE").where(method="ours").split("data")
        if len(part) > 1
    ]
    return (
        "MSE of a random range:\n\n"
        + markdown_table(["", *METHODS, "authors' code"], lines)
        + "\n\nThe paper's threshold is that of least predicted error on the EMS estimate. The authors' code is theirs "
        "as it is (five repetitions; at ε = 2 with the defect of its piecewise mechanism removed: as released it is "
        "hundreds of times worse there, and one user's report depends on another's value, so it is not private). It "
        "weighs noise 16 times too much against bias and drops the tail of its estimate, which keeps noise in the tail "
        f"from raising θ. Mean absolute error of the mean of a random range, ours, from ε = {EPSILONS[0]:g} to "
        f"{EPSILONS[-1]:g}: {'; '.join(means)}."
    )


EXPERIMENT = Experiment(
    "A stream published without trust",
    "[WCZ21, Fig. 9]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(5, 40),
    size=(8.0, 3.1),
    setting="65,536 users send first reports, 2^20 others report under the θ chosen from them. Errors are those of "
    "sums over the same 200 random ranges.",
)
