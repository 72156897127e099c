"""What engines share around the sums: the reports a plan reads, the public groups there are, totals → moments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from deniable.arrays import Floats
from deniable.engines.duckdb.dimension_tables import DimensionTable
from deniable.engines.kernel.cell_pairs import Pairs
from deniable.engines.kernel.moment_totals import Totals
from deniable.engines.kernel.pair_sums import totals_of
from deniable.engines.kernel.user_sums import Summing
from deniable.engines.reports.user_blocks import ReportFacts
from deniable.errors import QueryRefused
from deniable.queries.answers.estimation import Moments
from deniable.queries.planning.known_sums import known_moments
from deniable.queries.planning.moment_columns import check_crosses
from deniable.queries.planning.plan import Plan, public_groups
from deniable.queries.question.question import MOST_GROUPS, PrivateGroups, PublicGroups

F = TypeVar("F", bound=ReportFacts)


def moments_from_pairs(plan: Plan, stores: Mapping[str, ReportFacts], pairs: Pairs) -> Moments:
    """The moments of a plan that needs only the pairs of cells that reports support; no report is read."""
    chosen = stores_of(plan, stores)
    summing = Summing.of(plan, chosen, 1, counted=True)
    design = plan.collection.design_of(plan.tables[0].table)
    totals = totals_of(plan, summing, pairs, chosen[plan.tables[0].table].view_counts(design.views))
    return moments_of(plan, totals, {}, summing)


def stores_of(plan: Plan, stores: Mapping[str, F]) -> dict[str, F]:
    """The reports of the tables in a plan."""
    for name in plan.question.tables:
        if name not in stores:
            raise QueryRefused(f"there are no reports of table {name!r}", "Collect them first.")
    return {name: stores[name] for name in plan.question.tables}


def rows_of_reports(plan: Plan, stores: Mapping[str, ReportFacts]) -> dict[str, int]:
    """How many reports each table of a plan has, that of another population included."""
    rows = {name: store.rows for name, store in stores_of(plan, stores).items()}
    if plan.keyed is not None:
        rows[plan.keyed.join.table] = stores[plan.keyed.join.table].rows
    return rows


def check_believed(name: str, stores: Mapping[str, ReportFacts], refused: Mapping[str, Counter[str]]) -> None:
    """Refuse to answer zero if there are reports but all of them were refused."""
    reasons = refused.get(name)
    if name in stores and not stores[name].rows and reasons and reasons.total():
        (reason, _), *_ = reasons.most_common(1)
        raise QueryRefused(
            f"all reports of table {name!r} were refused: {reason}",
            "Open them with the collection.json that they were made under.",
        )


def listed_groups(
    plan: Plan, stores: Mapping[str, ReportFacts], dimensions: Mapping[str, DimensionTable]
) -> tuple[dict[str, pa.Array], int]:
    """The values of each public group, by its label, and how many combinations they have."""
    listed = {group.label: _values(group, plan, stores, dimensions) for group in public_groups(plan.question)}
    count = int(np.prod([len(values) for values in listed.values()], dtype=np.float64)) if listed else 1
    if count * len(plan.private_groups) > MOST_GROUPS:
        raise QueryRefused(f"there are over {MOST_GROUPS:,} groups", "Group by fewer attributes, or bins.")
    check_crosses(plan.question, count * len(plan.private_groups))
    return listed, count


def _values(
    group: PublicGroups, plan: Plan, stores: Mapping[str, ReportFacts], dimensions: Mapping[str, DimensionTable]
) -> pa.Array:
    """The values of a public group, sorted, NULL last."""
    for lookup in plan.question.lookups:
        if group.column.startswith(f"{lookup.alias}.") and lookup.table == group.table:
            column = dimensions[lookup.dimension].frame[group.column.removeprefix(f"{lookup.alias}.")]
            values = column.combine_chunks().unique().sort()
            return _with_null(values) if lookup.outer or group.table in plan.question.optional else values
    values = stores[group.table].distinct(group.column).sort()
    return _with_null(values) if group.table in plan.question.optional else values


def _with_null(values: pa.Array) -> pa.Array:
    return values if values.null_count else pa.concat_arrays([values, pa.nulls(1, values.type)])


def moments_of(plan: Plan, totals: Totals, listed: Mapping[str, pa.Array], summing: Summing) -> Moments:
    """Totals as rows in the order of the groups; combinations of public groups without users are left out."""
    question = plan.question
    values = {label: array.to_pylist() for label, array in listed.items()}
    sizes = [len(known) for known in values.values()]
    order: list[tuple[tuple[int, ...], tuple[Any, ...], int, int]] = []
    for public in range(totals.users.size):
        if listed and not totals.users[public]:
            continue
        codes = dict(zip(values, np.unravel_index(public, sizes), strict=True)) if sizes else {}
        for private, combination in enumerate(plan.private_groups):
            rank, key, private_codes = [], [], iter(combination)
            for group in question.groups:
                code = next(private_codes) if isinstance(group, PrivateGroups) else int(codes[group.label])
                rank.append(code)
                key.append(group.values[code] if isinstance(group, PrivateGroups) else values[group.label][code])
            order.append((tuple(rank), tuple(key), public, private))
    order.sort(key=lambda row: row[0])
    public_rows = np.array([row[2] for row in order], dtype=np.int64)
    private_rows = np.array([row[3] for row in order], dtype=np.int64)
    return Moments(
        keys=tuple(row[1] for row in order),
        users=totals.users[public_rows].astype(np.float64),
        sums=totals.sums[public_rows, private_rows],
        crosses=_symmetric(totals.crosses[public_rows, private_rows]),
        between=_between(totals, summing)[public_rows, private_rows],
        private=private_rows,
        known=known_moments(plan)[private_rows],
        by_round=None if plan.collection.rounds is None else _symmetric(totals.by_round[public_rows, private_rows]),
        rows=None if plan.collection.rounds is None else totals.rows[public_rows].astype(np.float64),
    )


def _symmetric(lower: Floats) -> Floats:
    """Symmetric matrices from their lower triangles."""
    mirrored = np.swapaxes(lower, -1, -2).copy()
    moments = np.arange(lower.shape[-1])
    mirrored[..., moments, moments] = 0.0
    return np.asarray(lower + mirrored)


def _between(totals: Totals, summing: Summing) -> Floats:
    """What the differences between strata add to the sums of products, and counting takes away again.

    For each table whose views are counted: Σ_v S_v·S_vᵀ/N_v − S·Sᵀ/N, where S_v are the moments of the N_v users whose
    report is of view v.
    """
    total = np.zeros(totals.crosses.shape)
    first = 0
    for counts in (table.counts for table in summing.tables if table.counts.size):
        strata = totals.by_stratum[first : first + counts.size]
        first += counts.size
        total += np.einsum("v,vpgi,vpgj->pgij", 1 / np.maximum(counts, 1.0), strata, strata)
        total -= np.einsum("pgi,pgj->pgij", totals.sums, totals.sums) / max(counts.sum(), 1.0)
    return total
