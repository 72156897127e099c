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
    # 20 cells × 2,000 runs of 50 users each: the variance of an estimated count, of a held cell and of empty ones.
    mechanism, users, runs = make(epsilon), 50, 2_000
    values = np.tile(np.repeat([0, 1], users // 2), runs)
    reports = mechanism.perturb(values, source=SeededSource(34), simulation=True)
    estimates = np.empty((runs, 20))
    for run in range(runs):
        part = slice(run * users, (run + 1) * users)
        if isinstance(mechanism, LocalHashing):
            estimates[run] = mechanism.estimate(type(reports)(reports.seeds[part], reports.buckets[part]))
        else:
            estimates[run] = mechanism.estimate(reports[part])
    held, empty = estimates[:, :2], estimates[:, 2:]
    deviation = math.sqrt(2 / (2 * runs))  # of a variance estimated from 2 · runs values
    assert held.var() == pytest.approx(mechanism.variance(users, 25), rel=6 * deviation)
    assert empty.var() == pytest.approx(mechanism.variance(users), rel=0.02 + 6 * math.sqrt(2 / (18 * runs)))
    assert abs(held.mean() - 25) < 6 * math.sqrt(mechanism.variance(users, 25) / (2 * runs))
    assert abs(empty.mean()) < 6 * math.sqrt(mechanism.variance(users) / runs)


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
