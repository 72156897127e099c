"""The simulation in one process: a crash is a copy of the folder at that moment, which the next life continues with.

A process that is killed leaves what it has written to files, and nothing else. Crashes happen before and after every
fsync and rename, and around every commit. With PostgreSQL a crash loses the connection, and with it the transaction.
"""

import os
import shutil
from contextlib import contextmanager, suppress

import collector_simulation as simulation
import psycopg
import pytest

from deniable.service.collector import init_folder
from deniable.stores.collector import sqlite_store
from deniable.stores.collector.postgresql_store import PostgresqlStore

PLACES = 5


class Crash(Exception):
    """The process has ended: what it does afterwards happens to files that nobody reads."""


class CrashPoint:
    """Ends a life when it is passed for the n-th time; `happened` calls what keeps the state of that moment."""

    def __init__(self, happened):
        self.left, self.fired, self._happened = None, False, happened

    def arm(self, left):
        self.left, self.fired = left, False

    def passed(self):
        if self.fired:
            raise Crash
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.fired = True
                self._happened()
                raise Crash

    def around(self, function):
        def called(*arguments, **options):
            self.passed()
            result = function(*arguments, **options)
            self.passed()
            return result

        return called


@contextmanager
def patched(point):
    """Pass the point around every fsync, rename and commit."""
    transaction, add, inner = sqlite_store.transaction, PostgresqlStore.add, PostgresqlStore._add

    @contextmanager
    def watched(connection):
        point.passed()
        with transaction(connection):
            yield
            point.passed()
        point.passed()

    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "replace", "rename"):
            patch.setattr(os, name, point.around(getattr(os, name)))
        patch.setattr(sqlite_store, "transaction", watched)
        patch.setattr(PostgresqlStore, "add", point.around(add))
        patch.setattr(PostgresqlStore, "_add", point.around(inner))
        yield


def every_crash(folder, reports):
    """End an upload, and a seal, before and after each fsync, rename and commit; returns how many there are."""
    mine = tuple(number for number, (table, *_) in enumerate(reports) if table == "users")
    ends = 0
    for name in ("upload", "seal"):
        ended, at = True, 0
        while ended:
            crashing = simulation.Operation(name, mine[4:8] if name == "upload" else (), at)
            steps = [simulation.Operation("upload", mine[:4]), crashing, simulation.Operation("upload", mine[:8])]
            ended = simulate_here(folder, reports, [*steps, simulation.Operation("seal")], True, every=True)
            ends, at = ends + ended, at + 1
    return ends


def simulate_here(folder, reports, operations, asked, *, every=False):
    """A list of operations on one folder; returns how many lives ended inside an operation.

    With `every`, the number of an operation's end is exact; otherwise one of the first few is taken.
    """
    simulation.empty_folder(folder)
    state = {"folder": folder, "copies": 0}

    def keep():
        state["copies"] += 1
        copied = folder.with_name(f"life-{state['copies']}")
        shutil.rmtree(copied, ignore_errors=True)
        shutil.copytree(state["folder"], copied)
        state["next"] = copied

    point = CrashPoint(keep)

    def begin_again(life, *, crashed):
        with suppress(Crash):
            life.collector.close()
        if crashed:
            state["folder"] = state["next"]
        return simulation.Life(state["folder"], reports)

    model, ends = simulation.Model(), 0
    with patched(point):
        life = simulation.Life(folder, reports)
        for operation in operations:
            if operation.name == "kill":
                keep()
                life = begin_again(life, crashed=True)
                continue
            ended = perform(life, point, model, operation, reports, places=None if every else PLACES)
            if ended or operation.name == "stop":
                life = begin_again(life, crashed=ended)
            ends += ended
        life.collector.close()
    simulation.check_state(model, *simulation.final_state(state["folder"], asked, sealed=asked))
    return ends


def perform(life, point, model, operation, reports, places=PLACES):
    """Do one thing, and compare with the model; says whether the life ended in the middle."""
    at = operation.ends_at
    point.arm(at if at is None or places is None else at % places)
    told = None
    with suppress(Crash):
        told = life.perform(operation)
    point.left = None
    if not point.fired:
        simulation.learn(model, operation, reports, told)
        return False
    for upload in simulation.uploads_of(operation, reports):
        model.unanswered(upload)
    return True


def simulate_two_servers(address):
    """Lists of operations on two servers with one database; a life that ends loses its connection."""

    def run(folder, reports, operations, asked):
        folders = [folder.with_name(f"server-{number}") for number in range(2)]
        for mine in folders:
            if not mine.exists():
                init_folder(simulation.SHOP, mine, database=address)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("TRUNCATE deniable_reports, deniable_counts, deniable_writers")
            connection.execute("UPDATE deniable_rounds SET is_open = true")
        lives, model, ends = [simulation.Life(mine, reports) for mine in folders], simulation.Model(), 0

        def lose_connection():
            writer = lives[number].collector.store._writer
            with psycopg.connect(address, autocommit=True) as connection:
                connection.execute("SELECT pg_terminate_backend(%s)", (writer.info.backend_pid,))

        point = CrashPoint(lose_connection)
        with patched(point):
            for operation in operations:
                number = operation.number % 2
                if operation.name == "full":
                    continue  # the disk is the database's
                ended = operation.name == "kill" or perform(lives[number], point, model, operation, reports)
                if ended or operation.name == "stop":
                    point.fired = False
                    lives[number].collector.close()
                    lives[number] = simulation.Life(folders[number], reports)
                ends += ended
            for life in lives:
                life.collector.close()
        simulation.check_state(model, *simulation.final_state(folders[0], asked, sealed=asked))
        return ends

    return run
