"""Users who are in more than one group of reports: they would count twice, so such groups are not asked together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidParameter
from deniable.tables.specification.specification import Specification
from deniable.wording import counted


class NamedUsers(Protocol):
    """Reports of a table that know whose they are."""

    def user_ids(self) -> Iterator[NDArray[np.generic]]:
        """The ids of all users, as they were reported."""


ReportGroup = tuple[Specification, bool, Mapping[str, Any]]
"""A specification, whether it is a simulation, and stores."""


def check_disjoint(groups: Sequence[ReportGroup], shared_by: Callable[[Sequence[Mapping[str, Any]]], int]) -> None:
    """Refuse groups that cannot be asked together; `shared_by` counts users that are in several."""
    if not groups:
        raise InvalidParameter("reports", "are an empty list", "Give a folder for each group of users.")
    if any(collection.rounds is not None for collection, _, _ in groups):
        raise InvalidParameter("reports", "have several rounds", "Open such groups one at a time.")
    if any(collection.tables != groups[0][0].tables for collection, _, _ in groups):
        raise InvalidParameter("reports", "are of different tables", "Plan the second group for the same tables.")
    if len({simulation for _, simulation, _ in groups}) > 1:
        raise InvalidParameter("reports", "mix a simulation with a release", "Open the two apart.")
    if shared := shared_by([stores for _, _, stores in groups]):
        problem = f"have {counted(shared, 'user')} in more than one group: they would count twice"
        raise InvalidParameter("reports", problem, "Let every person answer in one group only.")


def shared_users(groups: Sequence[Mapping[str, NamedUsers]]) -> int:
    """How many users have reports, in any table, in more than one group."""
    ids = [_ids(stores) for stores in groups]
    twice = [np.intersect1d(*_alike(left, right)) for left, right in combinations(ids, 2)]
    return len(set().union(*(shared.tolist() for shared in twice)))


def _ids(stores: Mapping[str, NamedUsers]) -> NDArray[np.generic]:
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
