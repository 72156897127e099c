import math
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deniable import exact
from deniable.errors import InvalidParameter
from deniable.exact import ExpChance, GeometricDigits, LogisticChance, RationalChance


@given(st.fractions(min_value=-300, max_value=300))
def test_the_enclosure_of_exp_is_narrow_and_contains_it(x):
    low, high = exact.exp_between(x)
    with localcontext(prec=80):
        true = Fraction((Decimal(x.numerator) / Decimal(x.denominator)).exp())
    assert low < true < high
    assert (high - low) / low < Fraction(1, 10**35)


@given(st.floats(min_value=1e-9, max_value=700))
def test_exp_below_never_exceeds_exp_and_gives_away_at_most_two_to_the_minus_64(x):
    below = exact.exp_below(x)
    low, high = exact.exp_between(Fraction(x), digits=400)
    assert below <= low
    assert below + Fraction(1, 2**64) >= high - (high - low)
    assert below.denominator <= 2**64


@given(st.fractions(min_value=Fraction(1, 1000), max_value=100), st.integers(1, 300))
def test_digits_of_irrational_chances_are_right(x, bits):
    low, high = exact.exp_between(x, digits=250)
    for chance, lower, upper in (
        (ExpChance(x), 1 / high, 1 / low),
        (LogisticChance(x), 1 / (1 + high), 1 / (1 + low)),
        (LogisticChance(x, factor=2), 2 / (1 + high), 2 / (1 + low)),
    ):
        floor = chance.floor(bits)
        assert Fraction(floor, 2**bits) <= upper
        assert lower < Fraction(floor + 1, 2**bits)


def scripted(*words):
    """A source of 64-bit words that are known in advance."""
    words = iter(words)

    def randbelow(bound):
        assert bound == 2**64
        return next(words)

    return randbelow


def test_a_coin_compares_further_digits_exactly_when_the_first_are_equal():
    third = RationalChance(Fraction(1, 3))
    first, second = exact.word(third, 0), exact.word(third, 1)
    assert first == second == (2**64 - 1) // 3
    assert exact.coin(third, scripted(first - 1))
    assert not exact.coin(third, scripted(first + 1))
    assert exact.coin(third, scripted(first, second - 1))
    assert not exact.coin(third, scripted(first, second + 1))
    assert exact.coin(third, scripted(first, second, 0))
    assert exact.coin(third, scripted(second - 1), equal_words=1)


def test_certain_and_impossible_coins():
    assert exact.coin(RationalChance(Fraction(1)), scripted(2**64 - 1))
    assert not exact.coin(RationalChance(Fraction(0)), scripted(0, 0, 1))


@pytest.mark.parametrize("scale", [Fraction(1, 100), Fraction(1, 3), Fraction(1), Fraction(7, 2), Fraction(20)])
def test_the_binary_digits_of_a_geometric_variable_give_its_law(scale):
    # P(G = k) from independent digits and a geometric number of blocks, against (1 − q)·q^k.
    digits = GeometricDigits.of(scale)
    q = math.exp(-1 / scale)
    ones = [1 / (1 + math.exp(chance.x)) for chance in digits.bits]
    tail = math.exp(-digits.tail.x)
    for k in range(200):
        blocks, rest = divmod(k, 1 << len(ones))
        chance = (1 - tail) * tail**blocks
        for i, chance_of_one in enumerate(ones):
            chance *= chance_of_one if rest >> i & 1 else 1 - chance_of_one
        assert chance == pytest.approx((1 - q) * q**k, rel=1e-9)


def test_the_tail_of_a_geometric_variable_goes_on():
    scale = Fraction(1)
    digits = GeometricDigits.of(scale)
    bits, tail = len(digits.bits), exact.word(digits.tail, 0)
    heads, tails = 0, 2**64 - 1
    assert tail < 3  # below 2^-62, and still a possible outcome
    draws = [tails] * bits + [tail, heads, tail, heads, tails]
    assert exact.geometric(scale, scripted(*draws)) == 2 << bits


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, True, "1", None, 701.0, 10**400, 1e-20])
def test_an_impossible_epsilon_is_refused(epsilon):
    with pytest.raises(InvalidParameter, match="epsilon"):
        exact.check_epsilon(epsilon)


@pytest.mark.parametrize("scale", [0.009, 1e13, math.nan, math.inf, -1, "1"])
def test_an_impossible_scale_is_refused(scale):
    with pytest.raises(InvalidParameter, match="noise scale"):
        exact.checked_scale(scale)
