"""The exact laws of the trusted server's mechanisms: enumerated in rationals, no sampling."""

import functools
import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.exact import exp_between
from deniable.mechanisms import DiscreteLaplace, NoisyMax, PermuteAndFlip

EPSILONS = st.floats(min_value=0.05, max_value=10)


def largest_power(epsilon):
    """e^ε from above, by 10^-30 of it: laws in terms of `ratio`, which is rounded, stay below it."""
    return exp_between(Fraction(epsilon))[1] * (1 + Fraction(1, 10**30))


@given(EPSILONS, st.integers(1, 4))
def test_discrete_laplace(epsilon, sensitivity):
    mechanism = DiscreteLaplace(epsilon, sensitivity)
    laws = [mechanism.law(value, -8, 8) for value in range(sensitivity + 1)]
    assert all(sum(law) == 1 for law in laws)
    worst = max(max(column) / min(column) for column in zip(*laws, strict=True))
    assert worst <= largest_power(epsilon)
    assert worst >= largest_power(epsilon) * (1 - Fraction(1, 10**9))


@given(EPSILONS)
def test_laplace_noise_is_symmetric_so_the_output_is_unbiased(epsilon):
    mechanism = DiscreteLaplace(epsilon)
    law = mechanism.law(3, -7, 13)
    assert law == law[::-1]
    assert sum(chance * output for chance, output in zip(law, range(-7, 14), strict=True)) == 3
    for k in range(-5, 6):
        assert mechanism.cumulative(k) - mechanism.cumulative(k - 1) == mechanism.probability(k)


def neighbours(scores, monotone):
    """Every list of scores that one step of sensitivity one can lead to."""
    if monotone:
        for step in (1, -1):
            for moves in itertools.product((0, step), repeat=len(scores)):
                yield tuple(s + m for s, m in zip(scores, moves, strict=True))
    else:
        for moves in itertools.product((-1, 0, 1), repeat=len(scores)):
            yield tuple(s + m for s, m in zip(scores, moves, strict=True))


@pytest.mark.parametrize("kind", [NoisyMax, PermuteAndFlip])
@pytest.mark.parametrize("monotone", [True, False])
@given(epsilon=EPSILONS)
@settings(max_examples=8, deadline=None)
def test_selections_keep_their_promise_for_every_pair_of_neighbours(kind, monotone, epsilon):
    mechanism = kind(epsilon, monotone=monotone)
    law_of = functools.cache(mechanism.law)  # most lists are neighbours of many
    worst = Fraction(0)
    for scores in itertools.product(range(3), repeat=3):
        law = law_of(scores)
        assert sum(law) == 1
        for other in neighbours(scores, monotone):
            worst = max(worst, *(a / b for a, b in zip(law, law_of(other), strict=True)))
    assert worst <= largest_power(epsilon)
    if kind is PermuteAndFlip:
        assert worst >= largest_power(epsilon) * (1 - Fraction(1, 10**9))


def test_noisy_max_approaches_its_bound_as_the_gap_grows_and_never_reaches_it():
    mechanism = NoisyMax(1.0, monotone=True)
    losses = []
    for gap in (1, 10, 100):
        law, other = mechanism.law([0, gap]), mechanism.law([0, gap + 1])
        losses.append(math.log(law[0] / other[0]))
    assert losses == sorted(losses)
    assert losses[-1] == pytest.approx(1.0, abs=0.012)
    assert losses[-1] < 1


def test_noise_too_small_for_the_neighbour_relation_would_be_noticed():
    # Scores that may move in both directions need twice the scale: with the monotone one the promise breaks.
    for kind in (NoisyMax, PermuteAndFlip):
        mechanism = kind(1.0, monotone=True)
        ratio = mechanism.law([0, 6])[0] / mechanism.law([-1, 7])[0]
        assert ratio > exp_between(Fraction(1))[1]


def test_a_single_candidate_wins_and_infinite_epsilon_picks_the_best():
    for kind in (NoisyMax, PermuteAndFlip):
        assert kind(1.0).law([5]) == (1,)
        assert kind(math.inf).law([3, 9, 4]) == (0, 1, 0)
        assert kind(math.inf).perturb_one([3, 9, 4], simulation=True) == 1
        assert kind(math.inf).perturb([3, 9, 4], simulation=True) == 1
    assert PermuteAndFlip(math.inf).law([9, 9, 4]) == (Fraction(1, 2), Fraction(1, 2), 0)
    assert DiscreteLaplace(math.inf).perturb([5, 6], simulation=True).tolist() == [5, 6]
    assert DiscreteLaplace(math.inf).perturb_one(5, simulation=True) == 5
    assert DiscreteLaplace(math.inf).variance() == 0
