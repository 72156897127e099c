"""Populations of a collection: its users, and the ids that others report about, each under an ε of its own.

A person's ε covers all her reports in tables without an owner. What an owner reports about one id, in all of its
tables, is covered by that owner's ε. Nobody's reports are in two populations, so neither promise costs the other one
anything. Standard library only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from deniable.errors import InvalidParameter
from deniable.exact import check_epsilon
from deniable.tables.schema.attributes import Table
from deniable.tables.schema.rounds import Rounds
from deniable.wording import listed


def members_of(tables: Sequence[Table], owner: str | None) -> list[str]:
    """The names of the tables of one population."""
    return [table.name for table in tables if table.owner == owner]


def checked_owners(owners: Any, tables: Sequence[Table], rounds: Rounds | None) -> dict[str, float] | None:
    """The ε of each population other than the users, in the order of the tables; None without any."""
    named = list(dict.fromkeys(table.owner for table in tables if table.owner is not None))
    if owners is None and not named:
        return None
    if not isinstance(owners, Mapping) or set(owners) != set(named):
        repair = f"Name {listed(named)} with an ε each." if named else "Leave it out, or give a table an owner."
        raise InvalidParameter("owners", "must give every owner of a table its ε, and nobody else", repair)
    if len(named) == len({table.owner for table in tables}):
        raise InvalidParameter("tables", "all have owners: nobody is left who answers", "Leave out one owner and key.")
    if rounds is not None:
        problem = "are for collections of users alone"
        raise InvalidParameter("rounds", problem, "Collect tables with an owner without rounds.")
    for owner, epsilon in owners.items():
        try:
            check_epsilon(epsilon)
        except InvalidParameter as error:
            raise InvalidParameter(f"owners: {owner!r}", error.problem, error.repair) from None
    for table in tables:
        same = [other for other in tables if other.owner == table.owner and other.key != table.key]
        if table.owner is not None and same:
            problem = f"has another key than table {same[0].name!r} of the same owner"
            raise InvalidParameter(f"table {table.name!r}: key", problem, "Use one key, or another owner.")
    return {owner: float(owners[owner]) for owner in named}
