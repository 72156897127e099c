"""Answers over groups of users that were drawn by chance: each group says something about all users.

Whoever is in a group by chance is like everybody else. A group g of n_g users whose moment is S_g estimates what a user
is worth on average by S_g/n_g, and all N users together are worth N times that. With weights ω_g that add up to one

    N·Σ_g ω_g·S_g/n_g = Σ_g α_g·S_g,     α_g = N·ω_g/n_g ,

is unbiased over the draw of the groups, and α_g = 1 is the plain sum of the groups. Let V_g be the covariance of what
the users of a group contribute, times n_g: it holds the noise of their reports, and how differently they are worth,
n_g·Q with Q the covariance of f. The error of the sum is Σ α_g·(noise of g) + Σ (α_g − 1)·(what the users of g are
worth), the groups are a partition of all users, and so its covariance is

    Σ α_g²·(V_g − n_g·Q) + Q·Σ n_g·(α_g − 1)² = Σ α_g²·V_g − N·Q .

The weights that minimise this do not depend on Q: ω_g ∝ n_g²/V_g, inverse variances. So a group with little noise
answers for one with much of it, as far as who is in which group leaves open. What is subtracted at the end is what
`estimation.py` subtracts for one group of N users. A model error counts in the weights as noise does.

V_g is estimated from the reports, and by luck may be too small. At least part of the noise that a plan leads us to
expect is counted in weights. A moment that is known, or to which no noise is added anywhere, is the plain sum.

If an answer of a group is further from that of all than chance explains, the groups are not alike: then the row is what
it is without this, and a note says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deniable.arrays import Booleans, Floats, Integers
from deniable.queries.answers.added_groups import GroupPart, Together, added_models, added_moments, aligned
from deniable.queries.answers.allowed import Allowed
from deniable.queries.answers.effective_users import expected_noise
from deniable.queries.answers.estimation import Moments
from deniable.queries.question.formula import gradient_at
from deniable.queries.question.question import Question

LEAST_NOISE = 0.25
"""The part of the expected noise that counts in weights, however small the noise appears."""
EXPLAINED = 4.0
"""Standard errors of an answer of one group that chance explains."""
NOT_ALIKE = "groups differ by more than chance explains, as if they were not drawn by it: here they are only added up"


def alike_groups(parts: Sequence[GroupPart], *, one_weight: bool = False) -> Together:
    """All users' moments where the groups were drawn by chance.

    With `one_weight`, rows that differ in the last group alone have the same weights, as counts behind a quantile need.
    """
    groups, models = [part.moments for part in parts], [part.model for part in parts]
    keys, rows = aligned(groups)
    width = groups[0].sums.shape[1]
    users, sums = np.zeros((len(parts), len(keys))), np.zeros((len(parts), len(keys), width))
    errors = np.zeros((*sums.shape, width))
    known = np.full(sums.shape[1:], all(part.plan.is_free_of_noise for part in parts))
    for number, (part, mine) in enumerate(zip(parts, rows, strict=True)):
        moments = part.moments
        users[number, mine], sums[number, mine] = moments.users, moments.sums
        errors[number, mine] = _with_least_noise(_covariances(moments), part)
        if part.model is not None:
            errors[number, mine] += part.model
        known[mine] |= moments.known
    alike = {key[:-1] if one_weight else key: number for number, key in enumerate(keys)}
    blocks = np.array([alike[key[:-1] if one_weight else key] for key in keys], dtype=np.int64)
    weights = weights_of(parts[0].plan.question, users, sums, errors, known, blocks)
    far = _far_apart(users, sums, np.einsum("ngii->ngi", errors), weights)
    far = np.isin(blocks, blocks[far])
    weights = np.where(far[:, None], 1.0, weights)
    scaled = [
        _scaled(moments, weights[number, mine]) for number, (moments, mine) in enumerate(zip(groups, rows, strict=True))
    ]
    scaled_models = [
        None if model is None else _both_sides(model, weights[number, mine])
        for number, (model, mine) in enumerate(zip(models, rows, strict=True))
    ]
    added = added_moments(scaled, scaled_models)
    # In one group of N users the mean is the same for all; apart, each group has a mean of its own.
    excess = -_spread(added.sums, users.sum(axis=0))
    for moments, mine in zip(scaled, rows, strict=True):
        excess[mine] += _spread(moments.sums, moments.users)
    crosses = added.crosses - np.where(far[:, None, None], 0.0, excess)
    return Together(
        replace(added, crosses=crosses), added_models(scaled, scaled_models), tuple(weights), bool(far.any())
    )


def weights_of(
    question: Question, users: Floats, sums: Floats, errors: Floats, known: Booleans, blocks: Integers | None = None
) -> Floats:
    """groups × rows × moments: α_g, and 1 where a moment is known.

    `users` are groups × rows, `sums` the moments of each group, and `errors` their covariances V_g. All moments of a
    row have the same weight, so that a sum and a count of the same rows go together: that by which the variances of the
    row's answers, relative to those of plain sums, are least together. So have all rows of a block.
    """
    each = np.einsum("ngii->ngi", errors)
    point = np.sum(sums * inverse_weights(np.broadcast_to(users[:, :, None], each.shape), each), axis=0)
    outputs = [output for output in question.outputs if output.shown] or list(question.outputs)
    relative = np.zeros_like(users)
    for output in outputs:
        slopes = gradient_at(output.formula, point)
        spreads = np.maximum(np.einsum("gi,ngij,gj->ng", slopes, errors, slopes), 0.0)
        total = spreads.sum(axis=0)
        relative += np.divide(spreads, total, out=np.zeros_like(spreads), where=(total > 0) & np.isfinite(total))
    if blocks is not None:
        relative = np.array([np.bincount(blocks, of_group)[blocks] for of_group in relative])
    return np.where(known, 1.0, inverse_weights(users, relative)[:, :, None])


def inverse_weights(users: Floats, spreads: Floats) -> Floats:
    """α_g from numbers of users and V_g, groups first; 1 where some V_g is zero."""
    here = users > 0
    plain = (here & ~(spreads > 0)).any(axis=0)
    precision = np.divide(users, spreads, out=np.zeros_like(spreads), where=here & (spreads > 0))
    total = (precision * users).sum(axis=0)
    plain |= ~(total > 0) | ~np.isfinite(total)
    scale = np.divide(users.sum(axis=0), total, out=np.zeros_like(total), where=~plain)
    return np.where(plain, 1.0, precision * scale)


def _covariances(moments: Moments) -> Floats:
    """Of what users contribute, times how many they are."""
    return moments.crosses - moments.between - _spread(moments.sums, moments.users)


def _with_least_noise(covariances: Floats, part: GroupPart) -> Floats:
    """Covariances, those of moments that appear to have hardly any noise with what is expected of it."""
    moments = part.moments
    least = LEAST_NOISE * moments.users[:, None] * expected_noise(part.plan)[moments.private]
    lacking = np.maximum(least - np.einsum("gii->gi", covariances), 0.0)
    return np.asarray(covariances + lacking[:, :, None] * np.eye(lacking.shape[1]))


def _far_apart(users: Floats, sums: Floats, spreads: Floats, weights: Floats) -> Booleans:
    """rows: whether a group's average differs from that of all by more than chance explains, in some moment."""
    size = users[:, :, None]
    totals = np.maximum(users.sum(axis=0), 1.0)[:, None]
    means, variances = (
        np.divide(each, size**power, out=np.zeros_like(each), where=size > 0)
        for power, each in ((1, sums), (2, spreads))
    )
    shares = weights * size / totals
    off = means - (shares * means).sum(axis=0)
    variances = variances * (1 - 2 * shares) + (shares**2 * variances).sum(axis=0)
    beyond = (np.abs(off) > EXPLAINED * np.sqrt(np.maximum(variances, 0.0))) & (spreads > 0) & (weights != 1.0)
    return np.asarray(beyond.any(axis=(0, 2)))


def _scaled(moments: Moments, weights: Floats) -> Moments:
    """A group's moments, multiplied; their variances are those of the products."""
    sums = moments.sums * weights
    allowed = moments.allowed
    if allowed is not None:
        low, high = allowed.errors
        allowed = Allowed(
            _times(allowed.least, weights), _times(allowed.most, weights), (low * weights, high * weights)
        )
    return replace(
        moments,
        sums=sums,
        crosses=_both_sides(_covariances(moments), weights) + _spread(sums, moments.users),
        between=np.zeros_like(moments.between),
        allowed=allowed,
        unlimited=tuple((_both_sides(biases, weights), limits) for biases, limits in moments.unlimited),
    )


def _times(ends: Floats, weights: Floats) -> Floats:
    """Bounds, multiplied; what does not count is zero, whatever its bounds."""
    return np.multiply(ends, weights, out=np.zeros_like(ends), where=weights > 0)


def _both_sides(matrices: Floats, weights: Floats) -> Floats:
    return matrices * weights[:, :, None] * weights[:, None, :]


def _spread(sums: Floats, users: Floats) -> Floats:
    """Σ f·fᵀ if everybody were worth the same."""
    return np.asarray(np.einsum("gi,gj->gij", sums, sums) / np.maximum(users, 1.0)[:, None, None])
