"""Temporary folders for what does not fit into memory: private, and removed with their process.

A folder has mode 0700 and holds a file that its process keeps locked. The lock ends with the process, however that
ends. Whoever makes the next folder next to it removes those that nobody holds.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

from deniable.errors import Failure, InvalidParameter
from deniable.files import try_lock
from deniable.wording import shown

SPILL_PREFIX = ".deniable-spill-"
_LOCK = "lock"


class SpillFolder:
    """A folder that is removed by `close`, with the last reference to it, or by the next run after a kill."""

    def __init__(self, parent: Path | None = None) -> None:
        parent = Path(tempfile.gettempdir()) if parent is None else parent
        remove_leftovers(parent)
        try:
            self.path, lock = _made(parent)
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise Failure(
                f"folder {shown(parent)} cannot be used for spill files ({reason}). Nothing was read or written. "
                "Check the path, or choose another folder with spill= or --spill."
            ) from None
        self._end = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def close(self) -> None:
        """Remove it with all that it holds."""
        self._end()

    def __enter__(self) -> SpillFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def spill_parent(chosen: str | Path | None, out: str | Path | None) -> Path | None:
    """The folder that a run spills into: the chosen one, or that of its output; None for the system's."""
    if chosen is not None:
        if not Path(chosen).is_dir():
            raise InvalidParameter("spill", "must be a folder that exists", "Make it first.")
        return Path(chosen)
    return None if out is None else Path(out).absolute().parent


def remove_leftovers(parent: Path) -> None:
    """Remove this user's spill folders that no process holds."""
    with suppress(OSError):
        for path in parent.glob(f"{SPILL_PREFIX}*"):
            with suppress(OSError):
                _remove_if_left(path)


def _made(parent: Path) -> tuple[Path, int]:
    while True:
        path = Path(tempfile.mkdtemp(prefix=SPILL_PREFIX, dir=parent.absolute()))
        # Between these steps another process may take the folder for a leftover. It then has the lock, or the folder
        # is gone: a new one is made.
        try:
            lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        except FileNotFoundError:
            continue
        if try_lock(lock) and os.fstat(lock).st_nlink:
            return path, lock
        os.close(lock)


def _remove_if_left(path: Path) -> None:
    if path.is_symlink() or not path.is_dir() or path.lstat().st_uid != os.getuid():
        return
    try:
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        path.rmdir()  # it ended before it locked anything; one that is about to be locked is made again
        return
    try:
        if try_lock(lock):
            _emptied(path)
    finally:
        os.close(lock)


def _remove(path: Path, lock: int, owner: int) -> None:
    if os.getpid() == owner:  # a fork has the objects of its process, too
        with suppress(OSError):
            _emptied(path)
    os.close(lock)


def _emptied(path: Path) -> None:
    """Remove a folder, the lock last: if a kill interrupts this, the next run finds the rest."""
    for entry in path.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        elif entry.name != _LOCK:
            entry.unlink(missing_ok=True)
    (path / _LOCK).unlink(missing_ok=True)
    path.rmdir()
