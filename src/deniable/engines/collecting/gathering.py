"""From what devices sent to a table of reports."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from deniable.engines.collecting.collected_reports import Reports
from deniable.engines.collecting.gathered_bundles import gathered_bundles
from deniable.engines.collecting.row_counts import Summary
from deniable.engines.collecting.sent_columns import wire_reports
from deniable.engines.collecting.sent_lines import LONGEST_LINE
from deniable.engines.collecting.wire_reports import (
    MALFORMED,
    NO_ROUND,
    NOT_MY_TURN,
    ODD_PUBLIC,
    OTHER_KIND,
    UNKNOWN_TABLE,
    is_long,
    public_column,
    value_family,
    wire_table,
)
from deniable.errors import InvalidData
from deniable.simulation import check_noise
from deniable.tables.reports.report import parse
from deniable.tables.reports.report_table import OTHER_SPECIFICATION
from deniable.tables.schema.pseudonyms import PSEUDONYM
from deniable.tables.schema.report_format import COVER
from deniable.tables.specification.runs import largest_epsilon, run_tag
from deniable.tables.specification.specification import Specification

_INTEGER = re.compile("0|-?[1-9][0-9]{0,18}")
ANOTHER = "another one for a user and slot that had one"
NOWHERE = "(none)"
"""What the summaries call lines that belong to no table."""

Advance = Callable[[int], None]


class Entry(NamedTuple):
    """What a device sent for one slot."""

    uid: str
    slot: int
    report: bytes
    public: dict[str, Any]
    round: int = 0


class _Sent:
    """What was sent for one table. Of several reports for a user and slot the first counts."""

    def __init__(self) -> None:
        self.lines = 0
        self.rejected: Counter[str] = Counter()
        self.entries: dict[tuple[str, int, int], Entry] = {}

    def add(self, entry: Entry) -> None:
        """Keep an entry. The same one again is not an error: devices repeat themselves, and networks deliver twice."""
        if self.entries.setdefault((entry.uid, entry.round, entry.slot), entry) != entry:
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
    are one user. `advance` is called with the length of every line. Under pseudonyms lines are bundles, as
    `Bundle.to_json` writes them, and what is not whole is counted among the lines of no table.
    """
    if isinstance(lines, (str, bytes)):
        raise InvalidData("lines are a single text", "Pass a list of lines, or an open file.")
    check_noise(largest_epsilon(collection), simulation=simulation)
    sent = {table.name: _Sent() for table in collection.tables}
    if collection.ids == PSEUDONYM:
        return _gathered_bundles(collection, lines, sent, advance, simulation=simulation)
    tags = {name: run_tag(collection, name, simulation=simulation) for name in sent}
    other_tags = {name: run_tag(collection, name, simulation=not simulation) for name in sent}
    lost: Counter[str] = Counter()
    most_rounds = 0 if collection.rounds is None else collection.rounds.count
    for line in lines:
        advance(len(line))
        if not line.strip():
            continue
        try:
            uid, name, report, public = parse(line if len(line) <= LONGEST_LINE else "")
        except InvalidData:
            lost[MALFORMED] += 1
            continue
        if is_long(str(uid)):
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
        elif report.round > most_rounds or (report.round == 0) != (most_rounds == 0):
            sent[name].rejected[NO_ROUND] += 1
        elif report.y == COVER and most_rounds:
            sent[name].rejected[NOT_MY_TURN] += 1
        else:
            sent[name].add(Entry(str(uid), report.slot, report.to_bytes(), public, report.round))
    return _reports(collection, sent, lost, simulation=simulation)


def _gathered_bundles(
    collection: Specification,
    lines: Iterable[str | bytes],
    sent: dict[str, _Sent],
    advance: Advance,
    *,
    simulation: bool,
) -> Reports:
    refused: Counter[str] = Counter()
    for table, name, slot, report, turn in gathered_bundles(
        collection, lines, refused, simulation=simulation, advance=advance
    ):
        sent[table].lines += 1
        sent[table].add(Entry(name, slot, report, {}, turn))
    return _reports(collection, sent, +refused, simulation=simulation)


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


def _is_integer(uid: str) -> bool:
    """Whether an id is written as a 64-bit integer is: 007 is not."""
    return _INTEGER.fullmatch(uid) is not None and -(2**63) <= int(uid) < 2**63


def _fitting(public: Sequence[str], entries: list[Entry]) -> list[Entry]:
    """Entries whose public values are missing or of the type that most devices send; all numbers count as one type.

    What no column can hold is of no type, also if nobody sends anything else.
    """
    for column in public:
        values = [entry.public.get(column) for entry in entries]
        kinds = [None if value is None else value_family(value) for value in values]
        known = Counter(kind for kind in kinds if kind).most_common(1)
        fitting = {None, *(kind for kind, _ in known)}
        entries = [entry for entry, kind in zip(entries, kinds, strict=True) if kind in fitting]
    return entries


def _table(
    collection: Specification, name: str, ids: Sequence[Any], entries: list[Entry], *, simulation: bool
) -> pa.Table:
    order = sorted(range(len(entries)), key=lambda index: (ids[index], entries[index].round, entries[index].slot))
    uid = pa.array([ids[index] for index in order], pa.string() if ids and isinstance(ids[0], str) else pa.int64())
    entries = [entries[index] for index in order]
    wire = wire_reports(pa.array([entry.report for entry in entries], pa.binary()))
    public = {
        column: public_column([entry.public.get(column) for entry in entries]) for column in collection[name].public
    }
    return wire_table(collection, name, uid, wire, public, simulation=simulation)
