"""One key at a time, for an engine that keeps the state of every key itself.

Spark's state store has one entry per key, and gives back the one of the last batch that was committed. Noise is a
function of (secret, settings, key, chunk, node), so a batch that is tried again with the same values publishes the same
bytes. Whoever keeps the states has to see to that: with other values the difference of the two would be the data.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from deniable.arrays import Integers
from deniable.errors import InvalidParameter
from deniable.streams.central.keyed_publisher import KeyedPublisher
from deniable.streams.central.settings import Settings
from deniable.streams.central.stream_keys import KeyedValues
from deniable.streams.central.warmup import Learnt
from deniable.streams.structure.growing_array import GrowingArray


def name_of_secret(secret: bytes, settings: Settings) -> str:
    """A public name for the noise of a secret under some settings: 128 bits from which neither can be found."""
    digest = hashlib.blake2b(settings.digest.encode(), key=secret, digest_size=16, person=b"which noise")
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class KeyState:
    """A key's open block, or its warm-up. As secret as the data.

    >>> KeyState().taken
    0
    """

    taken: int = 0
    sum: int = 0
    theta: int = 0
    rate: float = 0.0
    learnt: str | None = None
    """What the key has learnt from its own values, as JSON."""
    waiting: bytes = b""
    """Values of its warm-up, eight bytes each."""


class LentKeys(KeyedPublisher):
    """A `KeyedPublisher` that has one key at a time. It publishes what a `KeyedPublisher` of all keys would publish.

    >>> import numpy as np
    >>> from deniable.streams.central.stream_keys import keyed_settings
    >>> lent = LentKeys(keyed_settings(1.0, 100, theta=50, horizon=64, block=4), bytes(32), per_key=False)
    >>> private, state = lent.push_key("north", KeyState(), np.array([5, 6, 7]))
    >>> private.position.tolist(), state.taken, state.sum
    ([0, 1, 2], 3, 18)
    """

    def __init__(self, settings: Settings, secret: bytes, *, per_key: bool) -> None:
        if settings.warmup and not per_key:
            raise InvalidParameter(
                "theta",
                "is missing: keys that are kept apart cannot learn it together",
                "Give a public theta=, or per_key=True.",
            )
        # Another attempt at the same batch, in this process or another, draws the same noise for the same values.
        self._set_up(settings, secret, None, per_key=per_key, simulation=False, goes_on=True)
        self._fence = None  # whoever keeps the states says which is the newest

    def push_key(self, key: str, state: KeyState, units: Integers) -> tuple[KeyedValues, KeyState]:
        """Publish values of one key, in steps of the grid, and return them with the key's next state."""
        self._borrow(key, state)
        private = self._push(np.zeros(units.size, dtype=np.int64), [key], units)
        return private, self._given_back()

    def _borrow(self, key: str, state: KeyState) -> None:
        if self._names != [key]:
            self._noise.clear()  # it is of another key
        self._number, self._names = {key: 0}, [key]
        self._grow()
        shared = self.learnt
        columns: dict[str, Any] = {"taken": state.taken, "sum": state.sum, "theta": state.theta, "rate": state.rate}
        if shared is not None and not state.taken:
            columns["theta"], columns["rate"] = shared.theta, shared.theta / 2 if shared.mean is None else shared.mean
        for name, number in columns.items():
            self._columns[name][0] = number
        self._own = {} if state.learnt is None else {0: Learnt.read(json.loads(state.learnt))}
        self._waiting = {}
        if state.waiting:
            warm = GrowingArray()
            warm.extend(np.frombuffer(state.waiting, dtype="<i8").astype(np.int64))
            self._waiting[0] = warm

    def _given_back(self) -> KeyState:
        columns, waiting, learnt = self._columns, self._waiting.get(0), self._own.get(0)
        return KeyState(
            int(columns["taken"][0]),
            int(columns["sum"][0]),
            int(columns["theta"][0]),
            float(columns["rate"][0]),
            None if learnt is None else json.dumps(asdict(learnt)),
            b"" if waiting is None else waiting.array().astype("<i8").tobytes(),
        )
