"""Addresses of keystreams: names become keys, and what was drawn from is noted, so that no bit is used twice."""

from __future__ import annotations

import hashlib
import operator

from deniable.errors import InvalidParameter, RandomnessFault

Name = str | int
KEY_BYTES = 32

Taken = dict[bytes, bytes]
"""Digests of the keys of keystreams that were drawn from. A dictionary, since its `setdefault` is atomic."""

OF_GIVEN_KEYS: Taken = {}
"""Of all keys that were handed in, for the life of the process: two sources may have been made with the same one."""


def take(taken: Taken, stream_key: bytes, *, again: bool = False) -> None:
    """Note that a keystream is drawn from; refuse it if it was before, unless the caller asks for it `again`.

    There is no lock here that a fork could leave shut: of two threads, one finds its own digest and one the other's.
    """
    mine = hashlib.blake2b(stream_key, digest_size=16, person=b"taken").digest()
    if taken.setdefault(mine, mine) is not mine and not again:
        raise RandomnessFault(
            "these random bits were drawn before in this process. Used twice, they would add the same noise to "
            "different data, and the difference of the results would be the data. Nothing was drawn. Use another "
            "stream name, or a new SecureSource()."
        )


def checked_part(part: Name) -> Name:
    """A part of a name: a text, or an integer of any library."""
    if isinstance(part, str):
        return str(part)
    try:
        return operator.index(part)
    except TypeError:
        raise InvalidParameter("name", "must be made of texts and integers", "Convert it first.") from None


def stream_key(key: bytes, name: tuple[Name, ...]) -> bytes:
    """A key of its own for every stream name; parts are tagged and measured, so no two names read alike."""
    digest = hashlib.blake2b(key=key, digest_size=KEY_BYTES, person=b"stream")
    for part in name:
        data = str(part).encode()
        digest.update(f"{type(part).__name__}:{len(data)}:".encode() + data)
    return digest.digest()
