"""A question with quantiles → an answer: prefix counts for each expression, and everything else as always."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from deniable.arrays import Floats
from deniable.errors import QueryRefused
from deniable.queries.answers.answer_options import AnswerOptions
from deniable.queries.answers.compound_answers import Ask, arranged
from deniable.queries.answers.estimation import Moments
from deniable.queries.answers.quantiles import PrefixCounts, prefix_counts, quantile
from deniable.queries.answers.result import Estimate, Result
from deniable.queries.answers.wide_quantiles import borders_at_once, narrowed
from deniable.queries.parsing.quantile_questions import (
    GROUP,
    MOST_FREQUENT,
    ROWS,
    VALUE,
    AskedQuantile,
    QuantileQuestion,
)
from deniable.queries.planning.plan import Plan
from deniable.queries.question.question import PrivateGroups, Question
from deniable.wording import listed

Key = tuple[Any, ...]
CLOSE_MODE = "{}: {} cannot be told from the most frequent value"


@dataclass(frozen=True, slots=True, eq=False)
class Prefixes:
    """What reports say of all prefix counts of an expression, in every group."""

    plan: Plan
    moments: Moments
    model: Floats | None
    single_rows: bool


class ReportedPart(NamedTuple):
    """What some reports say about a question."""

    plan: Plan
    moments: Moments
    model: Floats | None
    contradicted: bool


def cumulative_question(question: Question) -> Question:
    """A question that counts rows by groups, as one that counts the rows up to each value of its last group."""
    *others, last = question.groups
    if isinstance(last, PrivateGroups) and len(last.values) > 1 and last.values[-1] is None:
        # Rows without a value do not count, by a condition: which group they would be in does not matter.
        last = replace(last, values=last.values[:-1], codes=np.minimum(last.codes, len(last.values) - 2))
    if not isinstance(last, PrivateGroups) or not all(_is_number(value) for value in last.values):
        problem = "quantiles are of numbers of one private attribute"
        repair = "Of dates ask for the days since one, DATE_DIFF('day', DATE '2024-01-01', x); count others in groups."
        raise QueryRefused(problem, repair)
    if any(isinstance(group, PrivateGroups) and group.attribute == last.attribute for group in others):
        raise QueryRefused("the attribute of a quantile is grouped by, too", "Group by another attribute.")
    (counted,) = question.moments
    whole = replace(counted, name="rows", free=True)
    return replace(
        question,
        groups=(*others, replace(last, cumulative=True)),
        moments=(replace(counted, name="rows up to a value"), whole),
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def quantile_answer(
    question: QuantileQuestion,
    ask: Ask,
    prefixes: Callable[[str], Prefixes],
    values: Callable[[QuantileQuestion, AskedQuantile], Sequence[Any]],
    options: AnswerOptions,
) -> Result:
    """All items of a question in the order in which they were asked.

    `values` are those that an expression may have: so many may be too many to count one by one.
    """
    plain = ask(question.plain_text())
    keys = [
        tuple(plain.groups[f"{GROUP}{number}"][row] for number in range(len(question.groups)))
        for row in range(len(plain))
    ]
    columns: dict[str, list[Any]] = {}
    notes = list(plain.notes)
    together = max(len(question.asked) * len(keys), 1) if options.simultaneous else 1

    def estimate(counts: PrefixCounts | None, asked: AskedQuantile) -> Estimate:
        return _quantile(counts, asked, options.confidence, together)

    @functools.cache  # all quantiles of an attribute share their counts
    def counted(text: str) -> Mapping[Key, PrefixCounts]:
        alike = [each for each in question.asked if each.kind != MOST_FREQUENT and question.counts_text(each) == text]
        possible = values(question, alike[0])
        if not (most := borders_at_once(len(possible), max(len(keys), 1))):
            return _by_group(prefixes(text))

        def at(borders: Sequence[Any]) -> Mapping[Key, PrefixCounts]:
            return _by_group(prefixes(question.counts_text(alike[0], borders)))

        return narrowed(possible, most, at, alike, estimate)

    for asked in question.asked:
        if asked.kind == MOST_FREQUENT:
            columns[asked.name] = _modes(question, asked, keys, ask, notes)
        else:
            known = counted(question.counts_text(asked))
            columns[asked.name] = [estimate(known.get(key), asked) for key in keys]
    for name, number in question.shown_groups.items():
        columns[name] = [key[number] for key in keys]
    for name in question.names:
        if name not in columns:
            columns[name] = list(plain.groups[name] if name in plain.groups else plain.answers[name])
    ordered = {name: columns[name] for name in question.names}
    like = replace(plain, notes=tuple(notes), sql=str(question.select.sql(dialect="duckdb")))
    return arranged(ordered, question.order, question.limit, question.offset, like)


def _by_group(known: Prefixes) -> dict[Key, PrefixCounts]:
    """The prefix counts of every group."""
    rows: dict[Key, list[int]] = {}
    for row, key in enumerate(known.moments.keys):
        rows.setdefault(key[:-1], []).append(row)
    return {
        key: prefix_counts(known.moments, mine, known.model, single_rows=known.single_rows)
        for key, mine in rows.items()
    }


def _quantile(counts: PrefixCounts | None, asked: AskedQuantile, confidence: float, together: int) -> Estimate:
    if counts is None:
        return Estimate(math.nan, math.nan, confidence, together)
    return quantile(counts, asked.share, asked.kind, confidence, together)


def _modes(question: QuantileQuestion, asked: AskedQuantile, keys: list[Key], ask: Ask, notes: list[str]) -> list[Any]:
    """The most frequent value of every group; a note names those that noise may have hidden."""
    counts = ask(question.counts_text(asked))
    by_key: dict[Key, list[tuple[Any, Estimate]]] = {}
    for row, estimate in enumerate(counts.answers[ROWS]):
        key = tuple(counts.groups[f"{GROUP}{number}"][row] for number in range(len(question.groups)))
        by_key.setdefault(key, []).append((counts.groups[VALUE][row], estimate))
    modes: list[Any] = []
    for key in keys:
        seen = by_key.get(key, [])
        if not seen:
            modes.append(None)
            continue
        mode, most = max(seen, key=lambda pair: pair[1].value)
        close = [str(value) for value, each in seen if value != mode and _may_exceed(each, most)]
        if close:
            notes.append(CLOSE_MODE.format(" ".join([asked.name, *map(str, key)]), listed(close, 5)))
        modes.append(mode)
    return modes


def _may_exceed(other: Estimate, most: Estimate) -> bool:
    """Whether noise may have put two counts in the wrong order; their errors may go opposite ways."""
    return most.value - other.value <= 2 * (most.error + other.error) and other.error + most.error > 0
