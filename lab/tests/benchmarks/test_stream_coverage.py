"""95 % intervals of windows cover the real sums, on drawn streams of several shapes."""

import numpy as np
import pytest

from deniable_lab.benchmarks.stream_coverage import LEAST, LENGTHS, MOST, SHAPES, shares_inside


def test_windows_of_a_few_streams_are_covered():
    """A small look at what the slow test below measures."""
    for shape in set(SHAPES) - {"meter readings"}:
        (shares,) = shares_inside(shape, [21_600], days=3, repetitions=12).values()
        assert shares.mean() >= 0.93, shape
    # On days and nights no window may be much worse than the others, wherever its ends are.
    (shares,) = shares_inside("meter readings", [21_600], days=3, repetitions=24).values()
    assert 0.93 <= shares.mean() <= MOST
    assert np.quantile(shares, 0.05) >= 0.83  # 24 repetitions at 95 %: at least 20 in 24 with a chance of 97 %


@pytest.mark.parametrize("smoother", ["mean", *(pytest.param(n, marks=pytest.mark.slow) for n in ("median", "moving"))])
def test_predictions_of_other_smoothers_are_covered_too(smoother):
    (shares,) = shares_inside("meter readings", [21_600], days=3, repetitions=12, smoother=smoother).values()
    assert shares.mean() >= 0.93


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_windows_of_hours_days_and_weeks_are_covered(shape):
    """200 repetitions: one window's share is known to 1.5 %, the mean of all to about 0.5 %."""
    for length, shares in shares_inside(shape, list(LENGTHS.values()), repetitions=200).items():
        assert shares.mean() >= LEAST, length
        assert np.quantile(shares, 0.05) >= 0.88, length
        if shape in ("meter readings", "heavy-tailed"):  # elsewhere most of the error is prediction's, and bounded
            assert shares.mean() <= MOST, length
