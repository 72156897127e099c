"""Streams through Kafka: values in from a topic, published values out to one in transactions. Extra `kafka`.

In. The offsets behind a batch stand in the store's log together with its values, and nowhere else: a run begins at
them, so a message is taken once, whatever ends the run. Messages of transactions that were not committed are not seen.
Offsets may have gaps, which Kafka makes itself; one that the topic does not hold any more is refused.

Out. One transaction holds consecutive values, each message with its position. A run begins behind the highest position
that the topic holds committed, and the transactional id shuts out an earlier run that is still alive.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from deniable.errors import Failure, InvalidData, InvalidParameter, MissingExtra
from deniable.stores.broker_messages import BrokerAddress, MessageReader, written_messages
from deniable.stores.live.stored_stream import StoredStream
from deniable.stores.sources.batch import Batch, Columns

CONFIGURATION = "DENIABLE_KAFKA_CONFIG"
"""Names a JSON file with more settings of the client, such as sasl.password."""
_AT_ONCE = 1000
_PATIENCE_S = 30.0


def _library() -> Any:
    try:
        import confluent_kafka
    except ModuleNotFoundError:
        raise MissingExtra("confluent-kafka", "kafka") from None
    return confluent_kafka


def _settings(address: BrokerAddress, **own: Any) -> dict[str, Any]:
    """Settings of a client: those of the user's file, and over them what the guarantees need."""
    more: dict[str, Any] = {}
    if path := os.environ.get(CONFIGURATION):
        try:
            more = dict(json.loads(Path(path).read_bytes()))
        except (OSError, ValueError, TypeError):
            raise InvalidParameter(CONFIGURATION, "does not name a JSON file with settings", "Correct it.") from None
    return {"log_level": 2, **more, "bootstrap.servers": address.where, **own}


def _failed(address: BrokerAddress, problem: Any) -> Failure:
    """What the client says is a name such as _TRANSPORT, and holds nothing that anybody sent."""
    name = problem.args[0].name() if problem.args and hasattr(problem.args[0], "name") else "unknown"
    return Failure(
        f"Kafka at {address.where} does not answer, or refuses ({name}). What was committed stays so. "
        f"Check the address, the topic and {CONFIGURATION}, and start again: the stream goes on."
    )


class KafkaSource:
    """Messages of a topic as batches, from where `mark` says that the store stands. `name` is that of the stream."""

    def __init__(self, address: BrokerAddress, columns: Columns, *, json_lines: bool, name: str, mark: Any) -> None:
        library, self._address = _library(), address
        self._problems = library.KafkaException
        self._reader = MessageReader(columns, json_lines=json_lines)
        before = (mark or {}).get("kafka", {"topic": address.topic, "next": {}})
        if before["topic"] != address.topic:
            raise InvalidParameter("the topic", "is not the one that the store has taken so far", "Use a new store.")
        self._next: dict[str, int] = dict(before["next"])
        own = {"enable.auto.commit": False, "isolation.level": "read_committed", "auto.offset.reset": "error"}
        self._consumer = library.Consumer(_settings(address, **{"group.id": f"deniable-{name[:16]}"}, **own))
        self._library = library

    def __iter__(self) -> Iterator[Batch]:
        try:
            numbers = _partitions(self._consumer, self._address)
            offsets = [self._next.get(str(number), self._library.OFFSET_BEGINNING) for number in numbers]
            partition = self._library.TopicPartition
            self._consumer.assign(
                [partition(self._address.topic, *pair) for pair in zip(numbers, offsets, strict=True)]
            )
            while True:
                yield from self._batches([self._checked(m) for m in self._consumer.consume(_AT_ONCE, timeout=0.5)])
        except self._problems as problem:
            raise _failed(self._address, problem) from None
        finally:
            self._consumer.close()

    def _checked(self, message: Any) -> Any:
        if (error := message.error()) is None:
            return message
        if error.code() == self._library.KafkaError._AUTO_OFFSET_RESET:
            raise InvalidData(
                "the topic does not hold the message that comes next any more, or was made anew",
                "Values are missing: go on in a new store.",
            )
        raise self._problems(error)

    def _batches(self, messages: list[Any]) -> Iterator[Batch]:
        new = [m for m in messages if m.offset() >= self._next.get(str(m.partition()), 0)]
        batch, refusal = self._reader.read([(m.topic(), m.value() or b"") for m in new])
        if batch is not None:
            self._next |= {str(m.partition()): m.offset() + 1 for m in new[: len(batch.values)]}
            yield replace(batch, mark={"kafka": {"topic": self._address.topic, "next": dict(self._next)}})
        if refusal is not None:
            raise refusal


def _partitions(client: Any, address: BrokerAddress) -> list[int]:
    """The numbers of the partitions of a topic."""
    about = client.list_topics(address.topic, timeout=_PATIENCE_S).topics.get(address.topic)
    if about is None or about.error is not None or not about.partitions:
        raise Failure(f"there is no topic of that name at {address.where}. Nothing was taken or sent. Make it first.")
    return sorted(about.partitions)


def send_kafka(folder: Path, address: BrokerAddress) -> Iterator[int]:
    """Send everything that a store has published and publishes. Gives how many values are sent, again and again."""
    library, stream = _library(), StoredStream(folder)
    name = hashlib.blake2b(address.topic.encode(), digest_size=8).hexdigest()
    own = {"transactional.id": f"deniable-{stream.settings.name[:16]}-{name}"}
    producer = library.Producer(_settings(address, **own))
    try:
        producer.init_transactions(_PATIENCE_S)
        sent = _committed(library, address)
        while True:
            yield sent
            if stream.refresh() > sent:
                page = stream.values(sent, _AT_ONCE)
                _send(library, producer, address.topic, list(written_messages(page)))
                sent = page.first + page.values.size
    except library.KafkaException as problem:
        raise _failed(address, problem) from None


def _send(library: Any, producer: Any, topic: str, messages: list[tuple[str | None, bytes]]) -> None:
    """All messages in one transaction, which is begun again until it is committed, or never can be."""
    while True:
        try:
            producer.begin_transaction()
            for key, content in messages:
                producer.produce(topic, content, key=key)
            _commit(library, producer)
        except library.KafkaException as problem:
            if not problem.args[0].txn_requires_abort():
                raise
            producer.abort_transaction(_PATIENCE_S)
        else:
            return


def _commit(library: Any, producer: Any) -> None:
    while True:
        try:
            producer.commit_transaction(_PATIENCE_S)
        except library.KafkaException as problem:
            if not problem.args[0].retriable():
                raise
        else:
            return


def _committed(library: Any, address: BrokerAddress) -> int:
    """The position behind the highest that the topic holds committed."""
    own = {"group.id": "deniable-looks", "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = library.Consumer(_settings(address, **own, **{"enable.auto.commit": False}))
    try:
        newest = [_newest(library, consumer, address.topic, number) for number in _partitions(consumer, address)]
        return max(newest, default=-1) + 1
    finally:
        consumer.close()


def _newest(library: Any, consumer: Any, topic: str, number: int) -> int:
    """The highest position in a partition; −1 if there is none. Markers of transactions take offsets as well."""
    partition = library.TopicPartition(topic, number)
    low, high = consumer.get_watermark_offsets(partition, timeout=_PATIENCE_S)
    back, highest = 16, -1
    while high > low and highest < 0:
        start = max(low, high - back)
        consumer.assign([library.TopicPartition(topic, number, start)])
        ended = False
        while not ended:
            message = consumer.poll(_PATIENCE_S)
            if message is None:
                raise library.KafkaException(library.KafkaError(library.KafkaError._TIMED_OUT))
            if (error := message.error()) is not None:
                if error.code() != library.KafkaError._PARTITION_EOF:
                    raise library.KafkaException(error)
                ended = True
            else:
                with suppress(ValueError, KeyError, TypeError):  # somebody else's message
                    highest = max(highest, int(json.loads(message.value())["position"]))
        if start == low:
            break
        back *= 16
    return highest
