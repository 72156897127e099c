"""What a device has sent, kept in a small file so that it is never sent in other words."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from deniable.errors import Failure
from deniable.locking import Turn

_TRIES, _PAUSE = 500, 0.02


class ProcessMemory(dict[str, str]):
    """What was sent, as long as the process lives. A fork would not know what its parent has sent since."""

    def __init__(self) -> None:
        super().__init__()
        self._process = os.getpid()

    def __contains__(self, key: object) -> bool:
        known = super().__contains__(key)
        if not known and os.getpid() != self._process:
            raise Failure(
                "this client was made in another process, which may have sent other reports. Nothing was sent. "
                "Give it a memory, or make it where it is needed."
            )
        return known


class FileMemory(MutableMapping[str, str]):
    """A mapping of texts in a JSON file, replaced as a whole so that a crash leaves the old or the new one."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every other process and thread out: two that answer at once would answer differently."""
        lock = self._path.with_name(self._path.name + ".lock")
        for _ in range(_TRIES):
            try:
                os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
                break
            except FileExistsError:
                time.sleep(_PAUSE)
            except OSError as problem:
                raise self._unwritable(problem) from None
        else:
            raise Failure(
                f"the memory {self._path.name!r} is in use by another process. Nothing was sent. "
                f"If no other is running, remove {lock.name!r}."
            )
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)

    def _read(self) -> dict[str, str]:
        if not self._path.exists():
            return {}
        try:
            entries = json.loads(self._path.read_text(encoding="utf-8"))
        except ValueError:
            entries = None
        if not isinstance(entries, dict):
            # Going on would send a second, different answer and spend ε again.
            raise Failure(
                f"the memory {self._path.name!r} is damaged, so what was sent is not known. Nothing was sent. "
                "Restore the file; removing it means to spend ε a second time."
            )
        return entries

    def __getitem__(self, key: str) -> str:
        return self._read()[key]

    def __setitem__(self, key: str, value: str) -> None:
        new, entries = self._path.with_name(self._path.name + ".new"), {**self._read(), key: value}
        try:
            with new.open("w", encoding="utf-8") as file:
                json.dump(entries, file)
                file.flush()
                os.fsync(file.fileno())
            new.replace(self._path)
            _settle(self._path.parent)
        except OSError as problem:
            raise self._unwritable(problem) from None

    def _unwritable(self, problem: OSError) -> Failure:
        reason = (problem.strerror or "unknown").lower()
        return Failure(
            f"the memory {self._path.name!r} cannot be written ({reason}). Nothing was sent. "
            "Check that its folder exists, has room, and may be written to."
        )

    def __delitem__(self, key: str) -> None:
        raise Failure("a memory forgets nothing. Nothing was changed. Remove the file to spend ε a second time.")

    def __iter__(self) -> Iterator[str]:
        return iter(self._read())

    def __len__(self) -> int:
        return len(self._read())


def _settle(folder: Path) -> None:
    """See that the names in a folder are on the disk: else a power cut could bring back the memory of before."""
    if os.name == "posix":  # elsewhere folders cannot be opened
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


_TURNS: WeakValueDictionary[int, Turn] = WeakValueDictionary()
"""By the identity of a memory, as long as a client has it."""
_registering = threading.Lock()


def alone_with(memory: MutableMapping[str, str]) -> Callable[[], AbstractContextManager[None]]:
    """What keeps every other client of the same memory out: two that answer at once would answer differently.

    Who keeps the result keeps the memory too, so that its identity stays its own.
    """
    if isinstance(memory, FileMemory):
        return memory.alone
    with _registering:
        turn = _TURNS.get(id(memory))
        if turn is None:
            turn = _TURNS[id(memory)] = Turn()
    return turn.held


def _register_anew() -> None:
    """In a fork, where a thread that held the lock does not exist."""
    global _registering
    _registering = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_register_anew)
