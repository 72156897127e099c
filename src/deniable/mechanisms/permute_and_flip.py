"""Permute and flip: which candidate scores highest, with no part of ε left unused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from deniable.checks import check_scores
from deniable.exact import WORD_BITS, RandBelow, geometric
from deniable.mechanisms._score_choice import ScoreChoice

if TYPE_CHECKING:
    from collections.abc import Sequence

    from deniable.arrays import Integers
    from deniable.randomness import Source


@dataclass(frozen=True, slots=True)
class PermuteAndFlip(ScoreChoice):
    """Visit the candidates in random order; stop at one that lies g below the best with probability e^(−g/scale).

    ε-DP with scale 2Δ/ε, or Δ/ε if a neighbour step moves all scores the same way (`monotone`), and never worse than
    the exponential mechanism  [MS20]. Every candidate may toss its coin at once: the first of those that show heads, in
    random order, is a uniform choice among them. A coin of probability r^g, r = e^(−1/scale), is heads when a geometric
    variable reaches g, so all is exact in integers.

    >>> PermuteAndFlip(epsilon=math.inf).perturb([3, 9, 4], simulation=True)
    1
    """

    def draw(self, scores: Integers, source: Source) -> int:
        """The index of the winner among checked scores, by a checked source."""
        import numpy as np

        gaps = scores.max() - scores
        reach = np.zeros_like(gaps) if math.isinf(self.epsilon) else source.geometric(self.scale, gaps.size)
        heads = np.flatnonzero(reach >= gaps)
        # The one with the smallest random key: how many words are drawn does not depend on how many show heads.
        while True:
            keys = source.words(gaps.size)[heads]
            first = np.flatnonzero(keys == keys.min())
            if first.size == 1:
                return int(heads[first[0]])

    def draw_one(self, scores: Sequence[int], randbelow: RandBelow) -> int:
        """The index of the winner among checked scores, by checked draws."""
        best = max(scores)
        if math.isinf(self.epsilon):
            heads = [i for i, score in enumerate(scores) if score == best]
        else:
            heads = [i for i, score in enumerate(scores) if geometric(self.scale, randbelow) >= best - score]
        while True:
            keys = [randbelow(2**WORD_BITS) for _ in scores]
            smallest = min(keys[i] for i in heads)
            first = [i for i in heads if keys[i] == smallest]
            if len(first) == 1:
                return first[0]

    @property
    def ratio(self) -> Fraction:
        """r = e^(−1/scale) as a rational at most 10^-37 above it (relative), so that laws keep the promise."""
        return self.noise.ratio

    def law(self, scores: Sequence[int]) -> tuple[Fraction, ...]:
        """The probability that each candidate wins, in terms of `ratio`.

        Give every candidate a uniform time t of its visit: i wins if its coin is heads and nobody earlier had heads,
        so P(i) = p_i·∫ Π_{j≠i} (1 − p_j·t) dt, the integral of a polynomial over [0, 1].
        """
        check_scores(scores)
        best, r = max(scores), self.ratio
        heads = [r ** (best - score) for score in scores]
        return tuple(p * _integral(heads[:i] + heads[i + 1 :]) for i, p in enumerate(heads))


def _integral(heads: list[Fraction]) -> Fraction:
    """∫ Π (1 − p·t) dt over [0, 1]."""
    polynomial = [Fraction(1)]
    for p in heads:
        polynomial = [a - p * b for a, b in zip((*polynomial, Fraction(0)), (Fraction(0), *polynomial), strict=True)]
    return sum((c / (d + 1) for d, c in enumerate(polynomial)), Fraction(0))
