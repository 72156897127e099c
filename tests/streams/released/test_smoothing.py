"""How far predictions inside blocks are off: 95 % intervals of windows that start and end inside blocks."""

import numpy as np
import pytest

from deniable.randomness import SeededSource
from deniable.streams import Expectation, PublicThreshold, Released, ToPS
from deniable.streams.released.covariance import IndependentNoise
from deniable.streams.released.prediction_error import (
    Smoothing,
    SmoothingByBlock,
    measured_smoothing,
    smoothing_by_block,
)
from deniable.streams.structure.block_layout import BlockLayout
from deniable.streams.structure.value_grid import Grid


def noiseless(values, block, **more):
    """Published without noise, so that all that is off is prediction."""
    tops = ToPS(
        np.inf,
        10**6,
        warmup=100,
        horizon=1 << 16,
        threshold=PublicThreshold(10**6),
        block=block,
        fanout=16,
        source=SeededSource(1),
        simulation=True,
        **more,
    )
    tops.push_many(values)
    return tops.released


def test_a_trend_is_seen_with_its_sign_and_at_both_ends():
    """On a slope the prediction lags behind by what the window's end tells, exactly; opposite slopes add up."""
    up = np.arange(20_000)
    released = noiseless(np.concatenate((up[:100], up, up[::-1])), 100, expectation=Expectation(drift=0.0))
    start, stop = 10_050, 30_050  # on the way up, and on the way down
    truth = np.concatenate((up, up[::-1]))[start:stop].sum()
    for first, last, expected in ((10_000, 30_050, 50 * 75), (10_050, 30_000, 50 * 75), (start, stop, 100 * 75)):
        assert released.sum(first, last).smoothing == pytest.approx(expected, rel=0.05)
    answer = released.sum(start, stop)
    assert abs(answer.value - truth) == pytest.approx(answer.smoothing, rel=0.05)
    assert released.sum(10_000, 30_000).smoothing == 0
    # Both ends on the same slope lag alike, and the lag cancels.
    assert released.sum(10_050, 15_050).smoothing < 0.1 * answer.smoothing
    assert released.smoothing.drift == pytest.approx(100**2, rel=0.1)


def test_a_burst_widens_intervals_around_it_and_not_elsewhere():
    values = np.full(20_100, 50)
    values[10_130:10_160] = 5_000
    released = noiseless(values, 100)
    beside, inside = released.sum(5_050, 8_000).smoothing, released.sum(10_050, 12_000).smoothing
    assert inside > 5 * beside
    assert abs(released.sum(10_050, 12_000).value - values[10_150:12_100].sum()) < 2 * inside


def test_the_first_block_of_all_tells_how_wrong_its_filling_was():
    released = noiseless(np.concatenate((np.full(100, 900), np.full(5_000, 300))), 100)
    answer = released.sum(0, 50)
    assert answer.value == pytest.approx(50 * 900, rel=0.01)
    assert answer.smoothing == pytest.approx(50 * 600, rel=0.01)


def test_windows_inside_one_block():
    released = noiseless(np.concatenate((np.zeros(100, dtype=int), np.arange(20_000))), 100)
    answer = released.sum(10_020, 10_060)
    assert abs(answer.value - np.arange(10_020, 10_060).sum()) == pytest.approx(answer.smoothing, rel=0.05)


def test_few_blocks_and_parts_of_streams():
    """What is known of the whole stands where too few blocks are there; parts of a stream know their place in it."""
    whole = Smoothing(BlockLayout(1000, 8), 2.0, 0.5)
    short = smoothing_by_block(np.cumsum(np.arange(30.0)), 0, IndependentNoise(1.0), whole)
    assert short is whole
    values = np.random.default_rng(1).normal(50, 5, 4_000).cumsum() / 10
    everything = Released(values, IndependentNoise(1.0), Grid(10**6), smoothing=whole)
    part = Released(values[505:3_505], IndependentNoise(1.0), Grid(10**6), smoothing=whole, first=505)
    local = part._smoothing_here
    assert isinstance(local, SmoothingByBlock)
    starts = np.arange(700, 3_000, 7)
    same, other = (
        released.sums(starts - released.first, starts - released.first + 33) for released in (part, everything)
    )
    assert np.allclose(same.smoothing, other.smoothing, rtol=0.2)
    ends = part.sums(np.arange(0, 3_000), np.arange(1, 3_001))
    assert np.isfinite(ends.smoothing).all()


def test_short_blocks_at_the_end_of_chunks_are_no_drift():
    """Their means are all noise: 21 values and blocks of 4 leave one value for the last block."""
    rng, layout = np.random.default_rng(3), BlockLayout(21, 4)
    lengths = np.diff(layout.position(np.arange(601)))
    totals = np.rint(lengths * 50 + rng.normal(0, 100, 600)).astype(np.int64)
    measured = measured_smoothing(totals, layout, node_variance=100.0**2, spread=1.0, expected_drift=4.0)
    assert measured.drift < 100
    assert measured_smoothing(totals[:1], layout, node_variance=1.0, spread=1.0, expected_drift=4.0).drift == 4.0
