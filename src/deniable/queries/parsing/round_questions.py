"""One question about every round: each aggregate of a query, once for each round."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.parsing.grammar import check_parts, read_select
from deniable.queries.parsing.scope import Node
from deniable.tables.schema.rounds import ROUND_COLUMN

MOST_TREND_ROUNDS = 100


def question_by_round(text: str, rounds: Sequence[int]) -> tuple[str, str]:
    """The name of a query's only answer, and a query that has one answer for each round.

    >>> question_by_round("SELECT COUNT(*) AS n FROM users", [1, 2])[1]
    'SELECT COUNT(*) FILTER(WHERE round = 1) AS r1, COUNT(*) FILTER(WHERE round = 2) AS r2 FROM users'
    """
    select = read_select(text)
    check_parts(text, select)
    if len(select.expressions) != 1 or any(select.args.get(part) for part in ("group", "having", "order", "limit")):
        raise QueryRefused("a trend follows one number", "Ask for one aggregate, without GROUP BY, ORDER BY or LIMIT.")
    if len(rounds) > MOST_TREND_ROUNDS:
        raise QueryRefused(f"there are over {MOST_TREND_ROUNDS} rounds", "Follow some of them: WHERE round > ….")
    (item,) = select.expressions
    node = item.this if isinstance(item, exp.Alias) else item
    answers = [exp.alias_(_in_round(node, number), f"r{number}") for number in rounds]
    return item.alias or "level", str(select.copy().select(*answers, append=False).sql(dialect="duckdb"))


def _in_round(node: Node, number: int) -> Node:
    """An expression whose aggregates are over one round."""
    condition = exp.EQ(this=exp.column(ROUND_COLUMN), expression=exp.Literal.number(number))

    def restricted(part: Node) -> Node:
        if isinstance(part, exp.Filter):
            both = exp.and_(part.expression.this.copy(), condition.copy())
            return exp.Filter(this=part.this.copy(), expression=exp.Where(this=both))
        if isinstance(part, exp.AggFunc):
            return exp.Filter(this=part.copy(), expression=exp.Where(this=condition.copy()))
        return part

    if isinstance(node, (exp.Filter, exp.AggFunc)):
        return restricted(node)
    copied = node.copy()
    for part in list(copied.find_all(exp.Filter, exp.AggFunc)):
        if isinstance(part, exp.Filter) or not isinstance(part.parent, exp.Filter):
            part.replace(restricted(part))
    return copied
