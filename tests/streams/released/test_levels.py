"""Levels that move after θ was learnt, and values far above θ that were counted: both are in intervals, or noted."""

from dataclasses import asdict
from types import SimpleNamespace

import numpy as np

from deniable.randomness import SeededSource
from deniable.streams import ToPS
from deniable.streams.central.hindsight import in_hindsight
from deniable.streams.central.warmup import Learnt
from deniable.streams.released.levels import growth, smooth_rates
from deniable.streams.released.windows import Truncation
from deniable.streams.structure.block_layout import BlockLayout


def test_levels_that_noise_hides_say_nothing():
    rates = np.full(8, 10.0)
    assert growth(rates, lambda blocks: 5 / blocks**0.5, 10.0, 4.0, 100.0) is None
    assert smooth_rates(rates, lambda blocks: 5 / blocks, 1.0).tolist() == rates.tolist()


def test_what_is_lost_grows_as_a_power_of_the_level_up_to_all_that_is_there():
    rates = np.array([5.0, 10.0, 20.0, 40.0])
    assert growth(rates, lambda _: 0.0, 10.0, 3.0, 10.0).tolist() == [0.125, 1.0, 8.0, 40.0]


def test_added_excess_follows_levels_and_its_doubt_never_falls():
    known = Truncation(100.0, 1000.0, excess=2.0, excess_variance=1.0, growth=(10.0, 3.0))
    count = np.array([50.0])
    plain, grown, fallen = (known.added(count, *parts) for parts in ((), (8 * count, 8 * count), (count / 8, count)))
    assert (grown[0] / plain[0]).tolist() == [8.0]
    assert (fallen[0] / plain[0]).tolist() == [0.125]
    assert grown[1] > 64 * plain[1]
    assert fallen[1] == plain[1]
    assert Truncation.read({**asdict(known), "growth": [10.0, 3.0]}) == known


def test_windows_of_a_level_that_rose_by_half_are_covered_without_a_note():
    rng = np.random.default_rng(3)
    values = np.rint(rng.gamma(3.0, np.where(np.arange(90_000) < 50_000, 20.0, 32.0)) + 0.5).astype(np.int64)
    tops = ToPS(1.0, 2000, warmup=4096, horizon=1 << 15, source=SeededSource(1), simulation=True)
    tops.push_many(values)
    truth = np.concatenate(([0], np.cumsum(values[4096:])))
    low, high = (np.arange(first, first + 8_000, 200) for first in (1 << 15, (1 << 15) + 20_000))
    released = tops.released
    before, after = released.sums(low, low + 4_000), released.sums(high, high + 4_000)
    assert np.median(after.excess) > 3 * np.median(before.excess)
    bottom, top = after.intervals()
    real = truth[high + 4_000] - truth[high]
    assert np.mean((bottom <= real) & (real <= top)) > 0.9
    assert not after.beyond.any()


def test_far_values_that_were_counted_are_noted_though_they_do_not_outweigh_all_others():
    """θ stays near 25 at this ε, but counts of values far above it say so epoch after epoch."""
    rng = np.random.default_rng(4)
    values = np.where(rng.random(270_000) < 0.04, 300, 25)
    tops = ToPS(0.05, 631, horizon=1 << 16, source=SeededSource(1001), simulation=True)
    tops.push_many(values)
    assert tops.learnt.theta < 50
    start, stop = 110_000, 170_000
    answer = tops.released.sum(start, stop)
    assert "lower bounds" in answer.note
    assert answer.interval[0] < values[tops.settings.warmup :][start:stop].sum() < answer.interval[1]


def test_values_that_lie_close_together_say_nothing_of_larger_ones_below_a_loose_bound():
    quiet = np.full(100_000, 10)
    loose, close = (
        ToPS(0.1, bound, horizon=1 << 15, source=SeededSource(2), simulation=True) for bound in (50_000, 40)
    )
    for tops in (loose, close):
        tops.push_many(quiet)
    assert loose.released.sum(40_000, 50_000).note is not None
    assert close.released.sum(40_000, 50_000).note is None


def test_a_larger_theta_does_not_make_days_look_like_values_that_were_cut():
    """Days are twice the nights; the next θ is larger by chance, and its epoch has a tenth more of everything."""
    layout = BlockLayout(1000, 100)
    noise = SimpleNamespace(variance=lambda starts, _: np.zeros(starts.shape))

    def blocks(times: float) -> SimpleNamespace:
        totals = np.rint(np.tile([60.0, 120.0], 5) * times).astype(np.int64)
        return SimpleNamespace(layout=layout, totals=lambda: totals, noisy_mean=lambda: float(totals.mean()) / 100)

    said = Truncation(6.0, 100.0, excess=0.001, excess_variance=1e-6, level=0.9)
    later = Learnt(13, mean=1.0, excess=0.0002, excess_variance=1e-7)
    known = in_hindsight(said, blocks(1.0), (1000, later, blocks(1.1)), noise)
    assert known.rise is None
    assert known.excess < 0.002
    assert known.excess_variance > said.excess_variance
