"""Streams through Kafka's protocol, against the mock cluster that comes with the client: every value once, in and out.

The mock has no transactions of its own kind: it takes them and shows everything at once. What a real cluster hides of a
transaction that was not committed, and that it shuts out an earlier run, is not tested here.
"""

import json

import numpy as np
import pytest
from confluent_kafka import Consumer, Producer

import deniable as dn
from deniable.errors import Failure, InvalidData, InvalidParameter
from deniable.stores import Columns, DurablePublisher, StoredStream
from deniable.stores.broker_messages import BrokerAddress
from deniable.stores.kafka_stream import KafkaSource, send_kafka
from deniable.stores.sources.batch import Unreadable

PLAIN = Columns()
VALUES = (np.arange(60) * 7 % 50).tolist()


@pytest.fixture(scope="module")
def cluster():
    """The address of a mock cluster, which lives as long as the client that has it."""
    client = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "", "log_level": 0})
    broker = next(iter(client.list_topics(timeout=60).brokers.values()))
    yield f"{broker.host}:{broker.port}"
    client.flush(1)


@pytest.fixture
def store(tmp_path):
    with DurablePublisher(tmp_path / "meter", dn.streams.ToPS(1.0, 100, warmup=5, horizon=64)) as stream:
        yield stream


def address(cluster, topic):
    return BrokerAddress.parse(f"kafka://{cluster}/{topic}")


def source(cluster, stream, topic, columns=PLAIN, **more):
    settings = {"json_lines": False, "name": stream.settings.name, "mark": stream.mark, **more}
    return iter(KafkaSource(address(cluster, topic), columns, **settings))


def send(cluster, topic, contents, partition=0):
    client = Producer({"bootstrap.servers": cluster, "log_level": 0})
    for content in contents:
        client.produce(topic, str(content).encode(), partition=partition)
    assert client.flush(60) == 0


def take(stream, batches, total):
    while stream.total < total:
        stream.publish(next(batches), lambda *_: None)


def test_a_run_begins_at_the_offsets_in_the_log(cluster, store, tmp_path):
    send(cluster, "meters", VALUES[:20])
    batches = source(cluster, store, "meters")
    take(store, batches, 20)
    batches.close()
    assert store.mark["kafka"]["next"] == {"0": 20}
    send(cluster, "meters", VALUES[20:40])
    send(cluster, "meters", VALUES[40:], partition=1)
    again = source(cluster, store, "meters")
    batch = next(again)
    assert batch.values.size
    again.close()  # nothing of it was committed, so it comes again
    store.close()
    with DurablePublisher(tmp_path / "meter") as stream:
        batches = source(cluster, stream, "meters")
        take(stream, batches, 60)
        batches.close()
        assert (stream.total, stream.mark["kafka"]["next"]) == (60, {"0": 40, "1": 20})
        with pytest.raises(InvalidParameter, match="not the one that the store has taken"):
            source(cluster, stream, "others")


def test_a_message_that_cannot_be_read_and_an_offset_that_is_gone(cluster, store):
    send(cluster, "odd", [1, 2, "98765 no number", 3])
    batches = source(cluster, store, "odd")
    with pytest.raises(Unreadable, match="message 3 of this run") as refused:
        take(store, batches, 4)
    assert "98765" not in str(refused.value)
    assert (store.total, store.mark["kafka"]["next"]) == (2, {"0": 2})
    gone = {"kafka": {"topic": "odd", "next": {"0": 1000}}}
    with pytest.raises(InvalidData, match="does not hold the message"):
        take(store, source(cluster, store, "odd", mark=gone), 3)


def received(cluster, topic, count):
    client = Consumer({"bootstrap.servers": cluster, "group.id": "test", "auto.offset.reset": "earliest"})
    client.subscribe([topic])
    messages = []
    while len(messages) < count:
        messages += client.consume(100, timeout=1)
    client.close()
    return [json.loads(message.value()) for message in messages if message.value().startswith(b"{")]


def test_published_values_leave_in_transactions_and_a_new_run_goes_on_behind_them(cluster, store):
    folder, target = store.folder.path, address(cluster, "private")
    store.push_many(VALUES[:30])
    with pytest.raises(Failure, match="no topic of that name"):
        next(send_kafka(folder, target))
    send(cluster, "private", ["a message of somebody else"])
    sending = send_kafka(folder, target)
    assert [next(sending), next(sending), next(sending)] == [0, 25, 25]
    store.push_many(VALUES[30:])
    again = send_kafka(folder, target)
    assert [next(again), next(again)] == [25, 55]
    published = StoredStream(folder).values(0).values.tolist()
    messages = sorted(received(cluster, "private", 56), key=lambda entry: entry["position"])
    assert [entry["position"] for entry in messages] == list(range(55))
    assert [entry["value"] for entry in messages] == published[:55]
