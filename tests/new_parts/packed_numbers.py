"""A new source of stream values: files of packed 32-bit integers, ending in .i32."""

import numpy as np

from deniable.stores.sources.batch import Batch, StreamSource

BATCH = 1000


def read(path, columns):
    """The values of a file; columns have no names here."""
    values = np.fromfile(path, dtype="<i4").astype(np.int64)
    for first in range(0, values.size, BATCH):
        yield Batch(values[first : first + BATCH], first=first + 1)


PACKED = StreamSource((".i32",), read)
