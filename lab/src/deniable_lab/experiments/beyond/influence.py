"""How far one liar moves a count of 200,000 people, with coins that he draws and with coins that are assigned."""

from __future__ import annotations

from typing import Any

import numpy as np

import deniable as dn
from deniable.queries.forecasts.forecast import planned
from deniable.queries.forecasts.influence import influences_at
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.tables._pictures import add_legend
from deniable_lab.experiments.writing import markdown_table

EPSILONS = (0.5, 1.0, 2.0, 4.0)
USERS = 200_000
ASKED = "SELECT COUNT(*) AS n FROM users WHERE age < 30"
_PEOPLE = (5, 10, 20, 40, 80, 160)
COINS = {"drawn": "o-C1", "assigned": "s-C0"}


def settings(data: Data, quick: bool) -> list[Setting]:  # noqa: ARG001 - nothing is drawn
    """Coins by ε."""
    return [{"data": "AGES", "coins": coins, "epsilon": epsilon} for coins in COINS for epsilon in EPSILONS]


def measure(setting: Setting, seed: int, data: Data) -> Measured:  # noqa: ARG001 - nothing is drawn
    """What a liar reaches, on average over people whose coins are assigned and at the worst ones."""
    collection = dn.Collection(
        dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=float(setting["epsilon"]), coins=str(setting["coins"])
    )
    plan = planned(collection, ASKED, "optimal", "direct", USERS)
    (liar,) = influences_at(plan, np.zeros(len(plan.question.moments)), USERS)
    return {"mean": liar.typical, "worst": liar.reached, "1 % of liars": liar.of_share(0.01)}


def plot(rows: Rows, figure: Any) -> None:
    """By ε: one liar on the left, one person in a hundred on the right."""
    left, right = figure.subplots(1, 2)
    for coins, part in rows.split("coins"):
        style = COINS[coins]
        left.plot(part.of("worst").column("epsilon"), part.of("worst").means, style, label=f"{coins}, worst")
        if coins == "assigned":
            left.plot(EPSILONS, part.of("mean").means, style[0] + ":" + style[2:], label=f"{coins}, on average")
        share = part.of("1 % of liars")
        right.plot(share.column("epsilon"), share.means, style)
    left.set_title("one liar")
    right.set_title("one person in a hundred lies")
    for axes in (left, right):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
        axes.set_xlabel("ε")
        axes.minorticks_off()
    left.set_yticks(_PEOPLE, [str(people) for people in _PEOPLE])
    right.set_yticks([1_000 * people for people in _PEOPLE[1:]], [f"{people},000" for people in _PEOPLE[1:]])
    left.set_ylabel("people")
    add_legend(figure, [left, right], columns=3)


def describe(rows: Rows) -> str:
    """The numbers, and what assigning coins gains."""
    lines = []
    for epsilon in EPSILONS:
        drawn, assigned = (rows.where(epsilon=epsilon, coins=coins) for coins in COINS)
        alone, average = drawn.of("worst").means[0], assigned.of("mean").means[0]
        together = [part.of("1 % of liars").means[0] for part in (drawn, assigned)]
        lines.append([f"{epsilon:g}", f"{alone:,.1f}", f"{average:,.1f}", *(f"{each:,.0f}" for each in together)])
    head = ["ε", "one liar, drawn", "one liar, assigned", "1 % of liars, drawn", "1 % of liars, assigned"]
    return f"""How many people a count of {USERS:,} moves by. With drawn coins a liar takes the view and the seed that
suit him best; with assigned ones he is left with his outcome, and the mean over people is shown:

{markdown_table(head, lines)}"""


EXPERIMENT = Experiment(
    "Influence of liars",
    "Beyond the papers",
    settings,
    measure,
    plot,
    describe,
    repetitions=(1, 1),
    setting=f"`{ASKED}`, ages from 1 to 95, the default design.",
)
