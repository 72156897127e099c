"""Reports in the bytes that devices send: many at once, checked, and as columns.

`gather` reads lines and keeps what a collection can use; the collector checks reports at the door, before it stores
any. Both refuse for the reasons that are listed here, and both make columns here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.limits import LONGEST_TEXT
from deniable.tables.reports.report import Report, kind_of
from deniable.tables.reports.report_table import (
    OTHER_COINS,
    OTHER_SPECIFICATION,
    OTHER_TURN,
    ROW_FAULTS,
    has_assigned_coins,
    is_turn,
    report_schema,
    row_faults,
)
from deniable.tables.schema.report_format import (
    COIN_MODES,
    COLUMN_TYPES,
    COVER,
    FIELD_BYTES,
    REPORT_BYTES,
    REPORT_COLUMNS,
    REPORT_VERSION,
    USER_COLUMN,
)
from deniable.tables.schema.rounds import ROUND_COLUMN
from deniable.tables.schema.specification_entries import canonical_json
from deniable.tables.specification.runs import run_tag
from deniable.tables.specification.specification import Specification

_WIRE = np.dtype([(field, f">u{size}") for field, size in FIELD_BYTES.items()])
MALFORMED, UNKNOWN_TABLE, ODD_PUBLIC = "malformed", "of an unknown table", "with a public value of another type"
OTHER_KIND = {False: "of a simulation", True: "of a release, not of a simulation"}
NO_ROUND = "of a round that the collection does not have"
NOT_MY_TURN = "which say that it is not their turn"
UNNAMED_PUBLIC = "without the public attributes of its table, which lines of JSON can hold"

_ROW_REASONS = (None, NOT_MY_TURN, *ROW_FAULTS, OTHER_TURN, OTHER_COINS)
_COVER_CODE, _TURN_CODE, _COINS_CODE = 1, len(_ROW_REASONS) - 2, len(_ROW_REASONS) - 1

Wire = NDArray[np.void]


class SentReport(NamedTuple):
    """What arrived for one report. Nothing about it is known yet, except that the id is a text."""

    uid: str
    report: bytes
    table: str | None = None
    """As a line of JSON names it; the bytes name it by their tag."""
    public: Mapping[str, Any] | None = None
    """None if the way it came cannot carry public attributes."""


class CheckedReport(NamedTuple):
    """One report that a collection can use, or why it cannot."""

    refusal: str | None
    table: str = ""
    round: int = 0
    slot: int = 0
    public: str | None = None


def wire_reports(reports: Sequence[bytes]) -> Wire:
    """Reports as an array with a field for each part of the format."""
    return np.frombuffer(b"".join(reports), dtype=_WIRE)


def wire_table(
    collection: Specification,
    name: str,
    uid: pa.Array,
    wire: Wire,
    public: Mapping[str, pa.Array],
    *,
    simulation: bool,
) -> pa.Table:
    """A table of reports from their bytes, with the ids of their users and their public columns."""
    kinds = {column: array.type for column, array in public.items()}
    schema = report_schema(collection, name, uid.type, kinds, simulation=simulation)
    numbers = [pa.array(wire[column].astype(COLUMN_TYPES[column])) for column in REPORT_COLUMNS]
    rounds = [] if collection.rounds is None else [pa.array(wire[ROUND_COLUMN].astype(np.uint32))]
    return pa.Table.from_arrays([uid, *numbers, *public.values(), *rounds], schema=schema)


def is_long(text: str) -> bool:
    """Whether a text is longer than a column of reports may hold: a single one would spoil the whole folder."""
    return len(text.encode()) > LONGEST_TEXT


def value_family(value: Any) -> str:
    """The type of a public value, where all numbers count as one type; empty if no column can hold it.

    >>> value_family(3), value_family(2.5), value_family("Rome"), value_family([])
    ('number', 'number', 'str', '')
    """
    kind = kind_of(value)
    if kind is str and is_long(value):
        return ""
    return "" if kind is None else "number" if kind in (int, float) else kind.__name__


def public_column(values: Sequence[Any]) -> pa.Array:
    """Public values of one family as a column; integers become floats where some are."""
    if any(isinstance(value, float) for value in values):
        return pa.array([None if value is None else float(value) for value in values])
    return pa.array(values)


class ReportDoor:
    """Checks reports on their way in: everything that can be said about a report without knowing any other.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> report = shop.client().report("users", {"age": 31}).to_bytes()
    >>> ReportDoor(shop).check([SentReport("7", report), SentReport("7", report[1:])])
    [CheckedReport(refusal=None, table='users', round=0, slot=0, public=None), CheckedReport(refusal='malformed', ...)]
    """

    def __init__(self, collection: Specification, *, simulation: bool = False) -> None:
        self._collection, self._simulation = collection, simulation
        names = [table.name for table in collection.tables]
        self._by_tag = {run_tag(collection, name, simulation=simulation): name for name in names}
        others = [run_tag(collection, name, simulation=not simulation) for name in names]
        self._other_tags = np.array(others, dtype=np.uint64)
        self._head_reasons = (None, MALFORMED, OTHER_KIND[simulation], OTHER_SPECIFICATION, NO_ROUND)
        self._coins = COIN_MODES.index(collection.coins)

    def warm_up(self) -> None:
        """Check one possible report of every table, so that what is compiled on first use is compiled now."""
        for tag, name in self._by_tag.items():
            first = 0 if self._collection.rounds is None else 1
            report = Report(slot=0, view=0, seed=0, y=0, tag=tag, round=first, coins=self._collection.coins)
            self.check([SentReport("user", report.to_bytes(), name, {})])

    def check(self, sent: Sequence[SentReport]) -> list[CheckedReport]:
        """Each report with its table, round and slot, or with the reason for which it is refused."""
        checked: list[CheckedReport] = [CheckedReport(MALFORMED)] * len(sent)
        readable = [
            index
            for index, arrived in enumerate(sent)
            if len(arrived.report) == REPORT_BYTES and kind_of(arrived.uid) is str and not is_long(arrived.uid)
        ]
        wire = wire_reports([sent[index].report for index in readable])
        which = np.full(wire.size, -1)
        for number, tag in enumerate(self._by_tag):
            which[wire["tag"] == np.uint64(tag)] = number
        heads = self._head_faults(wire, which)
        for row in np.flatnonzero(heads).tolist():
            checked[readable[row]] = CheckedReport(self._head_reasons[heads[row]])
        for row, index in enumerate(readable):
            if sent[index].table is not None and heads[row] != 1:
                checked[index], heads[row] = self._named(sent[index], int(which[row]), int(heads[row]))
        for number, name in enumerate(self._by_tag.values()):
            rows = np.flatnonzero((heads == 0) & (which == number))
            if rows.size:
                self._check_table(name, sent, wire[rows], [readable[row] for row in rows.tolist()], checked)
        return checked

    def _head_faults(self, wire: Wire, which: NDArray[np.int64]) -> NDArray[np.int64]:
        """Why reports cannot be of this collection, by their first bytes: numbers of `_head_reasons`."""
        most = 0 if self._collection.rounds is None else self._collection.rounds.count
        malformed = (wire["version"] != REPORT_VERSION) | (wire["coins"] >= len(COIN_MODES))
        other_kind = np.isin(wire["tag"], self._other_tags)
        other = (which < 0) | (wire["coins"] != self._coins)
        no_round = (wire["round"] > most) | ((wire["round"] == 0) != (most == 0))
        return np.select([malformed, other_kind, other, no_round], [1, 2, 3, 4], 0)

    def _named(self, arrived: SentReport, which: int, head: int) -> tuple[CheckedReport, int]:
        """A report whose line of JSON names its table: it has to be that of the bytes."""
        names = list(self._by_tag.values())
        if arrived.table not in names:
            return CheckedReport(UNKNOWN_TABLE), -1
        if head != 2 and (head == 3 or arrived.table != names[which]):
            return CheckedReport(OTHER_SPECIFICATION), -1
        return CheckedReport(self._head_reasons[head]), head

    def _check_table(
        self,
        name: str,
        sent: Sequence[SentReport],
        wire: Wire,
        indexes: Sequence[int],
        checked: list[CheckedReport],
    ) -> None:
        """Judge the reports of one table: public values, ranges, then the coins that the user was assigned."""
        columns = {column: wire[column].astype(np.int64) for column in REPORT_COLUMNS}
        faults = row_faults(self._collection, name, columns)
        good = np.flatnonzero(faults == 0)
        uids = pa.array([sent[indexes[row]].uid for row in good.tolist()], pa.string())
        numbers = {column: pa.array(values[good]) for column, values in columns.items()}
        if self._collection.rounds is not None:
            numbers[ROUND_COLUMN] = pa.array(wire[ROUND_COLUMN].astype(np.uint32)[good])
        arrived = pa.table({USER_COLUMN: uids, **numbers})
        codes = faults.astype(np.int64) + 1
        codes[good] = np.select(
            [~is_turn(self._collection, arrived), ~has_assigned_coins(self._collection, name, arrived)],
            [_TURN_CODE, _COINS_CODE],
            0,
        )
        if self._collection.rounds is not None:
            codes[wire["y"] == COVER] = _COVER_CODE
        public = self._collection[name].public
        rows = list(zip(codes.tolist(), wire["round"].tolist(), wire["slot"].tolist(), strict=True))
        judged = {row: _judged(name, *row) for row in set(rows)}  # few of them differ
        for index, row in zip(indexes, rows, strict=True):
            result = judged[row]
            if public:
                reason, sent_public = _public_fault(public, sent[index].public), sent[index].public
                if reason is not None:
                    result = CheckedReport(reason)
                elif result.refusal is None:
                    result = result._replace(public=_public_text(public, sent_public))
            checked[index] = result


def _judged(name: str, code: int, turn: int, slot: int) -> CheckedReport:
    reason = _ROW_REASONS[code]
    return CheckedReport(None, name, turn, slot) if reason is None else CheckedReport(reason)


def _public_fault(columns: Sequence[str], public: Mapping[str, Any] | None) -> str | None:
    """What is wrong with the public attributes of a report."""
    if not columns:
        return None
    if public is None:
        return UNNAMED_PUBLIC
    values = (public.get(column) for column in columns)
    return None if all(value is None or value_family(value) for value in values) else ODD_PUBLIC


def _public_text(columns: Sequence[str], public: Mapping[str, Any] | None) -> str | None:
    """The public attributes of a table as canonical JSON; others are left out."""
    return canonical_json({column: (public or {}).get(column) for column in columns}) if columns else None
