"""Expectation maximisation: the banded products equal the matrix, and it converges on awkward data."""

import math

import numpy as np
import pytest

from deniable.errors import InvalidParameter
from deniable.mechanisms import SquareWave
from deniable.mechanisms.reconstruction import LARGEST_STEPS, Blur
from deniable.randomness import SeededSource


def matrix(window, bins):
    size = window.inputs // bins
    outputs = -(-window.outputs // size)
    dense = np.zeros((outputs, bins))
    for index in range(window.inputs):
        for report, chance in enumerate(window.law(index)):
            dense[report // size, index // size] += float(chance) / size
    return dense


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0, math.inf])
@pytest.mark.parametrize(("cells", "bins"), [(64, 64), (64, 16), (60, 12), (64, 2), (7, 7)])
def test_products_with_the_blur_equal_those_with_the_matrix(epsilon, cells, bins):
    wave = SquareWave(epsilon, cells=cells)
    blur, dense = Blur.of(wave.window, bins), matrix(wave.window, bins)
    random = np.random.default_rng(5)
    shares, ratios = random.dirichlet(np.ones(bins)), random.random(dense.shape[0])
    np.testing.assert_allclose(blur.forward(shares), np.maximum(dense @ shares, 1e-300), rtol=1e-10, atol=1e-15)
    np.testing.assert_allclose(blur.backward(ratios), dense.T @ ratios, rtol=1e-10)
    assert blur.heights.size <= 6


def reports_of(values, epsilon, seed=51):
    wave = SquareWave(epsilon)
    return wave, wave.perturb(values, source=SeededSource(seed), simulation=True)


AWKWARD = {
    "all equal": np.full(65_536, 0.3),
    "all at one end": np.zeros(65_536),
    "two points": np.repeat([0.1, 0.8], 32_768),
    "empty bins": np.concatenate((np.linspace(0, 0.2, 32_768), np.linspace(0.7, 1.0, 32_768))),
}


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("smooth", [False, True])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_it_converges_on_awkward_data(name, smooth, epsilon):
    values = AWKWARD[name]
    wave, reports = reports_of(values, epsilon)
    result = wave.reconstruct(reports, smooth=smooth)
    assert result.converged
    assert result.steps < LARGEST_STEPS
    assert result.shares.sum() == pytest.approx(1)
    assert (result.shares >= 0).all()
    # The distribution function is right within the noise of 65,536 reports: compare it at the quarters of the range.
    truth = np.histogram(values, bins=4, range=(0, 1))[0].cumsum() / values.size
    cumulated = result.shares.reshape(4, -1).sum(axis=1).cumsum()
    assert np.abs(cumulated - truth).max() < {0.5: 0.1, 1.0: 0.03, 4.0: 0.02}[epsilon]


def test_more_reports_and_more_epsilon_bring_it_closer():
    values = np.clip(np.random.default_rng(6).beta(2, 6, 200_000), 0, 1)
    truth = np.histogram(values, bins=64, range=(0, 1))[0] / values.size

    def distance(epsilon, count):
        wave, reports = reports_of(values[:count], epsilon)
        return np.abs(wave.estimate(reports, bins=64).cumsum() - truth.cumsum()).max()

    assert distance(4.0, 200_000) < distance(0.5, 5_000)
    assert distance(4.0, 200_000) < 0.01


def test_without_noise_it_is_the_histogram():
    values = np.random.default_rng(7).random(10_000)
    wave = SquareWave(math.inf)
    shares = wave.estimate(wave.perturb(values, simulation=True), bins=32, smooth=False)
    np.testing.assert_allclose(shares, np.histogram(values, bins=32, range=(0, 1))[0] / values.size, atol=1e-9)


def test_bins_must_divide_the_grid():
    wave = SquareWave(1.0)
    with pytest.raises(InvalidParameter, match="bins must divide the 65536 cells"):
        wave.estimate(np.array([1, 2]), bins=1000)
