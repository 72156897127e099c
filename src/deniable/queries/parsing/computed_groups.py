"""GROUP BY an expression of several attributes, or of public columns: one part for each value that it may have.

The values of a CASE are those of its branches. Those of an expression of public columns follow from the values that the
columns have, which everybody may know. Each part counts the rows with one value, by a condition.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.parsing.case_branches import branches_of
from deniable.queries.parsing.compound_questions import Compound, PlainPart, item_behind, ordering_of
from deniable.queries.parsing.domain_values import evaluated
from deniable.queries.parsing.groups import is_of_one_dimension
from deniable.queries.parsing.scope import Node, PrivateColumn, PublicColumn, Scope
from deniable.queries.parsing.source_names import conjuncts

MOST_COMPUTED_GROUPS = 64
_COUNTED = "rows_of_these"
Rows = Callable[[str], Sequence[dict[str, Any]]]


def computed_groups(compound: Compound, scope_of: Callable[[Node], Scope], rows: Rows) -> Compound:
    """The same question, with parts in the place of a group that is computed; `rows` are those of an answer."""
    select = compound.parts[0].select
    group = select.args.get("group")
    if len(compound.parts) > 1 or group is None or compound.parts[0].constants or group.args.get("all"):
        return compound
    scope = scope_of(select)
    for number, written in enumerate(group.expressions):
        node = _bare(item_behind(select, written))
        if isinstance(node, exp.Column) or not _is_computed(scope, node):
            continue
        values = _branch_values(node)
        conditions = _public_values(scope, select, node, rows) if values is None else values
        if len(conditions) > MOST_COMPUTED_GROUPS:
            problem = f"there are more than {MOST_COMPUTED_GROUPS} values of what is grouped by"
            raise scope.refusal(written, problem, "Group by the column itself, or by fewer values.")
        return _divided(compound, node, number, conditions)
    return compound


def _bare(node: Node) -> Node:
    return _bare(node.this) if isinstance(node, exp.Paren) else node


def _is_computed(scope: Scope, node: Node) -> bool:
    """Whether an expression is one of public columns, or of several attributes."""
    if node.find(exp.AggFunc, exp.Window, exp.Subquery) or not node.find(exp.Column):
        return False
    meanings = [scope.meaning(column) for column in node.find_all(exp.Column)]
    private = {meaning.attribute for meaning in meanings if isinstance(meaning, PrivateColumn)}
    if is_of_one_dimension(meanings):
        return False
    of_dimension = any(isinstance(meaning, PrivateColumn) and meaning.dimension is not None for meaning in meanings)
    return any(isinstance(meaning, PublicColumn) for meaning in meanings) or len(private) > 1 or of_dimension


def _branch_values(node: Node) -> list[tuple[Any, Node]] | None:
    """The values of a CASE of constants, each with the condition that it is the one; None for anything else."""
    if not isinstance(node, (exp.Case, exp.If)):
        return None
    branches, default = branches_of(node)
    nodes = [*(value for _, value in branches), default]
    if not all(value is None or isinstance(value, (exp.Literal, exp.Null, exp.Boolean)) for value in nodes):
        return None
    constants = [_constant(value) for value in nodes]
    made = []
    for wanted in dict.fromkeys(constants):
        condition = exp.Case(
            ifs=[
                exp.If(this=test.copy(), true=exp.true() if constant == wanted else exp.false())
                for (test, _), constant in zip(branches, constants, strict=False)
            ]
        )
        condition.set("default", exp.true() if constants[-1] == wanted else exp.false())
        made.append((wanted, condition))
    return made


def _constant(node: Node) -> Any:
    if node is None or isinstance(node, exp.Null):
        return None
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    if node.is_string:
        return str(node.this)
    return int(node.this) if str(node.this).isdigit() else float(node.this)


def _public_values(scope: Scope, select: Node, node: Node, rows: Rows) -> list[tuple[Any, Node]]:
    """The values of an expression of public columns, each with the condition that it is the one."""
    columns = list({column.sql(dialect="duckdb"): column for column in node.find_all(exp.Column)}.values())
    if not all(isinstance(scope.meaning(column), PublicColumn) for column in columns):
        problem = "an expression of several attributes is grouped by"
        raise scope.refusal(node, problem, "Group by the attributes, or by a CASE whose values are constants.")
    asked = exp.Select(from_=select.args["from_"].copy())
    asked.set("joins", [join.copy() for join in select.args.get("joins") or []])
    where = select.args.get("where")
    for part in [] if where is None else conjuncts(where.this):
        known = list(part.find_all(exp.Column))
        if known and all(isinstance(scope.meaning(column), PublicColumn) for column in known):
            asked.where(part.copy(), copy=False)  # values that it leaves out are no groups
    names = [f"column_{number}" for number in range(len(columns))]
    named = [exp.alias_(column.copy(), name) for column, name in zip(columns, names, strict=True)]
    asked.set("expressions", [*named, exp.alias_(exp.Count(this=exp.Star(), big_int=True), _COUNTED)])
    asked.set("group", exp.Group(expressions=[column.copy() for column in columns]))
    combinations = [tuple(row[name] for name in names) for row in rows(str(asked.sql(dialect="duckdb")))]
    frame = pa.table({name: pa.array([row[position] for row in combinations]) for position, name in enumerate(names)})
    by_text = dict(zip((column.sql(dialect="duckdb") for column in columns), names, strict=True))
    try:
        values = evaluated(scope, node, frame, by_text).to_pylist()
    except QueryRefused:  # a CSV file has texts only
        values = evaluated(scope, node, _as_numbers(frame), by_text).to_pylist()
    tests: dict[Any, list[Node]] = {}
    for value, combination in zip(values, combinations, strict=True):
        parts = [_equal(column, each) for column, each in zip(columns, combination, strict=True)]
        tests.setdefault(value, []).append(exp.and_(*parts))
    if len(columns) == 1:
        return [(value, _among(columns[0], values, combinations, value)) for value in sorted(tests, key=_order)]
    return [(value, exp.Paren(this=exp.or_(*tests[value]))) for value in sorted(tests, key=_order)]


def _as_numbers(frame: pa.Table) -> pa.Table:
    """The same columns; texts that are all whole numbers, as numbers."""
    made = {}
    for name in frame.column_names:
        try:
            made[name] = frame[name].cast(pa.int64())
        except pa.ArrowException:
            made[name] = frame[name]
    return pa.table(made)


def _among(column: Node, values: Sequence[Any], combinations: Sequence[tuple[Any, ...]], wanted: Any) -> Node:
    """A column is one of those that give a value."""
    own = [row[0] for value, row in zip(values, combinations, strict=True) if value == wanted]
    known = [exp.convert(each) for each in own if each is not None]
    tests: list[Node] = [exp.In(this=column.copy(), expressions=known)] if known else []
    if len(known) < len(own):
        tests.append(_equal(column, None))
    return exp.Paren(this=exp.or_(*tests))


def _equal(column: Node, value: Any) -> Node:
    if value is None:
        return exp.Is(this=column.copy(), expression=exp.null())
    return exp.EQ(this=column.copy(), expression=exp.convert(value))


def _order(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (2, "")
    return (0, value) if isinstance(value, (int, float, Decimal)) else (1, str(value))


def _divided(compound: Compound, node: Node, number: int, values: Sequence[tuple[Any, Node]]) -> Compound:
    """A part for every value: without the group, with a condition."""
    (part,) = compound.parts
    text = node.sql(dialect="duckdb")
    shown = [
        name
        for name, item in zip(part.names, part.select.expressions, strict=True)
        if _bare(item.this if isinstance(item, exp.Alias) else item).sql(dialect="duckdb") == text
    ]
    order, limit, offset = ordering_of(part.select, part.names)
    parts = []
    for value, condition in values:
        made = part.select.copy()
        kept = [
            item.copy() if isinstance(item, exp.Alias) else exp.alias_(item.copy(), name, quoted=True)
            for name, item in zip(part.names, made.expressions, strict=True)
            if name not in shown
        ]
        if not kept:
            raise QueryRefused("nothing is aggregated", "Ask for COUNT(*), SUM or AVG.")
        others = [
            item_behind(part.select, each).copy()
            for position, each in enumerate(part.select.args["group"].expressions)
            if position != number
        ]
        made.set("expressions", kept)
        made.set("group", exp.Group(expressions=others) if others else None)
        for clause in ("order", "limit", "offset"):
            made.set(clause, None)
        made = made.where(condition.copy())
        parts.append(PlainPart(made, dict.fromkeys(shown, value), part.names))
    return Compound(tuple(parts), part.names, order, limit, offset)
