"""Values of many requests for one store, taken together: one write to the disk for all that wait.

Each request is taken as a whole or refused as a whole, and learns which position comes next. Positions of a stream
begin at 0. Values at positions that were taken before are not taken again, so a request may be sent any number of
times; one that begins behind the next position is refused, because something before it is missing. A request without
values takes nothing, and learns the position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np

from deniable.errors import InvalidData
from deniable.limits import MOST_STREAM_KEYS
from deniable.stores.durable_publisher import DurablePublisher
from deniable.stores.keyed_stream import KeyedStream
from deniable.stores.sources.batch import Batch


class Refusal(Enum):
    """Why a request is refused."""

    GAP = "gap"
    VALUE = "value"
    KEYS = "keys"


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of one request, after it is on the disk.

    `position` is the next one. `published` is how many values the stream has published by then.
    """

    taken: int
    repeated: int
    position: int
    published: int
    refusal: Refusal | None = None
    words: str = ""


class StreamIntake:
    """Takes the values of requests into the store in `folder`, which it opens when the first ones arrive.

    A request with which the stream would have more than `most_keys` keys is refused: every key stays for ever.

    >>> import tempfile
    >>> import deniable as dn
    >>> folder = Path(tempfile.mkdtemp(), "meter")
    >>> dn.stores.DurablePublisher(folder, dn.streams.ToPS(1.0, 100, warmup=2, horizon=64)).close()
    0.0
    >>> intake = StreamIntake(folder)
    >>> first = Batch(np.array([5, 6, 7]), positions=np.arange(3))
    >>> [(receipt.taken, receipt.repeated, receipt.position) for receipt in intake([first, first])]
    [(3, 0, 3), (0, 3, 3)]
    >>> intake.close()
    """

    def __init__(self, folder: Path, most_keys: int = MOST_STREAM_KEYS) -> None:
        self._folder, self._most_keys = folder, most_keys
        self._run: DurablePublisher | None = None

    def __call__(self, requests: Sequence[Batch]) -> list[Receipt]:
        """Take what can be taken. If the disk fails, the store is opened again for the next requests."""
        if self._run is None:
            self._run = DurablePublisher(self._folder)
        try:
            if len(requests) > 1 and (joined := _joined(requests)) is not None and not self._refused(joined):
                return self._take_together(requests, joined)
            return [self._take(request) for request in requests]
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Let go of the store."""
        if self._run is not None:
            run, self._run = self._run, None
            run.close()

    def _take_together(self, requests: Sequence[Batch], joined: Batch) -> list[Receipt]:
        run, receipts = self._opened, []
        position = run.position or 0
        run.publish(joined, _ignore)
        for request in requests:
            count, first = len(request.values), position if request.positions is None else int(request.positions[0])
            repeated = min(max(position - first, 0), count)
            position += count - repeated
            receipts.append(Receipt(count - repeated, repeated, position, run.publisher.published))
        return receipts

    def _take(self, request: Batch) -> Receipt:
        run = self._opened
        before = run.position or 0
        if not len(request.values):
            return Receipt(0, 0, before, run.publisher.published)
        if refusal := self._refused(request):
            return Receipt(0, 0, before, run.publisher.published, *refusal)
        try:
            run.publish(request, _ignore)
        except InvalidData as problem:
            return Receipt(0, 0, before, run.publisher.published, Refusal.VALUE, str(problem).split(". ")[0])
        taken = (run.position or 0) - before
        return Receipt(taken, len(request.values) - taken, before + taken, run.publisher.published)

    def _refused(self, batch: Batch) -> tuple[Refusal, str] | None:
        run = self._opened
        position = run.position or 0
        if batch.positions is not None and batch.positions.size and batch.positions[0] > position:
            return Refusal.GAP, f"positions before {int(batch.positions[0]):,} are missing"
        if words := run.refusal(batch):
            return Refusal.VALUE, words
        if isinstance(run.publisher, KeyedStream) and run.publisher.keys_with(batch.keys or []) > self._most_keys:
            return Refusal.KEYS, f"the stream would have more than {self._most_keys:,} keys (keys_per_stream)"
        return None

    @property
    def _opened(self) -> DurablePublisher:
        assert self._run is not None  # noqa: S101 - opened before anything is taken
        return self._run


def _ignore(_values: Any, _timestamps: Any) -> None:
    """The store has them."""


def _joined(requests: Sequence[Batch]) -> Batch | None:
    """All requests as one batch; None if they differ in what their values come with."""
    first = requests[0]
    if not all(len(request.values) for request in requests):
        return None
    kinds = {
        (
            request.values.dtype,
            None if request.timestamps is None else request.timestamps.dtype,
            request.positions is None,
            request.keys is None,
        )
        for request in requests
    }
    if len(kinds) > 1:
        return None
    stamps = [request.timestamps for request in requests if request.timestamps is not None]
    positions = [request.positions for request in requests if request.positions is not None]
    return replace(
        first,
        values=np.concatenate([request.values for request in requests]),
        timestamps=np.concatenate(stamps) if stamps else None,
        positions=np.concatenate(positions) if positions else None,
        keys=None if first.keys is None else [key for request in requests for key in request.keys or []],
    )
