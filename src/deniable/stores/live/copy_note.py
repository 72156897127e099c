"""A note about the newest copy of a store, outside of it: of all copies on this machine only one goes on.

Two copies that both go on would add the same noise to different values, and the difference would be the data. The note
is a small file per stream, in a private folder of the user. It says how many values the log has taken, and is locked as
long as a copy is open. A copy whose log is shorter than that is an old one, and is refused. The number is written after
the log and before any noise is used, without waiting for the disk: a killed process leaves it behind; after a power cut
it may be too low, and then nobody is refused wrongly. Copies on other machines, and of other users, are not noticed.
"""

from __future__ import annotations

import os
import re
import struct

from deniable.errors import Failure, RandomnessFault
from deniable.files import Lock
from deniable.private_folders import private_folder

_NOTED = struct.Struct("<qq")
_NOTE_COST = "Nothing was published"


class CopyNote:
    """The note of the stream called `name` (32 hexadecimal digits), held until `close`."""

    def __init__(self, name: str) -> None:
        if not re.fullmatch("[0-9a-f]{32}", name):
            raise Failure(f"the store has no name. {_NOTE_COST}. Restore it from a copy.")
        folder = private_folder("stores", "note which copy of a store is the newest", _NOTE_COST)
        self._lock = Lock(folder / name, "the stream of", cost=_NOTE_COST)
        try:
            self._descriptor = os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o600)
        except BaseException:
            self._lock.close()
            raise
        self._path = folder / name

    def check(self, taken: int) -> None:
        """Refuse a copy whose log has taken fewer values than another one had."""
        noted = os.pread(self._descriptor, _NOTED.size, 0)
        if len(noted) < _NOTED.size:
            return
        number, again = _NOTED.unpack(noted)
        if number != ~again:
            raise Failure(
                f"the note {str(self._path)!r} is damaged, so which copy of the store is the newest is not known. "
                f"{_NOTE_COST}. Remove it if you are sure that this is the newest."
            )
        if number > taken:
            raise RandomnessFault(
                "this is an old copy of the store, or its log was cut: another copy on this machine has taken more "
                f"values, and going on would publish the same noise with other values. {_NOTE_COST}. Go on with the "
                "newest copy, or start a new stream."
            )

    def write(self, taken: int) -> None:
        """Note how many values the log has taken."""
        os.pwrite(self._descriptor, _NOTED.pack(taken, ~taken), 0)

    def close(self) -> None:
        """Let another copy of the store be opened."""
        if self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)
        self._lock.close()
