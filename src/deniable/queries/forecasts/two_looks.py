"""What a first look is worth: the error of all users together, next to that of everybody in one design.

Everything is known before the second group answers. A first look says where rows are (`first_look.py`); from that
follows what the reports of any grid will show, on average, and what answers will then assume
(`expected_evidence.py`). So the plans that answers will use are forecast, under the design of the first group for its
users, under the new one for the rest, and under a design that nobody looked for, for everybody.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from deniable.queries.forecasts.assumed_rows import AssumedRows
from deniable.queries.forecasts.expected_evidence import expected_learnt
from deniable.queries.forecasts.first_look import Densities
from deniable.queries.forecasts.forecast import Forecast, largest_error, planned
from deniable.queries.forecasts.prediction import ExpectedMoments, expected_moments, predictions
from deniable.queries.planning.plan import Plan
from deniable.queries.planning.revised_plan import revised
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
) -> TwoLooks:
    """The errors of questions over all users, with two looks and with one; what is assumed is given by question."""
    everybody = GroupOfUsers(unlooked, first.users + rest.users)
    learnt = {
        id(group): {name: expected_learnt(group.collection, name, group.users, mine) for name, mine in seen.items()}
        for group in (first, rest, everybody)
        if group.collection.grids is not None
    }

    def moments(group: GroupOfUsers, text: str, expected: AssumedRows) -> tuple[Plan, ExpectedMoments]:
        plan = planned(group.collection, text, "optimal", DIRECT, group.users, assumed=expected)
        plan = revised(plan, learnt.get(id(group), {}))
        return plan, expected_moments(plan, group.users, expected.middle)

    alone, together = [], []
    for text, expected in zip(questions, assumed, strict=True):
        plan, in_one_look = moments(everybody, text, expected)
        alone.append(largest_error(predictions(plan, in_one_look), everybody.users))
        (plan, later), (_, earlier) = moments(rest, text, expected), moments(first, text, expected)
        together.append(largest_error(predictions(plan, later.added(earlier)), everybody.users))
    return TwoLooks(everybody.users, tuple(alone), tuple(together))


def over_all_groups(groups: Sequence[tuple[Plan, float]], assumed: AssumedRows) -> Forecast:
    """What several groups of users, each with a plan under its own design, lead to together."""
    expected = [expected_moments(plan, users, assumed.middle) for plan, users in groups]
    plan, total = groups[-1][0], expected[0]
    for moments in expected[1:]:
        total = total.added(moments)
    return Forecast(plan, math.ceil(sum(users for _, users in groups)), predictions(plan, total))
