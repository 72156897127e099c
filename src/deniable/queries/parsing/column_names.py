"""What columns of an answer are called where the query does not say: as DuckDB calls them."""

from __future__ import annotations

from typing import Any

import duckdb
from sqlglot import exp

Node = Any


def name_of(node: Node) -> str:
    """The name that DuckDB gives to a column of an expression.

    >>> import sqlglot
    >>> [name_of(sqlglot.parse_one(text, read="duckdb")) for text in ("COUNT(*)", "AVG(age)", "age // 10")]
    ['count_star()', 'avg(age)', '(age // 10)']
    """
    if isinstance(node, exp.Column):
        return str(node.name)
    if isinstance(node, exp.WithinGroup):  # DuckDB's name has only the share, and the order of rows
        kind = "disc" if isinstance(node.this, exp.PercentileDisc) else "cont"
        order = node.expression.sql(dialect="duckdb").strip()
        return f"quantile_{kind}({node.this.this.sql(dialect='duckdb')} {order})"
    text = str(node.sql(dialect="duckdb"))
    try:
        return str(duckdb.SQLExpression(text).get_name())
    except duckdb.Error:
        return text.lower()


def with_names(tree: Node) -> Node:
    """The same tree; items of SELECT that DuckDB would name get that name."""
    for select in tree.find_all(exp.Select):
        if select is tree or isinstance(select.parent, (exp.CTE, exp.Union)) or _is_derived(select):
            _name_items(select)
    return tree


def _is_derived(select: Node) -> bool:
    """Whether a SELECT stands in the place of a table."""
    return isinstance(select.parent, exp.Subquery) and isinstance(select.parent.parent, (exp.From, exp.Join))


def _name_items(select: Node) -> None:
    named = (item for item in select.expressions if isinstance(item, (exp.Alias, exp.Column)))
    taken = {item.alias_or_name.casefold() for item in named}
    for position, item in enumerate(select.expressions):
        if isinstance(item, (exp.Alias, exp.Column, exp.Star)) or item.find(exp.Star) is item:
            continue
        name = plain = name_of(item)
        number = 0
        while name.casefold() in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name.casefold())
        select.expressions[position].replace(exp.alias_(item.copy(), name, quoted=True))
