"""Closed-form variances: against simulation within 2 %, and of the default grids against the continuous mechanisms."""

import math

import numpy as np
import pytest

from deniable.mechanisms import (
    DiscreteLaplace,
    Hybrid,
    LocalHashing,
    Piecewise,
    RandomizedResponse,
    SquareWave,
    StochasticRounding,
)
from deniable.mechanisms._counting import unbiased_counts
from deniable.mechanisms.hashing import bucket_array
from deniable.randomness import SeededSource

N = 1_000_000


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("value", [-1.0, 0.1, 1.0])
@pytest.mark.parametrize("kind", [StochasticRounding, Piecewise, Hybrid])
def test_estimates_of_numbers(kind, epsilon, value):
    mechanism = kind(epsilon)
    estimates = mechanism.estimate(mechanism.perturb(np.full(N, value), source=SeededSource(31), simulation=True))
    assert estimates.var() == pytest.approx(mechanism.variance(value), rel=0.02)
    assert abs(estimates.mean() - value) < 6 * math.sqrt(mechanism.variance(value) / N)


def test_a_range_scales_the_variance():
    assert Hybrid(1.0, 10, 30).variance(20) == pytest.approx(100 * Hybrid(1.0).variance(0))


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_square_wave_estimates_of_each_value(epsilon):
    wave = SquareWave(epsilon)
    estimates = wave.estimate_each(wave.perturb(np.full(N, 0.3), source=SeededSource(32), simulation=True))
    assert estimates.var() == pytest.approx(wave.variance(0.3), rel=0.02)
    assert abs(estimates.mean() - 0.3) < 6 * math.sqrt(wave.variance(0.3) / N) + 1 / 65536


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_discrete_laplace(epsilon):
    mechanism = DiscreteLaplace(epsilon)
    noise = mechanism.perturb(np.zeros(N, dtype=np.int64), source=SeededSource(33), simulation=True)
    assert noise.var() == pytest.approx(mechanism.variance(), rel=0.02)
    q = math.exp(-epsilon)
    assert mechanism.variance() == pytest.approx(2 * q / (1 - q) ** 2)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
@pytest.mark.parametrize(
    "make",
    [
        lambda epsilon: RandomizedResponse(epsilon, 20),
        lambda epsilon: LocalHashing(epsilon, 20),
        lambda epsilon: LocalHashing.binary(epsilon, 20),
    ],
)
def test_estimated_counts(make, epsilon):
    # A count is a sum of independent contributions, one per report: compare their mean and variance, cell by cell.
    mechanism = make(epsilon)
    reports = mechanism.perturb(np.full(N, 3), source=SeededSource(34), simulation=True)
    for cell, held in ((3, 1), (4, 0), (17, 0)):
        if isinstance(mechanism, LocalHashing):
            supports = bucket_array(reports.seeds, np.full(N, cell), mechanism.g) == reports.buckets
        else:
            supports = reports == cell
        contributions = unbiased_counts(supports.astype(float), 1, mechanism.p, mechanism.q)
        assert contributions.var() == pytest.approx(mechanism.variance(1, held), rel=0.02)
        assert abs(contributions.mean() - held) < 6 * math.sqrt(mechanism.variance(1, held) / N)
        assert mechanism.estimate(reports)[cell] == pytest.approx(contributions.sum(), rel=1e-6, abs=1e-3)
    assert mechanism.variance(50, 25) == pytest.approx(25 * mechanism.variance(1, 1) + 25 * mechanism.variance(1))


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.61, 1, 2, 5, 10, 20, 25])
@pytest.mark.parametrize("value", [0.0, 0.123456, -1.0, 1.0])
def test_the_default_grid_is_within_a_thousandth_of_the_continuous_mechanisms(epsilon, value):
    power = math.exp(epsilon / 2)
    piecewise = value**2 / (power - 1) + (power + 3) / (3 * (power - 1) ** 2)
    rounding = ((power**2 + 1) / (power**2 - 1)) ** 2 - value**2
    assert Piecewise(epsilon).variance(value) == pytest.approx(piecewise, rel=1e-3)
    assert StochasticRounding(epsilon).variance(value) == pytest.approx(rounding, rel=1e-9, abs=1e-12)
    alpha = 1 - 1 / power if epsilon > 0.61 else 0
    assert Hybrid(epsilon).variance(value) == pytest.approx(alpha * piecewise + (1 - alpha) * rounding, rel=1e-3)


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1, 2, 5, 10, 15])
@pytest.mark.parametrize("value", [0.0, 0.3, 1.0])
def test_the_default_square_wave_is_within_a_thousandth_of_the_continuous_one(epsilon, value):
    e = math.exp(epsilon)
    # Series for tiny ε, where the printed formula loses its digits: b = 1/2 − ε/6 + O(ε²).
    b = (epsilon * e - e + 1) / (2 * e * (e - 1 - epsilon))
    p, q = e / (2 * b * e + 1), 1 / (2 * b * e + 1)
    mean = q * (1 + 2 * b) / 2 + (p - q) * 2 * b * value
    square = q * ((1 + b) ** 3 + b**3) / 3 + (p - q) * (2 * b * value**2 + 2 * b**3 / 3)
    expected = (square - mean**2) / ((p - q) * 2 * b) ** 2
    assert SquareWave(epsilon).variance(value) == pytest.approx(expected, rel=1e-3)


def test_the_worst_variance_of_the_hybrid_mechanism_is_the_printed_one():
    for epsilon in (0.3, 0.61, 0.7, 2, 4):
        power = math.exp(epsilon / 2)
        rounding = ((power**2 + 1) / (power**2 - 1)) ** 2
        mixture = (rounding + (power + 3) / (3 * (power - 1))) / power
        expected = mixture if epsilon > 0.61 else rounding
        worst = max(Hybrid(epsilon).variance(value) for value in (0.0, 0.5, 1.0))
        assert worst == pytest.approx(expected, rel=1e-3)
