"""`deniable doctor` finds what is wrong with a collector's folder, and repairs what can be."""

import sqlite3

import pytest

import deniable as dn
from asgi import SHOP, Served, report_of
from command_line import run
from deniable.service.collector import init_folder
from deniable.stores.collector.sqlite_store import STORE_FILE
from deniable.stores.collector.upload import Upload
from deniable.stores.collector.upload_columns import UploadColumns, packed
from deniable.tables.reports.upload_format import REPORT_LINES
from postgresql_server import new_database


@pytest.fixture
def folder(tmp_path):
    served = Served(tmp_path / "collected")
    served.send(("7", report_of("7")), ("8", report_of("8")))
    reports = SHOP.client(user="9").reports("orders", [{"amount": 5}])
    served.post(reports[0].to_json("9", "orders", {"city": "Rome"}).encode(), media_type=REPORT_LINES)
    served.close()
    return tmp_path / "collected"


def change(folder, statement, *arguments):
    connection = sqlite3.connect(folder / STORE_FILE)
    with connection:
        connection.execute(statement, arguments)
    connection.close()


def test_a_folder_in_order(folder):
    run("seal", folder)
    ended = run("doctor", folder)
    assert (ended.returncode, ended.stdout) == (
        0,
        "orders, round 0: 1 report, 1 user incomplete\nusers, round 0: 2 reports\neverything is in order\n",
    )


def test_counts_leftovers_permissions_and_sealed_files_are_repaired(folder):
    run("seal", folder)
    change(folder, "UPDATE counts SET rows = 5 WHERE table_ = 'users'")
    (folder / "keys.json").chmod(0o644)
    (folder / "users" / ".part-0.parquet.new").write_bytes(b"half")
    (folder / "users" / "part-0.parquet").write_bytes(b"nothing like it")
    ended = run("doctor", folder)
    assert ended.returncode == 1
    for words in (
        "keys.json can be read by others",
        "users/.part-0.parquet.new is left over",
        "users, round 0: the count says 5, and there are 2 reports",
        "users/part-0.parquet is damaged",
    ):
        assert f"can be repaired: {words}" in ended.stdout
    assert "repaired: 4" in run("doctor", folder, "--repair").stdout
    assert run("doctor", folder).returncode == 0


def test_damaged_reports_are_named_and_left_alone(folder):
    report = report_of("7")
    rows = UploadColumns.of([Upload("users", 0, "somebody", 0, report)]).rows
    change(folder, "INSERT INTO arrivals VALUES (NULL, 'users', 0, ?)", packed(rows))
    change(folder, "UPDATE counts SET rows = 3 WHERE table_ = 'users'")
    ended = run("doctor", folder, "--repair")
    assert (ended.returncode, "somebody" in ended.stdout + ended.stderr) == (1, False)
    assert "damage: 1 report " in ended.stdout
    assert "users, round 0: 3 reports" in run("doctor", folder).stdout


def test_a_file_that_is_broken(folder):
    content = bytearray((folder / STORE_FILE).read_bytes())
    content[4096:] = bytes(len(content) - 4096)
    (folder / STORE_FILE).write_bytes(content)
    ended = run("doctor", folder)
    assert (ended.returncode, "reports.sqlite is damaged" in ended.stdout) == (1, True)


def test_a_store_in_postgresql(tmp_path):
    init_folder(SHOP, tmp_path / "collected", database=new_database())
    served = Served(tmp_path / "collected")
    served.send(("7", report_of("7")))
    served.collector.store._open_writer().execute("UPDATE deniable_counts SET rows = 9")
    served.close()
    assert "the count says 9, and there are 1 report" in run("doctor", tmp_path / "collected").stdout
    assert run("doctor", tmp_path / "collected", "--repair").returncode == 0
    assert run("doctor", tmp_path / "collected").returncode == 0


def test_streams_in_stores_are_looked_at(folder):
    live = folder / "live"
    live.mkdir()
    with dn.stores.DurablePublisher(live / "meter", dn.streams.ToPS(1.0, 100, warmup=2, horizon=64)) as stream:
        stream.push_many([5, 6, 7, 8])
    assert "stream meter: a store was read" in run("doctor", folder).stdout
    assert run("serve", folder, "--check").returncode == 0
    settings = live / "meter" / "settings.json"
    settings.write_text(settings.read_text().replace("1.0", "2.0"))
    ended = run("doctor", folder)
    assert (ended.returncode, "damage: stream meter: " in ended.stdout) == (1, True)
