"""Random lists of operations against a collector that is killed again and again, and a model of what may be stored.

`python collector_simulation.py FOLDER PART…` runs one or several of these, and prints the shortest list of operations
that fails:

    killed,FIRST,COUNT               seeds, with processes that are killed
    here,FIRST,COUNT                 seeds in this process, with simulated crashes: ten times faster
    postgresql,FIRST,COUNT,ADDRESS   seeds on two servers with one database
    servers,SEED,COUNT               servers with an open port that are killed while connections upload
    ends                             ends a commit and a seal at every thousandth byte, and around fsyncs and renames
    bugs                             shows that planted bugs are found

Every life of the collector is a process of its own, forked from this one: real code from the HTTP application to
SQLite's files. It ends by SIGKILL between operations, or at a chosen byte of what it writes: a limit of file sizes
makes the operating system end it there. Every report is unique, so that a double count would show.
"""

import asyncio
import gc
import json
import logging
import os
import pickle
import random
import resource
import shutil
import signal
import sys
import traceback
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from asgi import REPORTS, SHOP, request
from deniable.database import connect
from deniable.engines.collecting import stored_reports
from deniable.engines.collecting.stored_reports import collector_folder, seal
from deniable.service import collector
from deniable.service.application import application
from deniable.service.collector import init_folder, open_collector
from deniable.service.keys import KeyFile
from deniable.service.settings import ServeSettings
from deniable.service.tokens import make_token
from deniable.stores.collector import settled_runs, sqlite_store
from deniable.stores.collector.upload import (
    HELD_NOTHING,
    HELD_OTHER,
    Upload,
    UploadOutcome,
    codes_of,
    outcome,
    outcome_codes,
)
from deniable.tables.reports.upload_format import BINARY_REPORTS, REPORT_LINES, binary_body

USERS = 8
HOUR = 3600
NOW = 1_800_000_000
PROXY = "10.0.0.7"
FAST = {"requests_per_minute": 1e6, "reports_per_minute": 1e6}
SETTINGS = ServeSettings(host="0.0.0.0", proxies=(PROXY,), free_bytes=0, **FAST)  # noqa: S104 - no port is opened


@dataclass(frozen=True)
class Operation:
    """One step. `reports` are numbers of prepared reports; `ends_at` is a byte of the log at which the process ends."""

    name: str
    reports: tuple = ()
    ends_at: int | None = None
    number: int = 0


# Prepared reports: of every user two that differ, for the table users in bytes and for orders in lines.


def prepared():
    """(table, user, slot, bytes, public, line) of every report that a simulation may send."""
    made = []
    for number in range(USERS):
        uid = f"user {number}"
        for _ in range(2):
            report = SHOP.client(user=uid).report("users", {"age": 10 * number + 1})
            made.append(("users", uid, 0, report.to_bytes(), None, report.to_json(uid, "users")))
            for sent in SHOP.client(user=uid).reports("orders", [{"amount": number}]):
                public = {"city": f"city {number}"}
                text = json.dumps(public, separators=(",", ":"))
                made.append(("orders", uid, sent.slot, sent.to_bytes(), text, sent.to_json(uid, "orders", public)))
    return made


# The model ------------------------------------------------------------------------------------------------------------


@dataclass
class Model:
    """What may be stored under every key: one thing if every upload was answered, several after a crash."""

    possible: dict = field(default_factory=dict)
    is_open: bool = True

    def explains(self, upload, became):
        """The possibilities that explain an answer."""
        held = self.possible.get(upload.key, {None})
        return {value for value in held if outcome(upload, value, is_open=self.is_open) is became}

    def answered(self, upload, became):
        """A refusal: what does not explain it was not stored. Nothing left means that the collector is wrong."""
        kept = self.explains(upload, became)
        assert kept, f"{upload.key}: {became} is impossible"
        self.possible[upload.key] = kept

    def unanswered(self, upload):
        """Nobody knows whether an upload was stored. It may have been, if there was room for it."""
        before = self.possible.get(upload.key, {None})
        new = {(upload.report, upload.public)} if None in before and self.is_open else set()
        self.possible[upload.key] = before | new

    def check(self, stored):
        """Whether what is stored is possible: nothing lost, nothing twice, nothing that was refused."""
        keys = [key for key, _ in stored]
        assert len(keys) == len(set(keys)), "something is stored twice"
        held = dict(stored)
        for key in {*held, *self.possible}:
            assert held.get(key) in self.possible.get(key, {None}), f"{key} holds what it cannot"


# Operations -----------------------------------------------------------------------------------------------------------

WORDS = {"conflict": UploadOutcome.CONFLICT, "round_not_open": UploadOutcome.CLOSED}


def arbitrary(seed, count):
    """A random list of operations."""
    source = random.Random(seed)  # noqa: S311 - no secret
    operations = []
    for _ in range(source.randint(3, 8)):
        chosen = tuple(source.randrange(count) for _ in range(source.randint(1, 6)))
        ends_at = source.choice([None, None, None, source.randrange(0, 40_000)])
        name = source.choices(
            ["upload", "lines", "again", "malformed", "token", "lost request", "lost answer", "kill", "stop", "close",
             "open", "seal", "clock", "full"],
            [8, 4, 3, 1, 1, 1, 2, 2, 1, 1, 2, 1, 1, 1])[0]  # fmt: skip
        if name == "again" and operations:
            operations.append(Operation("upload", operations[-1].reports, ends_at))
        else:
            crashes = name in ("upload", "lines", "seal")
            operations.append(Operation(name, chosen, ends_at if crashes else None, source.randrange(1000)))
    return operations


IN_BYTES = ("upload", "token", "lost request", "lost answer", "full")


def uploads_of(operation, reports):
    """What an operation tries to store. Bytes alone carry no public attributes, so they are of the table users."""
    if operation.name not in (*IN_BYTES, "lines"):
        return []
    return [
        Upload(table, 0, uid, slot, data, public)
        for table, uid, slot, data, public, _ in (reports[number] for number in operation.reports)
        if operation.name == "lines" or table == "users"
    ]


@cache
def loop_of(_):
    return asyncio.new_event_loop()


def run_here(work):
    """Run something in the event loop of this process: a new one for every request would take longer than it."""
    return loop_of(os.getpid()).run_until_complete(work)


class Life:
    """One process of a collector."""

    def __init__(self, folder, reports):
        self.folder, self.reports = folder, reports
        self.collector = open_collector(folder, SETTINGS)
        self.now = NOW
        self.collector.now = lambda: self.now
        self.app = application(self.collector)

    def perform(self, operation):
        """Do one thing; returns what the model has to know."""
        uploads = uploads_of(operation, self.reports)
        body = binary_body([(upload.uid, upload.report) for upload in uploads])
        match operation.name:
            case "upload":
                return self.post(body, BINARY_REPORTS)
            case "lines":
                lines = [self.reports[number][-1] for number in operation.reports]
                return self.post("\n".join(lines).encode(), REPORT_LINES)
            case "malformed":
                return self.malformed(operation)
            case "token":
                return self.with_token(uploads, body, operation.number)
            case "lost request":
                return self.post(body, BINARY_REPORTS, parts=[body[:-1], None])
            case "lost answer":
                return self.post(body, BINARY_REPORTS, lost=True)
            case "full":
                return self.without_room(body)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "stop":
                self.collector.close()
            case "close" | "open":
                self.collector.store.set_round(0, is_open=operation.name == "open")
            case "seal":
                seal(self.collector.folder, self.collector.store)
            case "clock":
                self.now += (operation.number - 500) * HOUR
        return {}

    def post(self, body, media_type, headers=None, lost=False, **more):
        chosen = {"content-type": media_type, **(headers or {"deniable-user": "*"})}
        app = losing(self.app) if lost else self.app
        answer = run_here(request(app, "POST", REPORTS, body, chosen, client=PROXY, **more))
        if lost:
            return {"status": None}
        return {"status": answer.status, "answer": answer.json}

    def malformed(self, operation):
        """A report with a changed byte of its head, or cut short; nothing of it may be stored."""
        _, uid, _, data, _, _ = self.reports[0]
        spoilt = bytearray(data)
        spoilt[operation.number % 17] ^= 128
        body = binary_body([(uid, bytes(spoilt))])
        before = self.collector.store.summary()
        answer = self.post(body[:-1] if operation.number % 5 == 0 else body, BINARY_REPORTS)
        return answer | {"changed": self.collector.store.summary() != before}

    def with_token(self, uploads, body, number):
        """A token of the first user: valid, expired, or made with another secret."""
        secrets = KeyFile(self.folder).keys().token_secrets
        if number % 3 == 2:
            secrets = {"1": b"another"}
        expires = self.now + (HOUR if number % 3 else -HOUR)
        token = make_token(secrets, uploads[0].uid if uploads else "", int(expires), SHOP.sha256)
        return self.post(body, BINARY_REPORTS, {"authorization": f"Bearer {token}"})

    def without_room(self, body):
        """As if the disk were full: writes beyond a size fail."""
        limit_files(self.folder, 2_000)
        try:
            return self.post(body, BINARY_REPORTS)
        finally:
            limit_files(self.folder, None)


def losing(app):
    """The application behind a connection that ends when it answers."""

    async def lossy(scope, receive, send):
        async def gone(_):
            raise OSError

        await app(scope, receive, gone)

    return lossy


def limit_files(folder, room):
    """Let files grow by so many bytes beyond the log's size; None for as much as they like."""
    _, most = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = folder / "reports.sqlite-wal"
    size = resource.RLIM_INFINITY if room is None else (log.stat().st_size if log.exists() else 0) + room
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, most))


def live(folder, reports, operations, first, out):
    """Perform operations from the `first` on, until the process ends; tell of each after it."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    life = Life(folder, reports)
    for number in range(first, len(operations)):
        operation = operations[number]
        if operation.ends_at is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
            limit_files(folder, operation.ends_at)
        told = life.perform(operation)
        limit_files(folder, None)
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        os.write(out, pickle.dumps((number, told)))
        if operation.name == "stop":
            return
    life.collector.close()


def final_state(folder, asked=False, sealed=True):
    """What the store and the sealed files hold in the end; if it is asked, a database as well."""
    opened = collector_folder(folder)
    store = opened.open_store()
    stored = [
        ((table, number, uid, int.from_bytes(report[2:4], "big")), (report, public))
        for table, number in store.summary().counts
        for rows in store.read(table, number)
        for uid, report, public in rows.listed()
    ]
    counts = {table: rows for (table, _), rows in store.summary().counts.items()}
    files = counts
    if sealed:
        seal(opened, store)
        files = {
            table: pq.read_table(folder / table / "part-0.parquet", use_threads=False).num_rows
            for table in {key[0] for key, _ in stored}
        }
    store.close()
    whole = {table: reports.rows for table, reports in connect(folder).stores.items()} if asked else None
    return stored, files, counts, whole


def final(folder, asked, out):
    """The same, told by another process."""
    os.write(out, pickle.dumps(final_state(folder, asked)))


def in_child(work, *arguments):
    """Run work in a fork; returns what it told, and how it ended."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        try:
            work(*arguments, write)
        except BaseException:
            os.write(write, pickle.dumps(("error", traceback.format_exc())))
            os._exit(1)
        os._exit(0)
    os.close(write)
    told = []
    with os.fdopen(read, "rb") as pipe:
        while True:
            try:
                told.append(pickle.load(pipe))  # noqa: S301 - of our own fork
            except (EOFError, pickle.UnpicklingError):
                break
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code != 1, told[-1][1]
    return told, code


def empty_folder(folder):
    """The folder of a new collector: a copy, because making one waits for the disk."""
    made = folder.with_name("new")
    if not made.exists():
        init_folder(SHOP, made)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(made, folder)


def simulate(folder, reports, operations, asked=True):
    """Run a list of operations, and compare with the model; returns how many lives ended inside an operation."""
    empty_folder(folder)
    model, first, ends = Model(), 0, 0
    while first < len(operations):
        told, code = in_child(live, folder, reports, operations, first)
        for number, facts in told:
            learn(model, operations[number], reports, facts)
            first = number + 1
        if code and first < len(operations):  # ended inside an operation
            for upload in uploads_of(operations[first], reports):
                model.unanswered(upload)
            first, ends = first + 1, ends + 1
    (state,), _ = in_child(final, folder, asked)
    check_state(model, *state)
    return ends


def check_state(model, stored, sealed, counts, whole):
    """Whether the end is a possible one: the store, its counts, sealed files and what a database sees."""
    model.check(stored)
    rows = {table: sum(key[0] == table for key, _ in stored) for table in counts}
    assert rows == counts == sealed, "counts differ"
    if whole is None:
        return
    complete = {uid: 0 for (table, _, uid, _), _ in stored if table == "orders"}
    for (table, _, uid, _), _ in stored:
        complete[uid] = complete.get(uid, 0) + (table == "orders")
    assert whole.get("orders", 0) == sum(2 for slots in complete.values() if slots == 2), "a database sees another set"
    assert whole.get("users", 0) == rows.get("users", 0), "a database sees another set"


def learn(model, operation, reports, facts):
    """Compare an answer with the model."""
    uploads = uploads_of(operation, reports)
    match operation.name:
        case "close" | "open":
            model.is_open = operation.name == "open"
        case "malformed":
            assert facts["status"] == 400 or facts["answer"]["refused"], facts
            assert not facts["changed"], "something malformed was stored"
        case "lost request":
            assert facts["status"] == 400, facts
        case "lost answer":
            for upload in uploads:
                model.unanswered(upload)
        case "token" if not operation.number % 3:
            assert facts["status"] == 401, facts
        case "token" if uploads:
            mine = [upload for upload in uploads if upload.uid == uploads[0].uid and operation.number % 3 == 1]
            others = {index for index, upload in enumerate(uploads) if upload not in mine}
            refused = {failed["index"] for failed in facts["answer"]["failed"] if failed["reason"] == "other_user"}
            assert refused == others, facts
            if mine:
                each(model, uploads, facts["answer"], skip=others)
        case "full" if facts["status"] == 503:
            pass
        case "upload" | "lines" | "full":
            assert facts["status"] == 200, facts
            each(model, uploads, facts["answer"])


def each(model, uploads, answer, skip=frozenset()):
    """Every report of an answer. Failed ones are named; of the others, counts say how many are new."""
    failed = {entry["index"]: entry["reason"] for entry in answer["failed"]}
    surely_new = perhaps_new = good = 0
    for index, upload in enumerate(uploads):
        if index in failed and index not in skip:
            model.answered(upload, WORDS[failed[index]])
        elif index not in skip:
            new, known = (model.explains(upload, became) for became in (UploadOutcome.ACCEPTED, UploadOutcome.REPEATED))
            assert new or known, f"{upload.key}: neither new nor known"
            model.possible[upload.key] = {(upload.report, upload.public)}
            surely_new, perhaps_new, good = surely_new + (not known), perhaps_new + bool(new), good + 1
    assert surely_new <= answer["accepted"] <= perhaps_new, answer
    assert answer["accepted"] + answer["repeated"] == good, answer


def shortest(fails, operations):
    """Leave out operations as long as the rest still fails."""
    smaller = True
    while smaller:
        smaller = False
        for index in range(len(operations)):
            rest = operations[:index] + operations[index + 1 :]
            if fails(rest):
                operations, smaller = rest, True
                break
    return operations


# Bugs that the simulation has to find ---------------------------------------------------------------------------------


def answers_early():
    """The commit waits for nothing: a process that ends loses it."""
    from deniable.stores.collector.sqlite_store import SqliteStore

    add = SqliteStore.add_codes

    def late(self, uploads):
        waiting = self.__dict__.setdefault("waiting", [])
        waiting.extend(uploads)
        if len(waiting) > 4:
            add(self, waiting[:-4])
            del waiting[:-4]
        return codes_of([UploadOutcome.ACCEPTED for _ in uploads])

    SqliteStore.add_codes = late


def replaces():
    """The last bytes stay, not the first."""
    sqlite_store.outcome_codes = lambda held, is_open: outcome_codes(
        np.where((held == HELD_OTHER) & is_open, HELD_NOTHING, held), is_open
    )


def forgets_rounds():
    """A closed round still takes reports."""
    sqlite_store.outcome_codes = lambda held, is_open: outcome_codes(held, np.ones_like(is_open))


BUGS = {"answers early": answers_early, "replaces": replaces, "forgets rounds": forgets_rounds}


def keep_what_is_read():
    """Lives read the same specification and check by the same door: equal bytes are parsed, and a door made, once."""
    load, door, runs, doors = stored_reports.load_run, collector.ReportDoor, {}, {}

    def load_once(path):
        data = path.read_bytes()
        if data not in runs:
            runs[data] = load(path)
        return runs[data]

    def door_once(collection, *, simulation=False):
        key = (id(collection), simulation)  # all are kept, so no number comes twice
        if key not in doors:
            doors[key] = door(collection, simulation=simulation)
        return doors[key]

    stored_reports.load_run, collector.ReportDoor = load_once, door_once


def cpu():
    """Seconds of processor of this process and its forks."""
    return sum(os.times()[:4])


def every_end(folder, reports):
    """End a commit, and a seal, at every thousandth byte of what they write; returns how many ends there were."""
    mine = tuple(number for number, (table, *_) in enumerate(reports) if table == "users")
    ends = 0
    for name in ("upload", "seal"):
        reached, at = True, 0
        while reached:
            crashing = Operation(name, mine[4:8] if name == "upload" else (), at)
            steps = [Operation("upload", mine[:4]), crashing, Operation("upload", mine[:8]), Operation("seal")]
            reached = simulate(folder, reports, steps, asked=False)
            ends, at = ends + reached, at + 1_000
    return ends


def run_seeds(folder, reports, seeds, run=simulate):
    """How many lives ended inside an operation, and the shortest list of operations that fails, if any does."""
    ends = 0
    for seed in seeds:
        operations, asked = arbitrary(seed, len(reports)), seed % 20 == 0
        try:
            ends += run(folder, reports, operations, asked)
        except Exception as problem:
            # The whole list as well: where chance has a part, a shorter one may not show it again.
            print(f"seed {seed} fails ({type(problem).__name__}: {problem}):", *operations, sep="\n    ", flush=True)

            def fails(rest):
                try:
                    run(folder, reports, rest, False)
                except Exception:
                    return True
                return False

            return ends, [f"seed {seed}: {problem}", *shortest(fails, operations)]
    return ends, []


def planted(bug, folder, reports, run, out):
    """What is told of a collector with a bug."""
    BUGS[bug]()
    os.write(out, pickle.dumps(run_seeds(folder, reports, range(200), run)))


def main(folder, *parts):
    """Print what happened; the exit code is 3 if a list fails, or a bug is not found."""
    from killed_servers import kill_servers
    from simulated_crashes import every_crash, simulate_here, simulate_two_servers

    logging.disable(logging.CRITICAL)  # answers are lost on purpose
    # What arrived settles at every chance, in runs of a few rows and pages of two.
    sqlite_store.MOST_RECENT, sqlite_store.IDLE_RECENT, settled_runs.PAGE_ROWS = 6, 3, 2
    keep_what_is_read()
    reports = prepared()
    simulate_here(folder, reports, [Operation("upload", (0,))], True)  # what lives are forked with
    gc.freeze()
    failing = []
    for part in parts:
        what, *numbers = part.split(",")
        begun, ends, failed = cpu(), 0, []
        if what == "bugs":
            for bug in BUGS:
                ((_, shows),), _ = in_child(planted, bug, folder, reports, simulate_here)
                print(f"{bug}: {len(shows) - 1} operations show it")
                failed += [] if shows else [f"not found: {bug}"]
        elif what == "servers":
            ends = kill_servers(folder, int(numbers[1]), int(numbers[0]))
        elif what == "ends":
            ends = every_end(folder, reports)
            print(f"crashes: {every_crash(folder, reports)} ends inside an operation")
        else:
            here = simulate_here if what == "here" else simulate
            run = simulate_two_servers(numbers[2]) if what == "postgresql" else here
            first, count = map(int, numbers[:2])
            ends, failed = run_seeds(folder, reports, range(first, first + count), run)
        print(*failed, sep="\n  ")
        print(f"{what}: {ends} ends inside an operation, {cpu() - begun:.1f} s of processor")
        failing += failed
    gc.unfreeze()
    sys.exit(3 if failing else 0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
