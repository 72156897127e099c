"""Thresholds: what they choose without noise, and that their scores move as the proof says."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.errors import InvalidParameter
from deniable.randomness import SeededSource
from deniable.streams import ToPS
from deniable.streams.central.stream_forecast import Expectation, choose_plan, forecast, paper_block
from deniable.streams.central.threshold import (
    FixedPercentile,
    PAKPercentile,
    PaperScore,
    PredictedError,
    PublicThreshold,
    Situation,
    SmoothThreshold,
    _counts_above,
)

UNIT = 1 << 16


def situation(bound=100, warmup=1000, **more):
    facts = {"horizon": 16_000, "epsilon": 0.1, "error": 4000.0, "tail": 0.25}
    return Situation(bound, warmup, **{**facts, **more})


@pytest.mark.parametrize(
    "threshold", [PredictedError(), PredictedError(per_octave=16), PaperScore(), PaperScore(levels=6)]
)
@settings(deadline=None, max_examples=50)
@given(values=st.lists(st.integers(0, 100), min_size=1, max_size=30), other=st.integers(0, 100), data=st.data())
def test_all_scores_move_the_same_way_by_at_most_one_unit(threshold, values, other, data):
    index = data.draw(st.integers(0, len(values) - 1))
    neighbour = [*values[:index], other, *values[index + 1 :]]
    facts = situation(warmup=len(values), error=data.draw(st.floats(1e-9, 1e6)))
    change = threshold.scores(np.array(neighbour), facts) - threshold.scores(np.array(values), facts)
    assert np.abs(change).max() <= UNIT
    assert (change <= 0).all() if other >= values[index] else (change >= 0).all()


def test_counts_above():
    assert _counts_above(np.array([3, 1, 2, 2]), np.array([1, 2, 3, 4])).tolist() == [3, 1, 0, 0]


def test_the_sign_of_the_paper_s_count_matters():
    """As printed, with #{v ≤ θ}, both terms fall with θ and θ = 1 always wins; as corrected, the optimum is inside."""
    values = np.random.default_rng(1).geometric(0.1, 65_536)
    facts = situation(1000, 65_536, horizon=2**20)
    scores = PaperScore().scores(values, facts)
    thetas = PaperScore().candidates(1000)
    assert 40 < thetas[scores.argmax()] < 100
    printed = scores + 2 * UNIT * _counts_above(values, thetas) - UNIT * values.size
    assert thetas[printed.argmax()] == 1


def test_the_default_finds_the_best_threshold_of_an_exponential_tail():
    """Values of mean 10 above θ exceed it by 10: the predicted error is exact at θ = 40 where tail·θ is 10."""
    rng = np.random.default_rng(2)
    values = np.floor(rng.exponential(10, 65_536)).astype(int)
    error = 30 / 0.05**2
    facts = situation(1000, 65_536, horizon=2**20, error=error)
    chosen = int(
        PredictedError(per_octave=16).candidates(1000)[PredictedError(per_octave=16).scores(values, facts).argmax()]
    )
    thetas = np.arange(1, 200)
    lost = 10 * np.exp(-thetas / 10)
    true = thetas**2 * error + (2**20) ** 2 / 6 * lost**2
    assert true[chosen - 1] < 1.15 * true.min()
    share = (values > chosen).mean()
    assert 1 / 3 < PredictedError().aim(facts) / share < 3


@pytest.mark.parametrize("mechanism", ["noisy-max", "permute-and-flip"])
def test_noise_rarely_leads_far_astray(mechanism):
    values = np.floor(np.random.default_rng(2).exponential(10, 65_536)).astype(int)
    facts = situation(1638, 65_536, horizon=2**20, error=30 / 0.01**2)
    chosen = [
        PredictedError(mechanism).choose(values, facts, 0.008, SeededSource(seed), simulation=True)
        for seed in range(200)
    ]
    assert np.quantile(chosen, 0.02) > 20
    assert np.quantile(chosen, 0.98) < 250


def test_without_noise_the_other_thresholds_are_percentiles():
    values, facts = np.arange(1, 101), situation(100, 100)
    source = SeededSource(1)
    assert SmoothThreshold(0.9).choose(values, facts, math.inf, source, simulation=True) == 90
    assert PAKPercentile(0.9).choose(values, facts, math.inf, source, simulation=True) == 90
    assert FixedPercentile(0.9).choose(values, facts, 1.0, source, simulation=True) == 90
    assert FixedPercentile(0.9).choose(values * 0, facts, 1.0, source, simulation=True) == 1
    with pytest.raises(InvalidParameter, match="public"):
        PublicThreshold(3).choose(values, facts, 1.0, source)


@pytest.mark.parametrize("bound", [1, 2, 1638, 10**7])
def test_candidates_reach_from_one_to_the_bound_at_the_stated_resolution(bound):
    for threshold, most in ((PredictedError(), 2 ** (1 / 4)), (PaperScore(), None)):
        candidates = threshold.candidates(bound)
        assert candidates[-1] == bound
        assert candidates.size <= 1 << 16
        if most:
            assert candidates[0] == 1
            assert (candidates[1:] <= np.maximum(np.ceil(candidates[:-1] * most), candidates[:-1] + 1)).all()
        else:
            assert np.diff(candidates).max(initial=0) <= -(-bound // (1 << 16))


def test_bounds_of_ten_million_are_no_trouble():
    values = np.random.default_rng(3).integers(0, 10**7, 65_536)
    facts = situation(10**7, 65_536, horizon=2**20)
    for threshold in (PredictedError(), PaperScore()):
        assert 1 <= threshold.choose(values, facts, 0.1, SeededSource(4), simulation=True) <= 10**7


@pytest.mark.parametrize(
    "make", [lambda: PredictedError("guess"), lambda: PaperScore(c=0), lambda: PredictedError(per_octave=0)]
)
def test_impossible_settings(make):
    with pytest.raises(InvalidParameter):
        make()


@pytest.mark.parametrize(
    ("rule", "theta"),
    [
        (PredictedError(), 8),
        (PaperScore(), 35),
        (SmoothThreshold(), 1),
        (PAKPercentile(), 100),
        (FixedPercentile(0.9), 8),
        (PublicThreshold(40), 40),
    ],
)
def test_what_each_rule_makes_of_the_same_warm_up(rule, theta):
    tops = ToPS(1.0, 100, warmup=1000, threshold=rule, hierarchy="tree", source=SeededSource(1), simulation=True)
    assert (tops.push_many([5, 6, 7, 8] * 250).size, tops.learnt.theta) == (0, theta)


# Blocks ------------------------------------------------------------------------------------------------------------


def test_blocks_of_the_paper_by_the_integer_argmin_of_its_equation_7():
    assert [paper_block(epsilon, 2**20, 16) for epsilon in (0.01, 0.02, 0.05, 0.1)] == [4096, 4096, 256, 256]
    assert paper_block(math.inf, 2**20, 16) == 1


def test_blocks_grow_with_noise_and_shrink_with_drift():
    def block(epsilon, drift=0.04):
        return choose_plan(epsilon, 2**20, expectation=Expectation(drift=drift)).block

    assert [block(epsilon) for epsilon in (0.01, 0.05, 0.1, 1.0)] == sorted(
        (block(epsilon) for epsilon in (0.01, 0.05, 0.1, 1.0)), reverse=True
    )
    assert block(0.05, drift=0.4) < block(0.05) < block(0.05, drift=0.004)
    assert choose_plan(math.inf, 1000, expectation=Expectation()).block == 1


def test_a_plan_is_no_worse_than_any_other_that_was_tried():
    expected = Expectation()
    best = choose_plan(0.05, 2**20, expectation=expected)

    def error(plan):
        return plan.noise(0.05) + plan.smoothing(expected.knots)

    for size in (256, 4096, 16_384, 65_536):
        other = choose_plan(0.05, 2**20, expectation=expected, block=size, fanout=16)
        assert error(best) <= error(other) * 1.001


def test_what_was_learnt_of_runs_goes_before_what_is_expected():
    expected = Expectation()
    calm = tuple((length, 2 * expected.spread**2 * length) for length, _ in expected.knots)
    usual, larger = (choose_plan(0.05, 2**20, expectation=expected, knots=knots) for knots in (None, calm))
    assert larger.block > usual.block
    values = np.random.default_rng(5).geometric(0.2, 66_000)
    night = np.where(np.arange(66_000) % 2000 < 1000, values // 4, values)
    blocks = []
    for stream in (values, night):
        tops = ToPS(1.0, 100, source=SeededSource(1), simulation=True)
        tops.push_many(stream)
        blocks.append(tops.plan.block)
    assert blocks[0] > 2000 > 1000 > blocks[1]


def test_large_values_keep_their_threshold_however_large_the_noise():
    """2·N_0·ln θ once outweighed any count, and θ = 1 won. With a limit on N_0 every value is seen."""
    values = np.random.default_rng(1).integers(2_500, 3_500, 16_384)
    for epsilon in (0.01, 0.002):
        tops = ToPS(epsilon, 10**5, warmup=16_384, horizon=2**14, source=SeededSource(2), simulation=True)
        tops.push_many(values)
        assert tops.learnt.theta > 1_000, epsilon


def test_forecasts_are_the_standard_errors_of_the_published_stream():
    plan = choose_plan(1.0, 4096, expectation=Expectation())
    (row,) = forecast(plan, 1.0, 50, [1024], Expectation())
    tops = ToPS(1.0, 50, warmup=0, threshold=PublicThreshold(50), horizon=4096, block=plan.block, fanout=plan.fanout)
    tops.push_many(np.zeros(4096, dtype=int))
    starts = np.arange(plan.block, 3072)
    windows = tops.released.sums(starts, starts + 1024)
    assert np.sqrt((windows.stderrs**2).mean()) == pytest.approx(row.noise, rel=0.02)
    assert row.total == pytest.approx(math.hypot(row.noise, row.smoothing))


@pytest.mark.parametrize("share", [-0.1, 2, True, "a"])
def test_expectations_are_shares(share):
    with pytest.raises(InvalidParameter):
        Expectation(drift=share)
    with pytest.raises(InvalidParameter):
        Expectation(tail=0)
