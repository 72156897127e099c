"""The error that a grid's assumption about data between the borders of cells adds to its answers.

The bias of a moment is a sum over its terms of p(Π_k f̂_k) − p(Π_k f_k), products over the tables k. Under the prior of
`smoothness.py`, which takes attributes of different tables as it takes those of one, second moments of such products
are products of the tables' second moments. So the expected product of the biases of two moments is a sum over pairs of
their terms of Π E[f̂f̂'] − Π E[f̂f'] − Π E[ff̂'] + Π E[ff'].
"""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.queries.answers.estimation import Moments
from deniable.queries.planning.known_sums import known_moments, without_known
from deniable.queries.planning.plan import Plan
from deniable.queries.planning.term_pairs import TermPairs
from deniable.queries.question.question import PublicGroups


def model_spread(plan: Plan, moments: Moments) -> Floats | None:
    """rows × moments × moments: expected products of the biases of an answer's moments; None where there are none."""
    per_user = model_covariance(plan, np.arange(len(plan.private_groups)))
    if per_user is None:
        return None
    scales = np.repeat(moments.users[:, None], len(plan.question.moments), axis=1)
    public = [position for position, group in enumerate(plan.question.groups) if isinstance(group, PublicGroups)]
    keys = [tuple(key[position] for position in public) for key in moments.keys]
    for moment, measure in enumerate(plan.measured):
        if measure >= 0:  # of users with the same public groups, whatever their private ones
            sums: dict[tuple[Any, ...], float] = {}
            for key, value in zip(keys, moments.sums[:, measure].tolist(), strict=True):
                sums[key] = sums.get(key, 0.0) + value
            scales[:, moment] = [abs(sums[key]) for key in keys]
    return np.asarray(per_user[moments.private] * scales[:, :, None] * scales[:, None, :])


def model_covariance(plan: Plan, groups: Integers) -> Floats | None:
    """groups × moments × moments: expected products of the biases of two moments, per user; None where there are none.

    A moment with a public measure is taken per unit of its measure's sum.
    """
    if not plan.biases:
        return None
    pairs = TermPairs.of(plan, groups)
    kinds = [pairs.coefficients.copy() for _ in range(4)]
    if len(plan.biases) != len(plan.tables):
        raise ValueError("a design is a grid for all tables or for none")
    for number, bias in enumerate(plan.biases):
        distinct, which = np.unique(np.stack(pairs.columns(number)), axis=1, return_inverse=True)
        for kind, products in zip(kinds, bias.products(distinct[0], distinct[1]), strict=True):
            kind *= products[which.reshape(-1)]
    truth, left, right, answered = kinds
    return without_known(pairs.summed(answered - left - right + truth), known_moments(plan)[groups])
