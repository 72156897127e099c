"""Released streams of many keys: windows of one key, and sums over keys with their errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from deniable.errors import QueryRefused
from deniable.streams.released.released_stream import Released
from deniable.streams.released.windows import WindowEstimate

Window = tuple[int, int]
"""The first position of a window, and the first behind it."""


class KeyedReleased:
    """One `Released` per key. `shared`: what cutting at θ takes away was estimated once for all keys.

    >>> import deniable as dn
    >>> keyed = dn.streams.KeyedPublisher(1.0, 100, theta=50, horizon=64, block=4, public_keys=True)
    >>> private = keyed.push_many(["north", "south"] * 8, range(16))
    >>> regions = keyed.release_of([private])
    >>> regions.keys, len(regions["south"])
    (['north', 'south'], 8)
    >>> both = regions.sum(0, 8)
    >>> round(both.stderr**2 / regions["north"].sum(0, 8).stderr ** 2)
    2
    """

    def __init__(self, streams: Mapping[str, Released], *, shared: bool = False) -> None:
        self._streams, self._shared = dict(streams), shared

    @property
    def keys(self) -> list[str]:
        """Every key that has published values."""
        return list(self._streams)

    def __getitem__(self, key: str | int) -> Released:
        if str(key) not in self._streams:
            raise QueryRefused("this key has published nothing", "Ask about one of `keys`.")
        return self._streams[str(key)]

    def sum(
        self, start: int, stop: int, *, keys: Iterable[str | int] | None = None, confidence: float = 0.95
    ) -> WindowEstimate:
        """The sum over keys (by default all) of their values at positions start … stop − 1."""
        names = self.keys if keys is None else list(keys)
        return self.sum_of({str(key): (start, stop) for key in names}, confidence=confidence)

    def sum_of(self, windows: Mapping[str, Window], *, confidence: float = 0.95) -> WindowEstimate:
        """The sum over keys of their own windows, by time for example."""
        if not windows:
            raise QueryRefused("a sum over no keys was asked for", "Name at least one key.")
        estimates = [self[key].sum(*window, confidence=confidence) for key, window in windows.items()]
        return total_of(estimates, shared=self._shared)


def total_of(estimates: Sequence[WindowEstimate], *, shared: bool = False) -> WindowEstimate:
    """The sum of answers whose noise is independent: variances add up exactly.

    What cutting takes away adds up as well; its errors do so linearly if it was estimated once for all (`shared`).
    """
    squares = [estimate.stderr**2 for estimate in estimates]
    variance = math.fsum(squares)
    tails = math.fsum(estimate.tails * square**2 for estimate, square in zip(estimates, squares, strict=True))
    cuts = [estimate.cut for estimate in estimates]
    losses = [estimate.truncation for estimate in estimates]
    return WindowEstimate(
        math.fsum(estimate.value for estimate in estimates),
        math.sqrt(variance),
        estimates[0].confidence,
        smoothing=math.sqrt(math.fsum(estimate.smoothing**2 for estimate in estimates)),
        truncation=None if any(loss is None for loss in losses) else math.fsum(loss or 0.0 for loss in losses),
        excess=math.fsum(estimate.excess for estimate in estimates),
        cut=math.fsum(cuts) if shared else math.sqrt(math.fsum(cut**2 for cut in cuts)),
        tails=tails / variance**2 if variance else 0.0,
        beyond=math.fsum(estimate.beyond for estimate in estimates),
    )
