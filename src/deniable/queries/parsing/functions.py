"""Every SQL function that a query may call. A new function is one entry in one of the two tables of this file.

* `DOMAIN_FUNCTIONS`: functions and operators of one private attribute, such as FLOOR. They are computed exactly at
  every value of the attribute's domain, so that they can be compared and grouped by.
* `AGGREGATES`: functions of all rows, such as AVG. Each is a formula of sums over users.

The key of an entry is the kind of node that sqlglot makes of the function. `grammar.py` lets a function through with
the arguments that its entry lists, and refuses any other part of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from sqlglot import exp

from deniable.queries.parsing.pair_functions import PAIR_AGGREGATES
from deniable.queries.parsing.rationals import Rationals
from deniable.queries.parsing.scalar_functions import ON_DOMAINS, named
from deniable.queries.question.formula import Binary, Formula, Number, Root

Refusal = tuple[str, str]
"""What is wrong, and what to write instead."""


def _always(*_: Rationals) -> Refusal | None:
    return None


@dataclass(frozen=True, slots=True)
class DomainFunction:
    """A function of numbers: its arguments, by their names in sqlglot's node, and how it is computed."""

    compute: Callable[..., Rationals]
    arguments: tuple[str, ...] = ("this",)
    refuses: Callable[..., Refusal | None] = _always
    """Why it cannot be computed for some values of its arguments."""
    settings: tuple[str, ...] = ()
    """Further parts of the node, which sqlglot sets itself and which change nothing."""


def _division(_: Rationals, divisor: Rationals) -> Refusal | None:
    return ("this divides by zero", "Divide by another constant.") if divisor.has_zero else None


def _whole_division(dividend: Rationals, divisor: Rationals) -> Refusal | None:
    whole = dividend.are_whole and divisor.are_whole
    return _division(dividend, divisor) or (None if whole else ("// divides whole numbers only", "Write FLOOR(x / y)."))


_TWO = ("this", "expression")
DOMAIN_FUNCTIONS: dict[Any, DomainFunction] = {
    exp.Add: DomainFunction(operator.add, _TWO),
    exp.Sub: DomainFunction(operator.sub, _TWO),
    exp.Mul: DomainFunction(operator.mul, _TWO),
    exp.Div: DomainFunction(operator.truediv, _TWO, _division, settings=("typed", "safe")),
    exp.IntDiv: DomainFunction(operator.floordiv, _TWO, _whole_division),
    exp.Neg: DomainFunction(operator.neg),
    exp.Floor: DomainFunction(Rationals.floor),
}


class SumsOf(Protocol):
    """The sums over users that an aggregate of an expression x is made of; each is planned when it is first read."""

    @property
    def plain(self) -> Formula:
        """Σ x."""

    @property
    def count(self) -> Formula:
        """How many rows have a value of x."""

    @property
    def centred(self) -> Formula:
        """Σ (x − middle): smaller numbers need smaller weights."""

    @property
    def squares(self) -> Formula:
        """Σ (x − middle)²."""

    @property
    def middle(self) -> float:
        """The middle of the range of x; zero if it is not known."""


Bounds = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Aggregate:
    """A function of all rows: its formula, and the bounds of its value, given those of the expression."""

    formula: Callable[[SumsOf], Formula]
    bounds: Callable[[float, float], Bounds]
    adds_up: bool = False
    """Whether the bounds are per row."""


def _mean(sums: SumsOf) -> Formula:
    count, total = sums.count, sums.centred
    mean = Binary("/", total, count)
    return Binary("+", Number(sums.middle), mean) if sums.middle else mean


def _variance(divisor: Callable[[Formula], Formula]) -> Callable[[SumsOf], Formula]:
    def formula(sums: SumsOf) -> Formula:
        count, total, squares = sums.count, sums.centred, sums.squares
        spread = Binary("-", squares, Binary("/", Binary("*", total, total), count))
        return Binary("/", spread, divisor(count))

    return formula


_population = _variance(lambda count: count)
_sample = _variance(lambda count: Binary("-", count, Number(1.0)))


def _same(low: float, high: float) -> Bounds:
    return low, high


def _squared(low: float, high: float) -> Bounds:
    return 0.0, ((high - low) / 2) ** 2


def _half_width(low: float, high: float) -> Bounds:
    return 0.0, (high - low) / 2


AGGREGATES: dict[Any, Aggregate] = {
    exp.Sum: Aggregate(lambda sums: sums.plain, _same, adds_up=True),
    exp.Avg: Aggregate(_mean, _same),
    exp.Variance: Aggregate(_sample, _squared),
    exp.VariancePop: Aggregate(_population, _squared),
    exp.Stddev: Aggregate(lambda sums: Root(_sample(sums)), _half_width),
    exp.StddevSamp: Aggregate(lambda sums: Root(_sample(sums)), _half_width),
    exp.StddevPop: Aggregate(lambda sums: Root(_population(sums)), _half_width),
}
"""COUNT(*) is not among them: it has no argument (`aggregates.py`)."""


_ADVICE = "Ask for COUNT(*), SUM, AVG, VAR_POP, VAR_SAMP or STDDEV, and calculate with these."
_INSTEAD: dict[Any, Refusal] = {
    exp.Max: ("MAX is one person's value, which randomised reports hide", "Use QUANTILE_CONT(x, 0.99), or GROUP BY x."),
    exp.Min: ("MIN is one person's value, which randomised reports hide", "Use QUANTILE_CONT(x, 0.01), or GROUP BY x."),
    exp.Median: ("MEDIAN cannot be calculated from sums", "Group by bins of the attribute."),
    exp.Window: ("windows are not supported", "Use GROUP BY."),
    exp.GroupConcat: ("STRING_AGG would show values of single people", "Group by the attribute and count."),
    exp.ArrayAgg: ("ARRAY_AGG would show values of single people", "Group by the attribute and count."),
    exp.AnyValue: ("ANY_VALUE would show a value of one person", "Group by the attribute and count."),
    exp.First: ("FIRST would show a value of one person", "Group by the attribute and count."),
    exp.Last: ("LAST would show a value of one person", "Group by the attribute and count."),
    exp.LogicalOr: ("BOOL_OR is decided by one person", "Count those with the condition: COUNT_IF(…)."),
    exp.LogicalAnd: ("BOOL_AND is decided by one person", "Count those with the condition: COUNT_IF(…)."),
    exp.ApproxDistinct: ("distinct values cannot be counted: reports hide whose value is whose", "Use GROUP BY."),
}


_INSTEAD_OF = {
    "PRODUCT": "Use EXP(SUM(LN(x))), where x is above zero.",
    "MAD": "Use QUANTILE_CONT(x, 0.75) - QUANTILE_CONT(x, 0.25), which is twice as large where x is symmetric.",
    "SKEWNESS": "Compare AVG(x) with MEDIAN(x), or QUANTILE_CONT(x, 0.9) with QUANTILE_CONT(x, 0.1).",
    "KURTOSIS": "Compare QUANTILE_CONT(x, 0.99) with QUANTILE_CONT(x, 0.75).",
    "ENTROPY": "Ask for COUNT(*) in groups of x, and calculate with these.",
    "ARG_MAX": "Group by the attribute, and ask for AVG or COUNT(*).",
    "ARG_MIN": "Group by the attribute, and ask for AVG or COUNT(*).",
}


def refused_aggregate(node: Any) -> Refusal:
    """Why something cannot be answered, and the nearest thing that can."""
    inner = node.this if isinstance(node, exp.IgnoreNulls) else node
    if isinstance(inner, (exp.Func, exp.Anonymous)) and not isinstance(inner, exp.AggFunc) and inner.find(exp.AggFunc):
        problem = f"{named(inner)} of an answer is not calculated"
        return problem, "Ask for what is inside, and calculate with it yourself."
    if type(inner) in _INSTEAD:
        return _INSTEAD[type(inner)]
    if inner.find(exp.AggFunc) and isinstance(inner, (exp.Predicate, exp.Connector, exp.Not)):
        problem = "a comparison of answers would be decided by noise"
        return problem, "Ask for the numbers and look at their intervals, or choose rows with HAVING."
    if isinstance(inner, exp.Column) or not isinstance(inner, (exp.Func, exp.Anonymous)):
        return "this is neither an aggregate nor in GROUP BY", _ADVICE
    if inner.find(exp.Column) and not isinstance(inner, exp.AggFunc) and type(inner) in ON_DOMAINS:
        return "this is neither an aggregate nor in GROUP BY", "Add it to GROUP BY, or sum it."
    return f"{named(inner)} is not a function that can be answered", _INSTEAD_OF.get(named(inner), _ADVICE)


def parts_of(kind: Any) -> frozenset[str] | None:
    """The parts that the node of a function may have; None if there is no such function."""
    own: frozenset[str] = frozenset()
    if kind in DOMAIN_FUNCTIONS:
        own = frozenset((*DOMAIN_FUNCTIONS[kind].arguments, *DOMAIN_FUNCTIONS[kind].settings))
    if kind in AGGREGATES:
        own = frozenset({"this"})
    if kind in PAIR_AGGREGATES:
        own = frozenset({"this", "expression"})
    return own | ON_DOMAINS.get(kind, frozenset()) or None
