"""ε after shuffling: never below what exact computation finds, and at most what the published closed form says."""

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from deniable.errors import InvalidParameter
from deniable.shuffling import _DOUBT_OF_CHANCES, shuffled_delta, shuffled_epsilon


def exact_delta(power, people, ratio):
    """Σ max(P − ratio·Q, 0) over the outcomes of two worlds of clones, in fractions; `power` is e^ε of a message."""
    clone, mine = Fraction(1, power), Fraction(power, power + 1)
    total = Fraction(0)
    for clones in range(people):
        chance = math.comb(people - 1, clones) * clone**clones * (1 - clone) ** (people - 1 - clones)
        heads = [Fraction(math.comb(clones, a), 2**clones) for a in range(clones + 1)]
        for a in range(clones + 2):
            before, after = heads[a - 1] if a else 0, heads[a] if a <= clones else 0
            here, there = mine * before + (1 - mine) * after, mine * after + (1 - mine) * before
            total += chance * max(here - ratio * there, 0)
    return float(total)


@pytest.mark.parametrize("people", [1, 2, 5, 17, 60])
@pytest.mark.parametrize("power", [2, 3, 20])
def test_never_below_the_exact_divergence_and_hardly_above(people, power):
    for ratio in (Fraction(1), Fraction(11, 10), Fraction(3, 2), Fraction(power)):
        exact = exact_delta(power, people, ratio)
        bound = shuffled_delta(math.log(power), people, math.log(ratio))
        assert exact <= bound <= exact + 4 * _DOUBT_OF_CHANCES


@pytest.mark.parametrize("people", [1, 2, 5])
@pytest.mark.parametrize("power", [10**6, 2**40, 2**60, 2**90, 10**120])
def test_a_large_epsilon_is_not_lost_in_rounding(people, power):
    for ratio in (Fraction(1), Fraction(power, 10**5), Fraction(power, 3), Fraction(9 * power, 10)):
        exact = exact_delta(power, people, ratio)
        assert exact <= shuffled_delta(math.log(power), people, math.log(ratio)) <= exact + 4 * _DOUBT_OF_CHANCES
    least = math.log(power) - math.log(2) - math.log1p(people / power)  # alone she is told apart with half of the δ
    assert least - 1e-3 <= shuffled_epsilon(math.log(power), people, 0.5) <= math.log(power)


def histograms(law, values):
    """The law of how often each outcome occurs among people with these values."""
    laws = {(0,) * len(law[0]): 1.0}
    for value in values:
        after = {}
        for counts, chance in laws.items():
            for outcome, mine in enumerate(law[value]):
                key = (*counts[:outcome], counts[outcome] + 1, *counts[outcome + 1 :])
                after[key] = after.get(key, 0.0) + chance * mine
        laws = after
    return laws


@pytest.mark.parametrize("outcomes", [2, 3])
@pytest.mark.parametrize("power", [2.0, 5.0])
def test_shuffled_randomized_response_tells_no_more_whatever_the_others_have(outcomes, power):
    law = [[(power if x == y else 1) / (power + outcomes - 1) for y in range(outcomes)] for x in range(outcomes)]
    for people in (2, 4, 6):
        for others in {tuple(sorted(chosen)) for chosen in product(range(outcomes), repeat=people - 1)}:
            here, there = (histograms(law, (*others, value)) for value in (0, 1))
            for smaller in (0.0, 0.1, 0.4):
                true = sum(max(here[counts] - math.exp(smaller) * there[counts], 0.0) for counts in here)
                assert true <= shuffled_delta(math.log(power), people, smaller)


@pytest.mark.parametrize(("epsilon", "people"), [(0.5, 2_000), (1.0, 10_000), (4.0, 100_000)])
def test_at_most_the_closed_form(epsilon, people):
    for delta in (1e-6, 1e-9):
        assert epsilon <= math.log(people / (16 * math.log(2 / delta)))  # where the closed form holds
        power = math.exp(epsilon)
        root = 8 * math.sqrt(power * math.log(4 / delta)) / math.sqrt(people)
        closed = math.log(1 + (power - 1) / (power + 1) * (root + 8 * power / people))  # [FMT21, Theorem 3.1]
        assert shuffled_epsilon(epsilon, people, delta) < closed


def test_chances_are_far_better_than_the_slack_allows_for():
    for count in (1, 40, 900):
        weights = [math.comb(count, k) for k in range(count + 1)]
        tails = np.cumsum(weights[::-1], dtype=object)[::-1]
        exact = [float(Fraction(int(tail), 2**count)) for tail in tails]
        assert np.allclose(binom.sf(np.arange(-1, count), count, 0.5), exact, rtol=1e-9, atol=0)


def test_more_people_and_a_larger_delta_hide_more_and_nobody_loses():
    by_people = [shuffled_epsilon(3.0, people, 1e-8) for people in (1, 100, 10_000, 1_000_000)]
    assert by_people == sorted(by_people, reverse=True)
    assert by_people[0] <= 3.0
    assert shuffled_epsilon(3.0, 10_000, 1e-5) < shuffled_epsilon(3.0, 10_000, 1e-12)
    assert shuffled_epsilon(math.inf, 10, 1e-9) == math.inf
    for wrong in ((3.0, 0, 1e-9), (3.0, 10, 0.0), (3.0, 10, 1.0), (-1.0, 10, 1e-9)):
        with pytest.raises(InvalidParameter):
            shuffled_epsilon(*wrong)
