"""Keys that are lent one at a time are published as if one publisher had them all, however often a batch is retried."""

import numpy as np
import pytest

from deniable.errors import InvalidParameter
from deniable.streams import KeyedPublisher
from deniable.streams.central.lent_keys import KeyState, LentKeys, name_of_secret
from deniable.streams.central.stream_keys import keyed_settings
from same_noise import forget_what_was_drawn

RANDOM = np.random.default_rng(2)
NAMES = np.array([f"region {number}" for number in RANDOM.integers(0, 4, size=600)])
VALUES = RANDOM.integers(0, 80, size=600)
SECRET = bytes(range(32))


@pytest.mark.parametrize(
    "way",
    [
        {"theta": 60, "block": 8},
        {"theta": 60, "block": 1},
        {"warmup": 50, "per_key": True, "block": 8},
        {"theta": 9.5, "block": 4, "low": -20.0, "resolution": 0.5},
    ],
)
def test_batches_of_single_keys_equal_the_publisher_of_all(way):
    forget_what_was_drawn()
    keyed = KeyedPublisher(1.0, 100, horizon=64, public_keys=True, key=SECRET, **way)
    expected = keyed.push_many(NAMES.tolist(), VALUES)
    settings, per_key = keyed_settings(1.0, 100, horizon=64, **way), way.get("per_key", False)
    states, published = {}, {}
    for start in range(0, 600, 70):
        batch = slice(start, start + 70)
        lent = LentKeys(settings, SECRET, per_key=per_key)  # as every task makes one
        for name in np.unique(NAMES[batch])[:: -1 if start % 140 else 1].tolist():
            units = settings.grid.units(VALUES[batch][NAMES[batch] == name])
            before = states.get(name, KeyState())
            private, states[name] = lent.push_key(name, before, units)
            again, state = lent.push_key(name, before, units)
            assert (again.value.tobytes(), state) == (private.value.tobytes(), states[name])
            published.setdefault(name, []).append(private)
    for name, parts in published.items():
        mine = expected.key == name
        assert np.concatenate([part.value for part in parts]).tobytes() == expected.value[mine].tobytes()
        assert np.concatenate([part.position for part in parts]).tolist() == expected.position[mine].tolist()


def test_a_theta_that_keys_share_cannot_be_learnt_apart():
    with pytest.raises(InvalidParameter, match="cannot learn it together"):
        LentKeys(keyed_settings(1.0, 100, warmup=50, horizon=64), SECRET, per_key=False)


def test_noise_has_a_public_name_that_differs_by_secret_and_settings():
    here, there = keyed_settings(1.0, 100, theta=60, horizon=64), keyed_settings(2.0, 100, theta=60, horizon=64)
    names = {name_of_secret(secret, settings) for secret in (SECRET, bytes(32)) for settings in (here, there)}
    assert len(names) == 4
    assert all(SECRET.hex() not in name for name in names)
