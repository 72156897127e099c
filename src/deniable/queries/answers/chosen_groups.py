"""Questions about groups that another question chooses, as BI tools limit the series of a chart.

    SELECT city, kind, COUNT(*) FROM t
    JOIN (SELECT city AS c, COUNT(*) AS n FROM t GROUP BY city ORDER BY n DESC LIMIT 5) AS top ON city = c
    GROUP BY city, kind

So is WHERE city IN (SELECT city FROM t GROUP BY city ORDER BY COUNT(*) DESC LIMIT 5). The inner question is answered
first, and its groups become a condition. Noise takes part in which they are, and the answer's notes say so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.answers.result import Result
from deniable.queries.parsing.column_names import name_of
from deniable.queries.parsing.source_names import conjuncts

Node = Any
Ask = Callable[[str], Result]


def with_chosen_groups(tree: Node, ask: Ask) -> tuple[Node, tuple[str, ...]] | None:
    """The question with conditions in the place of the questions that choose groups, and notes; None without these."""
    if not isinstance(tree, exp.Select) or tree.args.get("from_") is None:
        return None
    made, notes, number = tree.copy(), list[str](), 0
    for join in list(made.args.get("joins") or []):
        pairs = _joined_groups(made, join)
        if pairs is None:
            continue
        number += 1
        made.args["joins"].remove(join)
        chosen = _chosen(join.this.this, [inner for _, inner in pairs], made, ask, notes)
        made.where(_among([outer for outer, _ in pairs], chosen), copy=False)
    where = made.args.get("where")
    for test in list(where.find_all(exp.In)) if where is not None else []:
        query = test.args.get("query")
        inner = query.this if isinstance(query, exp.Subquery) else query
        if isinstance(test.this, exp.Column) and _chooses(inner) and len(inner.expressions) == 1:
            number += 1
            chosen = _chosen(inner, [inner.expressions[0].alias_or_name], made, ask, notes)
            if (None,) in chosen and test.find_ancestor(exp.Not) is not None:
                problem = "a chosen group is NULL, so that NOT IN holds for no row"
                raise QueryRefused(problem, "Leave NULL out: WHERE … IS NOT NULL.")
            test.replace(_among([test.this], chosen))
    return (made, tuple(dict.fromkeys(notes))) if number else None


def _chooses(inner: Node) -> bool:
    """Whether a subquery is about groups, of which LIMIT or HAVING chooses some by an answer."""
    if not isinstance(inner, exp.Select) or inner.args.get("group") is None:
        return False
    clauses = [inner.args.get(clause) for clause in ("limit", "having")]
    return any(clauses) and any(item.find(exp.AggFunc) for item in (*inner.expressions, *_deciding(inner)))


def _deciding(inner: Node) -> list[Node]:
    return [inner.args[clause] for clause in ("order", "having") if inner.args.get(clause) is not None]


def _joined_groups(tree: Node, join: Node) -> list[tuple[Node, str]] | None:
    """What a join on chosen groups compares: columns outside, and the names of groups inside."""
    source = join.this
    if not isinstance(source, exp.Subquery) or not _chooses(source.this) or join.args.get("on") is None:
        return None
    if str(join.args.get("side") or "") or str(join.args.get("kind") or "").upper() not in ("", "INNER"):
        return None
    alias, pairs = source.alias.casefold(), list[tuple[Node, str]]()
    groups = {str(item.alias_or_name).casefold() for item in source.this.expressions if not item.find(exp.AggFunc)}
    others = {str(item.alias_or_name or name_of(item)).casefold() for item in source.this.expressions}

    def is_inner(node: Node) -> bool:
        return node.table.casefold() == alias or (not node.table and node.name.casefold() in others)

    for part in conjuncts(join.args["on"]):
        sides: list[Node] = [part.left, part.right] if isinstance(part, exp.EQ) else []
        if not sides or not all(isinstance(side, exp.Column) for side in sides):
            return None
        outer, inner = sides if is_inner(sides[1]) and sides[0].table.casefold() != alias else sides[::-1]
        if not is_inner(inner) or outer.table.casefold() == alias or inner.name.casefold() not in groups:
            return None
        pairs.append((outer.copy(), inner.name))
    inside = {id(column) for column in join.find_all(exp.Column)}
    used = [column for column in tree.find_all(exp.Column) if id(column) not in inside]
    if {inner.casefold() for _, inner in pairs} != groups or any(column.table.casefold() == alias for column in used):
        return None  # a group may have several rows inside, or their answers are asked for
    return pairs


def _chosen(inner: Node, names: list[str], tree: Node, ask: Ask, notes: list[str]) -> list[tuple[Any, ...]]:
    """The values of the groups that a subquery chooses."""
    asked = inner.copy()
    if not any(item.find(exp.AggFunc) for item in asked.expressions):
        asked.select(exp.alias_(exp.Count(this=exp.Star()), "rows of groups", quoted=True), copy=False)
    if tree.args.get("with_") is not None and asked.args.get("with_") is None:
        asked.set("with_", tree.args["with_"].copy())
    rows = ask(str(asked.sql(dialect="duckdb")))
    notes += rows.notes
    named = {name.casefold(): values for name, values in rows.groups.items()}
    return list(zip(*(named[name.casefold()] for name in names), strict=True))


def _among(columns: list[Node], chosen: list[tuple[Any, ...]]) -> Node:
    """The condition that columns have one of these values; NULL equals nothing."""
    chosen = [key for key in chosen if None not in key]
    if not chosen:
        return exp.false()
    if len(columns) == 1:
        return exp.In(this=columns[0].copy(), expressions=[exp.convert(value) for (value,) in chosen])
    tests = [
        exp.and_(
            *(
                exp.EQ(this=column.copy(), expression=exp.convert(value))
                for column, value in zip(columns, key, strict=True)
            )
        )
        for key in chosen
    ]
    return exp.paren(exp.or_(*tests))


def with_notes(result: Result, notes: tuple[str, ...]) -> Result:
    """A result with further notes, each once."""
    return replace(result, notes=tuple(dict.fromkeys((*notes, *result.notes))))
