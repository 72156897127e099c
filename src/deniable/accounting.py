"""What is spent: frozen events that say what a release costs, added up in exact arithmetic.

Mechanisms, collections and streams describe themselves by the property `spends`. Code that draws and code that counts
meet only there. Standard library only, for devices.

    a mechanism ──▶ Spending ──┐
    a mechanism ──▶ Spending ──┴─ in_sequence (sum) or in_parallel (maximum) ──▶ Spending
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from deniable.checks import check_integer
from deniable.errors import InvalidParameter

Amount = Fraction | float
"""An exact number; a float only where it is infinite."""


class Unit(StrEnum):
    """What one ε protects."""

    USER = "everything a user sends"
    REPORT = "one report"
    VALUE = "one value of a stream or a dataset"
    PERSON = "everything a person does within an epoch of a stream"
    STEP = "one step between neighbours, as the caller defines it"


class Neighbours(StrEnum):
    """Which two inputs nobody can tell apart."""

    ANY = "any two inputs"
    REPLACED = "one value replaced by another"
    PERSON = "the events of one person replaced by other values, or by nobody's"
    DISTANCE = "integers at L1 distance up to the sensitivity"
    SCORES = "scores that each move by up to the sensitivity"
    SCORES_ALIKE = "scores that move the same way, each by up to the sensitivity"


@dataclass(frozen=True, slots=True)
class Spending:
    """(ε, δ)-differential privacy for one unit under one neighbouring relation: what a release costs.

    >>> Spending(Unit.REPORT, Neighbours.ANY, 0.5).epsilon
    Fraction(1, 2)
    """

    unit: Unit
    neighbours: Neighbours
    epsilon: Amount
    delta: Amount = Fraction(0)

    def __post_init__(self) -> None:
        if math.isnan(self.epsilon) or self.epsilon < 0:
            raise InvalidParameter("epsilon", "must not be negative", "Say what is spent.")
        if not 0 <= self.delta <= 1:
            raise InvalidParameter("delta", "must be a probability", "Use 0 for pure differential privacy.")
        object.__setattr__(self, "epsilon", _exact(self.epsilon))
        object.__setattr__(self, "delta", Fraction(self.delta))

    def times(self, count: int) -> Spending:
        """The same release so many times, one after another.

        >>> Spending(Unit.REPORT, Neighbours.ANY, 0.1).times(3).epsilon == 3 * Fraction(0.1)
        True
        """
        check_integer("count", count, 1, 2**63)
        return Spending(
            self.unit, self.neighbours, self.epsilon * count, min(Fraction(self.delta) * count, Fraction(1))
        )


def in_sequence(spendings: Iterable[Spending]) -> Spending:
    """Releases about the same unit: their ε and δ add up (sequential composition).  [DR14, Theorem 3.16]

    >>> report = Spending(Unit.REPORT, Neighbours.ANY, 0.5)
    >>> in_sequence([report, report]).epsilon
    Fraction(1, 1)
    """
    return _combined(spendings, sum)


def in_parallel(spendings: Iterable[Spending]) -> Spending:
    """Releases of which each unit is in at most one: the largest ε and δ count (parallel composition).  [McS09]

    The same holds for a choice among mechanisms that does not look at the data.

    >>> value = Spending(Unit.VALUE, Neighbours.REPLACED, 0.5)
    >>> in_parallel([value, value]).epsilon
    Fraction(1, 2)
    """
    return _combined(spendings, max)


def _combined(spendings: Iterable[Spending], combine: Callable[[list[Amount]], Amount]) -> Spending:
    parts = list(spendings)
    relations = {(part.unit, part.neighbours) for part in parts}
    if len(relations) != 1:  # an unknown relation must not pass as a known one
        raise InvalidParameter(
            "spendings", "must protect one unit under one neighbouring relation", "Combine those that do."
        )
    ((unit, neighbours),) = relations
    delta = min(combine([part.delta for part in parts]), Fraction(1))
    return Spending(unit, neighbours, combine([part.epsilon for part in parts]), delta)


def _exact(amount: Amount) -> Amount:
    return math.inf if math.isinf(amount) else Fraction(amount)


def share_below(epsilon: float, share: Fraction) -> float:
    """The largest float that is not above share·ε, so that shares never add up to more than ε.

    >>> share_below(2.0, Fraction(1, 2)), 3 * Fraction(share_below(1.0, Fraction(1, 3))) <= 1
    (1.0, True)
    """
    if math.isinf(epsilon):
        return epsilon
    exact = share * Fraction(epsilon)
    rounded = float(exact)
    return rounded if Fraction(rounded) <= exact else math.nextafter(rounded, 0.0)
