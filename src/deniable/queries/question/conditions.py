"""Conditions as sets of disjoint conjunctions: what any nesting of AND, OR and NOT amounts to.

A conjunction says for each private attribute which places of its domain are allowed, and for conditions on public
attributes (which the engine decides row by row) whether they must hold or must not. Disjoint conjunctions may be
counted one by one and added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Booleans
from deniable.queries.question.public_trees import PublicTree

Place = tuple[str, str]
"""(table, attribute)."""
TableTest = tuple[str, PublicTree]
"""(table, condition on its public attributes)."""

MOST_TERMS = 64


class TooManyTerms(Exception):
    """A condition needs more than `MOST_TERMS` disjoint conjunctions."""


@dataclass(frozen=True, slots=True, eq=False)
class Conjunction:
    """All of these at once; what is not mentioned is free."""

    private: Mapping[Place, Booleans] = field(default_factory=dict)
    public: Mapping[TableTest, bool] = field(default_factory=dict)


Disjoint = tuple[Conjunction, ...]
EVERYTHING: Disjoint = (Conjunction(),)


def private(place: Place, mask: Booleans) -> Disjoint:
    """The condition that an attribute lies in a set of places."""
    if mask.all():
        return EVERYTHING
    return (Conjunction({place: mask}),) if mask.any() else ()


def public(test: TableTest) -> Disjoint:
    """The condition that a test of public attributes holds (not: is unknown)."""
    return (Conjunction({}, {test: True}),)


def both(left: Disjoint, right: Disjoint) -> Disjoint:
    """Left and right."""
    return _tidy(met for one in left for other in right if (met := _meet(one, other)) is not None)


def either(left: Disjoint, right: Disjoint) -> Disjoint:
    """Left or right, disjointly: left, and what of right is not in left."""
    return _tidy((*left, *both(right, opposite(left))))


def opposite(terms: Disjoint) -> Disjoint:
    """Everything else."""
    rest = EVERYTHING
    for one in terms:
        rest = both(rest, _complement(one))
    return rest


def _complement(one: Conjunction) -> Disjoint:
    """What fails a conjunction: its first part, or that holds and its second part fails, and so on."""
    found: list[Conjunction] = []
    held = Conjunction()
    for place, mask in one.private.items():
        found.append(Conjunction({**held.private, place: ~mask}, held.public))
        held = Conjunction({**held.private, place: mask}, held.public)
    for test, wanted in one.public.items():
        found.append(Conjunction(held.private, {**held.public, test: not wanted}))
        held = Conjunction(held.private, {**held.public, test: wanted})
    return tuple(found)


def _meet(one: Conjunction, other: Conjunction) -> Conjunction | None:
    masks = dict(one.private)
    for place, mask in other.private.items():
        masks[place] = masks[place] & mask if place in masks else mask
        if not masks[place].any():
            return None
    tests = dict(one.public)
    for test, wanted in other.public.items():
        if tests.setdefault(test, wanted) != wanted:
            return None
    return Conjunction(masks, tests)


def _tidy(terms: Iterable[Conjunction]) -> Disjoint:
    """The same set with fewer terms: two that differ in one attribute only become one."""
    found: list[Conjunction] = []
    for term in terms:
        merged: Conjunction | None = term
        while merged is not None:
            term, merged = merged, None
            for place, other in enumerate(found):
                merged = _merge(term, other)
                if merged is not None:
                    del found[place]
                    break
        found.append(term)
        if len(found) > MOST_TERMS:
            raise TooManyTerms
    return tuple(found)


def _merge(one: Conjunction, other: Conjunction) -> Conjunction | None:
    if one.private.keys() != other.private.keys() or one.public.keys() != other.public.keys():
        return None
    places = [place for place, mask in one.private.items() if not np.array_equal(mask, other.private[place])]
    tests = [test for test, wanted in one.public.items() if other.public[test] != wanted]
    if len(places) + len(tests) > 1:
        return None
    if tests:
        return Conjunction(one.private, {test: wanted for test, wanted in one.public.items() if test not in tests})
    masks = dict(one.private)
    for place in places:
        masks[place] = one.private[place] | other.private[place]
        if masks[place].all():
            del masks[place]
    return Conjunction(masks, one.public)
