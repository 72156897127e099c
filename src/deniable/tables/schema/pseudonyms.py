"""Under which ids reports travel: those of users, or random names that devices draw. Standard library only.

With `ids = "pseudonym"` a device draws one name for a collection, from its secure source, and keeps it in its memory.
All of a user's reports of a round travel as one message, a bundle, under that name: in the order of the tables and of
their slots, so that a bundle of a collection always has the same size. Whoever mixes bundles, strips addresses and
hands them on in the order of their names has shuffled them, because names are random and say nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deniable.errors import InvalidParameter
from deniable.tables.schema.report_format import ASSIGNED

if TYPE_CHECKING:
    from deniable.tables.schema.attributes import Table
    from deniable.tables.schema.rounds import Rounds

USER_IDS, PSEUDONYM = "user", "pseudonym"
ID_KINDS = (USER_IDS, PSEUDONYM)
NAME_BYTES = 16
"""Of a pseudonym. Among 10^9 people two have the same one with a chance below 2^-69."""


def checked_ids(ids: Any, coins: str, tables: tuple[Table, ...], rounds: Rounds | None) -> str:
    """The kind of ids, if the rest of the specification does not contradict it."""
    if ids not in ID_KINDS:
        raise InvalidParameter("ids", "are of an unknown kind", f"Use one of {', '.join(ID_KINDS)}.")
    if ids == USER_IDS:
        return USER_IDS
    if coins == ASSIGNED:
        problem = "are pseudonyms, and coins are assigned: a device that draws its name would choose its coins with it"
        raise InvalidParameter("ids", problem, 'Use coins="drawn".')
    if any(table.public for table in tables):
        problem = "are pseudonyms, and public columns may tell whose they are"
        raise InvalidParameter("ids", problem, "Make these columns private, or leave them out.")
    if any(table.owner is not None for table in tables):
        problem = "are pseudonyms, and tables of another owner are joined by the ids of their rows"
        raise InvalidParameter("ids", problem, 'Collect them by ids="user".')
    if rounds is not None and rounds.cover:
        problem = "are pseudonyms, and reports that hide a turn would be as many as somebody asks for"
        raise InvalidParameter("ids", problem, "Leave out cover: a mixer hides who answers.")
    return PSEUDONYM
