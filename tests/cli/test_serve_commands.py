"""`deniable serve --init`, `--check`, `seal`, `key` and `token`; the server itself is tested where it is."""

import json
import re
import time

import pytest

import deniable as dn
from command_line import run
from deniable.errors import BadInput, InvalidParameter
from deniable.service.keys import KeyFile
from deniable.service.settings import ServeSettings, load_settings
from deniable.service.tokens import read_token
from deniable.stores.collector.sqlite_store import STORE_FILE, SqliteStore
from deniable.stores.collector.upload import Upload
from self_signed import self_signed

SHOP = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)


@pytest.fixture
def folder(tmp_path):
    SHOP.save(tmp_path / "shop.toml")
    made = run("serve", "--init", tmp_path / "shop.toml", tmp_path / "collected")
    assert (made.returncode, made.stdout) == (0, "")
    assert "start it with deniable serve" in made.stderr
    return tmp_path / "collected"


def test_init_makes_everything_once(folder, tmp_path):
    assert {path.name for path in folder.iterdir()} == {"collection.json", "keys.json", STORE_FILE}
    assert folder.stat().st_mode & 0o777 == 0o700
    again = run("serve", "--init", tmp_path / "shop.toml", folder)
    assert (again.returncode, "exists and is not empty. Nothing was written" in again.stderr) == (2, True)


def test_check_looks_at_tls_files_address_and_ports(folder, tmp_path):
    certificate, key = self_signed(tmp_path)
    (tmp_path / "other").mkdir()
    other = self_signed(tmp_path / "other")[1]

    def checked(**settings):
        return run(
            "serve",
            folder,
            "--check",
            **{f"DENIABLE_SERVE_{name.upper()}": str(value) for name, value in settings.items()},
        )

    assert checked(certificate=certificate, private_key=key).returncode == 0
    assert "do not belong together" in checked(certificate=certificate, private_key=other).stderr
    assert "cannot be listened on" in checked(host="203.0.113.7").stderr
    assert "mysql_port" in checked(port=8710, mysql_port=8710).stderr


def test_check_starts_nothing(folder, tmp_path):
    assert run("serve", folder, "--check").stdout == "settings and folder are fine: 127.0.0.1:8710, uploads are open\n"
    (tmp_path / "serve.toml").write_text('host = "0.0.0.0"\nport = 99\n')
    checked = run("serve", folder, "--check", "--config", tmp_path / "serve.toml", DENIABLE_SERVE_PORT="100")
    assert checked.stdout == "settings and folder are fine: 0.0.0.0:100, uploads need a token\n"
    checked = run("serve", folder, "--check", "--config", tmp_path / "serve.toml", "--port", "101", "--open")
    assert checked.stdout == "settings and folder are fine: 0.0.0.0:101, uploads are open\n"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("prot = 99", "'prot' is not a setting of serve. Nothing was started"),
        ("port = 99999", "port must be a Python integer from 0 to 65535"),
        ('port = "99"', "port must be a Python integer"),
        ("body_seconds = 0", "body_seconds must be a positive number"),
        ("open = 1", "open must be True or False"),
        ('proxies = ["10.0.0.0/33"]', "not an address or a network"),
        ('proxies = "10.0.0.7"', "proxies must be a list of texts"),
        ('certificate = "a.pem"', "certificate and private_key belong together"),
        ("port = ", "is not well-formed"),
    ],
)
def test_settings_are_checked_whole(folder, tmp_path, text, problem):
    (tmp_path / "serve.toml").write_text(text)
    ended = run("serve", folder, "--check", "--config", tmp_path / "serve.toml")
    assert ended.returncode == 2
    assert problem in ended.stderr


def test_settings_from_three_sources(tmp_path):
    (tmp_path / "serve.toml").write_text('port = 1\nconnections = 2\nbody_seconds = 3\nproxies = ["10.0.0.7"]\n')
    environment = {"DENIABLE_SERVE_CONNECTIONS": "20", "DENIABLE_SERVE_OPEN": "yes", "OTHER": "x"}
    chosen = load_settings(tmp_path / "serve.toml", {"port": 100, "host": None}, environment)
    assert chosen == ServeSettings(port=100, connections=20, open=True, body_seconds=3.0, proxies=("10.0.0.7",))
    listed = load_settings(None, {}, {"DENIABLE_SERVE_PROXIES": "10.0.0.7, 10.1.0.0/16"})
    assert listed.is_proxy("10.1.2.3")
    assert not listed.is_proxy("10.2.0.1")
    for name, text in (("OPNE", "1"), ("OPEN", "maybe"), ("PORT", "a")):
        with pytest.raises(BadInput, match="Nothing was started"):
            load_settings(None, {}, {f"DENIABLE_SERVE_{name}": text})
    with pytest.raises(InvalidParameter, match="is not a file"):
        ServeSettings(certificate="a.pem", private_key="b.pem")


def test_a_folder_that_is_none(tmp_path):
    for command in (["serve", tmp_path], ["seal", tmp_path], ["key", "list", tmp_path], ["token", tmp_path, "7"]):
        ended = run(*command)
        assert (ended.returncode, "is not a folder of a collector. Nothing was started" in ended.stderr) == (2, True)
    ended = run("serve", tmp_path, "--simulation")
    assert "--simulation belongs to --init" in ended.stderr


def test_keys_are_shown_once_and_revoked(folder):
    key = run("key", "add", folder, "dashboard", "--scope", "ask").stdout.strip()
    assert KeyFile(folder).keys().allows(key, "ask", 0)
    assert not KeyFile(folder).keys().allows(key, "operate", 0)
    run("key", "add", folder, "visitor", "--scope", "ask", "--days", "30")
    listed = run("key", "list", folder).stdout
    assert re.fullmatch(r"dashboard  ask\nvisitor  ask  until \d{4}-\d\d-\d\d\ntokens-1  tokens\n", listed)
    assert 29 * 86_400 < KeyFile(folder).keys().keys[1].expires - time.time() <= 30 * 86_400
    assert run("key", "revoke", folder, "visitor").returncode == 0
    assert run("key", "rotate", folder).returncode == 0
    assert run("key", "revoke", folder, "tokens-1").returncode == 0
    assert run("key", "revoke", folder, "dashboard").returncode == 0
    assert run("key", "list", folder).stdout == "tokens-2  tokens\n"
    assert not KeyFile(folder).keys().allows(key, "ask", 0)


def test_tokens_from_arguments_and_stdin(folder):
    secrets = KeyFile(folder).keys().token_secrets
    for ended in (run("token", folder, "7", "8", "--days", 2), run("token", folder, text="7\n8\n")):
        tokens = ended.stdout.split()
        assert all(
            read_token(token, secrets, 0).names(uid, SHOP.sha256) for token, uid in zip(tokens, "78", strict=True)
        )
        assert not read_token(tokens[0], secrets, 0).names("8", SHOP.sha256)


def test_seal_writes_parquet_and_a_query_reads_the_store(folder):
    store = SqliteStore(folder / STORE_FILE, SHOP.sha256)
    report = SHOP.client().report("users", {"age": 31})
    store.add([Upload("users", 0, "7", 0, report.to_bytes())])
    assert run("seal", folder).stdout == "users, round 0: 1 report\n"
    asked = run("query", folder, "SELECT COUNT(*) AS n FROM users", "--json")
    assert json.loads(asked.stdout)["n"] == 1
    store.close()
