"""From report folders to reports that can be asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.arrays import Floats
from deniable.checks import check_integer, check_number
from deniable.collection import Collection
from deniable.engines.collecting.collected_reports import Collected, Reports
from deniable.engines.collecting.input_frames import as_arrow
from deniable.engines.duckdb.dimension_tables import DimensionTable
from deniable.engines.duckdb.spill_folders import spill_place
from deniable.engines.kernel.cell_counts import cell_counts
from deniable.engines.kernel.cell_pairs import Pairs, cell_pairs, has_few_pairs
from deniable.engines.kernel.pair_sums import needs_pairs_only, pays
from deniable.engines.local.moments import measure, measure_pairs
from deniable.engines.reports.file_validation import validated_files
from deniable.engines.reports.report_files import ReportFiles
from deniable.engines.reports.report_folders import read_folder
from deniable.engines.reports.report_stores import FileStore, memory_stores, with_text_ids
from deniable.engines.reports.user_blocks import Store
from deniable.errors import InvalidParameter, QueryRefused
from deniable.notebook import html_table
from deniable.queries.answers.consistent.consistent_answers import CONSISTENT, consistent_answer
from deniable.queries.answers.effective_users import effective_users
from deniable.queries.answers.estimation import Moments, answer
from deniable.queries.answers.model_error import model_spread
from deniable.queries.answers.result import Result
from deniable.queries.forecasts.forecast import Explanation, Forecast
from deniable.queries.forecasts.prediction import predict
from deniable.queries.grids.smoothness_evidence import Beliefs, Evidence
from deniable.queries.parsing.sql import parse
from deniable.queries.planning.plan import Plan, make_plan
from deniable.queries.planning.revised_plan import revised
from deniable.queries.weights.table_plan import DIRECT
from deniable.simulation import NOTE
from deniable.tables.designs.views import View
from deniable.tables.reports.report_table import OTHER_SPECIFICATION, names_origin, nobody, validate
from deniable.tables.specification.specification import Specification
from deniable.wording import counted

PLANS_KEPT = 64
BYTES_PER_REPORT = 64
MEMORY = 2**30
"""Reports that need less are kept in memory; more are read from their files for every question."""


@dataclass(frozen=True, slots=True)
class Database:
    """The validated reports of a collection, and what was refused. Threads may share it.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> frame = {"uid": range(10_000), "age": [20, 30] * 5_000}
    >>> db = dn.connect(shop.perturb(users=frame, source=dn.SeededSource(1), simulation=True))
    >>> print(db.sql("SELECT AVG(age) AS age FROM users"))
    age (± standard error)
              25.04 ± 0.90
    simulation: no privacy
    """

    collection: Collection
    stores: Mapping[str, Store]
    refused: Mapping[str, Counter[str]]
    """For each table, how many reports were refused, by reason."""
    dimensions: Mapping[str, DimensionTable]
    simulation: bool = False
    """Whether the reports protect nobody; every answer says so."""
    _plans: dict[tuple[str, str, str, bool], Plan] = field(default_factory=dict, init=False, repr=False)
    _beliefs: dict[str, Beliefs] = field(default_factory=dict, init=False, repr=False)
    _pairs: dict[str, Pairs] = field(default_factory=dict, init=False, repr=False)

    def sql(
        self,
        text: str,
        *,
        weights: str = "optimal",
        sums: str = DIRECT,
        confidence: float = 0.95,
        simultaneous: bool = False,
        clip: bool = False,
        nonnegative: bool = False,
        unbiased: bool = False,
        postprocess: str | None = None,
    ) -> Result:
        """Answer a question in SQL, every number with its standard error.

        COUNT(*), SUM, AVG, VAR_POP, VAR_SAMP and STDDEV of private and public attributes, and arithmetic with them;
        from one table or several joined with USING (uid), and from dimensions; WHERE and GROUP BY on private and public
        attributes; ORDER BY, HAVING, LIMIT. Anything else is refused by name.

        `weights` is "optimal", "greedy" or "rdc(k)"; `sums` is "direct", or "designed" for the rounded values that
        AHIO, EHIO and SR-HIO collect. With `simultaneous` all intervals of an answer hold at once. `clip` cuts
        estimates to what is possible, `nonnegative` only at zero: they look better and are biased. On a grid `unbiased`
        allows only what its cells and points tell without any assumption; other designs need none. There
        `postprocess="consistent"` answers from one possible table of cells instead: less noise, and biased.

        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
        >>> frame = {"uid": range(10_000), "age": [20, 30] * 5_000}
        >>> db = dn.connect(shop.perturb(users=frame, source=dn.SeededSource(1), simulation=True))
        >>> answer = db.sql("SELECT COUNT(*) AS young FROM users WHERE age < 25")
        >>> print(answer.scalar())
        5,274 ± 204 (95%: 4,875 to 5,674)
        """
        check_number("confidence", confidence, "must lie between 0 and 1", "Use 0.95.", above=0, below=1)
        plan = self.plan(text, weights=weights, sums=sums, unbiased=unbiased)
        tables = [self.collection[name] for name in plan.question.tables]
        for table in tables:
            self._check_believed(table.name)
        moments = self._moments(plan)
        # Weights that assume something do not count rows once or not at all.
        single_rows = all(table.many is None for table in tables) and all(one.bias is None for one in plan.tables)
        result = answer(
            plan.question,
            moments,
            single_rows=single_rows,
            confidence=confidence,
            simultaneous=simultaneous,
            clip=clip,
            nonnegative=nonnegative,
            rows_per_user=float(np.prod([table.many or 1 for table in tables])),
            model=model_spread(self.revised(plan), moments),
            effective=effective_users(plan, moments, single_rows=single_rows),
        )
        if postprocess not in (None, CONSISTENT):
            raise InvalidParameter("postprocess", "is unknown", f'Use "{CONSISTENT}", or leave it out.')
        if postprocess == CONSISTENT and (self.collection.grids is None or unbiased):
            raise QueryRefused("postprocess is for grids and biased", "Leave it out, or unbiased.")
        # What is known without any report is consistent as it is.
        if postprocess == CONSISTENT and any(part.views for one in plan.tables for part in one.parts):
            result = consistent_answer(plan, self._moments, result.answers, confidence, simultaneous=simultaneous)
        return replace(result, simulation=self.simulation)

    def _users(self, tables: tuple[str, ...]) -> int:
        """How many users can be in all of some tables."""
        known = [self.stores[name] for name in tables if name in self.stores]
        return min((store.rows // store.slots for store in known), default=0)

    def _check_believed(self, name: str) -> None:
        """Refuse to answer zero where there are reports, but not one that can be believed."""
        refused = self.refused.get(name)
        if name in self.stores and not self.stores[name].rows and refused and refused.total():
            (reason, _), *_ = refused.most_common(1)
            raise QueryRefused(
                f"all reports of table {name!r} were refused: {reason}",
                "Open them beside the collection.json they were made with.",
            )

    def revised(self, plan: Plan) -> Plan:
        """A plan in the light of what the reports tell of how smooth the data is: weights stay, model errors may grow.

        Of designs other than grids, which assume nothing, the plan stays as it is. Reports are asked once per table.

        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0, design="grid")
        >>> frame = {"uid": range(10_000), "age": [20, 30] * 5_000}
        >>> db = dn.connect(shop.perturb(users=frame, source=dn.SeededSource(1), simulation=True))
        >>> plan = db.plan("SELECT COUNT(*) FROM users WHERE age < 25")
        >>> str(db.revised(plan)) == str(plan)
        True
        """
        known = self._beliefs
        for one in plan.tables:
            if one.bias is not None and one.bias.system.views and one.table not in known:
                evidence = Evidence.of(self.collection, one.table)
                counts = self._cell_counts(one.table, evidence.views)
                reports = self.stores[one.table].view_counts(self.collection.design_of(one.table).views)
                known[one.table] = evidence.beliefs(counts, reports)
        return revised(plan, known)

    def _moments(self, plan: Plan) -> Moments:
        """What the reports say: read for this question, or counted once for all that need no more than that."""
        name = plan.tables[0].table
        if name in self.stores and needs_pairs_only(plan):
            design = self.collection.design_of(name)
            possible = has_few_pairs(design, self.stores[name].slots)
            if name not in self._pairs and possible and pays(plan.tables[0].parts[0], design):
                self._pairs[name] = self._cell_pairs(name)
            if name in self._pairs:
                return measure_pairs(plan, self.stores, self._pairs[name])
        return self._measured(plan)

    def _measured(self, plan: Plan) -> Moments:
        """What the reports say, when all are read; another engine does it in its own way, as with what follows."""
        return measure(plan, self.stores, self.dimensions)

    def _cell_pairs(self, name: str) -> Pairs:
        """How many reports of a table support two cells at once."""
        return cell_pairs(self.stores[name], self.collection.design_of(name))

    def _cell_counts(self, name: str, views: Sequence[View]) -> Floats:
        """How many rows of a table there are in each cell of some views."""
        return cell_counts(self.stores[name], views)

    def plan(self, text: str, *, weights: str = "optimal", sums: str = DIRECT, unbiased: bool = False) -> Plan:
        """How a question would be answered: a value that prints.

        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
        >>> frame = {"uid": range(10_000), "age": [20, 30] * 5_000}
        >>> db = dn.connect(shop.perturb(users=frame, source=dn.SeededSource(1), simulation=True))
        >>> print(db.plan("SELECT COUNT(*) FROM users WHERE age < 25"))
        optimal weights, direct sums
        m0 = count(*): 1 term
        count = m0
        table users: 3 views, 75.0% of the reports, 12.0 cells per report
          age 1+4+19+25
        """
        key = (text, weights, sums, unbiased)
        made = self._plans.get(key)
        if made is None:
            question = parse(text, self.collection, self.dimensions, centred=sums == DIRECT)
            users = self._users(question.tables)
            made = make_plan(question, self.collection, weights, sums, users=max(users, 1), unbiased=unbiased)
            if len(self._plans) >= PLANS_KEPT:
                self._plans.clear()
            self._plans[key] = made
        return made

    def explain(
        self, text: str, *, weights: str = "optimal", sums: str = DIRECT, unbiased: bool = False
    ) -> Explanation:
        """How a question is answered, how many reports count, and the error to expect, with its causes; it prints.

        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
        >>> frame = {"uid": range(10_000), "age": [20, 30] * 5_000}
        >>> db = dn.connect(shop.perturb(users=frame, source=dn.SeededSource(1), simulation=True))
        >>> print(db.explain("SELECT COUNT(*) FROM users WHERE age < 25"))
        optimal weights, direct sums
        m0 = count(*): 1 term
        count = m0
        table users: 3 views, 75.0% of the reports, 12.0 cells per report
          age 1+4+19+25
        users: 7,500 of 10,000 reports count, 1 per user with ε = 2 each
        predicted:
        10,000 users, ε = 2, design hio, optimal weights
               stderr  of users  truncation  rounding  view sampling  randomiser
        count   196.1    1.961%          0%        0%            10%         90%
        Assumed: rows spread evenly over the domains, half as many rows per user as the
        table allows, all users pass public conditions, public measures of size one.
        """
        plan = self.plan(text, weights=weights, sums=sums, unbiased=unbiased)
        stores = {name: self.stores[name] for name in plan.question.tables if name in self.stores}
        missing = [name for name in plan.question.tables if name not in stores]
        if missing:
            raise QueryRefused(f"there are no reports of table {missing[0]!r}", "Collect them first.")
        users = self._users(plan.question.tables)
        predicted = predict(plan, users) if users else ()
        return Explanation(Forecast(plan, users, predicted), {name: store.rows for name, store in stores.items()})

    def __repr__(self) -> str:
        kept = ", ".join(
            f"{name}: {counted(store.rows, 'report')}"
            + (f" ({total:,} refused)" if (total := self.refused[name].total()) else "")
            for name, store in self.stores.items()
        )
        return f"Database({kept}{'; simulation' * self.simulation})"

    def _repr_html_(self) -> str:
        """What can be asked, for notebooks."""
        rows = (
            (
                name,
                f"{store.rows:,}",
                f"{self.refused[name].total():,}",
                ", ".join(self.collection[name].private),
                ", ".join(self.collection[name].public),
            )
            for name, store in self.stores.items()
        )
        return html_table(
            ("table", "reports", "refused", "private", "public"),
            rows,
            title=f"Reports under ε = {self.collection.epsilon:g} per user",
            notes=[
                *([f"dimensions: {', '.join(self.dimensions)}"] if self.dimensions else []),
                *[NOTE] * self.simulation,
            ],
        )


def connect(
    reports: str | Path | Reports | Collected | Mapping[str, Any],
    *,
    dimensions: Mapping[str, Any] | None = None,
    memory_limit: int = MEMORY,
    engine: Any = None,
    collection: Specification | None = None,
    spill: str | Path | None = None,
) -> Database:
    """Open a folder that `Collection.perturb` wrote, or what it returned.

    Reports that cannot be right are refused and counted; the others are kept. `dimensions` are public tables (frames,
    or paths of Parquet and CSV files) that questions may join on an attribute. Tables that need more than
    `memory_limit` bytes stay in their files and are read anew for every question; if they have to be sorted or cleaned
    first, a copy is kept in the folder `spill`, or the system's for temporary files, as long as the database is.

    With `engine`, a SparkSession, all work is done there. The path may be any that Spark reads; `reports` may also be
    a mapping from tables to Spark DataFrames or names in its catalog. Frames that do not say which specification they
    were made under need `collection`.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> reports = shop.perturb(users={"uid": [1, 2, 3], "age": [31, 40, 52]})
    >>> dn.connect(reports)
    Database(users: 3 reports)
    """
    if isinstance(reports, Collected):
        reports = reports.path
    if engine is not None:
        from deniable.engines.spark.spark_database import connect_spark

        return connect_spark(reports, engine, collection, dimensions or {})
    if isinstance(reports, Mapping) or collection is not None:
        raise InvalidParameter("reports", "by table are for Spark", "Pass engine=spark too, or a folder of reports.")
    check_integer("memory_limit", memory_limit, 0, 2**63, problem="must be a number of bytes", repair="Use 2**30.")
    place = spill_place(spill, None)
    files: dict[str, ReportFiles] = {}
    kept: dict[str, pa.Table] = {}
    refused: dict[str, Counter[str]] = {}
    if isinstance(reports, Reports):
        collection, simulation = reports.collection, reports.simulation
        for name, table in reports.tables.items():
            kept[name], refused[name] = validate(collection, name, table)
    elif isinstance(reports, (str, Path)):
        collection, files, simulation = read_folder(Path(reports))
    else:
        raise InvalidParameter("reports", "are no folder of reports", "Pass its path, or what Collection.perturb gave.")
    text_ids = _mixed_ids([one.schema for one in files.values() if one.rows])
    filed: dict[str, FileStore] = {}
    for name, mine in files.items():
        if not names_origin(collection, name, mine.schema):
            kept[name], refused[name] = nobody(collection, name), +Counter({OTHER_SPECIFICATION: mine.rows})
            continue
        small = mine.table_within(memory_limit) if mine.rows * BYTES_PER_REPORT <= memory_limit else None
        if small is not None:
            kept[name], refused[name] = validate(collection, name, small)
        else:
            filed[name], refused[name] = validated_files(collection, mine, memory_limit, place, text_ids=text_ids)
    if text_ids or _mixed_ids([table.schema for table in kept.values() if table.num_rows]):
        kept = {name: with_text_ids(table) for name, table in kept.items()}
    slots = {name: collection.reports_per_user(name) for name in kept}
    stores: dict[str, Store] = {**filed, **memory_stores(kept, slots, tuple(filed.values()))}
    ordered = {table.name: stores[table.name] for table in collection.tables if table.name in stores}
    tables = dimension_tables(collection, dimensions or {})
    return Database(Collection.of(collection), ordered, refused, tables, simulation)


def _mixed_ids(schemas: Sequence[pa.Schema]) -> bool:
    """Whether user ids are integers in one table and texts in another."""
    return len({pa.types.is_string(one.field("uid").type) for one in schemas if "uid" in one.names}) > 1


def dimension_tables(collection: Specification, given: Mapping[str, Any]) -> dict[str, DimensionTable]:
    """Public tables that questions may join."""
    made = {}
    taken = {table.name.casefold() for table in collection.tables}
    for name, frame in given.items():
        if name.casefold() in taken:
            raise InvalidParameter(f"dimension {name!r}", "is named like a table of the collection", "Rename it.")
        made[name] = DimensionTable(name, as_arrow(frame, f"dimension {name!r}"))
    return made
