"""Users who are in more than one group of reports: they would count twice, so such groups are not asked together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from deniable.engines.reports.user_blocks import Store


def shared_users(groups: Sequence[Mapping[str, Store]]) -> int:
    """How many users have reports, in any table, in more than one group."""
    ids = [_ids(stores) for stores in groups]
    twice = [np.intersect1d(*_alike(left, right)) for left, right in combinations(ids, 2)]
    return len(set().union(*(shared.tolist() for shared in twice)))


def _ids(stores: Mapping[str, Store]) -> NDArray[np.generic]:
    """The distinct ids of all tables, as texts if some are texts."""
    blocks = [ids for store in stores.values() for ids in store.user_ids()]
    if not blocks:
        return np.zeros(0, dtype=np.int64)
    if not all(_are_numbers(block) for block in blocks):
        blocks = [block.astype(str) for block in blocks]
    return np.unique(np.concatenate(blocks))


def _are_numbers(ids: NDArray[np.generic]) -> bool:
    return ids.dtype.kind in "iu"


def _alike(left: NDArray[np.generic], right: NDArray[np.generic]) -> tuple[NDArray[np.generic], NDArray[np.generic]]:
    """Two lists of ids in one type: 7 and "7" are the same user."""
    numbers = _are_numbers(left) and _are_numbers(right)
    return (left, right) if numbers else (left.astype(str), right.astype(str))
