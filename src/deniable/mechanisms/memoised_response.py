"""Randomized response with a memory: a permanent answer for life, and an instantaneous one on top of it every round.

After RAPPOR [EPK14], d-bit flipping [DKY17] and LOLOHA [ACP23]. Over g outcomes, with a = ε∞:

    p∞ = e^a/(e^a + g − 1),  q∞ = 1/(e^a + g − 1):   the permanent answer to an outcome, drawn once and kept
    p_i, q_i = (1 − p_i)/(g − 1):                    what every round makes of it, drawn anew
    p* = p∞·p_i + (1 − p∞)·q_i = e^ε/(e^ε + g − 1):  one round alone, so p_i = (p* − q∞)/(p∞ − q∞)

Three things can be promised about a lifetime of several rounds, and they are different:

1. *One round alone* is ε.
2. *Two lifetimes whose outcomes change in the same rounds* (in particular two that never change) are d·ε∞ apart, where
   d ≤ min(g, rounds) is how many different outcomes they visit: given the permanent answers, the rounds are alike.
3. *Any two lifetimes*: that and when somebody changed is hidden by the instantaneous answers alone. Equal answers round
   after round betray that nothing changed. The worst ratio is enumerated over the first rounds; every later round adds
   at most ε_i = ln(p_i/q_i). This is what a ledger charges.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from deniable.accounting import Neighbours, Spending, Unit
from deniable.checks import check_integer
from deniable.errors import InvalidParameter
from deniable.exact import RandBelow, check_epsilon, fraction_coin
from deniable.mechanisms.frequency_oracle import LARGEST_DOMAIN
from deniable.mechanisms.randomized_response import RandomizedResponse

ENUMERATED_ROUNDS = 4
"""So many rounds are enumerated; what further rounds add is bounded."""
_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class MemoisedResponse:
    """Report one of g outcomes in every round: ε for a round alone, ε∞ for somebody who never changes.

    >>> often = MemoisedResponse(epsilon=1.4, permanent=1.5, k=4)
    >>> round(float(often.instantaneous_epsilon), 3), round(float(often.any_lifetimes(3)), 3)
    (4.0, 7.386)
    """

    epsilon: float
    permanent: float
    k: int

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_epsilon(self.permanent)
        check_integer("k", self.k, 2, LARGEST_DOMAIN)
        if self.permanent < self.epsilon:
            problem = "must be at least the ε of one round"
            raise InvalidParameter("permanent", problem, "One round is noisier than the permanent answer.")

    @property
    def alone(self) -> RandomizedResponse:
        """The law of one round alone."""
        return RandomizedResponse(self.epsilon, self.k)

    @property
    def kept(self) -> RandomizedResponse:
        """The law of a permanent answer."""
        return RandomizedResponse(self.permanent, self.k)

    @property
    def p_instantaneous(self) -> Fraction:
        """Probability that a round repeats the permanent answer."""
        kept = self.kept
        if kept.p == 1:
            return self.alone.p
        return min((self.alone.p - kept.q) / (kept.p - kept.q), Fraction(1))

    @property
    def q_instantaneous(self) -> Fraction:
        """Probability that a round gives a certain other answer."""
        return (1 - self.p_instantaneous) / (self.k - 1)

    @property
    def instantaneous_epsilon(self) -> Fraction | float:
        """ε_i: what every round adds to the worst case; infinite if rounds repeat the permanent answer as it is."""
        if self.q_instantaneous == 0:
            return math.inf
        return log_above(self.p_instantaneous / self.q_instantaneous)

    def same_changes(self, rounds: int) -> Fraction | float:
        """A bound for two lifetimes whose outcomes change in the same rounds: min(g, rounds)·ε∞."""
        exact = self.permanent if math.isinf(self.permanent) else Fraction(self.permanent)
        return exact * min(self.k, rounds)

    def any_lifetimes(self, rounds: int) -> Fraction | float:
        """A bound for any two lifetimes of so many rounds: enumerated, then ε_i for each further round."""
        check_integer("rounds", rounds, 0, 2**32)
        if rounds == 0:
            return Fraction(0)
        if rounds == 1:
            return math.inf if math.isinf(self.epsilon) else Fraction(self.epsilon)
        if self.q_instantaneous == 0:  # rounds repeat the permanent answer, and show every change
            return math.inf
        first = min(rounds, ENUMERATED_ROUNDS)
        if first == rounds:
            return _enumerated(self, rounds)
        return _enumerated(self, first) + (rounds - first) * self.instantaneous_epsilon

    def spends(self, rounds: int) -> Spending:
        """What a lifetime of so many rounds spends, for any two lifetimes."""
        return Spending(Unit.REPORT, Neighbours.ANY, self.any_lifetimes(rounds))

    def law(self, lifetime: tuple[int, ...], answers: tuple[int, ...]) -> Fraction:
        """The exact probability of the answers of several rounds, given the true outcome in each."""
        p, q, chance = self.p_instantaneous, self.q_instantaneous, Fraction(1)
        for outcome in set(lifetime):
            mine = [answer for true, answer in zip(lifetime, answers, strict=True) if true == outcome]
            chance *= sum(
                (self.kept.p if kept == outcome else self.kept.q)
                * p ** mine.count(kept)
                * q ** (len(mine) - mine.count(kept))
                for kept in range(self.k)
            )
        return chance

    def draw_permanent(self, outcome: int, randbelow: RandBelow) -> int:
        """The permanent answer to an outcome. The caller keeps it, or draws it from numbers that come again."""
        return self.kept.draw_one(outcome, randbelow)

    def draw_instantaneous(self, answer: int, randbelow: RandBelow) -> int:
        """What a round sends instead of the permanent answer. Both draws are made, whatever comes out."""
        keep, other = fraction_coin(self.p_instantaneous, randbelow), randbelow(self.k - 1)
        return answer if keep else other + (other >= answer)


def log_above(ratio: Fraction) -> Fraction:
    """A number that is not below the logarithm, and above it by less than one part in 10^12."""
    value = math.log(ratio.numerator) - math.log(ratio.denominator)
    size = math.log(ratio.numerator) + math.log(ratio.denominator)
    return Fraction(value) + Fraction(1e-14 * (1 + size))


@lru_cache(maxsize=4096)
def _enumerated(mechanism: MemoisedResponse, rounds: int) -> Fraction:
    """The worst log-ratio over all pairs of lifetimes and all answers, rounded up.

    Names of outcomes do not matter, so one sequence of answers stands for all with the same pattern. For each, the most
    and the least likely lifetime are found outcome by outcome: which set of rounds does it take? Outcomes that no
    answer names are alike. Floats are products and sums of a few dozen positive numbers, off by less than `_SLACK`.
    """
    numbers = tuple(
        float(chance)
        for chance in (mechanism.kept.p, mechanism.kept.q, mechanism.p_instantaneous, mechanism.q_instantaneous)
    )
    worst = 1.0
    for answers in _patterns(rounds, mechanism.k):
        named = max(answers) + 1
        chances = [
            [
                _float_chance(outcome, [answers[t] for t in range(rounds) if taken >> t & 1], mechanism.k, numbers)
                for taken in range(1 << rounds)
            ]
            for outcome in range(min(mechanism.k, named + rounds))
        ]
        worst = max(worst, _extreme(chances, rounds, max) / _extreme(chances, rounds, min))
    return Fraction(math.log(worst) + _SLACK)


def _float_chance(outcome: int, answers: list[int], k: int, chances: tuple[float, ...]) -> float:
    """The chance of answers that come from one permanent answer, in floats."""
    kept_p, kept_q, p, q = chances
    named = {*answers, outcome}
    total = (k - len(named)) * kept_q * q ** len(answers)
    for kept in named:
        repeats = answers.count(kept)
        total += (kept_p if kept == outcome else kept_q) * p**repeats * q ** (len(answers) - repeats)
    return total


def _extreme(chances: list[list[float]], rounds: int, best: Callable[[float, float], float]) -> float:
    """The largest or smallest chance over all ways to give every round to one outcome."""
    whole = (1 << rounds) - 1
    reached = {0: 1.0}
    for mine in chances:
        following = dict(reached)
        for done, chance in reached.items():
            rest = whole & ~done
            taken = rest
            while taken:
                value, key = chance * mine[taken], done | taken
                following[key] = best(following[key], value) if key in following else value
                taken = (taken - 1) & rest
        reached = following
    return reached[whole]


def _patterns(rounds: int, k: int) -> Iterator[tuple[int, ...]]:
    """Sequences of answers in which each new answer has the next number: one for every pattern of equal answers."""

    def extended(pattern: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(pattern) == rounds:
            yield pattern
            return
        for answer in range(min(max(pattern, default=-1) + 2, k)):
            yield from extended((*pattern, answer))

    return extended(())
