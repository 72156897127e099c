"""The database that users ask: SQL in, answers with their errors out, over reports that an engine holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from deniable.collection import Collection
from deniable.engines.collecting.collected_reports import Collected, Reports
from deniable.engines.collecting.input_frames import as_arrow
from deniable.engines.counted_pairs import CountedPairs
from deniable.engines.duckdb.dimension_tables import DimensionTable
from deniable.engines.engine import Engine
from deniable.engines.kernel.grouped_moments import stores_of
from deniable.engines.local.opening import MEMORY_LIMIT, open_local
from deniable.engines.reports.user_blocks import ReportFacts
from deniable.engines.smoothness_beliefs import SmoothnessBeliefs
from deniable.errors import InvalidParameter, QueryRefused
from deniable.notebook import html_table
from deniable.queries.answers.answer_options import AnswerOptions
from deniable.queries.answers.consistent.consistent_answers import consistent_answer
from deniable.queries.answers.effective_users import effective_users
from deniable.queries.answers.estimation import Moments, answer
from deniable.queries.answers.model_error import model_spread
from deniable.queries.answers.result import Result
from deniable.queries.forecasts.forecast import Explanation, Forecast
from deniable.queries.forecasts.prediction import predict
from deniable.queries.parsing.sql import parse
from deniable.queries.planning.plan import Plan, make_plan
from deniable.queries.weights.table_plan import DIRECT
from deniable.simulation import NOTE
from deniable.tables.specification.runs import is_simulation
from deniable.tables.specification.specification import Specification
from deniable.wording import counted

PLANS_KEPT = 64


class Database:
    """The validated reports of a collection, and what was refused. Threads may share it.

    Make one with `connect`. It plans questions, has its engine add up what they need, and turns that into answers. It
    keeps plans; what is counted once about reports is kept by `CountedPairs` and `SmoothnessBeliefs`.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> frame = {"uid": range(10_000), "age": [20, 30] * 5_000}
    >>> db = dn.connect(shop.perturb(users=frame, source=dn.SeededSource(1), simulation=True))
    >>> print(db.sql("SELECT AVG(age) AS age FROM users"))
    age (± standard error)
              25.04 ± 0.90
    simulation: no privacy
    """

    __slots__ = ("_beliefs", "_pairs", "_plans", "collection", "dimensions", "engine")

    def __init__(self, engine: Engine, dimensions: Mapping[str, DimensionTable] | None = None) -> None:
        self.engine = engine
        self.collection = Collection.of(engine.collection)
        """What the reports were made under."""
        self.dimensions: Mapping[str, DimensionTable] = dimensions or {}
        self._plans: dict[tuple[str, str, str, bool, bool], Plan] = {}
        self._pairs = CountedPairs(engine)
        self._beliefs = SmoothnessBeliefs(engine)

    @property
    def stores(self) -> Mapping[str, ReportFacts]:
        """For each table with reports, how many there are of them, and of each view."""
        return self.engine.stores

    @property
    def refused(self) -> Mapping[str, Counter[str]]:
        """For each table, how many reports were refused, by reason."""
        return self.engine.refused

    @property
    def simulation(self) -> bool:
        """Whether the reports protect nobody; every answer says so. Without noise they never do, in any engine."""
        return self.engine.simulation or is_simulation(self.collection, None)

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

        `weights` is "optimal", "greedy", "rdc(k)" or "rdc_each(k)"; `sums` is "direct", or "designed" for the rounded
        values that AHIO, EHIO and SR-HIO collect. With `simultaneous` all intervals of an answer hold at once. `clip`
        cuts estimates to the possible range, `nonnegative` only at zero: they look better and are biased. On a grid,
        `unbiased` allows only what cells and points show without any assumption; other designs need none. There,
        `postprocess="consistent"` answers from one possible table of cells instead: less noise, and biased.

        >>> answer = db.sql("SELECT COUNT(*) AS young FROM users WHERE age < 25")
        >>> print(answer.scalar())
        5,274 ± 204 (95%: 4,875 to 5,674)
        """
        options = AnswerOptions(weights, sums, unbiased, confidence, simultaneous, clip, nonnegative, postprocess)
        return self.answer(text, options)

    def answer(self, text: str, options: AnswerOptions) -> Result:
        """Answer a question under options that are passed as one value. See `sql`.

        >>> db.answer("SELECT COUNT(*) FROM users", dn.AnswerOptions(confidence=0.9)).scalar().value
        10000.0
        """
        plan = self._planned(text, options)
        consistent = options.postprocess is not None
        if consistent and (self.collection.grids is None or options.unbiased):
            raise QueryRefused("postprocess is for grids and biased", "Leave it out, or unbiased.")
        tables = [self.collection[name] for name in plan.question.tables]
        for table in tables:
            self._check_believed(table.name)
        moments = self._moments(plan)
        # Weights that assume something do not count rows once or not at all.
        single_rows = all(table.many is None for table in tables) and not plan.biases
        result = answer(
            plan.question,
            moments,
            options,
            single_rows=single_rows,
            rows_per_user=float(np.prod([table.many or 1 for table in tables])),
            model=model_spread(self.revised(plan), moments),
            effective=effective_users(plan, moments, single_rows=single_rows),
        )
        # What is known without any report is consistent as it is.
        if consistent and any(part.views for table in plan.tables for part in table.parts):
            result = consistent_answer(plan, self._moments, result.answers, options)
        return replace(result, simulation=self.simulation)

    def _moments(self, plan: Plan) -> Moments:
        return self._pairs.moments(plan, self.dimensions)

    def _users(self, tables: tuple[str, ...]) -> int:
        """How many users can be in all of some tables."""
        known = [self.stores[name] for name in tables if name in self.stores]
        return min((store.rows // store.slots for store in known), default=0)

    def _check_believed(self, name: str) -> None:
        """Refuse to answer zero if there are reports but all of them were refused."""
        refused = self.refused.get(name)
        if name in self.stores and not self.stores[name].rows and refused and refused.total():
            (reason, _), *_ = refused.most_common(1)
            raise QueryRefused(
                f"all reports of table {name!r} were refused: {reason}",
                "Open them with the collection.json that they were made under.",
            )

    def revised(self, plan: Plan) -> Plan:
        """A plan with the model errors that the reports suggest: weights stay, model errors may grow.

        Reports show how smooth the data is, and are asked once per table. Designs other than grids assume nothing, so
        their plans stay as they are.

        >>> grid = shop.with_settings(design="grid")
        >>> assuming = dn.connect(grid.perturb(users=frame, source=dn.SeededSource(1), simulation=True))
        >>> plan = assuming.plan("SELECT COUNT(*) FROM users WHERE age < 25")
        >>> str(assuming.revised(plan)) == str(plan)
        True
        """
        return self._beliefs.revised(plan)

    def plan(self, text: str, *, weights: str = "optimal", sums: str = DIRECT, unbiased: bool = False) -> Plan:
        """How a question would be answered: a value that prints.

        >>> print(db.plan("SELECT COUNT(*) FROM users WHERE age < 25"))
        optimal weights, direct sums
        m0 = count(*): 1 term
        count = m0
        table users: 3 views, 75.0% of the reports, 12.0 cells per report
          age 1+4+19+25
        """
        return self._planned(text, AnswerOptions(weights, sums, unbiased))

    def _planned(self, text: str, options: AnswerOptions) -> Plan:
        weights, sums, unbiased = options.weights, options.sums, options.unbiased
        exact_first = options.postprocess is None  # frequencies that are possible all come from one model
        key = (text, weights, sums, unbiased, exact_first)
        plan = self._plans.get(key)
        if plan is None:
            question = parse(text, self.collection, self.dimensions, centred=sums == DIRECT)
            users = self._users(question.tables)
            plan = make_plan(
                question,
                self.collection,
                weights,
                sums,
                users=max(users, 1),
                unbiased=unbiased,
                exact_first=exact_first,
            )
            if len(self._plans) >= PLANS_KEPT:
                self._plans.clear()
            self._plans[key] = plan
        return plan

    def explain(
        self, text: str, *, weights: str = "optimal", sums: str = DIRECT, unbiased: bool = False
    ) -> Explanation:
        """How a question is answered, how many reports count, and the error to expect with its causes; it prints.

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
        reports = {name: store.rows for name, store in stores_of(plan, self.stores).items()}
        users = self._users(plan.question.tables)
        predicted = predict(plan, users) if users else ()
        return Explanation(Forecast(plan, users, predicted), reports)

    def close(self) -> None:
        """Give back what the engine keeps of the reports. Dropping the database does it, too.

        >>> dn.connect(shop.perturb(users={"uid": [1, 2, 3], "age": [31, 40, 52]})).close()
        """
        self.engine.close()

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
    reports: str | Path | Reports | Collected | Mapping[str, Any] | None = None,
    *,
    dimensions: Mapping[str, Any] | None = None,
    memory_limit: int = MEMORY_LIMIT,
    engine: Any = None,
    collection: Collection | None = None,
    spill: str | Path | None = None,
) -> Database:
    """Open a folder that `Collection.perturb` wrote, or what it returned.

    Reports that cannot be right are refused and counted; the others are kept. `dimensions` are public tables (frames,
    or paths of Parquet and CSV files) that questions may join on an attribute. Tables that need more than
    `memory_limit` bytes stay in their files and are read again for every question. If they have to be sorted or cleaned
    first, a copy is kept as long as the database is, in the folder `spill` or the system's temporary folder.

    With a SparkSession as `engine`, all work is done there. The path may be any that Spark reads; `reports` may also be
    a mapping from tables to Spark DataFrames or names in its catalog. Frames that do not say which specification they
    were made under need `collection`.

    An `engine` of your own (`deniable.engines.engine.Engine` says what it needs) holds its reports already: leave
    `reports` out.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> reports = shop.perturb(users={"uid": [1, 2, 3], "age": [31, 40, 52]})
    >>> dn.connect(reports)
    Database(users: 3 reports)
    """
    reports = reports.path if isinstance(reports, Collected) else reports
    opened: Engine
    if isinstance(engine, Engine) and not isinstance(engine, type):
        if reports is not None or collection is not None:
            raise InvalidParameter("reports", "are held by the engine already", "Pass the engine alone.")
        opened = engine
    elif engine is not None:
        from deniable.engines.spark.spark_opening import open_spark

        opened = open_spark(reports, engine, collection)
    elif isinstance(reports, Mapping) or collection is not None:
        raise InvalidParameter("reports", "by table are for Spark", "Pass engine=spark too, or a folder of reports.")
    else:
        opened = open_local(reports, memory_limit=memory_limit, spill=spill)
    return Database(opened, _dimension_tables(opened.collection, dimensions or {}))


def _dimension_tables(collection: Specification, given: Mapping[str, Any]) -> dict[str, DimensionTable]:
    """Public tables that questions may join."""
    taken = {table.name.casefold() for table in collection.tables}
    for name in given:
        if name.casefold() in taken:
            raise InvalidParameter(f"dimension {name!r}", "is named like a table of the collection", "Rename it.")
    return {name: DimensionTable(name, as_arrow(frame, f"dimension {name!r}")) for name, frame in given.items()}
