"""Aggregates of two expressions: correlation, covariance and regression, from moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from sqlglot import exp

from deniable.queries.question.formula import Binary, Formula, Number, Root


class PairSums(Protocol):
    """The sums over rows in which two expressions have values, each measured from the middle of its range."""

    @property
    def count(self) -> Formula:
        """How many rows there are."""

    def total(self, which: int) -> Formula:
        """Σ of the first expression (0) or of the second (1)."""

    def product(self, first: int, second: int) -> Formula:
        """Σ of a product of two of them."""

    def middle(self, which: int) -> float:
        """What an expression is measured from."""


@dataclass(frozen=True, slots=True)
class PairAggregate:
    """A function of all rows: its formula, and its bounds if they are always the same."""

    label: str
    formula: Callable[[PairSums], Formula]
    bounds: tuple[float, float] | None = None


def _spread(sums: PairSums, first: int, second: int) -> Formula:
    """Σ (x − mean x)·(y − mean y)."""
    totals = Binary("*", sums.total(first), sums.total(second))
    return Binary("-", sums.product(first, second), Binary("/", totals, sums.count))


def _slope(sums: PairSums) -> Formula:
    return Binary("/", _spread(sums, 0, 1), _spread(sums, 1, 1))


def _intercept(sums: PairSums) -> Formula:
    """mean y − slope · mean x, of values that are measured from their middles."""
    rise = Binary("-", Binary("/", sums.total(0), sums.count), Binary("*", _slope(sums), _average(1)(sums)))
    return Binary("+", Number(sums.middle(0)), rise)


def _correlation(sums: PairSums) -> Formula:
    return Binary("/", _spread(sums, 0, 1), Root(Binary("*", _spread(sums, 0, 0), _spread(sums, 1, 1))))


def _determination(sums: PairSums) -> Formula:
    shared = _spread(sums, 0, 1)
    return Binary("/", Binary("*", shared, shared), Binary("*", _spread(sums, 0, 0), _spread(sums, 1, 1)))


def _average(which: int) -> Callable[[PairSums], Formula]:
    def formula(sums: PairSums) -> Formula:
        return Binary("+", Number(sums.middle(which)), Binary("/", sums.total(which), sums.count))

    return formula


PAIR_AGGREGATES: dict[Any, PairAggregate] = {
    exp.Corr: PairAggregate("corr", _correlation, (-1.0, 1.0)),
    exp.CovarPop: PairAggregate("covar_pop", lambda sums: Binary("/", _spread(sums, 0, 1), sums.count)),
    exp.CovarSamp: PairAggregate(
        "covar_samp", lambda sums: Binary("/", _spread(sums, 0, 1), Binary("-", sums.count, Number(1.0)))
    ),
    exp.RegrSlope: PairAggregate("regr_slope", _slope),
    exp.RegrIntercept: PairAggregate("regr_intercept", _intercept),
    exp.RegrR2: PairAggregate("regr_r2", _determination, (0.0, 1.0)),
    exp.RegrCount: PairAggregate("regr_count", lambda sums: sums.count),
    exp.RegrAvgx: PairAggregate("regr_avgx", _average(1)),
    exp.RegrAvgy: PairAggregate("regr_avgy", _average(0)),
    exp.RegrSxx: PairAggregate("regr_sxx", lambda sums: _spread(sums, 1, 1)),
    exp.RegrSyy: PairAggregate("regr_syy", lambda sums: _spread(sums, 0, 0)),
    exp.RegrSxy: PairAggregate("regr_sxy", lambda sums: _spread(sums, 0, 1)),
}
"""In SQL the dependent expression stands first: REGR_SLOPE(y, x)."""
