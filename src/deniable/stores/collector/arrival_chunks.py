"""Uploads of one commit, table and round as one value in a file: lengths first, then everything joined.

rows × 4 numbers of 32 bits, little-endian: slot, bytes of the id, bytes of the report, bytes of the public text
                                            plus one (0 if there is none)
ids in UTF-8, reports, public texts
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

import numpy as np

from deniable.stores.collector.upload import Held, Key, Upload

_NUMBERS = 4


def packed(keys: Sequence[Key], held: Sequence[Held]) -> bytes:
    """What is held under keys of one table and round, as bytes.

    >>> list(unpacked("users", 0, packed([("users", 0, "7", 0)], [(b"report", None)])))
    [Upload(table='users', round=0, uid='7', slot=0, report=b'report', public=None)]
    """
    ids = [uid.encode() for _, _, uid, _ in keys]
    reports = [report for report, _ in held]
    texts = [b"" if public is None else public.encode() for _, public in held]
    numbers = np.empty((len(keys), _NUMBERS), dtype="<u4")
    numbers[:, 0] = [slot for *_, slot in keys]
    numbers[:, 1], numbers[:, 2] = list(map(len, ids)), list(map(len, reports))
    numbers[:, 3] = [0 if public is None else len(text) + 1 for (_, public), text in zip(held, texts, strict=True)]
    return b"".join((len(keys).to_bytes(4, "little"), numbers.tobytes(), *ids, *reports, *texts))


def unpacked(table: str, round_: int, content: bytes) -> Iterator[Upload]:
    """The uploads of `packed` bytes; a ValueError if they are damaged."""
    count = int.from_bytes(content[:4], "little")
    first = 4 + 4 * _NUMBERS * count
    numbers = np.frombuffer(content[4:first], dtype="<u4").reshape(count, _NUMBERS).astype(np.int64)
    slots, sizes, has_text = numbers[:, 0].tolist(), numbers[:, 1:].copy(), (numbers[:, 3] > 0).tolist()
    sizes[:, 2] -= numbers[:, 3] > 0
    if first + int(sizes.sum()) != len(content):
        raise ValueError("the lengths do not add up")
    cuts = pairwise(accumulate(sizes.T.ravel().tolist(), initial=first))
    parts = [content[begin:end] for begin, end in cuts]
    for row in range(count):
        text = parts[2 * count + row].decode() if has_text[row] else None
        yield Upload(table, round_, parts[row].decode(), slots[row], parts[count + row], text)
