"""The oracle of a view with one cell: nothing can be learnt, so nothing is drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from deniable.accounting import Neighbours, Spending, Unit
from deniable.mechanisms.frequency_oracle import DrawReports, NamedCell, Support, draw_as_responses

if TYPE_CHECKING:
    from deniable.arrays import Booleans, Floats, Integers, Words32
    from deniable.exact import RandBelow


@dataclass(frozen=True, slots=True)
class SingleCell:
    """Report the only cell. It spends nothing, whatever ε is allowed.

    >>> SingleCell(1.0, 1).draw_report(0, lambda bound: 0), SingleCell(1.0, 1).outcomes
    ((0, 0), 1)
    """

    epsilon: float
    k: int
    label: ClassVar[str] = "none"
    p: ClassVar[Fraction] = Fraction(1)
    q: ClassVar[Fraction] = Fraction(0)
    pairs: ClassVar[tuple[Fraction, Fraction]] = (Fraction(0), Fraction(0))
    outcomes: ClassVar[int] = 1
    seeds: ClassVar[int] = 1
    support: ClassVar[Support] = NamedCell()
    draw_reports: ClassVar[DrawReports] = staticmethod(draw_as_responses)

    @classmethod
    def response_cells(cls, epsilon: float, cells: int) -> float:  # noqa: ARG003 - the report says nothing
        """No variance on one cell. More cells need another oracle."""
        return 0.0 if cells == 1 else math.inf

    @classmethod
    def most_outcomes(cls, epsilon: float) -> int:  # noqa: ARG003 - as above
        """One report is possible."""
        return 1

    @property
    def spends(self) -> Spending:
        """Nothing: all users send the same."""
        return Spending(Unit.REPORT, Neighbours.ANY, 0)

    def law(self, value: int, seed: int = 0) -> tuple[Fraction, ...]:  # noqa: ARG002 - as above
        """The only report is certain."""
        return (self.p,)

    def draw_report(self, cell: int, randbelow: RandBelow, seed: int | None = None) -> tuple[int, int]:  # noqa: ARG002 - as above
        """The only report, without a draw."""
        return 0, 0

    def supports(self, cells: Any, seeds: Any, y: Any) -> Booleans:  # noqa: ARG002 - as above
        """Whether reports name cells."""
        named: Booleans = cells == y
        return named

    def estimate_cells(self, seeds: Words32, y: Integers) -> Floats:  # noqa: ARG002 - as above
        """All reports hold the only cell."""
        import numpy as np

        return np.array([float(y.size)])
