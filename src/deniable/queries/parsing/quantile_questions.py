"""MEDIAN, QUANTILE_CONT, QUANTILE_DISC, PERCENTILE_CONT … WITHIN GROUP and MODE: what they ask of a distribution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.parsing.column_names import name_of
from deniable.queries.parsing.compound_questions import item_behind, ordering_of
from deniable.queries.parsing.spread_questions import groups_among

Node = Any
CONTINUOUS, DISCRETE, MOST_FREQUENT = "cont", "disc", "mode"
QUANTILE_NODES = (exp.Median, exp.Quantile, exp.PercentileCont, exp.PercentileDisc, exp.ApproxQuantile, exp.Mode)


@dataclass(frozen=True, slots=True)
class AskedQuantile:
    """A quantile of an expression over the rows that pass a filter."""

    name: str
    kind: str
    of: Node
    share: float
    filter: Node | None


@dataclass(frozen=True, slots=True)
class QuantileQuestion:
    """A SELECT with quantiles among its items."""

    select: Node
    names: tuple[str, ...]
    groups: tuple[Node, ...]
    asked: tuple[AskedQuantile, ...]
    others: tuple[Node, ...]
    """Items that are not quantiles, each with its name as an alias."""
    order: tuple[tuple[str, bool], ...]
    limit: int | None
    offset: int

    @property
    def shown_groups(self) -> dict[str, int]:
        """Columns of the answer that are groups, by their number."""
        return groups_among(self.groups, {item.alias: item.this for item in self.others})

    def plain_text(self) -> str:
        """A question about everything that is not a quantile; its rows are the groups of the answer."""
        made = self._bare()
        counted = exp.alias_(exp.Count(this=exp.Star(), big_int=True), ROWS)
        shown = self.shown_groups
        others = [item.copy() for item in self.others if item.alias not in shown]
        made.set("expressions", [*self._listed(), *others, counted])
        if self.groups:
            made.set("group", exp.Group(expressions=[group.copy() for group in self.groups]))
        if self.select.args.get("having") is not None:
            made.set("having", self.select.args["having"].copy())
        return str(made.sql(dialect="duckdb"))

    def counts_text(self, asked: AskedQuantile, borders: Sequence[Any] | None = None) -> str:
        """A question for how many rows have each value, or lie up to each of some borders."""
        made, value = self._bare(), asked.of if borders is None else up_to(asked.of, borders)
        if asked.filter is not None:
            made = made.where(exp.Paren(this=asked.filter.this.copy()))
        made = made.where(exp.Not(this=exp.Is(this=exp.Paren(this=asked.of.copy()), expression=exp.null())))
        counted = exp.alias_(exp.Count(this=exp.Star(), big_int=True), ROWS)
        made.set("expressions", [*self._listed(), exp.alias_(value.copy(), VALUE), counted])
        made.set("group", exp.Group(expressions=[*(group.copy() for group in self.groups), value.copy()]))
        return str(made.sql(dialect="duckdb"))

    def _listed(self) -> list[Node]:
        return [exp.alias_(group.copy(), f"{GROUP}{number}") for number, group in enumerate(self.groups)]

    def _bare(self) -> Node:
        made = exp.Select(from_=self.select.args["from_"].copy())
        made.set("joins", [join.copy() for join in self.select.args.get("joins") or []])
        if self.select.args.get("where") is not None:
            made.set("where", self.select.args["where"].copy())
        return made


def up_to(of: Node, borders: Sequence[Any]) -> Node:
    """An expression with the smallest border that each of its values is at most.

    >>> up_to(exp.column("x"), [5, 9]).sql()
    'CASE WHEN (x) <= 5 THEN 5 WHEN (x) <= 9 THEN 9 END'
    """
    cases = []
    for border in borders:
        literal = exp.Literal.number(format(border, "f") if isinstance(border, Decimal) else repr(border))
        cases.append(exp.If(this=exp.LTE(this=exp.Paren(this=of.copy()), expression=literal), true=literal.copy()))
    return exp.Case(ifs=cases)


ROWS, VALUE, GROUP = "rows_of_it", "value_of_it", "group_of_it_"
"""Names that no answer has."""


def quantile_question(select: Node) -> QuantileQuestion | None:
    """A SELECT with quantiles, taken apart; None if there are none."""
    if not any(item.find(*QUANTILE_NODES) for item in select.expressions):
        return None
    names: list[str] = []
    asked: list[AskedQuantile] = []
    others: list[Node] = []
    for item in select.expressions:
        node = item.this if isinstance(item, exp.Alias) else item
        name = item.alias_or_name or name_of(item)
        if not node.find(*QUANTILE_NODES):
            others.append(exp.alias_(node.copy(), name, quoted=True))
            names.append(name)
            continue
        made = list(_asked(node, name))
        asked += made
        names += [each.name for each in made]
    group = select.args.get("group")
    groups = () if group is None else tuple(item_behind(select, node) for node in group.expressions)
    if group is not None and group.args.get("all"):
        plain = (item.this if isinstance(item, exp.Alias) else item for item in select.expressions)
        groups = tuple(node for node in plain if node.find(exp.Column) and not node.find(exp.AggFunc, *QUANTILE_NODES))
    shown = tuple(names)
    return QuantileQuestion(select, shown, groups, tuple(asked), tuple(others), *ordering_of(select, shown))


def is_quantile(node: Node) -> bool:
    """Whether an item is a quantile, several of a list, or MODE, and not an expression of them."""
    node = node.this if isinstance(node, exp.Filter) else node
    return isinstance(node, (exp.Mode, exp.WithinGroup)) or isinstance(_parts(node)[0], exp.Expression)


def _asked(node: Node, name: str) -> Iterator[AskedQuantile]:
    """The quantiles of an item: one, or one for each share of a list."""
    rows = None
    if isinstance(node, exp.Filter):
        node, rows = node.this, node.expression
    if isinstance(node, exp.Mode):
        yield AskedQuantile(name, MOST_FREQUENT, node.this, 0.0, rows)
        return
    of, shares, kind = _parts(node)
    if of is None or not isinstance(of, exp.Expression):
        raise QueryRefused(
            "quantiles are answers of their own", "Ask for each in a column, and calculate with them yourself."
        )
    listed = shares.expressions if isinstance(shares, exp.Array) else [shares]
    for share in listed:
        value = _share(share)
        yield AskedQuantile(name if len(listed) == 1 else f"{name}_{value:g}", kind, of, value, rows)


def _parts(node: Node) -> tuple[Node, Node, str]:
    half = exp.Literal.number("0.5")
    if isinstance(node, exp.Median):
        return node.this, half, CONTINUOUS
    if isinstance(node, exp.WithinGroup) and isinstance(node.this, (exp.PercentileCont, exp.PercentileDisc)):
        return _within_group(node.this, node.this.this, node.expression)
    if isinstance(node, (exp.PercentileCont, exp.PercentileDisc)) and isinstance(node.expression, exp.Order):
        return _within_group(node, node.expression.this, node.expression)  # QUANTILE_CONT(x, 0.9 ORDER BY x)
    if isinstance(node, (exp.PercentileCont, exp.PercentileDisc)):
        return node.this, node.expression, CONTINUOUS if isinstance(node, exp.PercentileCont) else DISCRETE
    if isinstance(node, (exp.Quantile, exp.ApproxQuantile)):
        return node.this, node.args.get("quantile"), DISCRETE if isinstance(node, exp.Quantile) else CONTINUOUS
    return None, None, CONTINUOUS


def _within_group(node: Node, share: Node, ordered: Node) -> tuple[Node, Node, str]:
    """What is ordered, the share, and the kind of a quantile."""
    order = ordered.expressions
    kind = CONTINUOUS if isinstance(node, exp.PercentileCont) else DISCRETE
    descending = len(order) == 1 and bool(order[0].args.get("desc"))
    if len(order) != 1 or (descending and kind == DISCRETE):
        raise QueryRefused("WITHIN GROUP orders by one expression, ascending", "Write (ORDER BY x).")
    if descending:  # counted from the other end
        share = exp.Literal.number(str(1 - Decimal(repr(_share(share)))))
    return order[0].this, share, kind


def _share(node: Node) -> float:
    try:
        value = float(node.this)
    except (AttributeError, TypeError, ValueError):
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise QueryRefused("a quantile is of a share from 0 to 1", "Write QUANTILE_CONT(x, 0.9).")
    return value
