"""SQL text → checked question. A query is let through because each node of it was recognised.

Everything else is refused by name, with its position in the text and what to write instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.limits import MOST_ANSWERS, MOST_CONDITIONS
from deniable.queries.parsing.aggregates import AGGREGATES, Aggregates
from deniable.queries.parsing.dimensions import Dimension
from deniable.queries.parsing.domain_functions import COMPARISONS, evaluate, single_attribute
from deniable.queries.parsing.grammar import read_select
from deniable.queries.parsing.scope import Node, PublicColumn, Scope
from deniable.queries.parsing.where import read_where
from deniable.queries.question.conditions import EVERYTHING, both, private, public
from deniable.queries.question.public_trees import PublicFactor, PublicTest, is_known
from deniable.queries.question.question import (
    ERROR_COLUMNS,
    MOST_GROUPS,
    Comparison,
    Having,
    Logic,
    MomentOf,
    Ordering,
    Output,
    PrivateGroups,
    PublicGroups,
    Question,
)
from deniable.tables.schema.attributes import Ordinal
from deniable.tables.specification.specification import Specification

_LISTS = ("GROUP", "ORDER")
_WHOLE = re.compile(r"[0-9]{1,18}")
_SIGNS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}


def parse(
    text: str,
    collection: Specification,
    dimensions: Mapping[str, Dimension] | None = None,
    *,
    key: str = "uid",
    centred: bool = True,
) -> Question:
    """The question that an SQL text asks of a collection.

    `centred` measures averages from the middle of their range, which is better wherever values are not rounded.
    """
    try:
        return _Reader(text, Scope(text, collection, dimensions or {}, key), centred).question(read_select(text))
    except RecursionError:
        raise QueryRefused("the text is nested too deeply", "Ask a simpler question.") from None


class _Reader:
    def __init__(self, text: str, scope: Scope, centred: bool) -> None:
        self._text, self._scope, self._centred = text, scope, centred
        self._aliases: dict[str, Node] = {}
        self._groups: dict[str, PrivateGroups | PublicGroups] = {}  # by their normal form
        self._outputs: list[Output] = []

    def question(self, select: Node) -> Question:
        scope = self._scope
        scope.read(select)
        where = read_where(scope, select.args["where"].this) if select.args.get("where") else EVERYTHING
        for column, aligned in scope.present:
            where = both(where, private(column.place, aligned.present))
        for one in scope.lookups:
            where = both(where, public((one.table, is_known(f"{one.alias}.{one.key}"))))
        self._aggregates = Aggregates(scope, where, centred=self._centred)
        items = [(one.alias, one.this) if isinstance(one, exp.Alias) else ("", one) for one in select.expressions]
        self._aliases = {alias.casefold(): inner for alias, inner in items if alias}
        self._check_lengths(select)
        self._read_groups(select.args.get("group"), items)
        shown = self._read_items(items)
        having = self._having(select.args["having"].this) if select.args.get("having") else None
        order = tuple(
            self._ordering(one, items) for one in (select.args["order"].expressions if select.args.get("order") else [])
        )
        filters, moments = _shared_tests(self._aggregates.moments)
        return Question(
            text=self._text,
            tables=scope.tables,
            moments=moments,
            outputs=tuple(self._outputs),
            groups=tuple(self._groups.values()),
            filters=filters,
            lookups=tuple(scope.lookups),
            shown_groups=shown,
            having=having,
            order=order,
            limit=self._count(select.args.get("limit")),
            offset=self._count(select.args.get("offset")) or 0,
        )

    def _check_lengths(self, select: Node) -> None:
        """Refuse lists that would take long to work through."""
        for clause, expressions in (("SELECT", select), *((name, select.args.get(name.lower())) for name in _LISTS)):
            if expressions is not None and len(expressions.expressions) > MOST_ANSWERS:
                problem = f"{clause} lists more than {MOST_ANSWERS} things"
                raise self._scope.refusal(expressions.expressions[MOST_ANSWERS], problem, "Ask several questions.")
        having = select.args.get("having")
        if having is not None and sum(1 for _ in having.find_all(exp.And, exp.Or)) > MOST_CONDITIONS:
            problem = f"HAVING has more than {MOST_CONDITIONS} conditions"
            raise self._scope.refusal(having, problem, "Sort out rows yourself.")

    def _count(self, node: Node) -> int | None:
        if node is None:
            return None
        value = node.args.get("expression")
        if not isinstance(value, exp.Literal) or value.is_string or not _WHOLE.fullmatch(value.this):
            raise self._scope.refusal(node, "LIMIT and OFFSET take a whole number", "Write LIMIT 10.")
        return int(value.this)

    # Groups ---------------------------------------------------------------------------------------------------------

    def _read_groups(self, node: Node, items: list[tuple[str, Node]]) -> None:
        if node is None:
            return
        wanted = [(one, self._meant(one, items, grouping=True)) for one in node.expressions]
        if node.args.get("all"):
            wanted = [(one, _bare(one)) for _, one in items if one.find(exp.Column) and not one.find(exp.AggFunc)]
        if any(value for clause, value in node.args.items() if clause not in ("expressions", "all")):
            raise self._scope.refusal(node, "only plain GROUP BY is supported", "List attributes.")
        plain = [(alias, _bare(item)) for alias, item in items if item.find(exp.Column) and not item.find(exp.AggFunc)]
        for one, inner in wanted:
            if isinstance(inner, (exp.Rollup, exp.Cube, exp.GroupingSets, exp.Tuple)):
                raise self._scope.refusal(one, "only plain GROUP BY is supported", "List attributes.")
            label = next((alias for alias, item in plain if alias and self._normal(item) == self._normal(inner)), "")
            group = self._group(inner, label or _label(inner))
            if any(other.label == group.label for other in self._groups.values()):
                raise self._scope.refusal(one, "two groups have one name", "Name them with AS.")
            self._groups[self._normal(inner)] = group

    def _meant(self, node: Node, items: list[tuple[str, Node]], *, grouping: bool = False) -> Node:
        """A select item that is named by its position or its alias; else the expression itself."""
        node = _bare(node)
        if isinstance(node, exp.Literal) and not node.is_string:
            if not _WHOLE.fullmatch(node.this) or not 1 <= int(node.this) <= len(items):
                raise self._scope.refusal(node, "there is no such select item", f"Use 1 to {len(items)}.")
            return _bare(items[int(node.this) - 1][1])
        if not isinstance(node, exp.Column) or node.table or node.name.casefold() not in self._aliases:
            return node
        meant = _bare(self._aliases[node.name.casefold()])
        if (
            grouping
            and self._scope.has(node)
            and (meant.find(exp.AggFunc) or self._normal(meant) != self._normal(node))
        ):
            problem = f"{node.name!r} is the name of an answer and of another attribute"
            raise self._scope.refusal(node, problem, "Give the answer another name, or write table.attribute.")
        return meant

    def _normal(self, node: Node) -> str:
        """An expression's text with every column fully named: the same for the same thing."""

        def named(one: Node) -> Node:
            if not isinstance(one, exp.Column):
                return one
            found = self._scope.find(one)
            if isinstance(found, PublicColumn):
                return exp.column(found.column, table=found.table)
            joined = f"{id(found.dimension)}" if found.dimension else ""  # a dimension may be joined twice
            return exp.column(found.column or found.place[1], table=".".join((*found.place, joined)))

        return str(node.transform(named).sql(dialect="duckdb", normalize_functions="lower"))

    def _group(self, node: Node, label: str) -> PrivateGroups | PublicGroups:
        if not isinstance(node, exp.Column):
            column = single_attribute(self._scope, node)
            assert isinstance(column.domain, Ordinal)  # noqa: S101 - single_attribute sees to it
            found, which = evaluate(self._scope, node, column.domain).distinct()
            self._check_count(node, len(found))
            values = [Fraction(*one) for one in found]
            order = sorted(range(len(values)), key=values.__getitem__)
            plain = tuple(int(values[one]) if values[one].denominator == 1 else float(values[one]) for one in order)
            return PrivateGroups(label, column.place, plain, np.argsort(order)[which])
        column_found = self._scope.find(node)
        if isinstance(column_found, PublicColumn):
            return PublicGroups(label, column_found.table, column_found.column)
        if column_found.dimension is not None:
            values_found, places = column_found.dimension.groups(column_found.column)
            return PrivateGroups(label, column_found.place, values_found, places)
        domain = column_found.domain
        self._check_count(node, domain.size)
        everything = tuple(domain.decode(code) for code in range(domain.size))
        return PrivateGroups(label, column_found.place, everything, np.arange(domain.size))

    def _check_count(self, node: Node, groups: int) -> None:
        if groups > MOST_GROUPS:
            repair = "Group by fewer attributes, or bins: FLOOR(x / 10)."
            raise self._scope.refusal(node, f"there are {groups:,} groups, over {MOST_GROUPS:,}", repair)

    # What is asked --------------------------------------------------------------------------------------------------

    def _read_items(self, items: list[tuple[str, Node]]) -> tuple[str, ...]:
        """Outputs, and the labels of the groups that are shown."""
        shown = []
        for alias, node in items:
            if _bare(node).find(exp.Star) and not node.find(exp.AggFunc):
                raise self._scope.refusal(node, "rows cannot be seen, only aggregates", "Ask for COUNT(*).")
            if not node.find(exp.AggFunc) and node.find(exp.Column):
                group = self._groups.get(self._normal(_bare(node)))
                if group is None:
                    raise self._scope.refusal(
                        node, "this is neither an aggregate nor in GROUP BY", "Add it to GROUP BY, or sum it."
                    )
                shown.append(group.label)
                continue
            formula = self._aggregates.formula(node)
            possible, adds_up = self._aggregates.possible(node)
            self._outputs.append(Output(alias or _label(node), formula, True, possible, adds_up))
        if not self._aggregates.moments:
            raise self._scope.refusal(items[0][1], "nothing is aggregated", "Ask for COUNT(*), SUM or AVG.")
        names = [*(one.name for one in self._outputs), *shown]
        if len({name.casefold() for name in names}) != len(names):
            raise self._scope.refusal(items[0][1], "two answers have one name", "Name them with AS.")
        beside = {f"{one.name}{ending}".casefold() for one in self._outputs for ending in ERROR_COLUMNS}
        if clash := [name for name in names if name.casefold() in beside]:
            problem = f"{clash[0]!r} is the name of a column that stands beside another answer"
            raise self._scope.refusal(items[0][1], problem, "Name it otherwise with AS.")
        return tuple(shown)

    def _named(self, node: Node) -> Node:
        """An expression of HAVING or ORDER BY with select items in the place of their aliases."""

        def named(one: Node) -> Node:
            plain = isinstance(one, exp.Column) and not one.table and not one.find_ancestor(exp.AggFunc)
            meant = self._aliases.get(one.name.casefold()) if plain else None
            return one if meant is None else exp.Paren(this=meant.copy())

        return node.copy().transform(named)

    def _formula(self, node: Node) -> Any:
        return self._aggregates.formula(self._named(node))

    def _having(self, node: Node) -> Having:
        if isinstance(node, exp.Paren):
            return self._having(node.this)
        if isinstance(node, exp.Not):
            return Logic("not", (self._having(node.this),))
        if isinstance(node, (exp.And, exp.Or)):
            sign = "and" if isinstance(node, exp.And) else "or"
            return Logic(sign, (self._having(node.left), self._having(node.right)))
        if isinstance(node, exp.Between):
            middle = self._formula(node.this)
            low, high = self._formula(node.args["low"]), self._formula(node.args["high"])
            return Logic("and", (Comparison(">=", middle, low), Comparison("<=", middle, high)))
        if type(node) in COMPARISONS:
            return Comparison(_SIGNS[type(node)], self._formula(node.left), self._formula(node.right))
        raise self._scope.refusal(node, "HAVING compares aggregates", "Put other conditions in WHERE.")

    def _ordering(self, node: Node, items: list[tuple[str, Node]]) -> Ordering:
        descending = bool(node.args.get("desc"))
        inner = _bare(self._named(self._meant(node.this, items)))
        if inner.find(exp.Column) and not inner.find(exp.AggFunc):
            group = self._groups.get(self._normal(inner))
            if group is None:
                raise self._scope.refusal(node, "ORDER BY names something that is not asked", "Order by an answer.")
            return Ordering(group.label, descending, group=True)
        formula = self._formula(inner)
        for one in self._outputs:
            if one.formula == formula:
                return Ordering(one.name, descending)
        name = f"order key {len(self._outputs)}"
        self._outputs.append(Output(name, formula, shown=False))
        return Ordering(name, descending)


def _bare(node: Node) -> Node:
    return _bare(node.this) if isinstance(node, exp.Paren) else node


def _label(node: Node) -> str:
    """What a column of the answer is called when the query does not say."""
    if isinstance(node, exp.Column):
        return str(node.name)
    if isinstance(node, exp.Count):
        return "count"
    if isinstance(node, AGGREGATES) and isinstance(node.this, exp.Column):
        short = {exp.Variance: "var_samp", exp.VariancePop: "var_pop", exp.StddevPop: "stddev_pop"}
        kind = short.get(type(node), type(node).__name__.lower())
        return f"{kind}_{node.this.name}"
    return re.sub(r"\s+", " ", str(node.sql(dialect="duckdb"))).lower()


def _shared_tests(moments: list[MomentOf]) -> tuple[dict[str, tuple[PublicTest, ...]], tuple[MomentOf, ...]]:
    """Tests of public attributes that every term makes are made once, for all rows; the terms lose them."""
    terms = [term for moment in moments for term in moment.terms]
    tests = [{(table, test) for table, factor in term.public.items() for test in factor.tests} for term in terms]
    common = set.intersection(*tests) if tests else set()
    filters: dict[str, tuple[PublicTest, ...]] = {}
    for table, test in sorted(common):
        filters[table] = (*filters.get(table, ()), test)
    rest = []
    for moment in moments:
        stripped = []
        for term in moment.terms:
            left = {
                table: PublicFactor(tuple(one for one in factor.tests if (table, one) not in common), factor.measure)
                for table, factor in term.public.items()
            }
            stripped.append(replace(term, public={t: f for t, f in left.items() if f.tests or f.measure}))
        rest.append(replace(moment, terms=tuple(stripped)))
    return filters, tuple(rest)
