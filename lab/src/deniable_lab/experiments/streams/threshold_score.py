"""The score that thresholds are chosen by, next to the error they lead to  [WCZ21, Fig. 1]."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from deniable.streams import Expectation, PublicThreshold, ToPS
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.stream_data import Stream
from deniable_lab.experiments.stream_reference import HORIZON, WARMUP
from deniable_lab.experiments.streams._publishing import SETTING, logs, panels, published, simulated

EPSILON, C, FANOUT, LEVELS = 0.1, 60, 16, 5
PLAIN = {"paper": True, "block": 1, "consistent": False}
"""The tree that Eq. (4) describes."""


def settings(data: Data, quick: bool) -> list[Setting]:
    """Thresholds from the median upwards, evenly spaced in logs."""
    made: list[Setting] = []
    for name in data.streams("DNS", "POS") if quick else data.streams("DNS", "POS", "Kosarak", "Fare"):
        stream = data.stream(name)
        low, high = np.quantile(stream.values, 0.5), 2 * stream.values.max()
        grid = np.unique(np.rint(np.geomspace(low, min(high, stream.bound), 10 if quick else 40)))
        made += [{"data": name, "theta": int(theta)} for theta in grid]
    return made


def measure(setting: Setting, seed: int, data: Data) -> Measured:
    """Roots of squared errors: as Eq. (6) has them, as ours predicts them, and MSE as measured for both."""
    stream, theta = data.stream(str(setting["data"])), int(setting["theta"])
    noise, bias = paper_score(stream, theta)
    given = PublicThreshold(theta)
    ours = simulated(ToPS, EPSILON, stream, seed, threshold=given)
    return {
        "Eq. (6)": noise + bias,
        "Eq. (6), noise": noise,
        "Eq. (6), bias": bias,
        "ours, predicted": our_score(ours.plan, stream, theta),
        "MSE, plain tree": published(simulated(ToPS, EPSILON, stream, seed, threshold=given, **PLAIN), stream)["MSE"],
        "MSE, ours": published(ours, stream, corrected=False)["MSE"],  # the score is of what θ cuts off
    }


def paper_score(stream: Stream, theta: int) -> tuple[float, float]:
    """Noise and bias of [WCZ21, Eq. (6)], with the count of values above θ."""
    above = int((stream.values[:WARMUP] > theta).sum())
    noise = theta / EPSILON * math.sqrt(2 * (FANOUT - 1) * LEVELS**3)
    return noise, C * HORIZON / (3 * WARMUP) * above


def our_score(plan: Any, stream: Stream, theta: int) -> float:
    """The root of Q(θ)² of `PredictedError`."""
    expected = Expectation()
    error = plan.noise(EPSILON) + plan.smoothing(expected.knots)
    share = float((stream.values[:WARMUP] > theta).mean())
    return math.sqrt(theta**2 * error + HORIZON**2 / 6 * (share * expected.tail * theta) ** 2)


def plot(rows: Rows, figure: Any) -> None:
    """One panel per stream: two scores, two errors."""
    for axes, _, part in panels(figure, rows):
        thetas = part.of("Eq. (6)").column("theta")
        axes.plot(thetas, part.of("Eq. (6), noise").means, ":C1", linewidth=0.8, label="Eq. (6), noise")
        axes.plot(thetas, part.of("Eq. (6), bias").means, "--C1", linewidth=0.8, label="Eq. (6), bias")
        for score, error, colour in (("Eq. (6)", "MSE, plain tree", "C1"), ("ours, predicted", "MSE, ours", "C0")):
            axes.plot(thetas, part.of(score).means, f"-{colour}", label=score)
            axes.plot(thetas, np.sqrt(part.of(error).means), f"o{colour}", label=f"√{error}")
        low = np.sqrt(part.of("MSE, ours").means.min()) / 3
        ticks = [t for e in range(6) for t in (10**e, 2 * 10**e, 5 * 10**e) if min(thetas) <= t <= max(thetas)]
        logs(axes, ticks, xlabel="θ", ylim=(low, part.of("Eq. (6)").means.max() * 2))
    figure.axes[0].set_ylabel("error of a random range")
    handles, names = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside right center")


def _best(part: Rows, quantity: str) -> int:
    line = part.of(quantity)
    return int(line.column("theta")[int(np.argmin(line.means))])


def _cost(part: Rows, score: str, error: str) -> float:
    """The error at the score's minimum as a multiple of the least error."""
    line = part.of(error)
    return float(line.only(theta=_best(part, score)).mean / line.means.min())


def describe(rows: Rows) -> str:
    """Where the minima lie, and what it costs to follow the score."""
    sentences = []
    for name, part in rows.split("data"):
        apart = part.of("Eq. (6)").means / np.sqrt(part.of("MSE, plain tree").means)
        thetas = [_best(part, score) for score in ("Eq. (6)", "MSE, plain tree", "ours, predicted", "MSE, ours")]
        costs = (_cost(part, "Eq. (6)", "MSE, plain tree"), _cost(part, "ours, predicted", "MSE, ours"))
        sentences.append(
            f"On {name}, Eq. (6) is least at θ = {thetas[0]} and the error of its tree at {thetas[1]}: following the "
            f"score costs {costs[0]:.2f} times the least MSE. Our score is least at {thetas[2]}, the error of our tree "
            f"at {thetas[3]} ({costs[1]:.2f} times). Eq. (6) is {apart.min():.2g} to {apart.max():.2g} times the root "
            "of the measured MSE."
        )
    return (
        "The paper says that Eq. (6) and the measured error are very close over θ, and so are their minima. "
        + " ".join(sentences)
        + " So the curves are close where noise dominates and not where bias does: c = 60 makes every value above θ "
        "cost far more than it does here."
    )


EXPERIMENT = Experiment(
    "What a threshold is chosen by, and the error it leads to",
    "[WCZ21, Fig. 1]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(3, 20),
    setting=f"{SETTING} ε = {EPSILON:g}, c = {C}; θ is given, so that only the tree is private.",
)
