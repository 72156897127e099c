"""What columns of an answer are called where the query does not say: as DuckDB calls them."""

from __future__ import annotations

from typing import Any

import duckdb
import sqlglot
from sqlglot import TokenType, exp

Node = Any
_BRACKETS_BEGIN = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
_BRACKETS_END = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_AFTER_ITEMS = {
    TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY, TokenType.LIMIT,
    TokenType.UNION, TokenType.SEMICOLON,
}  # fmt: skip


def name_of(node: Node, written: str = "") -> str:
    """The name that DuckDB gives to a column of an expression, which may be `written` in words that the tree forgets.

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
    for said in (written, text) if written else (text,):
        try:
            return str(duckdb.SQLExpression(said).get_name())
        except duckdb.Error:
            continue
    return text.lower()


def with_names(tree: Node, text: str) -> Node:
    """The same tree; items of SELECT that DuckDB would name get that name."""
    first = tree.find(exp.Select) if isinstance(tree, exp.Union) else tree
    for select in tree.find_all(exp.Select):
        if select is tree or isinstance(select.parent, (exp.CTE, exp.Union)) or _is_derived(select):
            _name_items(select, written_items(text) if select is first else [])
    return tree


def written_items(text: str) -> list[str]:
    """The items of the first SELECT that is in no brackets, as they are written.

    >>> written_items("WITH t AS (SELECT 1) SELECT VAR_SAMP(x), EXTRACT(year FROM y) AS z FROM t")
    ['VAR_SAMP(x)', 'EXTRACT(year FROM y) AS z']
    """
    depth, items, begun = 0, [[-1, -1]], False
    for token in sqlglot.tokenize(text, read="duckdb"):
        if depth == 0 and begun and token.token_type in _AFTER_ITEMS:
            break
        if depth == 0 and begun and token.token_type == TokenType.COMMA:
            items.append([-1, -1])
        elif begun and not (token.token_type == TokenType.DISTINCT and items == [[-1, -1]]):
            items[-1] = [token.start if items[-1][0] < 0 else items[-1][0], token.end + 1]
        begun = begun or (depth == 0 and token.token_type == TokenType.SELECT)
        depth += (token.token_type in _BRACKETS_BEGIN) - (token.token_type in _BRACKETS_END)
    return [text[start:end] for start, end in items if start >= 0]


def _is_derived(select: Node) -> bool:
    """Whether a SELECT stands in the place of a table."""
    return isinstance(select.parent, exp.Subquery) and isinstance(select.parent.parent, (exp.From, exp.Join))


def _name_items(select: Node, written: list[str]) -> None:
    named = (item for item in select.expressions if isinstance(item, (exp.Alias, exp.Column)))
    taken = {item.alias_or_name.casefold() for item in named}
    for position, item in enumerate(select.expressions):
        if isinstance(item, (exp.Alias, exp.Column, exp.Star)) or item.find(exp.Star) is item:
            continue
        name = plain = name_of(item, written[position] if len(written) == len(select.expressions) else "")
        number = 0
        while name.casefold() in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name.casefold())
        # exp.alias_ would name the table that a subquery is
        aliased = exp.Alias(this=item.copy(), alias=exp.to_identifier(name, quoted=True))
        select.expressions[position].replace(aliased)
