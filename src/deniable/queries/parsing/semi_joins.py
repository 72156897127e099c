"""uid IN (SELECT uid …), EXISTS, NOT IN and NOT EXISTS → joins: the same where everybody has one row in that table.

A condition that WHERE joins by AND is a JOIN. Any other one, such as NOT IN, is a LEFT JOIN and a test for a partner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.parsing.source_names import conjuncts
from deniable.tables.schema.report_format import USER_COLUMN
from deniable.tables.specification.specification import Specification

Node = Any
_CHOOSING = ("group", "having", "order", "limit", "offset", "distinct")
Refusal = Callable[[Node, str, str], QueryRefused]


def with_semi_joins(select: Node, collection: Specification, keys: set[str], refusal: Refusal) -> None:
    """Put joins in the place of conditions that somebody is in another table."""
    if not isinstance(select.args["from_"].this, exp.Table):
        return
    for join in [join for join in select.args.get("joins") or [] if join.args.get("kind") in ("SEMI", "ANTI")]:
        _as_exists(select, join)
    where = select.args.get("where")
    always = [] if where is None else conjuncts(where.this)
    for part in [node for node in select.find_all(exp.In, exp.Exists) if _is_of(node, select)]:
        inner = _semi_joined(part, keys)
        if inner is None:
            continue
        table = _checked_table(part, inner, collection, refusal)
        condition = [] if inner.args.get("where") is None else conjuncts(inner.args["where"].this)
        kept = [each for each in condition if not _joins_keys(each, keys)]
        known = _alias_in(select, table.name)
        alias = table.alias_or_name if known is None else known
        named = [_of_table(each, table, alias, collection) for each in kept]
        if known is not None:
            everybody = exp.and_(*named) if named else exp.true()
            one_of_always = any(part is each for each in always)
            part.replace(everybody if one_of_always else exp.Case(ifs=[_if(everybody)], default=exp.false()))
            continue
        first = select.args["from_"].this.alias_or_name
        on = exp.EQ(this=exp.column(USER_COLUMN, table=first), expression=exp.column(USER_COLUMN, table=alias))
        if any(part is each for each in always):
            part.replace(exp.and_(*named) if named else exp.true())
            select.append("joins", exp.Join(this=table.copy(), on=on))
        else:
            here = exp.Not(this=exp.Is(this=exp.column(USER_COLUMN, table=alias), expression=exp.null()))
            part.replace(exp.Paren(this=here))
            select.append("joins", exp.Join(this=table.copy(), on=exp.and_(on, *named), side="LEFT"))


def _as_exists(select: Node, join: Node) -> None:
    """SEMI JOIN and ANTI JOIN as EXISTS and NOT EXISTS."""
    first, second = select.args["from_"].this.alias_or_name, join.this.alias_or_name
    on = [] if join.args.get("on") is None else [join.args["on"].copy()]
    for name in join.args.get("using") or []:
        mine, other = (exp.column(str(name.name), table=table) for table in (first, second))
        on.append(exp.EQ(this=mine, expression=other))
    inner = exp.Select(expressions=[exp.Literal.number(1)], from_=exp.From(this=join.this.copy()))
    exists = exp.Exists(this=inner.where(*on, copy=False) if on else inner)
    select.set("joins", [other for other in select.args["joins"] if other is not join])
    select.where(exists if join.args["kind"] == "SEMI" else exp.Not(this=exists), copy=False)


def _if(condition: Node) -> Node:
    return exp.If(this=condition, true=exp.true())


def _is_of(node: Node, select: Node) -> bool:
    """Whether a condition belongs to a SELECT itself, and not to one inside it."""
    return node.find_ancestor(exp.Select) is select


def _checked_table(part: Node, inner: Node, collection: Specification, refusal: Refusal) -> Node:
    source = inner.args.get("from_")
    table: Node = None if source is None else source.this
    plain = isinstance(table, exp.Table) and not inner.args.get("joins")
    if not plain or any(inner.args.get(clause) for clause in (*_CHOOSING, "with_") if clause != "distinct"):
        raise refusal(part, "a semi-join is with one table", "Write uid IN (SELECT uid FROM t WHERE …).")
    described = {each.name.casefold(): each for each in collection.tables}.get(table.name.casefold())
    if described is not None and (described.many or 1) > 1:
        problem = f"people may have many rows in {described.name!r}, and reports hide how many"
        raise refusal(part, problem, "Join the tables: that counts rows.")
    return table


def _alias_in(select: Node, name: str) -> str | None:
    """What a SELECT calls a table that everybody in its rows has a row of."""
    joins = select.args.get("joins") or []
    if any(str(join.args.get("side") or "").upper() in ("RIGHT", "FULL") for join in joins):
        return None
    holders = [select.args["from_"], *(join for join in joins if not join.args.get("side"))]
    tables = (holder.this for holder in holders if isinstance(holder.this, exp.Table))
    return next((str(each.alias_or_name) for each in tables if each.name.casefold() == name.casefold()), None)


def _of_table(node: Node, table: Node, alias: str, collection: Specification) -> Node:
    """A condition of a subquery with its own columns named by their table; the others are those of the query around."""
    own = table.alias_or_name.casefold()
    described = {each.name.casefold(): each for each in collection.tables}.get(table.name.casefold())
    names = set() if described is None else {attribute.casefold() for attribute in described.attributes}

    def named(part: Node) -> Node:
        if not isinstance(part, exp.Column) or isinstance(part.this, exp.Star):
            return part
        prefix = part.table.casefold()
        if prefix == own or (not prefix and (part.name.casefold() in names or described is None)):
            return exp.Column(this=part.this.copy(), table=exp.to_identifier(alias))
        return part

    return node.copy().transform(named)


def _semi_joined(node: Node, keys: set[str]) -> Node | None:
    """The SELECT of a condition that somebody is in another table; None for any other condition."""
    if isinstance(node, exp.In) and node.args.get("query") is not None and _is_key(node.this, keys):
        inner = node.args["query"].this
        if isinstance(inner, exp.Select) and len(inner.expressions) == 1 and _is_key(inner.expressions[0], keys):
            return inner
    if isinstance(node, exp.Exists) and isinstance(node.this, exp.Select):
        where = node.this.args.get("where")
        if where is not None and any(_joins_keys(part, keys) for part in conjuncts(where.this)):
            return node.this
    return None


def _joins_keys(node: Node, keys: set[str]) -> bool:
    return isinstance(node, exp.EQ) and _is_key(node.left, keys) and _is_key(node.right, keys)


def _is_key(node: Node, keys: set[str]) -> bool:
    return isinstance(node, exp.Column) and node.name.casefold() in keys
