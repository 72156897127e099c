"""What the noise of another population's reports adds to the errors of an answer.

An answer is a sum over users given W, what the other population's reports contribute, and as a function of W it is
Σ_k N(k)·W(k) over ids k. With both sources of noise independent, the variance is

    E[Var(answer | W)] + Σ_k N(k)²·Var W(k).

The first part comes from the same pass as the answer. That pass adds up squares of what users contribute, which hold
squares of what they are expected to contribute, f = g·W with g what a row adds to N: these are no noise, and with a
noisy W they are many. Σ g² for each id, estimated without bias like N, says how much they come to, Σ_k W(k)²·Σ g².
It is subtracted where everybody has one row. In the second part, N̂(k)² is too large by the variance of N̂(k), which
is subtracted, and Var W(k) is estimated without bias from the law of the id's own report
(`engines/kernel/key_contributions.py`). Reports of users and of others are independent, so their product is unbiased.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from deniable.arrays import Floats
from deniable.queries.planning.key_counts import KeyCounts
from deniable.queries.planning.key_functions import KeyFunctions, groups_of_others, with_groups
from deniable.queries.question.question import PrivateGroups, Question

Key = tuple[Any, ...]
LEAST_LEFT = 0.5
"""The share of the plain variance that has to be left for what is subtracted from it to be believed."""
Counts = Callable[[Key], tuple[Floats, Floats]]
"""For a group of users: N̂ as ids × moments of the counts, and the covariance of N̂ as ids × moments × moments."""


class OthersPart(NamedTuple):
    """What the other population changes of the covariance of each row's moments: rows × moments × moments."""

    added: Floats
    """By its noise."""
    expected: Floats | None
    """Sums over users of products of what two moments expect of her, which are no noise; None where nobody knows."""


def others_part(
    question: Question, keyed: KeyFunctions, counts: KeyCounts, keys: tuple[Key, ...], counted: Counts
) -> OthersPart:
    """What the other population's noise adds, and what is not noise in the squares of users' contributions."""
    others = groups_of_others(question)
    total = np.zeros((len(keys), len(question.moments), len(question.moments)))
    expected = np.zeros_like(total)
    terms = [(moment, term) for moment, described in enumerate(question.moments) for term in described.terms]
    which = np.array([number for mine in counts.moments for number in mine], dtype=np.int64)
    coefficients = np.array([term.coefficient for _, term in terms])
    owners = np.zeros((len(question.moments), len(terms)))
    owners[[moment for moment, _ in terms], np.arange(len(terms))] = coefficients
    for row, key in enumerate(keys):
        inside: dict[tuple[str, str], Floats] = {}
        for group, value in zip(question.groups, key, strict=True):
            if isinstance(group, PrivateGroups) and group in others:
                chosen = group.codes == group.values.index(value)
                inside[group.attribute] = inside.get(group.attribute, 1.0) * chosen
        asked = [keyed.number(with_groups(term.conditions, inside), term.measures) for _, term in terms]
        rows, noise = counted(users_key(question, key))
        squares = (rows[:, :, None] * rows[:, None, :] - noise)[:, which[:, None], which[None, :]]
        pairs = np.einsum("kij,ijk->ij", squares, keyed.spreads[np.ix_(asked, asked)])
        total[row] = _without_negative(owners @ pairs @ owners.T)
        if counts.products is not None:
            products = rows[:, [[counts.products[first, second] for second in which] for first in which]]
            values = keyed.values[asked]
            expected[row] = owners @ np.einsum("kij,ik,jk->ij", products, values, values) @ owners.T
    return OthersPart(total, None if counts.products is None else expected)


def others_covariance(part: OthersPart, sums: Floats, crosses: Floats, users: Floats) -> Floats:
    """What is added to the plain covariance of users' contributions, which is crosses − sums·sums/users.

    Where little noise would be left of it, as where users have little of their own, what is subtracted is an estimate
    that is too rough, and nothing is.
    """
    if part.expected is None:
        return part.added
    spread = np.einsum("gi,gj->gij", sums, sums) / np.maximum(users, 1.0)[:, None, None]
    plain = np.einsum("gii->gi", crosses - spread)
    left = np.einsum("gii->gi", crosses - part.expected)
    clear = ((left >= LEAST_LEFT * plain) & (left <= plain)).all(axis=1)
    return np.where(clear[:, None, None], part.added + spread - part.expected, part.added)


def users_key(question: Question, key: Key) -> Key:
    """The groups of users in the key of a row."""
    others = groups_of_others(question)
    return tuple(value for group, value in zip(question.groups, key, strict=True) if group not in others)


def _without_negative(covariance: Floats) -> Floats:
    """The nearest covariance: estimates of variances near zero may be negative."""
    symmetric = (covariance + covariance.T) / 2
    if not np.isfinite(symmetric).all():
        return symmetric
    values, vectors = np.linalg.eigh(symmetric)
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
