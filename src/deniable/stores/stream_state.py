"""States of streams in private files, and a journal that never publishes one position twice with other values.

Two releases of the same position under the same noise would differ by the data. So before values are published, the
file announces how many there are and a keyed digest of them. A run that is interrupted after that can only be resumed
with the same values, and then publishes exactly what it would have published. The file is locked while it is in use.
"""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidData, InvalidParameter
from deniable.files import LockedFile
from deniable.sealing import SEAL, damaged, sealed, unsealed

VERSION = 2
FORMAT = "deniable stream state"


class Publishing(Protocol):
    """What a journal needs of a publisher."""

    settings: Any

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
        self._holds = holds
        self._file = LockedFile(path, "the state file", cost="Nothing was published")
        try:
            self.record = self._read()
        except BaseException:
            self._file.close()
            raise

    def _read(self) -> dict[str, Any] | None:
        content = self._file.read()
        if content is None:
            return None
        path = self._file.path
        if path.stat().st_mode & 0o077:
            raise InvalidData(
                f"the state file can be read by others, and it holds {self._holds}",
                f"Run chmod 600 {path.name}, and start anew if anybody may have read it.",
            )
        try:
            record = json.loads(content)
        except (ValueError, RecursionError):
            raise damaged("state file") from None
        if not isinstance(record, dict) or record.get("format") != FORMAT or record.get("version") != VERSION:
            raise InvalidData(
                "this is not a state file of this version, or it is damaged", "Use the version that wrote it."
            )
        if not isinstance(record.get("state"), dict):
            raise damaged("state file")
        unsealed(_covered(record), _key(record), "state file")
        return record

    def write(self, state: dict[str, Any], **more: Any) -> None:
        """Replace the file, whole or not at all, and see that it is on the disk."""
        record = {"format": FORMAT, "version": VERSION, "state": state, **more}
        record[SEAL] = sealed(_covered(record), _key(record))[SEAL]
        self._file.write(json.dumps(record).encode())

    def close(self) -> None:
        """Let others open the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _covered(record: dict[str, Any]) -> dict[str, Any]:
    """What the seal of a file covers. A state has one of its own, which stands for it."""
    return {**record, "state": str(record["state"].get(SEAL))}


def _key(record: dict[str, Any]) -> bytes:
    """Nobody without the noise's key could have made the state's seal, so it serves as a key itself."""
    return str(record["state"].get(SEAL)).encode()


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
        self.publisher.check(values)  # refused ones are not gathered
        missing = self.replaying - sum(part.size for part in self._gathered)
        self._gathered.append(values[:missing])
        if values.size < missing:
            return self.publisher.push_many(np.zeros(0, dtype=np.int64))
        if self._digest(*self._gathered) != self._announced["digest"]:
            self._gathered = []
            raise InvalidData(
                f"an interrupted run had announced {self.replaying:,} other values for these positions",
                "Send the same values again, or start anew with a new state file and new noise.",
            )
        released = [self.publisher.push_many(part) for part in self._gathered]
        self._announced, self._gathered = None, []
        rest = values[missing:]
        return np.concatenate((*released, self._publish(rest))) if rest.size else np.concatenate(released)

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

    def _digest(self, *parts: NDArray[Any]) -> str:
        """Of the steps of the grid, which is what noise is added to: floats of large numbers would be alike."""
        digest = hashlib.blake2b(key=self._key, person=b"announced")
        for part in parts:
            digest.update(self.publisher.settings.grid.units(part).astype("<i8").tobytes())
        return digest.hexdigest()
