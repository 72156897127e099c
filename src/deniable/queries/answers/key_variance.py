"""What the noise of another population's reports adds to the errors of an answer.

An answer is a sum over users given W, what the other population's reports contribute, and as a function of W it is
Σ_k N(k)·W(k) over ids k. With both sources of noise independent, the variance is

    E[Var(answer | W)] + Σ_k N(k)²·Var W(k).

The first part comes from the same pass as the answer. In the second, N̂(k)² is too large by the variance of N̂(k), which
is subtracted, and Var W(k) is estimated without bias from the law of the id's own report
(`engines/kernel/key_contributions.py`). Reports of users and of others are independent, so their product is unbiased.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.queries.planning.key_counts import KeyCounts
from deniable.queries.planning.key_functions import KeyFunctions, groups_of_others, with_groups
from deniable.queries.question.question import PrivateGroups, Question

Key = tuple[Any, ...]
Counts = Callable[[Key], tuple[Floats, Floats]]
"""For a group of users: N̂ as ids × moments of the counts, and the covariance of N̂ as ids × moments × moments."""


def others_covariance(
    question: Question, keyed: KeyFunctions, counts: KeyCounts, keys: tuple[Key, ...], counted: Counts
) -> Floats:
    """rows × moments × moments: what the other population adds to the covariance of each row's moments."""
    others = groups_of_others(question)
    total = np.zeros((len(keys), len(question.moments), len(question.moments)))
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
    return total


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
