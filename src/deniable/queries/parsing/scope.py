"""The names of a query: tables and dimensions in FROM, and the columns that the rest of it speaks of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from deniable.errors import QueryRefused
from deniable.queries.parsing.dimensions import Aligned, Dimension
from deniable.queries.parsing.grammar import position_of
from deniable.queries.parsing.key_joins import joined_through_key
from deniable.queries.parsing.outer_joins import tables_first
from deniable.queries.parsing.source_names import conjuncts
from deniable.queries.question.conditions import AttributeKey
from deniable.queries.question.question import KeyJoin, Lookup
from deniable.tables.schema.attributes import PUBLIC_PREFIX, Enumerable, Text
from deniable.tables.schema.report_format import USER_COLUMN
from deniable.tables.schema.rounds import ROUND_COLUMN
from deniable.tables.specification.specification import Specification
from deniable.wording import listed

Node = Any
"""A node of sqlglot's tree."""


@dataclass(frozen=True, slots=True, eq=False)
class PrivateColumn:
    """A private attribute, or a dimension's column as a function of one."""

    attribute: AttributeKey
    domain: Enumerable
    dimension: Aligned | None = None
    column: str = ""


OTHER_JOINS = (
    "this kind of join is not possible",
    "Write JOIN, LEFT JOIN or FULL JOIN of tables on the user id, JOIN or LEFT JOIN of dimensions.",
)
TEXTS_ARE_LISTED = (
    "a text attribute cannot be asked about here",
    "Ask with db.sql: SELECT word, COUNT(*) FROM t GROUP BY word.",
)


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


ColumnMeaning = PrivateColumn | PublicColumn


@dataclass(frozen=True, slots=True, eq=False)
class JoinedDimension:
    """A dimension in FROM, and the attribute that it is joined on."""

    name: str
    attribute: ColumnMeaning
    aligned: Aligned | None
    """Its rows by the values of a private attribute."""
    merged: bool
    """Whether it was joined with USING: then its key is the attribute itself."""


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """What the names of one query mean."""

    text: str
    collection: Specification
    known_dimensions: Mapping[str, Dimension]
    key: str
    """The column that identifies users."""
    aliases: Mapping[str, str] = field(default_factory=dict)
    """What the query calls a table → the table."""
    joined: Mapping[str, JoinedDimension] = field(default_factory=dict)
    """What the query calls a dimension → the dimension."""
    lookups: tuple[Lookup, ...] = ()
    keyed: KeyJoin | None = None
    """The table of another population in FROM."""
    optional: Mapping[str, tuple[Node, ...]] = field(default_factory=dict)
    """Tables that LEFT JOIN or FULL JOIN names: people may have no row there. Each with further conditions of ON."""

    def refusal(self, node: Node, problem: str, repair: str) -> QueryRefused:
        """The error for a part of the query that is not let through."""
        return QueryRefused(problem, repair, text=self.text, start=position_of(self.text, node))

    @property
    def tables(self) -> tuple[str, ...]:
        """The collection's tables in FROM."""
        return tuple(self.aliases.values())

    def __str__(self) -> str:
        tables = [name if alias == name.casefold() else f"{name} as {alias}" for alias, name in self.aliases.items()]
        dimensions = [
            f"{dimension.name} by {_attribute_name(dimension.attribute)}" for dimension in self.joined.values()
        ]
        return ", ".join((*tables, *dimensions))

    # What columns mean ----------------------------------------------------------------------------------------------

    def meaning(self, node: Node) -> ColumnMeaning:
        """What a column means."""
        if not isinstance(node, exp.Column) or isinstance(node.this, exp.Star):
            raise self.refusal(node, "a plain attribute is expected here", "Name a column of a table.")
        prefix, name = node.table.casefold(), node.name
        if node.db:
            raise self.refusal(node, "schemas are not supported", "Write table.attribute.")
        if prefix and prefix not in self.aliases and prefix not in self.joined:
            raise self.refusal(node, f"there is no table {node.table!r} in FROM", "Name one of its tables.")
        candidates = self._candidates(prefix, name)
        if not candidates:
            raise self._unknown(node, name)
        if len(candidates) > 1 and self.collection.rounds is not None and name.casefold() == ROUND_COLUMN:
            return candidates[0][1]  # tables are joined within a round, so all of them mean the same
        if len(candidates) > 1:
            raise self.refusal(node, f"attribute {name!r} is in several tables", f"Write {candidates[0][0]}.{name}.")
        meant = candidates[0][1]
        if self.keyed is not None and isinstance(meant, PublicColumn) and meant.table == self.keyed.table:
            problem = f"public attribute {name!r} is of a table that is joined through a private attribute"
            raise self.refusal(node, problem, "Pass it to connect as one of dimensions=, and join that too.")
        return meant

    def has(self, node: Node) -> bool:
        """Whether a column's name is that of an attribute."""
        return bool(self._candidates(node.table.casefold(), node.name))

    def _unknown(self, node: Node, name: str) -> QueryRefused:
        if name.casefold() in self._keys:
            return self.refusal(node, "users cannot be distinguished by their id", "Use it in JOIN … USING (uid) only.")
        known = listed((attribute for table in self.tables for attribute in self.collection[table].attributes), 20)
        quoted = isinstance(node.this, exp.Identifier) and node.this.quoted
        hint = f" Write texts in single quotes: '{name}'." if quoted else ""
        return self.refusal(node, f"there is no attribute {name!r}", f"The tables in FROM have {known}.{hint}")

    def _candidates(self, prefix: str, name: str) -> list[tuple[str, ColumnMeaning]]:
        """The columns that a name may mean, each with what the query calls its table."""
        candidates: list[tuple[str, ColumnMeaning]] = []
        for alias, table in self.aliases.items():
            if prefix in ("", alias):
                candidates += [(alias, column) for column in self._attributes(table, name)]
        for alias, joined in self.joined.items():
            column = _column_of(self.known_dimensions[joined.name], name)
            if column is None or prefix not in ("", alias):
                continue
            key = joined.attribute.name if isinstance(joined.attribute, PublicColumn) else joined.attribute.attribute[1]
            if prefix or not joined.merged or column.casefold() != key.casefold():
                candidates.append((alias, _of_dimension(alias, joined, column)))
        if self.keyed is not None and not candidates:
            candidates += self._ids_of_others(prefix, name)
        return candidates

    def _ids_of_others(self, prefix: str, name: str) -> list[tuple[str, ColumnMeaning]]:
        """The ids of the other population's table, which are those in the attribute that it is joined on."""
        assert self.keyed is not None  # noqa: S101 - the caller has looked
        alias = next(alias for alias, table in self.aliases.items() if table == self.keyed.table)
        if prefix not in ("", alias) or name.casefold() != str(self.collection[self.keyed.table].key).casefold():
            return []
        return [(alias, column) for column in self._attributes(*self.keyed.attribute)]

    def _attributes(self, table: str, name: str) -> list[ColumnMeaning]:
        for attribute, described in self.collection[table].attributes.items():
            if attribute.casefold() == name.casefold():
                if isinstance(described, Text):
                    raise QueryRefused(*TEXTS_ARE_LISTED)
                if isinstance(described, Enumerable):
                    return [PrivateColumn((table, attribute), described)]
                return [PublicColumn(table, self.collection[table].column(attribute))]
        return []

    # FROM and JOIN --------------------------------------------------------------------------------------------------

    def with_sources(self, select: Node) -> Scope:
        """The scope with the tables and dimensions of FROM."""
        source = select.args.get("from_")
        if source is None:
            raise self.refusal(select, "FROM is missing", "Name a table of the collection.")
        first, joins = tables_first(source.this, select.args.get("joins") or [], self._names)
        scope = self._with_table(first)
        for join in joins:
            side = str(join.args.get("side") or "").upper()
            if join.args.get("method") == "NATURAL":
                join = scope._natural(join)
            kinds = (None, "", "INNER") if not side else (None, "", "OUTER")
            if side not in ("", "LEFT", "FULL") or join.args.get("method") or join.args.get("kind") not in kinds:
                raise self.refusal(join, *OTHER_JOINS)
            dimension = scope._known(join.this, self.known_dimensions)
            if dimension is not None and scope._known(join.this, scope._names) is None:
                if side == "FULL":
                    raise self.refusal(join, *OTHER_JOINS)
                scope = scope._with_dimension(join, dimension, outer=side == "LEFT")
            else:
                before, scope = scope, scope._with_table(join.this)
                keyed = joined_through_key(scope, join)
                conditions = scope._check_join(join, before) if keyed is None else ()
                scope = replace(scope, keyed=keyed or scope.keyed)
                scope = scope._with_side(join, side, conditions) if side else scope
        return scope

    def _with_side(self, join: Node, side: str, conditions: tuple[Node, ...]) -> Scope:
        """The scope with tables that may have no row of somebody: the last one, or of FULL JOIN both."""
        if self.keyed is not None or self.collection.rounds is not None:
            what = "rounds" if self.keyed is None else "a table of another population"
            raise self.refusal(join, f"LEFT JOIN and FULL JOIN are not possible with {what}", "Write JOIN.")
        first, *others = self.tables
        if side == "FULL" and (len(others) > 1 or conditions or self.joined):
            raise self.refusal(join, "FULL JOIN joins two tables, on the user id alone", "Use WHERE, or LEFT JOIN.")
        both_sides = {first: ()} if side == "FULL" else {}
        return replace(self, optional={**self.optional, **both_sides, others[-1]: conditions})

    def inner(self, *tables: str) -> Scope:
        """The same as if some tables were joined by JOIN."""
        return replace(self, optional={name: on for name, on in self.optional.items() if name not in tables})

    def optional_table(self, node: Node) -> str | None:
        """The table that all columns of an expression are of, if people may have no row there."""
        if not self.optional:
            return None
        columns = list(node.find_all(exp.Column))
        tables = {None if self.is_key(column) else table_of(self.meaning(column)) for column in columns}
        table = tables.pop() if len(tables) == 1 else None
        return table if table in self.optional else None

    def key_table(self, node: Node) -> str | None:
        """The optional table whose user id a column is; None for that of joined tables."""
        table = self.aliases.get(node.table.casefold())
        return table if table in self.optional else None

    def _natural(self, join: Node) -> Node:
        """A NATURAL JOIN with its columns named: the user id, or the only column that a dimension shares."""
        dimension, table = (self._known(join.this, names) for names in (self.known_dimensions, self._names))
        here = {attribute.casefold() for name in self.tables for attribute in self.collection[name].attributes}
        if table is not None:
            shared = here & {attribute.casefold() for attribute in self.collection[table].attributes}
            columns = [self.key] if not shared else []
        else:
            columns = (
                []
                if dimension is None
                else [each for each in self.known_dimensions[dimension].columns if each.casefold() in here]
            )
        if len(columns) != 1:
            problem = "NATURAL JOIN would join on other columns than one"
            raise self.refusal(join, problem, f"Write JOIN … USING ({self.key}).")
        made = join.copy()
        made.set("method", None)
        made.set("using", [exp.to_identifier(columns[0])])
        return made

    @property
    def _names(self) -> list[str]:
        return [table.name for table in self.collection.tables]

    def _known(self, node: Node, names: Iterable[str]) -> str | None:
        """The name among `names` that a table node has; case does not count."""
        if not isinstance(node, exp.Table) or node.args.get("db") or not node.name:
            repair = "Write FROM table, without a subquery or a schema."
            raise self.refusal(node, "only the collection's own tables can be queried", repair)
        return next((name for name in names if name.casefold() == node.name.casefold()), None)

    def _with_table(self, node: Node) -> Scope:
        name = self._known(node, self._names)
        if name is None:
            if self._known(node, self.known_dimensions) is not None:
                raise self.refusal(node, "a dimension cannot come first", "Begin with a table of the collection.")
            known = listed([*self._names, *self.known_dimensions])
            raise self.refusal(node, f"there is no table {node.name!r}", f"There are {known}.")
        if name in self.tables:
            raise self.refusal(node, f"table {name!r} is joined with itself", "Name each table once.")
        return replace(self, aliases={**self.aliases, self._new_alias(node, name): name})

    def _new_alias(self, node: Node, name: str) -> str:
        alias: str = (node.alias or name).casefold()
        if alias in self.aliases or alias in self.joined:
            raise self.refusal(node, "two tables have the same name", "Give one of them another alias.")
        return alias

    def _check_join(self, join: Node, before: Scope) -> tuple[Node, ...]:
        """The conditions of a join besides that on the user id."""
        using = join.args.get("using")
        if using and len(using) == 1 and _plain_name(using[0]).casefold() in self._keys:
            return ()
        on, this = join.args.get("on"), join.this.alias_or_name.casefold()
        parts = [] if on is None else conjuncts(on)
        for part in parts:
            sides: list[Node] = [part.left, part.right] if isinstance(part, exp.EQ) else []
            tables = {side.table.casefold() for side in sides if self.is_key(side)}
            if len(tables) != 2 or this not in tables or not tables <= set(self.aliases):
                continue
            others = tuple(other for other in parts if other is not part)
            if (key := next(side for side in sides if side.table.casefold() != this)) and before.key_table(key):
                others = (*others, exp.Not(this=exp.Is(this=key.copy(), expression=exp.null())))
            if join.args.get("side") or not others:
                return others
            raise self.refusal(join, "a JOIN follows a LEFT JOIN of its table", "Join on the id of the first table.")
        raise self.refusal(join, "tables can be joined on the user id only", f"Write JOIN … USING ({self.key}).")

    def is_key(self, node: Node) -> bool:
        """Whether a column is the user id: "uid", or what the collection calls it."""
        return isinstance(node, exp.Column) and node.name.casefold() in self._keys and not self.has(node)

    @property
    def _keys(self) -> set[str]:
        owned = [key.casefold() for name in self.tables if (key := self.collection[name].key) is not None]
        alone = bool(owned) and len(owned) == len(self.tables)  # a question about another population
        return {USER_COLUMN, *(owned if alone else [self.key.casefold()])}

    def _with_dimension(self, join: Node, name: str, *, outer: bool = False) -> Scope:
        alias = self._new_alias(join.this, name)
        if "." in alias:
            raise self.refusal(join.this, "an alias contains a dot", "Give the dimension a plain name.")
        dimension = self.known_dimensions[name]
        attribute, key, merged = self._dimension_join(join, alias, dimension)
        if isinstance(attribute, PublicColumn):
            dimension.check_key(key)
            lookup = Lookup(attribute.table, attribute.column, name, key, alias, outer)
            joined = JoinedDimension(name, attribute, None, merged)
            return replace(self, joined={**self.joined, alias: joined}, lookups=(*self.lookups, lookup))
        if attribute.dimension is not None:
            raise self.refusal(
                join, "a dimension cannot be joined on another dimension", "Join them into one table first."
            )
        joined = JoinedDimension(name, attribute, dimension.on(key, attribute.domain, outer=outer), merged)
        return replace(self, joined={**self.joined, alias: joined})

    def _dimension_join(self, join: Node, alias: str, dimension: Dimension) -> tuple[ColumnMeaning, str, bool]:
        """The attribute that a dimension is joined on, the dimension's column, and whether USING merges them."""
        using = join.args.get("using")
        if using and len(using) == 1:
            key = _column_of(dimension, _plain_name(using[0]))
            if key is not None:
                name = using[0] if isinstance(using[0], exp.Identifier) else using[0].this
                return self.meaning(exp.Column(this=name.copy())), key, True
        on = join.args.get("on")
        if isinstance(on, exp.EQ) and isinstance(on.left, exp.Column) and isinstance(on.right, exp.Column):
            for own, other in ((on.left, on.right), (on.right, on.left)):
                key = _column_of(dimension, own.name)
                is_own = own.table.casefold() == alias or (not own.table and not self.has(own))
                if is_own and not own.db and key is not None:
                    return self.meaning(other), key, False
        repair = f"Write JOIN {join.this.name} ON attribute = {join.this.alias or join.this.name}.column."
        raise self.refusal(join, "a dimension is joined on one attribute and one column of its own", repair)


def table_of(meaning: ColumnMeaning) -> str:
    """The table of people that a column belongs to, or is a function of."""
    return meaning.table if isinstance(meaning, PublicColumn) else meaning.attribute[0]


def _plain_name(node: Node) -> str:
    """The name of a column in USING; an empty text for anything else."""
    return str(node.name) if isinstance(node, (exp.Identifier, exp.Column)) else ""


def _column_of(dimension: Dimension, name: str) -> str | None:
    return next((column for column in dimension.columns if column.casefold() == name.casefold()), None)


def _of_dimension(alias: str, joined: JoinedDimension, column: str) -> ColumnMeaning:
    attribute = joined.attribute
    if isinstance(attribute, PublicColumn):
        return PublicColumn(attribute.table, f"{alias}.{column}")
    return PrivateColumn(attribute.attribute, attribute.domain, joined.aligned, column)


def _attribute_name(meaning: ColumnMeaning) -> str:
    return f"{meaning.table}.{meaning.name}" if isinstance(meaning, PublicColumn) else ".".join(meaning.attribute)
