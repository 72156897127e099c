"""The guard: an answer that contradicts what cells show without any assumption is not given.

Reports say without an assumption what an answer cannot be below or above (`planning/bounding_plan.py`). If it lies
outside by more than the noise of both explains, the model is wrong, and the nearest answer that cells allow is given
instead, with its own noise, and with what the bounds leave open as its model error.

The same bounds limit what a model may say of itself. The further one, with its own noise, is how far off an answer is
at worst. An interval
that reaches it covers for sure, so a model error is never larger. And it is never so small that an answer could be more
than `FURTHEST` errors off, whatever the data is like. Where a question leaves the borders of cells in several places,
this is granted to each of them, and places are taken to be off independently of each other. Two attributes may be off
in the same place: rows of a cell may share the values of both.

A sum and a count of the same rows are off together, and their ratio by little. So what combines moments has the model
error that follows from both, with the larger of the two limits, instead of one limit for each.

They cut intervals, too: what is more than three standard errors of a bound beyond it is not in the interval of a count
or a sum, however far the model error reaches.

And they show what may be divided by. An average is unclear if its count may be zero. Noise may make it zero, but not
what is assumed: there are at least as many rows as lie in cells inside of the range.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deniable.arrays import Booleans, Floats
from deniable.queries.answers.allowed import Allowed
from deniable.queries.answers.estimation import Moments
from deniable.queries.question.formula import CLEAR

GUARDED = "guard: cells contradict what was assumed here; the nearest answer that they allow is given"
BEYOND = 3.0
"""Standard errors of an answer and of a bound together that noise explains."""


SURE = 2.0
"""Standard deviations that an interval of 95 % reaches."""
FURTHEST = 5.0


def guarded(
    moments: Moments, model: Floats, low: Moments, high: Moments, ends: Floats, measured: Sequence[int]
) -> tuple[Moments, Floats, bool]:
    """Moments and expected products of biases, with those replaced that contradict the bounds.

    `ends` says for every group and moment in how many places it leaves the borders of cells. Public measures may be
    negative, so that bounds of moments which are `measured` by another one are no more than a scale.
    """
    low, high = ordered(low, high)
    moments = replace(moments, above_zero=_above_zero(low) & _above_zero(moments))
    errors = np.sqrt(variances(low)), np.sqrt(variances(high))
    above = np.maximum(high.sums - moments.sums, 0.0) + SURE * errors[1]
    below = np.maximum(moments.sums - low.sums, 0.0) + SURE * errors[0]
    changed = limits(model, np.maximum(above, below), ends[moments.private])
    moments = replace(moments, unlimited=((model, changed),))
    model = model * changed[:, :, None] * changed[:, None, :]
    biased = (np.einsum("gii->gi", model) > 0) & (np.array(measured) < 0)
    least, most = np.where(biased, low.sums, -np.inf), np.where(biased, high.sums, np.inf)
    moments = replace(moments, allowed=Allowed(least, most, errors))
    sums, crosses, between, model = (each.copy() for each in (moments.sums, moments.crosses, moments.between, model))
    noise = variances(moments)
    replaced = np.zeros(sums.shape, dtype=bool)
    for bound, sign in ((low, 1.0), (high, -1.0)):
        beyond = sign * (bound.sums - moments.sums) > BEYOND * np.sqrt(noise + variances(bound))
        for row, moment in np.argwhere(beyond & biased & ~replaced).tolist():
            replaced[row, moment] = True
            sums[row, moment] = bound.sums[row, moment]
            for matrix, given in ((crosses, bound.crosses), (between, bound.between)):
                matrix[row, moment, :] = matrix[row, :, moment] = 0.0
                matrix[row, moment, moment] = given[row, moment, moment]
            wide = (high.sums - low.sums)[row, moment]
            model[row, moment, :] = model[row, :, moment] = 0.0
            model[row, moment, moment] = max(wide, 0.0) ** 2 / 3  # anything between the bounds, seen from one of them
    if not replaced.any():
        return moments, model, False
    together = np.einsum("gi,gj->gij", sums, sums) / np.maximum(moments.users, 1.0)[:, None, None]
    apart = replaced[:, :, None] | replaced[:, None, :]
    apart &= ~np.eye(sums.shape[1], dtype=bool)[None]
    crosses = np.where(apart, together, crosses)
    return replace(moments, sums=sums, crosses=crosses, between=between, unlimited=()), model, True


def ordered(low: Moments, high: Moments) -> tuple[Moments, Moments]:
    """Bounds of which neither is beyond the other.

    Noise may put the upper one below the lower one, as where no row is in the few cells of either, and a count below
    zero would be the nearest that they allow. Both are then where they meet, closer to the one that is known better.
    """
    errors = variances(low), variances(high)
    total = errors[0] + errors[1]
    of_low = np.divide(errors[1], total, out=np.full_like(total, 0.5), where=total > 0)
    meeting = of_low * low.sums + (1 - of_low) * high.sums
    crossed = low.sums > high.sums
    return tuple(replace(each, sums=np.where(crossed, meeting, each.sums)) for each in (low, high))  # type: ignore[return-value]


def variances(moments: Moments) -> Floats:
    """rows × moments: of the noise, a little too large."""
    squares = np.einsum("gii->gi", moments.crosses - moments.between)
    return np.asarray(np.maximum(squares - moments.sums**2 / np.maximum(moments.users, 1.0)[:, None], 0.0))


def _above_zero(moments: Moments) -> Booleans:
    """rows × moments: which of them noise alone does not explain."""
    return np.asarray(moments.sums > CLEAR * np.sqrt(variances(moments)))


def limits(model: Floats, furthest: Floats, ends: Floats) -> Floats:
    """By how much model errors are multiplied so that they are neither larger nor smaller than bounds say; see above.

    `furthest` is how far each moment is from the further of its bounds.
    """
    stated = np.sqrt(np.maximum(np.einsum("gii->gi", model), 0.0))
    allowed = np.clip(stated, furthest / (FURTHEST * np.sqrt(ends)), furthest / SURE)
    return np.asarray(np.divide(allowed, stated, out=np.zeros_like(stated), where=stated > 0))
