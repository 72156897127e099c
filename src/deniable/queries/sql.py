"""SQL text → checked question. A query is let through because each node of it was recognised.

Supported: COUNT(*), SUM and AVG of a private attribute, from one table or several joined on the user id, with
conditions on private and on public attributes, grouped by either. Everything else is refused by name, with what to
write instead.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import sqlglot
from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.question import Aggregate, Mask, Place, Question
from deniable.tables.collection import Collection
from deniable.tables.schema import Attribute, Categorical, Ordinal, Private, Public

Node = Any
"""A node of sqlglot's tree."""

_FLIPPED: dict[Any, Any] = {
    exp.LT: exp.GT,
    exp.GT: exp.LT,
    exp.LTE: exp.GTE,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
}
_PUBLIC_NODES = (
    exp.And, exp.Or, exp.Not, exp.Paren, exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.Between, exp.In, exp.Is,
    exp.Column, exp.Identifier, exp.Literal, exp.Boolean, exp.Null, exp.Neg,
)  # fmt: skip
_CLAUSES = {"expressions", "from_", "joins", "where", "group"}


def parse(text: str, collection: Collection, key: str = "uid") -> Question:
    """The question that an SQL text asks of a collection."""
    return _Reader(text, collection, key).question()


class _Reader:
    def __init__(self, text: str, collection: Collection, key: str) -> None:
        self._text, self._collection, self._key = text, collection, key
        self._tables: dict[str, str] = {}  # what a query calls a table → the table
        self._public: dict[str, tuple[str, ...]] = {}

    def refusal(self, node: Node, problem: str, repair: str) -> QueryRefused:
        places = [] if node is None else [one.meta["start"] for one in node.walk() if "start" in one.meta]
        return QueryRefused(problem, repair, text=self._text, start=min(places, default=None))

    def question(self) -> Question:
        try:
            statements = sqlglot.parse(self._text, read="duckdb")
        except sqlglot.errors.SqlglotError as error:
            details = getattr(error, "errors", None) or [{}]
            line, column = details[0].get("line", "?"), details[0].get("col", "?")
            raise QueryRefused(f"the text is no SQL: line {line}, column {column}", "Mend that place.") from None
        if len(statements) != 1 or not isinstance(statements[0], exp.Select):
            raise QueryRefused("one SELECT is expected", "Write SELECT COUNT(*) FROM …, without WITH, UNION or others.")
        select = statements[0]
        for clause, value in select.args.items():
            if value and clause not in _CLAUSES:
                raise self.refusal(None, f"the clause {clause.strip('_').upper()} is not supported", "Leave it out.")
        self._read_tables(select)
        where = self._conditions(select.args["where"].this) if select.args.get("where") else {}
        groups = self._groups(select.args.get("group"))
        aggregates = self._aggregates(select.expressions, groups)
        return Question(tuple(self._tables.values()), aggregates, groups, where, self._public)

    # Tables ---------------------------------------------------------------------------------------------------------

    def _read_tables(self, select: Node) -> None:
        source = select.args.get("from_")
        if source is None:
            raise self.refusal(None, "FROM is missing", "Name a table of the collection.")
        self._add_table(source.this)
        for join in select.args.get("joins") or []:
            if join.args.get("side") or join.args.get("kind") not in (None, "", "INNER") or join.args.get("method"):
                raise self.refusal(join, "only inner joins are possible", "Write JOIN … USING (uid).")
            self._add_table(join.this)
            self._check_join(join)

    def _add_table(self, node: Node) -> None:
        if not isinstance(node, exp.Table) or node.args.get("db") or node.args.get("joins"):
            raise self.refusal(
                node, "only the collection's own tables can be asked", "Write FROM table, without a subquery."
            )
        name = node.name
        known = [table.name for table in self._collection.tables]
        if name not in known:
            raise self.refusal(node, f"there is no table {name!r}", f"The collection has {', '.join(known)}.")
        if name in self._tables.values():
            raise self.refusal(node, f"table {name!r} is joined with itself", "Name each table once.")
        self._tables[node.alias or name] = name

    def _check_join(self, join: Node) -> None:
        using = join.args.get("using")
        if using and [column.name for column in using] == [self._key]:
            return
        on = join.args.get("on")
        sides: list[Node] = [on.left, on.right] if isinstance(on, exp.EQ) else []
        if sides and all(isinstance(side, exp.Column) and side.name == self._key for side in sides):
            tables = {side.table for side in sides}
            if len(tables) == 2 and tables <= set(self._tables):
                return
        raise self.refusal(join, "tables can be joined on the user id only", f"Write JOIN … USING ({self._key}).")

    def _place(self, node: Node) -> tuple[Place, Attribute]:
        """The attribute that a column names."""
        if not isinstance(node, exp.Column):
            raise self.refusal(node, "a plain attribute is expected here", "Name a column of a table.")
        if node.table and node.table not in self._tables:
            raise self.refusal(node, f"there is no table {node.table!r} in FROM", "Name one of its tables.")
        candidates = [self._tables[node.table]] if node.table else list(self._tables.values())
        found = [name for name in candidates if node.name in self._collection[name].attributes]
        if not found:
            raise self.refusal(node, f"there is no attribute {node.name!r}", "Use an attribute of the tables in FROM.")
        if len(found) > 1:
            raise self.refusal(node, f"attribute {node.name!r} is in several tables", f"Write {found[0]}.{node.name}.")
        return (found[0], node.name), self._collection[found[0]].attributes[node.name]

    def _private(self, node: Node) -> tuple[Place, Private]:
        """The private attribute that a column names."""
        place, meaning = self._place(node)
        if not isinstance(meaning, Private):
            repair = "Use it in conditions of its own, or in GROUP BY."
            raise self.refusal(node, f"public attribute {place[1]!r} cannot stand here", repair)
        return place, meaning

    def _is_public(self, node: Node) -> bool:
        """Whether a condition speaks of public attributes only."""
        columns = list(node.find_all(exp.Column))
        return bool(columns) and all(isinstance(self._place(column)[1], Public) for column in columns)

    def _public_condition(self, node: Node) -> None:
        """Remember a condition on the public attributes of one table, after every node of it was recognised."""
        for one in node.walk():
            if not isinstance(one, _PUBLIC_NODES) or (isinstance(one, exp.In) and one.args.get("query")):
                raise self.refusal(one, "this condition is not supported", "Use comparisons with constants.")
        tables = {self._place(column)[0][0] for column in node.find_all(exp.Column)}
        if len(tables) > 1:
            raise self.refusal(node, "a condition mixes public attributes of two tables", "Separate them by AND.")
        bare = node.transform(lambda one: exp.column(one.name, quoted=True) if isinstance(one, exp.Column) else one)
        (table,) = tables
        self._public[table] = (*self._public.get(table, ()), bare.sql(dialect="duckdb"))

    # Conditions -----------------------------------------------------------------------------------------------------

    def _conditions(self, node: Node) -> dict[Place, Mask]:
        """A conjunction, as the places of each attribute that satisfy it."""
        if isinstance(node, exp.Paren):
            return self._conditions(node.this)
        if isinstance(node, exp.And):
            merged = self._conditions(node.left)
            for place, mask in self._conditions(node.right).items():
                merged[place] = merged[place] & mask if place in merged else mask
            return merged
        if self._is_public(node):
            self._public_condition(node)
            return {}
        place, mask = self._condition(node)
        return {place: mask}

    def _condition(self, node: Node) -> tuple[Place, Mask]:
        """A condition on one attribute."""
        if isinstance(node, exp.Paren):
            return self._condition(node.this)
        if isinstance(node, exp.Not):
            place, mask = self._condition(node.this)
            return place, ~mask
        if isinstance(node, (exp.Or, exp.And)):
            (place, mask), (other, more) = self._condition(node.left), self._condition(node.right)
            if place != other:
                raise self.refusal(
                    node, "OR between different attributes is not supported", "Ask two questions and add the answers."
                )
            return place, mask | more if isinstance(node, exp.Or) else mask & more
        if isinstance(node, exp.Between):
            place, domain = self._private(node.this)
            low, high = (self._constant(one, domain) for one in (node.args["low"], node.args["high"]))
            return place, _compare(domain, exp.GTE, low) & _compare(domain, exp.LTE, high)
        if isinstance(node, exp.In) and node.expressions and not node.args.get("query"):
            place, domain = self._private(node.this)
            masks = [_compare(domain, exp.EQ, self._constant(one, domain)) for one in node.expressions]
            return place, np.logical_or.reduce(masks)
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Boolean):
            place, domain = self._private(node.this)
            return place, _compare(domain, exp.EQ, self._constant(node.expression, domain))
        if type(node) in _FLIPPED and isinstance(node, exp.Binary):
            kind, column, constant = type(node), node.left, node.right
            if not isinstance(column, exp.Column):
                kind, column, constant = _FLIPPED[kind], constant, column
            place, domain = self._private(column)
            if isinstance(domain, Categorical) and kind not in (exp.EQ, exp.NEQ):
                raise self.refusal(node, "categories have no order", "Use =, <> or IN.")
            return place, _compare(domain, kind, self._constant(constant, domain))
        raise self.refusal(
            node, "this condition is not supported", "Use =, <>, <, <=, >, >=, BETWEEN, IN, AND, OR and NOT."
        )

    def _constant(self, node: Node, domain: Private) -> Any:
        """A constant as a place in the domain: a whole number, or a fraction between two places."""
        value = self._literal(node)
        if isinstance(domain, Categorical):
            if type(value) is not type(domain.values[0]) or value not in domain.values:
                raise self.refusal(node, "the constant is not in the attribute's public list", "Use one of its values.")
            return domain.encode(value)
        if domain.kind != "number" and isinstance(value, str):
            try:
                value = datetime.fromisoformat(value) if domain.kind == "time" else date.fromisoformat(value)
            except ValueError:
                repair = "Write '2020-01-31', for example."
                raise self.refusal(node, "the constant is no date or time", repair) from None
        kinds: dict[str, Any] = {"number": (int, Decimal), "date": date, "time": datetime}
        kind = kinds[domain.kind]
        if isinstance(value, bool) or not isinstance(value, kind):
            raise self.refusal(node, "the constant is of another type than the attribute", "Compare like with like.")
        if not domain.low <= value <= domain.high:
            raise self.refusal(
                node, "the constant is outside the attribute's domain", f"Use {domain.low} to {domain.high}."
            )
        if domain.kind == "number":
            return (Fraction(value) - Fraction(domain.low)) / Fraction(domain.step)
        return domain.encode(value)

    def _literal(self, node: Node) -> Any:
        if isinstance(node, exp.Paren):
            return self._literal(node.this)
        if isinstance(node, exp.Neg):
            value = self._literal(node.this)
            if isinstance(value, (int, Decimal)) and not isinstance(value, bool):
                return -value
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        if isinstance(node, exp.Literal):
            if node.is_string:
                return str(node.this)
            number = Decimal(node.this)
            return int(number) if number == number.to_integral_value() else number
        if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.this.is_string:
            return str(node.this.this)  # DATE '2020-01-31'
        raise self.refusal(node, "a constant is expected here", "Compare an attribute with a number, a text or a date.")

    # What is asked --------------------------------------------------------------------------------------------------

    def _groups(self, node: Node) -> tuple[Place, ...]:
        if node is None:
            return ()
        if any(value for clause, value in node.args.items() if clause != "expressions"):
            raise self.refusal(node, "only plain GROUP BY is supported", "List attributes.")
        return tuple(self._place(one)[0] for one in node.expressions)

    def _aggregates(self, nodes: list[Node], groups: tuple[Place, ...]) -> tuple[Aggregate, ...]:
        found = []
        for node in nodes:
            name = node.alias if isinstance(node, exp.Alias) else ""
            inner = node.this if isinstance(node, exp.Alias) else node
            if isinstance(inner, exp.Column) and self._place(inner)[0] in groups:
                continue
            found.append(self._aggregate(inner, name))
        if not found:
            raise self.refusal(None, "nothing is aggregated", "Ask for COUNT(*), SUM or AVG.")
        names = [one.name for one in found]
        if len(set(names)) != len(names):
            raise self.refusal(None, "two answers have one name", "Name them with AS.")
        return tuple(found)

    def _aggregate(self, node: Node, name: str) -> Aggregate:
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return Aggregate("count", name or "count")
        if isinstance(node, (exp.Sum, exp.Avg)):
            place, domain = self._private(node.this)
            if not domain.aggregatable:
                raise self.refusal(node, f"{place[1]!r} is not a number", "Sum an ordinal attribute of numbers.")
            kind = "sum" if isinstance(node, exp.Sum) else "avg"
            return Aggregate(kind, name or f"{kind}_{place[1]}", place)
        raise self.refusal(
            node, "only COUNT(*), SUM(attribute) and AVG(attribute) can be asked", "Rewrite it with these."
        )


def _compare(domain: Private, kind: Node, position: Any) -> Mask:
    """Which places of a domain compare so with a position."""
    places = np.arange(domain.size)
    mask: Mask
    if kind in (exp.EQ, exp.NEQ):
        mask = places == int(position) if position == math.floor(position) else np.zeros(domain.size, dtype=bool)
        return mask if kind is exp.EQ else ~mask
    if kind in (exp.LT, exp.GTE):
        mask = places < math.ceil(position)
        return mask if kind is exp.LT else ~mask
    mask = places <= math.floor(position)
    return mask if kind is exp.LTE else ~mask


def functions(question: Question, table: str) -> dict[str, np.ndarray[Any, np.dtype[np.float64]]]:
    """The indicator functions of a table's attributes that a question's conditions amount to."""
    where: Mapping[Place, Mask] = question.where
    return {attribute: mask.astype(np.float64) for (name, attribute), mask in where.items() if name == table}


def numbers(domain: Ordinal) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The values of an ordinal domain, as floats."""
    return np.array([float(domain.decode(code)) for code in range(domain.size)])
