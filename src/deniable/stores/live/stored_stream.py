"""A stream in a store, read while it is published: all segments, restarts and epochs. Nothing private is read."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np

from deniable.errors import InvalidData, QueryRefused
from deniable.stores.live.folder_files import StoreFolder, StoreSettings
from deniable.stores.live.open_reader import OpenReader
from deniable.stores.live.segments import PublishedValues, SealedSegment, newest_segment, read_sealed, sealed_footer
from deniable.streams.central.keyed_publisher import KeyedPublisher
from deniable.streams.central.published_epochs import EpochFacts, released_from
from deniable.streams.central.stream_keys import encoded_keys
from deniable.streams.released.keyed_release import KeyedReleased
from deniable.streams.released.released_stream import Released


class StoredStream:
    """What a store has published so far. `refresh` looks for more; sealed segments are read only once.

    >>> import pathlib, tempfile
    >>> import deniable as dn
    >>> folder = pathlib.Path(tempfile.mkdtemp(), "meter")
    >>> with dn.stores.DurablePublisher(folder, dn.streams.ToPS(1.0, 100, warmup=2, horizon=64)) as stream:
    ...     released = stream.push_many([5, 6, 7, 8])
    ...     len(StoredStream(folder)), len(StoredStream(folder).released())
    (2, 2)
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self._folder = StoreFolder(Path(folder))
        self.settings = StoreSettings.read(self._folder)
        self._sealed: list[SealedSegment] = []
        self._open = PublishedValues(0, np.zeros(0))
        self._reader = OpenReader(self._folder.published, 0, 0)
        self._last_read: tuple[int, PublishedValues] | None = None  # whoever reads page by page needs it again
        self.refresh()

    def __len__(self) -> int:
        return self._open.first + self._open.values.size

    def refresh(self) -> int:
        """Look for more. Returns how many values have been published so far."""
        folder = self._folder.published
        while True:
            while (footer := sealed_footer(folder, len(self._sealed))) is not None:
                self._sealed.append(footer)
            if self._reader.number != len(self._sealed):
                self._reader = OpenReader(folder, len(self._sealed), self._end)
            opened = self._reader.read()
            if opened is None and sealed_footer(folder, len(self._sealed)) is not None:
                continue  # it was sealed in between
            firsts = np.cumsum([0, *(segment.count for segment in self._sealed)])[:-1]
            if newest_segment(folder) > len(self._sealed) or [s.first for s in self._sealed] != firsts.tolist():
                raise InvalidData("a segment of the stream is missing", "Restore the folder from a copy.")
            self._open = PublishedValues(self._end, np.zeros(0)) if opened is None else opened
            return len(self)

    @property
    def _end(self) -> int:
        return self._sealed[-1].first + self._sealed[-1].count if self._sealed else 0

    @property
    def epochs(self) -> list[EpochFacts]:
        """What is public about every epoch that has begun."""
        every = [*(segment.epochs for segment in self._sealed), self._open.epochs]
        known = {(epoch.begin, epoch.key or ""): epoch for epochs in every for epoch in epochs}
        return [known[name] for name in sorted(known)]

    def needed_from(self, position: int) -> int:
        """Where the epoch before that of a position begins: what is added back follows from its levels, too.

        0 if θ is not renewed.
        """
        begins = [epoch.begin for epoch in self.epochs if epoch.begin <= position]
        return begins[-2] if len(begins) > 1 else 0

    def released(self, start: int = 0) -> Released:
        """Everything published so far, with its standard errors, from the epoch before that of `start` on."""
        if self.keyed:
            raise QueryRefused("this store has one stream per key", "Name a key: --key, or by_key() in Python.")
        base = self.needed_from(start)
        parts = [self._read(segment) for segment in self._sealed if segment.first + segment.count > base]
        parts.append(self._open)
        epochs = [replace(epoch, begin=epoch.begin - base) for epoch in self.epochs if epoch.begin >= base]
        values = np.concatenate([part.values for part in parts])[max(base - parts[0].first, 0) :]
        if not values.size or not epochs:
            raise QueryRefused("nothing is published yet", "Wait for the end of the warm-up.")
        stamps = [part.timestamps for part in parts if part.timestamps is not None]
        times = np.concatenate(stamps)[-values.size :] if stamps else None
        settings = self.settings.publisher
        steps = settings.grid.steps(values)
        if settings.block == 1:
            steps = np.rint(steps).astype(np.int64)
        return released_from(settings, epochs, steps, timestamps=times, simulation=self.settings.simulation)

    @property
    def keyed(self) -> bool:
        """Whether there is one stream per key."""
        return self.settings.kind == KeyedPublisher.kind

    def by_key(self, keys: Collection[str] | None = None) -> KeyedReleased:
        """Everything published so far, one release per key; if `keys` are named, only theirs."""
        if not self.keyed:
            raise QueryRefused("this store has no keys", "Ask without a key.")
        published, settings = self.values(0), self.settings.publisher
        if published.keys is None:
            raise QueryRefused("nothing is published yet", "Wait for the end of the warm-up.")
        facts = {epoch.key: epoch for epoch in self.epochs}
        numbers, names = encoded_keys(published.keys)
        grouped = np.split(np.argsort(numbers, kind="stable"), np.cumsum(np.bincount(numbers))[:-1])
        streams = {}
        for name, mine in zip(names, grouped, strict=True):
            if keys is not None and name not in keys:
                continue
            steps = settings.grid.steps(published.values[mine])
            steps = np.rint(steps).astype(np.int64) if settings.block == 1 else steps
            epochs = [replace(facts.get(name) or facts[None], key=None)]
            times = None if published.timestamps is None else published.timestamps[mine]
            streams[name] = released_from(
                settings, epochs, steps, timestamps=times, simulation=self.settings.simulation
            )
        return KeyedReleased(streams, shared=None in facts and settings.measure_start)

    def values(self, start: int, most: int | None = None) -> PublishedValues:
        """At most `most` published values from a position on, with their timestamps and keys."""
        stop = len(self) if most is None else min(start + most, len(self))
        parts = [self._read(s) for s in self._sealed if s.first + s.count > start and s.first < stop]
        if stop > self._open.first or not parts:
            parts.append(self._open)
        first = min(max(start, parts[0].first), len(self))
        here = slice(first - parts[0].first, max(stop, first) - parts[0].first)
        stamps = [part.timestamps for part in parts if part.timestamps is not None]
        keys = [part.keys for part in parts if part.keys is not None]
        return PublishedValues(
            first,
            np.concatenate([part.values for part in parts])[here],
            np.concatenate(stamps)[here] if stamps else None,
            keys=np.concatenate(keys)[here] if keys else None,
        )

    def _read(self, segment: SealedSegment) -> PublishedValues:
        if self._last_read is None or self._last_read[0] != segment.number:
            self._last_read = (segment.number, read_sealed(self._folder.published, segment.number))
        return self._last_read[1]


def read_release(path: str | PathLike[str], start: int = 0) -> Released:
    """Read a released stream from a Parquet file or a store. Of a store, `start` is the first position that is needed.

    >>> import pathlib, tempfile
    >>> import deniable as dn
    >>> folder = pathlib.Path(tempfile.mkdtemp(), "meter")
    >>> with dn.stores.DurablePublisher(folder, dn.streams.ToPS(1.0, 100, warmup=2, horizon=64)) as stream:
    ...     released = stream.push_many([5, 6, 7, 8])
    >>> len(read_release(folder))
    2
    """
    return StoredStream(path).released(start) if Path(path).is_dir() else Released.load(path)
