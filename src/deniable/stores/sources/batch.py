"""What every source of a stream gives: batches of values, in the order in which they came."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Integers
from deniable.errors import InvalidData, InvalidParameter


@dataclass(frozen=True, slots=True)
class Batch:
    """Values with their timestamps, if there are any, and the number of the first row or line, counted from 1.

    A timestamp that is missing or cannot be read is NaT or NaN.

    >>> import numpy as np
    >>> Batch(np.array([5, 6]), None, first=3).number(1)
    4
    """

    values: NDArray[Any]
    timestamps: NDArray[Any] | None = None
    first: int = 1
    lines: tuple[int, ...] = ()
    """The number of every line, if there are blank lines in between."""
    unit: str = "row"
    """What messages call an entry: a row or a line."""
    persons: list[Any] | None = None
    """The id of the person of every value, if they were asked for."""
    positions: NDArray[Any] | None = None
    """The number that the source gives every value, if it has one."""
    keys: list[Any] | None = None
    """The key of every value, if there is one stream per key."""
    mark: Any = None
    """Where the source stands after the batch, in its own terms, as JSON. A store keeps it with the values."""

    def number(self, index: int) -> int:
        """The number of the row or line of a value."""
        return self.lines[index] if self.lines else self.first + index

    def part(self, start: int, stop: int) -> Batch:
        """Consecutive values of the batch. Only the last part has its mark."""
        part = self.chosen(np.arange(start, min(stop, len(self.values))))
        return part if stop >= len(self.values) else replace(part, mark=None)

    def chosen(self, indices: Integers) -> Batch:
        """Some of the values, with everything that belongs to them."""
        if indices.size == len(self.values):
            return self
        numbers = tuple(map(self.number, indices.tolist()))
        persons = None if self.persons is None else [self.persons[index] for index in indices.tolist()]
        keys = None if self.keys is None else [self.keys[index] for index in indices.tolist()]
        arrays = (None if array is None else array[indices] for array in (self.timestamps, self.positions))
        stamps, positions = arrays
        return Batch(self.values[indices], stamps, self.first, numbers, self.unit, persons, positions, keys, self.mark)


@dataclass(frozen=True, slots=True)
class Columns:
    """The names of the columns of values and, if there are any, their timestamps, persons, positions and keys.

    `lenient`: a value that cannot be read is handed on as None, instead of ending the reading.

    >>> Columns("watts", time="at").names
    ['watts', 'at']
    """

    value: str = "value"
    time: str | None = None
    person: str | None = None
    position: str | None = None
    lenient: bool = False
    key: str | None = None

    @property
    def names(self) -> list[str]:
        """The columns to read."""
        return [name for name in (self.value, self.time, self.person, self.position, self.key) if name is not None]

    def refuse_missing(self, existing: list[str]) -> None:
        """Refuse a table that lacks one of the columns."""
        if missing := [name for name in self.names if name not in existing]:
            raise InvalidParameter(
                "column",
                f"{', '.join(missing)} is not in the file",
                "Name it with --column, --time-column, --person-column, --position-column or --key.",
            )


@dataclass(frozen=True, slots=True)
class StreamSource:
    """A kind of file that values can be read from, recognised by how its name ends."""

    endings: tuple[str, ...]
    read: Callable[[Path, Columns], Iterator[Batch]]


class Unreadable(InvalidData):
    """A line or row cannot be read. Those before it were handed on."""

    def __init__(self, entry: str, repair: str = "Repair it and go on from there, not from the start.") -> None:
        self.entry = entry
        cost = "Nothing of it was taken or published; what stands before it was"
        super().__init__(f"{entry} cannot be read", repair, cost=cost)
