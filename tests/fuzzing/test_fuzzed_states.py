"""States with one changed byte: refused, or they go on exactly as the whole ones."""

import json
import shutil

import numpy as np

import deniable as dn
from deniable.client import Client, ToPLClient
from deniable.private_folders import private_folder
from deniable.stores import DurablePublisher, DurableServer, StoredStream
from deniable.stores.state_file import StateFile
from deniable.streams import ToPLServer, ToPS, restore
from fuzzing.harness import SECRET, cases, fuzz

VALUES = np.arange(300) % 50
LATER = [SECRET, 3, 8, 1]
BOUND = 500.0


def changed(chance, data):
    """One byte is another, or missing, or doubled."""
    position = chance.randrange(len(data))
    byte = chance.choice((chance.randrange(256), data[position] ^ 1, ord(chance.choice('0123456789"{}[],:.-e'))))
    return (
        data[:position]
        + chance.choice((bytes([byte]), bytes([byte]), b"", data[position : position + 1] * 2))
        + data[position + 1 :]
    )


def published(taken):
    """A publisher that has taken so many values."""
    tops = ToPS(1.0, 1e9, warmup=100, horizon=256)
    tops.push_many(VALUES[:taken])
    return tops


def write(path, data):
    path.unlink(missing_ok=True)
    path.write_bytes(data)
    path.chmod(0o600)


@cases(100)
def test_stores_of_publishers(tmp_path, count):
    """A byte changed anywhere in a store that was killed: it is refused, or what is published is the same."""
    store, files, expected = tmp_path / "store", {}, {}
    for taken in (60, 300):
        durable = DurablePublisher(store, ToPS(1.0, 1e9, warmup=100, horizon=256), log_bytes=1600)
        for start in range(0, taken, 60):
            durable.push_many(VALUES[start : start + 60])
        durable._let_go()
        files[taken] = {file: file.read_bytes() for file in store.rglob("*") if file.is_file()}
        with DurablePublisher(store) as durable:
            durable.push_many(LATER)
        expected[taken] = StoredStream(store).values(0).values.tolist()
        shutil.rmtree(store)
    notes = private_folder("stores", "", "")

    def attempt(chance):
        taken = chance.choice(list(files))
        victim = chance.choice(list(files[taken]))
        shutil.rmtree(notes, ignore_errors=True)  # otherwise this is an old copy
        for file, content in files[taken].items():
            file.parent.mkdir(parents=True, exist_ok=True)
            write(file, changed(chance, content) if file == victim and content else content)
        try:
            with DurablePublisher(store) as durable:
                durable.push_many(LATER)
            assert StoredStream(store).values(0).values.tolist() == expected[taken]
        finally:
            shutil.rmtree(store)

    outcomes = fuzz(attempt, "stores of publishers", count)
    assert outcomes["InvalidData"] > 0.4 * count


@cases(300)
def test_files_of_servers(tmp_path, count):
    server = ToPLServer(2.0, BOUND, theta=40.0, keep=False)
    sent = [ToPLClient(2.0, BOUND).report(value, theta=40.0) for value in range(8)]
    for uid, report in enumerate(sent[:5]):
        server.push(report, uid=SECRET + uid)
    path = tmp_path / "state.json"
    with StateFile(path, holds="who has answered") as file:
        file.write(server.state(), read=5, waiting=[])
    whole = path.read_bytes()

    def later(server):
        return [server.push(report, uid=SECRET + uid) for uid, report in enumerate(sent)], server.total.value

    expected = later(server)

    def attempt(chance):
        write(path, changed(chance, whole))
        with DurableServer(path, ToPLServer(2.0, BOUND, theta=40.0, keep=False)) as durable:
            assert later(durable.server) == expected

    outcomes = fuzz(attempt, "files of servers", count)
    assert outcomes["InvalidData"] > 0.8 * count


@cases(300)
def test_states_handed_to_restore(count):
    """What a program kept in a place of its own comes back changed."""
    publishers = {taken: published(taken) for taken in (60, 300)}
    texts = {taken: json.dumps(tops.state()).encode() for taken, tops in publishers.items()}
    expected = {taken: tops.push_many(LATER).tolist() for taken, tops in publishers.items()}

    def attempt(chance):
        taken = chance.choice(list(texts))
        try:
            state = json.loads(changed(chance, texts[taken]))
        except ValueError:
            return
        if isinstance(state, dict):
            assert restore(state).push_many(LATER).tolist() == expected[taken]

    outcomes = fuzz(attempt, "states handed to restore", count)
    assert outcomes["InvalidData"] + outcomes["InvalidParameter"] > 0.3 * count


@cases(300)
def test_memories_of_devices(tmp_path, count):
    """A device whose memory is damaged says so, and sends nothing: a second answer would spend ε again."""
    shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    path = tmp_path / "memory.json"
    row = [{"age": 31}]
    first = [report.to_bytes() for report in Client(shop, path).reports("users", row)]
    whole = path.read_bytes()

    def attempt(chance):
        write(path, changed(chance, whole))
        assert [report.to_bytes() for report in Client(shop, path).reports("users", row)] == first

    outcomes = fuzz(attempt, "memories of devices", count)
    assert outcomes["Failure"] > 0.8 * count
