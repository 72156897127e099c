"""How many values of one person count, and who has had how many: the bound, and the memory that keeps it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.accounting import share_below
from deniable.arrays import Booleans, Integers
from deniable.checks import check_integer
from deniable.errors import InvalidData

_COUNTING_SHARE, _COUNTS_OF_AN_EPOCH = Fraction(1, 32), 2
EVENTS = "an event needs the id of its person, an integer or a text, or None"


@dataclass(frozen=True, slots=True)
class PersonBound:
    """Of each person the first `most` values of an epoch count. An epoch has `epoch` events, and is public.

    With epoch=0 an epoch lasts until you begin another, by the clock for example. ε then covers everything a person
    does within `window` consecutive epochs. 1/32 of it pays for asking twice per epoch how many events did not count:
    at the end of the warm-up, and at the end of the epoch. Each value of a person costs the rest, divided by
    most·window.

    >>> PersonBound(most=4, epoch=1000, window=2).value_epsilon(1.0)
    0.12109375
    """

    most: int
    epoch: int
    window: int = 1

    def __post_init__(self) -> None:
        check_integer("most", self.most, 1, 1 << 20)
        check_integer("epoch", self.epoch, 0, 1 << 40)
        check_integer("window", self.window, 1, 1 << 20)

    def value_epsilon(self, epsilon: float) -> float:
        """The ε of one value, rounded down."""
        return share_below(epsilon, (1 - _COUNTING_SHARE) / (self.most * self.window))

    def count_epsilon(self, epsilon: float) -> float:
        """The ε of asking once how many events did not count, rounded down. A person moves the answer by `most`."""
        return share_below(epsilon, _COUNTING_SHARE / (_COUNTS_OF_AN_EPOCH * self.window))

    def epoch_epsilon(self, epsilon: float) -> float | Fraction:
        """What one epoch costs a person: `most` values, and two counts."""
        value, count = self.value_epsilon(epsilon), self.count_epsilon(epsilon)
        return value if value == float("inf") else self.most * Fraction(value) + _COUNTS_OF_AN_EPOCH * Fraction(count)

    def room(self, position: int) -> int | None:
        """How many events are left in the epoch at a position of the stream; None if it does not end by itself."""
        return None if self.epoch == 0 else self.epoch - position % self.epoch


class CountedPersons:
    """Who has had how many values counted in this epoch. It is as secret as the data.

    Ids are kept as they are: hashes of two persons could be the same, and then one would show in what counts of the
    other. An integer is the same person as its digits as a text.
    """

    def __init__(self, most: int, counts: dict[str, int] | None = None) -> None:
        self._most = most
        self._counts: dict[str, int] = dict(counts or {})

    def judge(self, persons: list[str | None]) -> tuple[Booleans, Callable[[], None]]:
        """Which of these events count, and a function that remembers them. An event without a person never counts."""
        column = pa.array(persons, pa.large_string()).dictionary_encode()
        names: list[str] = column.dictionary.to_pylist()
        codes: Integers = np.asarray(column.indices.fill_null(len(names)), dtype=np.int64)
        before = np.fromiter((self._counts.get(name, 0) for name in names), np.int64, len(names))
        before = np.append(before, self._most)
        order = np.argsort(codes, kind="stable")
        sizes = np.bincount(codes, minlength=len(names) + 1)
        turns = np.empty(codes.size, dtype=np.int64)
        turns[order] = np.arange(codes.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        after = np.minimum(before + sizes, self._most)[:-1].tolist()
        return before[codes] + turns < self._most, lambda: self._counts.update(zip(names, after, strict=True))

    def forget(self) -> None:
        """Begin an epoch."""
        self._counts = {}

    def state(self) -> dict[str, int]:
        """Everything that is remembered, as JSON."""
        return dict(self._counts)


def person_events(persons: Iterable[Any], values: Any) -> NDArray[Any]:
    """Persons and their values as one array of events, which keeps both together.

    >>> person_events(["ann", None, 7], [1, 2, 3])["value"]
    array([1, 2, 3])
    """
    numbers = np.asarray(values)
    names = [person_name(person) for person in persons]
    if numbers.ndim != 1 or numbers.size != len(names):
        raise InvalidData("there must be one person for every value", "Give None where nobody is known.")
    events = np.empty(len(names), dtype=[("person", object), ("value", numbers.dtype)])
    events["person"], events["value"] = np.array([*names, None], dtype=object)[:-1], numbers
    return events


def person_name(person: Any) -> str | None:
    """The id of a person as a text; None if nobody is known."""
    if person is None or isinstance(person, str):
        return person or None
    if isinstance(person, (int, np.integer)) and not isinstance(person, bool):
        return str(int(person))
    raise InvalidData(EVENTS, "Convert the ids first.")
