"""The client in bulk: what `device/client.py` does for one user, for arrays of users. The law is the same.

The draws that decide a report are the same for all rows, whatever they hold. There are two exceptions. Choosing among
more than `many` rows of a user draws additional words. A number below a bound that depends on the row (between which
two points a value is rounded) is redrawn with a chance below bound · 2^-64.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Integers, Words32
from deniable.mechanisms._oracle_draws import draw_reports
from deniable.randomness import Source
from deniable.tables.bulk.cell_numbers import folded
from deniable.tables.bulk.memoised_bulk import BulkLife, StickySource
from deniable.tables.bulk.word_columns import as_bytes, prefix_numbers
from deniable.tables.coins.coin_columns import CoinColumns, scaled_words
from deniable.tables.designs.views import NUMBERED_CELLS, POINTS, Axis, Design, Group, chances
from deniable.tables.designs.words import has_words
from deniable.tables.schema.attributes import Table

_MANY_CELLS = np.int64(2**62)


@dataclass(frozen=True, slots=True)
class ReportColumns:
    """Reports as columns: those of the first user in the order of their slots, those of the second, …"""

    view: Words32
    seed: Words32
    y: Integers


def truncate(
    table: Table, starts: Integers, counts: Integers, codes: Sequence[Integers], source: Source
) -> tuple[list[Integers], Integers]:
    """`tau` rows of every user, user by user, and how many rows each of them stands for.

    User u has counts[u] rows of `codes` (one array per attribute), from starts[u] on; see `client.truncate`.
    """
    many = table.many or 1
    used = np.minimum(counts, many)
    users = np.repeat(np.arange(counts.size), table.tau)
    everyone = source
    if isinstance(source, StickySource):  # each of the rows that are reported has draws of its own
        source = source.for_numbered(users, np.tile(np.arange(table.tau), counts.size))
    picks = source.below_each(np.maximum(used, 1)[users])
    rows = starts[users] + picks
    over = counts > many
    if over.any():
        order = _shuffled_rows(starts[over], counts[over], everyone, np.flatnonzero(over))
        rank = np.cumsum(over) - 1  # of a user among those with too many rows
        shuffled_start = np.cumsum(counts[over]) - counts[over]
        heavy = over[users]
        rows[heavy] = order[shuffled_start[rank[users[heavy]]] + picks[heavy]]
    chosen = []
    empty = (counts == 0)[users]
    for column, domain in zip(codes, table.domains, strict=True):
        dummies = source.below(domain.size, users.size)
        values = column[np.where(empty, 0, rows)] if column.size else dummies
        chosen.append(np.where(empty, dummies, values))
    return chosen, used[users]


def _shuffled_rows(starts: Integers, counts: Integers, source: Source, owners: Integers) -> Integers:
    """The row numbers of some users (who they are), user by user, each user's in random order."""
    users = np.repeat(np.arange(counts.size), counts)
    offsets = np.arange(users.size) - np.repeat(np.cumsum(counts) - counts, counts)
    if isinstance(source, StickySource):
        source = source.for_numbered(owners[users], offsets)
    order = np.lexsort((source.words(users.size), users))
    return (starts[users] + offsets)[order]


def randomise(
    table: Table,
    design: Design,
    codes: Sequence[Integers],
    weights: Integers,
    source: Source,
    coins: CoinColumns | None = None,
    life: BulkLife | None = None,
) -> ReportColumns:
    """The reports of rows: for each row, one per part of the design. `weights` counts the user's rows, up to `many`.

    `coins` are those that are assigned to the reports, in their order; otherwise views and seeds are drawn. In memoised
    rounds, `life` is what stays the same in all of them.
    """
    parts = len(design.parts)
    size = codes[0].size
    columns = ReportColumns(*(np.empty((size, parts), dtype=kind) for kind in (np.uint32, np.uint32, np.int64)))
    for part in range(parts):
        assigned = None if coins is None else coins.of(slice(part, None, parts))
        view, seed, y = _randomise_part(table, design, part, codes, weights, source, assigned, life)
        columns.view[:, part], columns.seed[:, part], columns.y[:, part] = view, seed, y
    return ReportColumns(columns.view.ravel(), columns.seed.ravel(), columns.y.ravel())


def _randomise_part(
    table: Table,
    design: Design,
    part: int,
    codes: Sequence[Integers],
    weights: Integers,
    source: Source,
    coins: CoinColumns | None,
    life: BulkLife | None,
) -> tuple[Integers, Words32, Integers]:
    sticky = None if life is None else life.source(part)
    groups, size = design.parts[part], codes[0].size
    reach = np.array(chances(groups))
    falls = source.below(int(reach[-1]), size) if coins is None else scaled_words(coins.group, int(reach[-1]))
    chosen = np.searchsorted(reach, falls, side="right")
    view, number, cells = (np.empty(size, dtype=np.int64) for _ in range(3))
    for index, group in enumerate(groups):
        rows = np.flatnonzero(chosen == index) if len(groups) > 1 else slice(None)
        if coins is None:
            local = source.below(group.views, int(np.count_nonzero(chosen == index)))
        else:
            local = scaled_words(coins.view[rows], group.views)
        before = source if sticky is None else sticky.for_rows(rows)
        coordinates = [_coordinates(axis, table, codes, weights, rows, before) for axis in group.axes]
        view[rows] = design.offset(part, index) + local
        made = _word_cells(group, coordinates[0]) if has_words(table) else _cells(group, local, coordinates)
        number[rows], cells[rows] = made
    seeds, reports = _respond(design, number, cells, source, coins, (life, part))
    return view, seeds, reports


def _coordinates(
    axis: Axis, table: Table, codes: Sequence[Integers], weights: Integers, rows: Integers | slice, source: Source
) -> Integers:
    """Where rows lie on an axis; tosses the coins that the axis rounds by."""
    values = codes[axis.attribute][rows] if axis.attribute >= 0 else np.zeros_like(weights[rows])
    up = heavy = np.zeros(values.size, dtype=np.int64)
    if axis.places:
        places = np.array(axis.places)
        interval = np.searchsorted(places, values, side="right") - 1
        if axis.kind == POINTS:
            interval = np.minimum(interval, places.size - 2)
            up = (source.below_each(np.diff(places)[interval]) < values - places[interval]).astype(np.int64)
        values = interval
    elif axis.rounds_value:
        up = source.ratio_coins(values, table.domains[axis.attribute].size - 1).astype(np.int64)
    if axis.rounds_weight:
        heavy = source.ratio_coins(weights[rows], table.many or 1).astype(np.int64)
    coordinates: Integers = axis.coordinate(values, up, heavy)
    return coordinates


def _word_cells(group: Group, words: NDArray[Any]) -> tuple[Integers, Integers]:
    """The same for words, in a group of one level."""
    ((length,),) = group.levels
    cells = min(group.cells((length,)), int(_MANY_CELLS))
    return prefix_numbers(as_bytes(words)[:, :length]), np.full(words.size, cells)


def _cells(group: Group, local: Integers, coordinates: Sequence[Integers]) -> tuple[Integers, Integers]:
    """The number of each row's cell in its view, and how many cells that view has (2^62 also stands for more)."""
    number, cells = np.zeros_like(local), np.ones_like(local)
    nodes: list[Integers] = []
    for axis, choices in zip(reversed(group.axes), reversed(group.levels), strict=True):
        local, chosen = np.divmod(local, len(choices))
        widths = np.array([axis.tree.width(level) for level in choices])[chosen]
        counts = np.array([axis.tree.cells(level) for level in choices])[chosen]
        nodes.append(coordinates[len(group.axes) - 1 - len(nodes)] // widths)
        with np.errstate(over="ignore"):  # numbers of views with too many cells are replaced below
            number = number + nodes[-1] * cells
        cells = np.where(cells > _MANY_CELLS // counts, _MANY_CELLS, cells * counts)
    huge = cells > NUMBERED_CELLS
    if huge.any():
        number = np.where(huge, folded(nodes[::-1]), number)
    return number, cells


def _respond(
    design: Design,
    number: Integers,
    cells: Integers,
    source: Source,
    coins: CoinColumns | None,
    kept: tuple[BulkLife | None, int],
) -> tuple[Words32, Integers]:
    """Seeds and randomised cells. Each view has its oracle; which one it is depends on its number of cells alone."""
    sizes, which = np.unique(cells, return_inverse=True)
    oracles = [design.oracle(int(size)) for size in sizes]
    if coins is None:
        return draw_reports(oracles, which, number, source)
    counts = np.array([oracle.seeds for oracle in oracles], dtype=np.int64)[which]
    seeds = scaled_words(coins.seed, counts).astype(np.uint32)
    life, part = kept
    if life is not None:
        return seeds, life.responses(oracles, which, number, seeds, part, source)
    return draw_reports(oracles, which, number, source, seeds)
