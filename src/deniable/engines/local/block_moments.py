"""Plan and reports → moments on this machine, block by block: contributions, users joined, products, sums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.arrays import Booleans, Floats, Integers
from deniable.engines.duckdb.dimension_tables import DimensionTable
from deniable.engines.duckdb.public_columns import codes, evaluate
from deniable.engines.kernel.contributions import shared_out
from deniable.engines.kernel.grouped_moments import listed_groups, moments_of, stores_of
from deniable.engines.kernel.moment_totals import Totals
from deniable.engines.kernel.plain_loops import takes_plain_loops
from deniable.engines.kernel.user_sums import Columns, Summing, TableSumming
from deniable.engines.kernel.view_sums import (
    MOST_PLACED,
    follows_views,
    has_few_sums,
    placed_contributions,
    totals_by_view,
)
from deniable.engines.reports.layered_store import LayeredStore
from deniable.engines.reports.report_stores import MemoryStore
from deniable.engines.reports.round_stores import PERSON_COLUMN, PeopleInRounds, people_asked
from deniable.engines.reports.user_blocks import Store, joined
from deniable.engines.reports.view_order import ViewOrder
from deniable.queries.answers.estimation import Moments, over_rounds
from deniable.queries.planning.kept_plans import KeptOfPlans
from deniable.queries.planning.plan import Plan, public_groups
from deniable.queries.question.partners import PARTNER
from deniable.queries.question.public_trees import factor_tree, passes
from deniable.queries.question.question import Lookup
from deniable.tables.reports.report_table import arrow_floats, arrow_integers
from deniable.tables.schema.report_format import ANSWER_COLUMNS


def block_moments(
    plan: Plan,
    stores: Mapping[str, Store],
    dimensions: Mapping[str, DimensionTable],
    *,
    counted: bool = True,
    prepared: KeptOfPlans[Summing] | None = None,
) -> Moments:
    """The moments of a plan, for every combination of groups.

    With `counted`, views are divided by their number of reports where that is possible (`PartPlan.countable`). What the
    loops need is kept in `prepared`, which belongs to these stores.
    """
    chosen = stores_of(plan, stores)
    listed, public_count = listed_groups(plan, chosen, dimensions)
    rounds = plan.collection.rounds
    plain = _plain(plan, chosen, public_count)

    def made() -> Summing:
        return Summing.of(plan, chosen, public_count, counted=counted and rounds is None, plain=plain)

    summing = made() if prepared is None or plain else prepared.get(plan, made)
    if (orders := _view_orders(plan, summing, chosen)) is not None:
        totals = summing.empty()
        for order in orders:
            totals.add(totals_by_view(summing, order))
        return moments_of(plan, totals, listed, summing)
    if rounds is None:
        if _says_nothing(plan, summing):
            return moments_of(plan, _of_users(summing, next(iter(chosen.values()))), listed, summing)
        summing, chosen = _with_contributions(plan, summing, chosen)
    totals = summing.empty()
    readers = [_TableReader(plan, table, dimensions) for table in summing.tables]
    optional = {reader.name: reader.read for reader in readers if reader.name in plan.question.optional}
    for block in joined(chosen, {reader.name: reader.columns for reader in readers}, optional):
        loaded = [reader.load(block[reader.name], listed) for reader in readers]
        users = loaded[0].users
        kept = np.logical_and.reduce([table.kept for table in loaded])
        group = np.zeros(users, dtype=np.int64)
        for label, values in listed.items():
            group = group * len(values) + next(table.groups[label] for table in loaded if label in table.groups)
        group = np.where(kept, group, -1)
        reports = [table.reports for table in loaded]
        factors = {number: values for table in loaded for number, values in table.factors.items()}
        absent = {number: table.absent for number, table in enumerate(loaded) if table.absent is not None}

        def work(
            first: int,
            end: int,
            reports: Any = reports,
            factors: Any = factors,
            group: Any = group,
            absent: Any = absent,
        ) -> Totals:
            share = summing.empty()
            summing.add(share, reports, factors, group, first, end, absent=absent)
            return share

        if rounds is not None:  # blocks are cut between people
            persons = _numpy(block[readers[0].name][PERSON_COLUMN])[:: summing.tables[0].slots]
            summing.add(totals, reports, factors, group, 0, users, persons)
            continue
        for share in shared_out(users, work):
            totals.add(share)
    moments = moments_of(plan, totals, listed, summing)
    if rounds is None:
        return moments
    return over_rounds(moments, rounds, *people_asked(rounds, cast("Mapping[str, PeopleInRounds]", chosen)))


def _plain(plan: Plan, stores: Mapping[str, Store], public_groups: int) -> bool:
    """Whether the question is so small that numpy answers it before the compiler is imported."""
    cells = sum(part.cells_per_report for table in plan.tables for part in table.parts)
    outcomes = public_groups * len(plan.private_groups) * len(plan.question.moments)
    columns = max(outcomes, *(table.columns for table in plan.tables))
    return takes_plain_loops(max(store.rows for store in stores.values()), cells, columns)


def _layers(store: Store) -> tuple[MemoryStore, ...]:
    """The layers of a store in memory; none of one in files."""
    if isinstance(store, LayeredStore):
        return store.layers
    return (store,) if isinstance(store, MemoryStore) else ()


def _in_view_order(plan: Plan, name: str, layers: Sequence[MemoryStore]) -> list[ViewOrder] | None:
    """The reports of each layer in the order of their views; None if there are none, or too many views."""
    orders = [layer.by_view(plan.collection.design_of(name).views) for layer in layers]
    return [order for order in orders if order is not None] if orders and None not in orders else None


def _view_orders(plan: Plan, summing: Summing, stores: Mapping[str, Store]) -> list[ViewOrder] | None:
    """The reports in the order of their views, where these are all that a question needs."""
    (name, *others), question = plan.question.tables, plan.question
    store, public = stores[name], plan.public or public_groups(question) or question.lookups
    if others or public or any(question.filters.values()) or store.slots > 1:
        return None
    if not follows_views(summing.tables[0]) or not has_few_sums(summing):
        return None
    return _in_view_order(plan, name, _layers(store))


def _says_nothing(plan: Plan, summing: Summing) -> bool:
    """Whether it does not matter what reports say, only how many there are: all users contribute the same."""
    question = plan.question
    public = plan.public or public_groups(question) or question.lookups or any(question.filters.values())
    return len(summing.tables) == 1 and not summing.tables[0].reads and not public


def _of_users(summing: Summing, store: Store) -> Totals:
    """The totals where all users contribute the same."""
    totals, views = summing.empty(), np.zeros(store.slots, dtype=np.int64)
    summing.add(totals, [(views,)], {}, np.zeros(1, dtype=np.int64), 0, 1)
    totals.multiply(store.rows // store.slots)
    return totals


def _with_contributions(plan: Plan, summing: Summing, stores: Mapping[str, Store]) -> tuple[Summing, dict[str, Store]]:
    """Stores in memory whose reports say what each contributes: they are worked out in the order of views."""
    made, tables = dict(stores), list(summing.tables)
    for number, table in enumerate(summing.tables):
        store = stores[table.name]
        if not follows_views(table) or store.rows * table.columns > MOST_PLACED:
            continue
        layers = _layers(store)
        orders = _in_view_order(plan, table.name, layers)
        if orders is None:
            continue
        placed = tuple(_placed(table, layer, order) for layer, order in zip(layers, orders, strict=True))
        made[table.name] = replace(store, layers=placed) if isinstance(store, LayeredStore) else placed[0]
        tables[number] = replace(table, contributed=True)
    return replace(summing, tables=tuple(tables)), made


def _placed(table: TableSumming, layer: MemoryStore, order: ViewOrder) -> MemoryStore:
    reports = layer.reports
    made = [arrow_floats(values) for values in placed_contributions(table, order)]
    names = [*reports.column_names, *(_contributed(column) for column in range(len(made)))]
    # All at once: every appended column would copy the list of those before it, and ids may be thousands.
    return replace(layer, reports=pa.table([*reports.columns, *made], names=names, metadata=reports.schema.metadata))


def _contributed(column: int) -> str:
    """What a column of contributions is called; no attribute can be."""
    return f"contribution {column}"


@dataclass(frozen=True, slots=True, eq=False)
class _Loaded:
    """A block of one table's reports as arrays, and what its public columns say."""

    users: int
    reports: Columns
    kept: Booleans
    factors: dict[int, Floats]
    groups: dict[str, Integers]
    absent: Booleans | None
    """Who has no row in a table where that is possible."""


class _TableReader:
    """One table of a question: which of its columns are read, and what is made of them."""

    def __init__(self, plan: Plan, table: TableSumming, dimensions: Mapping[str, DimensionTable]) -> None:
        self.name, self._slots = table.name, table.slots
        self._filter = plan.question.filters.get(self.name, ())
        self._factors = [(number, factor) for number, (name, factor) in enumerate(plan.public) if name == self.name]
        self._groups = [group for group in public_groups(plan.question) if group.table == self.name]
        self._lookups = [lookup for lookup in plan.question.lookups if lookup.table == self.name]
        self._dimensions = dimensions
        public = plan.collection[self.name].public_columns if self._filter or self._factors or self._groups else ()
        self.read: tuple[str, ...] = ANSWER_COLUMNS if table.reads else ANSWER_COLUMNS[:1]
        if table.contributed:
            self.read = (ANSWER_COLUMNS[0], *map(_contributed, range(table.columns)))
        self.columns = [*self.read, *public]
        self._optional = self.name in plan.question.optional

    def load(self, reports: pa.Table, listed: Mapping[str, pa.Array]) -> _Loaded:
        """A block's arrays; public factors, which users are kept, and which group they belong to."""
        users = reports.num_rows // self._slots
        read = tuple(_numpy(reports[name]) for name in self.read)
        absent = ~np.asarray(reports[PARTNER].combine_chunks())[:: self._slots] if self._optional else None
        kept = np.ones(users, dtype=bool)
        groups: dict[str, Integers] = {}
        if not (self._filter or self._factors or self._groups):
            return _Loaded(users, read, kept, {}, groups, absent)
        columns = looked_up(self._per_user(reports), self._lookups, self._dimensions)
        filters = [passes(self._filter)] if self._filter else []
        evaluated = evaluate(columns, filters + [factor_tree(factor) for _, factor in self._factors])
        if self._filter:
            kept &= evaluated.pop(0).astype(bool)
        for group in self._groups:
            groups[group.label] = codes(columns[group.column], listed[group.label])
            kept &= groups[group.label] >= 0
        numbers = [number for number, _ in self._factors]
        factors = {number: values.astype(np.float64) for number, values in zip(numbers, evaluated, strict=True)}
        return _Loaded(users, read, kept, factors, groups, absent)

    def _per_user(self, reports: pa.Table) -> pa.Table:
        """Public columns belong to the user and are repeated in each of her reports: the first counts."""
        slots = self._slots
        return reports if slots == 1 else reports.take(arrow_integers(np.arange(0, reports.num_rows, slots)))


def looked_up(columns: pa.Table, lookups: Sequence[Lookup], dimensions: Mapping[str, DimensionTable]) -> pa.Table:
    """A table's public columns, and those of the dimensions that are joined on them, as "alias.column"."""
    for lookup in lookups:
        rows = dimensions[lookup.dimension].rows_of(columns[lookup.attribute], lookup.key)
        for name in rows.column_names:
            columns = columns.append_column(f"{lookup.alias}.{name}", rows[name])
    return columns


def _numpy(column: pa.ChunkedArray) -> NDArray[Any]:
    return np.asarray(column.chunk(0) if column.num_chunks == 1 else column)
