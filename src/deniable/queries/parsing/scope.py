"""The names of a query: tables and dimensions in FROM, and the columns that the rest of it speaks of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.parsing.dimensions import Aligned, Dimension
from deniable.queries.parsing.grammar import place_of
from deniable.queries.question.conditions import Place
from deniable.queries.question.question import Lookup
from deniable.tables.schema.attributes import PUBLIC_PREFIX, Private
from deniable.tables.specification.specification import Specification
from deniable.wording import listed

Node = Any
"""A node of sqlglot's tree."""


@dataclass(frozen=True, slots=True, eq=False)
class PrivateColumn:
    """A private attribute, or a dimension's column as a function of one."""

    place: Place
    domain: Private
    dimension: Aligned | None = None
    column: str = ""


@dataclass(frozen=True, slots=True)
class PublicColumn:
    """A public attribute, or a dimension's column looked up by one."""

    table: str
    column: str
    """Its name among the columns that the engine reads."""

    @property
    def name(self) -> str:
        """Its name in queries."""
        return self.column.removeprefix(PUBLIC_PREFIX)


Found = PrivateColumn | PublicColumn


class Scope:
    """What the names of one query mean."""

    def __init__(self, text: str, collection: Specification, dimensions: Mapping[str, Dimension], key: str) -> None:
        self._text, self._collection, self._dimensions, self._key = text, collection, dimensions, key
        self._tables: dict[str, str] = {}  # what the query calls a table → the table
        self._joined: dict[str, tuple[str, Found, Aligned | None]] = {}  # and a dimension → it, and what it hangs on
        self._merged: set[str] = set()  # dimensions joined with USING: their key is the attribute itself
        self.lookups: list[Lookup] = []
        self.present: list[tuple[PrivateColumn, Aligned]] = []

    def refusal(self, node: Node, problem: str, repair: str) -> QueryRefused:
        """The error for a part of the query that is not let through."""
        return QueryRefused(problem, repair, text=self._text, start=place_of(self._text, node))

    @property
    def tables(self) -> tuple[str, ...]:
        """The collection's tables in FROM."""
        return tuple(self._tables.values())

    def read(self, select: Node) -> None:
        """Take in FROM and the joins."""
        source = select.args.get("from_")
        if source is None:
            raise self.refusal(select, "FROM is missing", "Name a table of the collection.")
        self._add_table(source.this)
        for join in select.args.get("joins") or []:
            if join.args.get("side") or join.args.get("method") or join.args.get("kind") not in (None, "", "INNER"):
                raise self.refusal(join, "only inner joins are possible", f"Write JOIN … USING ({self._key}).")
            if self._known(join.this, self._dimensions) is not None and self._known(join.this, self._names) is None:
                self._add_dimension(join)
            else:
                self._add_table(join.this)
                self._check_join(join)

    @property
    def _names(self) -> list[str]:
        return [table.name for table in self._collection.tables]

    def _known(self, node: Node, names: Any) -> str | None:
        """The name among `names` that a table node has; case does not count."""
        if not isinstance(node, exp.Table) or node.args.get("db") or not node.name:
            repair = "Write FROM table, without a subquery or a schema."
            raise self.refusal(node, "only the collection's own tables can be asked", repair)
        return next((name for name in names if name.casefold() == node.name.casefold()), None)

    def _add_table(self, node: Node) -> None:
        name = self._known(node, self._names)
        if name is None:
            if self._known(node, self._dimensions) is not None:
                raise self.refusal(node, "a dimension cannot stand first", "Begin with a table of the collection.")
            known = listed([*self._names, *self._dimensions])
            raise self.refusal(node, f"there is no table {node.name!r}", f"There are {known}.")
        if name in self._tables.values():
            raise self.refusal(node, f"table {name!r} is joined with itself", "Name each table once.")
        self._claim(node, name)
        self._tables[(node.alias or name).casefold()] = name

    def _claim(self, node: Node, name: str) -> None:
        alias = (node.alias or name).casefold()
        if alias in self._tables or alias in self._joined:
            raise self.refusal(node, "two tables have one name", "Give one of them another alias.")

    def _check_join(self, join: Node) -> None:
        using = join.args.get("using")
        if using and [self._plain(one).casefold() for one in using] == [self._key.casefold()]:
            return
        on = join.args.get("on")
        sides: list[Node] = [on.left, on.right] if isinstance(on, exp.EQ) else []
        if sides and all(self._is_key(side) for side in sides):
            tables, this = {side.table.casefold() for side in sides}, join.this.alias_or_name.casefold()
            if len(tables) == 2 and this in tables and tables <= set(self._tables):
                return
        raise self.refusal(join, "tables can be joined on the user id only", f"Write JOIN … USING ({self._key}).")

    @staticmethod
    def _plain(node: Node) -> str:
        """The name of a column in USING; nothing for anything else."""
        return str(node.name) if isinstance(node, (exp.Identifier, exp.Column)) else ""

    def _is_key(self, node: Node) -> bool:
        return isinstance(node, exp.Column) and node.name.casefold() == self._key.casefold() and not node.db

    def _add_dimension(self, join: Node) -> None:
        name = self._known(join.this, self._dimensions)
        assert name is not None  # noqa: S101 - the caller looked
        self._claim(join.this, name)
        alias = (join.this.alias or name).casefold()
        if "." in alias:
            raise self.refusal(join.this, "an alias has a point in it", "Give the dimension a plain name.")
        dimension = self._dimensions[name]
        attribute, key = self._dimension_join(join, alias, dimension)
        if isinstance(attribute, PublicColumn):
            dimension.check_key(key)
            self.lookups.append(Lookup(attribute.table, attribute.column, name, key, alias))
            self._joined[alias] = (name, attribute, None)
            return
        if attribute.dimension is not None:
            raise self.refusal(join, "a dimension cannot hang on another one", "Join them into one table first.")
        aligned = dimension.on(key, attribute.domain)
        self._joined[alias] = (name, attribute, aligned)
        self.present.append((attribute, aligned))

    def _dimension_join(self, join: Node, alias: str, dimension: Dimension) -> tuple[Found, str]:
        """The attribute that a dimension is joined on, and the dimension's column."""
        repair = f"Write JOIN {join.this.name} ON attribute = {join.this.alias or join.this.name}.column."
        using = join.args.get("using")
        if using and len(using) == 1:
            key = self._column_of(dimension, self._plain(using[0]))
            if key is not None:
                name = using[0] if isinstance(using[0], exp.Identifier) else using[0].this
                found = self.find(exp.Column(this=name.copy()))
                self._merged.add(alias)
                return found, key
        on = join.args.get("on")
        if isinstance(on, exp.EQ) and isinstance(on.left, exp.Column) and isinstance(on.right, exp.Column):
            for mine, other in ((on.left, on.right), (on.right, on.left)):
                key = self._column_of(dimension, mine.name)
                own = mine.table.casefold() == alias or (not mine.table and not self.has(mine))
                if own and not mine.db and key is not None:
                    return self.find(other), key
        raise self.refusal(join, "a dimension is joined on one attribute and one column of its own", repair)

    @staticmethod
    def _column_of(dimension: Dimension, name: str) -> str | None:
        return next((one for one in dimension.columns if one.casefold() == name.casefold()), None)

    def find(self, node: Node) -> Found:
        """What a column means."""
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            raise self.refusal(node, "a plain attribute is expected here", "Name a column of a table.")
        prefix, name = node.table.casefold(), node.name
        if node.db:
            raise self.refusal(node, "schemas are not supported", "Write table.attribute.")
        if prefix and prefix not in self._tables and prefix not in self._joined:
            raise self.refusal(node, f"there is no table {node.table!r} in FROM", "Name one of its tables.")
        found = self._named(prefix, name)
        if not found:
            known = listed((one for table in self.tables for one in self._collection[table].attributes), 20)
            if name.casefold() == "uid":
                raise self.refusal(node, "users cannot be told apart by their id", "Use it in JOIN … USING (uid) only.")
            quoted = isinstance(node.this, exp.Identifier) and node.this.quoted
            hint = f" Texts stand in single quotes: '{name}'." if quoted else ""
            raise self.refusal(node, f"there is no attribute {name!r}", f"The tables in FROM have {known}.{hint}")
        if len(found) > 1:
            raise self.refusal(node, f"attribute {name!r} is in several tables", f"Write {found[0][0]}.{name}.")
        return found[0][1]

    def has(self, node: Node) -> bool:
        """Whether a column's name is that of an attribute."""
        return bool(self._named(node.table.casefold(), node.name))

    def _named(self, prefix: str, name: str) -> list[tuple[str, Found]]:
        found: list[tuple[str, Found]] = []
        for alias, table in self._tables.items():
            if prefix in ("", alias):
                found += [(alias, one) for one in self._attribute(table, name)]
        for alias, (dimension, attribute, aligned) in self._joined.items():
            column = self._column_of(self._dimensions[dimension], name)
            if (
                column is None
                or prefix not in ("", alias)
                or (not prefix and self._is_merged(alias, attribute, column))
            ):
                continue
            found.append((alias, self._of_dimension(alias, attribute, aligned, column)))
        return found

    def _is_merged(self, alias: str, attribute: Found, column: str) -> bool:
        mine = attribute.name if isinstance(attribute, PublicColumn) else attribute.place[1]
        return alias in self._merged and column.casefold() == mine.casefold()

    def _attribute(self, table: str, name: str) -> list[Found]:
        for attribute, meaning in self._collection[table].attributes.items():
            if attribute.casefold() == name.casefold():
                if isinstance(meaning, Private):
                    return [PrivateColumn((table, attribute), meaning)]
                return [PublicColumn(table, self._collection[table].column(attribute))]
        return []

    @staticmethod
    def _of_dimension(alias: str, attribute: Found, aligned: Aligned | None, column: str) -> Found:
        if isinstance(attribute, PublicColumn):
            return PublicColumn(attribute.table, f"{alias}.{column}")
        return PrivateColumn(attribute.place, attribute.domain, aligned, column)
