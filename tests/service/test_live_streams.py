"""Streams in stores at the server: values in by POST, out as events and windows, and nothing twice after kill -9."""

import asyncio
import http.client
import json
import signal
from contextlib import closing

import numpy as np
import pytest
from test_serving import running

import deniable as dn
from asgi import SHOP, Served
from command_line import run
from deniable.service.collector import init_folder
from deniable.service.keys import KeyFile
from deniable.service.live_events_resource import _events
from deniable.stores import DurablePublisher, StoredStream

VALUES = (np.arange(300) * 37 % 90).tolist()


@pytest.fixture
def folder(tmp_path):
    init_folder(SHOP, tmp_path / "collected")
    tops = dn.streams.ToPS(1.0, 100, warmup=20, horizon=256)
    DurablePublisher(tmp_path / "collected" / "live" / "meter", tops).close()
    return tmp_path / "collected"


@pytest.fixture
def keys(folder):
    made = {}

    def add(held):
        for scope in ("ask", "operate", "publish"):
            held, made[scope] = held.with_key(scope, scope)
        return held

    KeyFile(folder).change(add)
    return {scope: {"authorization": f"Bearer {key}"} for scope, key in made.items()}


def send(served, key, values, name="meter", **more):
    body = json.dumps({"values": values, **more}).encode()
    return served.post(body, path=f"/v1/streams/{name}", media_type="application/json", headers=key)


def asked(served, path, key, query=""):
    return served.get(path, headers=key, query=query)


def test_a_repeated_request_takes_nothing_twice_and_a_gap_is_refused(folder, keys):
    served = Served(folder)
    key = keys["publish"]
    assert send(served, key, VALUES[:50], position=0).json == {
        "taken": 50, "repeated": 0, "position": 50, "published": 30
    }  # fmt: skip
    assert send(served, key, VALUES[:50], position=0).json["repeated"] == 50
    assert send(served, key, VALUES[40:80], position=40).json["taken"] == 30
    gap = send(served, key, VALUES[100:], position=100)
    assert (gap.status, gap.json["error"], gap.json["position"]) == (409, "gap", 80)
    assert send(served, key, []).json == {"taken": 0, "repeated": 0, "position": 80, "published": 60}
    assert send(served, key, VALUES[80:100]).json["position"] == 100  # without a position: behind everything
    served.close()
    with DurablePublisher(folder / "live" / "meter") as stream:
        assert (stream.position, stream.total) == (100, 100)


def test_requests_that_wait_together_are_taken_in_their_order(folder, keys):
    served = Served(folder)
    stream = served.collector.live.get("meter")
    parts = [(number, VALUES[number : number + 10]) for number in range(0, 100, 10)]

    async def all_at_once():
        loop = asyncio.get_running_loop()
        batches = [dn.stores.Batch(np.array(values), positions=np.arange(10) + first) for first, values in parts]
        waiting = [stream.writer.submit(batch, 10, loop.create_future()) for batch in [*batches, batches[3]]]
        return await asyncio.gather(*waiting)

    receipts = asyncio.run(all_at_once())
    assert [receipt.position for receipt in receipts] == [*range(10, 110, 10), 100]
    assert [receipt.taken for receipt in receipts] == [10] * 10 + [0]
    served.close()


REFUSED = [
    (b"", 400, "body"),
    (b"[1]", 400, "body"),
    (b'{"values": 7}', 400, "body"),
    (b'{"values": [1], "value": 2}', 400, "body"),
    (b'{"values": [NaN]}', 400, "body"),
    (b'{"values": [1], "position": -1}', 400, "position"),
    (b'{"values": [1], "position": 1.5}', 400, "position"),
    (b'{"values": [1], "keys": ["north"]}', 400, "keys"),
    (b'{"values": [1], "timestamps": []}', 400, "timestamps"),
    (b'{"values": [1,2,3,4,5,6]}', 413, "too_many_values"),
    (b'{"values": [98765432101, -98765432101]}', 422, "value"),
    (b'{"values": [1, null]}', 422, "value"),
    (b'{"values": [1, "98765432101"]}', 422, "value"),
    (b'{"values": [1, 2], "timestamps": [98765432101, 7]}', 422, "value"),
]


def test_a_request_that_brings_too_many_keys_is_refused_before_anything_is_stored(folder, keys):
    keyed = dn.streams.KeyedPublisher(1.0, 100, theta=50, horizon=64, public_keys=True)
    place = folder / "live" / "regions"
    DurablePublisher(place, keyed).close()
    served, key = Served(folder, keys_per_stream=3), keys["publish"]
    three = {"name": "regions", "keys": ["north", "south", "north", 7]}
    assert send(served, key, [1, 2, 3, 4], position=0, **three).json["taken"] == 4
    logged = [path.read_bytes() for path in sorted(place.rglob("*.log"))]
    refused = send(served, key, [5, 6], position=4, name="regions", keys=["north", "west"])
    assert (refused.status, refused.json["error"], refused.json["position"]) == (422, "keys", 4)
    assert "more than 3 keys" in refused.json["message"]
    assert "west" not in refused.json["message"]
    assert [path.read_bytes() for path in sorted(place.rglob("*.log"))] == logged
    assert send(served, key, [1, 2, 3, 4], position=0, **three).json["repeated"] == 4
    assert send(served, key, [5, 6], position=4, name="regions", keys=["7", "south"]).json["taken"] == 2

    async def together():
        """The first of two requests that wait is taken, though both together would bring too many."""
        loop, stream = asyncio.get_running_loop(), served.collector.live.get("regions")
        batches = [dn.stores.Batch(np.array([1]), keys=[name]) for name in ("north", "east")]
        return await asyncio.gather(*[stream.writer.submit(batch, 1, loop.create_future()) for batch in batches])

    assert [(receipt.taken, receipt.refusal and receipt.refusal.value) for receipt in asyncio.run(together())] == [
        (1, None), (0, "keys")
    ]  # fmt: skip
    served.close()
    assert set(StoredStream(place).by_key().keys) == {"north", "south", "7"}


def test_what_is_refused_is_refused_as_a_whole_and_shows_no_value(folder, keys, caplog):
    served, shown = Served(folder, values_per_request=5), ""
    with caplog.at_level("INFO"):
        for body, status, word in REFUSED:
            answer = served.post(body, path="/v1/streams/meter", media_type="application/json", headers=keys["publish"])
            assert (answer.status, answer.json["error"]) == (status, word)
            shown += answer.body.decode()
        assert send(served, keys["publish"], [1, 2], timestamps=[1, 2]).json["position"] == 2
        assert send(served, keys["publish"], [98765432101]).status == 422  # all values have timestamps, or none
        assert send(served, keys["publish"], [3], timestamps=["2026-01-01"]).status == 422
    shown += "".join(str(record.__dict__) for record in caplog.records)
    assert "98765432101" not in shown
    assert send(served, keys["publish"], []).json["position"] == 2
    served.close()


def test_who_may_publish_and_who_may_read(folder, keys):
    served = Served(folder)
    for key, status in (({}, 401), (keys["ask"], 403), (keys["operate"], 403), (keys["publish"], 200)):
        assert send(served, key, VALUES[:40], position=0).status == status
    for path in ("/v1/streams", "/v1/streams/meter/windows", "/v1/streams/meter/events"):
        assert [asked(served, path, key).status for key in ({}, keys["publish"])] == [401, 403]
    for name in ("nobody", "..", "%2e%2e", "a" * 300):
        assert send(served, keys["publish"], [1], name=name).status == 404
    assert served.get("/v1/key", headers=keys["publish"]).json["scope"] == "publish"
    served.close()


def test_queue_full_draining_and_a_store_that_another_program_has(folder, keys):
    served = Served(folder, queued_values=10)
    assert send(served, keys["publish"], VALUES[:11]).status == 429
    with DurablePublisher(folder / "live" / "meter"):
        assert send(served, keys["publish"], VALUES[:10]).json["error"] == "store"
    assert send(served, keys["publish"], VALUES[:10], position=0).json["taken"] == 10  # opened again
    served.collector.draining = True
    assert send(served, keys["publish"], VALUES[:10]).status == 503
    served.close()
    with DurablePublisher(folder / "live" / "meter") as stream:
        assert stream.total == 10


def test_windows_of_positions_and_times(folder, keys):
    served = Served(folder)
    stamps = [f"2026-01-01T{number // 60:02}:{number % 60:02}" for number in range(300)]
    assert send(served, keys["publish"], VALUES, position=0, timestamps=stamps).status == 200
    path, ask = "/v1/streams/meter/windows", keys["ask"]
    told = asked(served, path, ask, "window=0:100&window=2026-01-01T01:00..2026-01-01T02:00&window=nonsense").json
    first, second, third = told["windows"]
    stored = StoredStream(folder / "live" / "meter").released()
    assert first["sum"]["value"] == stored.sum(0, 100).value
    assert first["sum"]["low"] < first["sum"]["value"] < first["sum"]["high"]
    assert (second["start"], second["stop"]) == (40, 100)
    assert "not a window" in third["error"]
    hours = asked(served, path, ask, "every=1h").json["windows"]
    assert [hour["from"][-8:] for hour in hours] == ["00:00:00", "01:00:00", "02:00:00", "03:00:00"]
    assert [hour["stop"] for hour in asked(served, path, ask, "every=100&from=80").json["windows"]] == [180, 280]
    for query in ("", "every=0", "every=1h&window=0:1", "every=5&from=x", "window=0:1&odd=1", "window=0:9&key=north"):
        assert asked(served, path, ask, query).status == 400
    listed = asked(served, "/v1/streams", ask).json["streams"]
    assert [(entry["name"], entry["live"], entry["published"]) for entry in listed] == [("meter", True, 280)]
    assert len(asked(served, "/v1/streams/meter/series", ask).json["bins"]) == 12
    served.close()


def test_keys_have_windows_of_their_own_and_a_sum(folder, keys):
    sales = folder / "live" / "sales"
    made = run("stream", "create", sales, "--epsilon", "1", "--bound", "100", "--theta", "50", "--public-keys")
    assert made.returncode == 0, made.stderr
    served = Served(folder)
    regions = ["north", "south", 7] * 100
    assert send(served, keys["publish"], VALUES, name="sales", position=0, keys=regions).json["published"] == 300
    assert send(served, keys["publish"], VALUES, name="sales").json["error"] == "keys"
    assert send(served, keys["publish"], [1], name="sales", keys=[1.5]).json["error"] == "keys"
    path, by_key = "/v1/streams/sales/windows", StoredStream(sales).by_key()
    for key in ("north", "7"):
        window = asked(served, path, keys["ask"], f"window=0:90&key={key}").json["windows"][0]
        assert window["sum"]["value"] == by_key[key].sum(0, 90).value
    whole = asked(served, path, keys["ask"], "window=0:90&all_keys=true").json["windows"][0]
    assert (whole["keys"], whole["sum"]["value"]) == (3, pytest.approx(by_key.sum(0, 90).value))
    assert asked(served, path, keys["ask"], "window=0:90").json["error"] == "key"
    assert asked(served, "/v1/streams/sales/series", keys["ask"], "key=south").status == 200
    served.close()


def events(served, position, wanted):
    """Events from a position on, until there are so many values."""

    found, told = [], []

    async def collect():
        stream = served.collector.live.get("meter")
        async with asyncio.timeout(120):
            async for text in _events(served.collector, stream, position):
                told.append(text.decode())
                if text.startswith(b"id"):
                    found.extend(json.loads(told[-1].split("data: ")[1])["values"])
                if len(found) >= wanted:
                    return

    asyncio.run(collect())
    return found, "".join(told)


def test_events_resume_without_a_gap_and_survive_the_sealing_of_segments(folder, keys):
    served = Served(folder)
    send(served, keys["publish"], VALUES[:200], position=0)
    found, told = events(served, 0, 180)
    assert told.count("id: 180\n") == 1
    send(served, keys["publish"], VALUES[200:], position=200)
    found += events(served, 180, 100)[0]
    assert found == StoredStream(folder / "live" / "meter").values(0).values.tolist()
    for wrong in ("x", "-1", "281", "9" * 30):
        assert served.get("/v1/streams/meter/events", headers={**keys["ask"], "last-event-id": wrong}).status == 400
    served.collector.live.get("meter").readers = served.collector.settings.event_readers
    assert served.get("/v1/streams/meter/events", headers=keys["ask"]).status == 429
    served.close()


def followed(port, key, position, wanted):
    """Values that a real server sends as events, from a position on."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    with closing(connection):
        connection.request("GET", "/v1/streams/meter/events", headers={**key, "Last-Event-ID": str(position)})
        answer, found = connection.getresponse(), []
        assert (answer.status, answer.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        while len(found) < wanted:
            line = answer.readline()
            if line.startswith(b"data: "):
                found += json.loads(line[6:])["values"]
    return found


def posted(port, key, values, position):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    with closing(connection):
        body = json.dumps({"position": position, "values": values})
        connection.request("POST", "/v1/streams/meter", body, {**key, "Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())


def test_kill_9_loses_nothing_that_was_answered_and_publishes_nothing_differently(folder, keys):
    with running(folder) as (process, port):
        for first in range(0, 150, 50):
            assert posted(port, keys["publish"], VALUES[first : first + 50], first)["position"] == first + 50
        before = followed(port, keys["ask"], 0, 130)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    with running(folder) as (process, port):
        again = posted(port, keys["publish"], VALUES[100:], 100)
        assert (again["taken"], again["repeated"]) == (150, 50)
        after = followed(port, keys["ask"], len(before), 280 - len(before))
        follower = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        follower.request("GET", "/v1/streams/meter/events", headers=keys["ask"])
        answer = follower.getresponse()
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0  # whoever follows is let go
        answer.read()
        follower.close()
        log = process.stderr.read()
    assert '"/v1/streams/{stream}/events"' in log
    assert "meter" not in log
    with DurablePublisher(folder / "live" / "meter") as stream:
        assert stream.total == 300
    assert before + after == StoredStream(folder / "live" / "meter").values(0).values.tolist()
