"""Trees with a given θ: fan-out 2, fan-out 16, consistent, with smoother  [WCZ21, Fig. 5]."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable.streams import PublicThreshold, ToPS
from deniable_lab.experiments import stream_reference as reference
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.stream_data import FILES
from deniable_lab.experiments.stream_reference import WARMUP
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

TREES: dict[str, dict[str, Any]] = {
    "b = 2": {"paper": True, "fanout": 2, "consistent": False, "block": 1},
    "b = 16": {"paper": True, "fanout": 16, "consistent": False, "block": 1},
    "b = 16, consistent": {"paper": True, "fanout": 16, "block": 1},
    "… with smoother by Eq. (7)": {"paper": True, "fanout": 16},
    "ours": {},
}
STYLES = formats(TREES, ("^-C2", "v-C3", "D-C4", "s-C1", "o-C0"))
_REFERENCE = {"b = 2": (2, False, 1), "b = 16": (16, False, 1), "b = 16, consistent": (16, True, 1)}


def settings(data: Data, quick: bool) -> list[Setting]:
    """Trees by data and ε."""
    names = data.streams("POS", "DNS") if quick else data.streams("POS", "DNS", "Kosarak", "Fare")
    return [{"data": name, "epsilon": e, "tree": tree} for name in names for e in EPSILONS for tree in TREES]


def measure(setting: Setting, seed: int, data: Data) -> Measured:
    """Errors against the stream cut at θ, so that only noise and smoothing count."""
    stream = data.stream(str(setting["data"]))
    theta = int(np.quantile(stream.values[:WARMUP], 0.95, method="inverted_cdf"))
    parts = TREES[str(setting["tree"])]
    publisher = simulated(ToPS, float(setting["epsilon"]), stream, seed, threshold=PublicThreshold(theta), **parts)
    errors = published(publisher, stream, cut_at=theta)
    return {"MSE": errors["MSE"], "theta": theta}


def plot(rows: Rows, figure: Any) -> None:
    """One panel per stream."""
    curves(figure, rows.of("MSE"), "tree", STYLES, "MSE against the cut stream")


def describe(rows: Rows) -> str:
    """What every step gains."""
    errors, lines = rows.of("MSE"), []
    trees = list(TREES)
    for better, worse in zip(trees[1:], trees, strict=False):
        line = [f"{better} against {worse}"]
        for _, part in errors.split("data"):
            gains = part.where(tree=worse).means / part.where(tree=better).means
            line.append(spread(gains.min(), gains.max()))
        lines.append(line)
    names = [name for name, _ in errors.split("data")]
    compared = [
        f"{name}, {tree}: {short(part.only(epsilon=0.05, tree=tree).mean)} ± "
        f"{short(part.only(epsilon=0.05, tree=tree).stderr)}, authors' code "
        f"{short(reference.HIERARCHIES[FILES[name]][cell].mean)}"
        for name, part in errors.split("data")
        if FILES.get(name) in reference.HIERARCHIES
        for tree, cell in _REFERENCE.items()
    ]
    return (
        "How many times lower the MSE is, over all ε:\n\n"
        + markdown_table(["step", *names], lines)
        + "\n\nThe paper's order is the same: fan-out 16, then consistency, then the smoother. "
        + (f"MSE at ε = 0.05: {'; '.join(compared)}." if compared else "")
    )


EXPERIMENT = Experiment(
    "Trees: fan-out, consistency, smoother",
    "[WCZ21, Fig. 5]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(4, 40),
    setting=f"{SETTING} θ is the 95th percentile of the warm-up, not private; errors are against the stream cut there.",
)
