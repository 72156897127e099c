"""Shuffling: what an analyst can learn of mixed messages, by our numerical bound and by the published closed form."""

from __future__ import annotations

import math
from typing import Any

from deniable.shuffling import shuffled_epsilon
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.tables._pictures import add_legend
from deniable_lab.experiments.writing import markdown_table

PEOPLE = (1_000, 10_000, 100_000, 1_000_000)
EPSILONS = (0.5, 1.0, 2.0, 4.0)
DELTA = 1e-9


def settings(data: Data, quick: bool) -> list[Setting]:  # noqa: ARG001 - nothing is drawn
    """People by ε."""
    return [{"data": "MESSAGES", "epsilon": epsilon, "people": people} for epsilon in EPSILONS for people in PEOPLE]


def measure(setting: Setting, seed: int, data: Data) -> Measured:  # noqa: ARG001 - nothing is drawn
    """The ε of what is handed on; that of a message where a bound says nothing."""
    epsilon, people = float(setting["epsilon"]), int(setting["people"])
    return {"bound": shuffled_epsilon(epsilon, people, DELTA), "closed": closed_form(epsilon, people)}


def closed_form(epsilon: float, people: int) -> float:
    """[FMT21, Theorem 3.1], which needs ε ≤ ln(n/(16·ln(2/δ)))."""
    if math.exp(epsilon) > people / (16 * math.log(2 / DELTA)):
        return epsilon
    power = math.exp(epsilon)
    root = 8 * math.sqrt(power * math.log(4 / DELTA) / people)
    return min(epsilon, math.log1p((power - 1) / (power + 1) * (root + 8 * power / people)))


def plot(rows: Rows, figure: Any) -> None:
    """One line for each ε; the closed form is dotted."""
    axes = figure.subplots()
    for number, (epsilon, part) in enumerate(rows.of("bound").split("epsilon")):
        axes.plot(part.column("people"), part.means, f"C{number}o-", label=f"ε = {epsilon:g}")
        axes.plot(PEOPLE, rows.of("closed").where(epsilon=epsilon).means, f"C{number}:")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("people whose messages are mixed")
    axes.set_ylabel(f"ε after shuffling, δ = {DELTA:g}")
    add_legend(figure, [axes], columns=4)


def describe(rows: Rows) -> str:
    """Both bounds by ε and people."""
    lines = []
    for epsilon, part in rows.of("bound").split("epsilon"):
        cells = []
        for row in part:
            closed = rows.of("closed").only(epsilon=epsilon, people=row["people"]).mean
            cells.append(f"{_up(row.mean)} ({_up(closed)})")
        lines.append([f"{epsilon:g}", *cells])
    head = ["ε of a message", *(f"{people:,} people" for people in PEOPLE)]
    return f"""The ε that an analyst can reach with δ = {DELTA:g} when a trusted mixer hands messages on without
addresses and in a random order, and in brackets what the closed form of the clones says:

{markdown_table(head, lines)}

The bound is computed from the law of the clones, rounded upwards everywhere. Where it cannot promise more, it is ε."""


def _up(epsilon: float) -> str:
    digits = 2 - math.floor(math.log10(epsilon))
    return f"{math.ceil(epsilon * 10**digits - 1e-9) / 10**digits:.3g}"


EXPERIMENT = Experiment(
    "Shuffling",
    "Beyond the papers; [FMT21]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(1, 1),
    size=(5.0, 3.4),
    setting='Messages under pseudonyms (`ids = "pseudonym"`), one for each person. Nothing is drawn.',
)
