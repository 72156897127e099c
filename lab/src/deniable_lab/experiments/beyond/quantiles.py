"""Quantiles under local privacy: from all prefix counts at once, with intervals that hold the truth."""

from __future__ import annotations

from typing import Any

import numpy as np

import deniable as dn
from deniable_lab.experiments.drawn_values import LARGEST, SHAPES
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.tables._pictures import add_legend
from deniable_lab.experiments.writing import markdown_table

EPSILON, USERS = 2.0, 4_000
SHARES = (0.1, 0.5, 0.9)
_TABLE = dn.Table("t", x=dn.Ordinal(0, LARGEST))
_ASKED = ", ".join(f"QUANTILE_CONT(x, {share}) AS q{number}" for number, share in enumerate(SHARES))
_LIMITS = (0.93, 0.98)


def settings(data: Data, quick: bool) -> list[Setting]:  # noqa: ARG001 - drawn
    """Shapes; every release is asked for all quantiles."""
    return [{"data": "SHAPES", "shape": shape} for shape in SHAPES]


def measure(setting: Setting, seed: int, data: Data) -> Measured:  # noqa: ARG001 - drawn
    """Whether each interval holds the truth, and how long it is."""
    x = SHAPES[str(setting["shape"])](np.random.default_rng([7, seed]), USERS)
    collection = dn.Collection(_TABLE, epsilon=EPSILON)
    frame = {"uid": np.arange(USERS), "x": x}
    database = dn.connect(collection.perturb(t=frame, source=dn.SeededSource(seed), simulation=True))
    answers = database.sql(f"SELECT {_ASKED} FROM t").answers  # noqa: S608 - ours
    measured: list[tuple[Setting, dict[str, float]]] = []
    for number, share in enumerate(SHARES):
        (answer,) = answers[f"q{number}"]
        low, high = answer.interval
        truth = float(np.quantile(x, share))
        numbers = {"covered": float(low <= truth <= high), "length": high - low, "error": abs(answer.value - truth)}
        measured.append(({"share": share}, numbers))
    return measured


def plot(rows: Rows, figure: Any) -> None:
    """Coverage on the left, length and error on the right, by quantile."""
    left, right = figure.subplots(1, 2)
    for number, (shape, part) in enumerate(rows.split("shape")):
        shares = part.of("covered").column("share")
        left.plot(shares, 100 * part.of("covered").means, f"C{number}o-", label=shape)
        right.plot(shares, part.of("length").means, f"C{number}o-")
        right.plot(shares, part.of("error").means, f"C{number}:")
    left.axhspan(*(100 * limit for limit in _LIMITS), color="0.9")
    left.set_title("intervals that hold the truth, %")
    right.set_title("length of intervals, and mean error (dotted)")
    for axes in (left, right):
        axes.set_xlabel("quantile")
        axes.set_xticks(SHARES, [f"{share:g}" for share in SHARES])
    left.set_ylim(80, 100.5)
    right.set_ylim(bottom=0)
    add_legend(figure, [left, right], columns=4)


def describe(rows: Rows) -> str:
    """Coverage by shape and quantile."""
    covered, length = rows.of("covered"), rows.of("length")
    lines = [
        [
            shape,
            *(f"{part.only(share=share).mean:.1%}" for share in SHARES),
            f"{length.where(shape=shape).means[1]:.0f}",
        ]
        for shape, part in covered.split("shape")
    ]
    head = ["shape", *(f"quantile {share:g}" for share in SHARES), "length at the median"]
    return f"""How many 95 % intervals hold the quantile of the people themselves:

{markdown_table(head, lines)}"""


EXPERIMENT = Experiment(
    "Quantiles",
    "Beyond the papers",
    settings,
    measure,
    plot,
    describe,
    repetitions=(100, 400),
    setting=f"Quantiles of one attribute of {USERS:,} people at ε = {EPSILON:g}, the default design.",
)
