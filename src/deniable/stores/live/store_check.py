"""Looks a store over, piece by piece, while nobody writes to it or while somebody does. It changes nothing."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from deniable.errors import DeniableError, InvalidData
from deniable.stores.live.folder_files import StoreFolder
from deniable.stores.live.stored_stream import StoredStream
from deniable.stores.live.value_log import ValueLog
from deniable.stores.state_file import checked_record
from deniable.streams.structure.state_values import unseal
from deniable.wording import counted


@dataclass(frozen=True, slots=True)
class StoreFinding:
    """One piece of a store: whether it is well, and what was seen."""

    well: bool
    piece: str
    text: str


def check_store(folder: str | PathLike[str]) -> Iterator[StoreFinding]:
    """Check a store: its settings, its segments and, if this user can read it, its private part.

    >>> import pathlib, tempfile
    >>> import deniable as dn
    >>> folder = pathlib.Path(tempfile.mkdtemp(), "meter")
    >>> with dn.stores.DurablePublisher(folder, dn.streams.ToPS(1.0, 100, warmup=2, horizon=64)) as stream:
    ...     released = stream.push_many([5, 6, 7, 8])
    >>> all(finding.well for finding in check_store(folder))
    True
    """
    store = StoreFolder(Path(folder))
    try:
        stream = StoredStream(folder)
    except DeniableError as problem:
        yield StoreFinding(False, "settings and segments", str(problem))
        return
    about = stream.settings
    yield StoreFinding(True, "settings", f"{about.kind}, ε = {about.epsilon:g}, bad values: {about.on_bad}")
    yield _segments(stream)
    if not store.private.is_dir():
        yield StoreFinding(False, "private part", "is missing: the stream can be read, and not gone on with")
        return
    yield _modes(store)
    yield _state(store, stream)


def _segments(stream: StoredStream) -> StoreFinding:
    """Every value, read once."""
    try:
        published, position = stream.values(0), 0
        if published.first != 0 or not np.isfinite(published.values).all():
            return StoreFinding(False, "segments", "hold numbers that cannot have been published")
        for epoch in stream.epochs:
            if epoch.begin > len(stream) or epoch.begin < position:
                return StoreFinding(False, "segments", "epochs are not in order")
            position = epoch.begin
    except DeniableError as problem:
        return StoreFinding(False, "segments", str(problem))
    words = f"{counted(len(stream), 'value')} published, in {counted(len(stream.epochs), 'epoch')}"
    return StoreFinding(True, "segments", words)


def _modes(store: StoreFolder) -> StoreFinding:
    paths = [store.private, *store.private.iterdir()]
    loose = [path.name for path in paths if stat.S_IMODE(path.stat().st_mode) & 0o077]
    if loose:
        return StoreFinding(
            False, "permissions", f"others can read {', '.join(sorted(loose))}. Run chmod -R go= private"
        )
    return StoreFinding(True, "permissions", "only its owner can read the private part")


def _state(store: StoreFolder, stream: StoredStream) -> StoreFinding:
    """The state, and the log behind it. A log may be written to while it is read."""
    facts: dict[str, Any] | None = None
    with suppress(OSError, ValueError, KeyError, InvalidData):
        record = checked_record(store.checkpoint.read_bytes())
        unseal(record["state"], record["state"].get("version"))
        facts, key = record["store"], bytes.fromhex(record["state"]["key"])
    if facts is None:
        return StoreFinding(False, "state", "is damaged or cannot be read: the stream cannot be gone on with")
    shared = not record["state"].get("per_key", False)  # otherwise every key has a warm-up of its own
    if shared and stream.refresh() < facts["total"] - stream.settings.publisher.warmup:
        return StoreFinding(False, "open segment", "is damaged: it ends before the last value that the state knows of")
    try:
        log = ValueLog(store.log(facts["log"]), facts["log"], key)
        batches = list(log.read())
    except InvalidData:
        return StoreFinding(False, "log", "is missing or damaged: the stream cannot be gone on with")
    total = facts["total"] + sum(batch.units.size for batch in batches)
    bad = facts["bad"] + sum(batch.bad for batch in batches)
    position = batches[-1].position if batches else facts["position"]
    words = f"{counted(total, 'value')} taken, {bad:,} bad; the next position is {position or 0:,}"
    if batches and shared and max(total - stream.settings.publisher.warmup, 0) > stream.refresh():
        words += "; the last values are in the log and not published yet"
    return StoreFinding(True, "state and log", words)
