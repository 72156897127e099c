"""What straight lines through blocks miss: 95 % intervals of windows that start and end inside blocks."""

import numpy as np
import pytest

from deniable.randomness import SeededSource
from deniable.streams import PublicThreshold, ToPS
from deniable.streams.released.covariance import IndependentNoise
from deniable.streams.released.prediction_error import Smoothing, block_difference, smoothing_by_block
from deniable.streams.released.roughness import Roughness
from deniable.streams.structure.block_layout import BlockLayout


def noiseless(values, block, bound=10**6, **more):
    """Published without noise, so that all that is off is what happens inside blocks."""
    tops = ToPS(
        np.inf,
        bound,
        **{"warmup": 100, **more},
        horizon=1 << 16,
        threshold=PublicThreshold(bound),
        block=block,
        fanout=16,
        source=SeededSource(1),
        simulation=True,
    )
    tops.push_many(values)
    return tops.released


def scores(values, block, length, count=2_000, warmup=100):
    """Errors of random windows over their standard errors."""
    released = noiseless(np.concatenate((values[:warmup], values)), block, bound=1_000, warmup=warmup)
    starts = np.random.default_rng(4).integers(block, values.size - block - length, count)
    prefix = np.concatenate(([0], np.cumsum(values)))
    answers = released.sums(starts, starts + length)
    return (answers.values - prefix[starts + length] + prefix[starts]) / answers.smoothing


@pytest.mark.parametrize("length", [10, 60, 130, 1_000])
def test_independent_values_are_off_by_as_much_as_is_said(length):
    """Where runs were compared before. Otherwise cycles inside blocks are expected, and more is said."""
    values = np.random.default_rng(2).geometric(0.05, 60_000)
    assert 0.88 < np.sqrt(np.mean(scores(values, 128, length, warmup=60_000) ** 2)) < 1.12
    assert np.sqrt(np.mean(scores(values, 128, length) ** 2)) < 1.12


def test_sums_of_independent_values_inside_a_block_have_their_exact_variance():
    known, over = Roughness((1.0, 32.0, 128.0), (6.0, 192.0, 768.0)), np.arange(129)
    exact = 3 * over * (1 - over / 128)
    assert known.start(over, 128) == pytest.approx(exact)
    assert known.inside(over, 128) == pytest.approx(exact)


def test_single_values_vary_as_much_where_blocks_are_alike():
    """Neighbouring blocks that differ tell of what happens inside them, but nothing of how much single values vary."""
    layout = BlockLayout(100 * 512, 512)
    known = Roughness((1.0, 64.0, 512.0), (2.0, 128.0, 400_000.0))
    totals = 50_000.0 + np.where(np.arange(100) < 88, 0, 3_000 * (-1.0) ** np.arange(100))
    smoothing = smoothing_by_block(totals, 0, IndependentNoise(0.0), Smoothing(layout, known), 100)
    quiet, over = np.arange(1, 80), 5
    starts = quiet * 512 + over
    least = 2 * over * (1 - over / 512)  # at both ends, each of independent values of variance 1
    assert (smoothing.variance(starts, starts + 5 * 512) > 0.9 * least).all()


@pytest.mark.parametrize("factor", [0.1, 4])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_windows_that_end_where_the_level_jumps_inside_a_block_are_covered(share, factor):
    """A failure at noon, and "before" and "after" it asked: what the line misses there is known from the blocks."""
    rng, block, jump = np.random.default_rng(6), 1024, 20 * 1024 + int(share * 1024)
    values = rng.poisson(100 * np.where(np.arange(40 * block) < jump, 1, factor))
    released = noiseless(np.concatenate((values[:100], values)), block, bound=1_000)
    for start, stop in ((jump - 6 * block, jump), (jump, jump + 6 * block), (jump - 30, jump), (jump, jump + 30)):
        answer, truth = released.sum(start, stop), values[start:stop].sum()
        assert answer.interval[0] <= truth <= answer.interval[1]
    missed = share * (1 - share) * 100 * abs(1 - factor) * block
    assert 0.98 < released.sum(jump - 6 * block, jump).smoothing / missed < 1.25  # the line may be right after all
    assert released.sum(5 * block + 7, jump - 2 * block).smoothing < missed / 8  # elsewhere nothing changes


@pytest.mark.parametrize("period", [50, 90, 300])
def test_cycles_shorter_than_a_block_are_covered(period):
    """Blocks of 1,024 values do not show them; runs that were compared before do."""
    rng = np.random.default_rng(3)
    values = rng.poisson(100 * (1 + 0.5 * np.sin(2 * np.pi * np.arange(60_000) / period)))
    assert 0.4 < np.sqrt(np.mean(scores(values, 1024, 60, warmup=40_000) ** 2)) < 1.3


@pytest.mark.parametrize("length", [60, 130, 1_000])
def test_days_and_nights_that_blocks_show_are_covered(length):
    rng = np.random.default_rng(3)
    values = rng.poisson(200 * (1 + 0.8 * np.sin(np.arange(60_000) / 300)))
    assert np.mean(np.abs(scores(values, 256, length)) <= 1.96) > 0.93


def test_a_line_follows_a_slope_between_blocks():
    """On a straight slope a window of whole halves of blocks is off by what a curve of a block's height is, no more."""
    up = np.arange(20_000)
    released = noiseless(np.concatenate((up[:100], up)), 100)
    answer = released.sum(10_050, 15_050)
    assert answer.value == pytest.approx(up[10_050:15_050].sum(), abs=1)
    assert released.sum(10_000, 15_000).smoothing == 0


def test_a_burst_widens_intervals_around_it_and_not_elsewhere():
    values = np.full(20_100, 50)
    values[10_130:10_160] = 5_000
    released = noiseless(values, 100)
    beside, inside = released.sum(5_050, 8_000).smoothing, released.sum(10_050, 12_000).smoothing
    assert inside > 2 * beside
    assert abs(released.sum(10_050, 12_000).value - values[10_150:12_100].sum()) < 2 * inside


def test_roughness_of_independent_values_and_beyond_what_is_known():
    known = Roughness((1.0, 64.0), (2.0, 128.0))
    over = np.arange(65)
    assert known.start(over, 64).mean() == pytest.approx((over * (1 - over / 64)).mean(), rel=0.05)
    assert np.abs(known.start(over, 64) - over * (1 - over / 64)).max() < 6
    assert known.difference(256) == pytest.approx(512)
    assert known.difference(8) == pytest.approx(16)


def test_noisy_measurements_leave_what_is_usual_and_clear_ones_replace_it():
    usual = Roughness((1.0, 64.0), (2.0, 1280.0))
    clear = usual.weighed((1.0, 8.0), (2.0, 400.0), (0.0, 1e-9))
    assert clear.difference(8) == pytest.approx(400)
    assert clear.difference(64) == pytest.approx(1280 * 400 / usual.difference(8))
    vague = usual.weighed((1.0, 8.0), (2.0, 400.0), (0.0, 1e9))
    assert vague.difference(8) == pytest.approx(usual.difference(8), rel=1e-3)
    assert usual.weighed((1.0, 8.0), (2.0, 0.0), (0.0, 0.0)).difference(8) == pytest.approx(16)  # independent at least


def test_measured_squares_count_by_how_much_streams_and_noise_differ():
    usual = Roughness((1.0, 64.0), (2.0, 1280.0))
    at = usual.difference(8)
    for doubt in (0.0, at / 4, at, 20 * at):
        weight = max(9 * at**2 / (9 * at**2 + 2 * doubt**2 + 4 * doubt * at), at / (at + doubt))
        known = usual.weighed((1.0, 8.0), (2.0, 100.0), (0.0, doubt), spread=3.0)
        assert known.difference(8) == pytest.approx(weight * 100 + (1 - weight) * at)


def test_a_cycle_between_two_lengths_is_expected_where_runs_certainly_differ():
    """Runs of 128 differ far more than by chance, those of 512 do not: a period of 256 to 512 does that."""
    known = Roughness((1.0, 32.0, 128.0, 512.0), (2.0, 64.0, 10_256.0, 1_024.0))
    seen = known.with_cycles([128.0])
    assert seen.lengths == (1.0, 32.0, 128.0, 256.0, 512.0)
    assert seen.difference(256) == pytest.approx(2 * 10_000 + 512)
    assert known.with_cycles([]) == known.with_cycles([1.0, 32.0, 512.0]) == known
    growing = Roughness((1.0, 128.0, 512.0), (2.0, 10_256.0, 161_024.0))
    assert growing.with_cycles([128.0]) == growing


@pytest.mark.parametrize("length", [300, 1_440])
def test_cycles_between_the_lengths_that_were_compared_are_covered(length):
    """Half a period is 256: runs of 128 and of 512 were compared."""
    rng = np.random.default_rng(3)
    values = rng.poisson(100 * (1 + 0.6 * np.sin(2 * np.pi * np.arange(60_000) / 500)))
    assert np.sqrt(np.mean(scores(values, 1024, length, warmup=40_000) ** 2)) < 1.3


def test_short_blocks_at_the_end_of_chunks_are_no_drift():
    """Their means are all noise: 21 values and blocks of 4 leave one value for the last block."""
    rng, layout = np.random.default_rng(3), BlockLayout(21, 4)
    lengths = np.diff(layout.position(np.arange(601)))
    totals = np.rint(lengths * 50 + rng.normal(0, 100, 600)).astype(np.int64)
    measured = block_difference(totals, layout, IndependentNoise(100.0**2 / 4), 4.0)
    assert measured < 0.2 * 2 * 100**2
    assert block_difference(totals[:1], layout, IndependentNoise(1.0), 4.0) is None


def test_open_blocks_are_predictions_and_few_blocks_tell_nothing_local():
    whole = Smoothing(BlockLayout(1000, 8), Roughness((1.0, 8.0), (4.0, 32.0)))
    few = smoothing_by_block(np.array([3.0, 5.0]), 0, IndependentNoise(1.0), whole, 2)
    assert few.factors.tolist() == [1, 1]
    closed, opened = (few.variance(np.array([start]), np.array([start + 4]))[0] for start in (8, 16))
    assert opened == pytest.approx(closed + 32 / 4)
