"""The smoother of the next epoch: what each would have predicted of published blocks, without the noise of both."""

import json
from dataclasses import replace

import numpy as np
import pytest

from deniable.errors import InvalidParameter
from deniable.randomness import SeededSource
from deniable.streams import Expectation, Exponential, Mean, MovingAverage, Recent, ToPS, choose_plan, restore
from deniable.streams.central.settings import Settings
from deniable.streams.central.smoother_choice import FITTED_SMOOTHERS, MERGED, BlockPredictions, _noise
from deniable.streams.structure.smoother import smoother_of_text, smoother_text
from deniable.streams.structure.value_grid import Grid

EPSILON, THETA = 0.5, 100


def plan_of(hierarchy="tree", **more):
    facts = {"block": 64, "fanout": 16, "hierarchy": hierarchy, **more}
    return choose_plan(EPSILON, 1 << 15, expectation=Expectation(), **facts)


def noisy(plan, values, seed):
    """Noisy sums of blocks of these values."""
    leaves = plan.perturber(EPSILON, THETA).noise(SeededSource(seed), 0).leaves(0, plan.layout.blocks)
    return np.asarray(values).reshape(-1, plan.block).sum(1) + leaves


def predicted(plan, sums, initial=0.0):
    predictions = BlockPredictions(plan, initial)
    for scale in range(MERGED):
        predictions.follow(scale, sums.reshape(-1, 1 << scale).sum(1).astype(float))
    return predictions


@pytest.mark.parametrize("hierarchy", ["tree", "tent"])
@pytest.mark.parametrize("smoother", FITTED_SMOOTHERS)
def test_noise_that_is_taken_off_is_that_of_predictions(hierarchy, smoother):
    """On a stream of zeros all that predictions are off by is noise: at 60 draws, within a quarter."""
    plan = plan_of(hierarchy)
    sums = np.array([noisy(plan, np.zeros(plan.horizon, dtype=int), seed) for seed in range(60)])
    node_variance = plan.perturber(EPSILON, THETA).node_variance
    for scale in range(MERGED):
        runs = sums.reshape(len(sums), -1, 1 << scale).sum(2)
        lengths = np.full(runs.shape[1], plan.block << scale)
        rates = np.array([smoother.follow(smoother.begin(0.0, plan.block << scale), row, lengths)[0] for row in runs])
        stated = _noise(plan, scale, smoother)
        apart = rates[:, :-1] - runs[:, 1:] / lengths[1:]
        assert np.square(apart).mean() == pytest.approx(stated.of_difference * node_variance, rel=0.25)
        assert 0 < stated.of_rate < stated.of_difference * 1.5


def test_streams_decide():
    """Still: all blocks that may count. A walk far above noise: the block before. Otherwise: something in between."""
    rng, plan = np.random.default_rng(1), plan_of()
    node_variance = plan.perturber(EPSILON, THETA).node_variance
    chosen = {}
    for step in (0.0, 6.0, 50.0):
        level = 500 + np.cumsum(rng.normal(0, step, plan.layout.blocks)) if step else np.full(plan.layout.blocks, 500)
        values = np.repeat(level.round().astype(int), plan.block)
        best = predicted(plan, noisy(plan, values, 1), 500.0).best(plan, node_variance, plan, node_variance)
        chosen[step] = FITTED_SMOOTHERS.index(best)
    assert chosen[0.0] == FITTED_SMOOTHERS.index(MovingAverage(16))
    assert chosen[50.0] == 0
    assert 0 < chosen[6.0] < chosen[0.0]


def test_what_is_chosen_predicts_better_than_the_block_before():
    """Squares of what predictions are off from the values themselves, in a later epoch, over levels that wander."""
    rng, plan = np.random.default_rng(2), plan_of()
    node_variance, ratios = plan.perturber(EPSILON, THETA).node_variance, []
    for step in (0.0, 0.1, 1.0, 10.0):
        level = 500 + np.cumsum(rng.normal(0, step, 2 * plan.layout.blocks))
        means = level.round().astype(int).reshape(2, -1)
        past, future = (noisy(plan, np.repeat(half, plan.block), seed) for seed, half in enumerate(means))
        best = predicted(plan, past, 500.0).best(plan, node_variance, plan, node_variance)
        lengths = np.full(future.size, plan.block)
        errors = []
        for smoother in (best, Recent()):
            rates = smoother.follow(smoother.begin(float(means[1][0]), plan.block), future, lengths)[0]
            errors.append(np.square(rates[:-1] - means[1][1:]).mean())
        ratios.append(errors[0] / errors[1])
    assert max(ratios) <= 1.1
    assert min(ratios) < 0.3


def test_few_blocks_or_a_close_race_change_nothing():
    plan = plan_of()
    node_variance = plan.perturber(EPSILON, THETA).node_variance
    few = predicted(plan, noisy(plan, np.zeros(plan.horizon, dtype=int), 1)[:4])
    assert few.best(plan, node_variance, plan, node_variance) == Recent()
    alike = predicted(plan, np.full(512, 640))
    assert alike.best(plan, 0.0, plan, 0.0) == Recent()


def test_inside_the_open_block_no_less_error_is_stated_than_after_the_block_before():
    tops = make()
    tops.push_many(values_of(30_000))
    begin, _, blocks = tops._blocks.parts()[-1]
    assert blocks.plan.smoother != Recent()
    ends = np.array([blocks.published // 64 * 64]), np.array([blocks.published])
    noise = blocks.plan.noise_model(blocks.perturber.node_variance, 0.0)
    own, other = (replace(noise, smoother=it).variance(*ends)[0] for it in (blocks.plan.smoother, Recent()))
    answer = tops.released.sum(begin + int(ends[0][0]), begin + int(ends[1][0]))
    assert answer.stderr**2 == pytest.approx(own)
    assert own + answer.smoothing**2 > other > own


def values_of(size):
    return np.random.default_rng(3).poisson(20, size)


def make(**more):
    settings = {"warmup": 256, "horizon": 1 << 14, "block": 64, "source": SeededSource(1), "simulation": True, **more}
    return ToPS(EPSILON, 1000, **settings)


def test_epochs_learn_it_in_bulk_and_one_by_one_and_from_any_state():
    values = values_of(40_000)
    whole = make()
    published = whole.push_many(values)
    smoothers = [smoother_of_text(facts.plan[3]) for facts in whole.epoch_facts()]
    assert smoothers[0] == Recent()
    assert len(set(smoothers)) > 1
    one_by_one = make()
    singles = [one_by_one.push(value) for value in values[:9_000].tolist()]
    assert [value for value in singles if value is not None] == published[: 9_000 - 256].tolist()
    stream, done = make(), []
    for part in np.split(values, [300, 1_500, 6_000, 6_100, 25_000]):
        done.append(stream.push_many(part))
        stream = restore(json.loads(json.dumps(stream.state())), source=SeededSource(1))
    assert np.concatenate(done).tolist() == published.tolist()
    assert stream.epoch_facts() == whole.epoch_facts()
    assert stream._blocks.values().tolist() == published.tolist()
    assert stream.released.sum(10, 30_001) == whole.released.sum(10, 30_001)


def test_a_named_smoother_stays_and_the_paper_has_its_own():
    values = values_of(30_000)
    for smoother in (Recent(), Mean(), Exponential(0.4)):
        tops = make(smoother=smoother)
        tops.push_many(values)
        assert {facts.plan[3] for facts in tops.epoch_facts()} == {smoother_text(smoother)}
    assert make(paper=True, block=64).plan.smoother == Recent()
    assert not make(paper=True, block=64).settings.fit_smoother
    with pytest.raises(InvalidParameter, match="fit_smoother needs renew=True"):
        Settings("test", EPSILON, Grid(10), fit_smoother=True)


def test_streams_of_older_versions_go_on_with_their_noise():
    """They had no word for it: recent meant the default. The noise of a node must not be drawn twice."""
    chosen = make().settings
    facts = chosen.describe()
    del facts["fit_smoother"]
    assert Settings.read(facts) == chosen
    assert Settings.read(facts).digest == chosen.digest
    assert make(smoother="recent").settings.digest != chosen.digest
    assert chosen.plan_of((64, 16, "tree")).smoother == Recent()
    named = make(smoother="mean").settings
    assert named.plan_of((64, 16, "tree")).smoother == Mean()
    facts = named.describe()
    del facts["fit_smoother"]
    assert Settings.read(facts) == named
