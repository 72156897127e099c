"""The exact laws of the local randomisers: enumerated in rationals, no sampling."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.exact import exp_between
from deniable.mechanisms import (
    Hybrid,
    LocalHashing,
    Piecewise,
    RandomizedResponse,
    SquareWave,
    StochasticRounding,
)

EPSILONS = st.floats(min_value=0.01, max_value=20)
POSITIONS = [Fraction(i, 6) for i in range(7)]
SIZES = st.integers(2, 9)


def check_promise(laws, epsilon):
    """Every law sums to one; no ratio exceeds e^ε; the largest is within 1e-9 of it."""
    low, high = exp_between(Fraction(epsilon))
    assert all(sum(law) == 1 for law in laws)
    worst = max(max(column) / min(column) for column in zip(*laws, strict=True) if any(column))
    assert worst <= low
    assert worst >= high * (1 - Fraction(1, 10**9))


@given(EPSILONS, SIZES)
def test_randomized_response(epsilon, k):
    mechanism = RandomizedResponse(epsilon, k)
    laws = [mechanism.law(value) for value in range(k)]
    check_promise(laws, epsilon)
    p, q = mechanism.p, mechanism.q
    for value, cell in itertools.product(range(k), repeat=2):
        mean = sum(chance * ((report == cell) - q) / (p - q) for report, chance in enumerate(laws[value]))
        assert mean == (value == cell)


@given(EPSILONS, SIZES, st.integers(0, 2**32 - 1), st.booleans())
@settings(deadline=None)
def test_local_hashing_given_the_seed(epsilon, k, seed, binary):
    epsilon = min(epsilon, 5.0)
    mechanism = LocalHashing.binary(epsilon, k) if binary else LocalHashing(epsilon, k)
    laws = [mechanism.law(value, seed) for value in range(k)]
    if len({mechanism.bucket(seed, value) for value in range(k)}) == 1:
        assert len(set(laws)) == 1  # all cells share a bucket: this seed tells nothing
    else:
        check_promise(laws, epsilon)
    # Unbiased if another cell's bucket is uniform (test_hashing shows how nearly it is): support p for the true cell,
    # and for another one the average of the law over all buckets that it may have.
    p, q, truth = mechanism.p, mechanism.q, mechanism.bucket(seed, 0)
    assert (laws[0][truth] - q) / (p - q) == 1
    assert sum((laws[0][bucket] - q) / (p - q) for bucket in range(mechanism.g)) == 0


def check_unbiased(mechanism, values):
    for value in values:
        mean = sum(chance * mechanism.decode_one(report) for report, chance in enumerate(mechanism.law(value)))
        assert mean == value


@given(EPSILONS)
def test_stochastic_rounding(epsilon):
    mechanism = StochasticRounding(epsilon, low=0, high=6)
    check_promise([mechanism.law(6 * position) for position in POSITIONS], epsilon)
    check_unbiased(mechanism, [6 * position for position in POSITIONS])


@given(EPSILONS, st.integers(1, 12))
def test_piecewise(epsilon, steps):
    mechanism = Piecewise(epsilon, low=-3, high=3, steps=steps)
    values = [6 * position - 3 for position in POSITIONS]
    check_promise([mechanism.law(value) for value in values], epsilon)
    check_unbiased(mechanism, values)


@given(EPSILONS, st.integers(1, 8))
def test_hybrid(epsilon, steps):
    mechanism = Hybrid(epsilon, low=-3, high=3, steps=steps)
    values = [6 * position - 3 for position in POSITIONS]
    check_promise([mechanism.law(value) for value in values], epsilon)
    check_unbiased(mechanism, values)
    assert (mechanism.alpha > 0) == (epsilon > 0.61)


@given(EPSILONS, st.integers(2, 16))
def test_square_wave(epsilon, cells):
    mechanism = SquareWave(epsilon, low=0, high=cells, cells=cells)
    laws = [mechanism.law(value) for value in range(cells)]
    check_promise(laws, epsilon)
    for value, law in enumerate(laws):
        assert sum(chance * mechanism.window.decode(report) for report, chance in enumerate(law)) == value


def test_the_ends_of_a_range_are_the_worst_pair():
    # The audit samples them, so the largest ratio of the default grids must be there.
    for mechanism, (a, b) in ((Piecewise(1.0, steps=50), (-1, 1)), (SquareWave(1.0, cells=50), (0, 1))):
        ratio = max(x / y for x, y in zip(mechanism.law(a), mechanism.law(b), strict=True))
        assert float(ratio) == pytest.approx(math.e, rel=1e-12)


def test_infinite_epsilon_means_no_noise():
    assert RandomizedResponse(math.inf, 3).law(1) == (0, 1, 0)
    assert LocalHashing(math.inf, 3).law(1, seed=9) == (0, 1, 0)
    assert StochasticRounding(math.inf).law(1) == (0, 1)
    assert Piecewise(math.inf, steps=4).law(0) == (0, 0, 1, 0, 0)
    assert Hybrid(math.inf, steps=4).law(0) == (0, 0, 0, 0, 1, 0, 0)
    assert SquareWave(math.inf, cells=4).law(0.6) == (0, 0, 1, 0)
