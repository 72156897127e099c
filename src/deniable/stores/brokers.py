"""Brokers that values come from and published values go to, by the scheme of their address."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from deniable.stores.broker_messages import BrokerAddress
from deniable.stores.kafka_stream import KafkaSource, send_kafka
from deniable.stores.mqtt_stream import MqttSource, send_mqtt
from deniable.stores.sources.batch import Batch, Columns


def read_broker(text: str, columns: Columns, *, json_lines: bool, name: str, mark: Any) -> Iterator[Batch]:
    """The values of a topic, from where `mark` says that a store stands."""
    address = BrokerAddress.parse(text)
    kind: Any = KafkaSource if address.scheme == "kafka" else MqttSource
    return iter(kind(address, columns, json_lines=json_lines, name=name, mark=mark))


def send_published(folder: Path, text: str) -> Iterator[int]:
    """Send what a store publishes to a topic. Gives how many values are sent, again and again."""
    address = BrokerAddress.parse(text)
    return (send_kafka if address.scheme == "kafka" else send_mqtt)(folder, address)
