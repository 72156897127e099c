"""An array that grows by single numbers or by many at a time, both cheaply."""

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
        self._singles: list[int] = []  # numbers that came one by one, after the parts

    def __len__(self) -> int:
        return self._settled + len(self._singles)

    def append(self, number: int) -> None:
        """Add one number."""
        self._singles.append(number)

    def extend(self, numbers: NDArray[Any]) -> None:
        """Add many numbers. They are copied."""
        self._settle()
        self._add(np.array(numbers, dtype=self._kind))

    def array(self) -> NDArray[Any]:
        """All numbers. Do not change them."""
        self._settle()
        if len(self._parts) != 1:
            self._parts = [np.concatenate((np.zeros(0, dtype=self._kind), *self._parts))]
        return self._parts[0]

    def clear(self) -> None:
        """Drop all numbers."""
        self._parts, self._settled, self._singles = [], 0, []

    def _settle(self) -> None:
        if self._singles:
            self._add(np.array(self._singles, dtype=self._kind))
            self._singles = []

    def _add(self, part: NDArray[Any]) -> None:
        self._parts.append(part)
        self._settled += part.size
