"""What an epoch lacked, as the next one shows it: given to the blocks that rose, and to no other."""

import json
from dataclasses import asdict, replace

import numpy as np
import pytest

from deniable.randomness import SeededSource
from deniable.streams import Released, ToPS
from deniable.streams.central.hindsight import as_later, chosen_larger
from deniable.streams.central.warmup import Learnt
from deniable.streams.released.windows import Rise, Truncation

HORIZON = 1 << 15


@pytest.fixture(scope="module")
def risen():
    """Values that become ten times as large in the middle of an epoch, three releases, and where that is."""
    rng = np.random.default_rng(4)
    values = rng.gamma(2, 30, 5 * HORIZON)
    shift = 2 * HORIZON + HORIZON // 2
    values[shift:] *= 10
    whole = values.round().astype(np.int64)
    releases = []
    for seed in range(3):
        tops = ToPS(1.0, 10_000, horizon=HORIZON, source=SeededSource(seed), simulation=True)
        tops.push_many(whole)
        releases.append(tops)
    return whole, shift, releases


def test_windows_before_a_rise_are_as_before_and_those_behind_it_are_covered(risen):
    values, shift, releases = risen
    for tops in releases:
        truth = values[tops.settings.warmup :]
        at = shift - tops.settings.warmup
        epochs = tops.epoch_facts()
        begin = max(epoch.begin for epoch in epochs if epoch.begin < at)
        end = min(epoch.begin for epoch in epochs if epoch.begin > at)
        for start, stop in ((begin, begin + (at - begin) // 2), (begin + 1_000, begin + 4_000), (begin, end)):
            answer, real = tops.released.sum(start, stop), truth[start:stop].sum()
            assert answer.interval[0] < real < answer.interval[1]
            assert (answer.note is None) == (stop < at)
        before = tops.released.sum(begin, begin + (at - begin) // 2)
        assert abs(before.value / truth[begin : begin + (at - begin) // 2].sum() - 1) < 0.3


def test_a_file_keeps_where_a_stream_rose(risen, tmp_path):
    released = risen[2][0].released
    assert any(stretch.truncation.rise is not None for stretch in released.later)
    released.save(tmp_path / "private.parquet")
    again = Released.load(tmp_path / "private.parquet")
    assert [stretch.truncation for stretch in again.later] == [stretch.truncation for stretch in released.later]


def test_blocks_count_as_risen_as_far_as_their_mean_says():
    rise = Rise(level=10.0, certain=20.0, high=110.0, excess=300.0, variance=4.0, noise=1.0)
    assert rise.shares(np.array([5.0, 19.0, 60.0, 110.0, 200.0])).tolist() == [0.0, 0.0, 0.5, 1.0, 1.0]
    added, variance = rise.added(np.array([1000.0]), np.array([100.0]), 64)
    assert added.tolist() == [30_000.0]
    assert variance.tolist() == pytest.approx([100**2 * 4 + (1 / 100 * 300) ** 2 * 64 * 1000])


@pytest.mark.parametrize("power", [1.5, 3.0, 8.0])
def test_sums_of_a_power_law_spread_as_far_as_nineteen_in_twenty_windows_do(power):
    rng, share, count = np.random.default_rng(1), 0.002, 4_000
    excess = rng.pareto(power, (20_000, 24)) * (np.arange(24) < rng.poisson(share * count, (20_000, 1)))
    sums = excess.sum(axis=1)
    known = Truncation(1.0, 1e9, excess=share / (power - 1), far=(share, power))
    mean, variance = (float(part[0]) for part in known.added(np.array([float(count)])))
    assert 0.9 < np.mean(sums < mean + 1.96 * 1.6 * variance**0.5) <= 1.0
    assert variance**0.5 < 3 * np.subtract(*np.quantile(sums, (0.975, 0.5)))


def test_truncation_comes_back_from_json():
    rise = Rise(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    known = Truncation(10.0, 100.0, excess=0.5, far=(0.01, 2.0), rise=rise)
    assert Truncation.read(json.loads(json.dumps(asdict(known)))) == known
    assert Truncation.read({"theta": 1.0, "bound": 2.0, "sparse": True}).hidden == 1.0


def test_what_an_alike_epoch_lacked_is_bounded_by_the_mean_of_these_values():
    """Cut at 40 instead of 32, values with a mean of 7 have at most 7·40/32: a rise between epochs is not theirs."""
    mine, later = (Truncation(theta, 2_000, 0.0, 0.01, 0.5) for theta in (32, 16))
    mine, later = replace(mine, excess=0.1, excess_variance=0.01), replace(later, excess=20.0, excess_variance=1.0)
    seen = Learnt(40, excess=0.2)
    assert as_later(mine, later, None, 7.0).excess == 20.0
    assert as_later(mine, later, seen, 7.0).excess == pytest.approx(7 * (40 / 32 - 1) + 0.2)
    assert as_later(mine, later, seen, 0.1) is mine


@pytest.mark.parametrize("ratio", [1.2, 2**0.5, 2.0, 20.0])
def test_a_larger_threshold_says_how_much_the_smaller_one_lost(ratio):
    """The number of values above t that decides for x·t, from the definition of G, added up over t."""
    thetas = np.linspace(100.0, 100.0 * ratio, 100_001)
    gain = 2 * np.log(100.0 * ratio / thetas)  # of N_0
    counts = np.where(gain < np.log(2), np.sqrt(np.expm1(gain)), 1 + gain - np.log(2))
    lost = 0.003 * np.sum((counts[1:] + counts[:-1]) / 2 * np.diff(thetas))
    known = Truncation(100.0, 1e6, excess=0.1, excess_variance=0.04)
    wider = chosen_larger(known, [Learnt(90, above=0.5), Learnt(round(100 * ratio), above=0.003)])
    assert wider.excess_variance == pytest.approx(0.04 + (2 * lost) ** 2, rel=0.02)
    assert wider.excess == known.excess


def test_no_larger_threshold_says_nothing():
    known = Truncation(100.0, 1e6, excess=0.1, excess_variance=0.04)
    assert chosen_larger(known, []) == known
    assert chosen_larger(known, [Learnt(100, above=0.5), Learnt(300)]) == known
    assert chosen_larger(Truncation(100.0, 1e6), [Learnt(300, above=0.5)]).excess is None


def shares_inside(values, starts, length):
    """The share of windows whose interval holds their sum, over four releases."""
    inside = []
    for seed in range(4):
        tops = ToPS(0.5, 1_000, horizon=HORIZON, source=SeededSource(seed), simulation=True)
        tops.push_many(values)
        before = np.concatenate(([0], np.cumsum(values[tops.settings.warmup :])))
        low, high = tops.released.sums(starts, starts + length).intervals()
        truth = before[starts + length] - before[starts]
        inside.append(np.mean((low <= truth) & (truth <= high)))
    return np.mean(inside)


def test_rare_bursts_that_one_epoch_was_cut_for_widen_all_that_look_alike():
    """Bursts far above θ: where one epoch's θ turned out to be too small, others like it may have lost as much."""
    shares = []
    for seed in range(1, 7):
        rng = np.random.default_rng(seed)
        rates = np.full(6 * HORIZON, 5.0)
        for start in rng.integers(0, rates.size, 12):
            rates[start : start + rng.geometric(1 / 600)] += rng.gamma(2.0, 40.0)
        shares.append(shares_inside(rng.poisson(rates), np.arange(0, 5 * HORIZON, HORIZON // 8), HORIZON // 2))
    assert np.mean(shares) > 0.93


def test_blocks_whose_mean_is_nearly_theta_are_cut_unless_the_stream_was_always_like_that():
    rates = np.array([50.0, 90.0, 97.0, 100.5])
    known = Truncation(100.0, 1_000.0, excess=0.1, level=60.0)
    assert known.pressed(rates, 1.0).tolist() == [False, False, True, True]
    assert known.pressed(rates, 5.0).tolist() == [False, False, False, False]  # noise may explain it
    assert not replace(known, level=96.0).pressed(rates, 1.0).any()
    assert not replace(known, excess=30.0).pressed(rates, 1.0).any()  # how much they lose is known
    assert not replace(known, bound=100.0).pressed(rates, 1.0).any()


def test_a_threshold_that_was_learnt_at_night_is_noted_by_day():
    """Values of nearly one size: by day all lie above θ, and the means of blocks press against it."""
    rng = np.random.default_rng(4)
    values = np.rint(np.concatenate((rng.normal(60, 2, 4_000), rng.normal(100, 3, 40_000)))).astype(np.int64)
    assert shares_inside(values, np.arange(4_000, 16_000, 500), 1_000) > 0.97
