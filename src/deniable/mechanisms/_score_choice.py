"""What mechanisms that choose a candidate by its score have in common: their settings and their edge."""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from deniable.accounting import Neighbours, Spending, Unit
from deniable.checks import check_integer, check_scores
from deniable.exact import RandBelow, check_randbelow
from deniable.mechanisms.discrete_laplace import DiscreteLaplace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deniable.arrays import Integers
    from deniable.randomness import Source


@dataclass(frozen=True, slots=True)
class ScoreChoice(ABC):
    """A choice among candidates with integer scores. It has no estimate and no variance.

    `perturb` and `perturb_one` check source, ε and scores. `draw` and `draw_one` are for callers who have done so.
    """

    epsilon: float
    sensitivity: int = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        check_integer("sensitivity", self.sensitivity, 1, 2**59)
        self.noise  # noqa: B018 - checks ε and the scale

    @property
    def noise(self) -> DiscreteLaplace:
        """Noise that hides what a step between neighbours does to the gap between two scores."""
        return DiscreteLaplace(self.epsilon, self.sensitivity if self.monotone else 2 * self.sensitivity)

    @property
    def scale(self) -> Fraction:
        """Scale of that noise; zero at ε = ∞."""
        return self.noise.scale

    @property
    def spends(self) -> Spending:
        """ε for scores that each move by up to the sensitivity, all the same way if `monotone`."""
        neighbours = Neighbours.SCORES_ALIKE if self.monotone else Neighbours.SCORES
        return Spending(Unit.STEP, neighbours, self.epsilon)

    def perturb(self, scores: Any, *, source: Source | None = None, simulation: bool = False) -> int:
        """The index of the winner."""
        from deniable.mechanisms._arrays import as_integers
        from deniable.randomness import release_source

        source = release_source(source, simulation=simulation, epsilon=self.epsilon)
        return self.draw(as_integers(scores, "scores"), source)

    def perturb_one(
        self, scores: Sequence[int], *, randbelow: RandBelow = secrets.randbelow, simulation: bool = False
    ) -> int:
        """The index of the winner, with the standard library only."""
        check_randbelow(randbelow, self.epsilon, simulation=simulation)
        check_scores(scores)
        return self.draw_one(scores, randbelow)

    @abstractmethod
    def draw(self, scores: Integers, source: Source) -> int:
        """`perturb` for scores and a source that have been checked."""

    @abstractmethod
    def draw_one(self, scores: Sequence[int], randbelow: RandBelow) -> int:
        """`perturb_one` for scores and draws that have been checked."""
