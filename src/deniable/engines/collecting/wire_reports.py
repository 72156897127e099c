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

from deniable.arrays import Integers
from deniable.engines.collecting.bundles import BROKEN, bundle_shape, whole_codes
from deniable.engines.collecting.sent_columns import SentColumns, SentReport, Wire, framed
from deniable.engines.collecting.wire_heads import HeadRules, read_heads
from deniable.limits import LONGEST_TEXT
from deniable.tables.coins.coin_columns import CoinCheck
from deniable.tables.reports.report import Report, kind_of
from deniable.tables.reports.report_table import (
    COINS,
    OTHER_COINS,
    OTHER_SPECIFICATION,
    OTHER_TURN,
    ROW_FAULTS,
    RowFaults,
    has_assigned_coins,
    is_turn,
    report_schema,
)
from deniable.tables.reports.upload_format import binary_body
from deniable.tables.schema.report_format import (
    ASSIGNED,
    COIN_MODES,
    COLUMN_TYPES,
    REPORT_COLUMNS,
    USER_COLUMN,
)
from deniable.tables.schema.rounds import ROUND_COLUMN
from deniable.tables.schema.specification_entries import canonical_json
from deniable.tables.specification.runs import run_tag
from deniable.tables.specification.specification import Specification

MALFORMED, UNKNOWN_TABLE, ODD_PUBLIC = "malformed", "of an unknown table", "with a public value of another type"
OTHER_KIND = {False: "of a simulation", True: "of a release, not of a simulation"}
NO_ROUND = "of a round that the collection does not have"
NOT_MY_TURN = "which say that it is not their turn"
UNNAMED_PUBLIC = "without the public attributes of its table, which lines of JSON can hold"

_REFUSALS = (
    None,
    MALFORMED,
    UNKNOWN_TABLE,
    OTHER_KIND[False],
    OTHER_KIND[True],
    OTHER_SPECIFICATION,
    NO_ROUND,
    NOT_MY_TURN,
    *ROW_FAULTS,
    OTHER_TURN,
    OTHER_COINS,
    UNNAMED_PUBLIC,
    ODD_PUBLIC,
    BROKEN,
)
"""Why reports are refused; columns hold the number of a reason, and 0 for those that are not."""
_CODE = {reason: np.uint8(number) for number, reason in enumerate(_REFUSALS)}


_FAULT_CODES = np.array([_CODE[reason] for reason in (None, *ROW_FAULTS)], dtype=np.uint8)
"""The code of what `RowFaults` says."""


class _TableRows(NamedTuple):
    """Reports of one table that can be of the collection."""

    uids: pa.Array
    rounds: Integers
    columns: Mapping[str, Integers]

    def of(self, rows: Integers) -> _TableRows:
        """Some of them."""
        columns = {column: held[rows] for column, held in self.columns.items()}
        return _TableRows(self.uids.take(pa.array(rows)), self.rounds[rows], columns)


class CheckedReport(NamedTuple):
    """One report that a collection can use, or why it cannot."""

    refusal: str | None
    table: str = ""
    round: int = 0
    slot: int = 0
    public: str | None = None


class Judged(NamedTuple):
    """What is known of reports when the door has looked at them, as columns."""

    codes: NDArray[np.uint8]
    """The number of the reason why a report is refused, 0 if it is not. `reason` has the words."""
    tables: NDArray[np.uint16]
    """The number of its table, where it is not refused."""
    rounds: NDArray[np.int64]
    slots: NDArray[np.int64]
    publics: Mapping[int, str]
    """Public attributes as canonical JSON, where a table has any."""

    def reason(self, index: int) -> str | None:
        """Why a report is refused."""
        return _REFUSALS[self.codes[index]]


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
        self._head_rules = HeadRules(
            np.array(list(self._by_tag), dtype=np.uint64),
            np.array([run_tag(collection, name, simulation=not simulation) for name in names], dtype=np.uint64),
            COIN_MODES.index(collection.coins),
            0 if collection.rounds is None else collection.rounds.count,
        )
        heads = (None, MALFORMED, OTHER_KIND[simulation], OTHER_SPECIFICATION, NO_ROUND)
        self._head_codes = np.array([_CODE[reason] for reason in heads], dtype=np.uint8)
        """The code of every verdict of `read_heads`."""
        self.tables = tuple(names)
        self._faults = {name: RowFaults(collection, name).compiled() for name in names}
        assigned = names if collection.coins == ASSIGNED else []
        self._coin_checks = {name: CoinCheck(collection, name) for name in assigned}
        self.owners = tuple(table.owner for table in collection.tables)
        """Who reports the rows of each table; None for users."""
        self.bundles = bundle_shape(collection)
        """What a message holds where ids are pseudonyms: it is taken or refused as a whole."""

    def token_name(self, table: int, uid: str) -> str | None:
        """What a token calls an id: ids of another population have the name of its owner before them.

        A user whose id reads like one of those has no name: her token would be good for both.
        """
        owner = self.owners[table] if table < len(self.owners) else None
        if owner is not None:
            return f"{owner}:{uid}"
        return None if uid.startswith(tuple(f"{other}:" for other in self.owners if other is not None)) else uid

    def warm_up(self) -> None:
        """Check one possible report of every table, so that what is compiled on first use is compiled now."""
        for tag, name in self._by_tag.items():
            first = 0 if self._collection.rounds is None else 1
            report = Report(slot=0, view=0, seed=0, y=0, tag=tag, round=first, coins=self._collection.coins)
            self.check([SentReport("user", report.to_bytes(), name, {})])
            framed(binary_body([("user", report.to_bytes())] * 2), 2)

    def check(self, sent: Sequence[SentReport]) -> list[CheckedReport]:
        """Each report with its table, round and slot, or with the reason for which it is refused."""
        judged = self.judge(SentColumns.of([sent]))
        columns = [column.tolist() for column in (judged.codes, judged.tables, judged.rounds, judged.slots)]
        publics = map(judged.publics.get, range(len(sent)))
        return [
            CheckedReport(_REFUSALS[code]) if code else CheckedReport(None, self.tables[table], turn, slot, public)
            for code, table, turn, slot, public in zip(*columns, publics, strict=True)
        ]

    def judge(self, sent: SentColumns) -> Judged:
        """Which reports are refused and why, and the table, round and slot of the others."""
        heads = read_heads(self._head_rules, sent.reports, sent.readable)
        codes, which, columns = self._head_codes[heads.verdicts], heads.tables, heads.columns
        for index, arrived in sent.lines.items():
            if codes[index] != _CODE[MALFORMED]:
                codes[index] = self._named_code(arrived.table, int(which[index]), codes[index])
        publics: dict[int, str] = {}
        present = np.bincount(which[codes == 0], minlength=len(self.tables))
        for number in np.flatnonzero(present).tolist():
            name = self.tables[number]
            if present[number] == codes.size:
                rows, mine = np.arange(codes.size), _TableRows(sent.uids, heads.rounds, columns)
            else:
                rows = np.flatnonzero((codes == 0) & (which == number))
                mine = _TableRows(sent.uids, heads.rounds, columns).of(rows)
            codes[rows] = self._row_codes(name, mine)
            self._judge_public(name, sent.lines, rows, codes, publics)
        if self.bundles is not None:
            if codes.size % self.bundles.reports:  # not even the number of reports is right
                codes[:] = _CODE[BROKEN]
            else:
                are_whole = self.bundles.is_whole(which, columns["slot"], heads.rounds)
                codes = whole_codes(self.bundles, codes, _CODE[BROKEN], are_whole)
        return Judged(codes, which, heads.rounds, columns["slot"], publics)

    def _named_code(self, table: str | None, which: int, code: np.uint8) -> np.uint8:
        """Why a report is refused whose line of JSON names its table: it has to be that of the bytes."""
        if table not in self.tables:
            return _CODE[UNKNOWN_TABLE]
        if code in (_CODE[OTHER_KIND[False]], _CODE[OTHER_KIND[True]]):
            return code
        return code if which < len(self.tables) and table == self.tables[which] else _CODE[OTHER_SPECIFICATION]

    def _row_codes(self, name: str, rows: _TableRows) -> NDArray[np.uint8]:
        """Judge the reports of one table: ranges, then the coins that the user was assigned."""
        faults = self._faults[name].of(rows.columns)
        codes = _FAULT_CODES[faults]
        if self._collection.coins == ASSIGNED:
            good = np.flatnonzero(faults == 0)
            if good.size == codes.size:
                codes = self._coin_codes(name, rows)
            elif good.size:
                codes[good] = self._coin_codes(name, rows.of(good))
        if self._collection.rounds is not None:
            codes[rows.columns["y"] == np.int64(-1)] = _CODE[NOT_MY_TURN]
        return codes

    def _coin_codes(self, name: str, rows: _TableRows) -> NDArray[np.uint8]:
        """Judge the coins of reports, and whether it was their users' turn."""
        if self._collection.rounds is None:
            slots, views, seeds = (rows.columns[column] for column in COINS)
            agree = self._coin_checks[name].matches(rows.uids, slots, views, seeds)
            return np.where(agree, np.uint8(0), _CODE[OTHER_COINS])
        codes = np.zeros(len(rows.uids), dtype=np.uint8)
        numbers = {column: pa.array(values) for column, values in rows.columns.items()}
        numbers[ROUND_COLUMN] = pa.array(rows.rounds.astype(np.uint32))
        arrived = pa.table({USER_COLUMN: rows.uids, **numbers})
        codes[~has_assigned_coins(self._collection, name, arrived)] = _CODE[OTHER_COINS]
        codes[~is_turn(self._collection, arrived)] = _CODE[OTHER_TURN]
        return codes

    def _judge_public(
        self,
        name: str,
        lines: Mapping[int, SentReport],
        rows: Integers,
        codes: NDArray[np.uint8],
        publics: dict[int, str],
    ) -> None:
        """Judge the public attributes of a table's reports, if it has any."""
        columns = self._collection[name].public
        for index in rows.tolist() if columns else ():
            public = lines[index].public if index in lines else None
            reason = _public_fault(columns, public)
            if reason is not None:
                codes[index] = _CODE[reason]
            elif not codes[index]:
                publics[index] = canonical_json({column: (public or {}).get(column) for column in columns})


def _public_fault(columns: Sequence[str], public: Mapping[str, Any] | None) -> str | None:
    """What is wrong with the public attributes of a report."""
    if not columns:
        return None
    if public is None:
        return UNNAMED_PUBLIC
    values = (public.get(column) for column in columns)
    return None if all(value is None or value_family(value) for value in values) else ODD_PUBLIC
