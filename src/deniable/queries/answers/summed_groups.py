"""AVG, MAX, MIN and COUNT of answers: SELECT AVG(n) FROM (SELECT day, COUNT(*) AS n FROM t GROUP BY day) AS days.

They may be grouped again, by groups of the derived table: SELECT city, MAX(n) FROM (… GROUP BY city, day) … BY city.

How many groups there are is public. An average of them is their sum, whose error is known, over this number. The
largest of several answers is one that noise has favoured; its interval goes from the largest lower end to the largest
upper end of intervals that hold all at once, so that it holds the largest truth.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.answers.compound_answers import arranged
from deniable.queries.answers.result import Estimate, Result
from deniable.queries.parsing.column_names import name_of
from deniable.queries.parsing.compound_questions import ordering_of

Node = Any
Ask = Callable[[str], Result]
Key = tuple[Any, ...]
_SUMMARIES = {exp.Avg: "avg", exp.Max: "max", exp.Min: "min", exp.Sum: "sum"}
_COUNT, _GROUP = "count", "group"
EVERY_GROUP = "over {:,} groups, including those that nobody is in"
FAVOURED = "{} of several answers is one that noise has favoured; its interval holds the true {}"


@dataclass(frozen=True, slots=True)
class SummedGroups:
    """What is asked of the answers of a derived table: by the name of an item, its kind and the column it is of."""

    inner: str
    sums: str
    items: dict[str, tuple[str, str]]
    by: tuple[str, ...]
    """The columns that are grouped by again."""
    order: tuple[tuple[str, bool], ...]
    limit: int | None
    offset: int

    def answer(self, ask: Ask, ask_together: Ask, text: str) -> Result:
        """The answer; `ask_together` gives intervals that hold all at once."""
        kinds = {kind for kind, _ in self.items.values()}
        rows = ask_together(self.inner) if kinds & {"max", "min"} else ask(self.inner)
        sums = ask(self.sums) if kinds & {"avg", "sum"} else rows
        members: dict[Key, list[int]] = {} if self.by else {(): list(range(len(rows)))}
        for number, key in enumerate(_keys(rows, self.by) if self.by else ()):
            members.setdefault(key, []).append(number)
        totals = {key: number for number, key in enumerate(_keys(sums, self.by))}
        columns: dict[str, list[Any]] = {}
        for name, (kind, column) in self.items.items():
            if kind == _GROUP:
                columns[name] = [key[self.by.index(column)] for key in members]
            elif kind == _COUNT:
                columns[name] = [len(mine) for mine in members.values()]
            elif kind in ("max", "min"):
                columns[name] = [_extreme(rows, mine, column, kind) for mine in members.values()]
            else:
                columns[name] = [
                    _scaled(sums.answers[column][totals[key]], 1 / len(mine) if kind == "avg" else 1.0)
                    for key, mine in members.items()
                ]
        notes = [note for note in (*sums.notes, *rows.notes) if "hold at once" not in note]  # which are not shown
        if kinds & {"avg", _COUNT} and rows.groups and not self.by:
            notes.append(EVERY_GROUP.format(len(rows)))
        notes += [
            FAVOURED.format(kind.upper(), "maximum" if kind == "max" else "minimum")
            for kind in ("max", "min")
            if kind in kinds
        ]
        like = Result({}, {}, tuple(dict.fromkeys(notes)), text, rows.simulation)
        return arranged(columns, self.order, self.limit, self.offset, like)


def summed_groups(tree: Node) -> SummedGroups | None:
    """A SELECT of aggregates of the answers of a derived table with groups; None for any other."""
    if not isinstance(tree, exp.Select) or tree.args.get("from_") is None:
        return None
    if any(tree.args.get(clause) for clause in ("joins", "where", "having", "distinct")):
        return None
    source, tables = tree.args["from_"].this, tree.args.get("with_")
    inner = source.this if isinstance(source, exp.Subquery) else _of_with(source, tables)
    if not isinstance(inner, exp.Select) or inner.args.get("group") is None:
        return None
    again = tree.args.get("group")
    keys = [] if again is None else again.expressions
    if again is not None and (not keys or not all(isinstance(key, exp.Column) for key in keys)):
        return None
    by = tuple(key.name.casefold() for key in keys)
    items: dict[str, tuple[str, str]] = {}
    for item in tree.expressions:
        node = item.this if isinstance(item, exp.Alias) else item
        if isinstance(node, exp.Column) and node.name.casefold() in by:
            items[item.alias_or_name] = (_GROUP, node.name.casefold())
        elif isinstance(node, exp.Count) and isinstance(node.this, (exp.Star, exp.Literal)):
            items[item.alias_or_name or name_of(item)] = (_COUNT, "")
        elif type(node) in _SUMMARIES and isinstance(node.this, exp.Column):
            items[item.alias_or_name or name_of(item)] = (_SUMMARIES[type(node)], node.this.name)
        else:
            return None
    if not {kind for kind, _ in items.values()} - {"sum", _GROUP} or (
        by and _COUNT in {kind for kind, _ in items.values()}
    ):
        return None  # sums of answers are sums over rows; what groups have in number may be asked of them
    summed = sorted({column for kind, column in items.values() if kind in ("avg", "sum")})
    asked, sums = (exp.Select(with_=tables and tables.copy(), from_=tree.args["from_"].copy()) for _ in range(2))
    asked.set("expressions", [exp.Star()])
    if not any(item.find(exp.AggFunc) for item in inner.expressions):  # groups alone
        asked = inner.copy()
        asked.set("with_", tables and tables.copy())
    sums.set(
        "expressions", [exp.alias_(exp.Sum(this=exp.column(name, quoted=True)), name, quoted=True) for name in summed]
    )
    if again is not None and summed:
        sums.set("group", again.copy())
        sums.set("expressions", [*(key.copy() for key in keys), *sums.expressions])
    inner_text, sums_text = str(asked.sql(dialect="duckdb")), str(sums.sql(dialect="duckdb"))
    return SummedGroups(inner_text, sums_text, items, by, *ordering_of(tree, tuple(items)))


def _of_with(table: Node, tables: Node) -> Node | None:
    named = {each.alias.casefold(): each.this for each in (tables.expressions if tables is not None else [])}
    return named.get(table.name.casefold()) if isinstance(table, exp.Table) else None


def _keys(rows: Result, by: tuple[str, ...]) -> list[Key]:
    """What each row has in the columns that are grouped by again."""
    named = {name.casefold(): values for name, values in rows.groups.items()}
    if lacking := [name for name in by if name not in named]:
        raise QueryRefused(f"{lacking[0]!r} is not a group of the derived table", "Group again by one of its groups.")
    return list(zip(*(named[name] for name in by), strict=True)) if by else [()]


def _extreme(rows: Result, members: list[int], column: str, kind: str) -> Estimate:
    by_name = {name.casefold(): estimates for name, estimates in rows.answers.items()}
    if not by_name.get(column.casefold()):
        raise QueryRefused(f"{column!r} is not an answer of the derived table", "Name a COUNT(*), SUM or AVG of it.")
    estimates = [by_name[column.casefold()][number] for number in members]
    choose = max if kind == "max" else min
    chosen = choose(estimates, key=lambda each: each.value)
    ends = zip(*(each.interval for each in estimates), strict=True)
    low, high = (choose(end) for end in ends)
    return replace(chosen, bounds=(low, high))


def _scaled(estimate: Estimate, factor: float) -> Estimate:
    bounds = None if estimate.bounds is None else (estimate.bounds[0] * factor, estimate.bounds[1] * factor)
    return replace(
        estimate,
        value=estimate.value * factor,
        stderr=estimate.stderr * factor,
        model=estimate.model * factor,
        bounds=bounds,
    )
