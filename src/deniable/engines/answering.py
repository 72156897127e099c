"""Answers to questions from validated reports: contributions per user, multiplied over tables, added over users."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from deniable.engines.kernel import contributions
from deniable.errors import QueryRefused
from deniable.queries.question import Place, Question
from deniable.queries.result import Estimate, Floats, Result, ratio, total
from deniable.queries.sql import functions, numbers
from deniable.queries.table_plan import plan
from deniable.tables.collection import Collection
from deniable.tables.schema import Ordinal, Private

MOST_GROUPS = 10_000


def answer(
    collection: Collection, tables: Mapping[str, pa.Table], question: Question, *, rule: str, confidence: float
) -> Result:
    """Every aggregate of a question, for every combination of the values that it groups by."""
    missing = [name for name in question.tables if name not in tables]
    if missing:
        raise QueryRefused(f"there are no reports of table {missing[0]!r}", "Collect them first.")
    values = [_values(collection, tables, place) for place in question.groups]
    if np.prod([float(len(one)) for one in values]) > MOST_GROUPS:
        raise QueryRefused("there are over 10,000 groups", "Group by fewer attributes.")
    kept = {name: _kept(tables[name], question.public.get(name, ())) for name in question.tables}
    users = _Users(collection, tables, question.tables)
    answers: dict[str, list[Estimate]] = {one.name: [] for one in question.aggregates}
    combinations = list(product(*values))
    for combination in combinations:
        chosen = {name: functions(question, name) for name in question.tables}
        users.kept = dict(kept)
        for (name, attribute), value in zip(question.groups, combination, strict=True):
            if attribute in collection[name].public:
                users.kept[name] = users.kept[name] & _equal(tables[name][attribute], value)
                continue
            domain = _domain(collection, (name, attribute))
            only = np.zeros(domain.size)
            only[domain.encode(value)] = 1.0
            chosen[name][attribute] = chosen[name].get(attribute, np.ones(domain.size)) * only
        counted = users.contributions(chosen, rule)
        for one in question.aggregates:
            if one.attribute is None:
                answers[one.name].append(total(counted, confidence))
                continue
            name, attribute = one.attribute
            measure = numbers(_ordinal(collection, one.attribute))
            weighted = {**chosen, name: {**chosen[name], attribute: chosen[name].get(attribute, 1.0) * measure}}
            summed = users.contributions(weighted, rule)
            estimate = total(summed, confidence) if one.kind == "sum" else ratio(summed, counted, confidence)
            answers[one.name].append(estimate)
    groups = {
        attribute: [combination[place] for combination in combinations]
        for place, (_, attribute) in enumerate(question.groups)
    }
    unclear = any(np.isnan(one.value) for estimates in answers.values() for one in estimates)
    notes = ("unclear: too few people, or too much noise, to divide by their number",) if unclear else ()
    return Result(groups, {name: tuple(estimates) for name, estimates in answers.items()}, notes)


def _values(collection: Collection, tables: Mapping[str, pa.Table], place: Place) -> list[Any]:
    """What a group can be: all values of a private attribute's domain, or those that a public one has."""
    name, attribute = place
    if attribute in collection[name].public:
        return sorted(tables[name][attribute].unique().to_pylist(), key=lambda value: (value is None, value))
    domain = _domain(collection, place)
    return [domain.decode(code) for code in range(domain.size)]


def _kept(reports: pa.Table, conditions: tuple[str, ...]) -> NDArray[np.bool_]:
    """Which reports satisfy conditions on public columns; DuckDB evaluates them."""
    if not conditions:
        return np.ones(reports.num_rows, dtype=bool)
    with duckdb.connect() as connection:
        connection.register("reports", reports)
        text = " AND ".join(f"({condition})" for condition in conditions)
        try:
            column = connection.sql(f"SELECT coalesce({text}, false) AS kept FROM reports").to_arrow_table()["kept"]  # noqa: S608 - checked nodes
        except duckdb.Error:
            raise QueryRefused("a public attribute is compared with another type", "Compare like with like.") from None
    return np.asarray(column.combine_chunks().to_numpy(zero_copy_only=False), dtype=bool)


def _equal(column: pa.ChunkedArray, value: Any) -> NDArray[np.bool_]:
    same = pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, pa.scalar(value, column.type)), False)
    return np.asarray(same, dtype=bool)


def _domain(collection: Collection, place: Place) -> Private:
    table = collection[place[0]]
    return table.domains[table.private.index(place[1])]


def _ordinal(collection: Collection, place: Place) -> Ordinal:
    domain = _domain(collection, place)
    if not isinstance(domain, Ordinal):
        raise QueryRefused(f"{place[1]!r} is not a number", "Sum an ordinal attribute of numbers.")
    return domain


class _Users:
    """The users who have reports in all tables of a question.

    The reports of a table are sorted by user and slot, and every user has all slots (`connect` sees to both), so that
    the reports of the i-th user stand at i · slots, and nothing has to be looked up for a single table.
    """

    def __init__(self, collection: Collection, tables: Mapping[str, pa.Table], names: tuple[str, ...]) -> None:
        self._collection, self._names = collection, names
        self.kept: dict[str, NDArray[np.bool_]] = {}
        self._columns = {name: [np.asarray(tables[name][column]) for column in ("view", "seed", "y")] for name in names}
        ids: dict[str, NDArray[Any]] = {
            name: tables[name]["uid"].to_numpy(zero_copy_only=False)[:: collection.reports_per_user(name)]
            for name in names
        }
        common = ids[names[0]]
        for name in names[1:]:
            if not np.array_equal(common, ids[name]):
                common = np.intersect1d(common, ids[name], assume_unique=True)
        self._count = int(common.size)
        self._places = {
            name: None if ids[name].size == common.size else np.searchsorted(ids[name], common) for name in names
        }

    def contributions(self, chosen: Mapping[str, Mapping[str, Floats]], rule: str) -> Floats:
        """For every user the product over tables of what her reports contribute.  [XDW20, Section 4.2, factorised]"""
        result = np.ones(self._count)
        for name in self._names:
            result *= self._of_table(name, chosen[name], rule)
        return result

    def _of_table(self, name: str, chosen: Mapping[str, Floats], rule: str) -> Floats:
        table, design = self._collection[name], self._collection.design_of(name)
        made = plan(table, design, chosen, rule)
        parts = len(design.parts)
        rows = self.kept[name][::parts].astype(np.float64)
        for place, views in enumerate(made.parts):
            # The parts of a row alternate.
            rows *= contributions(views, design.views, *(column[place::parts] for column in self._columns[name]))
        each: Floats = rows.reshape(-1, table.tau).sum(axis=1)
        places = self._places[name]
        return each if places is None else each[places]
