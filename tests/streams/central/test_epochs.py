"""θ that follows a stream: what is added up while an epoch runs, what a shift costs, and what a calm stream pays."""

import json
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from deniable.errors import InvalidParameter
from deniable.randomness import SeededSource
from deniable.streams import Expectation, PaperScore, ToPS, choose_plan, restore
from deniable.streams.central import threshold
from deniable.streams.central.evidence import EpochSums, KeptValues, run_lengths, run_totals
from deniable.streams.central.published_epochs import released_from
from deniable.streams.central.published_roughness import BlockDifferences
from deniable.streams.central.threshold import PredictedError, Situation
from deniable.streams.central.warmup import Before, Learnt, _as_known, learn
from deniable.streams.structure.state_values import seal

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


def test_what_was_learnt_from_more_is_kept_where_nothing_changes():
    """All of ε went into the choice of the first θ, a sixteenth of it into the later ones."""
    thetas = []
    for seed in range(6):
        values = np.random.default_rng(seed).geometric(0.02, 4 * EPOCH)
        publisher = make(seed, warmup=EPOCH)
        publisher.push_many(values)
        first, *later = (epoch.learnt.theta for epoch in publisher.epoch_facts())
        thetas += [theta / first for theta in later]
    assert np.mean(np.array(thetas) == 1) > 0.6
    assert 0.6 < min(thetas) <= max(thetas) < 1.7


def shifted(factor, rng, at, epochs=5):
    """Values whose level is another one from `at` on, counted from the end of the warm-up."""
    values = rng.geometric(0.02, (1 << 13) + epochs * EPOCH)
    values[(1 << 13) + at :] = np.maximum(values[(1 << 13) + at :] * factor, 1).astype(int)
    return values


@pytest.mark.parametrize(("factor", "at"), [(10, EPOCH), (0.1, EPOCH), (0.1, 5 * EPOCH // 4)])
def test_after_a_tenfold_shift_the_first_whole_epoch_is_as_good_as_a_fresh_start(factor, at):
    """Errors of windows of the first epoch that began after the shift and ran to its end, medians over releases.

    A fresh publisher spends all of ε on its warm-up, the epoch had a sixteenth of it. Without renewal, errors stay.
    """
    errors, early = {"follows": [], "stays": [], "fresh": []}, 0
    seeds = 9
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        values = shifted(factor, rng, at, epochs=4)
        follows, stays, fresh = make(seed), make(seed, renew=False), make(seed + 100)
        follows.push_many(values)
        parts = follows._blocks.parts()
        early += any(blocks.published < blocks.plan.horizon for _, _, blocks in parts[:-1])
        begin = next(start for start, _, blocks in parts if start >= at and blocks.published == EPOCH)
        stays.push_many(values)
        fresh.push_many(values[begin : begin + (1 << 13) + EPOCH])
        starts = rng.integers(0, EPOCH - 4_000, 100)
        prefix = np.concatenate(([0], np.cumsum(values[begin + (1 << 13) :])))
        truth = prefix[starts + 4_000] - prefix[starts]
        for name, publisher, skip in (("follows", follows, begin), ("stays", stays, begin), ("fresh", fresh, 0)):
            answers = publisher.released.sums(starts + skip, starts + skip + 4_000).values
            errors[name].append(np.mean((answers - truth) ** 2))
    assert early >= 0.75 * seeds  # where noise hides a shift, the epoch runs to its end
    ours, without, best = (np.median(errors[name]) for name in errors)
    assert ours < 0.2 * without
    assert ours < 2 * best


def test_an_epoch_that_ends_early_goes_on_from_any_state():
    """Restored while the stream is already known to have moved, and after the epoch has ended."""
    values = shifted(0.1, np.random.default_rng(3), EPOCH)
    whole = make()
    published = whole.push_many(values)
    begins = [begin for begin, _, _ in whole._blocks.parts()]
    assert begins[2] - begins[1] < EPOCH
    stream, done = make(), []
    for part in np.split(values, (1 << 13) + np.array([EPOCH + 100, begins[2] - 1500, begins[2], begins[2] + 5])):
        handed_out = stream.state()
        text = json.dumps(handed_out)
        done.append(stream.push_many(part))
        assert json.dumps(handed_out) == text  # a state does not change with the publisher it came from
        stream = restore(json.loads(json.dumps(stream.state())), source=SeededSource(1))
    assert np.concatenate(done).tolist() == published.tolist()
    assert [begin for begin, _, _ in stream._blocks.parts()] == begins
    assert stream.released.sum(0, 5 * EPOCH) == whole.released.sum(0, 5 * EPOCH)


def test_behind_a_shift_epochs_grow_again():
    """Little is known of what comes: a quarter of an epoch, with a quarter of ε for the one after, then the horizon."""
    tops = make()
    tops.push_many(shifted(0.1, np.random.default_rng(3), EPOCH))
    facts = tops.epoch_facts()
    early = next(
        number for number, (epoch, after) in enumerate(pairwise(facts)) if after.begin - epoch.begin < epoch.length
    )
    assert [epoch.length for epoch in facts[early + 1 :]][:2] == [EPOCH // 4, EPOCH]
    settings = tops.settings
    assert Fraction(facts[early + 1].share) > Fraction(facts[early].share)
    assert settings.epoch_behind_shift(5_000) == 5_000
    assert settings.epoch_behind_shift(EPOCH) == EPOCH // 4
    assert make(block=16_384, fanout=2).settings.epoch_behind_shift(16_384) == 16_384


def test_a_stream_from_before_shares_were_chosen_keeps_its_shares():
    """Its state has none. A sixteenth of ε, a fourth in an epoch that grows, whatever is known by then."""
    values = np.random.default_rng(2).geometric(0.02, 70_000)
    now = ToPS(0.1, 1000, warmup=256, horizon=1 << 14, source=SeededSource(1), simulation=True)
    now.push_many(values[:400])
    state = json.loads(json.dumps(now.state()))
    del state["epoch"]["share"], state["seal"]
    before = restore(seal(state), source=SeededSource(1))
    for part in np.split(values[400:], [3_000, 30_000]):
        now.push_many(part)
        before.push_many(part)
        before = restore(json.loads(json.dumps(before.state())), source=SeededSource(1))
    assert [(epoch.length, epoch.share) for epoch in before.epoch_facts()][:4] == [
        (1024, "1/4"),
        (4096, "1/4"),
        (1 << 14, "1/16"),
        (1 << 14, "1/16"),
    ]
    assert [epoch.share for epoch in now.epoch_facts()][:2] == ["3/8", "3/8"]
    facts = before.epoch_facts()
    unknown = [replace(epoch, share=None) for epoch in facts]  # as a store from before has them
    starts = np.arange(100) * 300
    errors = before.released.sums(starts, starts + 600).stderrs
    for epochs in (facts, unknown):
        again = released_from(before.settings, epochs, before._blocks.values(), simulation=True)
        assert again.sums(starts, starts + 600).stderrs.tolist() == errors.tolist()


def test_a_larger_theta_leaves_no_more_above_it():
    """What was known at a θ says at most as much at a larger one, and nothing at a smaller one."""
    known = Learnt(theta=100, mean=20.0, above=0.02, above_stderr=0.001, excess=1.0, excess_variance=0.01)
    assert _as_known(known, 100) == known
    larger = _as_known(known, 200)
    assert (larger.above, larger.excess) == (0.005, 0.25)
    assert (larger.above_stderr, larger.excess_variance) == (0.001, 0.01)
    measured = replace(known, tail=(1.2, 0.01, 2.0, 0.4, 0.2))
    assert _as_known(measured, 200).tail == (0.3, 0.01, 2.0, 0.4, 0.05)
    assert _as_known(known, 99) is None
    assert _as_known(Learnt(theta=100), 200) is None


@pytest.mark.parametrize(
    ("times", "most"), [(1 / 16, 0), (1 / 4, 2), (1, 4), (2, 5), (4, 6), (16, 8), (32, 9), (64, 9)]
)
def test_a_theta_chosen_before_counts_by_what_it_was_learnt_from(monkeypatch, times, most):
    """In scales of noise: far away as much as is said, near by less, where it was nothing."""
    seen = []
    monkeypatch.setattr(threshold, "_winner", lambda *given: seen.append(given[1]) or 0)
    rule, situation = PredictedError(), Situation(1000, 10_000, 10_000, 1.0, 100.0, 0.5, 0.1)
    above = np.arange(rule.candidates(1000).size)[::-1].copy()
    for earlier in (None, (128, times)):
        rule.draw_by_counts(above, situation, 0.1, SeededSource(1), earlier)
    less = (seen[0] - seen[1]) / (1 << 16) * 0.1
    at = rule.candidates(1000).tolist().index(128)
    assert less[at] == 0
    assert less.max() == pytest.approx(most, abs=1e-4)
    assert less[0] == less.max()
    assert all(np.diff(less[at:]) >= 0)


def test_more_may_lie_above_a_theta_that_was_kept(monkeypatch):
    """It counts for more in the choice: others have to be better by more than noise, and so much may be hidden."""
    publisher, rule = make().settings, PredictedError()
    theta = int(rule.candidates(10_000)[24])
    sums = EpochSums(rule, publisher.grid.top, theta, EPOCH)
    sums.extend(np.random.default_rng(1).geometric(0.02, EPOCH))
    monkeypatch.setattr(EpochSums, "choose", lambda *_: theta)
    doubts = []
    for still in (0.0, 1 / 4, 1.0, 4.0):
        before = Before(Learnt(theta), 40.0, 0.01, (), still)
        learnt = learn(sums, publisher, 0.03, SeededSource(1), before)
        doubts.append((learnt.above_stderr, learnt.excess_variance))
    assert doubts == sorted(doubts)
    assert doubts[2][0] > 1.5 * doubts[0][0]


def test_an_excess_that_was_certain_is_kept_while_nothing_changes(monkeypatch):
    """θ lies in a gap below 3 % of the values. What is asked later is nearly all noise and what is usual is far less.

    The first answer has all of ε, the later ones a sixteenth of it, as epochs behind a long warm-up have.
    """
    settings, rng = make(warmup=EPOCH).settings, np.random.default_rng(1)
    theta = int(PredictedError().candidates(10_000)[24])
    kept, lost = [], []
    monkeypatch.setattr(EpochSums, "choose", lambda *_: theta)
    for seed in range(6):
        sums = EpochSums(PredictedError(), settings.grid.top, theta, EPOCH)
        sums.extend(np.where(rng.random(EPOCH) < 0.03, 3 * theta, theta // 2))
        source = SeededSource(seed)
        first = learn(sums, settings, 0.5, source.stream(0), Before(Learnt(theta), theta / 2, 0.01))
        for still in (16.0, 0.0):
            learnt = first
            for number in (1, 2, 3):
                before = Before(learnt, learnt.mean, 0.01, (), still)
                learnt = learn(sums, settings, 0.5 / 16, source.stream(number), before)
            (kept if still else lost).append(learnt.excess / (0.06 * theta))
    assert np.abs(np.array(kept) - 1).max() < 0.4
    assert np.abs(np.array(lost) - 1).mean() > 2 * np.abs(np.array(kept) - 1).mean()


def test_days_and_nights_within_a_sixteenth_end_no_epoch():
    time = np.arange((1 << 13) + 3 * EPOCH)
    values = np.random.default_rng(4).poisson(100 * (1 + 0.9 * np.sin(time / 300)))
    tops = make()
    tops.push_many(values)
    assert [begin for begin, _, _ in tops._blocks.parts()] == [0, EPOCH, 2 * EPOCH, 3 * EPOCH]


def test_published_blocks_tell_how_rough_a_stream_is():
    """Differences of neighbouring runs, as they are plus noise that is taken off, however the blocks come."""
    rng = np.random.default_rng(5)
    plan = choose_plan(0.5, 1 << 18, expectation=Expectation(), block=64, fanout=16)
    walk = np.cumsum(rng.normal(0, 2_000, 4096)).round().astype(np.int64)
    differences = BlockDifferences()
    for part in np.split(walk, [1, 1500, 4000]):
        differences.extend(part)
    assert differences.state() == json.loads(json.dumps(differences.state()))
    again = BlockDifferences()
    again.resume(differences.state())
    knots = again.knots(plan, 0.0)
    assert [length for length, _, _ in knots] == [64 * 2**scale for scale in range(10)]
    for (_, square, doubt), scale in zip(knots, range(10), strict=True):
        runs = walk.reshape(-1, 2, 2**scale).sum(2)
        assert square == pytest.approx(np.square(runs[:, 0] - runs[:, 1]).mean())
        assert doubt == 0
    noisy = BlockDifferences()
    perturber = plan.perturber(0.5, 100)
    noisy.extend(np.full(4096, 640) + perturber.noise(SeededSource(1), 0).leaves(0, 4096))
    for _, square, doubt in noisy.knots(plan, perturber.node_variance):
        assert square <= 4 * doubt  # all of it is noise


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


def test_sums_of_an_epoch_are_what_they_are_called():
    """They are added up in floats and by tables where that is exact: compared with the definition, in Python."""
    random = np.random.default_rng(5)
    for top in (1, 7, 1638, 70_000, (1 << 40) - 1):
        theta = max(top // 5, 1)
        values = np.concatenate((random.integers(0, top + 1, 8192), np.full(1024, top), np.full(1024, theta)))
        lengths = run_lengths(values.size)
        assert lengths == (1, 32, 128, 512)
        cut = [min(value, theta) for value in values.tolist()]
        expected = [sum((a * 1024 // theta - b * 1024 // theta) ** 2 for a, b in zip(cut[::2], cut[1::2], strict=True))]
        for length in lengths[1:]:
            runs = [sum(cut[first : first + length]) for first in range(0, len(cut), length)]
            expected.append(sum(abs(a - b) for a, b in zip(runs[::2], runs[1::2], strict=True)))
        assert run_totals(values, theta, lengths).tolist() == expected
        sums = EpochSums(PredictedError(), top, theta, values.size)
        sums.extend(values)
        asked = {question.name: question.total for question in sums.questions(int(sums._candidates[-1]))}
        assert asked["mean"] == sum(values.tolist())
        assert asked["runs of 32"] == expected[1]
        counts = [int((values > candidate).sum()) for candidate in sums._candidates]
        assert sums._above().tolist() == counts
