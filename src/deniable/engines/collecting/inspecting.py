"""What would become of rows, before anything is drawn or charged: which are rejected, and which rule mends that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from deniable import arrow_functions as pc
from deniable.checks import check_number
from deniable.engines.collecting.sorted_rows import NO_USER, UNKNOWN_USER, UNREADABLE_SUFFIX, RowReader
from deniable.errors import InvalidData
from deniable.tables.bulk.column_encoding import REASONS, encode
from deniable.tables.schema.attributes import Ordinal, Table
from deniable.tables.schema.placing import MISSING, OFF_GRID, OUTSIDE, WRONG_TYPE
from deniable.tables.specification.specification import Specification
from deniable.wording import counted

MAX_REJECTED = 0.01
"""The share of a table's rows that may be rejected if the caller does not say."""
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class Inspection:
    """What would become of the rows of one table: exact counts for whoever runs the collection. They are not private.

    >>> Inspection(rows=200, rejected=3).share
    0.015
    """

    rows: int
    rejected: int
    """Rows that would not be used."""
    problems: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """Rows by attribute (empty for ids) and reason; a row may have several problems."""

    @property
    def share(self) -> float:
        """The share of the rows that would be rejected."""
        return self.rejected / self.rows if self.rows else 0.0


def inspect(collection: Specification, reader: RowReader) -> dict[str, Inspection]:
    """What would become of the rows of every table."""
    return {name: _inspected(collection[name], reader) for name in reader.names}


def _inspected(table: Table, reader: RowReader) -> Inspection:
    problems: Counter[tuple[str, str]] = Counter()
    for reason, count in reader.odd_ids(table.name).items():
        problems["", reason] += count
    rejected = sum(problems.values())
    rows = problems["", NO_USER] + problems["", UNKNOWN_USER]  # which are not among those that are read below
    for batch in reader.unsorted(table.name):
        rows += batch.num_rows
        odd = np.zeros(batch.num_rows, dtype=bool)
        for name, domain in zip(table.private, table.domains, strict=True):
            _, reasons = encode(domain, batch.column(name))
            if name + UNREADABLE_SUFFIX in batch.schema.names:
                unreadable = np.asarray(pc.fill_null(batch.column(name + UNREADABLE_SUFFIX), False))
                reasons = np.where(unreadable, np.uint8(REASONS.index(WRONG_TYPE)), reasons)
            odd |= reasons > 0
            for number, count in enumerate(np.bincount(reasons, minlength=len(REASONS))):
                if number and count:
                    problems[name, REASONS[number]] += int(count)
        rejected += int(odd.sum())
    return Inspection(rows, min(rejected, rows), dict(+problems))


def rule_for(table: Table, attribute: str, reason: str) -> str:
    """What would mend a problem: a rule of the specification, or a change of the data."""
    if not attribute:
        return "correct the user ids"
    ordinal = isinstance(table.attributes[attribute], Ordinal)
    rules = {
        OFF_GRID: f"{attribute}: round = true, or a finer step",
        OUTSIDE: f'{attribute}: outside = "clip", or a wider domain'
        if ordinal
        else f'{attribute}: other = "…", or map',
        MISSING: f"{attribute}: missing = a value of the domain",
        WRONG_TYPE: f"{attribute}: convert the column",
    }
    return rules[reason]


def check_share(collection: Specification, inspections: Mapping[str, Inspection], most: float) -> None:
    """Refuse a run that would reject more than a share of a table's rows; nothing was drawn or charged."""
    check_number(
        "max_rejected", most, "must be from 0 to 1", "Use 0.01 for one row in a hundred.", smallest=0, largest=1
    )
    for name, inspection in inspections.items():
        if inspection.share <= most:
            continue
        worst = sorted(inspection.problems.items(), key=lambda item: -item[1])[:MOST_NAMED]
        named = "; ".join(
            f"{attribute or 'user ids'} {reason}: {counted(count, 'row')}" for (attribute, reason), count in worst
        )
        problem = (
            f"{100 * inspection.share:.3g} % of the rows of table {name!r} would be rejected, "
            f"above {100 * most:g} % ({named})"
        )
        mends = dict.fromkeys(rule_for(collection[name], attribute, reason) for (attribute, reason), _ in worst)
        repair = f"What mends it: {'; '.join(mends)}. Or allow more with max_rejected (--max-rejected)."
        raise InvalidData(problem, repair)
