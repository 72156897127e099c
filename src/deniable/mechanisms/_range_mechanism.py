"""What mechanisms for a number in a public range have in common: their edge."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from deniable.accounting import Neighbours, Spending, Unit
from deniable.checks import check_range
from deniable.exact import RandBelow, check_epsilon, check_randbelow

if TYPE_CHECKING:
    from deniable.arrays import Floats, Integers
    from deniable.randomness import Source


class RangeMechanism(ABC):
    """A frozen value that reports a number in [low, high] as an integer.

    `perturb` and `perturb_one` check source and ε. `draw` and `draw_one` are for callers who have done so.
    """

    __slots__ = ()
    epsilon: float
    low: float
    high: float

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_range(self.low, self.high)

    @property
    def spends(self) -> Spending:
        """ε for any two values."""
        return Spending(Unit.REPORT, Neighbours.ANY, self.epsilon)

    def perturb(self, values: Any, *, source: Source | None = None, simulation: bool = False) -> Integers:
        """One report per value."""
        from deniable.mechanisms._arrays import as_reals
        from deniable.randomness import release_source

        source = release_source(source, simulation=simulation, epsilon=self.epsilon)
        return self.draw(as_reals(values, self.low, self.high), source)

    def perturb_one(
        self, value: float | Fraction, *, randbelow: RandBelow = secrets.randbelow, simulation: bool = False
    ) -> int:
        """One report, with the standard library only."""
        check_randbelow(randbelow, self.epsilon, simulation=simulation)
        return self.draw_one(value, randbelow)

    @abstractmethod
    def draw(self, values: Floats, source: Source) -> Integers:
        """`perturb` for values in the range and a source that has been checked."""

    @abstractmethod
    def draw_one(self, value: float | Fraction, randbelow: RandBelow) -> int:
        """`perturb_one` for draws that have been checked."""
