"""A design is a set of views: the granularities at which a row may be reported.

A row is described by axes: its attributes, and for some designs values that were rounded to two ends. A view fixes one
level of every axis's tree; the cells it can tell apart are the combinations of nodes on these levels. A device draws a
view, finds its row's cell, and randomises that cell among the view's cells. A part of a design is reported once per
row; most designs have one part.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, islice
from typing import Any

from deniable.mechanisms.frequency_oracle import LARGEST_DOMAIN, FrequencyOracle, draw_as_responses
from deniable.mechanisms.hashing import CELL_OFFSET, MASK, mix
from deniable.mechanisms.local_hashing import LocalHashing
from deniable.mechanisms.oracles import AUTO, HASHED, ORACLE_CHOICES, best_oracle
from deniable.mechanisms.randomized_response import RandomizedResponse
from deniable.mechanisms.single_cell import SingleCell
from deniable.trees import Tree
from deniable.wording import counted

VALUE, ROUNDED, EMBEDDED, WEIGHT, WEIGHT_AND_ROUNDED = "value", "rounded", "embedded", "weight", "weight and rounded"
CELLS, POINTS = "cells", "points"
NUMBERED_CELLS = LARGEST_DOMAIN
"""Up to so many cells are numbered in mixed radix; beyond, numbers are folded into 32 bits."""
NODE_WORD_BITS = 32
"""Numbers of nodes beyond so many bits are folded word by word."""
MOST_MEASURED_VIEWS = 2**10
"""Of a design with more views, bounds are taken instead of the largest of all."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One thing a view can show about a row, as a number 0..size−1.

    With v the attribute's position in its domain of m values, up a coin that is heads with probability v/(m − 1), and w
    a coin that is heads with probability (rows of the user)/many:

    value: v.  rounded: up.  embedded: m + v if up, else m − 1 − v.  weight: w.  weight and rounded: 2w + up.

    With `places` a_0 < a_1 < …, v lies at or after a_i and before a_(i+1). cells: i.  points: i + up, where the coin is
    heads with probability (v − a_i)/(a_(i+1) − a_i).
    """

    kind: str
    tree: Tree
    attribute: int = -1
    """Index of the attribute among the table's private ones; −1 if there is none."""
    places: tuple[int, ...] = ()
    """Where cells start, or the points that are rounded to."""

    @property
    def rounds_value(self) -> bool:
        """Whether it depends on the coin of the attribute."""
        return self.kind in (ROUNDED, EMBEDDED, WEIGHT_AND_ROUNDED, POINTS)

    def located(self, value: int, size: int) -> tuple[int, Fraction]:
        """Where the axis sees a value, given by its position, and the chance of the attribute's coin."""
        if not self.places:
            return value, Fraction(value, size - 1)
        index = bisect_right(self.places, value) - 1
        if self.kind == CELLS:
            return index, Fraction(0)
        index = min(index, len(self.places) - 2)
        first, second = self.places[index : index + 2]
        return index, Fraction(value - first, second - first)

    @property
    def rounds_weight(self) -> bool:
        """Whether it depends on the coin of the weight."""
        return self.kind in (WEIGHT, WEIGHT_AND_ROUNDED)

    def coordinate(self, value: Any, up: Any, weight: Any) -> Any:
        """Where a row (or an array of rows) lies on this axis, given the coins that the axis depends on, else False.

        `value` is what `located` gives.
        """
        if self.kind == POINTS:
            return value + up
        if self.kind == EMBEDDED:
            return self.tree.size // 2 - 1 - value + (2 * value + 1) * up
        if self.kind in (VALUE, CELLS):
            return value
        return 2 * weight + up if self.kind == WEIGHT_AND_ROUNDED else weight + up + 0


@dataclass(frozen=True, slots=True)
class Group:
    """Views over the same axes: all combinations of the given levels, each equally likely."""

    axes: tuple[Axis, ...]
    levels: tuple[tuple[int, ...], ...]
    chance: int = 1
    """How likely the group is, relative to the others of its part."""

    @property
    def views(self) -> int:
        """How many combinations there are."""
        return math.prod(len(choices) for choices in self.levels)

    def choice(self, local: int) -> tuple[int, ...]:
        """The levels of the `local`-th combination; the last axis changes fastest."""
        chosen = []
        for choices in reversed(self.levels):
            local, index = divmod(local, len(choices))
            chosen.append(choices[index])
        return tuple(reversed(chosen))

    def cells(self, levels: tuple[int, ...]) -> int:
        """How many cells a view has."""
        return math.prod(axis.tree.cells(level) for axis, level in zip(self.axes, levels, strict=True))

    def number(self, levels: tuple[int, ...], coordinates: tuple[int, ...]) -> int:
        """The number of a cell: mixed radix, or folded into 32 bits when there are too many cells for that."""
        nodes = [a.tree.cell(level, c) for a, level, c in zip(self.axes, levels, coordinates, strict=True)]
        if self.cells(levels) > NUMBERED_CELLS:
            sizes = [axis.tree.cells(level) for axis, level in zip(self.axes, levels, strict=True)]
            return fold([word for node, size in zip(nodes, sizes, strict=True) for word in in_words(node, size)])
        number = 0
        for axis, level, node in zip(self.axes, levels, nodes, strict=True):
            number = number * axis.tree.cells(level) + node
        return number


def in_words(node: int, size: int) -> list[int]:
    """A node's number in words of 32 bits, the highest first: one word, unless its level has more than 2^32 nodes.

    >>> in_words(7, 10), in_words(0, 1), in_words(2**32 + 7, 2**40)
    ([7], [0], [1, 7])
    """
    return [node >> shift & MASK for shift in reversed(range(0, max((size - 1).bit_length(), 1), NODE_WORD_BITS))]


def fold(nodes: list[int]) -> int:
    """Many node numbers as a single one of 32 bits, which two cells share with a chance of about 2^-32."""
    number = 0
    for node in nodes:
        number = mix((number + node + CELL_OFFSET) & MASK)
    return number


@dataclass(frozen=True, slots=True)
class View:
    """One granularity of a table's reports, and the oracle its cells are randomised by."""

    number: int
    part: int
    group: Group
    levels: tuple[int, ...]
    probability: Fraction
    oracle: FrequencyOracle

    @property
    def cells(self) -> int:
        """How many cells the view has."""
        return self.group.cells(self.levels)

    @property
    def outcomes(self) -> int:
        """How many different y a report of this view can have."""
        return self.oracle.outcomes


@dataclass(frozen=True, slots=True)
class Design:
    """The views of one table, numbered from 0 on: part by part, group by group.

    Each report draws a group of its part by the groups' chances (which are alike in all designs but grids), and then a
    view of the group, all equally likely.
    """

    parts: tuple[tuple[Group, ...], ...]
    epsilon: float
    """What each report may spend."""
    choice: str = AUTO
    """Which oracles views choose from, by the name in `ORACLE_CHOICES`; each takes the one of lowest variance."""
    memoised: bool = False
    """Whether answers are kept for life: then every oracle is randomized response over its outcomes."""
    buckets: int | None = None
    """If given, views of more cells hash into so many buckets, and no other view hashes."""

    @property
    def views(self) -> int:
        """How many views there are in all."""
        return sum(group.views for part in self.parts for group in part)

    def offset(self, part: int, group: int) -> int:
        """The number of a group's first view."""
        earlier = [before for groups in self.parts[:part] for before in groups]
        return sum(before.views for before in (*earlier, *self.parts[part][:group]))

    @property
    def oracles(self) -> list[type[FrequencyOracle]]:
        """The oracles that views choose from."""
        listed = ORACLE_CHOICES[self.choice]
        if self.memoised:
            return [oracle for oracle in listed if oracle.draw_reports is draw_as_responses or oracle is SingleCell]
        return listed

    @property
    def most_outcomes(self) -> int:
        """No report has more different y than this."""
        if self.buckets is not None and math.isfinite(self.epsilon):
            return self.buckets
        if self.views <= MOST_MEASURED_VIEWS:
            return max(view.outcomes for view in self)
        return max(oracle.most_outcomes(self.epsilon) for oracle in self.oracles)

    def oracle(self, cells: int) -> FrequencyOracle:
        """The oracle of a view with so many cells."""
        cells = min(cells, NUMBERED_CELLS)
        if self.buckets is not None and cells > 1:
            if cells > self.buckets or self.choice == HASHED:
                return LocalHashing(self.epsilon, cells, self.buckets)
            return RandomizedResponse(self.epsilon, cells)
        return best_oracle(self.oracles, self.epsilon, cells)

    def view(self, number: int) -> View:
        """The view of a number."""
        rest = number
        for part, groups in enumerate(self.parts):
            for group in groups:
                if rest < group.views:
                    levels = group.choice(rest)
                    probability = Fraction(group.chance, chances(groups)[-1] * group.views)
                    return View(number, part, group, levels, probability, self.oracle(group.cells(levels)))
                rest -= group.views
        raise IndexError(number)

    def __str__(self) -> str:
        """Views, cells, probabilities, oracles and the ε of a report, as a table of text."""
        lines = [f"{counted(self.views, 'view')}, ε = {self.epsilon:.4g} per report"]
        for view in islice(self, 50):
            oracle = "no oracle" if view.cells == 1 else type(view.oracle).__name__
            lines.append(f"view {view.number}: {counted(view.cells, 'cell')}, probability {view.probability}, {oracle}")
        return "\n".join([*lines, f"… and {self.views - 50:,} more"] if self.views > 50 else lines)

    def __iter__(self) -> Iterator[View]:
        return (self.view(number) for number in range(self.views))


def chances(groups: tuple[Group, ...]) -> list[int]:
    """The chances of groups, added up: a number below the last one falls to the first group that lies above it."""
    return list(accumulate(group.chance for group in groups))


def all_levels(*axes: Axis) -> Group:
    """A group with every combination of levels."""
    return Group(axes, tuple(tuple(range(axis.tree.levels)) for axis in axes))


def leaves(*axes: Axis, chance: int = 1) -> Group:
    """A group with the finest cells only."""
    return Group(axes, tuple((axis.tree.levels - 1,) for axis in axes), chance)
