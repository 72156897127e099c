"""Prefixes as arrays of bytes, and what they are extended by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Integers
from deniable.tables.schema.text import Text

Prefixes = NDArray[np.uint8]
"""Prefixes × bytes."""


def extensions(domain: Text, prefixes: Prefixes) -> tuple[Prefixes, Integers]:
    """Every prefix with every byte that may follow it, and the number of the prefix that each came from.

    A word that has ended stays as it is, with one more zero.
    """
    count, length = prefixes.shape
    followers = [np.array(domain.followers(last), dtype=np.uint8) for last in (None, *range(256))]
    last = prefixes[:, -1].astype(np.int64) + 1 if length else np.zeros(count, dtype=np.int64)
    sizes = np.array([each.size for each in followers])[last]
    parents = np.repeat(np.arange(count), sizes)
    starts = np.cumsum([0, *(each.size for each in followers)])[:-1]
    offsets = np.arange(parents.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    added = np.concatenate(followers)[starts[last[parents]] + offsets]
    return np.concatenate((prefixes[parents], added[:, None]), axis=1), parents


def first_prefixes(domain: Text, start: bytes) -> Prefixes:
    """All prefixes of the first level that begin with some bytes; these bytes themselves, if they are longer."""
    made = np.frombuffer(start, dtype=np.uint8).reshape(1, -1)
    while made.shape[1] < domain.first_level:
        made, _ = extensions(domain, made)
    return made
