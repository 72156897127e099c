"""A collection fitted to the questions it will be asked: what `dn.fit` and `deniable fit` do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations
from typing import Any, Generic, TypeVar

import numpy as np
from sqlglot import exp

from deniable.errors import InvalidParameter, QueryRefused
from deniable.queries.forecasts.forecast import checked_users, error_of, planned
from deniable.queries.grids.view_choice import SAMPLED_COLUMNS, ViewSearch, in_joins
from deniable.queries.grids.workload import WorkloadColumn, importance_of
from deniable.queries.parsing.sql import parse
from deniable.queries.planning.moment_columns import moment_columns
from deniable.queries.question.public_trees import Tree, column
from deniable.queries.weights.table_plan import DESIGNED, DIRECT
from deniable.tables.schema.attributes import Categorical, Private
from deniable.tables.specification.specification import Specification
from deniable.wording import counted

RANGES = 6
GOLDEN = (math.sqrt(5) - 1) / 2
RANGE_LENGTHS = (0.5, 0.25, 0.6, 0.12, 0.4, 0.75)
"""Lengths of the ranges that represent all ranges, as shares of the domain."""
SHOWN_QUESTIONS = 8
MOST_FORECAST_VIEWS = 2_000
"""A design with more views is not forecast for comparison."""
COMPARED_DESIGNS = ("hio", "ahio", "ehio")

AnySpecification = TypeVar("AnySpecification", bound=Specification)


@dataclass(frozen=True, slots=True)
class Fit(Generic[AnySpecification]):
    """A fitted collection, and the predicted error of each question, next to that of other designs."""

    collection: AnySpecification
    users: int
    questions: tuple[str, ...]
    errors: Mapping[str, tuple[float, ...]]
    """By design: standard and model error together, per user for what adds up; infinite if the answer is unclear, NaN
    where a design has too many views for a quick forecast."""
    notes: tuple[str, ...] = ()
    """The constants of questions that no view follows, and why."""

    def __str__(self) -> str:
        names = list(self.errors)
        lines = [f"{counted(self.users, 'user')}, ε = {self.collection.epsilon:g}; errors of COUNT and SUM per user"]
        lines.append("  ".join(name.rjust(8) for name in names) + "  question")
        for index, text in enumerate(self.questions):
            row = "  ".join(shown_error(self.errors[name][index]).rjust(8) for name in names)
            shown = " ".join(text.split())
            lines.append(f"{row}  {shown if len(shown) <= 120 else shown[:119] + '…'}")
        if any(math.isnan(error) for each in self.errors.values() for error in each):
            lines.append(f"-: over {MOST_FORECAST_VIEWS:,} views; deniable forecast takes minutes")
        return "\n".join([*lines, self.views(), *self.notes])

    def views(self) -> str:
        """The views of each table, those that are drawn most often first."""
        lines = []
        for name, views in (self.collection.grids or {}).items():
            total = sum(view.weight for view in views)
            lines.append(f"table {name}: {counted(len(views), 'view')}")
            for view in sorted(views, key=lambda view: -view.weight)[:12]:
                cuts = ", ".join(f"{attribute} {cut}" for attribute, cut in view.axes.items())
                lines.append(f"  {view.weight / total:6.1%}  {cuts}")
            if len(views) > 12:
                lines.append(f"  … and {len(views) - 12} more")
        return "\n".join(lines)


def shown_error(error: float) -> str:
    """An error, or why there is none."""
    if math.isnan(error):
        return "-"
    return "unclear" if math.isinf(error) else f"{error:.3g}"


def fit_grids(
    start: AnySpecification, users: int, workload: Sequence[str] | None = None, *, compared: bool = True
) -> Fit[AnySpecification]:
    """Choose the grids of a specification of that design. See `deniable.fit`."""
    count = checked_users(users)
    if isinstance(workload, str):
        raise InvalidParameter("workload", "is one text", "Give a list of questions.")
    texts = tuple(workload) if workload is not None else all_ranges(start)
    if not texts or not all(isinstance(text, str) for text in texts):
        raise InvalidParameter("workload", "must be a list of questions", "Give at least one SELECT, or None.")
    collection = start
    joins = False
    for _ in range(2):
        items: dict[str, list[WorkloadColumn]] = {table.name: [] for table in start.tables}
        for text in texts:
            columns = moment_columns(parse(text, start), start).columns
            reached = in_joins(collection, columns, count)
            joins |= len(columns) > 1
            for name, mine in columns.items():
                if not mine:  # no value can meet the conditions
                    continue
                chosen = np.unique(np.linspace(0, len(mine) - 1, SAMPLED_COLUMNS).astype(np.int64)).tolist()
                for index in chosen:
                    items[name].append(
                        WorkloadColumn(mine[index], importance_of(mine[index]) / len(chosen), reached[name])
                    )
        chosen = {
            name: ViewSearch(
                start[name], start.epsilon_per_report(name), start.oracle == "auto", mine, examples=workload is None
            ).chosen()
            for name, mine in items.items()
            if mine
        }
        collection = start.with_settings(grids={name: mine.views for name, mine in chosen.items()})
        if not joins:
            break  # only joins have to know what the other tables chose
    shown = texts if workload is not None else _some(texts)
    designs = {"grid": collection}
    if compared:
        designs |= {name: start.with_settings(design=name) for name in COMPARED_DESIGNS}
    errors = {name: tuple(_least_error(mine, text, count) for text in shown) for name, mine in designs.items()}
    notes = tuple(note for mine in chosen.values() for note in mine.notes)
    return Fit(collection, count, shown, errors, notes)


def _some(texts: tuple[str, ...]) -> tuple[str, ...]:
    """A few of many questions, evenly spaced."""
    texts = tuple(dict.fromkeys(texts))
    return tuple(
        texts[index] for index in np.unique(np.linspace(0, len(texts) - 1, SHOWN_QUESTIONS).astype(int)).tolist()
    )


def _least_error(collection: Specification, text: str, users: int) -> float:
    """The error of a question with the better way to take its sums."""
    if (
        collection.grids is None
        and max(collection.views(table.name) for table in collection.tables) > MOST_FORECAST_VIEWS
    ):
        return math.nan
    errors = [math.inf]
    for sums in (DIRECT,) if collection.grids is not None or collection.design == "hio" else (DIRECT, DESIGNED):
        try:
            errors.append(error_of(planned(collection, text, "optimal", sums, users), users))
        except QueryRefused:
            continue
    return min(errors)


def all_ranges(collection: Specification) -> tuple[str, ...]:
    """Questions that represent all ranges of one attribute and of two attributes of a table."""
    texts = []
    for table in collection.tables:
        domains = dict(zip(table.private, table.domains, strict=True))
        for size in (1, 2):
            for names in combinations(table.private, size):
                for number in range(RANGES):
                    tests = (
                        _range(name, domains[name], number + position * (RANGES // 2 + 1))
                        for position, name in enumerate(names)
                    )
                    source = exp.to_identifier(table.name, quoted=True)
                    query = exp.select(exp.Count(this=exp.Star())).from_(exp.Table(this=source)).where(*tests)
                    texts.append(str(query.sql(dialect="duckdb")))
    return tuple(texts)


def _range(name: str, domain: Private, number: int) -> Tree:
    """The `number`-th of some ranges spread over a domain; a single category if it has no order."""
    if isinstance(domain, Categorical):
        return exp.EQ(this=column(name), expression=_literal(domain.values[number % domain.size]))
    length = min(max(round(RANGE_LENGTHS[number % RANGES] * domain.size), 1), domain.size - 1)
    low = math.floor((number + 1) * GOLDEN % 1 * (domain.size - length + 1))
    first, last = (_literal(domain.decode(position)) for position in (low, low + length - 1))
    return exp.Between(this=column(name), low=first, high=last)


def _literal(value: Any) -> Tree:
    if isinstance(value, bool):
        return exp.Boolean(this=value)
    return exp.Literal.string(str(value)) if isinstance(value, (str, date)) else exp.Literal.number(str(value))
