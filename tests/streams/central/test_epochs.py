"""θ that follows a stream: what is added up while an epoch runs, what a shift costs, and what a calm stream pays."""

import json

import numpy as np
import pytest

from deniable.errors import InvalidParameter
from deniable.randomness import SeededSource
from deniable.streams import PaperScore, ToPS, restore
from deniable.streams.central.evidence import EpochSums, KeptValues
from deniable.streams.central.threshold import PredictedError

EPOCH = 1 << 15


def make(seed=1, **more):
    settings = {"warmup": 1 << 13, "horizon": EPOCH, "source": SeededSource(seed), "simulation": True, **more}
    return ToPS(0.5, 10_000, **settings)


@pytest.mark.parametrize("count", [10, 500, 20_001])
def test_an_epoch_adds_up_what_its_values_would_have_told(count):
    values = np.random.default_rng(count).geometric(0.02, count)
    rule, top = PredictedError(), 3_000
    theta = int(rule.candidates(top)[20])
    sums = EpochSums(rule, top, theta, count)
    sums.extend(values[: count // 3])
    for value in values[count // 3 : count // 2].tolist():
        sums.add(value)
    again = EpochSums(rule, top, theta, count)
    again.resume(json.loads(json.dumps(sums.state())))
    again.extend(values[count // 2 :])
    kept = KeptValues(values, top)
    assert again.count == kept.count == count
    for own, other in zip(again.questions(theta), kept.questions(theta), strict=True):
        assert (own.name, own.total) == (other.name, other.total)
        assert own.sensitivity <= other.sensitivity


@pytest.mark.parametrize("factor", [10, 0.1])
def test_after_a_tenfold_shift_the_next_epoch_is_far_better_than_without_renewal(factor):
    """The shift comes with the second epoch. Errors of windows of the third, next to a publisher begun after it."""
    rng = np.random.default_rng(7)
    shift, end = (1 << 13) + EPOCH, (1 << 13) + 3 * EPOCH
    values = rng.geometric(0.02, end)
    values[shift:] = np.maximum(values[shift:] * factor, 1).astype(int)
    starts = rng.integers(0, EPOCH - 4_000, 100)
    prefix = np.concatenate(([0], np.cumsum(values[end - EPOCH :])))
    errors = {"follows": [], "stays": [], "fresh": []}
    for seed in range(7):
        for name, begin in (("follows", 0), ("stays", 0), ("fresh", end - EPOCH - (1 << 13))):
            publisher = make(seed, renew=name != "stays")
            publisher.push_many(values[begin:])
            skip = 0 if begin else 2 * EPOCH
            answers = publisher.released.sums(starts + skip, starts + skip + 4_000).values
            errors[name].append(np.mean((answers - prefix[starts + 4_000] + prefix[starts]) ** 2))
    follows, stays, fresh = (np.median(errors[name]) for name in errors)
    assert follows < 0.2 * stays
    assert follows < 8 * fresh  # a sixteenth of ε chose θ, and all of it where a publisher begins: 1 to 4 is usual


def test_what_a_calm_stream_pays_is_less_than_a_sixth():
    values = np.random.default_rng(8).geometric(0.02, (1 << 13) + 2 * EPOCH)
    variances = []
    for renew in (True, False):
        tops = make(renew=renew, block=256, fanout=12)
        tops.push_many(values)
        theta = tops.released.truncation.theta
        starts = np.arange(0, EPOCH - 5_000, 100)
        variances.append(np.mean(tops.released.sums(starts, starts + 5_000).stderrs ** 2) / theta**2)
    assert variances[0] / variances[1] == pytest.approx((16 / 15) ** 2, rel=0.01)


def test_a_public_start_publishes_at_once_and_is_renewed_soon():
    tops = make(start=50, warmup=0)
    values = np.random.default_rng(9).geometric(0.001, 9_000)
    assert tops.push(3) is not None
    tops.push_many(values)
    thetas = [learnt.theta for _, learnt, _ in tops._blocks.parts()]
    assert (len(thetas), thetas[0]) == (3, 50)
    assert min(thetas[1:]) > 1_000
    again = restore(json.loads(json.dumps(tops.state())), source=SeededSource(1))
    assert again.push_many(values).tolist() == tops.push_many(values).tolist()


def test_settings_that_do_not_go_together():
    with pytest.raises(InvalidParameter, match="renew needs the threshold PredictedError"):
        make(threshold=PaperScore(), renew=True)
    with pytest.raises(InvalidParameter, match="start is a θ to begin with"):
        make(start=50, renew=False)
