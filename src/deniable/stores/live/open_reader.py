"""The open segment, read again and again while it grows: what was read once is not read twice.

Whole frames never change, so a reader remembers where the last one ended and goes on there.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats
from deniable.stores.live.frames import Chain
from deniable.stores.live.segments import FrameContents, PublishedValues, segment_path
from deniable.streams.central.published_epochs import EpochFacts


class OpenReader:
    """The open segment number `number`, whose first value is number `first` of the stream."""

    def __init__(self, folder: Path, number: int, first: int) -> None:
        self.number, self._first = number, first
        self._path = segment_path(folder, number, sealed=False)
        self._chain = Chain(f"segment {number}")
        self._end = 0
        self._epochs: list[EpochFacts] = []
        self._values: list[Floats] = [np.zeros(0)]
        self._stamps: list[NDArray[Any]] = []
        self._keys: list[NDArray[Any]] = []

    def read(self) -> PublishedValues | None:
        """Everything in it at this moment; None if there is no such file, because it was sealed or not begun."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._end)
                data = file.read()
        except FileNotFoundError:
            return None
        contents, length = FrameContents.read(data, self._chain)
        self._end += length
        self._epochs += contents.epochs
        for kept, new in (
            (self._values, contents.values),
            (self._stamps, contents.stamps),
            (self._keys, contents.keys),
        ):
            if new:
                kept[:] = [np.concatenate([*kept, *new])]
        stamps, keys = (kept[0] if kept else None for kept in (self._stamps, self._keys))
        return PublishedValues(self._first, self._values[0], stamps, tuple(self._epochs), keys)
