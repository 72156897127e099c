"""Numbers in the order they came, one by one or many at a time, both cheaply."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class GrowingArray:
    """An array that grows at its end.

    >>> numbers = GrowingArray()
    >>> numbers.append(3)
    >>> numbers.extend(np.array([4, 5]))
    >>> len(numbers), numbers.array()
    (3, array([3, 4, 5]))
    """

    def __init__(self, kind: type[np.generic] = np.int64) -> None:
        self._kind = kind
        self._parts: list[NDArray[Any]] = []
        self._settled = 0  # numbers in the parts
        self._ones: list[int] = []  # those that came one by one, behind the parts

    def __len__(self) -> int:
        return self._settled + len(self._ones)

    def append(self, number: int) -> None:
        """One more."""
        self._ones.append(number)

    def extend(self, numbers: NDArray[Any]) -> None:
        """Many more; they are copied."""
        self._settle()
        self._add(np.array(numbers, dtype=self._kind))

    def array(self) -> NDArray[Any]:
        """All of them, not to be changed."""
        self._settle()
        if len(self._parts) != 1:
            self._parts = [np.concatenate((np.zeros(0, dtype=self._kind), *self._parts))]
        return self._parts[0]

    def clear(self) -> None:
        """Drop them all."""
        self._parts, self._settled, self._ones = [], 0, []

    def _settle(self) -> None:
        if self._ones:
            self._add(np.array(self._ones, dtype=self._kind))
            self._ones = []

    def _add(self, part: NDArray[Any]) -> None:
        self._parts.append(part)
        self._settled += part.size
