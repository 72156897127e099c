"""What an analyst can learn when a trusted mixer strips addresses and order: a smaller ε, with a δ.

Every user sends one message, drawn by a randomiser R with ε-differential privacy, and the mixer hands n of them on in a
random order. Compare two values x₁ and x₂ of one user. With r = e^ε, Q₁ = (r·R(x₁) − R(x₂))/(r − 1) and Q₂ likewise are
laws, because R is ε-differentially private, and

    R(x₁) = (r·Q₁ + Q₂)/(r + 1),    R(x₂) = (Q₁ + r·Q₂)/(r + 1),    R(x₁) + R(x₂) = Q₁ + Q₂.

Whatever another user's value y is, R(y) ≥ (R(x₁) + R(x₂))/(2r) = (Q₁ + Q₂)/(2r): with chance 1/r she acts as if she had
tossed a coin between Q₁ and Q₂. All that an analyst sees is then drawn from how many people drew from each:

    C ~ Binomial(n − 1, 1/r) clones, A ~ Binomial(C, 1/2) of them from Q₁, and the user herself from Q₁ with chance
    w = r/(r + 1), or with 1 − w in the other world: (A + 1, C − A) or (A, C − A + 1).

No function of these two numbers tells the worlds apart better than they do.  [FMT21, Theorem 3.1]
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from scipy.stats import binom

from deniable.arrays import Floats, Integers
from deniable.checks import check_integer, check_number
from deniable.exact import check_epsilon

MOST_PEOPLE = 10**9
_DOUBT_OF_CHANCES = 1e-6
"""By how much computed chances may be wrong, relatively. Tests find scipy's within 1e-9."""
_LEFT_OUT = 2.0**-40
"""The share of δ that is spent on numbers of clones that are hardly ever seen."""
_BISECTIONS = 60
_NO_CLONES = 300.0
"""Above this ε nobody hides anybody."""


def shuffled_epsilon(epsilon: float, people: int, delta: float) -> float:
    """The ε of what the mixer hands on, together with δ; never below the truth, never above the ε of a message.

    >>> round(shuffled_epsilon(4.0, 100_000, 1e-9), 3)
    0.235
    """
    check_epsilon(epsilon)
    check_integer("people", people, 1, MOST_PEOPLE)
    check_number("delta", delta, "must lie between 0 and 1", "Use 1e-9.", above=0, below=1)
    if epsilon > _NO_CLONES or shuffled_delta(epsilon, people, math.nextafter(epsilon, 0)) > delta:
        return epsilon
    low, high = 0.0, epsilon
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if shuffled_delta(epsilon, people, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def shuffled_delta(epsilon: float, people: int, smaller: float) -> float:
    """A δ that goes with an ε that is smaller: at most the chance of an outcome that tells more.

    Both worlds are mirror images, so one direction is enough. Given C, the two worlds' chances of (a, C + 1 − a) have a
    ratio that grows with a, so that outcomes which tell more than that ε are those from some a on.

    >>> shuffled_delta(1.0, 1, 1.0) < 1e-5 < shuffled_delta(1.0, 1, 0.5)
    True
    """
    clones, chances, rest = _clones(epsilon, people - 1)
    mine, other = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))  # w and 1 − w, which 1.0 − w would lose
    first = _first_telling(clones, epsilon, smaller)
    tails = [binom.sf(first + shift, clones, 0.5) for shift in (-3, -2, -1, 0)]  # A ≥ a − 2, …, A ≥ a + 1
    telling = np.zeros(clones.size)
    for at_least, more in pairwise(tails):  # from a − 1, a, a + 1 on: rounding may have moved the border past a number
        here = (mine * at_least + other * more) * (1 + _DOUBT_OF_CHANCES)
        there = (mine * more + other * at_least) * (1 - _DOUBT_OF_CHANCES)
        telling = np.maximum(telling, here - math.exp(smaller) * (1 - _DOUBT_OF_CHANCES) * there)
    return min(float((chances * telling).sum() * (1 + _DOUBT_OF_CHANCES) + rest), 1.0)


def _clones(epsilon: float, others: int) -> tuple[Integers, Floats, float]:
    """Numbers of clones that are worth looking at, their chances, and the chance of all other numbers."""
    chance = math.exp(-epsilon)
    low, high = (int(binom.ppf(tail, others, chance)) for tail in (_LEFT_OUT * 1e-12, 1 - 2.0**-52))
    spread = math.sqrt(others * chance) + 10
    low, high = max(low, 0), min(int(high + 8 * spread), others)
    clones = np.arange(low, high + 1)
    rest = binom.cdf(low - 1, others, chance) + binom.sf(high, others, chance)
    return clones, binom.pmf(clones, others, chance), float(rest) * (1 + _DOUBT_OF_CHANCES)


def _first_telling(clones: Integers, epsilon: float, smaller: float) -> Floats:
    """The first a with w·a + (1 − w)·b > ratio·(w·b + (1 − w)·a), b = C + 1 − a: both sides are straight lines in a.

    They meet at a = (C + 1)·(ratio·w − (1 − w))/((2w − 1)·(1 + ratio)), with 2w − 1 = tanh(ε/2).
    """
    spread, total = math.tanh(epsilon / 2), clones + 1.0
    slope = spread * (1 + math.exp(smaller))
    above = spread + math.expm1(smaller) / (1 + math.exp(-epsilon))
    border = total * (above / slope) if slope > 0 else np.full_like(total, np.inf)
    first: Floats = np.floor(np.minimum(border, total + 1)) + 1
    return first
