"""Reports in bulk: their columns, what they were made under, and which of them can be believed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable import arrow_functions as pc
from deniable.arrays import Booleans, Floats, Integers
from deniable.errors import InvalidData
from deniable.limits import LONGEST_TEXT
from deniable.mechanisms._compiled import compiled, compiler_is_loaded
from deniable.mechanisms.frequency_oracle import MaskedCells
from deniable.simulation import mark
from deniable.tables.coins.coin_columns import MOST_TABULATED_VIEWS, CoinCheck, matches, turn_columns
from deniable.tables.coins.turns import turn_prefix
from deniable.tables.designs.views import View
from deniable.tables.schema.report_format import ASSIGNED, COLUMN_TYPES
from deniable.tables.schema.rounds import MEMOISED, ROTATING, ROUND_COLUMN, Rounds
from deniable.tables.specification.specification import Specification

SPECIFICATION = b"deniable.collection"
"""The metadata entry that holds the SHA-256 of the specification."""

TABLE = b"deniable.table"

OTHER_SPECIFICATION, MISSING_ENTRY = "made under another specification", "with a missing entry"
ROW_FAULTS = ("view out of range", "y or seed out of range", "slot out of range")
NO_SUCH_ROUND, OTHER_TURN = "of a round that there is not", "of a round that is not the user's"
OTHER_COINS = "with another view or seed than the assigned ones"
REPEATED, INCOMPLETE = "user and slot repeated", "of a user with missing slots"

COINS = ("slot", "view", "seed")
"""The columns that assigned coins decide: the last two, given the first and the user."""

DOCUMENTED = "Send the columns as documented."

_COLUMNS = {column: pa.from_numpy_dtype(np.dtype(kind)) for column, kind in COLUMN_TYPES.items()}


def report_schema(
    collection: Specification, name: str, uid: pa.DataType, public: Mapping[str, pa.DataType], *, simulation: bool
) -> pa.Schema:
    """The columns of a service's reports, with the marks of their specification, table and kind.

    `public` are the types of public attributes. In a collection with rounds, every report has the column `round`.
    """
    if collection.rounds is not None:
        public = {**public, ROUND_COLUMN: pa.uint32()}
    columns = {
        "uid": uid,
        **_COLUMNS,
        **{collection[name].column(attribute): kind for attribute, kind in public.items()},
    }
    for column, kind in public.items():
        public_type(column, kind)
    origin = {SPECIFICATION: collection.sha256.encode(), TABLE: name.encode()}
    return pa.schema(list(columns.items()), metadata={**origin, **mark(simulation=simulation)})


def check_names(collection: Specification, name: str, names: Sequence[str]) -> tuple[str, ...]:
    """The columns of reports that are read, in their order.

    Each stands once, under its exact name; the order in a file does not matter, and further columns are not read.
    """
    wanted = ("uid", *_COLUMNS, *collection.asked[name].public_columns)
    folded = Counter(column.casefold() for column in names)
    for column in wanted:
        if column not in names:
            raise InvalidData(f"reports of table {name!r} lack the column {column!r}", DOCUMENTED)
        if folded[column.casefold()] > 1:
            problem = f"reports of table {name!r} have the column {column!r} twice, ignoring case"
            raise InvalidData(problem, "Keep one of them.")
    return wanted


def columns_of(collection: Specification, name: str, schema: pa.Schema) -> pa.Schema:
    """The columns of reports that are read, with their types. Every engine judges columns here."""
    columns = check_names(collection, name, schema.names)
    fields = [(column, _read_as(column, schema.field(column).type)) for column in columns]
    return pa.schema(fields, metadata=schema.metadata)


def _read_as(column: str, kind: pa.DataType) -> pa.DataType:
    """The type that a column is read as. With a wrong type the whole table is refused."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if column in _COLUMNS:
        if not pa.types.is_integer(kind):
            raise InvalidData(f"column {column!r} of the reports must be {_COLUMNS[column]}", DOCUMENTED)
        return kind
    if column == "uid":
        if pa.types.is_integer(kind) and kind != pa.uint64():
            return pa.int64()
        if not _is_text(kind):
            raise InvalidData("user ids must be integers or texts", "Convert them first.")
        return pa.string()
    return public_type(column, kind)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view())


def public_type(column: str, kind: pa.DataType) -> pa.DataType:
    """The type that a public column has in reports: a truth value, a number, a text, a date or a time."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if _is_text(kind) or pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    if pa.types.is_date(kind):
        return pa.date32()
    if pa.types.is_time(kind):
        return pa.time64("us")
    number = pa.types.is_integer(kind) or kind in (pa.float32(), pa.float64()) or pa.types.is_decimal128(kind)
    if not number and not pa.types.is_boolean(kind):
        raise InvalidData(
            f"the public column {column!r} is neither a truth value, a number, a text, a date nor a time",
            "Convert it first.",
        )
    return kind


def check_texts(columns: Iterable[pa.Array | pa.ChunkedArray], where: str) -> None:
    """Refuse ids and public values that are longer than texts may be, when reports are made and when they are read."""
    for column in columns:
        if _is_text(column.type) and (pc.max(pc.binary_length(column)).as_py() or 0) > LONGEST_TEXT:
            problem = f"{where} has ids or public texts of more than {LONGEST_TEXT:,} bytes"
            raise InvalidData(problem, "Shorten them.", cost="Nothing was released or computed")


def validate(collection: Specification, name: str, reports: pa.Table) -> tuple[pa.Table, Counter[str]]:
    """The reports that can be believed, and how many were refused, by reason."""
    if not names_origin(collection, name, reports.schema):
        return nobody(collection, name), +Counter({OTHER_SPECIFICATION: reports.num_rows})
    reports, alone = possible_rows(collection, name, reports)
    reports, together = complete_users(collection, name, reports)
    return reports, alone + together


def nobody(collection: Specification, name: str) -> pa.Table:
    """An empty table of reports."""
    public = dict.fromkeys(collection[name].public, pa.string())
    public.pop(ROUND_COLUMN if collection.rounds is not None else None, None)
    return report_schema(collection, name, pa.int64(), public, simulation=False).empty_table()


def possible_rows(collection: Specification, name: str, reports: pa.Table) -> tuple[pa.Table, Counter[str]]:
    """The reports that are possible on their own, with the columns that are read; and how many are not, by reason."""
    wanted = columns_of(collection, name, reports.schema)
    try:
        reports = reports.select(wanted.names).cast(wanted)
    except pa.ArrowException:
        raise InvalidData(f"reports of table {name!r} hold values that cannot be read", DOCUMENTED) from None
    complete = pc.is_valid(reports["uid"])
    for column in _COLUMNS:
        complete = pc.and_(complete, pc.is_valid(reports[column]))
    refused: Counter[str] = Counter()
    reports, refused[MISSING_ENTRY] = _keep(reports, np.asarray(complete))
    faults = row_checks(collection, name)[0].of(_numbers(reports))
    for number, reason in enumerate(ROW_FAULTS):
        refused[reason] += int(np.count_nonzero(faults == number + 1))
    reports, _ = _keep(reports, faults == 0)
    if collection.rounds is not None:
        reports, refused[NO_SUCH_ROUND] = _keep(reports, has_round(collection.rounds, reports))
        reports, refused[OTHER_TURN] = _keep(reports, is_turn(collection, reports))
    reports, refused[OTHER_COINS] = _keep(reports, has_assigned_coins(collection, name, reports))
    return narrowed(reports), +refused


def has_assigned_coins(collection: Specification, name: str, reports: pa.Table | pa.RecordBatch) -> Booleans:
    """Whether possible reports have the views and seeds of their users; all have, where devices draw them."""
    if collection.coins != ASSIGNED:
        return np.ones(reports.num_rows, dtype=np.bool_)
    uid = reports["uid"]
    uid = uid.combine_chunks() if isinstance(uid, pa.ChunkedArray) else uid
    slot, view, seed = (np.asarray(reports[column]).astype(np.int64) for column in COINS)
    if collection.rounds is None or collection.rounds.mode == MEMOISED:
        return row_checks(collection, name)[1].matches(uid, slot, view, seed)
    numbers, good = np.asarray(reports[ROUND_COLUMN]), np.zeros(len(uid), dtype=np.bool_)
    for number in np.unique(numbers).tolist():
        rows = np.flatnonzero(numbers == number)
        mine = uid.take(pa.array(rows))
        good[rows] = matches(collection, name, mine, slot[rows], view[rows], seed[rows], number)
    return good


def has_round(rounds: Rounds, reports: pa.Table) -> Booleans:
    """Whether reports are of a round that there is."""
    numbers = pc.fill_null(reports[ROUND_COLUMN].cast(pa.int64(), safe=False), 0).to_numpy()
    return np.asarray((numbers >= 1) & (numbers <= rounds.count))


def is_turn(collection: Specification, reports: pa.Table) -> Booleans:
    """Whether reports are of rounds in which their users answer; where devices draw these, nobody knows."""
    rounds = collection.rounds
    if rounds is None or rounds.mode != ROTATING or collection.coins != ASSIGNED:
        return np.ones(reports.num_rows, dtype=np.bool_)
    turns = turn_columns(rounds, turn_prefix(collection, None), reports["uid"].combine_chunks())
    return np.asarray((turns == reports[ROUND_COLUMN].to_numpy().astype(np.int64)[:, None]).any(axis=1))


def complete_users(collection: Specification, name: str, reports: pa.Table) -> tuple[pa.Table, Counter[str]]:
    """The reports of users who sent every slot once. The reports of a user count only together."""
    refused: Counter[str] = Counter()
    slots = collection.reports_per_user(name)
    users = _numbered(reports["uid"].combine_chunks())
    if collection.rounds is not None:  # each round of a user counts on its own
        both = users * (collection.rounds.count + 1) + reports[ROUND_COLUMN].to_numpy().astype(np.int64)
        users = np.unique(both, return_inverse=True)[1].astype(np.int64)
    pair = users * slots + reports["slot"].to_numpy().astype(np.int64)
    if not np.all(pair[1:] > pair[:-1]):
        _, first, copies = np.unique(pair, return_index=True, return_counts=True)
        repeated = np.isin(users, users[first[copies > 1]])
        reports, refused[REPEATED] = _keep(reports, ~repeated)
        users = users[~repeated]
    whole = np.bincount(users, minlength=users.max(initial=0) + 1) == slots
    reports, refused[INCOMPLETE] = _keep(reports, whole[users])
    return reports, +refused


def _numbers(reports: pa.Table) -> dict[str, Integers]:
    return {column: reports[column].to_numpy().astype(np.int64) for column in _COLUMNS}


def names_origin(collection: Specification, name: str, schema: pa.Schema) -> bool:
    """Whether reports name this specification and table."""
    metadata = schema.metadata or {}
    return bool(metadata.get(SPECIFICATION) == collection.sha256.encode() and metadata.get(TABLE) == name.encode())


def _numbered(ids: pa.Array) -> Integers:
    """A number for each user, the same in all her rows. Ids that ascend, as most do, need no dictionary."""
    before, after = ids.slice(0, max(len(ids) - 1, 0)), ids.slice(1)
    if pc.all(pc.less_equal(before, after)).as_py():
        return np.cumsum(np.concatenate((np.zeros(min(len(ids), 1), dtype=np.int64), pc.not_equal(before, after))))
    return np.asarray(pc.dictionary_encode(ids).indices.to_numpy(), dtype=np.int64)


def row_faults(collection: Specification, name: str, columns: Mapping[str, Integers]) -> NDArray[np.uint8]:
    """What is wrong with each report on its own: the number of a reason in `ROW_FAULTS` plus one; 0 if nothing is."""
    design = collection.design_of(name)
    slot, view, seed, y = (columns[column] for column in _COLUMNS)
    known = (view >= 0) & (view < design.views)
    listed = pc.dictionary_encode(arrow_integers(np.where(known, view, 0)))
    views = [design.view(number) for number in listed.dictionary.to_pylist()]
    which = listed.indices.to_numpy()
    largest = np.array([drawn.outcomes - 1 for drawn in views], dtype=np.int64)[which]
    named = np.array([named_cells(drawn) for drawn in views], dtype=np.int64)[which]
    largest_seed = np.array([drawn.oracle.seeds - 1 for drawn in views], dtype=np.int64)[which]
    parts = np.array([drawn.part for drawn in views], dtype=np.int64)[which]
    fits = (y >= 0) & (y <= largest) & (seed >= 0) & (seed <= largest_seed)
    fits &= (named == 0) | (np.bitwise_count(y) == named)
    placed = (slot >= 0) & (slot < collection.reports_per_user(name)) & (slot % len(design.parts) == parts)
    return np.select([~known, ~fits, ~placed], [np.uint8(1), np.uint8(2), np.uint8(3)], np.uint8(0))


class RowFaults:
    """`row_faults` for reports of one table that arrive in small groups: what the design says is tabulated once."""

    def __init__(self, collection: Specification, name: str) -> None:
        self._collection, self._name = collection, name
        design = collection.design_of(name)
        self._slots, self._parts = collection.reports_per_user(name), len(design.parts)
        self._views: tuple[Integers, ...] | None = None
        if design.views <= MOST_TABULATED_VIEWS:
            facts = [(view.outcomes - 1, view.oracle.seeds - 1, named_cells(view), view.part) for view in design]
            self._views = tuple(np.ascontiguousarray(column) for column in np.array(facts, dtype=np.int64).T)

    def compiled(self) -> Self:
        """The same, which has loaded the compiler: for whoever checks so often that this pays."""
        _faults.dispatcher()
        return self

    def of(self, columns: Mapping[str, Integers]) -> NDArray[np.uint8]:
        """What is wrong with each report: the number of a reason in `ROW_FAULTS` plus one; 0 if nothing is."""
        if self._views is None or not compiler_is_loaded():
            return row_faults(self._collection, self._name, columns)
        faults = np.empty(columns["view"].size, dtype=np.uint8)
        _faults(*(columns[column] for column in _COLUMNS), *self._views, self._slots, self._parts, faults)
        return faults


@lru_cache(maxsize=32)
def row_checks(collection: Specification, name: str) -> tuple[RowFaults, CoinCheck]:
    """What is tabulated for the reports of a table. Whoever checks them in parts does not want it made for each."""
    return RowFaults(collection, name), CoinCheck(collection, name)


@compiled
def _faults(
    slot: Any,
    view: Any,
    seed: Any,
    y: Any,
    outcomes: Any,
    seeds: Any,
    named: Any,
    part_of: Any,
    slots: Any,
    parts: Any,
    out: Any,
) -> None:
    for row in range(out.size):
        number, answer = view[row], y[row]
        if number < 0 or number >= part_of.size:
            out[row] = 1
            continue
        fits = 0 <= answer <= outcomes[number] and 0 <= seed[row] <= seeds[number]
        if fits and named[number]:
            bits = 0
            while answer:
                bits, answer = bits + (answer & 1), answer >> 1
            fits = bits == named[number]
        placed = 0 <= slot[row] < slots and slot[row] % parts == part_of[number]
        out[row] = 2 if not fits else 0 if placed else 3


def named_cells(view: View) -> int:
    """How many bits are set in every y of a view; 0 if y is a number like any other."""
    return view.oracle.support.size if isinstance(view.oracle.support, MaskedCells) else 0


def narrowed(reports: pa.Table) -> pa.Table:
    """Numbers in the types of the report format; other engines keep them in wider ones."""
    for column, kind in _COLUMNS.items():
        if column in reports.column_names and reports.schema.field(column).type != kind:
            index = reports.schema.get_field_index(column)
            reports = reports.set_column(index, pa.field(column, kind), reports[column].cast(kind))
    return reports


def arrow_integers(values: Integers) -> pa.Array:
    """Integers as an Arrow array, not copied. `pa.array` would import pandas first, where that is installed."""
    return pa.Array.from_buffers(pa.int64(), values.size, [None, pa.py_buffer(np.ascontiguousarray(values))])


def arrow_floats(values: Floats) -> pa.Array:
    """Floats as an Arrow array, not copied."""
    return pa.Array.from_buffers(pa.float64(), values.size, [None, pa.py_buffer(np.ascontiguousarray(values))])


def _keep(reports: pa.Table, good: np.ndarray) -> tuple[pa.Table, int]:
    count = int(np.count_nonzero(~good))
    return (reports.filter(pa.array(good)) if count else reports), count
