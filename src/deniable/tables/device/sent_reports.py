"""What a device has sent, kept in a small file so that it always repeats its first answer."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from weakref import WeakValueDictionary

from deniable.errors import Failure, InvalidData, InvalidParameter
from deniable.files import LockedFile, is_same_path
from deniable.ledger import Ledger
from deniable.locking import Turn
from deniable.sealing import sealed, unsealed

ReportMemory = MutableMapping[str, str]
"""What was sent, by what was asked: any mapping from texts to texts can be the memory of a device."""
_WAIT_S = 10.0
_REPORTS = re.compile("([0-9a-f]{32})+")  # of tables and of streams: multiples of 16 bytes
_PUBLIC_KEY = b"memory"  # the seal is there for accidents; whoever can change the file can read the device anyway


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
        self._held: LockedFile | None = None  # while somebody is alone with it

    def is_kept_in(self, path: str | Path) -> bool:
        """Whether the memory is this file."""
        return is_same_path(self._path, path)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep every other process and thread out: two that answer at once would answer differently."""
        with LockedFile(self._path, "the memory", cost="Nothing was sent", wait_s=_WAIT_S) as file:
            self._held = file
            try:
                yield
            finally:
                self._held = None

    def _entries(self) -> dict[str, str]:
        if self._held is None:
            with self.alone():
                return self._entries()
        content = self._held.read()
        if content is None:
            return {}
        entries = _read(content)
        if entries is None:
            # Going on would send a second, different answer and spend ε again.
            raise Failure(
                f"the memory {self._path.name!r} is damaged, so what was sent is not known. Nothing was sent. "
                "Restore the file; removing it means to spend ε a second time."
            )
        return entries

    def __getitem__(self, key: str) -> str:
        return self._entries()[key]

    def __setitem__(self, key: str, value: str) -> None:
        if self._held is None:
            with self.alone():
                self[key] = value
                return
        self._held.write(json.dumps(sealed({**self._entries(), key: value}, _PUBLIC_KEY)).encode())

    def __delitem__(self, key: str) -> None:
        raise Failure("a memory forgets nothing. Nothing was changed. Remove the file to spend ε a second time.")

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries())

    def __len__(self) -> int:
        return len(self._entries())


def _read(content: bytes) -> dict[str, str] | None:
    """What was sent; None if the file is damaged: a single changed letter of a name would mean a second answer."""
    try:
        entries = unsealed(json.loads(content), _PUBLIC_KEY)
        return entries if all(_REPORTS.fullmatch(sent) for sent in entries.values()) else None
    except (ValueError, TypeError, AttributeError, RecursionError, InvalidData):
        return None


def memory_of(memory: ReportMemory | str | Path | None, ledger: Ledger | None) -> ReportMemory:
    """What remembers: a file where a path is given, and this process where nothing is."""
    if not isinstance(memory, (str, Path)):
        return ProcessMemory() if memory is None else memory
    if ledger is not None and ledger.is_kept_in(memory):
        raise InvalidParameter("ledger", "and the memory are one file", "Use two files.")
    return FileMemory(memory)


def name_of_draw_at(key: str) -> str:
    """Where the memory keeps that a ledger pays for an answer, since before it was drawn."""
    return f"{key}:draw"


def name_of_draw(memory: MutableMapping[str, str], key: str) -> str:
    """What a ledger calls the draw of an answer, so that the answer is paid for once however often it is sent.

    The name is random and kept next to the answer. An answer that is about to be drawn gets a new one: two draws may
    come out alike, and both are to be paid for.
    """
    name = name_of_draw_at(key)
    if key not in memory or name not in memory:
        memory[name] = secrets.token_hex(32)
    return hashlib.sha256(f"{key}:{memory[name]}".encode()).hexdigest()


_TURNS_BY_MEMORY: WeakValueDictionary[int, Turn] = WeakValueDictionary()
"""By the identity of a memory, as long as a client has it."""
_registering = threading.Lock()


def alone_with(memory: MutableMapping[str, str]) -> Callable[[], AbstractContextManager[None]]:
    """What keeps every other client of the same memory out: two that answer at once would answer differently.

    Whoever keeps the result keeps the memory too, so that no other object gets its identity.
    """
    if isinstance(memory, FileMemory):
        return memory.alone
    with _registering:
        turn = _TURNS_BY_MEMORY.get(id(memory))
        if turn is None:
            turn = _TURNS_BY_MEMORY[id(memory)] = Turn()
    return turn.held


def _register_anew() -> None:
    """In a fork, where a thread that held the lock does not exist."""
    global _registering
    _registering = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_register_anew)
