"""Collectors whose reports are in PostgreSQL: two servers, one set of reports, and all commands that read them."""

import pytest

import deniable as dn
from asgi import SHOP, Served, report_of
from command_line import run
from deniable.service.collector import init_folder
from deniable.stores.collector.database_file import DATABASE_FILE
from postgresql_server import new_database


@pytest.fixture
def folders(tmp_path):
    SHOP.save(tmp_path / "shop.toml")
    address = new_database()
    made = run("serve", "--init", tmp_path / "shop.toml", tmp_path / "first", "--store", address)
    assert made.returncode == 0, made.stderr
    init_folder(SHOP, tmp_path / "second", database=address)
    return tmp_path / "first", tmp_path / "second"


def test_two_servers_behind_a_balancer(folders):
    servers = [Served(folder) for folder in folders]
    assert servers[0].send(("7", report_of("7"))).json["accepted"] == 1
    assert servers[1].send(("7", report_of("7")), ("8", report_of("8"))).json == {
        "accepted": 1, "repeated": 1, "refused": {}, "failed": []
    }  # fmt: skip
    assert b"deniable_stored_reports" in servers[0].get("/metrics").body
    assert servers[0].get("/readyz").status == 200
    for folder in folders:
        assert dn.connect(folder).stores["users"].rows == 2
    for served in servers:
        served.close()
    assert run("seal", folders[0]).stdout == "users, round 0: 2 reports\n"
    assert run("serve", folders[1], "--check").returncode == 0


def test_the_address_is_private_and_shown_nowhere(tmp_path):
    SHOP.save(tmp_path / "shop.toml")
    for address, words in (
        ("postgresql://me@/nothing?host=/nowhere&application_name=secret", "cannot be used"),
        ("postgresql://me:secret@/nothing?host=/nowhere", "has a password"),
        ("postgresql://me@/nothing?host=/nowhere&password=secret", "PGPASSFILE names"),
        ("mysql://me:secret@host/x", "is not a PostgreSQL address"),
    ):
        ended = run("serve", "--init", tmp_path / "shop.toml", tmp_path / words.split()[-1], "--store", address)
        assert (ended.returncode != 0, words in ended.stderr, "secret" in ended.stderr) == (True, True, False)
    assert "--store belongs to --init" in run("serve", tmp_path, "--store", "postgresql://x").stderr
    folder = tmp_path / "collected"
    init_folder(SHOP, folder, database=new_database())
    assert (folder / DATABASE_FILE).stat().st_mode & 0o777 == 0o600


def test_a_database_without_an_encoding_is_one_too(tmp_path):
    address = new_database() + "&client_encoding=SQL_ASCII"
    for name in ("first", "second"):  # the second joins what the first made
        init_folder(SHOP, tmp_path / name, database=address)
    served = Served(tmp_path / "second")
    assert served.send(("7", report_of("7"))).json["accepted"] == 1
    served.close()
