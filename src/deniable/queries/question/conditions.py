"""Conditions as sets of disjoint conjunctions: what any nesting of AND, OR and NOT amounts to.

A conjunction says for each private attribute which positions of its domain are allowed, and for conditions on public
attributes (which the engine decides row by row) whether they must hold or must not. Disjoint conjunctions may be
counted one by one and added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from deniable.arrays import Booleans
from deniable.queries.question.public_trees import PublicTree

AttributeKey = tuple[str, str]
"""(table, attribute)."""
TableTest = tuple[str, PublicTree]
"""(table, condition on its public attributes)."""

MOST_CONJUNCTIONS = 64


class TooManyConjunctions(Exception):
    """A condition needs more than `MOST_CONJUNCTIONS` disjoint conjunctions."""


@dataclass(frozen=True, slots=True, eq=False)
class Conjunction:
    """All of these at once; what is not mentioned is free."""

    private: Mapping[AttributeKey, Booleans] = field(default_factory=dict)
    public: Mapping[TableTest, bool] = field(default_factory=dict)

    def __str__(self) -> str:
        private = (f"{'.'.join(attribute)} in {_ranges(mask)}" for attribute, mask in self.private.items())
        public = (f"{table}: {test if wanted else f'not ({test})'}" for (table, test), wanted in self.public.items())
        return " and ".join((*private, *public)) or "everything"


Disjoint = tuple[Conjunction, ...]
EVERYTHING: Disjoint = (Conjunction(),)


def private(attribute: AttributeKey, mask: Booleans) -> Disjoint:
    """The condition that an attribute lies in a set of positions."""
    if mask.all():
        return EVERYTHING
    return (Conjunction({attribute: mask}),) if mask.any() else ()


def public(test: TableTest) -> Disjoint:
    """The condition that a test of public attributes is true, neither false nor unknown."""
    return (Conjunction({}, {test: True}),)


def both(left: Disjoint, right: Disjoint) -> Disjoint:
    """Left and right."""
    return merged(
        met for conjunction in left for other in right if (met := _intersection(conjunction, other)) is not None
    )


def either(left: Disjoint, right: Disjoint) -> Disjoint:
    """Left or right, disjointly: left, and what of right is not in left."""
    return merged((*left, *both(right, opposite(left))))


def opposite(condition: Disjoint) -> Disjoint:
    """Everything else."""
    rest = EVERYTHING
    for conjunction in condition:
        rest = both(rest, _complement(conjunction))
    return rest


def _complement(conjunction: Conjunction) -> Disjoint:
    """What fails a conjunction: its first part, or that holds and its second part fails, and so on."""
    failing: list[Conjunction] = []
    held = Conjunction()
    for attribute, mask in conjunction.private.items():
        failing.append(Conjunction({**held.private, attribute: ~mask}, held.public))
        held = Conjunction({**held.private, attribute: mask}, held.public)
    for test, wanted in conjunction.public.items():
        failing.append(Conjunction(held.private, {**held.public, test: not wanted}))
        held = Conjunction(held.private, {**held.public, test: wanted})
    return tuple(failing)


def _intersection(left: Conjunction, right: Conjunction) -> Conjunction | None:
    """Both at once; None if they exclude each other."""
    masks = dict(left.private)
    for attribute, mask in right.private.items():
        masks[attribute] = masks[attribute] & mask if attribute in masks else mask
        if not masks[attribute].any():
            return None
    tests = dict(left.public)
    for test, wanted in right.public.items():
        if tests.setdefault(test, wanted) != wanted:
            return None
    return Conjunction(masks, tests)


def merged(conjunctions: Iterable[Conjunction]) -> Disjoint:
    """The same set of disjoint conjunctions with fewer of them: two that differ in one attribute only are merged."""
    kept: list[Conjunction] = []
    for conjunction in conjunctions:
        union: Conjunction | None = conjunction
        while union is not None:
            conjunction, union = union, None
            for index, other in enumerate(kept):
                union = _merge(conjunction, other)
                if union is not None:
                    del kept[index]
                    break
        kept.append(conjunction)
        if len(kept) > MOST_CONJUNCTIONS:
            raise TooManyConjunctions
    return tuple(kept)


def _merge(left: Conjunction, right: Conjunction) -> Conjunction | None:
    """Their union as one conjunction; None if it is not one."""
    if left.private.keys() != right.private.keys() or left.public.keys() != right.public.keys():
        return None
    differing = [key for key, mask in left.private.items() if not np.array_equal(mask, right.private[key])]
    tests = [test for test, wanted in left.public.items() if right.public[test] != wanted]
    if len(differing) + len(tests) > 1:
        return None
    if tests:
        return Conjunction(left.private, {test: wanted for test, wanted in left.public.items() if test not in tests})
    masks = dict(left.private)
    for attribute in differing:
        masks[attribute] = left.private[attribute] | right.private[attribute]
        if masks[attribute].all():
            del masks[attribute]
    return Conjunction(masks, left.public)


def _ranges(mask: Booleans) -> str:
    """Positions as ranges: `0..24, 30`."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8))).reshape(-1, 2)
    shown = [str(low) if low + 1 == end else f"{low}..{end - 1}" for low, end in edges.tolist()]
    return ", ".join(shown[:6]) + (", …" if len(shown) > 6 else "")
