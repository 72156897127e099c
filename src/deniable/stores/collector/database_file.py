"""Where a collector's reports are, if not in its folder: a small private file names the PostgreSQL database."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import ModuleType
from urllib.parse import parse_qs, urlsplit

from deniable.disk_faults import writing
from deniable.errors import BadInput, MissingExtra

DATABASE_FILE = "database.json"
SCHEMES = ("postgresql://", "postgres://")


def check_database(address: str) -> None:
    """Refuse what is not the address of a PostgreSQL database; it is not shown, because it may hold a password."""
    if not address.startswith(SCHEMES):
        raise BadInput("the store is not a PostgreSQL address. Nothing was started. Write postgresql://host/database.")


def check_no_password(address: str) -> None:
    """Refuse an address with a password: others can see command lines, and a folder is copied."""
    parts = urlsplit(address)
    if parts.password is not None or "password" in parse_qs(parts.query):
        raise BadInput(
            "the store's address has a password, which others can see in the list of processes. Nothing was started. "
            "Put it in a file that PGPASSFILE names, or in PGPASSWORD, and change it."
        )


def write_database(folder: Path, address: str) -> None:
    """Name the database, in a file that only its owner can read."""
    with writing(f"the file {DATABASE_FILE!r}"):
        descriptor = os.open(folder / DATABASE_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump({"postgresql": address}, file)


def read_database(folder: Path) -> str | None:
    """The address of the database, or None if the reports are in the folder."""
    try:
        content = (folder / DATABASE_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    try:
        address = json.loads(content)["postgresql"]
        check_database(address)
    except (ValueError, KeyError, TypeError, AttributeError, BadInput):
        raise BadInput(f"{DATABASE_FILE} is damaged. Nothing was started. Make the folder again.") from None
    return str(address)


def postgresql() -> ModuleType:
    """The module of the store in PostgreSQL, which needs an extra."""
    try:
        from deniable.stores.collector import postgresql_store
    except ModuleNotFoundError as missing:
        raise MissingExtra(missing.name or "psycopg", "postgresql") from None
    return postgresql_store
