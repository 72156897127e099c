"""From what devices sent to a table of reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.errors import InvalidData
from deniable.simulation import check_noise
from deniable.tables.collection import Collection
from deniable.tables.report import Report, kind_of, public_of
from deniable.tables.reports import OTHER_SPECIFICATION, Reports, Summary, report_schema
from deniable.tables.runs import largest_epsilon, run_tag

_WIRE = np.dtype([("version", ">u1"), ("tag", ">u1"), ("slot", ">u2"), ("view", ">u4"), ("seed", ">u4"), ("y", ">u4")])
MALFORMED, UNKNOWN_TABLE, ODD_PUBLIC = "malformed", "of an unknown table", "with a public value of another type"
OTHER_KIND = {False: "of a simulation", True: "of a release, not of a simulation"}

Entry = tuple[str | int, bytes, dict[str, Any]]
"""User, report and public values."""


def gather(collection: Collection, lines: Iterable[str], *, simulation: bool = False) -> Reports:
    """The reports in lines of JSON, as `Report.to_json` writes them. What cannot be read is counted by reason.

    The order of the lines is the order of arrival, which may tell something: reports are put in the order of ids.
    """
    if isinstance(lines, (str, bytes)):
        raise InvalidData("lines are one text", "Pass a list of lines, or an open file.")
    check_noise(largest_epsilon(collection), simulation=simulation)
    found: dict[str, list[Entry]] = {table.name: [] for table in collection.tables}
    rejected: dict[str, Counter[str]] = {table.name: Counter() for table in collection.tables}
    lost: Counter[str] = Counter()
    for line in lines:
        try:
            uid, name, report = Report.from_json(line)
        except InvalidData:
            lost[MALFORMED] += 1
            continue
        if name not in found:
            lost[UNKNOWN_TABLE] += 1
        elif report.tag == run_tag(collection, name, simulation=not simulation):
            rejected[name][OTHER_KIND[simulation]] += 1
        elif report.tag != run_tag(collection, name, simulation=simulation):
            rejected[name][OTHER_SPECIFICATION] += 1
        else:
            found[name].append((uid, report.to_bytes(), public_of(line)))
    tables, summaries = {}, {}
    for name, sent in found.items():
        entries = _fitting(collection[name].public, sent)
        rejected[name] += Counter({ODD_PUBLIC: len(sent) - len(entries)})
        if entries or rejected[name]:
            tables[name] = _table(collection, name, entries, simulation=simulation)
            count = len(entries) + rejected[name].total()
            users, spent = len({uid for uid, _, _ in entries}), collection.epsilon_per_report(name)
            summaries[name] = Summary(count, users, len(entries), spent, dict(rejected[name]))
    if lost:
        nowhere = Summary(lost.total(), 0, 0, 0.0, dict(lost))
        summaries["(none)"] = nowhere
    return Reports(collection, tables, summaries)


def _fitting(public: Sequence[str], entries: list[Entry]) -> list[Entry]:
    """Those whose public values are missing or of the type that most devices send; numbers are of one type."""
    for column in public:
        kinds = [None if (one := values.get(column)) is None else _family(one) for _, _, values in entries]
        usual, _ = (Counter(kind for kind in kinds if kind) or Counter([""])).most_common(1)[0]
        entries = [entry for entry, kind in zip(entries, kinds, strict=True) if kind in (None, usual)]
    return entries


def _family(value: Any) -> str:
    kind = kind_of(value)
    return "" if kind is None else "number" if kind in (int, float) else kind.__name__


def _column(values: list[Any]) -> pa.Array:
    if any(isinstance(value, float) for value in values):
        return pa.array([None if value is None else float(value) for value in values])
    return pa.array(values)


def _table(collection: Collection, name: str, entries: list[Entry], *, simulation: bool) -> pa.Table:
    if len({type(uid) for uid, _, _ in entries}) > 1:
        raise InvalidData(f"user ids of table {name!r} are integers and texts", "Use one type for all devices.")
    entries = sorted(entries, key=lambda entry: entry[0])
    wire = np.frombuffer(b"".join(data for _, data, _ in entries), dtype=_WIRE)
    uid = pa.array([uid for uid, _, _ in entries])
    if not entries:
        uid = pa.array([], pa.int64())
    public = {column: _column([values.get(column) for _, _, values in entries]) for column in collection[name].public}
    kinds = {column: array.type for column, array in public.items()}
    schema = report_schema(collection, name, uid.type, kinds, simulation=simulation)
    numbers = [
        pa.array(wire[column].astype(kind))
        for column, kind in (("slot", np.uint16), ("view", np.uint32), ("seed", np.uint32), ("y", np.uint32))
    ]
    return pa.Table.from_arrays([uid, *numbers, *public.values()], schema=schema)
