"""Constants outside of an attribute's domain: they match nothing, and the answer says so."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.parsing.constants import is_outside
from deniable.queries.parsing.domain_functions import COMPARISONS
from deniable.queries.parsing.scope import Node, PrivateColumn, Scope
from deniable.tables.schema.attributes import Categorical


def outside_notes(scope: Scope, select: Node) -> Iterator[str]:
    """A note for each constant that a private attribute is compared with and cannot have."""
    for node in select.find_all(*COMPARISONS, exp.In, exp.Between):
        if isinstance(node, exp.In):
            sides = [node.this, *node.expressions]
        elif isinstance(node, exp.Between):
            sides = [node.this, node.args["low"], node.args["high"]]
        else:
            sides = [node.this, node.expression]
        columns = [side for side in sides if isinstance(side, exp.Column)]
        if len(columns) == 1:
            yield from _notes(scope, columns[0], [side for side in sides if not side.find(exp.Column)])


def _notes(scope: Scope, node: Node, constants: list[Node]) -> Iterator[str]:
    try:
        column = scope.meaning(node)
        if not isinstance(column, PrivateColumn) or column.dimension is not None:
            return
        outside = [constant for constant in constants if is_outside(scope, constant, column.domain)]
    except QueryRefused:  # the name of an answer, or a NULL
        return
    for constant in outside:
        shown = constant.sql(dialect="duckdb")
        if isinstance(column.domain, Categorical):
            yield f"{shown} is not in the list of {column.attribute[1]}: {_standing(column.domain, constant)}"
        else:
            ends = f"{column.domain.low} to {column.domain.high}"
            yield f"{shown} is outside the domain of {column.attribute[1]}, which is {ends}"


def _standing(domain: Categorical, constant: Node) -> str:
    """What became of rows with a value that is not listed."""
    stands = domain.map.get(str(constant.this)) if isinstance(constant, exp.Literal) else None
    stands = domain.other if stands is None else stands
    return "nobody has it" if stands is None else f"its rows count as {exp.convert(stands).sql(dialect='duckdb')}"
