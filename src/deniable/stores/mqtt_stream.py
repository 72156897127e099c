"""Streams through MQTT: values in from a topic, published values out to one, both with QoS 1. Extra `mqtt`.

In. The session is kept by the broker under a name that follows from the store, and a message is acknowledged after it
is in the store's log. If the process or the connection ends in between, the broker sends it again, marked as such and
under the same id. Ids and digests of the last messages stand in the log together with their values, so such a message
is known and skipped. A broker that has lost its memory marks nothing: only positions in messages help there.

Out. Where sending stands is in `sent/` of the store, and moves on after the broker has acknowledged. A crash in between
sends some values again, the same ones: every message has its position.
"""

from __future__ import annotations

import hashlib
import os
import queue
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from deniable.errors import Failure, InvalidParameter, MissingExtra
from deniable.files import LockedFile
from deniable.stores.broker_messages import BrokerAddress, MessageReader, written_messages
from deniable.stores.live.stored_stream import StoredStream
from deniable.stores.sources.batch import Batch, Columns

PASSWORD = "DENIABLE_MQTT_PASSWORD"  # noqa: S105 - the name of a variable
_UNACKNOWLEDGED = 100
"""Messages that the broker may send before the first of them is acknowledged: as many ids are kept."""
_FOR_EVER_S = 0xFFFFFFFF
_QOS = 1


class _Arrived(NamedTuple):
    """A message, and the number of the connection that it came through."""

    connection: int
    number: int
    again: bool
    topic: str
    content: bytes

    @property
    def id(self) -> tuple[int, str]:
        """The broker's number, which is used again some day, and a digest of what the message holds."""
        return self.number, hashlib.blake2b(self.topic.encode() + b"\0" + self.content, digest_size=8).hexdigest()


class _Connected(NamedTuple):
    """A connection began; the broker has the session of before, or not."""

    connection: int
    session_present: bool


class _Refused(NamedTuple):
    """The broker does not want us."""


def _client(address: BrokerAddress, name: str, **settings: Any) -> Any:
    try:
        from paho.mqtt.client import Client, MQTTProtocolVersion
        from paho.mqtt.enums import CallbackAPIVersion
    except ModuleNotFoundError:
        raise MissingExtra("paho-mqtt", "mqtt") from None
    client = Client(CallbackAPIVersion.VERSION2, client_id=name, protocol=MQTTProtocolVersion.MQTTv5, **settings)
    if address.scheme == "mqtts":
        client.tls_set()
    if address.user is not None:
        client.username_pw_set(address.user, os.environ.get(PASSWORD))
    client.reconnect_delay_set(1, 15)
    return client


def _connect(client: Any, address: BrokerAddress) -> None:
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties

    kept = Properties(PacketTypes.CONNECT)
    kept.SessionExpiryInterval, kept.ReceiveMaximum = _FOR_EVER_S, _UNACKNOWLEDGED
    try:
        client.connect(address.host, address.port, keepalive=30, clean_start=False, properties=kept)
    except OSError as problem:
        raise _unreachable(address, problem.strerror or "no answer") from None
    client.loop_start()


def _unreachable(address: BrokerAddress, reason: str) -> Failure:
    return Failure(
        f"the broker at {address.where} cannot be reached or refuses the connection ({reason.lower()}). Nothing was "
        f"taken or sent. Check the address, the user, and {PASSWORD} in the environment."
    )


class MqttSource:
    """Messages of a topic as batches. What a batch holds is acknowledged when the next one is asked for.

    `name` is that of the stream, and `mark` is what its store kept of the last batch.
    """

    def __init__(self, address: BrokerAddress, columns: Columns, *, json_lines: bool, name: str, mark: Any) -> None:
        self._address, self._reader = address, MessageReader(columns, json_lines=json_lines)
        self._kept = dict.fromkeys((number, digest) for number, digest in (mark or {}).get("mqtt", []))
        self._connection = 0
        self._arrived: queue.SimpleQueue[_Arrived | _Connected | _Refused] = queue.SimpleQueue()
        self._client = _client(address, f"deniable-{name[:16]}", manual_ack=True)
        self._client.on_connect, self._client.on_message = self._on_connect, self._on_message

    def _on_connect(self, client: Any, _data: Any, flags: Any, reason: Any, _properties: Any) -> None:
        from paho.mqtt.subscribeoptions import SubscribeOptions

        if reason.is_failure:
            self._arrived.put(_Refused())
            return
        self._connection += 1
        self._arrived.put(_Connected(self._connection, flags.session_present))
        client.subscribe(self._address.topic, options=SubscribeOptions(qos=_QOS, retainHandling=2))

    def _on_message(self, _client: Any, _data: Any, message: Any) -> None:
        number = message.mid if message.qos else 0
        content = bytes(message.payload)
        self._arrived.put(_Arrived(self._connection, number, message.dup, message.topic, content))

    def __iter__(self) -> Iterator[Batch]:
        _connect(self._client, self._address)
        try:
            while True:
                messages = self._new_messages()
                batch, refusal = self._reader.read([(message.topic, message.content) for message in messages])
                if batch is not None:
                    taken = messages[: len(batch.values)]
                    self._keep(taken)
                    yield replace(batch, mark={"mqtt": [list(kept) for kept in self._kept]})
                    for message in taken:
                        self._acknowledge(message)
                if refusal is not None:
                    raise refusal
        finally:
            self._client.disconnect()
            self._client.loop_stop()

    def _new_messages(self) -> list[_Arrived]:
        """Everything that has arrived and was not taken before; waits a little for the first of it."""
        messages: dict[tuple[int, str], _Arrived] = {}
        while len(messages) < _UNACKNOWLEDGED:
            try:
                arrived = self._arrived.get_nowait() if messages else self._arrived.get(timeout=0.5)
            except queue.Empty:
                break
            if isinstance(arrived, _Refused):
                raise _unreachable(self._address, "refused")
            if isinstance(arrived, _Connected):
                if not arrived.session_present:
                    self._kept.clear()  # ids begin anew
                continue
            if arrived.again and arrived.id in messages:
                messages[arrived.id] = arrived  # to be acknowledged through the newer connection
            elif arrived.again and arrived.id in self._kept:
                self._acknowledge(arrived)
            else:
                messages[arrived.id if arrived.number else (-len(messages) - 1, "")] = arrived
        return list(messages.values())

    def _keep(self, messages: list[_Arrived]) -> None:
        """Remember the newest ids."""
        for message in messages:
            if message.number:
                self._kept.pop(message.id, None)
                self._kept[message.id] = None
        while len(self._kept) > _UNACKNOWLEDGED:
            del self._kept[next(iter(self._kept))]

    def _acknowledge(self, message: _Arrived) -> None:
        """Unless it came through an earlier connection: then it comes again, and is known."""
        if message.number and message.connection == self._connection:
            self._client.ack(message.number, _QOS)


def send_mqtt(folder: Path, address: BrokerAddress) -> Iterator[int]:
    """Send everything that a store has published and publishes. Gives how many values are sent, again and again.

    Whoever calls decides when to stop or to wait: the number does not change when there is nothing new.
    """
    stream = StoredStream(folder)
    if any(wild in address.topic for wild in "+#"):
        raise InvalidParameter("the topic", "holds + or #, which only readers may use", "Name one topic.")
    name = hashlib.blake2b(f"{address.where}/{address.topic}".encode(), digest_size=8).hexdigest()
    (folder / "sent").mkdir(exist_ok=True)
    client = _client(address, f"deniable-{stream.settings.name[:16]}-{name}")
    answers: queue.SimpleQueue[tuple[int, bool]] = queue.SimpleQueue()
    client.on_publish = lambda _c, _d, number, reason, _p: answers.put((number, reason.is_failure))
    with LockedFile(folder / "sent" / f"mqtt-{name}", "the note of what was sent", cost="Nothing was sent") as note:
        sent = int(note.read() or b"0")
        _connect(client, address)
        try:
            while True:
                yield sent
                if stream.refresh() <= sent:
                    continue
                page = stream.values(sent, _UNACKNOWLEDGED)
                contents = [content for _, content in written_messages(page)]
                waiting = {client.publish(address.topic, content, qos=_QOS).mid for content in contents}
                while waiting:  # also for a broker that is away
                    number, refused = answers.get()
                    if refused:
                        raise _unreachable(address, "the topic is refused")
                    waiting.discard(number)
                sent = page.first + page.values.size
                note.write(str(sent).encode())
        finally:
            client.disconnect()
            client.loop_stop()
