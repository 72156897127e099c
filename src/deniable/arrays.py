"""Types of the arrays that most calculations use."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Words = NDArray[np.uint64]
"""Random bits, 64 at a time."""
Words32 = NDArray[np.uint32]
"""Seeds, hash values and the columns of reports."""


def digest(values: Floats) -> bytes:
    """A SHA-256 of an array's shape and values: quick where neighbours are mostly equal, as in conditions.

    >>> digest(np.zeros(3)) == digest(np.zeros(3)), digest(np.zeros(3)) == digest(np.zeros(4))
    (True, False)
    """
    flat = values.ravel()
    starts = np.flatnonzero(flat[1:] != flat[:-1]) + 1
    if 2 * starts.size < flat.size:
        said = (starts.tobytes(), flat[np.concatenate(([0], starts))].tobytes())
    else:
        said = (b"", flat.tobytes())
    return hashlib.sha256(b"".join((repr((values.shape, starts.size, len(said[0]))).encode(), *said))).digest()
