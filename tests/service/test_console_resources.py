"""What the console asks, without a browser: who may, what comes back, and what is refused."""

import json
from itertools import chain
from types import SimpleNamespace

import numpy as np
import pytest

import deniable as dn
from asgi import Served
from asked_shop import SHOP, fill
from deniable.service import plan_resource
from deniable.service.collector import init_folder
from deniable.stores import DurablePublisher

COUNT = "SELECT COUNT(*) AS n FROM users WHERE age < 50"


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    folder = tmp_path_factory.mktemp("console") / "collected"
    init_folder(SHOP.with_settings(rounds=dn.Rounds(3)), folder, streams={"meters": {"epsilon": 1.0, "bound": 10}})
    served, keys = Served(folder), {}

    def add(before):
        for scope in ("ask", "operate"):
            before, keys[scope] = before.with_key(scope, scope)
        return before

    served.collector.keys.change(add)

    def asked(path, key="ask", body=None, **more):
        headers = {"authorization": f"Bearer {keys.get(key, key)}"} if key else {}
        if body is None:
            return served.get(path, headers=headers, **more)
        return served.post(json.dumps(body).encode(), path=path, media_type="application/json", headers=headers)

    yield SimpleNamespace(asked=asked, served=served)
    served.close()


def test_each_page_needs_a_key_of_its_scope(shop):
    for path, scope, body in (
        ("/v1/tables", "ask", None), ("/v1/promise", "ask", None), ("/v1/streams", "ask", None),
        ("/v1/status", "operate", None), ("/v1/streams/meters/series", "ask", None),
        ("/v1/streams/meters/window", "ask", {"start": 0, "stop": 1}),
        ("/v1/plan", "ask", {"questions": []}), ("/v1/rounds", "operate", {"round": 1, "open": True}),
    ):  # fmt: skip
        other = "operate" if scope == "ask" else "ask"
        assert [shop.asked(path, key, body).status for key in (None, "dnk_wrong", other)] == [401, 403, 403], path
    assert [shop.asked("/v1/key", key).status for key in (None, "dnk_wrong")] == [401, 403]
    assert shop.asked("/v1/key", "operate").json == {"scope": "operate", "collection": "shop"}


def test_the_page_and_its_files_say_what_may_be_loaded(shop):
    page = shop.served.get("/")
    assert page.headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; ")
    assert page.headers["cache-control"] == "no-store"
    assert page.body != shop.served.get("/").body  # another nonce
    script = shop.served.get("/console/console.js", headers={"accept-encoding": "gzip, br"})
    assert script.headers["content-encoding"] == "gzip"
    assert len(script.body) < len(shop.served.get("/console/console.js").body) / 2
    assert shop.served.get("/console/console.js", headers={"if-none-match": script.headers["etag"]}).status == 304
    assert b"codemirror" in shop.served.get("/console/licences.txt").body.lower()
    assert shop.served.get("/favicon.ico").status == 204
    for path in ("/console/index.html", "/console/..%2fkeys.json", "/console/nothing"):
        assert shop.served.get(path).status == 404


def test_rounds_are_opened_and_closed_and_status_shows_it(shop):
    assert shop.asked("/v1/rounds", "operate", {"round": 2, "open": True}).json == {"round": 2, "open": True}
    status = shop.asked("/v1/status", "operate").json
    assert status["rounds"]["states"][:2] == [{"round": 1, "open": None}, {"round": 2, "open": True}]
    assert status["ready"]
    assert status["reports"] == []
    shop.asked("/v1/rounds", "operate", {"round": 2, "open": False})
    assert shop.served.collector.store.summary().rounds == {2: False}
    for body in ({"round": 9, "open": True}, {"round": 1}, {"round": "1", "open": True}, {"open": True}, {"x": 1}, [1]):
        assert shop.asked("/v1/rounds", "operate", body).status == 400


def test_a_plan_is_the_forecast_of_the_library(shop):
    body = {"questions": [COUNT, "SELECT MAX(age) FROM users"], "users": 10_000, "epsilon": 2.0, "rounds": 1}
    planned = shop.asked("/v1/plan", body=body).json
    first, second = planned["predictions"]
    expected = SHOP.with_settings(epsilon=2.0).forecast(COUNT, 10_000).scalar()
    assert first["answers"][0]["error"] == pytest.approx(expected.error)
    assert first["answers"][0]["share"] == pytest.approx(expected.error / 10_000)
    assert "MAX is one person's value" in second["refused"]
    assert planned["lifetime"] <= 2.0
    own = shop.asked("/v1/plan", body={"questions": [], "users": 10_000}).json
    assert (own["epsilon"], own["rounds"]) == (8.0, 3)  # what the specification says
    assert (planned["epsilon"], planned["rounds"]) == (2.0, 1)
    rounds = shop.asked("/v1/plan", body={**body, "rounds": 4, "questions": [COUNT]}).json
    assert "rounds" in rounds["specification"]
    assert rounds["predictions"][0]["answers"][0]["error"] > expected.error
    text = 'epsilon = 1.0\n[tables.people]\nattributes.age = { kind = "ordinal", low = 0, high = 99 }\n'
    asked = {"specification": text, "questions": ["SELECT COUNT(*) AS n FROM people WHERE age < 18"], "users": 1000}
    fitted = shop.asked("/v1/plan", body={**asked, "fit": True}).json
    assert fitted["design"] == "grid"


def test_a_prediction_is_computed_once_and_few_are_kept(shop, monkeypatch):
    computed = []
    monkeypatch.setattr(plan_resource, "_KEPT", {})
    monkeypatch.setattr(plan_resource, "MOST_PREDICTIONS", 2)
    monkeypatch.setattr(plan_resource, "_prediction", lambda _, text, users: computed.append((text, users)) or {})
    for users in (1000, 1000, 2000, 3000, 3000, 1000):
        assert shop.asked("/v1/plan", body={"questions": [COUNT], "users": users, "epsilon": 3.0}).status == 200
    assert [users for _, users in computed] == [1000, 2000, 3000, 1000]
    assert len(plan_resource._KEPT) == 2


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"questions": "SELECT"}, "list of texts"),
        ({"questions": [COUNT] * 51}, "at most 50"),
        ({"questions": [], "specification": "a ="}, "not well-formed"),
        ({"questions": [], "specification": 7}, "not a text"),
        ({"questions": [], "specification": "x = 1"}, ""),
        ({"questions": [], "epsilon": -1}, "epsilon"),
        ({"questions": [], "rounds": 0}, ""),
        ({"questions": [], "other": 1}, "JSON object"),
    ],
)
def test_plans_that_are_refused(shop, body, words):
    answer = shop.asked("/v1/plan", body=body)
    assert answer.status == 400
    assert words in answer.json["message"]


def test_the_promise_adds_up_everything(shop):
    promise = shop.asked("/v1/promise").json
    assert [charge["what"] for charge in promise["charges"]] == ["collection shop", "stream meters"]
    assert promise["total"] == pytest.approx(sum(charge["lifetime"] for charge in promise["charges"]))
    assert "Signature" in promise["page"]


def test_every_stream_has_its_promise_in_words(shop):
    folder = shop.served.collector.folder.path / "live"
    made = {
        "tills": dn.streams.KeyedPublisher(0.5, 100, theta=80, horizon=1024, block=16, public_keys=True),
        "visits": dn.streams.PersonStream(1.0, 10, most=4, epoch=500, window=7, warmup=50, horizon=1024),
        "watts": dn.streams.ToPS(0.25, 100, warmup=50, horizon=256),
    }
    for name, publisher in made.items():
        DurablePublisher(folder / name, publisher, on_bad="skip" if name == "watts" else "zero").close()
    promised = {stream["name"]: stream["promise"] for stream in shop.asked("/v1/promise").json["streams"]}
    assert set(promised) == {"meters", *made}
    words = {name: " ".join(chain.from_iterable(promise.values())) for name, promise in promised.items()}
    assert all(list(promise)[:3] == ["Who is protected", "Against whom", "How much"] for promise in promised.values())
    assert "this server included" in words["meters"]
    assert "Not against whoever sends the values, this server" in words["watts"]
    assert "Each value spends ε = 0.25" in words["watts"]
    assert "A person with 100 values in the stream spends up to ε = 25" in words["watts"]
    assert "one value less" in words["watts"]
    assert "one value less" not in words["tills"]
    assert "Which keys there are" in words["tills"]
    assert "ε = 1 over any 7 consecutive epochs" in words["visits"]
    assert "two different behaviours are up to ε = 2 apart" in words["visits"]
    assert "an epoch of 500 events. Up to 4" in words["visits"]


def test_a_key_whose_stream_presses_against_theta_or_moves_is_noticed(shop):
    keyed = dn.streams.KeyedPublisher(4.0, 100, theta=40, horizon=4096, block=16, public_keys=True)
    calm, rising, high = np.full(2000, 10), np.where(np.arange(2000) < 1800, 5, 22), np.full(2000, 90)
    with DurablePublisher(shop.served.collector.folder.path / "live" / "rows", keyed) as stream:
        for name, values in (("calm", calm), ("rising", rising), ("high", high)):
            stream.push_many(values, keys=[name] * values.size)
    (rows,) = [each for each in shop.asked("/v1/streams").json["streams"] if each["name"] == "rows"]
    assert "rising: drift" in rows["notice"]
    assert "high: saturation: the newest mean is" in rows["notice"]
    assert "calm" not in rows["notice"]
    keys = ("calm", "rising", "high")
    series = {key: shop.asked("/v1/streams/rows/series", query=f"key={key}").json for key in keys}
    assert series["calm"]["notice"] is None
    assert "drift" in series["rising"]["notice"]
    assert "close to θ = 40" in series["high"]["notice"]


def test_streams_before_anything_is_published(shop):
    stream = shop.asked("/v1/streams").json["streams"][0]
    assert (stream["name"], stream["theta"], stream["published"]) == ("meters", None, 0)
    assert shop.asked("/v1/streams/meters/series").status == 409
    assert shop.asked("/v1/streams/nothing/series").status == 404


def test_first_rows_and_positions_of_refusals(tmp_path):
    served = Served(tmp_path / "collected", SHOP)
    fill(served.collector.store, users=30)
    made = []

    def add(keys):
        changed, text = keys.with_key("ask", "ask")
        made.append(text)
        return changed

    served.collector.keys.change(add)

    def ask(**fields):
        headers = {"authorization": f"Bearer {made[0]}"}
        return served.post(json.dumps(fields).encode(), path="/v1/sql", media_type="application/json", headers=headers)

    answer = ask(sql="SELECT day, COUNT(*) AS n FROM orders GROUP BY day", first=3).json
    assert (len(answer["rows"]), answer["total"]) == (3, 90)
    assert answer["rows"][0]["day"] == "2026-01-01"
    assert ask(sql=COUNT, first=-1).status == ask(sql=COUNT, first="3").status == 400
    assert ask(sql="SELECT MAX(age) FROM users").json["start"] == 7
    served.close()
