"""The state of a stream in one private file, which is replaced as a whole and locked while it is in use."""

from __future__ import annotations

import json
import os
from typing import Any, Self

from deniable.errors import InvalidData
from deniable.files import LockedFile
from deniable.sealing import SEAL, damaged, sealed, unsealed

FILE_VERSION = 2
STATE_FORMAT = "deniable stream state"


class StateFile:
    """One locked file of mode 0600. `record` is what it held when it was opened; None if it is new.

    `holds` names the secret in it, for messages.
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
        return checked_record(content)

    def write(self, state: dict[str, Any], **more: Any) -> None:
        """Replace the file, whole or not at all, and wait until it is on the disk."""
        record = {"format": STATE_FORMAT, "version": FILE_VERSION, "state": state, **more}
        record[SEAL] = sealed(_covered(record), _key(record))[SEAL]
        self._file.write(json.dumps(record).encode())

    def close(self) -> None:
        """Let others open the file."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def checked_record(content: bytes) -> dict[str, Any]:
    """What a state file holds, compared with its seal. The state has a seal of its own."""
    try:
        record = json.loads(content)
    except (ValueError, RecursionError):
        raise damaged("state file") from None
    if not isinstance(record, dict) or record.get("format") != STATE_FORMAT or record.get("version") != FILE_VERSION:
        raise InvalidData(
            "this is not a state file of this version, or it is damaged", "Use the version that wrote it."
        )
    if not isinstance(record.get("state"), dict):
        raise damaged("state file")
    unsealed(_covered(record), _key(record), "state file")
    return record


def _covered(record: dict[str, Any]) -> dict[str, Any]:
    """What the seal of a file covers. A state has a seal of its own, which stands for it."""
    return {**record, "state": str(record["state"].get(SEAL))}


def _key(record: dict[str, Any]) -> bytes:
    """The state's own seal: nobody without the noise's key could have made it, so it can be a key itself."""
    return str(record["state"].get(SEAL)).encode()
