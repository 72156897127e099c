"""Whole clients under attack: all that a user sends about all tables, from a device (asked twice) and in bulk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.arrays import Integers
from deniable.audit.attack import Target
from deniable.audit.features import HINT
from deniable.audit.mechanism_targets import device_draws
from deniable.audit.output import ABSENT, Column, Output
from deniable.audit.people import rows_of
from deniable.audit.supported_users import supported_users
from deniable.collection import Collection
from deniable.randomness import Source
from deniable.tables.device.client import Client
from deniable.tables.schema.attributes import Table
from deniable.tables.schema.report_format import REPORT_COLUMNS

DEVICE_MOST, BULK_MOST = 4_000, 60_000
_DEVICE_BATCH, _BULK_BATCH, _BULK_ROWS = 200, 20_000, 1 << 21
_WHOLE_REPORTS = 16
"""The attacker looks at every field of so many reports of a table, and of later ones at the users they support."""
_SEEN_FIELDS = (*REPORT_COLUMNS, "tag", "round")
_HALF_TAG = 2**63

Sent = Mapping[str, Column]
"""By field, one line per run and one entry per report, in the order in which they left."""


def device_target(name: str, collection: Collection, pair: tuple[str, str]) -> Target:
    """What one device sends about all tables, and what it sends when it is asked again."""
    rows = {table.name: [rows_of(table, person) for person in pair] for table in _users(collection)}

    def draw(worlds: Integers, source: Source) -> Output:
        sent: dict[str, list[Any]] = {f"{again}{table}": [] for table in rows for again in ("", "again ")}
        for world in worlds:
            client = _client(collection, source)
            for table, choices in rows.items():
                sent[table].append(client.reports(table, choices[world]))
                sent[f"again {table}"].append(client.reports(table, choices[world]))
        output = Output({}, {})
        for table in rows:
            again = f"again {table}"
            for title in (table,) if sent[again] == sent[table] else (table, again):
                sizes = np.array([sum(len(report.to_bytes()) for report in reports) for reports in sent[title]])
                output |= _columns(collection, table, pair, title, _matrices(sent[title]))
                output |= Output({}, {f"{title}.size": sizes})
        return output

    return Target(name, collection.epsilon, draw, most=DEVICE_MOST, batch=_DEVICE_BATCH)


def _users(collection: Collection) -> list[Table]:
    """The tables that one person's ε covers; each of another population is a release of its own."""
    return [table for table in collection.tables if table.owner is None]


def _client(collection: Collection, source: Source) -> Client:
    return Client(collection, randbelow=device_draws(source)) if source.simulation else collection.client()


def _matrices(sent: Sequence[Sequence[Any]]) -> Sent:
    slots = max(map(len, sent))
    matrices = {name: np.full((len(sent), slots), ABSENT) for name in _SEEN_FIELDS}
    for run, reports in enumerate(sent):
        for number, report in enumerate(reports):
            for name in _SEEN_FIELDS:
                seen = getattr(report, name)
                matrices[name][run, number] = seen if seen < _HALF_TAG else seen - 2 * _HALF_TAG
    return matrices


def bulk_target(name: str, collection: Collection, pair: tuple[str, str]) -> Target:
    """What `Collection.perturb` makes of many users, some of either kind, in the order in which it leaves."""

    def draw(worlds: Integers, source: Source) -> Output:
        users = _users(collection)
        frames = {table.name: _frame(table, pair, worlds) for table in users}
        public = {column: ["everybody knows"] * worlds.size for table in users for column in table.public}
        everyone = pa.table({"uid": np.arange(worlds.size), **public})
        reports = collection.perturb(
            everyone=everyone, source=source, simulation=source.simulation, max_rejected=1.0, **frames
        )
        output = Output({}, {})
        for table in frames:
            columns = {field: reports[table][field].to_numpy().astype(np.int64) for field in ("uid", *REPORT_COLUMNS)}
            output |= _columns(collection, table, pair, table, _spread(columns, worlds.size))
            output |= Output({}, {f"{table}.moved": _moves(columns["uid"], worlds.size)})
        return output

    rows = max(table.many or 1 for table in _users(collection))
    batch = max(1, min(_BULK_BATCH, _BULK_ROWS // rows))
    return Target(name, collection.epsilon, draw, most=BULK_MOST, batch=batch)


def _frame(table: Table, pair: tuple[str, str], worlds: Integers) -> pa.Table:
    rows = [rows_of(table, person) for person in pair]
    counts = np.array([len(choice) for choice in rows])[worlds]
    kinds = np.repeat(worlds, counts)
    columns: dict[str, Any] = {"uid": np.repeat(np.arange(worlds.size), counts)}
    for name in table.private:
        values = pa.array([choice[0][name] if choice else None for choice in rows])
        columns[name] = values.take(pa.array(kinds))
    if table.many is None:
        columns |= {name: ["everybody knows"] * worlds.size for name in table.public}
    return pa.table(columns)


def _spread(columns: Mapping[str, Integers], users: int) -> Sent:
    """Reports of all users as one line per user; the order in which a user's reports left stays."""
    uid = columns["uid"]
    order = np.argsort(uid, kind="stable")
    counts = np.bincount(uid, minlength=users)
    inside = np.arange(uid.size) - np.repeat(np.cumsum(counts) - counts, counts)
    matrices = {name: np.full((users, int(counts.max(initial=0))), ABSENT) for name in REPORT_COLUMNS}
    for name, matrix in matrices.items():
        matrix[uid[order], inside] = columns[name][order]
    return matrices


def _moves(uid: Integers, users: int) -> Integers:
    """Whether users left before (−1) or after (1) their turn in the order of ids; 0 for all if that order is kept."""
    order = uid[np.sort(np.unique(uid, return_index=True)[1])]
    turns = np.full(users, -users)
    turns[order] = np.arange(order.size)
    return np.sign(turns - np.arange(users))


def _columns(collection: Collection, table: str, pair: tuple[str, str], title: str, sent: Sent) -> Output:
    """One column per field and report. Of all of them only y may depend on the data."""
    answers: dict[str, Column] = {}
    facts: dict[str, Column] = {f"{title}.number": (sent["slot"] != ABSENT).sum(1)}
    for number in range(sent["y"].shape[1]):
        for field, matrix in sent.items() if number < _WHOLE_REPORTS else ():
            (answers if field == "y" else facts)[f"{title}[{number}].{field}"] = matrix[:, number]
        report = {field: matrix[:, number] for field, matrix in sent.items()}
        answers[f"{title}[{number}].{HINT}"] = supported_users(collection, table, pair, report)
    return Output(answers, facts)
