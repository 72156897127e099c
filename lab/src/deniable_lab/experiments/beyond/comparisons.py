"""Comparisons of groups: how often equal ones are called different, and how often one that differs is found."""

from __future__ import annotations

import math
from typing import Any

from deniable_lab.experiments.compared_groups import CASES, EACH, LEVEL, Case, one_release
from deniable_lab.experiments.harness import Data, Experiment, Measured, Rows, Setting
from deniable_lab.experiments.tables._pictures import add_legend
from deniable_lab.experiments.writing import markdown_table

TOGETHER, ALONE, MISSED, FOUND = "all pairs together", "each pair alone", "missed", "found"


def name_of(case: Case) -> str:
    """What is compared, in words."""
    return f"{case.groups}: {case.question.split()[1]}"


CASE_OF = {name_of(case): case for case in CASES}


def settings(data: Data, quick: bool) -> list[Setting]:  # noqa: ARG001 - drawn
    """Kinds of groups, and what is compared."""
    return [{"data": "GROUPS", "groups": name} for name in CASE_OF]


def measure(setting: Setting, seed: int, data: Data) -> Measured:  # noqa: ARG001 - drawn
    """What one release finds."""
    wrong, single, missed, discovered = one_release(CASE_OF[str(setting["groups"])], seed)
    numbers = {TOGETHER: wrong, ALONE: single, MISSED: missed}
    return numbers if math.isnan(discovered) else numbers | {FOUND: discovered}


def plot(rows: Rows, figure: Any) -> None:
    """Shares of releases with an error, with and without correction."""
    axes = figure.subplots()
    heights = range(len(CASE_OF))
    for shift, (name, marker) in enumerate(((TOGETHER, "ko"), (ALONE, "C1s"))):
        shares = [100 * rows.where(groups=groups).of(name).means[0] for groups in CASE_OF]
        axes.plot(shares, [height + (shift - 0.5) / 5 for height in heights], marker, label=name)
    axes.axvline(100 * LEVEL, color="0.6", linewidth=1.0)
    axes.set_yticks(heights, list(CASE_OF))
    axes.invert_yaxis()
    axes.set_xlim(left=0)
    axes.set_xlabel("releases in which equal groups are called different, % (line: allowed)")
    add_legend(figure, [axes], columns=2)


def describe(rows: Rows) -> str:
    """Errors by kind of groups."""
    lines = []
    for name, case in CASE_OF.items():
        part = rows.where(groups=name)
        shares = [f"{part.of(number).means[0]:.1%}" for number in (TOGETHER, ALONE, MISSED)]
        of_pairs = [f"{row.mean:.0%}" for row in part.of(FOUND)]
        lines.append([name, str(case.pairs), *shares, *(of_pairs or [""])])
    runs = next(iter(rows)).repetitions
    head = ["groups", "pairs", "an error", "tested one by one", "an interval misses", "found"]
    return f"""In how many of {runs} releases some two equal groups are called different, where {LEVEL:.0%} is allowed;
the same if each pair were tested on its own; in how many some simultaneous interval does not hold the truth; and how
many of the pairs that differ are found:

{markdown_table(head, lines)}"""


EXPERIMENT = Experiment(
    "Comparisons of groups",
    "Beyond the papers",
    settings,
    measure,
    plot,
    describe,
    repetitions=(100, 300),
    size=(7.0, 3.2),
    setting=(
        f"Groups of {EACH} people with the same rows, or rounds of the same people; ε is 0.7 to 4, design mg. "
        "`Database.compare` looks at all pairs."
    ),
)
