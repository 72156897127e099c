"""Files that one holder at a time may change, and that a crash leaves whole. Standard library only.

A lock belongs to the operating system. It is on a file next to the one that it protects, and ends with its process,
however that ends. Links are followed first: by whatever name a file is reached, it has the same lock.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Self
from weakref import WeakSet

from deniable.disk_faults import unwritable
from deniable.errors import Failure

_PAUSE_S = 0.02

if sys.platform == "win32":  # pragma: no cover
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def try_lock(descriptor: int) -> bool:
    """Lock an open file, unless somebody else has. The lock ends when the file is closed, or the process ends."""
    try:
        _lock(descriptor)
    except (BlockingIOError, PermissionError):
        return False
    return True


def is_same_path(first: str | os.PathLike[str], second: str | os.PathLike[str]) -> bool:
    """Whether two paths lead to one file, which need not exist."""
    try:
        return Path(first).resolve() == Path(second).resolve()
    except (OSError, RuntimeError):  # a link to itself, which is refused when it is locked
        return False


class InUse(Failure):
    """Another process, or another thread of this one, holds the lock."""


class Lock:
    """Its holder is alone with the file or folder `path`, among all threads and processes of this machine.

    `what` and `cost` are for messages: what is locked, and what a refusal cost.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        what: str = "the file",
        *,
        cost: str = "Nothing was read or written",
        wait_s: float = 0.0,
    ) -> None:
        self._what, self._cost = what, cost
        try:
            self.path = Path(path).resolve()
            endless = self.path.is_symlink()  # from Python 3.13 on, a link to itself is resolved to itself
        except (OSError, RuntimeError):
            endless = True
        if endless:
            raise Failure(f"{what} {Path(path).name!r} is a link to itself. {cost}. Give its real path.")
        self._name = self.path.with_name(self.path.name + ".lock")
        end = time.monotonic() + wait_s
        while (descriptor := self._attempt()) is None:
            if time.monotonic() >= end:
                raise InUse(
                    f"{what} {self.path.name!r} is in use by another process or thread. {cost}. "
                    "Wait until that has ended."
                )
            time.sleep(_PAUSE_S)
        self._descriptor: int | None = descriptor
        _HELD.add(self)

    def _attempt(self) -> int | None:
        try:
            descriptor = os.open(self._name, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as problem:
            raise self._unwritable(problem) from None
        try:
            # The last holder may have removed the file between the two calls: then its name is another lock's.
            if try_lock(descriptor) and _is_at(descriptor, self._name):
                return descriptor
        except OSError as problem:
            os.close(descriptor)
            raise self._unwritable(problem) from None
        os.close(descriptor)
        return None

    def _unwritable(self, problem: OSError) -> Failure:
        return unwritable(f"{self._what} {self.path.name!r}", problem, self._cost)

    def close(self) -> None:
        """Let others in. A second call does nothing."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        with suppress(OSError):
            if sys.platform != "win32" and _is_at(descriptor, self._name):
                self._name.unlink()
        os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


_HELD: WeakSet[Lock] = WeakSet()


def _let_go() -> None:
    """A fork has the locks of its parent too, and must not keep them after the parent has ended."""
    for lock in _HELD:
        if lock._descriptor is not None:
            os.close(lock._descriptor)
            lock._descriptor = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)


class LockedFile(Lock):
    """A locked file that is read and replaced as a whole. After a crash it holds the old bytes or the new ones."""

    def read(self) -> bytes | None:
        """The content of the file; None if there is none."""
        try:
            about = self.path.stat()
            if not stat.S_ISREG(about.st_mode):
                raise Failure(
                    f"{self._what} {self.path.name!r} is not a regular file. {self._cost}. Give the path of another."
                )
            if about.st_nlink > 1:
                raise Failure(
                    f"{self._what} {self.path.name!r} has {about.st_nlink} names (hard links), and only this one would "
                    f"be replaced. {self._cost}. Remove the others."
                )
            return self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as problem:
            reason = (problem.strerror or "unknown").lower()
            raise Failure(
                f"{self._what} {self.path.name!r} cannot be read ({reason}). {self._cost}. Check who may read it."
            ) from None

    def write(self, content: bytes, *, mode: int = 0o600, durable: bool = True) -> None:
        """Replace the file, whole or not at all; `durable` waits until it is on the disk."""
        new, cost = self.path.with_name(self.path.name + ".new"), self._cost
        try:
            if self._descriptor is None or not _is_at(self._descriptor, self._name):
                raise Failure(
                    f"the lock {self._name.name!r} was removed, or is another process's, so somebody else may use "
                    f"{self._what}. {self._cost}. Start again, and leave locks where they are."
                )
            new.unlink(missing_ok=True)  # left by a killed holder
            _write(new, content, mode, durable=durable)
            os.replace(new, self.path)  # noqa: PTH105 - as the other calls, to be counted in tests
            if durable:
                cost = "Its new content is there, and a power cut may undo it; nothing more was done"
                settle(self.path.parent)
        except OSError as problem:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            raise unwritable(f"{self._what} {self.path.name!r}", problem, cost) from None


def _write(path: Path, content: bytes, mode: int, *, durable: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        rest = memoryview(content)
        while rest:
            rest = rest[os.write(descriptor, rest) :]
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def settle(folder: Path) -> None:
    """Wait until the names in a folder are on the disk: otherwise a power cut could bring back the old file."""
    if sys.platform != "win32":  # which cannot open folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the open file is still the one of that name."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
