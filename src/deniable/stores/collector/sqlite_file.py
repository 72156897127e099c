"""Connections to the store's SQLite file: one writer that waits for the disk, transactions, errors without data."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from deniable.stores.collector.upload import StoreFailure
from deniable.stores.collector.upload_columns import DamagedContent

_WAIT_MS = 10_000
_WAL_PAGES = 8_192
"""So many pages wait in the log before they are copied into the file: about what arrives before rows settle, so that
most of it is never copied."""


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """What happens inside is on the disk when this ends; after an error nothing of it has happened."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def opened(path: Path, *, create: bool = False) -> sqlite3.Connection:
    """A connection, which somebody has to close."""
    uri = path.resolve().as_uri() + ("?mode=rwc" if create else "?mode=rw")
    with as_failures(path):
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        try:
            connection.execute(f"PRAGMA busy_timeout={_WAIT_MS}")
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(f"PRAGMA wal_autocheckpoint={_WAL_PAGES}")
            connection.execute("PRAGMA synchronous=FULL")  # a commit waits for the disk
        except BaseException:
            connection.close()
            raise
    return connection


@contextmanager
def connected(path: Path, *, create: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection for a while."""
    connection = opened(path, create=create)
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def as_failures(path: Path) -> Iterator[None]:
    """SQLite's errors as failures: they say nothing about rows."""
    try:
        yield
    except sqlite3.Error as problem:
        code = getattr(problem, "sqlite_errorname", type(problem).__name__)
        raise StoreFailure(
            f"the store {path.name!r} cannot be used ({code}). What was being stored is not. "
            "Check that the disk has room and that no other program holds the file."
        ) from None
    except DamagedContent:
        raise StoreFailure(
            f"the store {path.name!r} is damaged. What was being stored is not. Run: deniable doctor"
        ) from None
