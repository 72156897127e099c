"""Comparisons of groups: how often groups with the same rows are called different, over all pairs at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable_lab.benchmarks.comparison_errors import CASES, EACH, LEVEL, one_release
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.tables._pictures import add_legend
from deniable_lab.experiments.writing import markdown_table

SHOWN = {"wrong": "Holm", "single": "each pair alone"}


def settings(data: Data, quick: bool) -> list[Setting]:  # noqa: ARG001 - drawn
    """The cases of `deniable bench compare`, by number."""
    return [{"data": "GROUPS", "case": number, "groups": case.groups} for number, case in enumerate(CASES)]


def measure(setting: Setting, seed: int, data: Data) -> Measured:  # noqa: ARG001 - drawn
    """Whether equal groups were called different, an interval missed, and what share of true differences was found."""
    wrong, single, missed, found = one_release(CASES[int(setting["case"])], 20_000 + seed)
    return {"wrong": wrong, "single": single, "missed": missed} | ({} if np.isnan(found) else {"found": found})


def plot(rows: Rows, figure: Any) -> None:
    """Errors of each case, with the level."""
    axes = figure.subplots()
    for shift, (quantity, label) in zip((-0.2, 0.2), SHOWN.items(), strict=True):
        axes.barh(np.arange(len(CASES)) + shift, 100 * rows.of(quantity).means, 0.4, label=label)
    axes.axvline(100 * LEVEL, color="0.3", linewidth=0.8)
    axes.set_yticks(range(len(CASES)), [_name(number) for number in range(len(CASES))])
    axes.invert_yaxis()
    axes.set_xlabel("releases in which equal groups are called different, %")
    add_legend(figure, [axes], columns=2)


def _name(number: int) -> str:
    case = CASES[number]
    return f"{case.groups}: {case.question.removeprefix('SELECT ').partition(' FROM')[0]}"


def describe(rows: Rows) -> str:
    """Errors and discoveries, case by case."""
    lines = []
    for number, case in enumerate(CASES):
        mine = rows.where(case=number)
        shares = [mine.of(quantity).only().mean for quantity in ("wrong", "single", "missed")]
        found = [f"{row.mean:.0%}" for row in mine.of("found")] or [""]
        lines.append([_name(number), str(case.pairs), *(f"{share:.1%}" for share in shares), *found])
    runs = next(iter(rows)).repetitions
    chance = 2 * np.sqrt(LEVEL * (1 - LEVEL) / runs)
    head = ["groups", "pairs", "errors", "each pair alone", "interval missed", "found"]
    return f"""Of {runs} releases, how many call any two equal groups different, where {LEVEL:.0%} are allowed and
chance adds {chance:.1%} (two standard errors); the same if each pair were tested alone; how many have a simultaneous
interval that does not hold the truth; and of pairs that differ, how many are found:

{markdown_table(head, lines)}"""


EXPERIMENT = Experiment(
    "Comparisons of groups",
    "Beyond the papers; [Hol79]",
    settings,
    measure,
    plot,
    describe,
    repetitions=(100, 300),
    size=(6.0, 3.4),
    setting=f"`Database.compare`; groups of {EACH} people with the same rows, except for the last case. Design mg.",
)
