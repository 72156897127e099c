"""A real PostgreSQL for tests: Debian's or another on this machine, started in a temporary folder, on a socket only."""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
from contextlib import suppress
from functools import cache
from itertools import count
from pathlib import Path

import pytest

_NUMBERS = count()


def _programs():
    """The folder of initdb and postgres, or None."""
    folders = [*Path("/usr/lib/postgresql").glob("*/bin"), Path("/usr/local/pgsql/bin"), Path("/opt/homebrew/bin")]
    chosen = shutil.which("initdb")
    folders = [*([Path(chosen).parent] if chosen else []), *sorted(folders, reverse=True)]
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


def _unprivileged():
    """How to start a process as somebody else: PostgreSQL refuses to run as root."""
    return {"user": "nobody", "group": None, "extra_groups": []} if os.geteuid() == 0 else {}


@cache
def _server():
    """(folder of the socket, None), or (None, why there is no server)."""
    programs = _programs()
    if programs is None:
        return None, "no PostgreSQL here. Install Debian's package postgresql, or put initdb on the PATH"
    folder = Path(tempfile.mkdtemp(prefix="dn-pg-", dir="/tmp"))
    data, as_other = folder / "data", {key: value for key, value in _unprivileged().items() if value is not None}
    if as_other:
        shutil.chown(folder, as_other["user"])
    made = subprocess.run(
        [programs / "initdb", "-D", data, "-U", "collector", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"],
        capture_output=True, text=True, check=False, cwd=folder, **as_other,
    )  # fmt: skip
    if made.returncode:
        return None, f"initdb fails: {made.stderr[-300:]}"
    # Collectors are killed in tests, the database is not, so it need not wait for the disk.
    options = {"listen_addresses": "", "unix_socket_directories": str(folder), "shared_buffers": "16MB",
               "max_connections": "60", "wal_level": "minimal", "max_wal_senders": "0",
               "fsync": "off"}  # fmt: skip
    flags = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [programs / "postgres", "-D", data, *flags], stdout=log, stderr=log, cwd=folder, start_new_session=True,
            **as_other,
        )  # fmt: skip
    atexit.register(_stop, process, folder)
    import psycopg

    for _ in range(300):
        with suppress(psycopg.OperationalError), psycopg.connect(_address(folder)):
            return folder, None
        if process.poll() is not None:
            break
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
    return None, f"postgres does not start: {(folder / 'log').read_text()[-300:]}"


def _address(folder):
    return f"postgresql://collector@/postgres?host={folder}"


def _stop(process, folder):
    process.send_signal(signal.SIGQUIT)  # at once: nothing of it is needed
    with suppress(subprocess.TimeoutExpired):
        process.wait(20)
    shutil.rmtree(folder, ignore_errors=True)


def new_database():
    """The address of an empty database (a schema of one). Skips the test, with a reason, where there is no server."""
    folder, problem = _server()
    if folder is None:
        pytest.skip(problem)
    import psycopg

    name, address = f"test_{os.getpid()}_{next(_NUMBERS)}", _address(folder)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
    return f"{address}&options=-csearch_path%3D{name}"
