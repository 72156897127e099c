"""Trees with a given θ: without end, fan-out 2, fan-out 16, consistent, with smoother  [WCZ21, Fig. 5]."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable.randomness import SeededSource
from deniable.streams import Perturber, PublicThreshold, ToPS
from deniable_lab.experiments import stream_reference as reference
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.ratios import geometric_mean, ratios
from deniable_lab.experiments.stream_data import FILES
from deniable_lab.experiments.stream_reference import HORIZON, WARMUP
from deniable_lab.experiments.streams._infinite_tree import InfiniteTree
from deniable_lab.experiments.streams._publishing import (
    EPSILONS,
    SETTING,
    curves,
    formats,
    published,
    short,
    simulated,
)
from deniable_lab.experiments.writing import markdown_table

TREES: dict[str, dict[str, Any]] = {
    "b = 2": {"paper": True, "fanout": 2, "consistent": False, "block": 1},
    "b = 16": {"paper": True, "fanout": 16, "consistent": False, "block": 1},
    "b = 16, consistent": {"paper": True, "fanout": 16, "block": 1},
    "… with smoother by Eq. (7)": {"paper": True, "fanout": 16},
    "ours": {},
}
INFINITE = {"b = 2, without end": 2, "b = 16, without end": 16}
"""Fan-outs of the trees that never end, where ε decays from level to level."""
STYLES = formats((*INFINITE, *TREES), ("<--C2", ">--C3", "^-C2", "v-C3", "D-C4", "s-C1", "o-C0"))
_STEPS = (*zip(INFINITE, ("b = 2", "b = 16"), strict=True), *zip(list(TREES), list(TREES)[1:], strict=False))
_REFERENCE = {"b = 2": (2, False, 1), "b = 16": (16, False, 1), "b = 16, consistent": (16, True, 1)}


def settings(data: Data, quick: bool) -> list[Setting]:
    """Trees by data and ε."""
    names = data.streams("POS", "DNS") if quick else data.streams("POS", "DNS", "Kosarak", "Fare")
    return [
        {"data": name, "epsilon": e, "tree": tree} for name in names for e in EPSILONS for tree in (*INFINITE, *TREES)
    ]


def measure(setting: Setting, seed: int, data: Data) -> Measured:
    """Errors against the stream cut at θ, so that only noise and smoothing count."""
    stream, name, epsilon = data.stream(str(setting["data"])), str(setting["tree"]), float(setting["epsilon"])
    theta = int(np.quantile(stream.values[:WARMUP], 0.95, method="inverted_cdf"))
    if name in INFINITE:
        tree = InfiniteTree(epsilon, theta, INFINITE[name])
        # Publishers draw other noise under every setting; so does this, or ratios would not be independent.
        noise = tree.prefix_noise(HORIZON, SeededSource(seed).stream(stream.name, name, str(epsilon)))
        off = (noise[stream.stops] - noise[stream.starts]).astype(np.float64)
        numbers = {"V": tree.mean_variance(HORIZON), "exact MSE": tree.variance(stream.starts, stream.stops).mean()}
        return {"MSE": float(np.mean(off**2)), "theta": theta} | numbers
    publisher = simulated(ToPS, epsilon, stream, seed, threshold=PublicThreshold(theta), **TREES[name])
    errors = published(publisher, stream, cut_at=theta)
    measured = {"MSE": errors["MSE"], "theta": float(theta)}
    if publisher.plan.block > 1:
        return measured
    chunk = Perturber(epsilon, theta, HORIZON, 1, publisher.plan.fanout, publisher.plan.consistent)
    exact = chunk.node_variance * chunk.tree.variance(stream.starts, stream.stops).mean()
    return measured | {"V": chunk.node_variance * chunk.tree.mean_variance(), "exact MSE": exact}


def plot(rows: Rows, figure: Any) -> None:
    """One panel per stream."""
    curves(figure, rows.of("MSE"), "tree", STYLES, "MSE against the cut stream")


def describe(rows: Rows) -> str:
    """What every step gains."""
    errors, lines = rows.of("MSE"), []
    for worse, better in _STEPS:
        parts = (part for _, part in errors.split("data"))
        means = (geometric_mean(ratios(part.where(tree=worse), part.where(tree=better))) for part in parts)
        lines.append([f"{better} against {worse}", *means])
    variances = rows.of("V")
    dearer = [float((variances.where(tree=a).means / variances.where(tree=b).means).mean()) for a, b in _STEPS[:2]]
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
        "How many times lower the MSE is, in the geometric mean over all ε:\n\n"
        + markdown_table(["step", *names], lines)
        + "\n\nA tree without end needs no chunks, but its level l has only the share 0.1·0.9^l of ε, so that all "
        "levels together cost ε (the shares 0.9, 0.9², … that the paper mentions cost 9ε). V, the variance of a random "
        f"range of 2^20 values in closed form, is {short(dearer[0])} times that of a chunk at fan-out 2, and "
        f"{short(dearer[1])} times at fan-out 16, which supports the paper's chunks. `exact MSE` in the CSV is the "
        "variance of the 200 ranges in closed form. "
        + "The paper's order is the same: fan-out 16, then consistency, then the smoother. "
        + (f"MSE at ε = 0.05: {'; '.join(compared)}." if compared else "")
    )


EXPERIMENT = Experiment(
    "Trees: fan-out, consistency, smoother",
    "[WCZ21, Fig. 5]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(8, 40),
    fewest=lambda setting: 20 if setting["tree"] in list(TREES)[2:] else 1,
    setting=f"{SETTING} θ is the 95th percentile of the warm-up, not private; errors are against the stream cut there.",
)
