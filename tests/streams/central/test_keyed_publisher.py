"""One stream per key: each is what a publisher of that key alone would publish, in whatever batches values come."""

import json

import numpy as np
import pyarrow as pa
import pytest

from deniable.errors import InvalidData, InvalidParameter, QueryRefused, RandomnessFault, SimulationOnly
from deniable.randomness import SeededSource
from deniable.streams import KeyedPublisher
from deniable.streams.central.block_publisher import BlockPublisher
from deniable.streams.central.published_epochs import released_from
from same_noise import forget_what_was_drawn

RANDOM = np.random.default_rng(1)
KEYS, VALUES = RANDOM.integers(0, 7, size=4000), RANDOM.integers(0, 120, size=4000)
WAYS = {
    "public": {"theta": 50},
    "single values": {"theta": 50, "block": 1},
    "shared": {"warmup": 300},
    "per key": {"warmup": 40, "per_key": True},
}


def make(**more):
    forget_what_was_drawn()
    return KeyedPublisher(1.0, 100, **{"horizon": 64, "block": 8, "key": bytes(32), "public_keys": True, **more})


def pushed(keyed, size):
    """Everything in batches of up to this size, and what each key published."""
    parts = (slice(start, start + size) for start in range(0, VALUES.size, size))
    return [keyed.push_many(KEYS[part], VALUES[part]) for part in parts]


@pytest.mark.parametrize("way", WAYS)
def test_every_key_has_the_stream_of_a_publisher_of_its_own(way):
    keyed = make(**WAYS[way])
    heard = {}
    for part in pushed(keyed, 333):
        for key, position, value in zip(part.key, part.position.tolist(), part.value.tolist(), strict=True):
            assert position == len(heard.setdefault(key, []))
            heard[key].append(value)
    assert sorted(heard) == [str(key) for key in range(7)]
    for key, values in heard.items():
        skip = WAYS[way].get("warmup", 0)
        shared = not WAYS[way].get("per_key", False)
        mine = VALUES[skip:][KEYS[skip:] == int(key)] if shared else VALUES[int(key) == KEYS][skip:]
        source = keyed._source.stream("key", key)
        alone = BlockPublisher(keyed.plan, 1.0, keyed.learnt_of(key), 100, source, keep=False)
        assert values == alone.push_many(np.minimum(mine, 100)).tolist()


@pytest.mark.parametrize("way", WAYS)
def test_batches_and_restarts_change_nothing(way):
    whole = pushed(make(**WAYS[way]), VALUES.size)[0]
    keyed, parts = make(**WAYS[way]), []
    for start in range(0, VALUES.size, 170):
        parts.append(keyed.push_many(KEYS[start : start + 170], VALUES[start : start + 170]))
        keyed = KeyedPublisher.restore(json.loads(json.dumps(keyed.state())))
    for name in ("key", "position", "value"):
        assert np.concatenate([getattr(part, name) for part in parts]).tolist() == getattr(whole, name).tolist()


def test_of_copies_of_a_state_only_one_goes_on_and_damage_is_noticed():
    keyed = make(theta=50)
    keyed.push_many(["a"], [1])
    state = keyed.state()
    other = KeyedPublisher.restore(state)
    other.push_many(["a"], [2])
    with pytest.raises(RandomnessFault, match="continued from here already"):
        keyed.push_many(["a"], [3])
    with pytest.raises(InvalidData, match="damaged"):
        KeyedPublisher.restore({**state, "names": ["b"]})
    with pytest.raises(SimulationOnly):
        KeyedPublisher.restore(make(theta=50, key=None, source=SeededSource(1), simulation=True).state())


def test_keys_have_to_be_public_and_values_have_to_be_numbers():
    with pytest.raises(InvalidParameter, match=r"public_keys is not given: everybody sees which keys there are"):
        make(theta=50, public_keys=False)
    keyed = make(theta=50, keys=["north", 7])
    assert keyed.keys == ["north", "7"]
    for keys, values, reason in ((["a"], [np.nan], "NaN"), (["a"], [1, 2], "one key for every"), ([1.5], [1], "text")):
        with pytest.raises(InvalidData, match=reason):
            keyed.push_many(keys, values)
    with pytest.raises(InvalidData, match="a key is missing"):
        keyed.push_many(pa.array(["a", None]), [1, 2])
    assert (keyed.keys, keyed.published) == (["north", "7"], 0)
    with pytest.raises(InvalidParameter, match="block must divide the horizon"):
        make(theta=50, block=7)


def test_windows_by_key_and_sums_over_keys_have_exact_errors():
    keyed = make(warmup=300)
    regions = keyed.release_of(pushed(keyed, 500))
    parts = [regions[key].sum(3, 400) for key in regions.keys]
    together = regions.sum(3, 400)
    assert together.value == pytest.approx(sum(part.value for part in parts))
    assert together.stderr**2 == pytest.approx(sum(part.stderr**2 for part in parts))
    assert together.cut == pytest.approx(sum(part.cut for part in parts))  # one estimate for all keys
    assert regions.sum(3, 400, keys=["2"]).interval == pytest.approx(regions["2"].sum(3, 400).interval)
    own = make(warmup=40, per_key=True)
    apart = own.release_of(pushed(own, 500))
    errors = [apart[key].sum(3, 400).cut for key in apart.keys]
    assert apart.sum(3, 400).cut == pytest.approx(np.linalg.norm(errors))
    alone = released_from(own.settings, own.facts_of("3"), apart["3"].values)
    assert alone.sum(0, 100) == apart["3"].sum(0, 100)
    with pytest.raises(QueryRefused, match="published nothing"):
        regions["8"]
    with pytest.raises(QueryRefused, match="no keys"):
        regions.sum(0, 1, keys=[])


def test_sums_over_keys_are_as_far_off_as_they_say():
    """24 keys of known values: the error of the sum over all, in its own standard errors. 1e-6 false alarms at 5."""
    keyed = KeyedPublisher(1.0, 100, theta=100, horizon=256, block=4, public_keys=True, key=bytes(range(32)))
    values = np.tile(np.arange(256) % 50, (24, 1))
    names = [f"key {number}" for number in range(24)]
    codes = np.repeat(np.arange(24), 256)
    regions = keyed.release_of([keyed.push_many((codes, names), values.ravel())])
    scores = []
    for start, stop in ((0, 256), (0, 128), (64, 192), (0, 64)):
        answer = regions.sum(start, stop)
        scores.append((answer.value - values[:, start:stop].sum()) / answer.stderr)
    assert np.abs(scores).max() < 5
    assert np.abs(scores).max() > 0.01


def test_quiet_keys_are_small():
    keyed = make(theta=50)
    keyed.push_many((np.arange(5000), [f"key {number}" for number in range(5000)]), np.ones(5000, dtype=np.int64))
    size = sum(column.nbytes for column in keyed._columns.values())
    assert size <= 5000 * 64
    assert not keyed._noise
