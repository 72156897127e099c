"""θ that follows: errors before, at and after a tenfold shift, with θ learnt once and with θ learnt again."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable.arrays import Integers
from deniable.randomness import SeededSource
from deniable.streams import ToPS
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.tables._pictures import add_legend
from deniable_lab.experiments.writing import markdown_table

EPSILON, BOUND = 0.1, 2_000
VALUES, SHIFT, WARMUP, EPOCH = 65_536, 20_000, 4_096, 8_192
WINDOW = 1_000
WAYS = {"learnt once": ("s-C1", False), "renewed": ("o-C0", True)}


def drawn_stream(seed: int) -> Integers:
    """Geometric values that are ten times as large from one position on."""
    random = np.random.default_rng(seed)
    small, large = (np.minimum(random.geometric(1 / mean, VALUES), BOUND) for mean in (7, 70))
    return np.where(np.arange(VALUES) < SHIFT, small, large)


def settings(data: Data, quick: bool) -> list[Setting]:  # noqa: ARG001 - drawn
    """Both ways."""
    return [{"data": "SHIFTING", "method": name} for name in WAYS]


def measure(setting: Setting, seed: int, data: Data) -> Measured:  # noqa: ARG001 - drawn
    """Relative errors of means over windows, epoch by epoch behind the warm-up."""
    values, (_, renew) = drawn_stream(seed), WAYS[str(setting["method"])]
    source = SeededSource(seed)
    stream = ToPS(EPSILON, BOUND, warmup=WARMUP, horizon=EPOCH, source=source, simulation=True, renew=renew)
    stream.push_many(values)
    released, prefix = stream.released, np.concatenate(([0], np.cumsum(values)))
    measured: list[tuple[Setting, dict[str, float]]] = []
    for epoch in range((VALUES - WARMUP) // EPOCH):
        starts = epoch * EPOCH + np.arange(0, EPOCH - WINDOW, 500)
        answers = released.sums(starts, starts + WINDOW)
        at = WARMUP + starts
        truth = prefix[at + WINDOW] - prefix[at]
        lows, highs = answers.intervals()
        inside = (lows <= truth) & (truth <= highs)
        numbers = {"relative MSE": float(np.mean((answers.values / truth - 1) ** 2)), "covered": float(inside.mean())}
        measured.append(({"epoch": epoch + 1}, numbers))
    return measured


def plot(rows: Rows, figure: Any) -> None:
    """Errors and coverage by epoch."""
    left, right = figure.subplots(1, 2)
    for name, part in rows.split("method"):
        epochs, style = part.of("covered").column("epoch"), WAYS[name][0]
        left.plot(epochs, 100 * np.sqrt(part.of("relative MSE").means), style, label=name)
        right.plot(epochs, 100 * part.of("covered").means, style)
    for axes in (left, right):
        axes.axvline((SHIFT - WARMUP) / EPOCH + 0.5, color="0.5", linestyle=":", linewidth=1.0)
        axes.set_xlabel("epoch (dotted: the shift)")
    left.set_yscale("log")
    left.set_title(f"error of means over {WINDOW:,} values, %")
    right.set_title("intervals that hold the truth, %")
    right.set_ylim(0, 102)
    add_legend(figure, [left, right], columns=2)


def describe(rows: Rows) -> str:
    """Before, at and after."""
    lines = []
    shifted = (SHIFT - WARMUP) // EPOCH + 1
    for name, part in rows.split("method"):
        error, covered = part.of("relative MSE"), part.of("covered")
        last = error.column("epoch")[-1]
        for when, epochs in (
            ("before the shift", range(1, shifted)),
            ("the epoch of the shift", range(shifted, shifted + 1)),
            ("after it", range(shifted + 1, last + 1)),
        ):
            mean = np.mean([error.only(epoch=epoch).mean for epoch in epochs])
            inside = np.mean([covered.only(epoch=epoch).mean for epoch in epochs])
            lines.append([f"{name}, {when}", f"{np.sqrt(mean):.1%}", f"{inside:.0%}"])
    return f"""Relative errors of means over {WINDOW:,} values, and how many 95 % intervals hold the truth:

{markdown_table(["", "error", "covered"], lines)}"""


EXPERIMENT = Experiment(
    "Renewed thresholds",
    "Beyond the papers",
    settings,
    measure,
    plot,
    describe,
    repetitions=(20, 100),
    setting=f"ToPS at ε = {EPSILON:g} with a warm-up of {WARMUP:,} values and epochs of {EPOCH:,}.",
)
