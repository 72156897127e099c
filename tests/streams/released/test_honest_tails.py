"""Intervals on streams that nothing was chosen on: rare huge values, heavy tails, outages, streams that come back."""

from itertools import pairwise

import numpy as np
import pytest

from deniable.arrays import Floats
from deniable.randomness import SeededSource
from deniable.streams import ToPS
from deniable.streams.central.far_tail import power_excess
from deniable.streams.released.covariance import IndependentNoise
from deniable.streams.released.prediction_error import Smoothing, smoothing_by_block
from deniable.streams.released.roughness import Roughness
from deniable.streams.released.windows import WindowEstimate
from deniable.streams.structure.block_layout import BlockLayout

HORIZON = 1 << 15


def publish(values: Floats, epsilon: float, seed: int, bound: int = 100_000) -> ToPS:
    """A simulated release of all of them."""
    tops = ToPS(epsilon, bound, horizon=HORIZON, source=SeededSource(seed), simulation=True)
    tops.push_many(np.rint(values).astype(np.int64))
    return tops


def test_rare_huge_values_are_noted_and_their_sum_is_not_denied():
    values = np.zeros(3 * HORIZON)
    for start in range(3_000, values.size, 11_000):
        values[start : start + 20] = 50_000
    tops = publish(values, 1.0, 1)
    answer = tops.released.sum(HORIZON, 2 * HORIZON)
    truth = values[tops.settings.warmup :][HORIZON : 2 * HORIZON].sum()
    assert tops.learnt.theta < 10  # so few values are lost in the noise of the choice of θ
    assert answer.value < truth / 100
    assert answer.interval[0] < truth < answer.interval[1]
    assert "lower bounds" in answer.note


def test_a_stream_without_zeros_is_not_called_sparse():
    values = np.random.default_rng(1).geometric(0.1, 2 * HORIZON)
    assert publish(values, 1.0, 1, 3_000).released.sum(0, HORIZON).note is None


def test_a_bound_so_loose_that_noise_could_hide_all_there_is_is_noted():
    """Noise hides 1 % of the values: a hundred times the others if they were 100,000, three times if 3,000."""
    values = np.random.default_rng(1).geometric(0.1, 2 * HORIZON)
    hidden = np.where(np.random.default_rng(2).random(values.size) < 0.005, 100_000, values)
    for stream in (values, hidden):
        released = publish(stream, 1.0, 1).released
        truth = stream[stream.size - len(released) :]
        answer = released.sum(HORIZON // 2, HORIZON)
        assert "lower bounds" in answer.note
        assert answer.interval[0] < truth[HORIZON // 2 : HORIZON].sum() < answer.interval[1]


def test_intervals_reach_no_lower_than_the_sum_of_cut_values_may_lie():
    answer = WindowEstimate(100.0, 1.0, excess=2.0, cut=50.0)
    assert answer.interval[0] == pytest.approx(100.0 - 2.0 - 1.96, abs=0.01)
    assert answer.interval[1] > 200
    assert WindowEstimate(100.0, 1.0, excess=2.0, cut=0.1).interval[0] > 98


def two_kinds(count):
    """3 % of values are 5,000, all others 10."""
    return np.where(np.random.default_rng(5).random(count) < 0.03, 5_000, 10)


def test_a_gap_that_theta_does_not_cross_is_noted():
    """θ stays at about 10, because 3 % are too few for the noise of its choice; but they are counted, with noise."""
    values = two_kinds(380_000)
    for seed in range(3):
        tops = ToPS(0.1, 10_000, horizon=1 << 17, source=SeededSource(seed), simulation=True)
        tops.push_many(values)
        truth = values[tops.settings.warmup :]
        assert tops.learnt.theta < 50
        for start, stop in ((0, 3_000), (30_000, 31_000), (100_000, 200_000)):
            answer = tops.released.sum(start, stop)
            assert answer.interval[0] < truth[start:stop].sum() < answer.interval[1]
            assert "lower bounds" in answer.note


def test_what_a_later_theta_shows_is_said_of_all_earlier_epochs_that_look_alike():
    values = two_kinds(380_000)
    tops = ToPS(0.1, 10_000, horizon=1 << 20, source=SeededSource(3), simulation=True)
    tops.push_many(values)
    truth = values[tops.settings.warmup :]
    epochs = tops.epoch_facts()
    assert [epoch.learnt.theta < 50 for epoch in epochs[:4]] == [True, True, True, False]
    for epoch, after in pairwise(epochs[:4]):
        answer = tops.released.sum(epoch.begin, after.begin)
        assert answer.interval[0] < truth[epoch.begin : after.begin].sum() < answer.interval[1]
        assert answer.note is None


@pytest.mark.parametrize(("share", "mean"), [(0.001, 0.5), (0.005, 0.026), (0.01, 0.1), (0.2, 0.3), (0.002, 0.002)])
def test_the_power_law_has_the_share_and_the_mean_that_it_was_given(share, mean):
    near, far = power_excess(share, mean, 50.0)
    powers = np.linspace(0, 64, 200_001)[1:]
    below = np.linspace(0, 1, 4001)[1:]
    means = [np.minimum(1, share * below**-power).mean() for power in powers[::400]]
    power = np.interp(mean, means, powers[::400])
    steps = np.geomspace(1, 50, 200_001)
    survival = share * steps**-power
    areas = (survival[1:] + survival[:-1]) / 2 * np.diff(steps)
    assert near == pytest.approx(areas[steps[:-1] < 4].sum(), rel=0.15)
    assert far == pytest.approx(areas[steps[:-1] >= 4].sum(), rel=0.3, abs=1e-9)


def test_a_rare_large_noise_is_not_taken_for_large_values():
    """Seed 0 draws an excess of seven standard errors in its fifth epoch, where no value can be that large."""
    values = np.minimum(10 * (1 + np.random.default_rng(77).pareto(1.2, 160_000)), 100_000)
    tops = ToPS(0.1, 100_000, horizon=1 << 16, source=SeededSource(0), simulation=True)
    tops.push_many(np.rint(values).astype(np.int64))
    assert all(epoch.learnt.excess < 10 for epoch in tops.epoch_facts())


def test_what_a_small_theta_lost_is_not_given_to_zeros():
    rng = np.random.default_rng(5)
    values = rng.gamma(2, 100, 6 * HORIZON)
    values[2 * HORIZON : 4 * HORIZON + HORIZON // 3] = 0
    tops = publish(values, 1.0, 0)
    truth = values[tops.settings.warmup :]
    epochs = tops.epoch_facts()
    blind = next(k for k, epoch in enumerate(epochs) if epoch.learnt.theta < 20 and epochs[k + 1].learnt.theta > 200)
    begin, end = epochs[blind].begin, epochs[blind + 1].begin
    zeros = np.flatnonzero(truth[begin:end] > 0)[0]
    dead = tops.released.sum(begin, begin + zeros // 2)
    assert (dead.excess, dead.cut) == (0, 0)
    assert abs(dead.value) < 6 * dead.error


def test_a_block_far_below_both_neighbours_may_hide_an_outage_anywhere():
    layout = BlockLayout(64 * 100, 100)
    totals = np.full(64, 1000.0) + np.random.default_rng(1).normal(0, 10, 64)
    totals[30] = 500.0
    whole = Smoothing(layout, Roughness((1.0, 100.0), (2.0, 200.0)))
    local = smoothing_by_block(totals, 0, IndependentNoise(0.01), whole, 64)
    middle = local.variance(np.array([3050, 4050]), np.array([3100, 4100]))
    assert middle[0] > 480**2 / 4 > 100 * middle[1]
    assert np.count_nonzero(local.isolated) == 1


def test_runs_of_half_the_length_differ_at_least_a_quarter_as_much():
    known = Roughness((1.0, 64.0, 1024.0), (2.0, 128.0, 2048.0)).ending(2048.0, 1e9)
    assert known.difference(1024) == pytest.approx(1e9 / 16)
    assert known.difference(1) == 2.0
