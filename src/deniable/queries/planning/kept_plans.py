"""What was worked out for the latest plans, so that a question asked again is planned once."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

MOST_KEPT = 64
Made = TypeVar("Made")


class Kept(Generic[Made]):
    """Values by what they were made from; all are dropped when there are too many.

    >>> squares = Kept[int]()
    >>> squares.get(3, lambda: 9), 3 in squares
    (9, True)
    """

    def __init__(self) -> None:
        self._made: dict[Hashable, Made] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._made

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        """What was made from the key, or is made now. Threads that ask at once may make it twice, alike."""
        made = self._made.get(key)
        if made is None:
            made = make()
            if len(self._made) >= MOST_KEPT:
                self._made = {}
            self._made[key] = made
        return made


class KeptOfPlans(Generic[Made]):
    """Values by the very plan that they belong to, which is kept with them, so that no other gets its identity.

    >>> lengths = KeptOfPlans[int]()
    >>> lengths.get("a plan", lambda: 6)
    6
    """

    def __init__(self) -> None:
        self._kept = Kept[tuple[object, Made]]()

    def get(self, plan: object, make: Callable[[], Made]) -> Made:
        """What was made of this plan, or is made now."""
        return self._kept.get(id(plan), lambda: (plan, make()))[1]
