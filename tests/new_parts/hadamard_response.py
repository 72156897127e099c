"""A third oracle: one noisy bit of a random row of the Hadamard matrix (Acharya, Sun and Zhang, 2019)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from deniable.accounting import Neighbours, Spending, Unit
from deniable.exact import RandBelow, exp_below, fraction_coin
from deniable.mechanisms.frequency_oracle import ComputedCells, Support

if TYPE_CHECKING:
    from deniable.arrays import Booleans, Floats, Integers, Words32
    from deniable.randomness import Source


def draw_bits(
    oracles: Sequence[HadamardResponse], which: Integers, cells: Integers, source: Source
) -> tuple[Words32, Integers]:
    """A row and a noisy bit for each cell."""
    import numpy as np

    rows = np.array([oracle.seeds for oracle in oracles], dtype=np.int64)[which]
    seeds = source.below_each(rows).astype(np.uint32)
    truthful = source.bernoulli_each([oracle.p for oracle in oracles], which)
    return seeds, np.where(truthful, _parity(seeds, cells), 1 - _parity(seeds, cells))


def _parity(seeds: Any, cells: Any) -> Any:
    """The sign in row `seed` and column `cell` + 1; column 0 is constant and would say nothing."""
    import numpy as np

    return np.bitwise_count(np.asarray(seeds, dtype=np.int64) & (np.asarray(cells, dtype=np.int64) + 1)) % 2


@dataclass(frozen=True, slots=True)
class HadamardResponse:
    """Two columns of the matrix agree in half of the rows: p = e^ε/(e^ε + 1), q = 1/2. ε-LDP: one bit, flipped."""

    epsilon: float
    k: int
    label: ClassVar[str] = "hadamard"
    outcomes: ClassVar[int] = 2
    support: ClassVar[Support] = ComputedCells()
    q: ClassVar[Fraction] = Fraction(1, 2)
    draw_reports: ClassVar[Any] = staticmethod(draw_bits)

    @property
    def seeds(self) -> int:
        """The smallest power of two that has k columns besides the constant one."""
        return int(1 << self.k.bit_length())

    @property
    def p(self) -> Fraction:
        return exp_below(self.epsilon) / (exp_below(self.epsilon) + 1)

    @property
    def pairs(self) -> tuple[Fraction, Fraction]:
        return self.p / 2, Fraction(1, 4)

    @property
    def spends(self) -> Spending:
        return Spending(Unit.REPORT, Neighbours.ANY, self.epsilon)

    @classmethod
    def response_cells(cls, epsilon: float, cells: int) -> float:
        """Preferred wherever randomized response and hashing are possible, so that the test sees it at work."""
        return 1.0 if 2 <= cells <= 1 << 16 else math.inf

    @classmethod
    def most_outcomes(cls, epsilon: float) -> int:
        return 2

    def law(self, value: int, seed: int = 0) -> tuple[Fraction, ...]:
        true = int(_parity(seed, value))
        return tuple(self.p if bit == true else 1 - self.p for bit in (0, 1))

    def draw_report(self, cell: int, randbelow: RandBelow) -> tuple[int, int]:
        seed = randbelow(self.seeds)
        true = (seed & (cell + 1)).bit_count() % 2
        return seed, true if fraction_coin(self.p, randbelow) else 1 - true

    def supports(self, cells: Any, seeds: Any, y: Any) -> Booleans:
        agree: Booleans = _parity(seeds, cells) == y
        return agree

    def estimate_cells(self, seeds: Words32, y: Integers) -> Floats:
        import numpy as np

        supported = self.supports(np.arange(self.k)[:, None], seeds, y).sum(axis=1)
        estimates: Floats = (supported - len(y) / 2) / float(self.p - self.q)
        return estimates
