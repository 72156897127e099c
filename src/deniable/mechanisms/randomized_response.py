"""Generalized randomized response: say the truth often enough to count, seldom enough to deny."""

from __future__ import annotations

import math
import secrets
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from deniable.accounting import Neighbours, Spending, Unit
from deniable.checks import check_integer, checked_cell
from deniable.exact import RandBelow, check_epsilon, check_randbelow, exp_below, fraction_coin
from deniable.mechanisms._counting import count_variance, unbiased_counts
from deniable.mechanisms.frequency_oracle import LARGEST_DOMAIN, DrawReports, NamedCell, Support, draw_as_responses

if TYPE_CHECKING:
    from deniable.arrays import Booleans, Floats, Integers, Words32
    from deniable.randomness import Source


@dataclass(frozen=True, slots=True)
class RandomizedResponse:
    """Report a cell of {0, …, k−1} truthfully with probability p, else one of the others.

        p = e^ε/(e^ε + k − 1),  q = 1/(e^ε + k − 1)        [War65; KOV16]

    ε-LDP: the ratio of any report's probabilities is at most p/q = e^ε, and reaches it.
    The best oracle when k < 3e^ε + 2; above that local hashing has the lower variance [WBLJ17].

    >>> RandomizedResponse(epsilon=math.log(3), k=4).law(0)[0].limit_denominator(1000)
    Fraction(1, 2)
    """

    epsilon: float
    k: int
    label: ClassVar[str] = "response"
    seeds: ClassVar[int] = 1
    support: ClassVar[Support] = NamedCell()
    draw_reports: ClassVar[DrawReports] = staticmethod(draw_as_responses)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_integer("k", self.k, 2, LARGEST_DOMAIN)

    @property
    def p(self) -> Fraction:
        """Probability of the true cell."""
        return Fraction(1) if math.isinf(self.epsilon) else exp_below(self.epsilon) * self.q

    @property
    def q(self) -> Fraction:
        """Probability of each other cell."""
        return Fraction(0) if math.isinf(self.epsilon) else 1 / (exp_below(self.epsilon) + self.k - 1)

    @property
    def pairs(self) -> tuple[Fraction, Fraction]:
        """No report supports two cells."""
        return Fraction(0), Fraction(0)

    @property
    def outcomes(self) -> int:
        """A report names a cell."""
        return self.k

    @classmethod
    def response_cells(cls, epsilon: float, cells: int) -> float:  # noqa: ARG003 - others are measured by this one
        """The cells themselves, as long as each has a number of its own."""
        return cells if cells < LARGEST_DOMAIN else math.inf

    @classmethod
    def most_outcomes(cls, epsilon: float) -> int:
        """One cell fewer than 3e^ε + 2, where local hashing becomes better."""
        if epsilon > math.log(LARGEST_DOMAIN):
            return LARGEST_DOMAIN - 1
        return math.ceil(3 * math.exp(epsilon) + 2) - 1

    @property
    def spends(self) -> Spending:
        """ε for any two values."""
        return Spending(Unit.REPORT, Neighbours.ANY, self.epsilon)

    def law(self, value: int, seed: int = 0) -> tuple[Fraction, ...]:  # noqa: ARG002 - reports have no seed
        """The exact probability of every report, for one true cell."""
        value = checked_cell(value, self.k)
        return tuple(self.p if report == value else self.q for report in range(self.k))

    def perturb(self, values: Any, *, source: Source | None = None, simulation: bool = False) -> Integers:
        """One report per value."""
        from deniable.mechanisms._arrays import as_cells
        from deniable.randomness import release_source

        source = release_source(source, simulation=simulation, epsilon=self.epsilon)
        return self.draw(as_cells(values, self.k), source)

    def draw(self, cells: Integers, source: Source) -> Integers:
        """`perturb` for cells and a source that have been checked."""
        keep = source.bernoulli(self.p, cells.size)
        reports = source.below(self.k - 1, cells.size)
        reports += reports >= cells
        reports[keep] = cells[keep]
        return reports

    def perturb_one(self, value: int, *, randbelow: RandBelow = secrets.randbelow, simulation: bool = False) -> int:
        """One report, with the standard library only."""
        check_randbelow(randbelow, self.epsilon, simulation=simulation)
        return self.draw_one(checked_cell(value, self.k), randbelow)

    def draw_one(self, cell: int, randbelow: RandBelow) -> int:
        """`perturb_one` for a cell and draws that have been checked. Both draws are made, whatever comes out."""
        keep, other = fraction_coin(self.p, randbelow), randbelow(self.k - 1)
        return cell if keep else other + (other >= cell)

    def draw_report(self, cell: int, randbelow: RandBelow, seed: int | None = None) -> tuple[int, int]:  # noqa: ARG002 - there is no seed
        """Seed 0, and the report."""
        return 0, self.draw_one(cell, randbelow)

    def supports(self, cells: Any, seeds: Any, y: Any) -> Booleans:  # noqa: ARG002 - reports have no seed
        """Whether a report names the cell."""
        named: Booleans = cells == y
        return named

    def estimate_cells(self, seeds: Words32, y: Integers) -> Floats:  # noqa: ARG002 - reports have no seed
        """`estimate` from the columns of reports."""
        return self.estimate(y)

    def estimate(self, reports: Any) -> Floats:
        """Unbiased estimates of how many hold each cell."""
        import numpy as np

        from deniable.mechanisms._arrays import as_cells

        cells = as_cells(reports, self.k, "reports")
        return unbiased_counts(np.bincount(cells, minlength=self.k), cells.size, self.p, self.q)

    def variance(self, reports: int, count: Any = 0.0) -> Any:
        """Variance of an estimated count among `reports` reports, `count` of which truly hold the cell."""
        return count_variance(reports, count, self.p, self.q)
