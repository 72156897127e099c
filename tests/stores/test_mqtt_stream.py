"""Streams through a real MQTT broker, which is killed in between: every value once, in and out."""

import json
import threading
import time

import numpy as np
import pytest
from paho.mqtt.client import Client
from paho.mqtt.enums import CallbackAPIVersion

import deniable as dn
from command_line import run
from deniable.errors import Failure, InvalidParameter
from deniable.stores import Columns, DurablePublisher, StoredStream
from deniable.stores.broker_messages import BrokerAddress, is_broker
from deniable.stores.mqtt_stream import MqttSource, send_mqtt
from deniable.stores.sources.batch import Unreadable
from mosquitto_broker import Mosquitto

PLAIN = Columns()
VALUES = (np.arange(60) * 7 % 50).tolist()


@pytest.fixture
def broker(tmp_path):
    started = Mosquitto(tmp_path / "broker")
    yield started
    started.stop()


@pytest.fixture
def store(tmp_path):
    with DurablePublisher(tmp_path / "meter", dn.streams.ToPS(1.0, 100, warmup=5, horizon=64)) as stream:
        yield stream


def address(broker, topic="meters/kitchen"):
    return BrokerAddress.parse(f"mqtt://127.0.0.1:{broker.port}/{topic}")


def source(broker, stream, columns=PLAIN, json_lines=False, topic="meters/kitchen", **more):
    settings = {"name": stream.settings.name, "mark": stream.mark, **more}
    return iter(MqttSource(address(broker, topic), columns, json_lines=json_lines, **settings))


def send(broker, contents, topic="meters/kitchen"):
    client = Client(CallbackAPIVersion.VERSION2)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    for content in contents:
        client.publish(topic, content, qos=1).wait_for_publish(60)
    client.disconnect()
    client.loop_stop()


def take(stream, batches, last):
    """Publish until this value came, and return everything that did."""
    taken = []
    while last not in taken:
        batch = next(batches)
        stream.publish(batch, lambda *_: None)
        taken += batch.values.tolist()
    return taken


def subscribed(broker, stream):
    """The session exists from now on, so the broker keeps what is sent."""
    batches = source(broker, stream)
    asking = threading.Thread(target=lambda: next(batches))
    asking.start()
    ends = time.monotonic() + 60
    while asking.is_alive() and time.monotonic() < ends:
        send(broker, [str(VALUES[0])])
        asking.join(0.2)
    assert not asking.is_alive()
    batches.close()  # not acknowledged: it comes again


def test_what_was_committed_and_not_acknowledged_is_skipped_when_it_comes_again(broker, store):
    subscribed(broker, store)
    send(broker, [str(value) for value in [*VALUES[1:30], 77]])
    batches = source(broker, store)
    first = take(store, batches, 77)
    batches.close()  # as after a crash: the last batch is in the log, and not acknowledged
    before = store.total
    assert before == len(first)
    assert 0 < len(store.mark["mqtt"]) <= 100
    forgetful = source(broker, store, mark=None)
    assert set(next(forgetful).values.tolist()) & set(first)  # the test has teeth: they do come again
    forgetful.close()
    send(broker, [str(value) for value in [*VALUES[30:], 99]])
    batches = source(broker, store)
    rest = take(store, batches, 99)
    batches.close()
    assert (first + rest)[-61:] == [*VALUES[1:30], 77, *VALUES[30:], 99]
    assert set((first + rest)[:-61]) == {VALUES[0]}
    assert store.total == before + len(rest)


def test_the_broker_is_killed_in_between_and_positions_make_every_value_count_once(broker, store):
    columns = Columns("watts", position="number")
    messages = [json.dumps({"watts": value, "number": number}) for number, value in enumerate(VALUES)]
    batches = source(broker, store, columns, json_lines=True)
    reading, ends = threading.Event(), threading.Event()

    def read():
        for batch in batches:
            store.publish(batch, lambda *_: None)
            reading.set()
            if store.position == len(VALUES) or ends.is_set():
                return

    reader = threading.Thread(target=read)
    reader.start()
    while not reading.is_set():
        send(broker, messages[:1])
        reading.wait(0.2)
    send(broker, messages[1:30])
    broker.kill()
    broker.start()
    deadline = time.monotonic() + 120
    while reader.is_alive() and time.monotonic() < deadline:
        send(broker, messages)  # whoever sends does not know what the broker had
        reader.join(2)
    ends.set()
    assert not reader.is_alive()
    batches.close()
    assert (store.position, store.total) == (60, 60)


def test_every_published_value_arrives_though_the_broker_is_killed(broker, store):
    """At whoever has a session that the broker keeps, as readers of quality of service 1 do."""
    received, subscribed_now = [], threading.Event()
    listener = Client(CallbackAPIVersion.VERSION2, "listener", clean_session=False)
    listener.on_connect = lambda client, *_: client.subscribe("private/meter", qos=1)
    listener.on_subscribe = lambda *_: subscribed_now.set()
    listener.on_message = lambda _client, _data, message: received.append(json.loads(message.payload))
    listener.reconnect_delay_set(1, 1)
    listener.connect("127.0.0.1", broker.port)
    listener.loop_start()

    def arrived(count):
        deadline = time.monotonic() + 120
        while len({entry["position"] for entry in received}) < count and time.monotonic() < deadline:
            time.sleep(0.05)
        return sorted({entry["position"] for entry in received})

    try:
        assert subscribed_now.wait(60)
        folder, target = store.folder.path, address(broker, "private/meter")
        store.push_many(VALUES[:30])
        sending = send_mqtt(folder, target)
        assert [next(sending), next(sending)] == [0, 25]
        assert arrived(25) == list(range(25))  # what the broker has acknowledged and not written down may be lost
        broker.kill()
        store.push_many(VALUES[30:])
        broker.start()
        while next(sending) < 55:
            pass
        sending.close()
        assert next(send_mqtt(folder, target)) == 55  # a new run goes on behind
        assert arrived(55) == list(range(55))
    finally:
        listener.disconnect()
        listener.loop_stop()
    published = StoredStream(folder).values(0).values
    assert all(published[entry["position"]] == entry["value"] for entry in received)


def test_unreadable_messages_and_topics_as_keys(broker, tmp_path, store):
    keyed = dn.streams.KeyedPublisher(1.0, 100, theta=50, horizon=64, public_keys=True)
    with DurablePublisher(tmp_path / "keyed", keyed) as stream:
        batches = source(broker, stream, Columns(key="topic"), topic="meters/+")
        arrived = threading.Event()

        def first():
            stream.publish(next(batches), lambda *_: None)
            arrived.set()

        asking = threading.Thread(target=first)
        asking.start()
        while not arrived.is_set():
            send(broker, ["5"], "meters/kitchen")
            arrived.wait(0.2)
        send(broker, ["6", "98765 no number"], "meters/hall")
        with pytest.raises(Unreadable, match=r"message \d+ of this run cannot be read") as refused:
            take(stream, batches, None)
        assert "98765" not in str(refused.value)
        assert set(StoredStream(tmp_path / "keyed").by_key().keys) == {"meters/kitchen", "meters/hall"}


def test_addresses_and_a_broker_that_is_away(tmp_path, store):
    assert is_broker("mqtt://x/y")
    assert not is_broker("mqtt.csv")
    assert BrokerAddress.parse("mqtts://me@broker/a/#").topic == "a/#"
    for wrong in (
        "mqtt://",
        "mqtt://host",
        "mqtt://host/",
        "mqtt://:7/x",
        "mqtt://h:x/y",
        "http://h/x",
        "mqtt://h/x?y",
    ):
        with pytest.raises(InvalidParameter):
            BrokerAddress.parse(wrong)
    with pytest.raises(InvalidParameter, match="has a password"):
        BrokerAddress.parse("mqtt://me:secret@broker/topic")
    with pytest.raises(Failure, match="cannot be reached"):
        next(
            iter(
                MqttSource(BrokerAddress.parse("mqtt://127.0.0.1:1/x"), Columns(), json_lines=False, name="x", mark={})
            )
        )
    with pytest.raises(InvalidParameter, match="only readers"):
        next(send_mqtt(store.folder.path, BrokerAddress.parse("mqtt://127.0.0.1:1/x/+")))
    told = run("stream", "publish", "--epsilon", "1", "--bound", "9", "mqtt://127.0.0.1:1/x")
    assert (told.returncode, "needs a store" in told.stderr) == (2, True)
