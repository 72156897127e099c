"""Answers over several groups of users, each collected under a design of its own.

Users are disjoint, so moments add, and so do sums of products of contributions; the variance that `estimation.py`
takes from these sums is at least the sum of the groups' own. Biases add as in `added_biases.py`. What cells of each
group allow adds up to what they allow of all users; a group that assumes nothing is known but for its noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.queries.answers.added_biases import products_of_both
from deniable.queries.answers.allowed import Allowed
from deniable.queries.answers.estimation import Moments
from deniable.queries.answers.guard import variances
from deniable.queries.planning.plan import Plan


class GroupPart(Protocol):
    """What one group's reports say about a question."""

    @property
    def plan(self) -> Plan:
        """How they were read."""

    @property
    def moments(self) -> Moments:
        """Sums over its users."""

    @property
    def model(self) -> Floats | None:
        """Expected products of biases."""


@dataclass(frozen=True, slots=True, eq=False)
class Together:
    """What the reports of all groups say about a question."""

    moments: Moments
    model: Floats | None
    weights: tuple[Floats, ...]
    """By group and by row of all groups what each moment of a group is multiplied by."""
    differ: bool = False
    """Whether groups that were said to be alike are not, in some rows."""


def plain_groups(parts: Sequence[GroupPart]) -> Together:
    """The sums of all groups."""
    groups, models = [part.moments for part in parts], [part.model for part in parts]
    added = added_moments(groups, models)
    return Together(added, added_models(groups, models), (np.ones_like(added.sums),) * len(parts))


def added_moments(groups: Sequence[Moments], models: Sequence[Floats | None] | None = None) -> Moments:
    """The moments of all users, with what bounds say of them where `models` has the groups' model errors."""
    keys, rows = aligned(groups)
    width = groups[0].sums.shape[1]
    users, sums = np.zeros(len(keys)), np.zeros((len(keys), width))
    crosses, between = np.zeros((len(keys), width, width)), np.zeros((len(keys), width, width))
    private = np.zeros(len(keys), dtype=np.int64)
    known = np.ones((len(keys), width), dtype=bool)
    above_zero = np.zeros((len(keys), width), dtype=bool)
    for moments, mine in zip(groups, rows, strict=True):
        users[mine] += moments.users
        sums[mine] += moments.sums
        crosses[mine] += moments.crosses
        between[mine] += moments.between
        private[mine] = moments.private
        known[mine] &= moments.known
        if moments.above_zero is not None:
            above_zero[mine] |= moments.above_zero  # counts of other groups are not negative
    added = Moments(keys, users, sums, crosses, between, private, known, above_zero=above_zero)
    if models is None or all(moments.allowed is None for moments in groups):
        return added
    return replace(added, allowed=_allowed(groups, models), unlimited=_unlimited(groups, models))


def _allowed(groups: Sequence[Moments], models: Sequence[Floats | None]) -> Allowed:
    """What cells show of all users, where some group assumes something."""
    keys, rows = aligned(groups)
    shape = len(keys), groups[0].sums.shape[1]
    least, most = np.zeros(shape), np.zeros(shape)
    noise = np.zeros(shape), np.zeros(shape)
    assumed = np.zeros(shape, dtype=bool)
    for moments, model, mine in zip(groups, models, rows, strict=True):
        assumes = np.zeros_like(moments.known) if model is None else np.einsum("gii->gi", model) > 0
        assumed[mine] |= assumes
        known = moments.allowed or Allowed.nothing(moments.sums.shape)
        least[mine] += np.where(assumes, known.least, moments.sums)
        most[mine] += np.where(assumes, known.most, moments.sums)
        exact = variances(moments)
        for total, errors in zip(noise, known.errors, strict=True):
            total[mine] += np.where(assumes, np.square(errors), exact)
    low, high = np.sqrt(noise[0]), np.sqrt(noise[1])
    return Allowed(np.where(assumed, least, -np.inf), np.where(assumed, most, np.inf), (low, high))


def _unlimited(groups: Sequence[Moments], models: Sequence[Floats | None]) -> tuple[tuple[Floats, Floats], ...]:
    """For each group its model errors before bounds limited them, in the rows of all groups, and those limits."""
    keys, rows = aligned(groups)
    width = groups[0].sums.shape[1]
    of_groups = []
    for moments, model, mine in zip(groups, models, rows, strict=True):
        if model is None:
            continue
        for biases, limits in moments.unlimited or ((model, np.ones_like(moments.sums)),):
            further, multiplied = np.zeros((len(keys), width, width)), np.ones((len(keys), width))
            further[mine], multiplied[mine] = biases, limits
            of_groups.append((further, multiplied))
    return tuple(of_groups)


def added_models(groups: Sequence[Moments], models: Sequence[Floats | None]) -> Floats | None:
    """Expected products of the biases of all users' moments; None where no group assumes anything."""
    if all(model is None for model in models):
        return None
    keys, rows = aligned(groups)
    width = groups[0].sums.shape[1]
    total: Floats = np.zeros((len(keys), width, width))
    for model, mine in zip(models, rows, strict=True):
        if model is None:
            continue
        further = np.zeros_like(total)
        further[mine] = model
        total = products_of_both(total, further)
    return total


def added_carriers(groups: Sequence[Moments], carriers: Sequence[Floats | None]) -> Floats | None:
    """How many users carry the variance of each moment: those of all groups; None where they are always enough."""
    if any(each is None for each in carriers):
        return None
    keys, rows = aligned(groups)
    total = np.zeros((len(keys), groups[0].sums.shape[1]))
    for each, mine in zip(carriers, rows, strict=True):
        if each is not None:
            total[mine] += each
    return total


def aligned(groups: Sequence[Moments]) -> tuple[tuple[tuple[Any, ...], ...], list[Integers]]:
    """All keys in the order in which they first occur, and where the rows of each group are among them."""
    numbers: dict[tuple[Any, ...], int] = {}
    rows = [
        np.array([numbers.setdefault(key, len(numbers)) for key in moments.keys], dtype=np.int64) for moments in groups
    ]
    return tuple(numbers), rows
