"""Users who differ as much as the promise covers: other values everywhere, many rows or none."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from deniable.tables.schema.attributes import Table

LOWEST, HIGHEST, NOTHING = "lowest", "highest", "nothing"
PAIRS = ((LOWEST, HIGHEST), (NOTHING, HIGHEST))
"""All rows at one end of every domain, or at the other; or no rows (where a row is required, one without values)."""


def rows_of(table: Table, person: str) -> list[dict[str, Any]]:
    """Somebody's rows: as many as count, all alike."""
    if person == NOTHING and table.many is not None:
        return []
    row = {name: _value(domain, person) for name, domain in zip(table.private, table.domains, strict=True)}
    return [row] * (table.many or 1)


def _value(domain: Any, person: str) -> Any:
    if person == NOTHING:
        return None
    value = domain.decode(0 if person == LOWEST else domain.size - 1)
    return float(value) if isinstance(value, Decimal) else value
