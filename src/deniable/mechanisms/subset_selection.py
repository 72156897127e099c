"""Subset selection: name a few cells, the true one more often among them than any other."""

from __future__ import annotations

import math
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

from deniable.accounting import Neighbours, Spending, Unit
from deniable.checks import check_integer, checked_cell
from deniable.exact import RandBelow, check_epsilon, check_randbelow, exp_below, fraction_coin
from deniable.mechanisms._counting import count_variance, unbiased_counts
from deniable.mechanisms.frequency_oracle import DrawReports, FrequencyOracle, MaskedCells, Support

if TYPE_CHECKING:
    from deniable.arrays import Booleans, Floats, Integers, Words32
    from deniable.randomness import Source

MOST_MASKED_CELLS = 63
"""A report has one bit for every cell, and columns of reports hold signed integers of 64 bits."""


def draw_subsets(
    oracles: Sequence[FrequencyOracle],
    which: Integers,
    cells: Integers,
    source: Source,
    seeds: Words32 | None = None,  # noqa: ARG001 - there are none
) -> tuple[Words32, Integers]:
    """`draw_reports` of subset selection."""
    from deniable.mechanisms._subset_draws import draw_masks

    return draw_masks(oracles, which, cells, source)


@dataclass(frozen=True, slots=True)
class SubsetSelection:
    """Report ω of the cells {0, …, k−1}, the true one among them with probability p; each set is equally likely then.

        p = ω·e^ε/(ω·e^ε + k − ω),  q = (ω − p)/(k − 1)        [WHW16; YB18]

    A report is an integer with ω bits set, bit c for cell c, so k ≤ 63. ε-LDP: a set that holds the true cell has the
    probability p/C(k−1, ω−1), any other one (1−p)/C(k−1, ω), and their ratio is e^ε. `size=None` takes the ω of lowest
    mean variance, and 1 (randomized response) while k is small. The best oracle where that ω is 2 or more: it has the
    least worst-case error of all ε-LDP reports, up to rounding of ω [YB18].

    >>> SubsetSelection(epsilon=1.0, k=25).omega
    7
    """

    epsilon: float
    k: int
    size: int | None = None
    label: ClassVar[str] = "subset"
    seeds: ClassVar[int] = 1
    draw_reports: ClassVar[DrawReports] = staticmethod(draw_subsets)

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_integer("k", self.k, 2, MOST_MASKED_CELLS)
        if self.size is not None:
            check_integer("size", self.size, 1, self.k - 1)

    @property
    def omega(self) -> int:
        """How many cells a report names."""
        if math.isinf(self.epsilon):
            return 1
        return best_size(self.epsilon, self.k) if self.size is None else self.size

    @property
    def p(self) -> Fraction:
        """Probability that a report names the true cell."""
        if math.isinf(self.epsilon):
            return Fraction(1)
        weight = self.omega * exp_below(self.epsilon)
        return weight / (weight + self.k - self.omega)

    @property
    def q(self) -> Fraction:
        """Probability that a report names a given other cell: ω − p of them are named on average."""
        return (self.omega - self.p) / (self.k - 1)

    @property
    def pairs(self) -> tuple[Fraction, Fraction]:
        """Given whether the true cell is named, the others are a set of ω − 1 or of ω, drawn evenly from k − 1."""
        p, omega = self.p, self.omega
        two_of_others = math.comb(self.k - 1, 2)
        named = p * math.comb(omega - 1, 2) + (1 - p) * math.comb(omega, 2)
        return p * Fraction(omega - 1, self.k - 1), named / two_of_others if two_of_others else Fraction(0)

    @property
    def outcomes(self) -> int:
        """A report has a bit for each cell. Those with another number of bits than ω do not occur."""
        return 1 << self.k

    @property
    def support(self) -> Support:
        """The cells whose bits are set."""
        return MaskedCells(self.omega)

    @classmethod
    def response_cells(cls, epsilon: float, cells: int) -> float:
        """The same variance as randomized response has on fewer cells; infinity where ω = 1, which *is* that."""
        if not 2 <= cells <= MOST_MASKED_CELLS or math.isinf(epsilon):
            return math.inf
        size = best_size(epsilon, cells)
        if size == 1:
            return math.inf
        # Below `cells` in exact numbers, and therefore after rounding too.
        exact = spread(exp_below(epsilon), cells, size) - exp_below(epsilon) + 2
        return min(float(exact), math.nextafter(cells, 0))

    @classmethod
    def most_outcomes(cls, epsilon: float) -> int:  # noqa: ARG003 - whatever ε is, views may have so many cells
        """As many as the largest view has."""
        return 1 << MOST_MASKED_CELLS

    @property
    def spends(self) -> Spending:
        """ε for any two values."""
        return Spending(Unit.REPORT, Neighbours.ANY, self.epsilon)

    def law(self, value: int, seed: int = 0) -> tuple[Fraction, ...]:  # noqa: ARG002 - reports have no seed
        """The exact probability of all 2^k numbers as report, for one true cell. Those without ω bits have none."""
        value, omega = checked_cell(value, self.k), self.omega
        inside = self.p / math.comb(self.k - 1, omega - 1)
        outside = (1 - self.p) / math.comb(self.k - 1, omega)
        return tuple(
            (inside if y >> value & 1 else outside) if y.bit_count() == omega else Fraction(0)
            for y in range(self.outcomes)
        )

    def perturb(self, values: Any, *, source: Source | None = None, simulation: bool = False) -> Integers:
        """One report per value."""
        import numpy as np

        from deniable.mechanisms._arrays import as_cells
        from deniable.randomness import release_source

        source = release_source(source, simulation=simulation, epsilon=self.epsilon)
        cells = as_cells(values, self.k)
        return draw_subsets([self], np.zeros(cells.size, dtype=np.int64), cells, source)[1]

    def perturb_one(self, value: int, *, randbelow: RandBelow = secrets.randbelow, simulation: bool = False) -> int:
        """One report, with the standard library only."""
        check_randbelow(randbelow, self.epsilon, simulation=simulation)
        return self.draw_report(checked_cell(value, self.k), randbelow)[1]

    def draw_report(self, cell: int, randbelow: RandBelow, seed: int | None = None) -> tuple[int, int]:  # noqa: ARG002 - there is no seed
        """Seed 0, and the report. The others are drawn for both answers of the coin, whatever it says."""
        omega, others = self.omega, self.k - 1
        named = fraction_coin(self.p, randbelow)
        with_it, without = randbelow(math.comb(others, omega - 1)), randbelow(math.comb(others, omega))
        mask = unranked(with_it, omega - 1, others) if named else unranked(without, omega, others)
        below = mask & ((1 << cell) - 1)
        return 0, (mask - below) << 1 | named << cell | below

    def supports(self, cells: Any, seeds: Any, y: Any) -> Booleans:  # noqa: ARG002 - reports have no seed
        """Whether the bit of a cell is set."""
        import numpy as np

        named: Booleans = np.asarray((np.asarray(y, dtype=np.int64) >> np.asarray(cells, dtype=np.int64)) & 1) == 1
        return named

    def estimate_cells(self, seeds: Words32, y: Integers) -> Floats:  # noqa: ARG002 - reports have no seed
        """`estimate` from the columns of reports."""
        return self.estimate(y)

    def estimate(self, reports: Any) -> Floats:
        """Unbiased estimates of how many hold each cell."""
        import numpy as np

        from deniable.mechanisms._arrays import as_cells

        masks = as_cells(reports, self.outcomes, "reports")
        named = np.array([np.count_nonzero(masks >> cell & 1) for cell in range(self.k)])
        return unbiased_counts(named, masks.size, self.p, self.q)

    def variance(self, reports: int, count: Any = 0.0) -> Any:
        """Variance of an estimated count among `reports` reports, `count` of which truly hold the cell."""
        return count_variance(reports, count, self.p, self.q)


def spread(power: Fraction, k: int, omega: int) -> Fraction:
    """(e^ε − 1)²·q(1 − q)/(p − q)², e^ε being `power`: the variance of the estimate of a cell that nobody holds.

    With D = ω·e^ε + k − ω it is (D − e^ε)·(D·(k − 1) − ω·(D − e^ε))/(ω·(k − ω)²).
    """
    whole = omega * power + k - omega
    other = whole - power
    return other * (whole * (k - 1) - omega * other) / (omega * (k - omega) ** 2)


def mean_spread(power: Fraction, k: int, omega: int) -> Fraction:
    """(ω·e^ε + k − ω)²/(ω·(k − ω)), which grows with the mean of the variances of all cells."""
    return (omega * power + k - omega) ** 2 / (omega * (k - omega))


@lru_cache(maxsize=4096)
def best_size(epsilon: float, k: int) -> int:
    """The ω with the lowest mean variance over all cells: one of the two integers around k/(e^ε + 1)  [YB18].

    That mean is the same whoever holds which cell. For a cell that nobody holds a smaller ω can be slightly better; so
    it is 1, randomized response, unless the other ω is better for such a cell too. In exact numbers, for all clients:
    `mean_spread` falls from ω to ω + 1 while ω(ω + 1)(e^2ε − 1) < k(k − 2ω − 1), and `spread` is below that of 1 where
    ω·e^2ε + (k − ω − 1)·e^ε < (k − 1)(k − ω).
    """
    power, size = exp_below(epsilon), 1
    while size * (size + 1) * (power * power - 1) < k * (k - 2 * size - 1):
        size += 1
    return size if size * power * power + (k - size - 1) * power < (k - 1) * (k - size) else 1


def unranked(rank: int, size: int, cells: int) -> int:
    """The set of `size` of so many cells with this rank, as bits: sets are in the order of these numbers.

    Cell c is in it when the sets below c come to at most the rank: the rank is a sum of C(c, i), i = size, …, 1.

    >>> [f"{unranked(rank, 2, 4):04b}" for rank in range(6)]
    ['0011', '0101', '0110', '1001', '1010', '1100']
    """
    mask = 0
    for cell in reversed(range(cells)):
        before = math.comb(cell, size)
        if size and rank >= before:
            mask, rank, size = mask | 1 << cell, rank - before, size - 1
    return mask
