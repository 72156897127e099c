"""What a first look is worth: the error of all users together, next to that of everybody in one design.

Everything is known before the second group answers. A first look says where rows are (`first_look.py`); from that
follows what the reports of any grid will show, on average, and what answers will then assume
(`expected_evidence.py`). So the plans that answers will use are forecast, under the design of the first group for its
users, under the new one for the rest, and under a design that nobody looked for, for everybody.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean

import numpy as np

from deniable.arrays import Floats
from deniable.queries.answers.alike_groups import weights_of
from deniable.queries.forecasts.assumed_rows import AssumedRows
from deniable.queries.forecasts.expected_evidence import expected_learnt
from deniable.queries.forecasts.first_look import Densities
from deniable.queries.forecasts.forecast import Forecast, largest_error, planned
from deniable.queries.forecasts.prediction import VIEWS, ExpectedMoments, expected_moments, predictions
from deniable.queries.planning.plan import Plan
from deniable.queries.planning.revised_plan import revised
from deniable.queries.question.question import Question
from deniable.queries.weights.table_plan import DIRECT
from deniable.tables.specification.specification import Specification


@dataclass(frozen=True, slots=True)
class TwoLooks:
    """The predicted errors of questions over all users: per user for COUNT and SUM."""

    users: int
    """In both groups together."""
    one_look: tuple[float, ...]
    """If all of them answered under a design that was fitted without having looked."""
    two_looks: tuple[float, ...]
    """If the first group answers under its design, and the rest under the one that follows from it."""

    @property
    def gain(self) -> float:
        """How many times smaller errors are with two looks: the geometric mean over questions that are clear."""
        pairs = zip(self.one_look, self.two_looks, strict=True)
        ratios = [alone / both for alone, both in pairs if 0 < alone < math.inf and 0 < both < math.inf]
        return geometric_mean(ratios) if ratios else math.nan

    def __str__(self) -> str:
        return f"all {self.users:,} users together: errors are {self.gain:.1f} times smaller than with one look"


@dataclass(frozen=True, slots=True)
class GroupOfUsers:
    """Users who answer under a design."""

    collection: Specification
    users: int


def two_looks(
    first: GroupOfUsers,
    rest: GroupOfUsers,
    unlooked: Specification,
    questions: Sequence[str],
    seen: Densities,
    assumed: Sequence[AssumedRows],
    *,
    alike: bool,
) -> TwoLooks:
    """The errors of questions over all users, with two looks and with one; what is assumed is given by question.

    `alike` says whether chance decides who is in the first group.
    """
    everybody = GroupOfUsers(unlooked, first.users + rest.users)
    learnt = {
        id(group): {name: expected_learnt(group.collection, name, group.users, mine) for name, mine in seen.items()}
        for group in (first, rest, everybody)
        if group.collection.grids is not None
    }

    def moments(group: GroupOfUsers, text: str, expected: AssumedRows) -> tuple[Plan, ExpectedMoments]:
        plan = planned(group.collection, text, "optimal", DIRECT, group.users, assumed=expected)
        plan = revised(plan, learnt.get(id(group), {}))
        return plan, expected_moments(plan, group.users, replace(expected.middle, seen=seen))

    alone, together = [], []
    for text, expected in zip(questions, assumed, strict=True):
        plan, in_one_look = moments(everybody, text, expected)
        alone.append(largest_error(predictions(plan, in_one_look), everybody.users))
        (plan, later), (_, earlier) = moments(rest, text, expected), moments(first, text, expected)
        both = expected_together(plan.question, [earlier, later], alike=alike)
        together.append(largest_error(predictions(plan, both), everybody.users))
    return TwoLooks(everybody.users, tuple(alone), tuple(together))


def over_all_groups(groups: Sequence[tuple[Plan, float]], assumed: AssumedRows, *, alike: bool) -> Forecast:
    """What several groups of users, each with a plan under its own design, lead to together."""
    expected = [expected_moments(plan, users, assumed.middle) for plan, users in groups]
    plan = groups[-1][0]
    total = expected_together(plan.question, expected, alike=alike)
    return Forecast(plan, math.ceil(sum(users for _, users in groups)), predictions(plan, total))


def expected_together(question: Question, groups: Sequence[ExpectedMoments], *, alike: bool) -> ExpectedMoments:
    """What to expect of the moments of all users; groups that are alike are weighed as in `alike_groups.py`.

    Which design a user answers under is then drawn like a view, and what that adds counts as view sampling.
    """
    if not alike:
        return functools.reduce(ExpectedMoments.added, groups)
    users = np.array([[each.users] * len(each.sums) for each in groups])
    noise = np.array([np.einsum("cgii->gi", each.steps) for each in groups])
    errors = np.array([each.steps.sum(axis=0) + each.model + each.spread for each in groups])
    known = np.asarray(~(noise > 0).any(axis=0))
    weights = weights_of(question, users, np.array([each.sums for each in groups]), errors, known)
    total = functools.reduce(ExpectedMoments.added, map(_weighed, groups, weights))
    moved = np.einsum("ng,ngi,ngj->gij", users, weights - 1, weights - 1)
    total.steps[VIEWS - 1] += moved * total.spread / total.users
    return total


def _weighed(moments: ExpectedMoments, weights: Floats) -> ExpectedMoments:
    both = weights[:, :, None] * weights[:, None, :]
    return replace(moments, sums=moments.sums * weights, steps=moments.steps * both, model=moments.model * both)
