"""What users call: `connect` opens reports, and a database answers SQL, about one group of users or several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from deniable.collection import Collection
from deniable.engines.collecting.collected_reports import Collected, Reports
from deniable.engines.collecting.input_frames import as_arrow
from deniable.engines.duckdb.dimension_tables import DimensionTable
from deniable.engines.duckdb.regular_files import why_not_a_file
from deniable.engines.engine import Engine
from deniable.engines.local.opening import MEMORY_LIMIT, open_local
from deniable.engines.local.report_sources import ReportSource, is_pattern
from deniable.engines.reports.remote_folders import is_address
from deniable.engines.reports.shared_users import check_disjoint, shared_users
from deniable.errors import InvalidParameter, QueryRefused
from deniable.growing_database import GrowingDatabase
from deniable.queries.answers.added_groups import GroupPart, Together, added_carriers, plain_groups
from deniable.queries.answers.alike_groups import NOT_ALIKE, alike_groups
from deniable.queries.answers.answer_options import AnswerOptions
from deniable.queries.answers.effective_users import effective_users
from deniable.queries.answers.estimation import answer
from deniable.queries.answers.guard import GUARDED
from deniable.queries.answers.quantile_answers import Prefixes
from deniable.queries.answers.result import Result
from deniable.queries.weights.table_plan import DIRECT
from deniable.single_database import Database
from deniable.tables.specification.runs import SPECIFICATION_FILE, load_run
from deniable.tables.specification.specification import Specification

if TYPE_CHECKING:
    from deniable.queries.forecasts.assumed_rows import RowsGiven
    from deniable.queries.forecasts.forecast import Explanation
    from deniable.queries.forecasts.influence import Influence

__all__ = ["Database", "JointDatabase", "connect"]


class JointDatabase(Database):
    """Several groups of users over the same tables, each collected under its own design, answered together.

    Make one with `connect([first, second])`. `plan` is about the last of `groups`, and `alike` says whether chance
    decided who is in which.
    """

    __slots__ = ("alike", "groups")

    def __init__(self, groups: Sequence[Database], *, alike: bool = False) -> None:
        super().__init__(groups[-1].engine, groups[-1].dimensions)
        self.groups, self.alike = tuple(groups), alike

    def _plain_answer(self, text: str, options: AnswerOptions) -> Result:
        """Answer a question over all users, each under her own design. See `Database.sql`."""
        if options.postprocess is not None:
            raise QueryRefused("postprocess is for one group of users", "Leave it out, or ask a group of .groups.")
        parts = [group._part(text, options, guard=True, alone=False) for group in self.groups]
        if parts[0].plan.keyed is not None:
            problem = "several groups of users cannot be joined with another population"
            raise QueryRefused(problem, "Ask each group of .groups.")
        question, together = parts[0].plan.question, self._together(parts)
        tables = [self.collection[name] for name in question.tables]
        single_rows = all(table.many is None for table in tables) and not any(part.plan.biases for part in parts)
        result = answer(
            question,
            together.moments,
            options,
            single_rows=single_rows,
            rows_per_user=float(np.prod([table.many or 1 for table in tables])),
            model=together.model,
            effective=added_carriers(
                [part.moments for part in parts],
                [effective_users(part.plan, part.moments, single_rows=single_rows) for part in parts],
            ),
        )
        guards = [GUARDED] * any(part.contradicted for part in parts) + [NOT_ALIKE] * together.differ
        notes = (*result.notes, *guards)
        coins = dict.fromkeys(note for group in self.groups for note in group._drawn.notes(question.tables))
        return replace(result, notes=(*notes, *coins), simulation=self.simulation)

    def _together(self, parts: Sequence[GroupPart], *, one_weight: bool = False) -> Together:
        """What the reports of all groups say about a question."""
        return alike_groups(parts, one_weight=one_weight) if self.alike else plain_groups(parts)

    def influence(
        self,
        text: str,
        *,
        weights: str = "optimal",
        sums: str = DIRECT,
        unbiased: bool = False,
        exact: bool = False,
    ) -> tuple[Influence, ...]:
        """How far one lying user, of whichever group, moves each answer. See `Database.influence`."""
        plans = [group.plan(text, weights=weights, sums=sums, unbiased=unbiased) for group in self.groups]
        parts = [group._read(plan) for group, plan in zip(self.groups, plans, strict=True)]
        together = self._together(parts)
        from deniable.queries.forecasts.influence import over_groups

        return over_groups(
            [
                group._influences(part.plan, together.moments, exact=exact, weights=weights)
                for group, part, weights in zip(self.groups, parts, together.weights, strict=True)
            ]
        )

    def explain(
        self,
        text: str,
        *,
        weights: str = "optimal",
        sums: str = DIRECT,
        unbiased: bool = False,
        rows: RowsGiven = None,
        matching: float | tuple[float, float] | None = None,
    ) -> Explanation:
        """How each group answers a question, and the error to expect over all users. See `Database.explain`."""
        options: dict[str, Any] = {"weights": weights, "sums": sums, "unbiased": unbiased}
        groups = tuple(group.explain(text, **options, rows=rows, matching=matching) for group in self.groups)
        answering = [(group.forecast.plan, float(group.forecast.users)) for group in groups if group.forecast.users]
        if not answering:
            return groups[-1]
        from deniable.queries.forecasts.assumed_rows import assumed_rows
        from deniable.queries.forecasts.forecast import Explanation
        from deniable.queries.forecasts.two_looks import over_all_groups

        assumed = assumed_rows(self.collection, rows, matching).among_reporters(self.collection.tables)
        reports: Counter[str] = Counter()
        for group in groups:
            reports.update(group.reports)
        influences = self.influence(text, **options)
        return Explanation(over_all_groups(answering, assumed, alike=self.alike), reports, influences, groups=groups)

    def _prefixes(self, text: str, options: AnswerOptions) -> Prefixes:
        """See `Database._prefixes`: users of all groups, added up."""
        parts = [group._prefixes(text, options) for group in self.groups]
        together = self._together(parts, one_weight=True)
        single_rows = all(part.single_rows for part in parts)
        return Prefixes(parts[-1].plan, together.moments, together.model, single_rows)

    def close(self) -> None:
        """Give back what the engines keep."""
        for group in self.groups:
            group.close()

    def __repr__(self) -> str:
        return f"JointDatabase({'; '.join(map(repr, self.groups))}{'; alike' * self.alike})"


def _connect_groups(reports: Sequence[Any], engine: Any, *, alike: bool, **options: Any) -> JointDatabase:
    """Groups of reports as one database, if they are about the same tables and share nobody."""
    groups = [connect(group, engine=engine, **options) for group in reports]
    shared_by: Callable[[Sequence[Mapping[str, Any]]], int] = shared_users
    if engine is not None:
        from deniable.engines.spark.shared_spark_users import shared_spark_users

        shared_by = shared_spark_users
    check_disjoint([(group.collection, group.simulation, group.engine.stores) for group in groups], shared_by)
    return JointDatabase(groups, alike=alike)


def connect(
    reports: str | Path | Reports | Collected | Mapping[str, Any] | list[Any] | tuple[Any, ...] | None = None,
    *,
    dimensions: Mapping[str, Any] | None = None,
    memory_limit: int = MEMORY_LIMIT,
    engine: Any = None,
    collection: Collection | None = None,
    spill: str | Path | None = None,
    alike: bool = False,
) -> Database:
    """Open a folder that `Collection.perturb` wrote, or what it returned.

    Reports that cannot be right are refused and counted; the others are kept. `dimensions` are public tables (frames,
    or paths of Parquet and CSV files) that questions may join on an attribute. Tables that need more than
    `memory_limit` bytes stay in their files and are read again for every question. If they have to be sorted or cleaned
    first, a copy is kept as long as the database is, in the folder `spill` or the system's temporary folder.

    With a SparkSession as `engine`, all work is done there. The path may be any that Spark reads; `reports` may also be
    a mapping from tables to Spark DataFrames or names in its catalog. Frames that do not say which specification they
    were made under need `collection`.

    Files that arrive later are read at the next question. Several folders of one specification are opened by a list or
    a pattern such as "reports/2024-*": of several reports for the same user and slot the first counts, as in `gather`.
    Addresses such as s3://bucket/reports are read through pyarrow's file systems, and copied into `spill`.

    A list of folders of different specifications opens several groups of users, collected under different designs for
    the same tables (`plan(after=…)`), and answers over all of them. Nobody may be in two groups; this is checked, by
    Spark if that is the engine. With `alike` you state that chance decided who is in which group, such as a hash of the
    user id: each group then says something about all users, and one with little noise answers for one with much.

    An `engine` of your own (`deniable.engines.engine.Engine` says what it needs) holds its reports already: leave
    `reports` out.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> reports = shop.perturb(users={"uid": [1, 2, 3], "age": [31, 40, 52]})
    >>> dn.connect(reports)
    Database(users: 3 reports)
    """
    if isinstance(reports, (list, tuple)) and engine is None and _same_specification(reports):
        source = ReportSource([_path(part) for part in reports], memory_limit, spill)
        _check_groups(alike, False)
        return _growing(source, dimensions)
    _check_groups(alike, isinstance(reports, (list, tuple)))
    if isinstance(reports, (list, tuple)):
        if isinstance(engine, Engine) or collection is not None:
            problem = "in a list are opened by DuckDB or Spark, each under the specification next to it"
            raise InvalidParameter("reports", problem, "Leave out collection, and engines of your own.")
        options: dict[str, Any] = {"dimensions": dimensions, "memory_limit": memory_limit, "spill": spill}
        return _connect_groups(reports, engine, alike=alike, **options)
    reports = reports.path if isinstance(reports, Collected) else reports
    opened: Engine
    if isinstance(engine, Engine) and not isinstance(engine, type):
        if reports is not None or collection is not None:
            raise InvalidParameter("reports", "are held by the engine already", "Pass the engine alone.")
        opened = engine
    elif engine is not None:
        from deniable.engines.spark.spark_opening import open_spark

        opened = open_spark(reports, engine, collection)
    elif isinstance(reports, (str, Path)) and collection is None:
        return _growing(ReportSource([reports], memory_limit, spill), dimensions)
    elif isinstance(reports, Mapping) or collection is not None:
        raise InvalidParameter("reports", "by table are for Spark", "Pass engine=spark too, or a folder of reports.")
    else:
        opened = open_local(reports, memory_limit=memory_limit, spill=spill)
    return Database(opened, _dimension_tables(opened.collection, dimensions or {}))


def _check_groups(alike: bool, several: bool) -> None:
    if alike and not several:
        problem = "is about several groups of users, each under a design of its own"
        raise InvalidParameter("alike", problem, "Leave it out: this is one collection.")


def _growing(source: ReportSource, dimensions: Mapping[str, Any] | None) -> Database:
    opened = GrowingDatabase(source)
    return opened.with_dimensions(_dimension_tables(opened.collection, dimensions or {}))


def _path(part: Any) -> Any:
    return part.path if isinstance(part, Collected) else part


def _same_specification(reports: Sequence[Any]) -> bool:
    """Whether a list is of folders of one specification: parts of one collection, and not groups of users."""
    paths = [_path(part) for part in reports]
    if not paths or not all(isinstance(path, (str, Path)) for path in paths):
        return False
    if any(is_address(path) or is_pattern(path) for path in paths):
        return True
    folders = [Path(path) for path in paths]
    if any(why_not_a_file(folder / SPECIFICATION_FILE) for folder in folders):
        return False
    return len({load_run(folder / SPECIFICATION_FILE)[0].sha256 for folder in folders}) == 1


def _dimension_tables(collection: Specification, given: Mapping[str, Any]) -> dict[str, DimensionTable]:
    """Public tables that questions may join."""
    taken = {table.name.casefold() for table in collection.tables}
    for name in given:
        if name.casefold() in taken:
            raise InvalidParameter(f"dimension {name!r}", "is named like a table of the collection", "Rename it.")
    return {name: DimensionTable(name, as_arrow(frame, f"dimension {name!r}")) for name, frame in given.items()}
