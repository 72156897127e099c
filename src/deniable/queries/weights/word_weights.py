"""Weights on prefixes, for questions about words.

A function of listed words is a constant for the rest, plus a step for every listed word and prefix: by how much it
differs from what surrounds it. How many have a prefix is read off the level of its length. A word is complete in every
level that is longer than it. All of these show it exactly, so their estimates are averaged, by their shares of reports.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.queries.question.listed_words import ListedWords
from deniable.queries.weights.row_products import Rows
from deniable.queries.weights.table_plan import Column, PartPlan, TablePlan, ViewWeights
from deniable.queries.words.prefixes import Prefixes, extensions
from deniable.tables.bulk.word_columns import prefix_numbers
from deniable.tables.designs.views import Design, View
from deniable.tables.schema.attributes import Table


def plan_words(table: Table, design: Design, columns: Sequence[Column]) -> TablePlan:
    """Weights for columns of contributions of a table of words."""
    (name,), (domain,) = table.private, table.domains
    assert isinstance(domain, ListedWords)  # noqa: S101 - the caller has looked
    constants = np.zeros(len(columns))
    pieces, owners, steps = [], [], []
    for number, column in enumerate(columns):
        function = np.zeros(domain.size)
        for product in column:
            given = (product.conditions.get(name), product.measures.get(name))
            factors = [factor for factor in given if factor is not None]
            function += product.coefficient * np.prod([np.ones(domain.size), *factors], axis=0)
        constants[number] = function[-1]
        rises = function - function[domain.parents]
        rises[-1] = 0.0
        used = np.flatnonzero(rises)
        pieces.append(used)
        owners.append(np.full(used.size, number))
        steps.append(rises[used])
    nothing = np.zeros(0, dtype=np.int64)
    piece, owner = np.concatenate([nothing, *pieces]), np.concatenate([nothing, *owners])
    step = np.concatenate([np.zeros(0), *steps])
    views = list(design)
    shares = _shares(domain, views)
    weighed = []
    for view, share in zip(views, shares, strict=True):
        made_view = _weights(domain, view, share, piece, owner, step)
        if made_view is not None:
            weighed.append(made_view)
    support = f"{name} {'+'.join(str(view.cells.size) for view in weighed)}" if weighed else ""
    return TablePlan(table.name, (PartPlan(constants, tuple(weighed), (support,) if support else ()),), tuple(columns))


def _shares(domain: ListedWords, views: Sequence[View]) -> list[Floats]:
    """For each view, how much of the estimate of every piece comes from it."""
    chances = np.zeros((len(views), domain.size))
    for number, view in enumerate(views):
        ((level,),) = view.group.levels
        for piece, node in enumerate(domain.nodes[:-1]):
            if shows(domain, node, level):
                chances[number, piece] = float(view.probability)
    return list(chances / np.maximum(chances.sum(axis=0), 1e-300))


def shows(domain: ListedWords, node: bytes, level: int) -> bool:
    """Whether the prefixes of a level tell a piece apart exactly."""
    if node.endswith(b"\0"):
        return level >= len(node)
    return level == max(len(node), domain.text.first_level)


def _weights(
    domain: ListedWords, view: View, share: Floats, piece: Integers, owner: Integers, step: Floats
) -> ViewWeights | None:
    """The weights of one view; None if nothing is read off it."""
    ((level,),) = view.group.levels
    cells: list[Integers] = []
    which: list[Integers] = []
    even = _even_shares(domain)
    for number in np.unique(piece[share[piece] > 0.0]).tolist():
        listed = prefix_numbers(_cells(domain, domain.nodes[number], level))
        cells.append(listed)
        which.append(np.full(listed.size, number))
    if not cells:
        return None
    distinct, first, position = np.unique(np.concatenate(cells), return_index=True, return_inverse=True)
    spread = np.concatenate(
        [np.full(each.size, even[number[0]] / each.size) for each, number in zip(cells, which, strict=True)]
    )
    held = np.concatenate(which)
    # Every pair of a cell that a piece holds and a column in which the piece counts.
    order = np.argsort(piece, kind="stable")
    starts = np.searchsorted(piece[order], held)
    counts = np.searchsorted(piece[order], held, side="right") - starts
    row = np.repeat(position, counts)
    entry = order[np.repeat(starts - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())]
    probability = float(view.probability)
    values = step[entry] * share[piece[entry]] / probability
    entries = Rows.summed(row, owner[entry], values, distinct.size)
    return ViewWeights(
        view=view.number,
        levels=view.levels,
        cells=distinct,
        weights=np.ones(distinct.size),
        shares=spread[first],
        row_starts=np.arange(distinct.size + 1),
        columns=entries.columns,
        coefficients=entries.values,
        column_starts=entries.starts,
        probability=probability,
        p=float(view.oracle.p),
        q=float(view.oracle.q),
        cell_count=view.cells,
        oracle=view.oracle,
    )


def _even_shares(domain: ListedWords) -> Floats:
    """The share of rows in each piece and all pieces that are parts of it, if rows were spread evenly over pieces."""
    inside = np.ones(domain.size)
    for piece in np.argsort([-len(node) for node in domain.nodes], kind="stable").tolist():
        if piece != domain.size - 1:
            inside[domain.parents[piece]] += inside[piece]
    return inside / domain.size


def _cells(domain: ListedWords, node: bytes, level: int) -> Prefixes:
    """The prefixes of a level that a piece is made of."""
    start = np.frombuffer(node[:level], dtype=np.uint8).reshape(1, -1)
    if node.endswith(b"\0"):
        made = np.zeros((1, level), dtype=np.uint8)
        made[:, : len(node)] = start
        return made
    while start.shape[1] < level:
        start = extensions(domain.text, start)[0]
    return start
