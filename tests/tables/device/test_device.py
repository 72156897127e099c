"""The client on a device: constant bytes, a memory, known answers, and nothing installed."""

import json
import os
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import deniable as dn
from deniable.errors import Failure, InvalidData, InvalidParameter
from tables.device.report_vectors import VECTORS, made_vectors

USERS = dn.Table("users", age=dn.Ordinal(1, 95), marital=dn.Categorical("married", "single"), city=dn.Public())
ORDERS = dn.Table("orders", many=10, tau=3, amount=dn.Ordinal(0, 500), kind=dn.Categorical("a", "b", "c"))
SHOP = dn.Collection(USERS, ORDERS, epsilon=2.0, design="ahio")
ROW = {"age": 31, "marital": "single"}


def test_one_report_and_several():
    client = SHOP.client()
    report = client.report("users", {**ROW, "city": "Rome"})
    assert report.view < SHOP.views("users")
    assert [report.slot for report in client.reports("orders", [{"amount": 7, "kind": "b"}])] == [0, 1, 2]
    assert len(client.reports("orders", [])) == 3
    with pytest.raises(InvalidParameter, match="several reports"):
        client.report("orders", {"amount": 7, "kind": "b"})


def test_asked_twice_it_sends_the_same_bytes_whatever_the_data_are_now(tmp_path):
    for memory in (None, {}, tmp_path / "memory.json", str(tmp_path / "other.json")):
        client = SHOP.client(memory)
        first = client.reports("orders", [{"amount": 7, "kind": "b"}])
        assert all(client.reports("orders", rows) == first for rows in ([], [{"amount": 9, "kind": "a"}] * 20))
        if memory is not None:
            assert SHOP.client(memory).reports("orders", []) == first  # another day, another process
        other = dn.Collection(USERS, ORDERS, epsilon=2.5)
        assert len(other.client(memory).reports("orders", [])) == 3
    assert "amount" not in (tmp_path / "memory.json").read_text()


def test_a_memory_is_on_the_disk_under_its_name_before_anything_is_sent(tmp_path, monkeypatch):
    # A name that is not settled is lost in a power cut, and the client would draw again.
    settled = []

    def watched(descriptor):
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        settled.append("folder" if folder else "file")
        if folder:
            assert (tmp_path / "memory.json").exists()

    monkeypatch.setattr("deniable.files.os.fsync", watched)
    SHOP.client(tmp_path / "memory.json").report("users", ROW)
    assert settled == ["file", "folder"]


def test_a_client_without_a_memory_draws_nothing_in_a_fork():
    # Parent and child would give different answers for one user, and spend ε twice.
    script = """
import os, sys
import deniable as dn
from deniable.client import ToPLClient
from deniable.errors import Failure
shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
for client, ask in (
    (shop.client(), lambda client: client.report("users", {"age": 31})),
    (ToPLClient(1.0, 500), lambda client: client.report(31)),
):
    for drawn in (False, True):
        known = ask(client) if drawn else None
        if os.fork() == 0:
            try:
                os._exit(0 if ask(client) == known else 1)
            except Failure as problem:
                os._exit(2 if "another process" in str(problem) else 1)
        assert os.waitstatus_to_exitcode(os.wait()[1]) == (0 if drawn else 2)
"""
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


def test_a_damaged_memory_stops_everything(tmp_path):
    path = tmp_path / "memory.json"
    path.write_text("{half")
    with pytest.raises(Failure, match="damaged"):
        SHOP.client(path).report("users", ROW)
    path.write_text("[]")
    with pytest.raises(Failure, match="spend ε a second time"):
        SHOP.client(path).report("users", ROW)
    memory = SHOP.client(tmp_path / "new.json")._memory
    memory["a"] = "b" * 64
    assert (list(memory), len(memory)) == (["a"], 1)
    with pytest.raises(Failure, match="forgets nothing"):
        del memory["a"]


def test_a_memory_notices_a_changed_name_and_a_lost_seal(tmp_path):
    path = tmp_path / "memory.json"
    SHOP.client(path).report("users", ROW)
    whole = path.read_text()
    path.write_text(whole.replace(":users", ":usars"))  # else the device would answer a second time
    with pytest.raises(Failure, match="damaged"):
        SHOP.client(path).report("users", ROW)
    entries = json.loads(whole)
    del entries["seal"]
    for changed in (entries, {}):  # else whatever became of the file would pass for a device that has sent nothing
        path.write_text(json.dumps(changed))
        with pytest.raises(Failure, match="damaged"):
            SHOP.client(path).report("users", ROW)
    path.write_text(whole)
    assert SHOP.client(path).report("users", ROW) == SHOP.client(path).report("users", ROW)


@pytest.mark.parametrize(
    ("table", "rows", "message"),
    [
        ("users", [{**ROW, "income": 987_654}], "unknown attribute"),
        ("users", [], "exactly one row"),
        ("users", [ROW, ROW], "exactly one row"),
        ("users", ["987654"], "is not a mapping"),
    ],
)
def test_bad_rows_are_refused_before_anything_is_sent(table, rows, message):
    memory = {}
    with pytest.raises(InvalidData, match=message) as caught:
        SHOP.client(memory).reports(table, rows)
    assert "987" not in str(caught.value)
    assert memory == {}


def test_rows_without_a_place_do_not_silence_the_device():
    client = SHOP.client()
    assert client.report("users", {**ROW, "age": 987_654}).slot == 0
    assert client.rejected == {"outside the domain": 1}
    odd = [{"amount": 5.5, "kind": "a"}, {"amount": 7, "kind": "z"}, {"amount": None, "kind": "a"}]
    assert len(client.reports("orders", odd)) == 3
    assert client.rejected == {"outside the domain": 2, "not on the grid": 1, "missing": 1}


def test_two_at_once_send_one_answer(tmp_path):
    for attempt in range(20):
        path = tmp_path / f"memory{attempt}.json"
        with ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(SHOP.client(path).reports, "orders", []) for _ in range(4)]
        assert len({tuple(answer.result()) for answer in asked}) == 1


HOLDING = """
import sys, time
from deniable.tables.device.sent_reports import FileMemory
with FileMemory(sys.argv[1]).alone():
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_memory_in_use_is_waited_for_and_a_killed_process_does_not_keep_it(tmp_path, monkeypatch):
    path = tmp_path / "memory.json"
    with subprocess.Popen([sys.executable, "-c", HOLDING, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"held\n"
        monkeypatch.setattr("deniable.tables.device.sent_reports._WAIT_S", 0.0)
        with pytest.raises(Failure, match=r"the memory 'memory\.json' is in use .* Nothing was sent\. Wait"):
            SHOP.client(path).report("users", ROW)
        process.kill()
    assert (tmp_path / "memory.json.lock").exists()
    assert SHOP.client(path).report("users", ROW).slot == 0


def test_a_memory_is_one_whatever_name_it_is_reached_by(tmp_path):
    real, link = tmp_path / "memory.json", tmp_path / "link.json"
    link.symlink_to(real)
    first = SHOP.client(link).report("users", ROW)
    assert link.is_symlink()
    assert SHOP.client(real).report("users", ROW) == first
    os.link(real, tmp_path / "second name.json")
    with pytest.raises(Failure, match="has 2 names"):
        SHOP.client(real).report("users", ROW)


def test_a_client_shows_no_data():
    client = SHOP.client()
    client.report("users", ROW)
    assert repr(client) == f"Client(collection {SHOP.sha256[:8]})"


def test_the_committed_test_vectors_are_what_the_client_sends():
    vectors = made_vectors()
    assert json.loads(VECTORS.read_text()) == vectors
    assert len(vectors) >= 60


SCRIPT = """
import sys
sys.path.insert(0, {source!r})
from deniable.client import Client, Collection
collection = Collection.load({specification!r})
client = Client(collection, {memory!r})
for report in [client.report("users", {row!r}), *client.reports("orders", [])]:
    print(report.to_json("u1", "users"))
for package in ("numpy", "pyarrow", "duckdb", "cryptography"):
    assert package not in sys.modules
    try:
        __import__(package)
    except ImportError:
        continue
    sys.exit("the interpreter is not bare")
"""


def test_it_runs_in_a_bare_interpreter(tmp_path):
    SHOP.save(tmp_path / "shop.toml")
    script = SCRIPT.format(
        source=str(Path(dn.__file__).parents[1]),
        specification=str(tmp_path / "shop.toml"),
        memory=str(tmp_path / "memory.json"),
        row=ROW,
    )
    runs = [
        subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, text=True, check=False)
        for _ in range(2)
    ]
    assert [run.stderr for run in runs] == ["", ""]
    assert runs[0].stdout == runs[1].stdout
    assert len(runs[0].stdout.splitlines()) == 4
