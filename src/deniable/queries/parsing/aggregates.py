"""What is asked → formulas of moments: COUNT, SUM, AVG, variances, and arithmetic between them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from sqlglot import exp

from deniable.arrays import Floats
from deniable.errors import QueryRefused
from deniable.limits import MOST_MOMENTS, MOST_TERMS
from deniable.queries.parsing.constants import number
from deniable.queries.parsing.domain_functions import numbers
from deniable.queries.parsing.expressions import Monomial, Polynomial, Variable
from deniable.queries.parsing.scope import Node, PrivateColumn, PublicColumn, Scope
from deniable.queries.question.conditions import Conjunction, Disjoint, Place, TooManyTerms, both, private, public
from deniable.queries.question.formula import Binary, Formula, Moment, Number, Root
from deniable.queries.question.public_trees import PublicFactor, PublicTest, is_known, product_of
from deniable.queries.question.question import MomentOf, Term
from deniable.tables.schema.attributes import Ordinal

_SIGNS: dict[Any, str] = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*", exp.Div: "/"}
_SAMPLE = (exp.Variance, exp.Stddev, exp.StddevSamp)
_POPULATION = (exp.VariancePop, exp.StddevPop)
_DEVIATIONS = (exp.Stddev, exp.StddevSamp, exp.StddevPop)
AGGREGATES = (exp.Sum, exp.Avg, *_SAMPLE, *_POPULATION)
_ADVICE = "Ask for COUNT(*), SUM, AVG, VAR_POP, VAR_SAMP or STDDEV, and calculate with these."
LARGEST = 10**30
"""Coefficients up to here leave room for squares."""
ONE = Polynomial.constant(Fraction(1))


class Aggregates:
    """The aggregates of one query; collects the moments they need, each once."""

    def __init__(self, scope: Scope, where: Disjoint, *, centred: bool) -> None:
        self._scope, self._where, self._centred = scope, where, centred
        self._found: dict[Variable, PrivateColumn | PublicColumn] = {}
        self._keys: dict[tuple[Any, ...], int] = {}
        self._regions: dict[tuple[Any, ...], int] = {}
        self.moments: list[MomentOf] = []
        self._terms = 0

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
            return self._moment("count(*)", ONE, self._where)
        if isinstance(node, AGGREGATES):
            return self._of_expression(node)
        if isinstance(node, exp.Window):
            raise self._scope.refusal(node, "windows are not supported", "Use GROUP BY.")
        if isinstance(node, exp.Filter):
            raise self._scope.refusal(node, "FILTER is not supported", "Put the condition in WHERE, and ask twice.")
        if isinstance(node, (exp.Max, exp.Min, exp.Median, exp.Quantile)):
            problem = "extremes and quantiles cannot be read off randomised reports by adding"
            raise self._scope.refusal(node, problem, _ADVICE)
        raise self._scope.refusal(node, "this is neither an aggregate nor in GROUP BY", _ADVICE)

    def _of_expression(self, node: Node) -> Formula:
        inner = node.this
        if isinstance(inner, exp.Distinct):
            problem = "DISTINCT is not possible: randomised reports do not tell whose value is whose"
            raise self._scope.refusal(node, problem, "Leave it out.")
        polynomial = self._polynomial(inner)
        if any(abs(one) > LARGEST for one in polynomial.terms.values()):
            raise self._scope.refusal(inner, "the numbers in it are too large", "Use smaller ones.")
        if polynomial.degree > 2:
            raise self._scope.refusal(inner, "more than two attributes are multiplied", "Multiply at most two.")
        try:
            where = both(self._where, self._defined(polynomial))
        except TooManyTerms:
            raise self._scope.refusal(node, "the condition needs more than 64 terms", "Simplify it.") from None
        text = str(inner.sql(dialect="duckdb"))
        if isinstance(node, exp.Sum):
            return self._moment(f"sum({text})", polynomial, where)
        count = self._moment(f"count({text})", ONE, where)
        middle = self._middle(polynomial) if self._centred else Fraction(0)
        centred = polynomial.plus(Polynomial.constant(middle), Fraction(-1))
        shift = f" - {float(middle):g}" if middle else ""
        total = self._moment(f"sum({text}{shift})", centred, where)
        if isinstance(node, exp.Avg):
            mean = Binary("/", total, count)
            return Binary("+", Number(float(middle)), mean) if middle else mean
        squares = self._moment(f"sum(({text}{shift})^2)", centred.times(centred), where)
        spread: Formula = Binary("-", squares, Binary("/", Binary("*", total, total), count))
        population = isinstance(node, _POPULATION)
        variance = Binary("/", spread, count if population else Binary("-", count, Number(1.0)))
        return Root(variance) if isinstance(node, _DEVIATIONS) else variance

    def possible(self, node: Node) -> tuple[tuple[float, float] | None, bool]:
        """The least and the largest that an aggregate can be, if known, and whether they are per row."""
        if isinstance(node, exp.Count):
            return (0.0, 1.0), True
        if not isinstance(node, AGGREGATES):
            return None, False
        found = self._range(self._polynomial(node.this))
        if found is None or isinstance(node, (exp.Sum, exp.Avg)):
            return found, isinstance(node, exp.Sum)
        widest = (found[1] - found[0]) / 2
        return (0.0, widest if isinstance(node, _DEVIATIONS) else widest**2), False

    def _range(self, polynomial: Polynomial) -> tuple[float, float] | None:
        """Bounds of an expression of private attributes, each monomial taken on its own."""
        low = high = 0.0
        for monomial, coefficient in polynomial.terms.items():
            ends = np.array([1.0])
            for variable in monomial:
                column = self._found[variable]
                if isinstance(column, PublicColumn):
                    return None
                values = self._values(column)
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
        found = self._scope.find(node)
        if isinstance(found, PublicColumn):
            key = (found.table, found.column, "")
        else:
            summable = isinstance(found.domain, Ordinal) and found.domain.kind == "number"
            if found.dimension is not None:
                summable = found.dimension.numbers(found.column) is not None
            if not summable:
                raise self._scope.refusal(node, f"{node.name!r} is not a number", "Sum attributes of numbers.")
            key = (*found.place, f"{id(found.dimension)}.{found.column}" if found.dimension else "")
        self._found[key] = found
        return key

    def _values(self, column: PrivateColumn) -> Floats:
        if column.dimension is not None:
            values = column.dimension.numbers(column.column)
            assert values is not None  # noqa: S101 - _variable sees to it
            return np.nan_to_num(values)
        assert isinstance(column.domain, Ordinal)  # noqa: S101 - _variable sees to it
        return numbers(column.domain)

    def _defined(self, polynomial: Polynomial) -> Disjoint:
        """Where all attributes of an expression have a value: SQL leaves the other rows out."""
        defined: Disjoint = (Conjunction(),)
        for variable in sorted(polynomial.variables):
            column = self._found[variable]
            if isinstance(column, PublicColumn):
                defined = both(defined, public((column.table, is_known(column.column))))
            elif column.dimension is not None:
                known = column.dimension.numbers(column.column)
                assert known is not None  # noqa: S101 - _variable sees to it
                defined = both(defined, private(column.place, ~np.isnan(known)))
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
            column = self._found[monomial[0]]
            if isinstance(column, PublicColumn):
                return Fraction(0)
            values = self._values(column)
            middle += coefficient * Fraction(float(values.min() + values.max())) / 2
        return middle

    # Moments --------------------------------------------------------------------------------------------------------

    def _moment(self, name: str, polynomial: Polynomial, where: Disjoint) -> Moment:
        key = (tuple(sorted(polynomial.terms.items())), _identity(where))
        if key not in self._keys:
            self._keys[key] = len(self.moments)
            self._terms += len(where) * len(polynomial.terms)
            if len(self.moments) >= MOST_MOMENTS or self._terms > MOST_TERMS:
                problem = f"the answers need over {MOST_MOMENTS} sums, or {MOST_TERMS:,} products in them"
                raise QueryRefused(problem, "Ask several questions, or simplify the condition.")
            terms = [
                self._term(conjunction, monomial, coefficient)
                for conjunction in where
                for monomial, coefficient in polynomial.terms.items()
                if coefficient
            ]
            region = self._regions.setdefault(key[1], len(self._regions))
            self.moments.append(MomentOf(name, tuple(terms), indicator=polynomial is ONE, region=region))
        return Moment(self._keys[key])

    def _term(self, conjunction: Conjunction, monomial: Monomial, coefficient: Fraction) -> Term:
        measures: dict[Place, Floats] = {}
        factors: dict[str, list[str]] = {}
        for variable in monomial:
            column = self._found[variable]
            if isinstance(column, PublicColumn):
                factors.setdefault(column.table, []).append(column.column)
            else:
                measures[column.place] = measures.get(column.place, 1.0) * self._values(column)
        tests: dict[str, list[PublicTest]] = {}
        for (table, test), wanted in conjunction.public.items():
            tests.setdefault(table, []).append((test, wanted))
        shared = {
            table: PublicFactor(
                tuple(sorted(tests.get(table, []))), product_of(factors[table]) if table in factors else None
            )
            for table in sorted({*tests, *factors})
        }
        conditions = {place: mask.astype(np.float64) for place, mask in conjunction.private.items()}
        return Term(float(coefficient), conditions, measures, shared)


def _identity(where: Disjoint) -> tuple[Any, ...]:
    return tuple(
        (
            tuple(sorted((place, mask.tobytes()) for place, mask in one.private.items())),
            tuple(sorted(one.public.items())),
        )
        for one in where
    )
