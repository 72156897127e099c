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
from deniable.queries.parsing.constants import number
from deniable.queries.parsing.domain_functions import numbers
from deniable.queries.parsing.draft import CollectedSum
from deniable.queries.parsing.expressions import Monomial, Polynomial, Variable
from deniable.queries.parsing.functions import AGGREGATES
from deniable.queries.parsing.scope import ColumnMeaning, Node, PrivateColumn, PublicColumn, Scope
from deniable.queries.parsing.where import condition_rows
from deniable.queries.question.conditions import (
    MOST_CONJUNCTIONS,
    AttributeKey,
    Conjunction,
    Disjoint,
    TooManyConjunctions,
    both,
    private,
    public,
)
from deniable.queries.question.formula import Binary, Formula, Moment, Number
from deniable.queries.question.public_trees import PublicFactor, PublicTest, is_known, product_of
from deniable.queries.question.question import MomentOf, Term
from deniable.tables.schema.attributes import Ordinal

_SIGNS: dict[Any, str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_ADVICE = "Ask for COUNT(*), SUM, AVG, VAR_POP, VAR_SAMP or STDDEV, and calculate with these."
LARGEST = 10**30
"""Coefficients up to here leave room for squares."""
ONE = Polynomial.constant(Fraction(1))


class SumCollector:
    """Formulas of a query's aggregates; collects the sums that they need, each once."""

    def __init__(self, scope: Scope, rows: Disjoint, sums: Sequence[CollectedSum], *, centred: bool) -> None:
        self._scope, self._rows, self._centred = scope, rows, centred
        self._columns: dict[Variable, ColumnMeaning] = {}
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
            if not isinstance(node.this, exp.Star):
                problem = "only COUNT(*) can be counted: reports say neither what is distinct nor what is missing"
                raise self._scope.refusal(node, problem, "Write COUNT(*).")
            return self.moment("count(*)", ONE, self._rows)
        if type(node) in AGGREGATES:
            return self._aggregate(node)
        if isinstance(node, exp.Window):
            raise self._scope.refusal(node, "windows are not supported", "Use GROUP BY.")
        if isinstance(node, exp.Filter):
            return self._filtered(node)
        if isinstance(node, (exp.Max, exp.Min, exp.Median, exp.Quantile)):
            problem = "extremes and quantiles cannot be read off randomised reports by adding"
            raise self._scope.refusal(node, problem, _ADVICE)
        raise self._scope.refusal(node, "this is neither an aggregate nor in GROUP BY", _ADVICE)

    def _filtered(self, node: Node) -> Formula:
        """An aggregate over the rows that pass a further condition: COUNT(*) FILTER (WHERE …)."""
        if not isinstance(node.this, exp.AggFunc) or not isinstance(node.expression, exp.Where):
            raise self._scope.refusal(node, "FILTER follows an aggregate", "Write COUNT(*) FILTER (WHERE …).")
        before = self._rows
        try:
            self._rows = both(before, condition_rows(self._scope, node.expression.this))
            return self.formula(node.this)
        except TooManyConjunctions:
            problem = f"the condition needs more than {MOST_CONJUNCTIONS} terms"
            raise self._scope.refusal(node, problem, "Simplify it.") from None
        finally:
            self._rows = before

    def _aggregate(self, node: Node) -> Formula:
        inner = node.this
        if isinstance(inner, exp.Distinct):
            problem = "DISTINCT is not possible: randomised reports do not say whose value is whose"
            raise self._scope.refusal(node, problem, "Leave it out.")
        polynomial = self._polynomial(inner)
        if any(abs(coefficient) > LARGEST for coefficient in polynomial.terms.values()):
            raise self._scope.refusal(inner, "the numbers in it are too large", "Use smaller ones.")
        if polynomial.degree > 2:
            raise self._scope.refusal(inner, "more than two attributes are multiplied", "Multiply at most two.")
        try:
            rows = both(self._rows, self._defined(polynomial))
        except TooManyConjunctions:
            problem = f"the condition needs more than {MOST_CONJUNCTIONS} terms"
            raise self._scope.refusal(node, problem, "Simplify it.") from None
        middle = self._middle(polynomial) if self._centred else Fraction(0)
        text = str(inner.sql(dialect="duckdb"))
        return AGGREGATES[type(node)].formula(_SumsOf(self, text, polynomial, rows, middle))

    def possible(self, node: Node) -> tuple[tuple[float, float] | None, bool]:
        """The least and the largest that an aggregate can be, if known, and whether they are per row."""
        node = node.this if isinstance(node, exp.Filter) else node
        if isinstance(node, exp.Count):
            return (0.0, 1.0), True
        aggregate = AGGREGATES.get(type(node))
        if aggregate is None:
            return None, False
        bounds = self._range(self._polynomial(node.this))
        return None if bounds is None else aggregate.bounds(*bounds), aggregate.adds_up

    def _range(self, polynomial: Polynomial) -> tuple[float, float] | None:
        """Bounds of an expression of private attributes, each monomial taken on its own."""
        low = high = 0.0
        for monomial, coefficient in polynomial.terms.items():
            ends = np.array([1.0])
            for variable in monomial:
                column = self._columns[variable]
                if isinstance(column, PublicColumn):
                    return None
                values = _values(column)
                ends = np.multiply.outer(ends, [values.min(), values.max()]).ravel()
            low += float((float(coefficient) * ends).min())
            high += float((float(coefficient) * ends).max())
        return low, high

    def _polynomial(self, node: Node) -> Polynomial:
        """What is summed, as a polynomial of attributes."""
        if isinstance(node, exp.Paren):
            return self._polynomial(node.this)
        if isinstance(node, exp.Neg):
            return Polynomial({}).plus(self._polynomial(node.this), Fraction(-1))
        if isinstance(node, exp.Literal) and not node.is_string:
            return Polynomial.constant(number(self._scope, node))
        if isinstance(node, exp.Column):
            return Polynomial.variable(self._variable(node))
        if isinstance(node, (exp.Add, exp.Sub)):
            sign = Fraction(1 if isinstance(node, exp.Add) else -1)
            return self._polynomial(node.left).plus(self._polynomial(node.right), sign)
        if isinstance(node, exp.Mul):
            return self._polynomial(node.left).times(self._polynomial(node.right))
        if isinstance(node, exp.Div):
            divisor = self._polynomial(node.right)
            if divisor.is_constant and divisor.value:
                return self._polynomial(node.left).times(Polynomial.constant(1 / divisor.value))
        repair = "Use sums, differences and products of attributes and numbers."
        raise self._scope.refusal(node, "this cannot be summed", repair)

    def _variable(self, node: Node) -> Variable:
        column = self._scope.meaning(node)
        if isinstance(column, PublicColumn):
            key = (column.table, column.column, "")
        else:
            summable = isinstance(column.domain, Ordinal) and column.domain.kind == "number"
            if column.dimension is not None:
                summable = column.dimension.numbers(column.column) is not None
            if not summable:
                raise self._scope.refusal(node, f"{node.name!r} is not a number", "Sum attributes of numbers.")
            key = (*column.attribute, f"{id(column.dimension)}.{column.column}" if column.dimension else "")
        self._columns[key] = column
        return key

    def _defined(self, polynomial: Polynomial) -> Disjoint:
        """Where all attributes of an expression have a value: SQL leaves the other rows out."""
        defined: Disjoint = (Conjunction(),)
        for variable in sorted(polynomial.variables):
            column = self._columns[variable]
            if isinstance(column, PublicColumn):
                defined = both(defined, public((column.table, is_known(column.column))))
            elif column.dimension is not None:
                defined = both(defined, private(column.attribute, ~np.isnan(_numbers_of_dimension(column))))
        return defined

    def _middle(self, polynomial: Polynomial) -> Fraction:
        """The middle of an expression's range, which a mean is measured from: smaller numbers need smaller weights."""
        if polynomial.degree != 1:
            return Fraction(0)
        middle = Fraction(0)
        for monomial, coefficient in polynomial.terms.items():
            if not monomial:
                middle += coefficient
                continue
            column = self._columns[monomial[0]]
            if isinstance(column, PublicColumn):
                return Fraction(0)
            values = _values(column)
            middle += coefficient * Fraction(float(values.min() + values.max())) / 2
        return middle

    # Moments --------------------------------------------------------------------------------------------------------

    def moment(self, name: str, polynomial: Polynomial, rows: Disjoint) -> Moment:
        """The sum of a polynomial over some rows, by its number."""
        region = _identity(rows)
        key = (tuple(sorted(polynomial.terms.items())), region)
        if key in self._numbers:
            return Moment(self._numbers[key])
        size = len(rows) * len(polynomial.terms)
        self._size += size
        if len(self._sums) >= MOST_MOMENTS or self._size > MOST_TERMS:
            problem = f"the answers need over {MOST_MOMENTS} sums, or {MOST_TERMS:,} products in them"
            raise QueryRefused(problem, "Ask several questions, or simplify the condition.")
        terms = [
            self._term(conjunction, monomial, coefficient)
            for conjunction in rows
            for monomial, coefficient in polynomial.terms.items()
            if coefficient
        ]
        shared = self._regions.setdefault(region, len(self._regions))
        moment = MomentOf(name, tuple(terms), indicator=polynomial is ONE, region=shared)
        self._numbers[key] = len(self._sums)
        self._sums.append(CollectedSum(key, size, moment))
        return Moment(self._numbers[key])

    def _term(self, conjunction: Conjunction, monomial: Monomial, coefficient: Fraction) -> Term:
        measures: dict[AttributeKey, Floats] = {}
        factors: dict[str, list[str]] = {}
        for variable in monomial:
            column = self._columns[variable]
            if isinstance(column, PublicColumn):
                factors.setdefault(column.table, []).append(column.column)
            else:
                measures[column.attribute] = measures.get(column.attribute, 1.0) * _values(column)
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
        return Term(float(coefficient), conditions, measures, shared)


@dataclass(frozen=True, slots=True, eq=False)
class _SumsOf:
    """See `functions.SumsOf`."""

    collector: SumCollector
    text: str
    polynomial: Polynomial
    rows: Disjoint
    exact_middle: Fraction

    @property
    def middle(self) -> float:
        return float(self.exact_middle)

    @property
    def plain(self) -> Formula:
        return self.collector.moment(f"sum({self.text})", self.polynomial, self.rows)

    @property
    def count(self) -> Formula:
        return self.collector.moment(f"count({self.text})", ONE, self.rows)

    @property
    def centred(self) -> Formula:
        return self.collector.moment(f"sum({self._shifted})", self._difference, self.rows)

    @property
    def squares(self) -> Formula:
        return self.collector.moment(f"sum(({self._shifted})^2)", self._difference.times(self._difference), self.rows)

    @property
    def _difference(self) -> Polynomial:
        return self.polynomial.plus(Polynomial.constant(self.exact_middle), Fraction(-1))

    @property
    def _shifted(self) -> str:
        return f"{self.text} - {self.middle:g}" if self.exact_middle else self.text


def _values(column: PrivateColumn) -> Floats:
    """A private attribute's numbers, or a dimension's, at every value of the domain; zero where there is none."""
    if column.dimension is not None:
        return np.nan_to_num(_numbers_of_dimension(column))
    assert isinstance(column.domain, Ordinal)  # noqa: S101 - _variable sees to it
    return numbers(column.domain)


def _numbers_of_dimension(column: PrivateColumn) -> Floats:
    values = None if column.dimension is None else column.dimension.numbers(column.column)
    assert values is not None  # noqa: S101 - _variable sees to it
    return values


def _identity(rows: Disjoint) -> tuple[Any, ...]:
    """What makes two sets of rows equal."""
    return tuple(
        (
            tuple(sorted((attribute, mask.tobytes()) for attribute, mask in conjunction.private.items())),
            tuple(sorted(conjunction.public.items())),
        )
        for conjunction in rows
    )
