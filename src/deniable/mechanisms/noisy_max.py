"""Noisy max: which candidate scores highest, told with noise on every score."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from deniable.checks import check_scores
from deniable.exact import RandBelow
from deniable.mechanisms._score_choice import ScoreChoice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deniable.arrays import Integers
    from deniable.randomness import Source


@dataclass(frozen=True, slots=True)
class NoisyMax(ScoreChoice):
    """The index of the largest of integer scores after discrete Laplace noise; ties go to the smaller index.

    ε-DP if one neighbour step changes every score by at most Δ. Noise of scale Δ/ε is enough if the step moves all
    scores the same way (`monotone`, as counts of values above thresholds do); otherwise it is 2Δ/ε  [DR14, Claim 3.9].

    The proof for integers: fix the noise of the other candidates. Candidate i wins if its own noise reaches some
    integer t, and on the neighbour if it reaches t + Δ (monotone) or t + 2Δ. P(X ≥ t + 1) ≥ e^(−1/scale)·P(X ≥ t) for
    every integer t, so the chance falls by at most e^(−ε). The bound is approached, not reached, as the gap between
    scores grows: `PermuteAndFlip` wastes none of it.

    >>> NoisyMax(epsilon=math.inf).perturb([3, 9, 4], simulation=True)
    1
    """

    def draw(self, scores: Integers, source: Source) -> int:
        """The index of the winner among checked scores, by a checked source."""
        return int(self.noise.draw(scores, source).argmax())

    def draw_one(self, scores: Sequence[int], randbelow: RandBelow) -> int:
        """The index of the winner among checked scores, by checked draws."""
        noisy = [self.noise.draw_one(score, randbelow) for score in scores]
        return noisy.index(max(noisy))

    def law(self, scores: Sequence[int]) -> tuple[Fraction, ...]:
        """The probability that each candidate wins, in terms of the noise's `ratio`; for short lists and small gaps."""
        check_scores(scores)
        if math.isinf(self.epsilon):
            winner = list(scores).index(max(scores))
            return tuple(Fraction(int(i == winner)) for i in range(len(scores)))
        return tuple(self._wins(scores, i) for i in range(len(scores)))

    def _wins(self, scores: Sequence[int], i: int) -> Fraction:
        """Σ_x P(X_i = x)·Π_j P(X_j ≤ x + margin_j): three sums over x, the outer two of them geometric series."""
        noise, r = self.noise, self.noise.ratio
        margins = [scores[i] - s - (j < i) for j, s in enumerate(scores) if j != i]
        start, stop = min([0, *(-m for m in margins)]), max([0, *(-m for m in margins)])
        total = Fraction(0)
        for x in range(start, stop):
            product = noise.probability(x)
            for margin in margins:
                product *= noise.cumulative(x + margin)
            total += product
        # From `stop` on every factor is 1 − r^(x + margin + 1)/(1 + r): a polynomial in z = r^x.
        polynomial = [(1 - r) / (1 + r)]
        for margin in margins:
            slope = r ** (margin + 1) / (1 + r)
            polynomial = [
                a - slope * b for a, b in zip((*polynomial, Fraction(0)), (Fraction(0), *polynomial), strict=True)
            ]
        total += sum(c * r ** (stop * (d + 1)) / (1 - r ** (d + 1)) for d, c in enumerate(polynomial))
        # Below `start` every factor is r^(−x − margin)/(1 + r): one power of r.
        factor = (1 - r) / (1 + r)
        for margin in margins:
            factor *= r**-margin / (1 + r)
        power = len(scores)
        return total + factor * r ** ((1 - start) * power) / (1 - r**power)
