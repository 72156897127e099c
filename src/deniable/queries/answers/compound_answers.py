"""Answers of several plain questions as one answer: UNION ALL, GROUPING SETS, windows, scalar subqueries."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.answers.result import Estimate, Result
from deniable.queries.parsing.compound_questions import Compound
from deniable.queries.parsing.literals import literal_of
from deniable.queries.parsing.spread_questions import (
    Key,
    Spread,
    same_source,
    scalar_subquery,
    spread_of,
)

Node = Any
Ask = Callable[[str], Result]
CONSTANT = "a subquery is a constant here: what its error changes is added to the errors of the answers"


def compound_answer(compound: Compound, ask: Ask, ask_any: Ask, text: str) -> Result:
    """The rows of all parts below each other, in the order that was asked for.

    `ask` answers plain questions, `ask_any` also others, such as subqueries and parts of their own.
    """
    answered = [select_answer(part.select, ask, ask_any) for part in compound.parts]
    columns: dict[str, list[Any]] = {name: [] for name in compound.names}
    for part, result in zip(compound.parts, answered, strict=True):
        for name, own in zip(compound.names, part.names, strict=True):
            if own in part.constants:
                columns[name] += [part.constants[own]] * len(result)
            else:
                columns[name] += result.groups[own] if own in result.groups else result.answers[own]
    notes = tuple(dict.fromkeys(note for result in answered for note in result.notes))
    return arranged(
        columns, compound.order, compound.limit, compound.offset, replace(answered[0], notes=notes, sql=text)
    )


def is_plain(select: Node) -> bool:
    """Whether a SELECT has neither windows nor subqueries."""
    return not _scalar_places(select) and spread_of(select) is None


def select_answer(select: Node, ask: Ask, ask_any: Ask) -> Result:
    """The answer to a SELECT that may have windows and scalar subqueries.

    A subquery of other tables, or in WHERE, is asked on its own. What the answer would be one standard error of it
    further on is added to the answer's error, as if both erred together.
    """
    constants = [
        (node, ask_any(str(scalar_subquery(node).sql(dialect="duckdb"))).scalar()) for node in _scalar_places(select)
    ]
    asked = _without_constants(select, ask, ask_any, [estimate.value for _, estimate in constants])
    if not constants:
        return asked
    moved = [
        _without_constants(
            select,
            ask,
            ask_any,
            [each.value + sign * each.error * (other == number) for other, (_, each) in enumerate(constants)],
        )
        for number in range(len(constants))
        for sign in (-1, 1)
    ]
    answers = {
        name: tuple(
            _widened(estimate, [_move(other, asked, name, row) for other in moved])
            for row, estimate in enumerate(estimates)
        )
        for name, estimates in asked.answers.items()
    }
    return replace(asked, answers=answers, notes=(*asked.notes, CONSTANT))


def _move(other: Result, asked: Result, name: str, row: int) -> float:
    """How far an answer moves with a constant; groups that come and go are not followed."""
    if other.groups != asked.groups:
        return 0.0
    return abs(other.answers[name][row].value - asked.answers[name][row].value)


def _widened(estimate: Estimate, moves: list[float]) -> Estimate:
    """An estimate whose error includes what constants with errors add: of every constant the larger of two moves."""
    if math.isnan(estimate.value):
        return estimate
    added = sum(max(pair) for pair in zip(moves[::2], moves[1::2], strict=True) if not math.isnan(sum(pair)))
    return replace(estimate, stderr=estimate.stderr + added, bounds=None)


def _scalar_places(select: Node) -> list[Node]:
    """Subqueries that are asked on their own."""
    where = select.args.get("where")
    inside = (
        [] if where is None else [node for node in where.find_all(exp.Subquery) if not isinstance(node.parent, exp.In)]
    )
    return inside + [
        node
        for item in select.expressions
        for node in item.find_all(exp.Subquery)
        if not same_source(select, scalar_subquery(node))
    ]


def _without_constants(select: Node, ask: Ask, ask_any: Ask, values: list[float]) -> Result:
    """The answer with constants in the place of subqueries."""
    made = select.copy()
    for node, value in zip(_scalar_places(made), values, strict=True):
        if math.isnan(value):
            raise QueryRefused("a subquery has no clear answer", "Ask it on its own first.")
        node.replace(literal_of(float(f"{value:.12g}")))
    text = str(made.sql(dialect="duckdb"))
    spread = spread_of(made)
    return ask_any(text) if spread is None else spread_answer(spread, ask, text)


def arranged(
    columns: dict[str, list[Any]],
    order: Sequence[tuple[str, bool]],
    limit: int | None,
    offset: int,
    like: Result,
) -> Result:
    """Columns as a result: those with estimates are answers, the others groups. Missing values come last."""
    rows = list(range(max(map(len, columns.values()), default=0)))
    for name, descending in reversed(order):
        keys = [_sort_key(value) for value in columns[name]]
        known = sorted((row for row in rows if keys[row] is not None), key=lambda row: keys[row], reverse=descending)
        rows = known + [row for row in rows if keys[row] is None]
    rows = rows[offset : None if limit is None else offset + limit]
    groups: dict[str, list[Any]] = {}
    answers: dict[str, tuple[Estimate, ...]] = {}
    for name, values in columns.items():
        estimates = [isinstance(value, Estimate) for value in values]
        if any(estimates) and not all(estimates):
            raise QueryRefused(f"column {name!r} is an answer in one part and not in another", "Select alike columns.")
        if any(estimates):
            answers[name] = tuple(values[row] for row in rows)
        else:
            groups[name] = [values[row] for row in rows]
    return replace(like, groups=groups, answers=answers)


def _sort_key(value: Any) -> Any:
    if isinstance(value, Estimate):
        return None if math.isnan(value.value) else value.value
    return value


def spread_answer(spread: Spread, ask: Ask, text: str) -> Result:
    """A question with windows, or subqueries of the same tables: first its groups, then every cell in one row."""
    keys: list[Key] = [()]
    if spread.groups:
        rows = ask(spread.keys_text())
        keys = list(zip(*(rows.groups[f"g{number}"] for number in range(len(spread.groups))), strict=True))
    if not keys:
        empty: dict[str, list[Any]] = {name: [] for name in spread.names}
        return Result(empty, {}, (), text)
    cells = ask(spread.cells_text(keys))
    shown = spread.shown_groups
    columns: dict[str, list[Any]] = {}
    for number, name in enumerate(spread.names):
        if name in shown:
            columns[name] = [key[shown[name]] for key in keys]
        else:
            columns[name] = [cells.answers[f"c{row}_{number}"][0] for row in range(len(keys))]
    return arranged(columns, spread.order, spread.limit, spread.offset, replace(cells, sql=text))
