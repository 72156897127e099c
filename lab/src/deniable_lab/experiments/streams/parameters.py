"""The effect of m, r and c  [WCZ21, Section 5]."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable.streams import PaperScore, ToPS
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.stream_reference import HORIZON, WARMUP
from deniable_lab.experiments.streams._publishing import SETTING, logs, short, simulated

EPSILON = 0.05
VALUES = {
    "m": (1 << 10, 1 << 12, 1 << 14, 1 << 16),
    "r": (1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20),
    "c": (1, 5, 20, 60, 200, 1000),
}
MEANINGS = {"m": "values of the warm-up, m", "r": "longest range, r", "c": "weight of the bias, c"}
METHODS = {"ours": {}, "ToPS (paper)": {"paper": True}}
STYLES = {"ours": "o-C0", "ToPS (paper)": "s-C1"}


def settings(data: Data, quick: bool) -> list[Setting]:
    """One parameter at a time; ours has no c."""
    names = data.streams("POS", "DNS") if quick else data.streams("POS", "DNS", "Kosarak", "Fare")
    return [
        {"data": name, "method": method, "parameter": parameter, "value": value}
        for name in names
        for parameter, values in VALUES.items()
        for method in METHODS
        if parameter != "c" or method != "ours"
        for value in values
    ]


def measure(setting: Setting, seed: int, data: Data) -> Measured:
    """MSE over the 200 ranges; for r over 2000 ranges inside spans of r values, anywhere in the stream."""
    stream, parameter, value = data.stream(str(setting["data"])), setting["parameter"], int(setting["value"])
    parts: dict[str, Any] = dict(METHODS[str(setting["method"])])
    values = stream.values
    if parameter == "m":
        parts["warmup"], values = value, values[WARMUP - value :]
    elif parameter == "r":
        parts["horizon"] = value
    else:
        parts["threshold"] = PaperScore(c=value)
    publisher = simulated(ToPS, EPSILON, stream, seed, **parts)
    released = publisher.push_many(values)[-HORIZON:]
    theta = float(publisher.learnt.theta if publisher.learnt else 0)
    if parameter != "r":
        return {"MSE": stream.errors(released).mse, "theta": theta}
    rng = np.random.default_rng(2021)
    ends = np.sort(rng.integers(0, value, (2000, 2)), axis=1) + rng.integers(0, HORIZON - value + 1, (2000, 1))
    prefix = np.concatenate(([0.0], np.cumsum(released - stream.published)))
    return {"MSE": float(np.mean((prefix[ends[:, 1]] - prefix[ends[:, 0]]) ** 2)), "theta": theta}


def plot(rows: Rows, figure: Any) -> None:
    """One column per parameter, one row per stream."""
    parts = rows.of("MSE").split("data")
    grid = figure.subplots(len(parts), 3, squeeze=False)
    for across, (name, part) in zip(grid, parts, strict=True):
        for axes, (parameter, cell) in zip(across, part.split("parameter"), strict=True):
            for method, line in cell.split("method"):
                axes.errorbar(line.column("value"), line.means, line.stderrs, fmt=STYLES[method], label=method)
            logs(axes)
            axes.set_xlabel(MEANINGS[parameter])
        across[0].set_ylabel(f"{name}: MSE")
    grid[0][0].legend()


def describe(rows: Rows) -> str:
    """What a choice costs."""
    sentences = []
    for name, part in rows.of("MSE").split("data"):
        paper, ours = part.where(method="ToPS (paper)"), part.where(method="ours")
        by_c = paper.where(parameter="c")
        best = by_c.column("value")[int(np.argmin(by_c.means))]
        sixty = by_c.only(value=60).mean / by_c.means.min()
        worst = by_c.means.max() / by_c.means.min()
        short_m = ours.where(parameter="m").means[0] / ours.where(parameter="m").means[-1]
        paper_m = paper.where(parameter="m").means[0] / paper.where(parameter="m").means[-1]
        by_r = ours.where(parameter="r").means
        sentences.append(
            f"{name}: of c, {best} is best, 60 costs {short(sixty)} times its MSE and the worst of the six "
            f"{short(worst)} times; a warm-up of 1,024 instead of 65,536 costs ours {short(short_m)} times and the "
            f"paper's settings {short(paper_m)} times; ranges within r = 4,096 have an MSE "
            f"{short(by_r[-1] / by_r[0])} times lower than within 2^20 (ours)."
        )
    return (
        " ".join(sentences)
        + " The paper uses c = 60 everywhere; it is a number of the data's own unit, so a stream in cents needs "
        "another than one in items (see streams/overall on fares). Our score has no such constant."
    )


EXPERIMENT = Experiment(
    "The effect of m, r and c",
    "[WCZ21, Section 5]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(4, 40),
    size=(7.5, 4.2),
    setting=f"{SETTING} ε = {EPSILON:g}; one of m = 65,536, r = 2^20, c = 60 is changed at a time.",
)
