"""A state that was changed anywhere is refused as damaged, whatever was changed: no foreign error, no other output."""

import json
import shutil

import numpy as np
import pytest

from deniable.errors import InvalidData
from deniable.randomness import SeededSource
from deniable.stores import DurablePublisher
from deniable.stores.state_file import StateFile
from deniable.streams import NME, PAK, Flat, Hc16, SmoothHc16, ToPLServer, ToPS, report_table, restore
from deniable.streams.local.simulated_stream import second_codes

VALUES = np.arange(1000) % 37
CHANGES = 150  # places of each file, spread over all of it


def make(kind=ToPS, **more):
    return kind(1.0, 50, **{"warmup": 20, "horizon": 64, "keep": False, **more})


def written(path, publisher, count):
    """The state that a run left in its store, after so many values."""
    store = path.with_name("store")
    with DurablePublisher(store, publisher) as durable:
        if count:
            durable.push_many(VALUES[:count])
    shutil.copy(store / "private" / "state.json", path)


MAKERS = {
    "warm-up": (lambda: make(), 10),
    "tops": (lambda: make(block=8), 111),
    "tops, kept": (lambda: make(keep=True), 200),
    "pak": (lambda: make(PAK), 50),
    "nme": (lambda: make(NME), 50),
    "hc16": (lambda: make(Hc16), 50),
    "smooth-hc16": (lambda: make(SmoothHc16), 50),
    "flat": (lambda: make(Flat), 50),
    "before anything": (lambda: make(), 0),
}


def changed_at(content, random):
    """The bytes with one changed, removed, doubled or exchanged for a digit, at places all over them."""
    for offset in np.linspace(0, len(content) - 1, CHANGES).astype(int):
        how = random.integers(4)
        middle = [
            bytes([content[offset] ^ int(random.integers(1, 256))]),
            b"",
            content[offset : offset + 1] * 2,
            bytes([ord("0") + (content[offset] + 1) % 10]),
        ][how]
        yield content[:offset] + middle + content[offset + 1 :]


def refused(path, content, go_on):
    """Whether a changed file is refused as damaged."""
    path.write_bytes(content)
    try:
        with StateFile(path) as file:
            go_on(file.record["state"])
    except InvalidData as refusal:
        return "damaged" in str(refusal)
    return False


@pytest.mark.parametrize("name", MAKERS)
def test_no_changed_byte_of_a_state_file_is_taken(tmp_path, name):
    maker, count = MAKERS[name]
    path = tmp_path / "state.json"
    written(path, maker(), count)
    content = path.read_bytes()
    record = json.loads(content)
    random, taken = np.random.default_rng(1), 0
    for changed in changed_at(content, random):
        if not refused(path, changed, restore):
            assert json.loads(changed) == record  # a space more, say
            taken += 1
    assert taken < CHANGES / 4


def test_no_changed_byte_of_a_servers_state_is_taken(tmp_path):
    server = ToPLServer(1.0, 50, theta=10.0)
    codes = second_codes(server.protocol, VALUES[:30].astype(float), 10.0, SeededSource(1))
    server.push_many(report_table(server.protocol, codes, 10.0, [f"user {number}" for number in range(30)]))
    path = tmp_path / "state.json"
    with StateFile(path, holds="who has answered") as file:
        file.write(server.state(), read=30, waiting=[0.5])
    content = path.read_bytes()
    for changed in changed_at(content, np.random.default_rng(1)):
        assert refused(path, changed, ToPLServer.restore) or json.loads(changed) == json.loads(content)


def test_every_changed_value_of_a_state_in_python_is_refused():
    publisher = make(block=8, keep=True)
    publisher.push_many(VALUES[:111])
    for original, opened in ((publisher.state(), restore), (ToPLServer(1.0, 50).state(), ToPLServer.restore)):
        state = json.loads(json.dumps(original))
        for name, value in state.items():
            for other in (
                None,
                0,
                -1,
                "",
                [],
                {},
                object(),
                {1, 2},
                float("nan"),
                value + 1 if name == "block" else "x",
            ):
                if other != value:
                    with pytest.raises(InvalidData, match="damaged"):
                        opened({**state, name: other})
            with pytest.raises(InvalidData, match="damaged"):
                opened({key: kept for key, kept in state.items() if key != name})
        with pytest.raises(InvalidData, match="damaged"):
            opened({**state, "more": 1})
        for other in (None, [], "state", 5, {}):
            with pytest.raises(InvalidData, match="damaged"):
                opened(other)
        assert opened(state) is not None
