"""What streams of many keys share: their settings, keys as numbers into a list of names, and private values by key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Integers
from deniable.errors import InvalidData, InvalidParameter
from deniable.streams.central.settings import Settings, usual_warmup
from deniable.streams.central.threshold import PredictedError, PublicThreshold
from deniable.streams.structure.value_grid import Grid


@dataclass(frozen=True, slots=True, eq=False)
class KeyedValues:
    """Private values of one batch, in the order of the values that they stand for.

    `index` is the place of each in the batch, `key` its key, `position` its number among the published values of that
    key.

    >>> import deniable as dn
    >>> keyed = dn.streams.KeyedPublisher(1.0, 100, theta=50, horizon=64, block=4, public_keys=True)
    >>> keyed.push_many(["north", "south", "north"], [5, 6, 7]).position
    array([0, 0, 1])
    """

    index: Integers
    key: NDArray[Any]
    position: Integers
    value: NDArray[Any]

    def __len__(self) -> int:
        return int(self.index.size)


def by_key(published: Iterable[KeyedValues]) -> Iterator[tuple[str, NDArray[Any]]]:
    """Every key with its values, in their order."""
    parts = list(published)
    if not parts:
        return
    numbers, names = encoded_keys(np.concatenate([part.key for part in parts]))
    values = np.concatenate([part.value for part in parts])[np.argsort(numbers, kind="stable")]
    ends = np.cumsum(np.bincount(numbers, minlength=len(names)))
    yield from zip(names, np.split(values, ends[:-1]), strict=True)


def keyed_settings(
    epsilon: float,
    bound: float,
    *,
    low: float = 0,
    resolution: float = 1,
    theta: float | None = None,
    warmup: int | None = None,
    horizon: int = 1 << 14,
    block: int | None = None,
    name: str = "",
    per_key: bool = False,
) -> Settings:
    """The settings of every key's stream. Blocks are of one size, which divides the horizon.

    >>> keyed_settings(1.0, 100, theta=50).block
    256
    """
    grid = Grid(bound, low, resolution)
    facts: dict[str, Any] = {"horizon": horizon, "name": f"{name} per key" if per_key else name, "block": block}
    if theta is None:
        facts |= {"warmup": usual_warmup(epsilon) if warmup is None else warmup, "threshold": PredictedError()}
    else:
        if warmup:
            raise InvalidParameter("warmup", "is of no use with a public θ", "Leave one of them out.")
        facts |= {"warmup": 0, "threshold": PublicThreshold(theta), "measure_start": False}
    settings = Settings("keyed", epsilon, grid, **facts)
    if block is None:
        size = settings.plan.block
        while horizon % size:
            size -= 1
        settings = replace(settings, block=size)
    if horizon % settings.plan.block:
        raise InvalidParameter("block", "must divide the horizon", "Use powers of two.")
    return settings


def key_name(key: Any) -> str:
    """A key as a text. An integer is the same key as its digits."""
    if isinstance(key, str):
        return key
    if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
        return str(int(key))
    raise InvalidData("a key must be a text or a whole number", "Convert keys first.")


def encoded_keys(keys: Any) -> tuple[Integers, list[str]]:
    """Every key as a number into a list of distinct names."""
    import pyarrow as pa

    if isinstance(keys, tuple) and len(keys) == 2 and isinstance(keys[0], np.ndarray):
        return keys[0].astype(np.int64, copy=False), [key_name(key) for key in keys[1]]
    if isinstance(keys, np.ndarray) and keys.dtype.kind in "iu":
        distinct, numbers = np.unique(keys, return_inverse=True)
        return numbers.astype(np.int64), [str(int(key)) for key in distinct]
    texts = (
        keys
        if isinstance(keys, (pa.Array, pa.ChunkedArray))
        else pa.array([key_name(key) for key in keys], pa.string())
    )
    column = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    if column.null_count:
        raise InvalidData("a key is missing", "Give every value its key.")
    column = column.dictionary_encode()
    return np.asarray(column.indices, dtype=np.int64), [key_name(key) for key in column.dictionary.to_pylist()]
