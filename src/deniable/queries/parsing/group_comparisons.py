"""Comparing groups: the difference of every two of them, as formulas of one row, so that their covariance is known."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.limits import MOST_ANSWERS
from deniable.queries.parsing.column_names import name_of
from deniable.queries.parsing.grammar import check_parts, read_select
from deniable.queries.parsing.spread_questions import Key, Spread, cell_of


def compared_groups(text: str, by: str) -> Spread:
    """A question with one answer, in the groups of a column or expression.

    >>> compared_groups("SELECT AVG(age) FROM users WHERE age > 20", "city").keys_text()
    'SELECT city AS g0, COUNT(*) AS n FROM users WHERE age > 20 GROUP BY city'
    """
    select = read_select(text)
    check_parts(text, select)
    if len(select.expressions) != 1 or any(select.args.get(part) for part in ("group", "having", "order", "limit")):
        problem = "a comparison is of one number"
        raise QueryRefused(
            problem, "Ask for one aggregate, without GROUP BY, ORDER BY or LIMIT, and name groups in `by`."
        )
    written = read_select(f"SELECT {by} FROM compared").expressions  # noqa: S608 - a tree is made of it, and checked
    group = written[0]
    if isinstance(group, exp.Alias) and group.alias == name_of(group.this):  # a name that nobody wrote
        group = group.this
    if len(written) != 1 or isinstance(group, (exp.Alias, exp.Star)):
        raise QueryRefused("groups are those of one column or expression", 'Use by="city".')
    (item,) = select.expressions
    answer = item.this if isinstance(item, exp.Alias) else item
    return Spread(select, (group,), (item.alias or "answer",), (answer,), (), None, 0)


def pairs_of(keys: Sequence[Key]) -> list[tuple[int, int]]:
    """Every two groups, as many as a question has room for."""
    pairs = list(combinations(range(len(keys)), 2))
    if len(pairs) > MOST_ANSWERS:
        problem = f"{len(keys):,} groups have {len(pairs):,} differences, and a question has room for {MOST_ANSWERS}"
        raise QueryRefused(problem, "Choose some groups with WHERE, or larger ones with CASE or FLOOR.")
    return pairs


def differences_text(compared: Spread, keys: Sequence[Key]) -> str:
    """A plain question of one row: what the second group of every pair has more than the first.

    >>> differences_text(compared_groups("SELECT COUNT(*) FROM users", "city"), [("Oslo",), ("Rome",)])
    "SELECT (COUNT(*) FILTER(WHERE ((city) = 'Rome'))) - (COUNT(*) FILTER(WHERE ((city) = 'Oslo'))) AS d0 FROM users"
    """
    (answer,) = compared.items

    def group(row: int) -> exp.Paren:
        return exp.Paren(this=cell_of(compared, keys, row, answer))

    differences = [
        exp.alias_(exp.Sub(this=group(second), expression=group(first)), f"d{number}")
        for number, (first, second) in enumerate(pairs_of(keys))
    ]
    made = exp.Select(expressions=differences, from_=compared.select.args["from_"].copy())
    made.set("joins", [join.copy() for join in compared.select.args.get("joins") or []])
    return str(made.sql(dialect="duckdb"))
