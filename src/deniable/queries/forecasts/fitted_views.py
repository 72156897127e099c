"""The views of all tables for a workload, and the price of borders at all of its constants.

What cells show without any assumption has no model error, but more noise: its weights are not shrunk. One table rarely
pays much for it (`view_choice.py`). In a join the prices of the tables multiply, and each table's noise is multiplied
by the other's. So where a table of a join pays for its borders, the workload is forecast with and without them, and
they are kept if they raise its errors by at most `PRICE_OF_BORDERS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import Generic, TypeVar

import numpy as np

from deniable.errors import QueryRefused
from deniable.queries.forecasts.assumed_rows import AssumedRows
from deniable.queries.forecasts.averaged_questions import with_centred_averages
from deniable.queries.forecasts.first_look import Densities
from deniable.queries.forecasts.forecast import error_of, planned
from deniable.queries.grids.other_views import most_for_others
from deniable.queries.grids.view_choice import PRICE_OF_BORDERS, SAMPLED_COLUMNS, ChosenViews, ViewSearch, in_joins
from deniable.queries.grids.workload import WorkloadColumn, importance_of
from deniable.queries.parsing.sql import parse
from deniable.queries.planning.moment_columns import moment_columns
from deniable.queries.weights.table_plan import DIRECT
from deniable.tables.specification.specification import Specification

FORECAST_JOINS = 8
"""So many joins of a workload are forecast, evenly spaced."""
LARGEST_ERROR = 1e12
"""Stands for an answer that is unclear."""

AnySpecification = TypeVar("AnySpecification", bound=Specification)


@dataclass(frozen=True, slots=True, eq=False)
class FittedViews(Generic[AnySpecification]):
    """A specification with its grids, and what `fit` says of them."""

    collection: AnySpecification
    chosen: dict[str, ChosenViews]

    @property
    def notes(self) -> tuple[str, ...]:
        """In words, the constants that no view follows, and why."""
        return tuple(str(note) for mine in self.chosen.values() for note in mine.notes)


@dataclass(frozen=True, slots=True, eq=False)
class ViewsOfWorkload(Generic[AnySpecification]):
    """What views are chosen for."""

    start: AnySpecification
    texts: tuple[str, ...]
    users: int
    examples: bool
    """Whether questions are only examples of others."""
    others: float | None
    seen: Densities
    assumed: AssumedRows
    advance: Callable[[float], None]

    def chosen(self) -> FittedViews[AnySpecification]:
        """Views along all constants, unless that is not worth its price. Half of the work of a fit, in progress."""
        joins = [text for text in self.texts if len(parse(text, self.start).tables) > 1]
        weighed = bool(joins) and not self.examples and not self.seen  # evenly spread rows are forecast
        part = 0.25 if weighed else 0.5
        following = self._fitted(PRICE_OF_BORDERS, part)
        if not weighed:
            return following
        if not any(mine.paid for mine in following.chosen.values()):
            self.advance(part)
            return following
        cheaper = self._fitted(1.0, part)
        numbers = np.unique(np.linspace(0, len(joins) - 1, FORECAST_JOINS).astype(np.int64)).tolist()
        price = geometric_mean(
            [
                self._error(following.collection, joins[number]) / self._error(cheaper.collection, joins[number])
                for number in numbers
            ]
        )
        if price <= PRICE_OF_BORDERS:
            return following
        return replace(cheaper, chosen=_explained(cheaper.chosen, following.chosen, price))

    def _error(self, collection: AnySpecification, text: str) -> float:
        """The predicted error of a question."""
        try:
            plan = planned(collection, text, "optimal", DIRECT, self.users, assumed=self.assumed)
            error = error_of(plan, self.users, self.assumed.middle)
        except QueryRefused:
            return LARGEST_ERROR
        return min(max(error, 1 / LARGEST_ERROR), LARGEST_ERROR)

    def _fitted(self, price: float, part: float) -> FittedViews[AnySpecification]:
        """The grids of all tables. Joins are fitted twice: then each table knows what the others chose."""
        start, users = self.start, self.users
        collection, chosen = start, dict[str, ChosenViews]()
        asked = [moment_columns(with_centred_averages(parse(text, start)), start).columns for text in self.texts]
        joins = any(len(columns) > 1 for columns in asked)
        for _ in range(2 if joins else 1):
            items: dict[str, list[WorkloadColumn]] = {table.name: [] for table in start.tables}
            for columns in asked:
                reporting = users * self.assumed.middle.reporting(start[name] for name in columns)
                reached = in_joins(collection, columns, reporting)
                for name, mine in columns.items():
                    if not mine:  # no value can meet the conditions
                        continue
                    sample = np.unique(np.linspace(0, len(mine) - 1, SAMPLED_COLUMNS).astype(np.int64)).tolist()
                    for index in sample:
                        importance = importance_of(mine[index]) / len(sample)
                        items[name].append(WorkloadColumn(mine[index], importance, reached[name]))
            searches = {
                name: ViewSearch(
                    start[name],
                    start.epsilon_per_report(name),
                    start.oracle,
                    mine,
                    examples=self.examples,
                    seen=self.seen.get(name, {}),
                    fanout=start.fanout,
                    most_for_others=most_for_others(
                        self.others, max(len(columns) for columns in asked if name in columns)
                    ),
                    price_of_borders=price,
                )
                for name, mine in items.items()
                if mine
            }
            each = part / max(len(searches), 1) / (2 if joins else 1)
            chosen = {
                name: search.chosen(lambda done, each=each: self.advance(done * each))  # type: ignore[misc]
                for name, search in searches.items()
            }
            collection = start.with_settings(grids={name: mine.views for name, mine in chosen.items()})
        return FittedViews(collection, chosen)


def _explained(
    cheaper: dict[str, ChosenViews], following: dict[str, ChosenViews], price: float
) -> dict[str, ChosenViews]:
    """The reason for constants that only the dearer views follow."""
    reason = f"errors of joins would be {math.floor(10 * price) / 10:.1f} times as large"
    explained = {}
    for name, mine in cheaper.items():
        known = {note.constants for note in following[name].notes}
        notes = (note if note.constants in known else replace(note, reason=reason) for note in mine.notes)
        explained[name] = replace(mine, notes=tuple(notes))
    return explained
