"""Addresses of keystreams: names become keys, and keystreams that were drawn from are recorded, so that no bit is used
twice.
"""

from __future__ import annotations

import hashlib
import operator

from deniable.errors import InvalidParameter, RandomnessFault

Name = str | int
KEY_BYTES = 32

Taken = dict[bytes, bytes]
"""Digests of the keys of keystreams that were drawn from. A dictionary, since its `setdefault` is atomic."""

OF_GIVEN_KEYS: Taken = {}
"""For all keys that callers passed in, as long as the process lives: two sources may share a key."""


def take(taken: Taken, stream_key: bytes, *, again: bool = False) -> None:
    """Note that a keystream is drawn from; refuse it if it was before, unless the caller asks for it `again`.

    Without a lock, which a fork could leave shut: of two threads, one gets its own digest back and the other does not.
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
    """A key of its own for every stream name; parts carry their type and length, so that no two names collide."""
    digest = hashlib.blake2b(key=key, digest_size=KEY_BYTES, person=b"stream")
    for part in name:
        data = str(part).encode()
        digest.update(f"{type(part).__name__}:{len(data)}:".encode() + data)
    return digest.digest()
