"""Looks a collector's folder over: files, counts, every report, gaps; and repairs what can be repaired without loss.

A finding is `repairable` if what is right follows from the reports that are there. Reports themselves are never
changed or removed: a damaged one needs a backup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from deniable.engines.collecting.sent_columns import SentReport
from deniable.engines.collecting.stored_reports import CollectorFolder, seal
from deniable.engines.collecting.wire_reports import ReportDoor
from deniable.errors import DeniableError
from deniable.files import Lock
from deniable.stores.collector.database_file import DATABASE_FILE
from deniable.stores.collector.sqlite_store import STORE_FILE, file_damage
from deniable.stores.collector.stream_journal import STREAM_LOG_FILE
from deniable.stores.collector.stream_log import StreamLog, has_streams
from deniable.stores.collector.upload import CollectorStore
from deniable.stores.live.folder_files import live_stores
from deniable.stores.live.store_check import check_store
from deniable.wording import counted

_PRIVATE_FILES = ("keys.json", DATABASE_FILE, STORE_FILE, STREAM_LOG_FILE)


@dataclass(frozen=True, slots=True)
class StoreProblem:
    """One thing that is wrong, in words without any data value."""

    words: str
    repairable: bool = False


@dataclass(slots=True)
class Examination:
    """What was seen."""

    counts: dict[tuple[str, int], int] = field(default_factory=dict)
    """Reports that are there, by table and round."""
    incomplete: dict[tuple[str, int], int] = field(default_factory=dict)
    """Users who have sent some of their reports and not all; an answer leaves them out."""
    streams: dict[str, int] = field(default_factory=dict)
    """Reports of each stream without trust."""
    live: list[str] = field(default_factory=list)
    """Streams in stores that were looked at."""
    findings: list[StoreProblem] = field(default_factory=list)


def examine(folder: CollectorFolder) -> Examination:
    """Look at everything; nothing is changed. A server may run meanwhile."""
    seen = Examination()
    seen.findings += _file_findings(folder)
    if folder.database is None and (damage := file_damage(folder.path / STORE_FILE)):
        seen.findings.append(StoreProblem(f"{STORE_FILE} is damaged ({damage}). Restore it from a backup."))
        return seen
    if has_streams(folder.path):
        _look_at_streams(folder, seen)
    _look_at_live_streams(folder, seen)
    store = folder.open_store()
    try:
        _look_at_reports(folder, store, seen)
        _look_at_sealed(folder, seen)
    finally:
        store.close()
    return seen


def _look_at_streams(folder: CollectorFolder, seen: Examination) -> None:
    """Every report of every stream is taken again, in its order: θ has to be what was announced."""
    try:
        log = StreamLog(folder.path, simulation=folder.simulation)
    except DeniableError as problem:
        seen.findings.append(StoreProblem(f"streams: {problem}"))
        return
    try:
        for name in log.names:
            state = log.state(name)
            seen.streams[name] = state.first_reports + state.second_reports
            seen.findings += [StoreProblem(f"{words}. Restore a backup") for words in log.problems(name)]
    finally:
        log.close()


def _look_at_live_streams(folder: CollectorFolder, seen: Examination) -> None:
    """Every segment and state of every stream in a store."""
    for path in live_stores(folder.path):
        seen.live.append(path.name)
        bad = [finding for finding in check_store(path) if not finding.well]
        seen.findings += [
            StoreProblem(f"stream {path.name}: {each.piece}: {each.text}. Restore a backup") for each in bad
        ]


def _file_findings(folder: CollectorFolder) -> Iterator[StoreProblem]:
    for name in _PRIVATE_FILES:
        path = folder.path / name
        if (
            path.exists()
            and path.stat().st_mode & 0o077
            and (name not in (STORE_FILE, STREAM_LOG_FILE) or folder.path.stat().st_mode & 0o077)
        ):
            yield StoreProblem(f"{name} can be read by others", repairable=True)
    for path in _left_over(folder):
        yield StoreProblem(
            f"{path.parent.name}/{path.name} is left over from a seal that was interrupted", repairable=True
        )


def _left_over(folder: CollectorFolder) -> list[Path]:
    return sorted(folder.path.glob("*/.part-*.parquet.new"))


def _look_at_reports(folder: CollectorFolder, store: CollectorStore, seen: Examination) -> None:
    """Every report passes the checks of the door again; counts and slots are counted again."""
    summary, door = store.summary(), ReportDoor(folder.collection, simulation=folder.simulation)
    names = [table.name for table in folder.collection.tables]
    rounds = {number for _, number in summary.counts} | set(summary.rounds)
    faults: Counter[str] = Counter()
    for name in names:
        for number in sorted(rounds):
            rows, slots_of = 0, Counter[int]()
            last, mine = None, 0
            for batch in store.read(name, number):
                rows += len(batch.uids)
                sent = [
                    SentReport(uid, report, name, None if public is None else _public(public))
                    for uid, report, public in batch.listed()
                ]
                for arrived, checked in zip(sent, door.check(sent), strict=True):
                    if checked.refusal is not None or checked.round != number:
                        faults[checked.refusal or "of another round"] += 1
                    if arrived.uid != last:
                        slots_of[mine] += 1
                        last, mine = arrived.uid, 0
                    mine += 1
            slots_of[mine] += 1
            held = summary.counts.get((name, number), 0)
            if rows or held:
                seen.counts[name, number] = rows
                whole = folder.collection.reports_per_user(name)
                seen.incomplete[name, number] = sum(n for size, n in slots_of.items() if 0 < size < whole)
            if rows != held and store.summary().version == summary.version:
                words = f"{name}, round {number}: the count says {held:,}, and there are {counted(rows, 'report')}"
                seen.findings.append(StoreProblem(words, repairable=True))
    unknown = sorted({name for name, _ in summary.counts} - set(names))
    if unknown:
        seen.findings.append(StoreProblem(f"{counted(len(unknown), 'table')} that the specification does not have"))
    for reason, number in sorted(faults.items()):
        seen.findings.append(StoreProblem(f"{counted(number, 'report')} {reason}. Restore a backup, or leave them out"))


def _public(text: str) -> dict[str, Any]:
    import json

    try:
        values = json.loads(text)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def _look_at_sealed(folder: CollectorFolder, seen: Examination) -> None:
    """Sealed files must be readable; that they are older than the store is no fault."""
    for path in sorted(folder.path.glob("*/part-*.parquet")):
        try:
            rows = pq.read_metadata(path).num_rows
            pq.read_table(path, columns=["uid"], use_threads=False)
        except (OSError, pa.ArrowException, ValueError, KeyError):
            seen.findings.append(StoreProblem(f"{path.parent.name}/{path.name} is damaged", repairable=True))
            continue
        held = seen.counts.get((path.parent.name, int(path.stem.removeprefix("part-") or 0)), 0)
        if rows > held:
            words = f"{path.parent.name}/{path.name} holds {rows:,} reports, more than the store's {held:,}"
            seen.findings.append(StoreProblem(f"{words}: the store has lost some, or the file is of another store"))


def repair(folder: CollectorFolder, seen: Examination) -> int:
    """Do what can be done about the findings; returns how many were repaired. No server may run on a local store."""
    lock = Lock(folder.path / STORE_FILE, "the store", cost="Nothing was repaired") if folder.database is None else None
    try:
        for name in _PRIVATE_FILES:
            if (folder.path / name).exists():
                (folder.path / name).chmod(0o600)
        for path in _left_over(folder):
            path.unlink()
        store = folder.open_store()
        try:
            store.correct_counts(seen.counts)
            if any(finding.words.endswith("is damaged") for finding in seen.findings if finding.repairable):
                seal(folder, store)
        finally:
            store.close()
    finally:
        if lock is not None:
            lock.close()
    return sum(finding.repairable for finding in seen.findings)
