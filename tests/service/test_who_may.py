"""Tokens, proxies, open ports, keys and scopes."""

import asyncio
import gc
import json
import threading
import time

import pytest

import deniable as dn
from asgi import REPORTS, SHOP, Served, report_of
from deniable.errors import BadInput, Failure, InvalidData
from deniable.service.collector import init_folder
from deniable.service.keys import KEYS_FILE, KeyFile, Keys
from deniable.service.report_commits import MayUpload
from deniable.service.tokens import make_token, read_token
from deniable.tables.reports.upload_format import binary_body

ELSEWHERE = {"host": "0.0.0.0"}  # noqa: S104 - no port is opened


@pytest.fixture
def served(tmp_path):
    made = Served(tmp_path / "collected", **ELSEWHERE)
    yield made
    made.close()


def token_for(served, uid, expires=None, specification=SHOP.sha256):
    secrets = served.collector.keys.keys().token_secrets
    return make_token(secrets, uid, int(time.time()) + 3600 if expires is None else expires, specification)


def with_token(served, token, *uids):
    reports = [(uid, report_of(uid)) for uid in uids]
    return served.send(*reports, headers={"authorization": f"Bearer {token}"}, client="203.0.113.9")


def test_a_token_is_for_its_user_alone(served):
    answer = with_token(served, token_for(served, "7"), "7", "8").json
    assert (answer["accepted"], answer["refused"]) == (1, {"other_user": 1})
    assert answer["failed"] == [{"index": 1, "reason": "other_user"}]


def test_a_token_has_a_pace_also_with_reports_of_others(tmp_path):
    """A relay sends for many, and has no limit of its own; a token is for one, whatever is sent with it."""
    served = Served(tmp_path / "collected", reports_per_minute=4.0, proxies=("10.0.0.1",), **ELSEWHERE)
    for token in (token_for(served, "7"), token_for(served, "8")):
        assert [with_token(served, token, "7", "8").status for _ in range(3)] == [200, 200, 429]
    for user, statuses in (("7", [200, 200, 429]), ("*", [200, 200, 200])):
        vouched = {"headers": {"deniable-user": user}, "client": "10.0.0.1"}
        answers = [served.send(*((uid, report_of(uid)) for uid in ("7", "8")), **vouched) for _ in range(3)]
        assert [answer.status for answer in answers] == statuses
    served.close()


def test_a_token_for_an_id_of_another_population_names_its_owner(tmp_path):
    products = dn.Table("products", owner="shop", key="pid", price=dn.Ordinal(0, 4))
    users = dn.Table("users", age=dn.Ordinal(1, 95))
    both = dn.Collection(users, products, epsilon=1.0, owners={"shop": 1.0}, coins="assigned", name="shop")
    served = Served(tmp_path / "both", both, **ELSEWHERE)
    client = both.client(user="7")
    mine, theirs = client.report("users", {"age": 31}), client.report("products", {"price": 3})
    reports = [("7", mine.to_bytes()), ("7", theirs.to_bytes())]
    for name, refused in (("7", 1), ("shop:7", 0)):
        headers = {"authorization": f"Bearer {token_for(served, name, specification=both.sha256)}"}
        answer = served.send(*reports, headers=headers, client="203.0.113.9").json
        assert answer["failed"] == [{"index": refused, "reason": "other_user"}]
        assert answer["accepted"] == 1
    # A user who is called like a product is refused: her token would be good for the product, too.
    named = ("shop:7", both.client(user="shop:7").report("users", {"age": 31}).to_bytes())
    assert served.send(named, headers=headers, client="203.0.113.9").json["refused"] == {"other_user": 1}
    served.close()


def test_no_token_an_old_one_and_a_forged_one(served):
    old, other = token_for(served, "7", int(time.time()) - 1), token_for(served, "7", specification="00" * 32)
    assert with_token(served, token_for(served, "7"), "7").json["accepted"] == 1
    assert with_token(served, old, "7").status == 401
    assert with_token(served, other, "7").json["refused"] == {"other_user": 1}
    assert served.send(("7", report_of("7")), client="203.0.113.9").json["error"] == "no_token"
    good = token_for(served, "9")
    forged = [good[:-2] + ("AA" if good[-2:] != "AA" else "BB"), good.replace("v1.1.", "v1.2."), "", "v1", "." * 3,
              good.replace(good.split(".")[2], "9" * 12), good.replace("v1", "v2"), "é" * 20, "x" * 1_000]  # fmt: skip
    for token in forged:
        answer = with_token(served, token, "9")
        assert answer.status == 401 or answer.json["refused"] == {"other_user": 1}, token


def test_the_formula_is_the_documented_one():
    import base64
    import hashlib
    import hmac

    text = "\n".join(("deniable token v1", SHOP.sha256, "2000000000", "é7"))
    mac = base64.urlsafe_b64encode(hmac.new(b"s" * 32, text.encode(), hashlib.sha256).digest()).rstrip(b"=").decode()
    assert make_token({"1": b"r", "12": b"s" * 32}, "é7", 2_000_000_000, SHOP.sha256) == f"v1.12.2000000000.{mac}"
    assert read_token(f"v1.12.2000000000.{mac}", {"12": b"s" * 32}, now=2_000_000_000) is None
    assert read_token(f"v1.12.02000000000.{mac}", {"12": b"s" * 32}, now=0) is None


def test_secrets_rotate(served):
    old = token_for(served, "7")
    served.collector.keys.change(Keys.with_new_secret)
    new = token_for(served, "7")
    assert new.startswith("v1.2.")
    assert with_token(served, old, "7").json["accepted"] == 1
    served.collector.keys.change(lambda keys: keys.without("tokens-1"))
    assert with_token(served, old, "7").status == 401
    assert with_token(served, new, "7").json["repeated"] == 1
    with pytest.raises(BadInput, match="the only secret"):
        served.collector.keys.change(lambda keys: keys.without("tokens-2"))


def test_a_proxy_vouches_only_from_its_address(tmp_path):
    served = Served(tmp_path / "collected", proxies=("10.0.0.0/24", "192.0.2.7"), **ELSEWHERE)
    reports, vouched = [(uid, report_of(uid)) for uid in ("7", "8")], {"deniable-user": "7"}
    assert served.send(*reports, headers=vouched, client="203.0.113.9").json["error"] == "not_a_proxy"
    assert served.send(*reports, headers=vouched, client="10.0.0.9").json["refused"] == {"other_user": 1}
    assert served.send(*reports, headers={"deniable-user": "*"}, client="192.0.2.7").json["accepted"] == 1
    assert served.send(*reports, client="10.0.0.9").status == 401
    served.close()


def test_a_header_that_says_who_sends_may_be_there_only_once(tmp_path):
    """A proxy that adds its own and lets the sender's through would vouch for whom the sender likes."""
    served = Served(tmp_path / "collected", host="0.0.0.0", proxies=("10.0.0.7",))  # noqa: S104 - no port is opened
    for names in (("Deniable-User", "deniable-user"), ("Authorization", "authorization")):
        answer = served.send(("7", report_of("7")), headers=dict.fromkeys(names, "7"), client="10.0.0.7")
        assert (answer.status, answer.json["error"]) == (400, "headers")
    twice = {"X-Trace": "1", "x-trace": "2", "deniable-user": "7"}
    assert served.send(("7", report_of("7")), headers=twice, client="10.0.0.7").json["accepted"] == 1
    served.close()


def test_no_answer_repeats_the_host_of_a_request(served):
    assert served.post(b"", path="/v1/collections/shop/reports/", headers={"host": "evil.example"}).status == 404


def test_a_loopback_port_is_open_except_to_what_was_forwarded(tmp_path):
    served, report = Served(tmp_path / "collected"), report_of("7")
    assert served.send(("7", report)).status == 200
    forwarded = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "via", "x-real-ip")
    # A proxy may leave no other trace than a name; a page may have made its own name lead here.
    names = ("collector.example", "evil.example:8710", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.7")
    for headers in (*({header: "203.0.113.9"} for header in forwarded), *({"host": name} for name in names)):
        answer = served.send(("7", report), headers=headers)
        assert (answer.status, answer.json["error"]) == (401, "forwarded"), headers
        assert served.get("/metrics", headers=headers).status == 401, headers
    for name in ("localhost", "LOCALHOST:8710", "127.0.0.1:8710", "[::1]:8710", "[::1]"):
        assert served.send(("7", report), headers={"host": name}).status == 200, name
    served.close()
    opened = Served(tmp_path / "collected", open=True, **ELSEWHERE)
    assert opened.send(("7", report), client="203.0.113.9").json["repeated"] == 1
    opened.close()


# Keys -----------------------------------------------------------------------------------------------------------------


def added(served, name, scope, expires=None):
    made = []

    def add(keys):
        changed, text = keys.with_key(name, scope, expires)
        made.append(text)
        return changed

    served.collector.keys.change(add)
    return made[0]


def test_metrics_need_a_key_of_their_scope(served):
    ask, operate = added(served, "dashboard", "ask"), added(served, "oncall", "operate")
    get = lambda key: served.get("/metrics", headers={"authorization": f"Bearer {key}"}, client="203.0.113.9").status  # noqa: E731
    assert (get(ask), get(operate), get("nonsense"), served.get("/metrics").status) == (403, 200, 403, 401)
    served.collector.keys.change(lambda keys: keys.without("oncall"))
    assert get(operate) == 403


def test_a_key_ends_with_its_time_and_says_so(served, monkeypatch):
    plain, ending = added(served, "plain", "operate"), added(served, "ending", "operate", expires=1_800_000_000)
    assert b"deniable keys 2" in (served.folder / KEYS_FILE).read_bytes()

    def asked(key, now, path="/v1/status"):
        monkeypatch.setattr(served.collector, "now", lambda: now)
        return served.get(path, headers={"authorization": f"Bearer {key}"}, client="203.0.113.9")

    assert asked(ending, 1_799_999_999).status == 200
    for path in ("/v1/status", "/v1/key", "/v1/tables"):
        answer = asked(ending, 1_800_000_000, path)
        assert (answer.status, answer.json["error"]) == (403, "expired")
        assert answer.json["message"] == "The key ending expired on 2027-01-15."
    assert asked(plain, 4e9).status == 200
    served.collector.keys.change(lambda keys: keys.without("ending"))
    assert b"deniable keys 1" in (served.folder / KEYS_FILE).read_bytes()
    assert asked(plain, 4e9).status == 200


def test_keys_are_stored_hashed_in_a_private_file(served):
    key = added(served, "dashboard", "ask")
    path = served.folder / KEYS_FILE
    assert key not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600
    assert key not in repr(served.collector.keys.keys())
    for secret in served.collector.keys.keys().token_secrets.values():
        assert secret.hex() not in repr(served.collector.keys.keys())
    with pytest.raises(BadInput, match="a key 'dashboard' already"):
        added(served, "dashboard", "ask")
    with pytest.raises(BadInput, match="there is no key 'nobody'"):
        served.collector.keys.change(lambda keys: keys.without("nobody"))


def test_a_damaged_or_readable_file_of_keys_is_refused(tmp_path):
    init_folder(SHOP, tmp_path / "collected")
    path = tmp_path / "collected" / KEYS_FILE
    good = path.read_bytes()
    for content in (good[:-5], good.replace(b'"1"', b'"2"', 1), b"{}", b"[]", b""):
        path.write_bytes(content)
        with pytest.raises((Failure, InvalidData)):
            KeyFile(path.parent).keys()
    path.write_bytes(good)
    path.chmod(0o640)
    with pytest.raises(Failure, match="can be read by others"):
        KeyFile(path.parent).keys()
    path.chmod(0o600)
    assert list(KeyFile(path.parent).keys().token_secrets) == ["1"]
    path.unlink()
    with pytest.raises(Failure, match="is missing, damaged"):
        KeyFile(path.parent).keys()


# What is told ---------------------------------------------------------------------------------------------------------


def test_a_collection_is_handed_out_with_an_etag(served):
    answer = served.get("/v1/collections/shop")
    assert answer.json["sha256"] == SHOP.sha256
    assert answer.json["specification"] == json.loads(SHOP.to_json())
    assert answer.json["open_rounds"] == [0]
    again = served.get("/v1/collections/shop", headers={"if-none-match": f'"x", {answer.headers["etag"]}'})
    assert (again.status, again.body, again.headers["etag"]) == (304, b"", answer.headers["etag"])
    served.collector.store.set_round(0, is_open=False)
    changed = served.get("/v1/collections/shop", headers={"if-none-match": answer.headers["etag"]})
    assert (changed.status, changed.json["open_rounds"]) == (200, [])


def test_health_and_version_need_no_key_and_say_nothing_else(served):
    assert served.get("/healthz").json == {"alive": True}
    assert served.get("/readyz").json == {"ready": True}
    assert set(served.get("/version").json) == {"version", "report_format"}
    served.collector.draining = True
    assert served.get("/readyz").status == 503
    assert (
        served.send(("7", report_of("7")), headers={"authorization": f"Bearer {token_for(served, '7')}"}).status == 503
    )


def test_nothing_that_was_sent_is_in_logs_metrics_or_answers(tmp_path, capsys):
    """Ids, tokens, reports and paths with recognisable texts; a failure inside as well."""
    from deniable.service.logs import start_logging

    start_logging()
    served = Served(tmp_path / "collected")
    uid, token = "somebody-with-a-name", token_for(served, "somebody-with-a-name")
    report = report_of(uid)
    told = [
        served.send((uid, report), headers={"authorization": f"Bearer {token}"}),
        served.send((uid, report[:-1] + bytes([report[-1] ^ 1])), ("other-name", report)),
        served.post(b'{"uid": "somebody-with-a-name"', media_type="application/x-ndjson"),
        served.post(b"", path="/v1/collections/somebody-with-a-name/reports"),
        served.get("/somebody-with-a-name"),
        served.get("/v1/collections/shop", headers={"authorization": f"Bearer {token}"}),
    ]
    served.collector.door.judge = lambda sent: 1 / 0 if sent else {}[uid]
    failed = served.send((uid, report))
    assert (failed.status, failed.json["error"]) == (500, "internal")
    metrics = served.get("/metrics").body.decode()
    lines = capsys.readouterr().err
    served.close()
    assert len([json.loads(line) for line in lines.splitlines()]) >= 5
    assert "ZeroDivisionError" in lines
    everything = lines + metrics + "".join(answer.body.decode() for answer in (*told, failed))
    for given in (uid, "other-name", token, token.split(".")[3], report.hex(), str(report)[2:20]):
        assert given not in everything
    assert REPORTS.replace("shop", "{name}") in lines
    assert 'deniable_reports_total{outcome="accepted"} 1.0' in metrics


def test_what_other_code_reports_is_logged_without_what_it_was_given(capsys, monkeypatch):
    """asyncio shows callbacks with their arguments, futures with their exceptions; Python prints those of threads."""
    from deniable.service.logs import start_logging, thread_failed

    start_logging()
    monkeypatch.setattr(threading, "excepthook", thread_failed)
    given = "user seven"

    def fail(what):
        raise ValueError(what)

    async def left_alone():
        loop = asyncio.get_running_loop()
        loop.call_soon(fail, given)
        task = loop.create_task(asyncio.to_thread(fail, given))
        await asyncio.sleep(0)
        await asyncio.wait([task])

    asyncio.run(left_alone())
    gc.collect()
    thread = threading.Thread(target=fail, args=(given,))
    thread.start()
    thread.join()
    lines = capsys.readouterr().err
    assert given not in lines
    told = [json.loads(line) for line in lines.splitlines()]
    assert [line["exception"] for line in told] == ["ValueError"] * 3
    assert told[0]["message"].startswith("Exception in callback test_what_other_code_reports")
    assert (told[1]["message"], told[2]["message"]) == ("Task exception was never retrieved", "a thread has failed")


def test_a_body_is_what_a_device_would_write():
    assert binary_body([("é", b"r" * 32)]) == b"\0\2" + "é".encode() + b"r" * 32


def test_leave_to_upload_does_not_show_whose_it_is():
    leave = MayUpload("user seven", lambda uid: uid == "user seven")
    assert leave.names(leave.who)
    assert "seven" not in repr(leave)
