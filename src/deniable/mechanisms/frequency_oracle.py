"""The interface of frequency oracles: randomisers of a cell whose reports count how many users hold each cell.

A report is a pair (seed, y). It *supports* some cells: the true one with probability p, any other one with probability
q. Tables use oracles only through this interface. `oracles.py` lists them; a new one is a file and a line there.
Importing this module needs the standard library alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

if TYPE_CHECKING:
    from deniable.accounting import Spending
    from deniable.arrays import Booleans, Floats, Integers, Words32
    from deniable.exact import RandBelow
    from deniable.randomness import Source

LARGEST_DOMAIN = 2**32
"""Views with more cells fold their numbers into 32 bits."""


@dataclass(frozen=True, slots=True)
class NamedCell:
    """A report supports one cell, the one that y names. Compiled loops look it up."""


@dataclass(frozen=True, slots=True)
class HashedCells:
    """A report supports all cells that `hashing.bucket` puts into bucket y. Compiled loops hash them."""

    buckets: int


@dataclass(frozen=True, slots=True)
class MaskedCells:
    """A report supports the cells whose bits are set in y, always `size` of them. Compiled loops test the bits."""

    size: int


@dataclass(frozen=True, slots=True)
class ComputedCells:
    """A report supports the cells that `FrequencyOracle.supports` says. For oracles that compiled loops do not know."""


Support = NamedCell | HashedCells | MaskedCells | ComputedCells
"""How the cells that a report supports are found."""


class DrawReports(Protocol):
    """Draws the reports of many cells."""

    def __call__(
        self,
        oracles: Sequence[Any],
        which: Integers,
        cells: Integers,
        source: Source,
        seeds: Words32 | None = None,
    ) -> tuple[Words32, Integers]:
        """Seeds and y; cell i is randomised by oracles[which[i]]. Neither cells nor source are checked.

        `seeds` are those that were assigned, below the oracle's number of them; otherwise they are drawn.
        """


@runtime_checkable
class FrequencyOracle(Protocol):
    """A frozen value, made as `Oracle(epsilon, k)`, that randomises one of k cells."""

    label: ClassVar[str]
    """What tables of views call it."""
    draw_reports: ClassVar[DrawReports]
    """Reports of many cells. Oracles with the same function are drawn together, in one pass over all rows."""

    def __init__(self, epsilon: float, k: int) -> None: ...

    def __hash__(self) -> int: ...

    @property
    def epsilon(self) -> float:
        """What a report may spend."""

    @property
    def k(self) -> int:
        """How many cells there are."""

    @property
    def p(self) -> Fraction:
        """Probability that a report supports the true cell."""

    @property
    def q(self) -> Fraction:
        """Probability that a report supports a given other cell."""

    @property
    def pairs(self) -> tuple[Fraction, Fraction]:
        """Probabilities that a report supports two given cells at once: the true one and another, two others."""

    @property
    def outcomes(self) -> int:
        """How many different y there are."""

    @property
    def seeds(self) -> int:
        """How many different seeds there are: 1 if none is drawn."""

    @property
    def support(self) -> Support:
        """How the cells that a report supports are found."""

    @classmethod
    def response_cells(cls, epsilon: float, cells: int) -> float:
        """The variance on so many cells, as the number of cells on which randomized response has the same.

        Monotone in the variance, and exact where oracles change over. Infinity if the oracle cannot have so many cells.
        """

    @classmethod
    def most_outcomes(cls, epsilon: float) -> int:
        """A bound on the outcomes, over all numbers of cells for which the oracle is the best one."""

    @property
    def spends(self) -> Spending:
        """What a report spends, for any two cells."""

    def law(self, value: int, seed: int = 0) -> tuple[Fraction, ...]:
        """The exact probability of every y, for one true cell and one of the equally likely seeds."""

    def draw_report(self, cell: int, randbelow: RandBelow, seed: int | None = None) -> tuple[int, int]:
        """(seed, y) of a cell in 0..k−1, with the standard library only. Neither cell nor source are checked.

        The seed is the given one, below `seeds`, or else drawn.
        """

    def supports(self, cells: Any, seeds: Any, y: Any) -> Booleans:
        """Whether reports support cells; arrays are broadcast."""

    def estimate_cells(self, seeds: Words32, y: Integers) -> Floats:
        """Unbiased estimates of how many hold each of the k cells."""


def draw_as_responses(
    oracles: Sequence[FrequencyOracle],
    which: Integers,
    cells: Integers,
    source: Source,
    seeds: Words32 | None = None,
) -> tuple[Words32, Integers]:
    """`draw_reports` of every oracle that is randomized response over cells or over their buckets."""
    from deniable.mechanisms._oracle_draws import draw_responses

    return draw_responses(oracles, which, cells, source, seeds)


@dataclass(frozen=True, slots=True)
class SecondMoments:
    """The mean of the product of two estimates that one report contributes to, as a linear form.

    With weights α and β on cells, S(c) whether the report supports c, and x the true cell,

        E[Σ_c α(c)·(S(c) − q)/(p − q) · Σ_d β(d)·(S(d) − q)/(p − q)]
            = every·Σ_c α(c)·β(c) + own·α(x)·β(x) + sums·Σα·Σβ + crossed·(α(x)·Σβ + β(x)·Σα)

    where, with t and r the chances that two cells (the true one and another, two others) are supported at once,

        every·(p − q)² = q − r,  sums·(p − q)² = r − q²,  crossed·(p − q)² = t − r − q·(p − q),
        own·(p − q)² = p − q − 2·(t − r).
    """

    every: float
    own: float
    sums: float
    crossed: float

    def of(self, every: Any, own: Any, sums: Any, means: Any, product: Callable[[Any, Any], Any]) -> Any:
        """The mean for columns of weights: Σ_c α(c)·β(c), and the means over x of α(x)·β(x), of Σα and of α(x).

        `product` multiplies what two columns have.
        """
        total = self.own * own
        if self.every:
            total = total + self.every * every
        if self.sums:
            total = total + self.sums * product(sums, sums)
        if self.crossed:
            total = total + self.crossed * (product(means, sums) + product(sums, means))
        return total


@lru_cache(maxsize=4096)
def second_moments(oracle: FrequencyOracle) -> SecondMoments:
    """The coefficients of an oracle, each exact before it is rounded once."""
    p, q, (true_pair, other_pair) = oracle.p, oracle.q, oracle.pairs
    signal, tied = p - q, true_pair - other_pair
    every, own = q - other_pair, signal - 2 * tied
    sums, crossed = other_pair - q * q, tied - q * signal
    return SecondMoments(*(float(part / signal**2) for part in (every, own, sums, crossed)))
