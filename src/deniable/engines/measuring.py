"""Plan and reports → moments: contributions per report, users joined, products, sums. Block by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.engines.blocks import Store, joined
from deniable.engines.dimension_tables import DimensionTable
from deniable.engines.kernel import Program, Terms, Totals, shared_out
from deniable.engines.public_columns import codes, evaluate, factor_sql, tests_sql
from deniable.errors import QueryRefused
from deniable.queries.estimation import Moments
from deniable.queries.plan import MOST_GROUPS, Plan, public_groups
from deniable.queries.question import PrivateGroups, PublicGroups
from deniable.queries.table_plan import TablePlan

Floats = NDArray[np.float64]

MOST_STRATA = 20_000_000
CHUNK = 2**17
"""Contributions that are held at a time by each core: they stay in its cache."""


def measure(
    plan: Plan, stores: Mapping[str, Store], dimensions: Mapping[str, DimensionTable], *, counted: bool = True
) -> Moments:
    """What a plan's moments are, for every combination of groups.

    With `counted`, views are divided by their number of reports where that is possible (`PartPlan.countable`).
    """
    question = plan.question
    for name in question.tables:
        if name not in stores:
            raise QueryRefused(f"there are no reports of table {name!r}", "Collect them first.")
    chosen = {name: stores[name] for name in question.tables}
    listed = {group.label: _values(group, plan, chosen, dimensions) for group in public_groups(question)}
    sizes = [len(values) for values in listed.values()]
    public_count = int(np.prod(sizes, dtype=np.float64)) if sizes else 1
    if public_count * len(plan.private_groups) > MOST_GROUPS:
        raise QueryRefused("there are over 10,000 groups", "Group by fewer attributes, or bins.")
    tables = [_Table(plan, number, chosen, dimensions, counted) for number in range(len(question.tables))]
    strata = [one for one in tables if one.strata]
    offsets = np.cumsum([0, *(one.strata for one in strata)])
    shape = (public_count, len(plan.private_groups), len(question.moments), int(offsets[-1]))
    if float(np.prod(shape, dtype=np.float64)) > MOST_STRATA:
        return measure(plan, stores, dimensions, counted=False)
    totals = Totals.empty(*shape)
    used = plan.factors.any(axis=0)
    terms = Terms(plan.starts, plan.coefficients, np.ascontiguousarray(plan.factors[:, used]))
    width = 1 + sum(one.plan.columns for one in tables) + len(plan.public)
    chunk = max(CHUNK // width, 64)
    for block in joined(chosen, {one.name: one.columns for one in tables}):
        loaded = [one.load(block[one.name], listed) for one in tables]
        users = loaded[0].users
        kept = np.logical_and.reduce([one.kept for one in loaded])
        group = np.zeros(users, dtype=np.int64)
        for label, values in listed.items():
            group = group * len(values) + next(one.groups[label] for one in loaded if label in one.groups)
        group = np.where(kept, group, -1)

        stratum = np.array(
            [one.slots(block[one.name]) + first for one, first in zip(strata, offsets, strict=False)], dtype=np.int64
        ).reshape(len(strata), users)

        def work(first: int, end: int, loaded: Any = loaded, group: Any = group, stratum: Any = stratum) -> Totals:
            mine = Totals.empty(*shape)
            for low in range(first, end, chunk):
                high = min(low + chunk, end)
                factors = np.empty((high - low, width))
                factors[:, 0] = 1.0
                for number, (table, one) in enumerate(zip(tables, loaded, strict=True)):
                    start = plan.offset(number)
                    table.contributions(one, low, high, factors[:, start : start + table.plan.columns])
                    for place, values in one.factors.items():
                        factors[:, plan.offset(len(tables)) + place] = values[low:high]
                mine.add_users(factors, group[low:high], stratum[:, low:high], terms)
            return mine

        for mine in shared_out(users, work):
            totals.add(mine)
    return _moments(plan, totals, listed, [one.counts for one in strata])


@dataclass(frozen=True, slots=True, eq=False)
class _Loaded:
    """A block of one table's reports as arrays, and what its public columns say."""

    users: int
    view: NDArray[np.uint32]
    seed: NDArray[np.uint32]
    y: NDArray[np.uint32]
    kept: NDArray[np.bool_]
    factors: dict[int, Floats]
    groups: dict[str, NDArray[np.int64]]


class _Table:
    """One table of a question: which of its columns are read, and what is made of them."""

    def __init__(
        self,
        plan: Plan,
        number: int,
        stores: Mapping[str, Store],
        dimensions: Mapping[str, DimensionTable],
        counted: bool,
    ) -> None:
        self.plan: TablePlan = plan.tables[number]
        self.name = self.plan.table
        self._tau = plan.collection[self.name].tau
        design = plan.collection.design_of(self.name)
        self.counts: Floats = np.zeros(0)
        scales: Floats | None = None
        views = self.plan.parts[0].views
        store = stores[self.name]
        if counted and self.plan.parts[0].countable(store.slots, store.rows):
            found = store.view_counts(design.views)[[one.view for one in views]].astype(np.float64)
            if found.all():
                scales = np.array([one.probability for one in views]) * store.rows / found
                self.counts = np.concatenate(([store.rows - found.sum()], found))
        self._programs = [Program.of(part, design.views, scales) for part in self.plan.parts]
        self._filter = plan.question.filters.get(self.name, ())
        self._factors = [(place, one) for place, (name, one) in enumerate(plan.public) if name == self.name]
        self._groups = [group for group in public_groups(plan.question) if group.table == self.name]
        self._lookups = [one for one in plan.question.lookups if one.table == self.name]
        self._dimensions = dimensions
        public = plan.collection[self.name].public if self._filter or self._factors or self._groups else ()
        needed = any(part.views for part in self.plan.parts)
        self.columns = [*(("view", "seed", "y") if needed else ("view",)), *public]

    @property
    def strata(self) -> int:
        """How many strata the reports of this table form; none if they are not counted."""
        return int(self.counts.size)

    def slots(self, reports: pa.Table) -> NDArray[np.int64]:
        """The stratum of every user."""
        return np.asarray(self._programs[0].slot_of[_numpy(reports["view"])], dtype=np.int64)

    def contributions(self, block: _Loaded, first: int, end: int, out: Floats) -> None:
        """The contributions of some users: multiplied over the parts of a design, added over slots."""
        parts, slots = len(self._programs), len(self._programs) * self._tau
        rows: Floats | None = None
        for place, program in enumerate(self._programs):
            if not self.plan.parts[place].views:
                mine = np.tile(self.plan.parts[place].constants, ((end - first) * self._tau, 1))
            else:
                # The parts of a row alternate.
                mine = program.contributions(
                    *(
                        column[first * slots + place : end * slots : parts]
                        for column in (block.view, block.seed, block.y)
                    )
                )
            rows = mine if rows is None else rows * mine
        assert rows is not None  # noqa: S101 - a design has parts
        out[:] = rows.reshape(-1, self._tau, out.shape[1]).sum(axis=1) if self._tau > 1 else rows

    def load(self, reports: pa.Table, listed: Mapping[str, pa.Array]) -> _Loaded:
        """A block's arrays; public factors, which users are kept, and which group they belong to."""
        slots = self._tau * len(self._programs)
        users = reports.num_rows // slots
        none = np.zeros(0, dtype=np.uint32)
        view, seed, y = (
            _numpy(reports[name]) if name in reports.column_names else none for name in ("view", "seed", "y")
        )
        kept = np.ones(users, dtype=bool)
        groups: dict[str, NDArray[np.int64]] = {}
        if not (self._filter or self._factors or self._groups):
            return _Loaded(users, view, seed, y, kept, {}, groups)
        columns = looked_up(self._per_user(reports), self._lookups, self._dimensions)
        wanted = [tests_sql(self._filter)] if self._filter else []
        found = evaluate(columns, wanted + [factor_sql(one) for _, one in self._factors])
        if self._filter:
            kept &= found.pop(0).astype(bool)
        for group in self._groups:
            groups[group.label] = codes(columns[group.column], listed[group.label])
            kept &= groups[group.label] >= 0
        factors = {place: values.astype(np.float64) for (place, _), values in zip(self._factors, found, strict=True)}
        return _Loaded(users, view, seed, y, kept, factors, groups)

    def _per_user(self, reports: pa.Table) -> pa.Table:
        """Public columns belong to the user, and stand in each of her reports."""
        slots = self._tau * len(self._programs)
        return reports if slots == 1 else reports.take(pa.array(np.arange(0, reports.num_rows, slots)))


def looked_up(columns: pa.Table, lookups: Any, dimensions: Mapping[str, DimensionTable]) -> pa.Table:
    """A table's public columns, and those of the dimensions that hang on them, as "alias.column"."""
    for one in lookups:
        rows = dimensions[one.dimension].rows_of(columns[one.attribute], one.key)
        for name in rows.column_names:
            columns = columns.append_column(f"{one.alias}.{name}", rows[name])
    return columns


def _values(
    group: PublicGroups, plan: Plan, stores: Mapping[str, Store], dimensions: Mapping[str, DimensionTable]
) -> pa.Array:
    """The values of a public group, sorted, nothing last."""
    for one in plan.question.lookups:
        if group.column.startswith(f"{one.alias}.") and one.table == group.table:
            column = dimensions[one.dimension].frame[group.column.removeprefix(f"{one.alias}.")]
            return column.combine_chunks().unique().sort()
    return stores[group.table].distinct(group.column).sort()


def _numpy(column: pa.ChunkedArray) -> NDArray[Any]:
    return np.asarray(column.chunk(0) if column.num_chunks == 1 else column)


def _moments(plan: Plan, totals: Totals, listed: Mapping[str, pa.Array], counts: list[Floats]) -> Moments:
    """Rows in the order of the groups; public combinations that nobody has are left out."""
    question = plan.question
    values = {label: found.to_pylist() for label, found in listed.items()}
    sizes = [len(found) for found in values.values()]
    order: list[tuple[tuple[int, ...], tuple[Any, ...], int, int]] = []
    for public in range(totals.users.size):
        if listed and not totals.users[public]:
            continue
        places = dict(zip(values, np.unravel_index(public, sizes), strict=True)) if sizes else {}
        for private, combination in enumerate(plan.private_groups):
            rank, key, mine = [], [], iter(combination)
            for group in question.groups:
                place = next(mine) if isinstance(group, PrivateGroups) else int(places[group.label])
                rank.append(place)
                key.append(group.values[place] if isinstance(group, PrivateGroups) else values[group.label][place])
            order.append((tuple(rank), tuple(key), public, private))
    order.sort(key=lambda row: row[0])
    public_rows = np.array([row[2] for row in order], dtype=np.int64)
    private_rows = np.array([row[3] for row in order], dtype=np.int64)
    return Moments(
        keys=tuple(row[1] for row in order),
        users=totals.users[public_rows].astype(np.float64),
        sums=totals.sums[public_rows, private_rows],
        crosses=_symmetric(totals.crosses[public_rows, private_rows]),
        between=_between(totals, counts)[public_rows, private_rows],
    )


def _symmetric(lower: Floats) -> Floats:
    """Matrices of which the lower triangles are given."""
    mirrored = np.swapaxes(lower, -1, -2).copy()
    moments = np.arange(lower.shape[-1])
    mirrored[..., moments, moments] = 0.0
    return np.asarray(lower + mirrored)


def _between(totals: Totals, counts: list[Floats]) -> Floats:
    """What the differences between strata add to the sums of products, and counting takes away again.

    For each table whose views are counted: Σ_v S_v·S_vᵀ/N_v − S·Sᵀ/N, S_v being the moments of the N_v users whose
    report is of view v.
    """
    total = np.zeros(totals.crosses.shape)
    first = 0
    for found in counts:
        mine = totals.by_stratum[first : first + found.size]
        first += found.size
        total += np.einsum("v,vpgi,vpgj->pgij", 1 / np.maximum(found, 1.0), mine, mine)
        total -= np.einsum("pgi,pgj->pgij", totals.sums, totals.sums) / max(found.sum(), 1.0)
    return total
