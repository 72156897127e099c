"""Rows of which a given share meets the conditions of a question: otherwise spread evenly, attributes independent.

If e = Π_j e_j of evenly spread rows would match, e_j being the part of attribute j's domain that its condition allows,
and m are assumed to, then e_j^c of the rows meet the condition on j, with c = log m / log e: the product is m, and
every factor stays between nothing and one. Inside and outside of each condition rows are spread evenly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from deniable.arrays import Floats
from deniable.queries.forecasts.assumed_rows import Assumption
from deniable.queries.planning.plan import Plan
from deniable.queries.question.conditions import AttributeKey
from deniable.tables.designs.views import CELLS, POINTS, VALUE, Axis

Tilt = Mapping[AttributeKey, Floats]
"""By table and attribute, how many times as many rows have each value as if rows were spread evenly."""
SHOWN_AXES = (VALUE, CELLS, POINTS)
"""Kinds of axes on which it is known where such rows lie."""


def tilt_of(plan: Plan, assumed: Assumption) -> Tilt:
    """Where rows are if as many match as assumed, or where they were seen.

    Nothing if that is as if spread evenly, or conditions are not one.
    """
    if assumed.matching is None and assumed.seen:
        return {
            (table, name): density * density.size
            for table, mine in assumed.seen.items()
            for name, density in mine.items()
        }
    terms = [term for moment in plan.question.moments for term in moment.terms]
    if not terms or len(plan.private_groups) > 1 or (assumed.matching is None and assumed.times == 1):
        return {}
    conditions = terms[0].conditions
    if any(not _same(term.conditions, conditions) for term in terms):
        return {}
    parts = {key: float(np.mean(mask != 0)) for key, mask in conditions.items()}
    evenly = math.prod(parts.values())
    matching = evenly * assumed.times_matching(evenly)
    if not 0 < evenly < 1 or math.isclose(matching, evenly):
        return {}
    power = math.log(matching) / math.log(evenly)
    return {
        key: np.where(conditions[key] != 0, part**power / part, (1 - part**power) / (1 - part))
        for key, part in parts.items()
        if part < 1
    }


def _same(left: Mapping[AttributeKey, Floats], right: Mapping[AttributeKey, Floats]) -> bool:
    return left.keys() == right.keys() and all(np.array_equal(left[key], right[key]) for key in left)


def axis_shares(axis: Axis, level: int, density: Floats) -> Floats:
    """The part of rows in each node of an axis, or rounded to each of its points, given the part at each value."""
    if axis.kind == POINTS:
        places, values = np.array(axis.places), np.arange(density.size)
        lower = np.minimum(np.searchsorted(places, values, side="right") - 1, places.size - 2)
        up = (values - places[lower]) / np.diff(places)[lower]
        low, high = (np.bincount(lower + step, density * part, places.size) for step, part in ((0, 1 - up), (1, up)))
        return np.asarray(low + high)
    starts = np.array(axis.places) if axis.places else np.arange(axis.tree.cells(level)) * axis.tree.width(level)
    return np.asarray(np.add.reduceat(density, starts))
