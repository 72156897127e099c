"""Rows without a partner: what LEFT JOIN and FULL JOIN keep, as conditions on whether somebody has a row in a table.

Whether a table has a report of somebody is public where everybody has one row at most. So "has a row" is a test of
public columns like any other, and engines know its column by `PARTNER`. In a set of rows those without a partner have
values of its attributes, too: the first ones, by agreement. `settled` takes these away again.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from deniable.queries.question.conditions import Conjunction, Disjoint, TableTest
from deniable.queries.question.public_trees import PublicTree, column

PARTNER = "#has a row"
"""The column that says whether somebody has a row in a table that may have none of her; no attribute is called so."""
HAS_ROW = PublicTree.of(column(PARTNER))


def has_row(table: str) -> TableTest:
    """The test that somebody has a row in a table."""
    return table, HAS_ROW


def with_partner(conjunction: Conjunction, table: str) -> bool | None:
    """Whether rows have a partner in a table; None if some have and some have not."""
    return conjunction.public.get(has_row(table))


def settled(rows: Disjoint, optional: Iterable[str], apart: Container[str] = ()) -> Disjoint:
    """The same rows, in conjunctions that say nothing of attributes where a partner may be missing.

    Tables in `apart` are those for which rows with a partner and rows without one have to be in different conjunctions.
    """
    for table in optional:
        rows = tuple(part for conjunction in rows for part in _settled(conjunction, table, apart=table in apart))
    return rows


def _settled(conjunction: Conjunction, table: str, *, apart: bool) -> Iterator[Conjunction]:
    partner = with_partner(conjunction, table)
    mine = {attribute: mask for attribute, mask in conjunction.private.items() if attribute[0] == table}
    tested = any(name == table for name, _ in conjunction.public)
    if partner or (partner is None and not mine and not tested and not apart):
        yield conjunction
        return
    if partner is None:
        yield Conjunction(conjunction.private, {**conjunction.public, has_row(table): True})
    if all(mask[0] for mask in mine.values()):
        others = {attribute: mask for attribute, mask in conjunction.private.items() if attribute not in mine}
        yield Conjunction(others, {**conjunction.public, has_row(table): False})
