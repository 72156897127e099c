"""What streams through message brokers share: addresses, and messages as values and back.

    mqtt://broker:1883/meters/kitchen     mqtts://user@broker/meters/+      kafka://broker:9092/meters

A message is a number in digits, or a JSON object with named fields. What is published goes out as one JSON object per
value, with its number in the stream, so that whoever reads can tell when a message comes twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from deniable.errors import InvalidParameter
from deniable.stores.live.segments import PublishedValues
from deniable.stores.sources.batch import Batch, Columns, Unreadable
from deniable.stores.sources.line_source import LINE_ERRORS, LineRow, batch_of, refuse_times, row_of

_USUAL_PORTS = {"mqtt": 1883, "mqtts": 8883, "kafka": 9092}
TOPIC_COLUMN = "topic"
"""As the name of the column of keys: the topic of a message is its key."""
_HOW = "Write mqtt://HOST/TOPIC, mqtts://USER@HOST/TOPIC or kafka://HOST:PORT/TOPIC."


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """Where a broker is, and the topic there.

    >>> BrokerAddress.parse("mqtt://localhost/meters/kitchen")
    BrokerAddress(scheme='mqtt', host='localhost', port=1883, topic='meters/kitchen', user=None)
    """

    scheme: str
    host: str
    port: int
    topic: str
    user: str | None = None

    @classmethod
    def parse(cls, text: str) -> BrokerAddress:
        """The address that a text is. A password does not belong there: others can see command lines."""
        try:
            parts = urlsplit(text.replace("#", "%23"))
            port = parts.port
        except ValueError:
            raise InvalidParameter("the address of the broker", "cannot be read", _HOW) from None
        if parts.scheme not in _USUAL_PORTS or not parts.hostname or len(parts.path) < 2 or parts.query:
            raise InvalidParameter("the address of the broker", "lacks a host or a topic", _HOW)
        if parts.password is not None:
            raise InvalidParameter("the address of the broker", "has a password", "Set it in the environment.")
        topic = unquote(parts.path[1:])
        return cls(parts.scheme, parts.hostname, port or _USUAL_PORTS[parts.scheme], topic, parts.username)

    @property
    def where(self) -> str:
        """Host and port, for messages."""
        return f"{self.host}:{self.port}"


def is_broker(text: str) -> bool:
    """Whether a source of values is a broker, by its scheme."""
    return text.partition("://")[0] in _USUAL_PORTS and "://" in text


class MessageReader:
    """Turns messages into batches. One that cannot be read ends the reading, or has no value if that is allowed."""

    def __init__(self, columns: Columns, *, json_lines: bool) -> None:
        self._by_topic = columns.key == TOPIC_COLUMN
        if not json_lines:
            refuse_times(replace(columns, key=None) if self._by_topic else columns)
        self._fields = (replace(columns, key=None) if self._by_topic else columns) if json_lines else None
        self._asked = columns if json_lines or self._by_topic else None
        self._lenient = columns.lenient
        self.count = 0

    def read(self, messages: Sequence[tuple[str, bytes]]) -> tuple[Batch | None, Unreadable | None]:
        """A batch of (topic, content) up to one that cannot be read, and that one's refusal."""
        rows: list[LineRow] = []
        refusal = None
        for topic, content in messages:
            try:
                row = row_of(content, self._fields)
            except LINE_ERRORS:
                if not self._lenient:
                    refusal = Unreadable(f"message {self.count + len(rows) + 1:,} of this run")
                    break
                row = LineRow(None)
            rows.append(row._replace(key=topic) if self._by_topic else row)
        if not rows:
            return None, refusal
        numbers = list(range(self.count + 1, self.count + len(rows) + 1))
        self.count += len(rows)
        return replace(batch_of(rows, numbers, self._asked), unit="message"), refusal


def written_messages(published: PublishedValues) -> Iterator[tuple[str | None, bytes]]:
    """(key, content) of a message for every published value.

    >>> import numpy as np
    >>> list(written_messages(PublishedValues(7, np.array([2.5]))))
    [(None, b'{"position":7,"value":2.5}')]
    """
    stamps = published.timestamps
    times = None if stamps is None else (stamps.astype(str) if stamps.dtype.kind == "M" else stamps).tolist()
    keys = None if published.keys is None else published.keys.tolist()
    for offset, value in enumerate(published.values.tolist()):
        facts = {"position": published.first + offset, "value": value}
        facts |= {} if times is None else {"timestamp": times[offset]}
        facts |= {} if keys is None else {"key": keys[offset]}
        yield None if keys is None else keys[offset], json.dumps(facts, separators=(",", ":")).encode()
