"""Answers over several groups of users, each collected under a design of its own.

Users are disjoint, so moments add, and so do sums of products of contributions; the variance that `estimation.py`
takes from these sums is at least the sum of the groups' own. Biases of two groups may go the same way, so model errors
add as they are, not their squares: for any c > 0 and biases b_1, b_2

    (b_1 + b_2)·(b_1 + b_2)ᵀ ⪯ (1 + c)·b_1·b_1ᵀ + (1 + 1/c)·b_2·b_2ᵀ ,

and with c the ratio of their sizes this is tight where one moment prevails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.queries.answers.estimation import Moments


def added_moments(groups: Sequence[Moments]) -> Moments:
    """The moments of all users."""
    keys, rows = _aligned(groups)
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
    return Moments(keys, users, sums, crosses, between, private, known, above_zero=above_zero)


def added_models(groups: Sequence[Moments], models: Sequence[Floats | None]) -> Floats | None:
    """Expected products of the biases of all users' moments; None where no group assumes anything."""
    if all(model is None for model in models):
        return None
    keys, rows = _aligned(groups)
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
    keys, rows = _aligned(groups)
    total = np.zeros((len(keys), groups[0].sums.shape[1]))
    for each, mine in zip(carriers, rows, strict=True):
        if each is not None:
            total[mine] += each
    return total


def products_of_both(left: Floats, right: Floats) -> Floats:
    """A bound for products of sums of two biases."""
    sizes = [np.sqrt(np.maximum(np.einsum("gii->g", each), 0.0)) for each in (left, right)]
    both = (sizes[0] > 0) & (sizes[1] > 0)
    c = np.where(both, sizes[1] / np.where(both, sizes[0], 1.0), 0.0)[:, None, None]
    inverse = np.divide(1.0, c, out=np.zeros_like(c), where=c > 0)
    return np.asarray((1 + c) * left + (1 + inverse) * right)


def _aligned(groups: Sequence[Moments]) -> tuple[tuple[tuple[Any, ...], ...], list[Integers]]:
    """All keys in the order in which they first occur, and where the rows of each group are among them."""
    numbers: dict[tuple[Any, ...], int] = {}
    rows = [
        np.array([numbers.setdefault(key, len(numbers)) for key in moments.keys], dtype=np.int64) for moments in groups
    ]
    return tuple(numbers), rows
