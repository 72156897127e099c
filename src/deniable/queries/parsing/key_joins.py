"""Joins through a private attribute with the ids of another population: transactions with their products.

Tables of one population are joined on its ids. A table of others is joined on an attribute of users' tables that holds
such ids. Its columns are private columns like any other; `planning/key_functions.py` makes functions of the attribute
of what is asked of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlglot import exp

from deniable.queries.question.conditions import AttributeKey
from deniable.queries.question.question import KeyJoin
from deniable.tables.schema.attributes import Ordinal, Private, Table

if TYPE_CHECKING:
    from deniable.queries.parsing.scope import Scope


def joined_through_key(scope: Scope, join: Any) -> KeyJoin | None:
    """The join of the table that FROM names last, if it brings in another population; None for joins within one."""
    *earlier, last = (scope.collection[name] for name in scope.tables)
    if any(table.owner == last.owner for table in earlier):
        if last.owner is not None and scope.keyed is not None:
            raise _two_tables(scope, join, last)
        return None
    others = [table for table in (*earlier, last) if table.owner is not None]
    if len(others) > 1:
        raise _two_tables(scope, join, last)
    (other,) = others
    return KeyJoin(other.name, _attribute(scope, join, other))


def _two_tables(scope: Scope, join: Any, last: Table) -> Exception:
    problem = f"table {last.name!r} would be the second table of another population than the users"
    return scope.refusal(join, problem, "Join one of them; ask about the other in a question of its own.")


def _attribute(scope: Scope, join: Any, other: Table) -> AttributeKey:
    """The private attribute of users that a table of others is joined on."""
    alias = next(alias for alias, name in scope.aliases.items() if name == other.name)
    column = _joined_column(join, other, alias)
    users = [name for name in scope.tables if name != other.name]
    candidates = [
        (table, attribute, meaning)
        for mine, table in scope.aliases.items()
        if column is not None and table in users and column.table.casefold() in ("", mine)
        for attribute, meaning in scope.collection[table].attributes.items()
        if attribute.casefold() == column.name.casefold()
    ]
    if len(candidates) != 1:
        problem = (
            f"table {other.name!r} is joined on its {other.key!r} and one private attribute of users with such ids"
        )
        repair = f"Write JOIN {other.name} USING ({other.key}), or ON attribute = {alias}.{other.key}."
        raise scope.refusal(join, problem, repair)
    table, attribute, meaning = candidates[0]
    if not isinstance(meaning, Private) or (isinstance(meaning, Ordinal) and meaning.kind != "number"):
        problem = f"{table}.{attribute} is not a private attribute with ids of {other.owner}"
        raise scope.refusal(
            join, problem, "Collect the ids as a private attribute: an Ordinal of numbers or Categorical."
        )
    return table, attribute


def _joined_column(join: Any, other: Table, alias: str) -> Any:
    """The users' side of USING (key) or ON attribute = table.key; None if the join has another form."""
    using = join.args.get("using")
    if using and len(using) == 1:
        name = using[0].name
        return exp.column(name) if str(name).casefold() == str(other.key).casefold() else None
    on = join.args.get("on")
    if isinstance(on, exp.EQ) and isinstance(on.left, exp.Column) and isinstance(on.right, exp.Column):
        for own, theirs in ((on.left, on.right), (on.right, on.left)):
            if own.table.casefold() == alias and own.name.casefold() == str(other.key).casefold():
                return theirs
    return None
