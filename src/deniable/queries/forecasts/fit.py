"""A collection fitted to the questions it will be asked: what `dn.fit` and `deniable fit` do."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice
from typing import Generic, TypeVar

import numpy as np

from deniable.errors import InvalidParameter, QueryRefused
from deniable.queries.forecasts.assumed_rows import (
    AssumedRows,
    MatchingGiven,
    RowsGiven,
    Span,
    assumed_by_question,
    assumed_rows,
)
from deniable.queries.forecasts.example_questions import all_ranges, ranges_of
from deniable.queries.forecasts.first_look import Densities
from deniable.queries.forecasts.fitted_views import ViewsOfWorkload
from deniable.queries.forecasts.forecast import checked_users, error_of, planned, span_of
from deniable.queries.forecasts.predicted_range import shown_span
from deniable.queries.grids.other_views import checked_others
from deniable.queries.parsing.sql import parse
from deniable.queries.weights.table_plan import DESIGNED, DIRECT
from deniable.tables.specification.specification import Specification
from deniable.wording import counted

SHOWN_QUESTIONS = 8
SHOWN_PAIRS = 10
TYPICAL_RANGES = 3
MOST_FORECAST_VIEWS = 2_000
"""A design with more views is not forecast for comparison."""
MOST_SUMMED_VALUES = 100_000
"""Nor is a sum over a domain with more values."""
MOST_FORECAST_CELLS = 1_000_000
"""Nor a design that has only the finest cells, if these are more."""
FINEST_ONLY = ("mg", "amg")
COMPARED_DESIGNS = ("hio", "ahio", "ehio")

RANGE_NOTE = """range: users may have more or fewer rows than assumed (say rows), and more or
fewer rows may match (say matching)"""
NOT_FORECAST = "-: many views or a wide domain; deniable forecast takes minutes"

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
    outside: Mapping[str, float] = field(default_factory=dict)
    """For attributes and pairs of them, the error of a typical range that no question of the workload is about."""
    spans: tuple[Span, ...] = ()
    """For each question the error of the grid from low to high, as far as rows are known; else not numbers."""

    def __str__(self) -> str:
        names = list(self.errors)
        lines = [f"{counted(self.users, 'user')}, ε = {self.collection.epsilon:g}; errors of COUNT and SUM per user"]
        ranges = self.ranges()
        width = max((len(each) for each in ranges), default=0)
        header = "  ".join(name.rjust(8) for name in names) + ("  " + "grid, range".rjust(width)) * bool(ranges)
        lines.append(f"{header}  question")
        for index, text in enumerate(self.questions):
            row = "  ".join(shown_error(self.errors[name][index]).rjust(8) for name in names)
            row += f"  {ranges[index].rjust(max(width, 11))}" if ranges else ""
            shown = " ".join(text.split())
            lines.append(f"{row}  {shown if len(shown) <= 120 else shown[:119] + '…'}")
        if any(math.isnan(error) for each in self.errors.values() for error in each):
            lines.append(NOT_FORECAST)
        return "\n".join([*lines, self.views(), *self.notes, *self.others()])

    def ranges(self) -> list[str]:
        """For each question the grid's error from low to high, in words; empty if none depends on what is not known."""
        shown = [shown_span(*span) for span in self.spans]
        return shown if any(shown) else []

    def others(self) -> list[str]:
        """Why errors are ranges, and what questions outside the workload will be worth, in words."""
        lines = [RANGE_NOTE] * bool(self.ranges())
        if not self.outside:
            return lines
        lines.append("a range that is not in the workload:")
        lines += [f"{shown_error(error).rjust(8)}  {about}" for about, error in self.outside.items()]
        return lines

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
    return "unclear" if math.isinf(error) else f"{error:,.3g}"


def ignored(_: float) -> None:
    """Nobody watches."""


def fit_grids(
    start: AnySpecification,
    users: int,
    workload: Sequence[str] | None = None,
    *,
    compared: bool = True,
    only_workload: bool = False,
    others: float | None = None,
    seen: Densities | None = None,
    predicted: bool = True,
    rows: RowsGiven = None,
    matching: MatchingGiven = None,
    advance: Callable[[float], None] = ignored,
) -> Fit[AnySpecification]:
    """Choose the grids of a specification of that design. See `deniable.fit`.

    `seen` is what a first look has seen. Without `predicted`, no error is forecast. `advance` is called with the part
    of the work that was done since it was last called.
    """
    count, assumed = checked_users(users), assumed_rows(start, rows)
    texts = _checked_questions(start, workload, seen or {})
    shown = texts if workload is not None else _some(texts)
    of_question = assumed_by_question(start, rows, matching, len(shown))
    factor = checked_others(others, only_workload=only_workload)
    fitted = ViewsOfWorkload(start, texts, count, workload is None, factor, seen or {}, assumed, advance).chosen()
    collection = fitted.collection
    designs: dict[str, AnySpecification] = {"grid": collection} if predicted else {}
    if compared and predicted:
        designs |= {name: start.with_settings(design=name) for name in COMPARED_DESIGNS}
    beyond = workload is not None and compared
    part = 0.4 if beyond else 0.5
    errors: dict[str, tuple[float, ...]] = {}
    for name, mine in designs.items():
        each = []
        for text, expected in zip(shown, of_question, strict=True):
            each.append(least_error(mine, text, count, expected))
            advance(part / len(designs) / len(shown))
        errors[name] = tuple(each)
    outside: dict[str, float] = {}
    if beyond:
        outside = outside_errors(collection, count, set(texts), assumed, lambda done: advance(done * (0.5 - part)))
    spans = spans_of(collection, count, shown, of_question) if predicted else ()
    return Fit(collection, count, shown, errors, fitted.notes, outside, spans)


def spans_of(
    collection: Specification, users: int, questions: tuple[str, ...], assumed: tuple[AssumedRows, ...]
) -> tuple[Span, ...]:
    """For each question the error of a grid from low to high, as far as rows are known."""
    return tuple(
        span_of(planned(collection, text, "optimal", DIRECT, users, assumed=expected), users, expected)
        for text, expected in zip(questions, assumed, strict=True)
    )


def _checked_questions(start: Specification, workload: Sequence[str] | None, seen: Densities) -> tuple[str, ...]:
    if isinstance(workload, str):
        raise InvalidParameter("workload", "is one text", "Give a list of questions.")
    texts = tuple(workload) if workload is not None else all_ranges(start, seen)
    if not texts or not all(isinstance(text, str) for text in texts):
        raise InvalidParameter("workload", "must be a list of questions", "Give at least one SELECT, or None.")
    return texts


def outside_errors(
    collection: Specification, users: int, asked: set[str], assumed: AssumedRows, advance: Callable[[float], None]
) -> dict[str, float]:
    """The error of a typical range of each attribute, and of the first pairs of each table."""
    about = [
        (table, names)
        for table in collection.tables
        for names in [*combinations(table.private, 1), *islice(combinations(table.private, 2), SHOWN_PAIRS)]
    ]
    errors: dict[str, float] = {}
    for table, names in about:
        texts = [text for text in ranges_of(table, names) if text not in asked]
        each = sorted(least_error(collection, text, users, assumed) for text in texts[:TYPICAL_RANGES])
        if each:
            errors[f"{table.name}: {' and '.join(names)}"] = each[len(each) // 2]
        advance(1 / len(about))
    return errors


def _some(texts: tuple[str, ...]) -> tuple[str, ...]:
    """A few of many questions, evenly spaced."""
    texts = tuple(dict.fromkeys(texts))
    return tuple(
        texts[index] for index in np.unique(np.linspace(0, len(texts) - 1, SHOWN_QUESTIONS).astype(int)).tolist()
    )


def least_error(collection: Specification, text: str, users: int, assumed: AssumedRows) -> float:
    """The error of a question with the better way to take its sums; NaN if that would take long."""
    if not is_quick(collection, text):
        return math.nan
    errors = [math.inf]
    rounding = collection.grids is None and collection.design != "hio" and sums_values(collection, text)
    for sums in (DIRECT, DESIGNED) if rounding else (DIRECT,):
        try:
            plan = planned(collection, text, "optimal", sums, users, assumed=assumed)
            errors.append(error_of(plan, users, assumed.middle))
        except QueryRefused:
            continue
    return min(errors)


def sums_values(collection: Specification, text: str) -> bool:
    """Whether a question needs a sum of values: counts do not depend on how these are taken."""
    return any(term.measures for moment in parse(text, collection).moments for term in moment.terms)


def is_quick(collection: Specification, text: str) -> bool:
    """Whether a forecast takes seconds: not with very many views, nor if a sum needs every value of a wide domain."""
    if collection.grids is not None:
        return True
    if max(collection.views(table.name) for table in collection.tables) > MOST_FORECAST_VIEWS:
        return False
    if collection.design in FINEST_ONLY:
        cells = [math.prod(domain.size for domain in table.domains) for table in collection.tables]
        return max(cells) <= MOST_FORECAST_CELLS
    question = parse(text, collection)
    summed = [values.size for moment in question.moments for term in moment.terms for values in term.measures.values()]
    return max(summed, default=0) <= MOST_SUMMED_VALUES
