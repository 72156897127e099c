"""People as the unit: whole small streams enumerated, the bound kept and reached, and a memory that survives."""

import itertools
import json
from fractions import Fraction
from functools import lru_cache

import numpy as np
import pytest

from command_line import run
from deniable.accounting import Neighbours, Unit
from deniable.errors import InvalidData, InvalidParameter, RandomnessFault, SimulationOnly
from deniable.ledger import Ledger
from deniable.randomness import SeededSource
from deniable.stores import Batch, DurablePublisher
from deniable.streams import (
    PAK,
    Flat,
    PersonBound,
    PersonStream,
    PublicThreshold,
    Released,
    person_events,
    person_forecast,
)
from deniable.streams.central.person_bound import CountedPersons

PERSONS = ("ann", "bob", None)
POSITIONS, EPOCH = 4, 2


def made(most, epsilon=float("inf"), *, window=1, epoch=EPOCH, **settings):
    """A stream without a tree and with θ = 1: each published value is what reaches the publisher, plus its noise."""
    facts = {"warmup": 0, "horizon": POSITIONS, "threshold": PublicThreshold(1), "simulation": True}
    facts |= {"source": SeededSource(1), "method": Flat, "epoch": epoch, "window": window}
    return PersonStream(epsilon, 1, most=most, **(facts | settings))


def all_streams():
    for persons in itertools.product(PERSONS, repeat=POSITIONS):
        for values in itertools.product((0, 1), repeat=POSITIONS):
            yield persons, values


@lru_cache
def reached(most):
    """What reaches the publisher for every stream: at ε = ∞ it is what is published. One stream follows the other."""
    streams = list(all_streams())
    persons, values = ([part for stream in streams for part in stream[side]] for side in (0, 1))
    published = made(most).push_many(np.array(values), persons).reshape(-1, POSITIONS)
    return dict(zip(streams, published, strict=True))


def changes(stream, person, epochs):
    """All neighbours: this person's events of these epochs have other values, or all of them belong to nobody."""
    persons, _ = stream
    mine = [at for at in range(POSITIONS) if persons[at] == person and at // EPOCH in epochs]
    for numbers in itertools.product((0, 1), repeat=len(mine)):
        yield _with(stream, mine, [person] * len(mine), numbers)
    yield _with(stream, mine, [None] * len(mine), [0] * len(mine))


def behaviours(stream, person, epochs):
    """Everything else that this person could have done, where events that are hers or nobody's can be either."""
    persons, _ = stream
    free = [at for at in range(POSITIONS) if persons[at] in (person, None) and at // EPOCH in epochs]
    for fates in itertools.product((0, 1, None), repeat=len(free)):
        yield _with(stream, free, [None if fate is None else person for fate in fates], [fate or 0 for fate in fates])


def _with(stream, positions, persons, values):
    others, numbers = list(stream[0]), list(stream[1])
    for at, person, value in zip(positions, persons, values, strict=True):
        others[at], numbers[at] = person, value
    return tuple(others), tuple(numbers)


@pytest.mark.parametrize(("most", "window"), [(1, 1), (2, 1), (1, 2), (2, 2)])
def test_every_promise_is_kept_and_reached_on_all_small_streams(most, window):
    """Noise is discrete Laplace of scale θ/ε_v on every value, so a pair loses exactly ε_v·Σ|difference|/θ."""
    epsilon = Fraction(31, 32)  # the rest pays for two counts
    inner = made(most, 1.0, window=window).settings.publisher.epsilon
    laplace = made(most, 1.0, window=window).publisher._blocks.perturber.scale
    assert laplace == 1 / Fraction(inner)
    for epochs, loss in (((0,), epsilon / window), ((1,), epsilon / window), ((0, 1), 2 * epsilon / window)):
        assert furthest(most, changes, epochs) / laplace == loss
        # Two different behaviours of one person are as far apart as each is from none.
        assert furthest(most, behaviours, epochs) / laplace == (2 * loss if most == 1 else loss)


@pytest.mark.parametrize("most", [1, 2])
def test_how_many_events_did_not_count_moves_by_at_most_what_its_noise_is_for(most):
    """All streams and all neighbours of ann: the count of an epoch moves by `most` and no more, and both shares add."""
    limit = PersonBound(most, EPOCH, window=2)

    @lru_cache
    def replaced(persons):
        counted = CountedPersons(most)
        counts, _ = counted.judge(list(persons))
        return EPOCH - int(counts.sum())

    moved = {
        abs(replaced(stream[0][:EPOCH]) - replaced(other[0][:EPOCH]))
        for stream in all_streams()
        for other in changes(stream, "ann", {0})
    }
    assert max(moved) == most
    paid = most * Fraction(limit.value_epsilon(1.0)) + 2 * Fraction(limit.count_epsilon(1.0))
    assert limit.epoch_epsilon(1.0) == paid == Fraction(1, 2)


def test_answers_are_for_what_people_did():
    """A fourth of all events do not count, and have values of their own: intervals hold what people did."""
    rng = np.random.default_rng(9)
    count = 40_000
    busy = rng.random(count) < 0.25
    persons = np.where(busy, rng.integers(0, 20, count), 100 + rng.integers(0, 20_000, count))
    values = np.where(busy, rng.poisson(5, count), rng.poisson(9, count))
    settings = {"warmup": 4096, "horizon": 1 << 15, "epoch": 10_000, "simulation": True}
    inside = 0
    for seed in range(5):
        stream = PersonStream(4.0, 100, most=4, source=SeededSource(seed), **settings)
        stream.push_many(values, persons.tolist())
        assert 0.2 < stream._uncounted.share < 0.35
        truth = values[4096:][5_000:30_000].sum()
        answer = stream.released.sum(5_000, 30_000)
        inside += answer.interval[0] <= truth <= answer.interval[1]
        as_if_all = stream.publisher.released.sum(5_000, 30_000)
        assert answer.value == pytest.approx(as_if_all.value)
        assert answer.error > as_if_all.error
    assert inside == 5
    again = PersonStream.restore(stream.state(), source=SeededSource(4))
    assert again.released.sum(5_000, 30_000) == answer


def test_most_follows_from_public_expectations():
    assert (
        PersonStream(1.0, 10, events=4.0, horizon=1 << 16).settings.bound.most
        == person_forecast(1.0, 1 << 16, 4.0)[0].most
    )
    for wrong in ({}, {"most": 1, "events": 2.0}):
        with pytest.raises(InvalidParameter, match="most"):
            PersonStream(1.0, 10, **wrong)


@lru_cache
def furthest(most, others, epochs):
    """The largest difference, summed over positions, between a stream and one of the others."""
    outputs = reached(most)
    return max(
        int(np.abs(published - outputs[other]).sum())
        for stream, published in outputs.items()
        for other in others(stream, "ann", epochs)
    )


def test_without_the_bound_the_promise_would_break():
    """The enumeration has teeth: what one person can change grows with the number of values that count."""
    assert furthest(2, changes, (0,)) * Fraction(made(1, 1.0).settings.publisher.epsilon) == 2 * Fraction(31, 32)


def test_what_others_contribute_does_not_depend_on_a_person():
    outputs = reached(1)
    for stream, published in outputs.items():
        for neighbour in changes(stream, "ann", {0, 1}):
            changed = np.flatnonzero(published != outputs[neighbour])
            assert all(stream[0][at] == "ann" for at in changed)


def test_swapping_events_between_two_persons_is_two_changes():
    outputs = reached(1)
    first = outputs[("ann", "bob", None, None), (1, 0, 0, 0)]
    second = outputs[("bob", "bob", None, None), (0, 1, 0, 0)]
    assert np.abs(first - second).sum() <= 2


def test_the_first_values_of_an_epoch_count_and_number_and_positions_stay():
    stream = made(2, epoch=3)
    published = stream.push_many(np.array([1, 1, 1, 1]), ["ann", 7, "7", "ann"])
    assert published.tolist() == [1, 1, 1, 1]
    again = made(1, epoch=4)
    assert again.push_many(np.array([1, 1, 1, 1]), ["ann", "ann", None, "bob"]).tolist() == [1, 0, 0, 1]


def test_one_by_one_and_in_bulk_are_the_same_stream():
    rng = np.random.default_rng(3)
    values, persons = rng.integers(0, 20, 600), [f"p{number}" for number in rng.geometric(0.1, 600)]
    settings = {"warmup": 100, "horizon": 256, "epoch": 90, "most": 3, "fill": 4, "simulation": True}
    bulk = PersonStream(5.0, 50, source=SeededSource(2), **settings)
    single = PersonStream(5.0, 50, source=SeededSource(2), **settings)
    together = np.concatenate([bulk.push_many(values[:7], persons[:7]), bulk.push_many(values[7:], persons[7:])])
    alone = [single.push(int(value), person) for value, person in zip(values, persons, strict=True)]
    np.testing.assert_allclose(together, [number for number in alone if number is not None])
    assert bulk.epochs == single.epochs == 7
    assert bulk.spent.epsilon == 7 * bulk.epoch_spends.epsilon
    assert bulk.spends.epsilon <= Fraction(5)


def test_after_the_warm_up_the_learnt_mean_stands_in_on_average():
    stream = PersonStream(
        float("inf"), 50, most=1, epoch=1 << 20, warmup=100, horizon=1024, block=1, source=SeededSource(1),
        simulation=True,
    )  # fmt: skip
    rng = np.random.default_rng(5)
    values = rng.integers(0, 10, 100)
    stream.push_many(values, [f"p{number}" for number in range(100)])
    published = stream.push_many(np.full(1000, 50), ["p1"] * 1000)
    assert published.mean() == pytest.approx(np.minimum(values, stream.learnt.theta).mean(), abs=0.01)
    assert set(published.tolist()) <= {int(published.mean()), int(published.mean()) + 1}


def test_epochs_by_hand():
    stream = made(1, epoch=0)
    assert stream.push_many([1, 1], ["ann", "ann"]).tolist() == [1, 0]
    stream.begin_epoch()
    assert stream.push_many([1, 1], ["ann", "ann"]).tolist() == [1, 0]
    assert (stream.epochs, stream.spent.epsilon) == (2, float("inf"))
    with pytest.raises(InvalidParameter, match="fixed number"):
        made(1).begin_epoch()


def test_a_ledger_pays_for_epochs_before_their_events():
    stream = made(1, 1.0)
    assert [stream.epochs_after(events) for events in (0, 1, 2, 3, 4)] == [0, 1, 1, 2, 2]
    stream.push_many([1, 1, 1], ["ann"] * 3)
    assert [stream.epochs_after(events) for events in (0, 1, 2)] == [2, 2, 3]
    spending = stream.epoch_spends
    assert (spending.unit, spending.neighbours, spending.epsilon) == (Unit.PERSON, Neighbours.PERSON, 1)


def test_the_memory_is_saved_sealed_and_restored():
    key = bytes(32)
    stream = PersonStream(1.0, 10, most=1, epoch=100, warmup=2, horizon=64, key=key, name="memory")
    stream.push_many([5, 5, 5], ["ann", "bob", "cem"])
    state = json.loads(json.dumps(stream.state()))
    damaged = json.loads(json.dumps(state))
    damaged["counted"] = {}
    with pytest.raises(InvalidData, match="damaged"):
        PersonStream.restore(damaged)
    again = PersonStream.restore(state)
    assert (again.settings, again.epochs, again._counted.state()) == (stream.settings, 1, stream._counted.state())
    assert again.push_many([5, 5], ["ann", "dan"]).size == 2
    with pytest.raises(RandomnessFault):  # the other copy went on
        stream.push_many([5], ["ann"])
    with pytest.raises(RandomnessFault, match="copied"):
        stream.__reduce__()


def test_refusals_change_nothing_and_show_nothing():
    stream = made(1, epoch=4)
    for values, persons in (([1, -1], ["ann", "bob"]), ([1, 1], ["ann", 1.5]), ([1, 1], ["ann"])):
        with pytest.raises(InvalidData) as refusal:
            stream.push_many(values, persons)
        assert "ann" not in str(refusal.value)
    with pytest.raises(InvalidData, match="person"):
        stream.push_many([1, 1])
    assert stream._counted.state() == {}
    assert stream.push_many([1], ["ann"]).tolist() == [1]
    assert "ann" not in repr(stream)
    with pytest.raises(InvalidParameter, match="δ"):
        PersonStream(1.0, 10, most=2, method=PAK)
    with pytest.raises(SimulationOnly):  # half of it per value would pass
        PersonStream(100.0, 10, most=2)
    for wrong in ({"most": 0}, {"most": 1, "window": 0}, {"most": 1, "epoch": -1}):
        with pytest.raises(InvalidParameter):
            PersonStream(1.0, 10, **wrong)


def test_events_keep_persons_and_values_together():
    events = person_events([1, "1", None], [3, 4, 5])
    assert events["person"].tolist() == ["1", "1", None]
    assert made(1, epoch=4).push_many(events).tolist() == [1, 0, 0]


def durable(path, ledger=None):
    settings = {"most": 1, "epoch": 3, "warmup": 2, "horizon": 64}
    return DurablePublisher(path, PersonStream(1.0, 10, **settings), ledger=ledger)


def test_a_stream_of_persons_survives_its_process_and_pays_for_every_epoch(tmp_path):
    ledger = Ledger(tmp_path / "ledger.json", limit=10.0)
    first, second = person_events("abacad", [1, 2, 3, 4, 5, 6]), person_events("aa", [7, 8])
    with durable(tmp_path / "state", ledger) as run:
        assert run.push_many(first).size == 4
        assert ledger.spent_on(Unit.PERSON)[0] == 2
    with durable(tmp_path / "state", ledger) as run:
        assert (run.publisher.epochs, run.publisher._counted.state()) == (2, {"a": 1, "c": 1, "d": 1})
        assert run.push_many(second).size == 2
        assert ledger.spent_on(Unit.PERSON)[0] == 3
        assert run.publisher._counted.state() == {"a": 1}
    with pytest.raises(InvalidParameter, match="settings"):
        DurablePublisher(tmp_path / "state", PersonStream(1.0, 10, most=2, epoch=3, warmup=2, horizon=64))


def test_an_interrupted_run_of_persons_is_finished_by_the_next(tmp_path):
    def interrupted(released, _timestamps):
        raise KeyboardInterrupt

    batch = Batch(np.array([1, 2, 3]), persons=["a", "b", "c"])
    with pytest.raises(KeyboardInterrupt), durable(tmp_path / "store") as run:
        run.publish(batch, interrupted)
    with durable(tmp_path / "store") as run:
        assert (run.position, run.publisher.published) == (3, 1)
        assert run.push_many(person_events("abc", [1, 2, 3])).size == 3


def test_the_command_publishes_events_of_persons(tmp_path):
    file, out = tmp_path / "visits.csv", tmp_path / "out.parquet"
    file.write_text("user,value\n" + "".join(f"{number % 7},{number % 5}\n" for number in range(300)) + ",4\n")
    settings = ("--epsilon", 5, "--bound", 10, "--warmup", 100, "--horizon", 128, "--person-column", "user")
    done = run("stream", "publish", file, "-o", out, *settings, "--most", 2, "--epoch", 50, "--window", 2)
    assert done.returncode == 0, done.stderr
    assert "ε = 5 per person and epoch" in done.stderr
    assert len(Released.load(out)) == 201
    lines = "".join(json.dumps({"user": f"p{number % 7}", "value": 1}) + "\n" for number in range(120))
    piped = run("stream", "publish", "-", "--json-lines", *settings, "--most", 2, text=lines)
    assert (piped.returncode, len(piped.stdout.split())) == (0, 20), piped.stderr
    alone = run("stream", "publish", file, *settings)
    assert alone.returncode == 2
    assert "--most" in alone.stderr


def test_the_forecast_weighs_noise_against_what_does_not_count():
    few = person_forecast(10.0, 1 << 16, {1: 1.0})
    assert [forecast.most for forecast in few] == [1]
    assert few[0].missing == 0
    tight, loose = (person_forecast(epsilon, 1 << 16, 8.0)[0].most for epsilon in (0.1, 10.0))
    assert tight < loose
    by_most = {forecast.most: forecast for forecast in person_forecast(1.0, 1 << 16, 8.0)}
    assert by_most[1].noise < by_most[4].noise
    assert by_most[1].missing > by_most[4].missing
    assert by_most[4].value_epsilon == 0.25
    assert person_forecast(1.0, 1 << 16, 8.0, window=2, most=[4])[0].value_epsilon == 0.125
    for wrong in (0.5, {}, {0: 1.0}, {1: -1.0}):
        with pytest.raises(InvalidParameter):
            person_forecast(1.0, 1 << 16, wrong)


def test_what_stood_for_values_of_the_warm_up_is_taken_out_of_their_mean():
    """Of eight events of a person one counts: without that the stand-in would be a third too small."""
    rng = np.random.default_rng(3)
    values, persons = np.minimum(rng.geometric(1 / 7, 16_384), 200), rng.integers(0, 2_048, 16_384).tolist()
    settings = {"most": 1, "warmup": 2_048, "horizon": 16_384, "epoch": 16_384, "simulation": True}
    means, inside = [], 0
    for seed in range(6):
        stream = PersonStream(8.0, 200, source=SeededSource(seed), **settings)
        stream.push_many(values, persons)
        means.append(stream._stand_in)
        (facts,) = stream.epoch_facts()[:1]
        assert 0.7 < facts.learnt.uncounted <= 1  # what is expected of the whole epoch, from its first eighth
        answer = stream.released.sum(0, 12_000)
        inside += answer.interval[0] <= values[2_048:14_048].sum() <= answer.interval[1]
    assert np.mean(means) == pytest.approx(7, rel=0.12)
    assert inside == 6
