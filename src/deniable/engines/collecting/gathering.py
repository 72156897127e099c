"""From what devices sent to a table of reports."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from deniable.engines.collecting.collected_reports import Reports
from deniable.engines.collecting.row_counts import Summary
from deniable.errors import InvalidData
from deniable.limits import LONGEST_TEXT
from deniable.simulation import check_noise
from deniable.tables.reports.report import kind_of, parse
from deniable.tables.reports.report_table import OTHER_SPECIFICATION, report_schema
from deniable.tables.schema.report_format import COLUMN_TYPES, FIELD_BYTES, REPORT_COLUMNS
from deniable.tables.specification.runs import largest_epsilon, run_tag
from deniable.tables.specification.specification import Specification

_WIRE = np.dtype([(field, f">u{size}") for field, size in FIELD_BYTES.items()])
_INTEGER = re.compile("0|-?[1-9][0-9]{0,18}")
MALFORMED, UNKNOWN_TABLE, ODD_PUBLIC = "malformed", "of an unknown table", "with a public value of another type"
OTHER_KIND = {False: "of a simulation", True: "of a release, not of a simulation"}
NO_ROUND = "of a round that the collection does not have"
ANOTHER = "another one for a user and slot that had one"
NOWHERE = "(none)"
"""What the summaries call lines that belong to no table."""
LONGEST_LINE = 1 << 16

Advance = Callable[[int], None]


class Entry(NamedTuple):
    """What a device sent for one slot."""

    uid: str
    slot: int
    report: bytes
    public: dict[str, Any]


class _Sent:
    """What was sent for one table. Of several reports for a user and slot the first counts."""

    def __init__(self) -> None:
        self.lines = 0
        self.rejected: Counter[str] = Counter()
        self.entries: dict[tuple[str, int], Entry] = {}

    def add(self, entry: Entry) -> None:
        """Keep an entry. The same one again is not an error: devices repeat themselves, and networks deliver twice."""
        if self.entries.setdefault((entry.uid, entry.slot), entry) != entry:
            self.rejected[ANOTHER] += 1


def gather(
    collection: Specification,
    lines: Iterable[str | bytes],
    *,
    simulation: bool = False,
    advance: Advance = lambda _: None,
) -> Reports:
    """The reports in lines of JSON, as `Report.to_json` writes them. What cannot be read is counted by reason.

    The order of arrival may reveal something, so reports are sorted by user id. Ids are compared as texts: 1 and "1"
    are one user. `advance` is called with the length of every line.
    """
    if isinstance(lines, (str, bytes)):
        raise InvalidData("lines are a single text", "Pass a list of lines, or an open file.")
    check_noise(largest_epsilon(collection), simulation=simulation)
    sent = {table.name: _Sent() for table in collection.tables}
    tags = {name: run_tag(collection, name, simulation=simulation) for name in sent}
    other_tags = {name: run_tag(collection, name, simulation=not simulation) for name in sent}
    lost: Counter[str] = Counter()
    for line in lines:
        advance(len(line))
        if not line.strip():
            continue
        try:
            uid, name, report, public = parse(line if len(line) <= LONGEST_LINE else "")
        except InvalidData:
            lost[MALFORMED] += 1
            continue
        if _is_long(str(uid)):
            lost[MALFORMED] += 1
            continue
        if name not in sent:
            lost[UNKNOWN_TABLE] += 1
            continue
        sent[name].lines += 1
        if report.tag == other_tags[name]:
            sent[name].rejected[OTHER_KIND[simulation]] += 1
        elif report.tag != tags[name] or report.coins != collection.coins:
            sent[name].rejected[OTHER_SPECIFICATION] += 1
        elif report.round:
            sent[name].rejected[NO_ROUND] += 1
        else:
            sent[name].add(Entry(str(uid), report.slot, report.to_bytes(), public))
    return _reports(collection, sent, lost, simulation=simulation)


def _reports(collection: Specification, sent: dict[str, _Sent], lost: Counter[str], *, simulation: bool) -> Reports:
    entries = {
        name: _fitting(collection[name].public, list(arrived.entries.values())) for name, arrived in sent.items()
    }
    # One type of ids for all tables: they are joined by them.
    as_integers = all(_is_integer(entry.uid) for mine in entries.values() for entry in mine)
    tables, summaries = {}, {}
    for name, arrived in sent.items():
        if arrived.lines:
            arrived.rejected[ODD_PUBLIC] += len(arrived.entries) - len(entries[name])
            ids = [int(entry.uid) if as_integers else entry.uid for entry in entries[name]]
            tables[name] = _table(collection, name, ids, entries[name], simulation=simulation)
            users, spent = len({entry.uid for entry in entries[name]}), collection.epsilon_per_report(name)
            summaries[name] = Summary(arrived.lines, users, len(entries[name]), spent, dict(+arrived.rejected))
    if lost:
        summaries[NOWHERE] = Summary(lost.total(), 0, 0, 0.0, dict(lost))
    return Reports(collection, tables, summaries)


def _is_long(text: str) -> bool:
    """Whether a text is longer than a column of reports may hold: a single one would spoil the whole folder."""
    return len(text.encode()) > LONGEST_TEXT


def _is_integer(uid: str) -> bool:
    """Whether an id is written as a 64-bit integer is: 007 is not."""
    return _INTEGER.fullmatch(uid) is not None and -(2**63) <= int(uid) < 2**63


def _fitting(public: Sequence[str], entries: list[Entry]) -> list[Entry]:
    """Entries whose public values are missing or of the type that most devices send; all numbers count as one type."""
    for column in public:
        values = [entry.public.get(column) for entry in entries]
        kinds = [None if value is None else _family(value) for value in values]
        usual, _ = (Counter(kind for kind in kinds if kind) or Counter([""])).most_common(1)[0]
        entries = [entry for entry, kind in zip(entries, kinds, strict=True) if kind in (None, usual)]
    return entries


def _family(value: Any) -> str:
    kind = kind_of(value)
    if kind is str and _is_long(value):
        return ""
    return "" if kind is None else "number" if kind in (int, float) else kind.__name__


def _column(values: list[Any]) -> pa.Array:
    if any(isinstance(value, float) for value in values):
        return pa.array([None if value is None else float(value) for value in values])
    return pa.array(values)


def _table(
    collection: Specification, name: str, ids: Sequence[Any], entries: list[Entry], *, simulation: bool
) -> pa.Table:
    order = sorted(range(len(entries)), key=lambda index: (ids[index], entries[index].slot))
    uid = pa.array([ids[index] for index in order], pa.string() if ids and isinstance(ids[0], str) else pa.int64())
    entries = [entries[index] for index in order]
    wire = np.frombuffer(b"".join(entry.report for entry in entries), dtype=_WIRE)
    public = {column: _column([entry.public.get(column) for entry in entries]) for column in collection[name].public}
    schema = report_schema(
        collection, name, uid.type, {column: array.type for column, array in public.items()}, simulation=simulation
    )
    numbers = [pa.array(wire[column].astype(COLUMN_TYPES[column])) for column in REPORT_COLUMNS]
    return pa.Table.from_arrays([uid, *numbers, *public.values()], schema=schema)
