"""What the noise of another population adds to errors, before anybody has reported: rows have every id alike."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.queries.answers.key_variance import Key, others_part, users_key
from deniable.queries.planning.key_counts import counting_plan
from deniable.queries.planning.plan import Plan
from deniable.queries.question.question import PrivateGroups, Question


def expected_others(plan: Plan, groups: Integers, expected: Callable[[Plan, Integers], Floats]) -> Floats:
    """groups × moments × moments: what the other population's noise is expected to add to the covariances.

    `expected` are the sums of a plan's groups over all users.
    """
    question, keyed = plan.question, plan.keyed
    if keyed is None or keyed.is_exact:
        return np.zeros((groups.size, len(question.moments), len(question.moments)))
    ids = keyed.values.shape[1]
    counts, counting = counting_plan(plan, ids)
    sums = expected(counting, np.arange(len(counting.private_groups)))
    rows: dict[Key, Floats] = {}
    for row, codes in enumerate(counting.private_groups):
        mine = rows.setdefault(_key(counts.question, codes)[:-1], np.zeros((ids, sums.shape[1])))
        mine[codes[-1]] = sums[row]

    def by_id(key: Key) -> tuple[Floats, Floats]:
        return rows[key], np.zeros((ids, sums.shape[1], sums.shape[1]))

    keys = tuple(_key(question, plan.private_groups[group]) for group in groups.tolist())
    known = [number for number, key in enumerate(keys) if users_key(question, key) in rows]
    total = np.zeros((groups.size, len(question.moments), len(question.moments)))
    total[known] = others_part(question, keyed, counts, tuple(keys[number] for number in known), by_id).added
    return total


def _key(question: Question, codes: tuple[int, ...]) -> Key:
    """The key of a combination of private groups; what is public in it is not known."""
    left = iter(codes)
    return tuple(group.values[next(left)] if isinstance(group, PrivateGroups) else None for group in question.groups)
