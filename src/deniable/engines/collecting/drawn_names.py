"""Pseudonyms for the rows of frames and files: who runs `perturb` stands for all devices, and draws their names.

A secret is drawn for one run and forgotten at its end. A user's name is a hash of it and her id, the same in all tables
of the run, and tells nothing about the id to anybody who does not know the secret. Rows are read in the order of names,
so reports leave shuffled.
"""

from __future__ import annotations

from collections.abc import Collection

from deniable.engines.duckdb.duckdb_session import quoted
from deniable.errors import InvalidParameter
from deniable.randomness import Source
from deniable.tables.schema.pseudonyms import NAME_BYTES, PSEUDONYM
from deniable.tables.specification.specification import Specification

_SECRET_WORDS = 8


def names_secret(collection: Specification, given: Collection[str], source: Source) -> str | None:
    """256 random bits in hexadecimal, for the names of one run on the given tables; None where ids are those of users.

    The next run draws other names, so one run has to have all tables.
    """
    if collection.ids != PSEUDONYM:
        return None
    for table in collection.tables:
        if table.name not in given:
            problem = f"are pseudonyms, and table {table.name!r} is missing: names are drawn for one run"
            raise InvalidParameter("ids", problem, "Pass all tables at once.")
    if collection.rounds is not None:
        problem = "are pseudonyms, which devices keep over all rounds; names that are drawn for one run are forgotten"
        raise InvalidParameter("ids", problem, 'Let devices report, or use ids="user".')
    return "".join(f"{int(word):08x}" for word in source.fresh("names of users").below(2**32, _SECRET_WORDS))


def refuse_pseudonyms(collection: Specification) -> None:
    """Refuse to draw or read names on a cluster: the secret of a run would stand in plans and logs."""
    if collection.ids == PSEUDONYM:
        raise InvalidParameter("ids", "are pseudonyms, which Spark cannot draw or gather", "Do this on one machine.")


def name_of(key: str, secret: str) -> str:
    """The SQL of a user's name. Without an id there is none."""
    column = quoted(key)
    return f"substr(sha256('{secret}' || CAST({column} AS VARCHAR)), 1, {2 * NAME_BYTES}) AS {column}"
