"""A published stream next to the truth  [WCZ21, Fig. 2]."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable.streams import NME, PAK, ToPS
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.stream_reference import HORIZON
from deniable_lab.experiments.streams._publishing import (
    SETTING,
    by_window,
    legend_at_side,
    panels,
    published_means,
    short,
    simulated,
    window_means,
)

EPSILON, WINDOW = 0.05, 1 << 14
METHODS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "ours": (ToPS, {}),
    "ToPS (paper)": (ToPS, {"paper": True}),
    "NM-E": (NME, {}),
    "PAK, θ ≤ B": (PAK, {}),
}
STYLES = {"ours": "C0", "ToPS (paper)": "C1", "NM-E": "C2", "PAK, θ ≤ B": "C4"}


def settings(data: Data, quick: bool) -> list[Setting]:  # noqa: ARG001 - the same in both
    """Drawn streams are shown window by window; for real streams only the size of the errors is recorded."""
    names = dict.fromkeys(["POS stand-in", "DNS stand-in", "Fare stand-in", *data.streams("POS", "DNS", "Fare")])
    return [{"data": name, "method": method} for name in names for method in METHODS]


def measure(setting: Setting, seed: int, data: Data) -> Measured:
    """Means over windows, of the truth and of what was published; of real streams the root mean square difference."""
    stream = data.stream(str(setting["data"]))
    kind, parts = METHODS[str(setting["method"])]
    publisher = simulated(kind, EPSILON, stream, seed, **parts)
    shown, true = published_means(publisher, stream, WINDOW), window_means(stream.published, WINDOW)
    relative = float(np.sqrt(np.mean((shown - true) ** 2)) / true.mean())
    total: list[tuple[Setting, dict[str, float]]] = [({"window": "all"}, {"relative error of a window": relative})]
    if stream.name.endswith("stand-in"):
        total += by_window(shown, stream, WINDOW)
    return total


def plot(rows: Rows, figure: Any) -> None:
    """Only drawn streams are shown."""
    drawn = Rows(tuple(row for row in rows if row["window"] != "all"))
    for axes, _, part in panels(figure, drawn):
        places = np.arange(HORIZON // WINDOW) * WINDOW / 1e6
        for method, line in part.of("published").split("method"):
            faint = 0.35 if method in ("NM-E", "PAK, θ ≤ B") else 1.0
            axes.plot(places, line.means, STYLES[method], linewidth=0.9, alpha=faint, zorder=2 + faint, label=method)
        truth = part.of("truth").where(method="ours").means
        axes.plot(places, truth, "k", linewidth=0.9, label="truth")
        reach = max(truth.max() - truth.min(), 0.2 * truth.mean())
        axes.set(xlabel="position (millions)", ylim=(truth.min() - reach, truth.max() + reach))
    figure.axes[0].set_ylabel(f"mean of {WINDOW:,} values")
    legend_at_side(figure)


def describe(rows: Rows) -> str:
    """Relative errors of windows."""
    errors = rows.of("relative error of a window")
    sentences = []
    for name, part in errors.split("data"):
        each = ", ".join(f"{method} {short(100 * line.means[0])} %" for method, line in part.split("method"))
        sentences.append(f"{name}: {each}.")
    return (
        f"A window of {WINDOW:,} values is off by, root mean square over its mean: "
        + " ".join(sentences)
        + " The paper's figure shows ToPS close to the truth and the baselines far from it. Real streams are measured "
        "here but not shown."
    )


EXPERIMENT = Experiment(
    "A published stream next to the truth",
    "[WCZ21, Fig. 2]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(1, 1),
    size=(7.5, 2.6),
    setting=f"{SETTING} ε = {EPSILON:g}, one run.",
)
