"""What is asked → formulas of sums: COUNT, the functions of `AGGREGATES`, and arithmetic between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from sqlglot import exp

from deniable.arrays import Floats
from deniable.errors import QueryRefused
from deniable.limits import MOST_MOMENTS, MOST_TERMS
from deniable.queries.parsing.answer_functions import applied
from deniable.queries.parsing.case_branches import branches_of
from deniable.queries.parsing.constants import number
from deniable.queries.parsing.counted_rows import CountedRows, counted_rows
from deniable.queries.parsing.draft import CollectedSum
from deniable.queries.parsing.expressions import Monomial, Polynomial
from deniable.queries.parsing.functions import AGGREGATES, refused_aggregate
from deniable.queries.parsing.pair_functions import PAIR_AGGREGATES
from deniable.queries.parsing.scope import Node, PrivateColumn, PublicColumn, Scope
from deniable.queries.parsing.summands import ONE, Measure, Piece, Pieces, SummandReader, rows_of
from deniable.queries.parsing.where import condition_rows, matched
from deniable.queries.question.conditions import (
    EVERYTHING,
    MOST_CONJUNCTIONS,
    AttributeKey,
    Disjoint,
    TooManyConjunctions,
    both,
)
from deniable.queries.question.formula import Binary, Formula, Moment, Number
from deniable.queries.question.public_trees import PublicFactor, PublicTest, product_of
from deniable.queries.question.question import MomentOf, Term

_SIGNS: dict[Any, str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
LARGEST = 10**30
"""Coefficients up to here leave room for squares."""


class SumCollector:
    """Formulas of a query's aggregates; collects the sums that they need, each once."""

    def __init__(
        self,
        scope: Scope,
        rows: Disjoint,
        sums: Sequence[CollectedSum],
        *,
        centred: bool,
        apart: frozenset[str] = frozenset(),
    ) -> None:
        self._scope, self._rows, self._centred, self._apart = scope, rows, centred, apart
        self._reader = SummandReader(scope)
        self._sums = list(sums)
        self._numbers = {known.key: index for index, known in enumerate(sums)}
        self._regions = {known.key[1]: known.moment.region for known in sums}
        self._size = sum(known.size for known in sums)

    @property
    def sums(self) -> tuple[CollectedSum, ...]:
        """All sums so far."""
        return tuple(self._sums)

    def formula(self, node: Node) -> Formula:
        """A select item, or a part of one."""
        if isinstance(node, exp.Paren):
            return self.formula(node.this)
        if isinstance(node, exp.Neg):
            return Binary("-", Number(0.0), self.formula(node.this))
        if isinstance(node, exp.Literal) and not node.is_string:
            return Number(float(number(self._scope, node)))
        if type(node) in _SIGNS:
            return Binary(_SIGNS[type(node)], self.formula(node.left), self.formula(node.right))
        if isinstance(node, exp.Count):
            return self._count(node)
        if isinstance(node, exp.CountIf):
            return self._within(node, condition_rows(self._scope, node.this), exp.Count(this=exp.Star()))
        if type(node) in AGGREGATES:
            return self._aggregate(node)
        if type(node) in PAIR_AGGREGATES:
            return self._pair(node)
        if isinstance(node, exp.Filter):
            if not isinstance(node.this, exp.AggFunc) or not isinstance(node.expression, exp.Where):
                raise self._scope.refusal(node, "FILTER follows an aggregate", "Write COUNT(*) FILTER (WHERE …).")
            return self._within(node, condition_rows(self._scope, node.expression.this), node.this)
        function = applied(self._scope, node, self.formula)
        if function is not None:
            return function
        raise self._scope.refusal(node, *refused_aggregate(node))

    def _within(self, node: Node, rows: Disjoint, aggregate: Node) -> Formula:
        """An aggregate over the rows that pass a further condition: COUNT(*) FILTER (WHERE …)."""
        before = self._rows
        try:
            self._rows = both(before, rows)
            return self.formula(aggregate)
        except TooManyConjunctions:
            raise self._too_many(node) from None
        finally:
            self._rows = before

    def _too_many(self, node: Node) -> QueryRefused:
        return self._scope.refusal(node, f"the condition needs more than {MOST_CONJUNCTIONS} terms", "Simplify it.")

    def _count(self, node: Node) -> Formula:
        """How many rows have a value of what is counted."""
        inner = node.this
        if isinstance(inner, exp.Distinct):
            counted = None if len(inner.expressions) != 1 else self._people(inner.expressions[0])
            if counted is None:
                problem = "COUNT(DISTINCT …) is not possible: randomised reports do not say whose value is whose"
                raise self._scope.refusal(node, problem, "Count rows: COUNT(*), or group by the attribute.")
            several = [name for name in self._scope.tables if (self._scope.collection[name].many or 1) > 1]
            table = self._scope.key_table(counted) if isinstance(counted, exp.Column) else None
            if table in several or not all(self._is_free(name) for name in several):
                problem = "people with several rows cannot be counted once: reports hide how many rows somebody has"
                raise self._scope.refusal(node, problem, "Count rows, or people of a table with one row each.")
            if several:
                here = EVERYTHING if table is None else matched(self._scope, table)
                return self.moment("count(distinct people)", (Piece(both(self._rows, here), ONE),), people=True)
            inner = counted
        if self._scope.is_key(inner):
            table = self._scope.key_table(inner)
            rows = self._rows if table is None else both(self._rows, matched(self._scope, table))
            return self.moment("count(*)" if table is None else f"count({table})", (Piece(rows, ONE),))
        if inner is None or isinstance(inner, (exp.Star, exp.Literal)):
            return self.moment("count(*)", (Piece(self._rows, ONE),))
        if isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star):
            raise self._scope.refusal(node, "rows of one table cannot be counted apart", "Write COUNT(*).")
        if isinstance(inner, exp.Column):
            column = self._scope.meaning(inner)
            if (
                isinstance(column, PrivateColumn)
                and column.dimension is None
                and column.domain.missing_position is None
                and column.attribute[0] not in self._scope.optional
            ):  # rules leave nothing missing
                return self.moment("count(*)", (Piece(self._rows, ONE),))
        rows = self._defined(node, inner)
        name = "count(*)" if rows is self._rows else f"count({inner.sql(dialect='duckdb')})"
        return self.moment(name, (Piece(rows, ONE),))

    def _people(self, node: Node) -> Node | None:
        """The user id, or a CASE of it; None for anything else that is counted once."""
        if isinstance(node, (exp.Case, exp.If)):
            branches, default = branches_of(node)
            values = [*(value for _, value in branches), default]
            known = [value for value in values if value is not None and not isinstance(value, exp.Null)]
            return _with_numbers(node) if known and all(self._scope.is_key(value) for value in known) else None
        return node if self._scope.is_key(node) else None

    def _is_free(self, table: str) -> bool:
        """Whether nothing is said of a table that LEFT JOIN names: everybody of the other tables counts."""
        attributes = ({*each.private} | {(name, "") for name, _ in each.public} for each in self._rows)
        return table in self._scope.optional and not any(name == table for keys in attributes for name, _ in keys)

    def _defined(self, node: Node, inner: Node) -> Disjoint:
        """The rows in which an expression has a value."""
        known = exp.Not(this=exp.Is(this=exp.Paren(this=inner.copy()), expression=exp.null()))
        try:
            if isinstance(inner, (exp.Case, exp.If)):
                defined = rows_of(self._reader.pieces(_with_numbers(inner)))
            else:
                defined = condition_rows(self._scope, known)
            met = both(self._rows, defined)
        except TooManyConjunctions:
            raise self._too_many(node) from None
        return self._rows if _identity(met) == _identity(self._rows) else met

    def _aggregate(self, node: Node) -> Formula:
        inner = node.this
        if isinstance(inner, exp.Distinct):
            problem = "DISTINCT is not possible: randomised reports do not say whose value is whose"
            raise self._scope.refusal(node, problem, "Leave it out.")
        pieces = self._pieces(inner)
        for polynomial in (piece.polynomial for piece in pieces):
            if any(abs(coefficient) > LARGEST for coefficient in polynomial.terms.values()):
                raise self._scope.refusal(inner, "the numbers in it are too large", "Use smaller ones.")
            if polynomial.degree > 2:
                raise self._scope.refusal(inner, "more than two attributes are multiplied", "Multiply at most two.")
        middle = self._reader.middle(pieces) if self._centred else Fraction(0)
        try:
            pieces = tuple(Piece(both(self._rows, piece.rows), piece.polynomial) for piece in pieces)
            text = str(inner.sql(dialect="duckdb"))
            return AGGREGATES[type(node)].formula(_SumsOf(self, text, pieces, middle))
        except TooManyConjunctions:
            raise self._too_many(node) from None

    def _pair(self, node: Node) -> Formula:
        """An aggregate of two expressions, over the rows in which both have a value."""
        sides = [self._pieces(side) for side in (node.this, node.expression)]
        if any(piece.polynomial.degree > 1 for pieces in sides for piece in pieces):
            raise self._scope.refusal(node, "more than two attributes are multiplied", "Correlate single attributes.")
        middles = [self._reader.middle(pieces) if self._centred else Fraction(0) for pieces in sides]
        try:
            met = tuple(
                (rows, left.polynomial, right.polynomial)
                for left in sides[0]
                for right in sides[1]
                if (rows := both(self._rows, both(left.rows, right.rows)))
            )
            texts = (str(node.this.sql(dialect="duckdb")), str(node.expression.sql(dialect="duckdb")))
            return PAIR_AGGREGATES[type(node)].formula(_PairOf(self, texts, met, tuple(middles)))
        except TooManyConjunctions:
            raise self._too_many(node) from None

    def _pieces(self, node: Node) -> Pieces:
        try:
            return self._reader.pieces(node)
        except TooManyConjunctions:
            raise self._too_many(node) from None

    def possible(self, node: Node) -> tuple[tuple[float, float] | None, bool]:
        """The least and the largest that an aggregate can be, if known, and whether they are per row."""
        node = node.this if isinstance(node, exp.Filter) else node
        if isinstance(node, (exp.Count, exp.CountIf)):
            return (0.0, 1.0), True
        if type(node) in PAIR_AGGREGATES:
            return PAIR_AGGREGATES[type(node)].bounds, False
        aggregate = AGGREGATES.get(type(node))
        if aggregate is None:
            return None, False
        bounds = self._reader.range(self._pieces(node.this))
        return None if bounds is None else aggregate.bounds(*bounds), aggregate.adds_up

    # Moments --------------------------------------------------------------------------------------------------------

    def moment(self, name: str, pieces: Pieces, *, people: bool = False) -> Moment:
        """The sum of polynomials over some rows, by its number; of `people`, each counted once."""
        parts = _joined(pieces)
        counts = all(part.polynomial.terms == ONE.terms for part in parts)
        region = _identity(rows_of(parts if counts else pieces))
        summed = tuple((tuple(sorted(part.polynomial.terms.items())), _identity(part.rows)) for part in parts)
        key = (summed, region, people)
        if key in self._numbers:
            return Moment(self._numbers[key])
        size = sum(len(part.rows) * len(part.polynomial.terms) for part in parts)
        self._size += size
        if len(self._sums) >= MOST_MOMENTS or self._size > MOST_TERMS:
            problem = f"the answers need over {MOST_MOMENTS} sums, or {MOST_TERMS:,} products in them"
            raise QueryRefused(problem, "Ask several questions, or simplify the condition.")
        terms = [
            self._term(each, monomial, coefficient)
            for part in parts
            for each in counted_rows(self._scope, part.rows, self._apart, people=people)
            for monomial, coefficient in part.polynomial.terms.items()
            if coefficient
        ]
        shared = self._regions.setdefault(region, len(self._regions))
        moment = MomentOf(name, tuple(terms), indicator=counts, region=shared)
        self._numbers[key] = len(self._sums)
        self._sums.append(CollectedSum(key, size, moment))
        return Moment(self._numbers[key])

    def _term(self, counted: CountedRows, monomial: Monomial, coefficient: Fraction) -> Term:
        conjunction = counted.rows
        measures: dict[AttributeKey, Floats] = {}
        factors: dict[str, list[str]] = {}
        for variable in monomial:
            column = self._reader.columns[variable]
            if isinstance(column, PublicColumn):
                factors.setdefault(column.table, []).append(column.column)
            elif isinstance(column, Measure):
                measures[column.attribute] = measures.get(column.attribute, 1.0) * np.nan_to_num(column.values)
        tests: dict[str, list[PublicTest]] = {}
        for (table, test), wanted in conjunction.public.items():
            tests.setdefault(table, []).append((test, wanted))
        shared = {
            table: PublicFactor(
                tuple(sorted(tests.get(table, []))), product_of(factors[table]) if table in factors else None
            )
            for table in sorted({*tests, *factors})
        }
        conditions = {attribute: mask.astype(np.float64) for attribute, mask in conjunction.private.items()}
        return Term(counted.sign * float(coefficient), conditions, measures, shared, counted.without, counted.once)


@dataclass(frozen=True, slots=True, eq=False)
class _SumsOf:
    """See `functions.SumsOf`."""

    collector: SumCollector
    text: str
    pieces: Pieces
    exact_middle: Fraction

    @property
    def middle(self) -> float:
        return float(self.exact_middle)

    @property
    def plain(self) -> Formula:
        return self.collector.moment(f"sum({self.text})", self.pieces)

    @property
    def count(self) -> Formula:
        return self.collector.moment(f"count({self.text})", (Piece(rows_of(self.pieces), ONE),))

    @property
    def centred(self) -> Formula:
        return self.collector.moment(f"sum({self._shifted})", self._differences)

    @property
    def squares(self) -> Formula:
        squares = tuple(Piece(piece.rows, piece.polynomial.times(piece.polynomial)) for piece in self._differences)
        return self.collector.moment(f"sum(({self._shifted})^2)", squares)

    @property
    def _differences(self) -> Pieces:
        middle = Polynomial.constant(self.exact_middle)
        return tuple(Piece(piece.rows, piece.polynomial.plus(middle, Fraction(-1))) for piece in self.pieces)

    @property
    def _shifted(self) -> str:
        return f"{self.text} - {self.middle:g}" if self.exact_middle else self.text


@dataclass(frozen=True, slots=True, eq=False)
class _PairOf:
    """See `pair_functions.PairSums`."""

    collector: SumCollector
    texts: tuple[str, str]
    met: tuple[tuple[Disjoint, Polynomial, Polynomial], ...]
    middles: tuple[Fraction, ...]

    @property
    def count(self) -> Formula:
        rows = rows_of(tuple(Piece(rows, ONE) for rows, _, _ in self.met))
        return self.collector.moment(f"count({', '.join(self.texts)})", (Piece(rows, ONE),))

    def total(self, which: int) -> Formula:
        return self.collector.moment(f"sum({self.texts[which]})", self._sums((which,)))

    def product(self, first: int, second: int) -> Formula:
        return self.collector.moment(f"sum({self.texts[first]} * {self.texts[second]})", self._sums((first, second)))

    def middle(self, which: int) -> float:
        return float(self.middles[which])

    def _sums(self, factors: tuple[int, ...]) -> Pieces:
        made = []
        for rows, *polynomials in self.met:
            product = ONE
            for which in factors:
                shift = Polynomial.constant(self.middles[which])
                product = product.times(polynomials[which].plus(shift, Fraction(-1)))
            made.append(Piece(rows, product))
        return tuple(made)


def _joined(pieces: Pieces) -> Pieces:
    """Pieces that sum the same as one; without those that sum nothing."""
    by_terms: dict[Any, list[Piece]] = {}
    for piece in pieces:
        if piece.rows and any(piece.polynomial.terms.values()):
            by_terms.setdefault(tuple(sorted(piece.polynomial.terms.items())), []).append(piece)
    return tuple(Piece(rows_of(tuple(same)), same[0].polynomial) for same in by_terms.values())


def _with_numbers(node: Node) -> Node:
    """A CASE whose values are all 1, or NULL: counting does not care what they are."""
    branches, default = branches_of(node)

    def known(value: Node) -> Node:
        return exp.null() if value is None or isinstance(value, exp.Null) else exp.Literal.number(1)

    made = exp.Case(ifs=[exp.If(this=condition.copy(), true=known(value)) for condition, value in branches])
    made.set("default", known(default))
    return made


def _identity(rows: Disjoint) -> tuple[Any, ...]:
    """What makes two sets of rows equal."""
    return tuple(
        (
            tuple(sorted((attribute, mask.tobytes()) for attribute, mask in conjunction.private.items())),
            tuple(sorted(conjunction.public.items())),
        )
        for conjunction in rows
    )
