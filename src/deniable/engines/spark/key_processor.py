"""Spark's stateful processor: the values of one key in a micro-batch become private values, and the key's next state.

A micro-batch that is tried again has the same values, since Spark notes the offsets of a batch before it runs. Shuffles
bring them in any order, so they are sorted by columns that do not depend on values. Two values in one place are
refused: which of them came first would depend on the attempt, or on the values themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np
from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from deniable.engines.spark.stream_secret import StreamSecret
from deniable.errors import InvalidData
from deniable.stores.bad_values import BadValues
from deniable.stores.sources.batch import Batch
from deniable.streams.central.lent_keys import KeyState, LentKeys
from deniable.streams.central.settings import Settings

STATE_COLUMNS = "taken bigint, sum bigint, theta bigint, rate double, learnt string, waiting binary"
KEY, VALUE = "key", "value"


@dataclass(frozen=True, slots=True)
class KeyedQuery:
    """What every task of a query knows. None of it is secret."""

    settings: Settings
    per_key: bool
    secret: StreamSecret
    noise: str
    """The public name of the secret's noise."""
    order: tuple[str, ...]
    on_bad: str

    @property
    def output_columns(self) -> str:
        """The columns of what is published, as Spark writes them."""
        whole = self.settings.plan.block == 1 and self.settings.grid.whole
        return f"{KEY} string, position bigint, {VALUE} {'bigint' if whole else 'double'}"

    def publisher(self) -> LentKeys:
        """The publisher of one task."""
        return LentKeys(self.settings, self.secret.read_as(self.noise, self.settings), per_key=self.per_key)


class KeyProcessor(StatefulProcessor):  # type: ignore[misc] # pyspark is untyped here
    """One publisher per key, with its state in Spark's state store."""

    def __init__(self, query: KeyedQuery) -> None:
        self._query = query
        self._publisher: LentKeys | None = None

    def init(self, handle: Any) -> None:
        """Called for every task, and once on the driver, which needs no secret for it."""
        self._state = handle.getValueState("publisher", STATE_COLUMNS)
        self._publisher = None

    def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, ARG002
        """Publish the values of one key."""
        import pandas as pd

        name = key[0]
        if name is None:
            raise InvalidData("a key is missing", "Give every value its key.")
        values = self._in_order(pd.concat(list(rows), ignore_index=True))
        grid = self._query.settings.grid
        if self._query.on_bad != "stop":
            values = BadValues(self._query.on_bad).settled(Batch(values), grid)[0].values
        if self._publisher is None:
            self._publisher = self._query.publisher()
        before = self._state.get()
        state = KeyState() if before is None else _state(before)
        private, state = self._publisher.push_key(str(name), state, grid.units(values))
        self._state.update(astuple(state))
        yield pd.DataFrame({KEY: private.key, "position": private.position, VALUE: private.value})

    def _in_order(self, rows: Any) -> np.ndarray[Any, Any]:
        order = list(self._query.order)
        if rows[order].isna().to_numpy().any():
            raise InvalidData("a value has no place in the order", "Give every value its position or time.")
        if rows.duplicated(order).any():
            raise InvalidData(
                "two values of a key have the same place in the order, which decides between them",
                "Order by one more column, for example the offset in Kafka.",
            )
        return np.asarray(rows.sort_values(order)[VALUE].to_numpy())

    def close(self) -> None:
        """Nothing is open."""
        self._publisher = None


def _state(row: Any) -> KeyState:
    taken, total, theta, rate, learnt, waiting = row
    return KeyState(int(taken), int(total), int(theta), float(rate), learnt, bytes(waiting))
