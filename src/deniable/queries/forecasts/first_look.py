"""What the reports of a first group of users say about where rows are, for the design of the rest.

The idea is AHEAD's, of looking closer where there is more to see. A domain is divided by a tree; the range that holds
most rows is divided first, as long as its estimate stands out from its noise. All that is used are answers to
questions, so this is post-processing: it costs no privacy, and works with any design and engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.queries.forecasts.example_questions import between, counted_apart
from deniable.tables.schema.attributes import Categorical, Private, Table
from deniable.tables.specification.specification import Specification
from deniable.trees import Tree

LOOK_FANOUT = 5
MOST_DIVIDED = 32
"""How many ranges of a domain are divided."""
LEAST_SHARE = 1 / 50
"""A range with a smaller part of the rows is not divided further."""
STANDS_OUT = 2.0
"""Nor is one whose estimate is less than so many standard errors."""

Densities = Mapping[str, Mapping[str, Floats]]
"""By table and ordinal attribute: the estimated part of the rows at each value."""


def densities(database: Any, collection: Specification) -> Densities:
    """Where rows are, by table and ordinal attribute, as far as a database can say."""
    return {
        table.name: {
            name: _density(database, table, name, domain)
            for name, domain in zip(table.private, table.domains, strict=True)
            if not isinstance(domain, Categorical)
        }
        for table in collection.tables
        if table.name in database.stores
    }


@dataclass(frozen=True, slots=True, order=True)
class _Range:
    """A node of the tree over a domain, with its part of the rows."""

    share: float
    level: int
    node: int


def _density(database: Any, table: Table, name: str, domain: Private) -> Floats:
    """The part of the rows at each value, even within the ranges that could be told apart."""
    tree = Tree(domain.size, LOOK_FANOUT)
    open_ranges, done = [_Range(1.0, 0, 0)], []
    for _ in range(MOST_DIVIDED):
        if not open_ranges:
            break
        parent = max(open_ranges)
        open_ranges.remove(parent)
        last = min((parent.node + 1) * tree.fanout, tree.cells(parent.level + 1))
        children = range(parent.node * tree.fanout, last)
        tests = [between(name, domain, *_ends(tree, parent.level + 1, child)) for child in children]
        answers = [answer for (answer,) in database.sql(counted_apart(table, tests)).answers.values()]
        values = np.array([max(answer.value, 0.0) for answer in answers])
        if not any(answer.value > STANDS_OUT * answer.error for answer in answers):
            done.append(parent)
            continue
        for child, share in zip(children, (parent.share * values / values.sum()).tolist(), strict=True):
            divided = _Range(share, parent.level + 1, child)
            whole = divided.level + 1 == tree.levels or share < LEAST_SHARE
            (done if whole else open_ranges).append(divided)
    density = np.zeros(domain.size)
    for part in (*open_ranges, *done):
        first, end = _ends(tree, part.level, part.node)
        density[first : end + 1] += part.share / (end + 1 - first)
    return np.asarray(density / density.sum())


def _ends(tree: Tree, level: int, node: int) -> tuple[int, int]:
    """The first and the last value of a node."""
    width = tree.width(level)
    return node * width, min((node + 1) * width, tree.size) - 1
