"""Plan and reports → moments: contributions per report, users joined, products, sums. Block by block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.arrays import Booleans, Floats, Integers
from deniable.engines.duckdb.dimension_tables import DimensionTable
from deniable.engines.duckdb.public_columns import codes, evaluate, factor_sql, tests_sql
from deniable.engines.kernel.cell_pairs import Pairs
from deniable.engines.kernel.contributions import shared_out
from deniable.engines.kernel.moment_totals import Totals
from deniable.engines.kernel.pair_sums import totals_of
from deniable.engines.kernel.user_sums import Columns, Summing, TableSumming
from deniable.engines.reports.user_blocks import Known, Store, joined
from deniable.errors import QueryRefused
from deniable.queries.answers.estimation import Moments
from deniable.queries.planning.known_sums import known_moments
from deniable.queries.planning.moment_columns import check_crosses
from deniable.queries.planning.plan import Plan, public_groups
from deniable.queries.question.question import MOST_GROUPS, PrivateGroups, PublicGroups

S = TypeVar("S", bound=Known)


def measure_pairs(plan: Plan, stores: Mapping[str, Known], pairs: Pairs) -> Moments:
    """The same moments without reading reports, for a question that needs only the pairs of cells they support."""
    chosen = asked_stores(plan, stores)
    summing = Summing.of(plan, chosen, 1, counted=True)
    design = plan.collection.design_of(plan.tables[0].table)
    totals = totals_of(plan, summing, pairs, chosen[plan.tables[0].table].view_counts(design.views))
    return moments_of(plan, totals, {}, [one.counts for one in summing.tables if one.counts.size])


def measure(
    plan: Plan, stores: Mapping[str, Store], dimensions: Mapping[str, DimensionTable], *, counted: bool = True
) -> Moments:
    """What a plan's moments are, for every combination of groups.

    With `counted`, views are divided by their number of reports where that is possible (`PartPlan.countable`).
    """
    chosen = asked_stores(plan, stores)
    listed, public_count = listed_groups(plan, chosen, dimensions)
    summing = Summing.of(plan, chosen, public_count, counted=counted)
    totals = summing.empty()
    tables = [_Table(plan, one, dimensions) for one in summing.tables]
    for block in joined(chosen, {one.name: one.columns for one in tables}):
        loaded = [one.load(block[one.name], listed) for one in tables]
        users = loaded[0].users
        kept = np.logical_and.reduce([one.kept for one in loaded])
        group = np.zeros(users, dtype=np.int64)
        for label, values in listed.items():
            group = group * len(values) + next(one.groups[label] for one in loaded if label in one.groups)
        group = np.where(kept, group, -1)
        reports = [one.reports for one in loaded]
        factors = {place: values for one in loaded for place, values in one.factors.items()}

        def work(first: int, end: int, reports: Any = reports, factors: Any = factors, group: Any = group) -> Totals:
            mine = summing.empty()
            summing.add(mine, reports, factors, group, first, end)
            return mine

        for mine in shared_out(users, work):
            totals.add(mine)
    return moments_of(plan, totals, listed, [one.counts for one in summing.tables if one.counts.size])


def asked_stores(plan: Plan, stores: Mapping[str, S]) -> dict[str, S]:
    """The reports of the tables in a question."""
    for name in plan.question.tables:
        if name not in stores:
            raise QueryRefused(f"there are no reports of table {name!r}", "Collect them first.")
    return {name: stores[name] for name in plan.question.tables}


def listed_groups(
    plan: Plan, stores: Mapping[str, Known], dimensions: Mapping[str, DimensionTable]
) -> tuple[dict[str, pa.Array], int]:
    """The values of each public group, by its label, and how many combinations they have."""
    listed = {group.label: _values(group, plan, stores, dimensions) for group in public_groups(plan.question)}
    count = int(np.prod([len(values) for values in listed.values()], dtype=np.float64)) if listed else 1
    if count * len(plan.private_groups) > MOST_GROUPS:
        raise QueryRefused(f"there are over {MOST_GROUPS:,} groups", "Group by fewer attributes, or bins.")
    check_crosses(plan.question, count * len(plan.private_groups))
    return listed, count


@dataclass(frozen=True, slots=True, eq=False)
class _Loaded:
    """A block of one table's reports as arrays, and what its public columns say."""

    users: int
    reports: Columns
    kept: Booleans
    factors: dict[int, Floats]
    groups: dict[str, Integers]


class _Table:
    """One table of a question: which of its columns are read, and what is made of them."""

    def __init__(self, plan: Plan, summing: TableSumming, dimensions: Mapping[str, DimensionTable]) -> None:
        self.name, self._slots = summing.name, summing.slots
        self._filter = plan.question.filters.get(self.name, ())
        self._factors = [(place, one) for place, (name, one) in enumerate(plan.public) if name == self.name]
        self._groups = [group for group in public_groups(plan.question) if group.table == self.name]
        self._lookups = [one for one in plan.question.lookups if one.table == self.name]
        self._dimensions = dimensions
        public = plan.collection[self.name].public_columns if self._filter or self._factors or self._groups else ()
        self.columns = [*(("view", "seed", "y") if summing.reads else ("view",)), *public]

    def load(self, reports: pa.Table, listed: Mapping[str, pa.Array]) -> _Loaded:
        """A block's arrays; public factors, which users are kept, and which group they belong to."""
        users = reports.num_rows // self._slots
        none = np.zeros(0, dtype=np.uint32)
        view, seed, y = (
            _numpy(reports[name]) if name in reports.column_names else none for name in ("view", "seed", "y")
        )
        kept = np.ones(users, dtype=bool)
        groups: dict[str, Integers] = {}
        if not (self._filter or self._factors or self._groups):
            return _Loaded(users, (view, seed, y), kept, {}, groups)
        columns = looked_up(self._per_user(reports), self._lookups, self._dimensions)
        wanted = [tests_sql(self._filter)] if self._filter else []
        found = evaluate(columns, wanted + [factor_sql(one) for _, one in self._factors])
        if self._filter:
            kept &= found.pop(0).astype(bool)
        for group in self._groups:
            groups[group.label] = codes(columns[group.column], listed[group.label])
            kept &= groups[group.label] >= 0
        factors = {place: values.astype(np.float64) for (place, _), values in zip(self._factors, found, strict=True)}
        return _Loaded(users, (view, seed, y), kept, factors, groups)

    def _per_user(self, reports: pa.Table) -> pa.Table:
        """Public columns belong to the user, and stand in each of her reports."""
        slots = self._slots
        return reports if slots == 1 else reports.take(pa.array(np.arange(0, reports.num_rows, slots)))


def looked_up(columns: pa.Table, lookups: Any, dimensions: Mapping[str, DimensionTable]) -> pa.Table:
    """A table's public columns, and those of the dimensions that hang on them, as "alias.column"."""
    for one in lookups:
        rows = dimensions[one.dimension].rows_of(columns[one.attribute], one.key)
        for name in rows.column_names:
            columns = columns.append_column(f"{one.alias}.{name}", rows[name])
    return columns


def _values(
    group: PublicGroups, plan: Plan, stores: Mapping[str, Known], dimensions: Mapping[str, DimensionTable]
) -> pa.Array:
    """The values of a public group, sorted, nothing last."""
    for one in plan.question.lookups:
        if group.column.startswith(f"{one.alias}.") and one.table == group.table:
            column = dimensions[one.dimension].frame[group.column.removeprefix(f"{one.alias}.")]
            return column.combine_chunks().unique().sort()
    return stores[group.table].distinct(group.column).sort()


def _numpy(column: pa.ChunkedArray) -> NDArray[Any]:
    return np.asarray(column.chunk(0) if column.num_chunks == 1 else column)


def moments_of(plan: Plan, totals: Totals, listed: Mapping[str, pa.Array], counts: list[Floats]) -> Moments:
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
        private=private_rows,
        known=known_moments(plan)[private_rows],
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
