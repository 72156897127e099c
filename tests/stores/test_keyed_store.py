"""A store with one stream per key: it survives kills, equals a publisher in memory, and is asked by key or over all."""

import json

import numpy as np
import pytest

from command_line import run
from deniable.errors import InvalidData, InvalidParameter, QueryRefused
from deniable.stores import Batch, BatchPublisher, DurablePublisher, StoredStream, check_store
from deniable.stores.keyed_stream import KeyedStream
from deniable.streams import KeyedPublisher, ToPS
from same_noise import forget_what_was_drawn

RANDOM = np.random.default_rng(1)
NAMES = [f"region {number}" for number in RANDOM.integers(0, 5, size=1500)]
VALUES = RANDOM.integers(0, 80, size=1500)
WAYS = [{"theta": 60}, {"warmup": 100}, {"warmup": 50, "per_key": True}]


def make(**more):
    forget_what_was_drawn()
    return KeyedPublisher(1.0, 100, horizon=64, block=8, public_keys=True, key=bytes(32), **more)


@pytest.mark.parametrize("way", WAYS)
def test_a_store_of_keys_goes_on_exactly_and_answers_as_the_publisher(tmp_path, way):
    keyed = make(**way)
    expected = keyed.push_many(NAMES, VALUES)
    for start in range(0, 1500, 130):
        durable = DurablePublisher(tmp_path / "store", make(**way), segment_values=300, log_bytes=4000)
        assert durable.position == start
        for first in (start, start + 65):
            last = min(first + 65, start + 130)
            stamps = np.arange(first, min(last, 1500))
            durable.publish(Batch(VALUES[first:last], stamps, keys=NAMES[first:last]), lambda *_: None)
        durable._let_go() if start % 260 else durable.close()
    stored = StoredStream(tmp_path / "store")
    published = stored.values(0)
    assert published.keys.tolist() == expected.key.tolist()
    assert published.values.tolist() == expected.value.tolist()
    assert published.timestamps.tolist() == expected.index.tolist()
    answers, known = stored.by_key(), keyed.release_of([expected])
    for name in known.keys:
        assert answers[name].sum(3, 90).interval == known[name].sum(3, 90).interval
    assert answers.sum(0, 80).interval == pytest.approx(known.sum(0, 80).interval)
    with pytest.raises(QueryRefused, match="one stream per key"):
        stored.released()
    assert all(finding.well for finding in check_store(tmp_path / "store"))


def test_keys_that_are_missing_or_wrong_are_refused_before_anything_is_logged(tmp_path):
    with DurablePublisher(tmp_path / "store", make(theta=60)) as durable:
        with pytest.raises(InvalidData, match="one key for every value"):
            durable.push_many([1, 2])
        with pytest.raises(InvalidData, match="a key must be a text"):
            durable.push_many([1, 2], keys=["a", None])
        assert (durable.total, durable.position) == (0, 0)
        assert durable.push_many([1, 2], keys=["a", 7]).size == 2
    with pytest.raises(QueryRefused, match="has no keys"):
        StoredStream(plain(tmp_path)).by_key()
    with pytest.raises(InvalidParameter, match="only a store keeps"):
        BatchPublisher(KeyedStream(make(theta=60))).publish(Batch(VALUES[:3], keys=NAMES[:3]), lambda *_: None)


def plain(tmp_path):
    """A store without keys."""
    DurablePublisher(tmp_path / "plain", ToPS(1.0, 100, warmup=2, horizon=64)).close()
    return tmp_path / "plain"


def test_the_command_publishes_and_asks_by_key(tmp_path):
    rows = "".join(f"{name},{value}\n" for name, value in zip(NAMES, VALUES, strict=True))
    (tmp_path / "in.csv").write_text("region,value\n" + rows)
    publish = ["stream", "publish", "--epsilon", "2", "--bound", "100", "--theta", "90", "--horizon", "512"]
    publish += ["--block", "8", "--key", "region", tmp_path / "in.csv"]
    assert "needs a store" in run(*publish).stderr
    refused = run(*publish, "--store", tmp_path / "store")
    assert "--key shows everybody which keys there are" in refused.stderr
    done = run(*publish, "--store", tmp_path / "store", "--public-keys")
    assert done.returncode == 0, done.stderr
    alone = run("stream", "query", tmp_path / "store", "0:200", "--key", "region 1", "--json")
    facts = json.loads(alone.stdout)
    mine = VALUES[np.array(NAMES) == "region 1"][:200].sum()
    assert abs(facts["sum"] - mine) < 6 * np.hypot(facts["stderr"], facts["smoothing"])
    together = json.loads(run("stream", "query", tmp_path / "store", "0:1500", "--all-keys", "--json").stdout)
    assert together["keys"] == 5
    assert together["low"] < together["sum"] < together["high"]
    error = (together["high"] - together["low"]) / (2 * 1.96)
    assert abs(together["sum"] - VALUES.sum()) < 6 * error  # by chance less than once in 10^8 runs
    missing = run("stream", "query", tmp_path / "store", "0:200")
    assert "one stream per key" in missing.stderr
    assert (
        "is missing, and the store has one stream per key"
        in run("stream", "publish", "--store", tmp_path / "store", tmp_path / "in.csv").stderr
    )
