"""A file that is only appended to, frame by frame. Whatever a crash leaves of the last frame is noticed.

    frame = length (4 bytes) · digest (16 bytes) · kind (1 byte) · content

The digest covers the digest before it, so that frames cannot be lost, repeated or swapped in the middle. A frame that
is not whole ends the file: it was being written when the process or the machine stopped. Standard library only.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_LENGTH = struct.Struct("<I")
DIGEST_BYTES = 16
HEADER_BYTES = _LENGTH.size + DIGEST_BYTES + 1


class Frame(NamedTuple):
    """One frame: what it is, what it holds, and where it ends in the file."""

    kind: bytes
    content: memoryview
    end: int


class Chain:
    """Turns contents into frames, each bound to all before it. `key` makes the digests secret."""

    def __init__(self, name: str, key: bytes = b"") -> None:
        self._key = hashlib.blake2b(key, digest_size=32, person=b"frames").digest()
        self._last = self._digest(b"", name.encode())

    def _digest(self, last: bytes, body: bytes | memoryview) -> bytes:
        digest = hashlib.blake2b(last, key=self._key, digest_size=DIGEST_BYTES)
        digest.update(body)
        return digest.digest()

    def frame(self, kind: bytes, content: bytes) -> bytes:
        """The next frame, as bytes to append."""
        body = kind + content
        self._last = self._digest(self._last, body)
        return _LENGTH.pack(len(content)) + self._last + body

    def read(self, data: bytes | memoryview) -> Iterator[Frame]:
        """The whole frames that these bytes begin with. What comes after the last of them is not whole."""
        view, start = memoryview(data), 0
        while start + HEADER_BYTES <= len(view):
            (length,) = _LENGTH.unpack_from(view, start)
            end = start + HEADER_BYTES + length
            body = view[start + HEADER_BYTES - 1 : end]
            if len(body) != 1 + length:
                return
            digest = self._digest(self._last, body)
            if digest != view[start + _LENGTH.size : start + _LENGTH.size + DIGEST_BYTES]:
                return
            self._last = digest
            yield Frame(bytes(body[:1]), body[1:], end)
            start = end


def append(descriptor: int, data: bytes) -> None:
    """Write all bytes at the end of an open file."""
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def open_to_append(path: Path, *, mode: int, length: int | None = None) -> int:
    """Open a file to append to, made if there is none; with `length`, everything behind that is cut off."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, mode)
    try:
        if length is not None and os.fstat(descriptor).st_size > length:
            os.truncate(descriptor, length)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
