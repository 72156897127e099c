"""States of streams in private files, and a journal that never publishes one position twice with other values.

Two releases of the same position under the same noise would differ by the data. So before values are published, the
file announces how many there are and a keyed digest of them. A run that is interrupted after that can only be resumed
with the same values, and then publishes exactly what it would have published. The file is locked while it is in use.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from deniable.errors import Failure, InvalidData, InvalidParameter

VERSION = 1
FORMAT = "deniable stream state"


class Publishing(Protocol):
    """What a journal needs of a publisher."""

    def check(self, values: Any) -> None:
        """Refuse what cannot be published."""

    def push_many(self, values: Any) -> NDArray[Any]:
        """Publish values."""

    def state(self) -> dict[str, Any]:
        """Everything needed to go on."""


class StateFile:
    """One locked file of mode 0600. `record` is what it held when it was opened, None if it was new.

    `holds` says what others must not read there.
    """

    def __init__(self, path: str | os.PathLike[str], *, holds: str = "values and the noise's key") -> None:
        self.path, self._holds = Path(path), holds
        self._lock = os.open(f"{self.path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise Failure(
                "another process is using this state file. Nothing was published. Wait until it has ended."
            ) from None
        try:
            self.record = self._read()
        except BaseException:
            os.close(self._lock)
            raise

    def _read(self) -> dict[str, Any] | None:
        if not self.path.exists():
            return None
        if self.path.stat().st_mode & 0o077:
            raise InvalidData(
                f"the state file can be read by others, and it holds {self._holds}",
                f"Run chmod 600 {self.path.name}, and start anew if anybody may have read it.",
            )
        try:
            record = json.loads(self.path.read_text())
        except ValueError:
            raise InvalidData("the state file is damaged", "Start anew, with a new file.") from None
        if not isinstance(record, dict) or record.get("format") != FORMAT or record.get("version") != VERSION:
            raise InvalidData("this is no state file of this version", "Use the version that wrote it.")
        return record

    def write(self, state: dict[str, Any], **more: Any) -> None:
        """Replace the file, whole or not at all, and see that it is on the disk."""
        record = {"format": FORMAT, "version": VERSION, "state": state, **more}
        new = self.path.with_name(self.path.name + ".new")
        new.unlink(missing_ok=True)
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(record, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self.path)
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def close(self) -> None:
        """Let others open the file."""
        os.close(self._lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Journal:
    """Publishes through a state file: every batch is announced there before it leaves."""

    def __init__(self, file: StateFile, publisher: Publishing) -> None:
        self.publisher, self._file = publisher, file
        announced = (file.record or {}).get("announced")
        self._announced: dict[str, Any] | None = announced
        self._gathered: list[NDArray[Any]] = []
        key = publisher.state()["key"]
        if key is None:
            raise InvalidParameter("source", "is a simulation's, whose key is not kept", "Use key=, or no state file.")
        self._key = bytes.fromhex(key)

    @property
    def replaying(self) -> int:
        """How many values an interrupted run had announced, which must come again first."""
        return 0 if self._announced is None else int(self._announced["count"])

    def push_many(self, values: NDArray[Any]) -> NDArray[Any]:
        """Publish values. Those that an interrupted run had announced are compared before anything leaves."""
        values = np.asarray(values)
        if self._announced is None:
            return self._publish(values) if values.size else self.publisher.push_many(values)
        missing = self.replaying - sum(part.size for part in self._gathered)
        self._gathered.append(values[:missing])
        if values.size < missing:
            return self.publisher.push_many(np.zeros(0, dtype=np.int64))
        again = np.concatenate(self._gathered)
        if self._digest(again) != self._announced["digest"]:
            self._gathered = []
            raise InvalidData(
                f"an interrupted run had announced {self.replaying:,} other values for these positions",
                "Send the same values again, or start anew with a new state file and new noise.",
            )
        self._announced, self._gathered = None, []
        first = self.publisher.push_many(again)
        rest = values[missing:]
        return np.concatenate((first, self._publish(rest))) if rest.size else first

    def abandon(self) -> None:
        """It is not certain that the announced values left: the next run has to send them again."""
        self._file.close()

    def close(self) -> None:
        """All announced values are published: the next run starts after them."""
        if self._announced is None:
            self._file.write(self.publisher.state(), announced=None)
        self._file.close()

    def _publish(self, values: NDArray[Any]) -> NDArray[Any]:
        self.publisher.check(values)  # refused values are not announced
        announced = {"count": int(values.size), "digest": self._digest(values)}
        self._file.write(self.publisher.state(), announced=announced)
        return self.publisher.push_many(values)

    def _digest(self, values: NDArray[Any]) -> str:
        return hashlib.blake2b(values.astype("<f8").tobytes(), key=self._key, person=b"announced").hexdigest()
