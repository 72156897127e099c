"""What the open segment holds, kept in memory: when it is sealed, nothing has to be read again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats
from deniable.streams.central.published_epochs import EpochFacts

_JOINED = 1024
"""Arrays of small batches are joined when there are so many: an array takes more memory than the few numbers in it."""


@dataclass(slots=True)
class SegmentArrays:
    """Published values in their order, with what came with them."""

    count: int = 0
    epochs: list[EpochFacts] = field(default_factory=list)
    values: JoinedArrays = field(default_factory=lambda: JoinedArrays())
    stamps: JoinedArrays = field(default_factory=lambda: JoinedArrays())
    keys: JoinedArrays = field(default_factory=lambda: JoinedArrays())

    def add(
        self, values: Floats, stamps: NDArray[Any] | None, keys: NDArray[Any] | None, epochs: tuple[EpochFacts, ...]
    ) -> None:
        """Keep what was published next."""
        self.count += values.size
        self.epochs.extend(epochs)
        for arrays, more in ((self.values, values), (self.stamps, stamps), (self.keys, keys)):
            if more is not None and values.size:
                arrays.add(more)


class JoinedArrays:
    """An array that grows at its end.

    >>> arrays = JoinedArrays()
    >>> for number in range(3000):
    ...     arrays.add(np.array([number]))
    >>> arrays.whole().sum(), len(arrays.long), len(arrays.short)
    (np.int64(4498500), 2, 952)
    """

    def __init__(self) -> None:
        self.long: list[NDArray[Any]] = []
        self.short: list[NDArray[Any]] = []

    def add(self, array: NDArray[Any]) -> None:
        """Append an array, which nobody changes afterwards."""
        self.short.append(array)
        if len(self.short) == _JOINED:
            self.long.append(np.concatenate(self.short))
            self.short.clear()

    def whole(self) -> NDArray[Any] | None:
        """Everything; None if there is nothing."""
        return np.concatenate([*self.long, *self.short]) if self.long or self.short else None
