"""What SUM and others are taken of: polynomials of attributes, on disjoint sets of rows.

`age * 2` is one polynomial on all rows; a CASE is one for each branch, on the rows of that branch. Rows without a value
(an unknown public column, a CASE without ELSE) are in no piece, as SQL leaves them out.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sqlglot import exp

from deniable.arrays import Floats
from deniable.queries.parsing.case_branches import branches_of, lifted
from deniable.queries.parsing.constants import number
from deniable.queries.parsing.domain_functions import numbers
from deniable.queries.parsing.domain_values import constant_of, numbers_of, only_attribute, value_alone, values_of
from deniable.queries.parsing.expressions import Polynomial, Variable
from deniable.queries.parsing.groups import normal_form
from deniable.queries.parsing.scope import Node, PrivateColumn, PublicColumn, Scope
from deniable.queries.parsing.where import condition_rows, matched, unmatched, without_parentheses
from deniable.queries.question.conditions import (
    EVERYTHING,
    AttributeKey,
    Disjoint,
    both,
    merged,
    opposite,
    private,
    public,
)
from deniable.queries.question.public_trees import is_known
from deniable.tables.schema.attributes import Ordinal

ONE, ZERO = Polynomial.constant(Fraction(1)), Polynomial.constant(Fraction(0))
MOST_BRANCHES = 64
_CONDITIONS = (
    exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Is, exp.In, exp.Between, exp.Like,
    exp.ILike, exp.RegexpLike, exp.StartsWith, exp.EndsWith, exp.Contains,
)  # fmt: skip
_INTEGER_TYPES = {exp.DataType.Type.BIGINT, exp.DataType.Type.INT}


@dataclass(frozen=True, slots=True, eq=False)
class Measure:
    """The numbers of a private attribute, at every value of its domain; NaN where there is none."""

    attribute: AttributeKey
    values: Floats


@dataclass(frozen=True, slots=True)
class Piece:
    """What is summed on some rows."""

    rows: Disjoint
    polynomial: Polynomial


Pieces = tuple[Piece, ...]


def rows_of(pieces: Pieces) -> Disjoint:
    """The rows that have a value."""
    return merged(conjunction for piece in pieces for conjunction in piece.rows)


def combined(left: Pieces, right: Pieces, operation: Any) -> Pieces:
    """An operation of two expressions, where both have a value."""
    return tuple(
        Piece(rows, operation(first.polynomial, second.polynomial))
        for first in left
        for second in right
        if (rows := both(first.rows, second.rows))
    )


class SummandReader:
    """Expressions as pieces; remembers what their variables are."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.columns: dict[Variable, Measure | PublicColumn] = {}

    def pieces(self, node: Node) -> Pieces:
        """What is summed."""
        if isinstance(node, exp.Paren):
            return self.pieces(node.this)
        if isinstance(node, exp.Null):
            return ()
        if isinstance(node, exp.Boolean):
            return (Piece(EVERYTHING, ONE if node.this else ZERO),)
        if isinstance(node, exp.Literal) and not node.is_string:
            return (Piece(EVERYTHING, Polynomial.constant(number(self._scope, node))),)
        if isinstance(node, exp.Column):
            return self._with_partner(node, self._column(node))
        if isinstance(node, exp.Neg):
            return tuple(Piece(p.rows, Polynomial({}).plus(p.polynomial, Fraction(-1))) for p in self.pieces(node.this))
        if isinstance(node, (exp.Add, exp.Sub, exp.Mul)) or self._by_constant(node):
            return self._arithmetic(node)
        if isinstance(node, (exp.Case, exp.If)):
            return self._case(node)
        if isinstance(node, _CONDITIONS):
            return self._condition(node)
        if isinstance(node, exp.Coalesce):
            return self._coalesce([node.this, *node.expressions])
        if isinstance(node, exp.Cast) and _keeps_numbers(node):
            return self.pieces(node.this)
        if not node.find(exp.AggFunc, exp.Window, exp.Subquery):
            column = only_attribute(self._scope, node) if node.find(exp.Column) else None
            if column is not None:
                return self._computed(node, column)
            branched = lifted(node)
            if branched is not None:
                return self._case(branched)
        repair = "Use sums, differences and products of attributes and numbers, CASE, and functions of one attribute."
        raise self._scope.refusal(node, "this cannot be summed", repair)

    def _by_constant(self, node: Node) -> bool:
        return isinstance(node, exp.Div) and not node.right.find(exp.Column, exp.AggFunc)

    def _arithmetic(self, node: Node) -> Pieces:
        left = self.pieces(node.left)
        if isinstance(node, exp.Div):
            divisor = constant_of(self._scope, node.right)
            if not divisor:
                raise self._scope.refusal(node, "this divides by zero", "Divide by another constant.")
            inverse = Polynomial.constant(1 / Fraction(str(divisor)))
            return tuple(Piece(piece.rows, piece.polynomial.times(inverse)) for piece in left)
        right = self.pieces(node.right)
        if isinstance(node, exp.Mul):
            return combined(left, right, Polynomial.times)
        sign = Fraction(1 if isinstance(node, exp.Add) else -1)
        return combined(left, right, lambda first, second: first.plus(second, sign))

    def _case(self, node: Node) -> Pieces:
        branches, default = branches_of(node)
        made: list[Piece] = []
        rest: Disjoint = EVERYTHING
        for condition, value in branches:
            holds = condition_rows(self._scope, condition)
            made += self._within(both(rest, holds), value)
            rest = both(rest, opposite(holds))
        made += self._within(rest, default)
        if len(made) > MOST_BRANCHES:
            raise self._scope.refusal(node, f"CASE has more than {MOST_BRANCHES} parts", "Use fewer branches.")
        return tuple(made)

    def _within(self, rows: Disjoint, value: Node) -> list[Piece]:
        if not rows or value is None:
            return []
        pieces = self.pieces(value)
        return [Piece(met, piece.polynomial) for piece in pieces if (met := both(rows, piece.rows))]

    def _with_partner(self, node: Node, pieces: Pieces) -> Pieces:
        """Pieces of rows that have a partner in the table of their columns, where LEFT JOIN leaves open whether."""
        table = self._scope.optional_table(node)
        here = EVERYTHING if table is None else matched(self._scope, table)
        return tuple(Piece(rows, piece.polynomial) for piece in pieces if (rows := both(here, piece.rows)))

    def _condition(self, node: Node) -> Pieces:
        """A condition counts as 1 where it is true and 0 where it is false."""
        true = condition_rows(self._scope, node)
        false = condition_rows(self._scope, exp.Not(this=exp.Paren(this=node.copy())))
        return tuple(Piece(rows, value) for rows, value in ((true, ONE), (false, ZERO)) if rows)

    def _coalesce(self, nodes: list[Node]) -> Pieces:
        made: list[Piece] = []
        rest: Disjoint = EVERYTHING
        for node in nodes:
            made += self._within(rest, node)
            rest = both(rest, opposite(rows_of(self.pieces(node))))
            if not rest:
                break
        return tuple(made)

    def _column(self, node: Node) -> Pieces:
        column = self._scope.meaning(node)
        if isinstance(column, PublicColumn):
            variable = (column.table, column.column, "")
            self.columns[variable] = column
            rows = public((column.table, is_known(column.column)))
            return (Piece(rows, Polynomial.variable(variable)),)
        if column.dimension is not None:
            values = column.dimension.numbers(column.column)
            suffix = f"{id(column.dimension)}.{column.column}"
        elif isinstance(column.domain, Ordinal) and column.domain.kind == "number":
            values, suffix = numbers(column.domain), ""
        elif column.domain.size > 1 and not isinstance(column.domain, Ordinal):
            if isinstance(column.domain.values[0], bool):
                return self._condition(exp.EQ(this=node.copy(), expression=exp.true()))
            values, suffix = _categories(column), ""
        else:
            values, suffix = None, ""
        if values is None:
            raise self._scope.refusal(node, f"{node.name!r} is not a number", "Sum attributes of numbers.")
        return self._measure((*column.attribute, suffix), Measure(column.attribute, values))

    def _computed(self, node: Node, column: PrivateColumn) -> Pieces:
        """A function of one attribute, computed at every value of its domain."""
        values = numbers_of(values_of(self._scope, node, column.domain))
        if values is None:
            raise self._scope.refusal(node, "this is not a number", "Sum numbers.")
        if np.isinf(values).any():
            raise self._scope.refusal(node, "this has no value for some values of the attribute", "Use CASE there.")
        pieces = self._measure((*column.attribute, normal_form(self._scope, node)), Measure(column.attribute, values))
        pieces, table = self._with_partner(node, pieces), self._scope.optional_table(node)
        alone = None if table is None else value_alone(self._scope, node)
        if table is None or alone is None:
            return pieces
        return (*pieces, Piece(unmatched(self._scope, table), Polynomial.constant(Fraction(str(alone)))))

    def _measure(self, variable: Variable, measure: Measure) -> Pieces:
        self.columns[variable] = measure
        rows = private(measure.attribute, ~np.isnan(measure.values))
        return (Piece(rows, Polynomial.variable(variable)),) if rows else ()

    # Ranges ---------------------------------------------------------------------------------------------------------

    def range(self, pieces: Pieces) -> tuple[float, float] | None:
        """Bounds of an expression of private attributes, each monomial taken on its own."""
        ends = [self._piece_range(piece.polynomial) for piece in pieces]
        known = [end for end in ends if end is not None]
        if not ends or len(known) < len(ends):
            return None
        return min(low for low, _ in known), max(high for _, high in known)

    def _piece_range(self, polynomial: Polynomial) -> tuple[float, float] | None:
        low = high = 0.0
        for monomial, coefficient in polynomial.terms.items():
            ends = np.array([1.0])
            for variable in monomial:
                column = self.columns[variable]
                if not isinstance(column, Measure):
                    return None
                ends = np.multiply.outer(ends, [np.nanmin(column.values), np.nanmax(column.values)]).ravel()
            low += float((float(coefficient) * ends).min())
            high += float((float(coefficient) * ends).max())
        return low, high

    def middle(self, pieces: Pieces) -> Fraction:
        """The middle of an expression's range, which a mean is measured from: smaller numbers need smaller weights."""
        if any(piece.polynomial.degree > 1 for piece in pieces):
            return Fraction(0)
        if len(pieces) == 1 and pieces[0].polynomial.is_constant:
            return Fraction(0)
        ends = self.range(pieces)
        return Fraction(0) if ends is None else Fraction(ends[0] + ends[1]) / 2


def _keeps_numbers(node: Node) -> bool:
    """Whether a cast leaves every number as it is: to DOUBLE, or of a condition to a whole number."""
    inner = without_parentheses(node.this)
    return node.to.this == exp.DataType.Type.DOUBLE or (
        node.to.this in _INTEGER_TYPES and isinstance(inner, _CONDITIONS)
    )


def _categories(column: PrivateColumn) -> Floats | None:
    values = getattr(column.domain, "values", ())
    if not values or not isinstance(values[0], int):
        return None
    return np.array([*values, *[np.nan] * (column.domain.size - len(values))], dtype=np.float64)
