"""Which groups differ: all differences at once, with an error rate that holds for all of them together.

Analysts look for differences, and of many comparisons some stand out by chance. Intervals here hold all at once
(Bonferroni). Whether two groups differ is decided by Holm's procedure, which never finds less: p-values in increasing
order are multiplied by how many are left, each at least as large as the one before. The chance that any of the
differences it names is none is at most 1 − confidence, whatever the differences have in common.  [Hol79]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any

from deniable.errors import QueryRefused
from deniable.queries.answers.answer_options import AnswerOptions
from deniable.queries.answers.result import Estimate, Result
from deniable.queries.parsing.group_comparisons import compared_groups, differences_text, pairs_of
from deniable.wording import percent

FEWEST_GROUPS = 2


def adjusted(chances: Sequence[float]) -> list[float]:
    """p-values of Holm: those of the differences found at a level are at most that level.

    >>> adjusted([0.04, 0.01, 0.03])
    [0.06, 0.03, 0.06]
    """
    made, largest = [1.0] * len(chances), 0.0
    for rank, number in enumerate(sorted(range(len(chances)), key=chances.__getitem__)):
        largest = max(largest, min((len(chances) - rank) * chances[number], 1.0))
        made[number] = largest
    return made


def chance_of(estimate: Estimate) -> float:
    """How often noise alone would make a difference this large, if there were none; 1 where it is unclear.

    It is unclear, too, where an interval that is not that of a normal law holds zero.

    >>> [round(chance_of(Estimate(value, 100.0)), 3) for value in (0.0, 196.0, float("nan"))]
    [1.0, 0.05, 1.0]
    """
    if math.isnan(estimate.value) or (estimate.bounds is not None and estimate.bounds[0] <= 0 <= estimate.bounds[1]):
        return 1.0
    if estimate.error == 0:
        return float(estimate.value == 0)
    return 2 * NormalDist().cdf(-abs(estimate.value) / estimate.error)


def comparison(ask: Callable[[str, AnswerOptions], Result], text: str, by: str, options: AnswerOptions) -> Result:
    """A row for every two groups: their difference, and whether it is one."""
    compared = compared_groups(text, by)
    rows = ask(compared.keys_text(), options)
    keys: list[tuple[Any, ...]] = [(value,) for value in rows.groups["g0"]]
    if len(keys) < FEWEST_GROUPS:
        raise QueryRefused(f"there are fewer than {FEWEST_GROUPS} groups to compare", "Name others in `by`.")
    pairs = pairs_of(keys)
    asked = ask(differences_text(compared, keys), replace(options, simultaneous=True))
    differences = tuple(asked.answers[f"d{number}"][0] for number in range(len(pairs)))
    chances = adjusted([chance_of(estimate) for estimate in differences])
    columns = {
        "first": [keys[first][0] for first, _ in pairs],
        "second": [keys[second][0] for _, second in pairs],
        "differ": ["yes" if chance <= 1 - options.confidence else "unclear" for chance in chances],
        "p": [float(f"{chance:.2g}") for chance in chances],
    }
    held = percent(options.confidence)
    note = f"differ: with {held} every yes is right (Holm)"
    return replace(
        asked, groups=columns, answers={"second_minus_first": differences}, notes=(note, *asked.notes), sql=text
    )
