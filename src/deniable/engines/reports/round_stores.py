"""Validated reports of several rounds, in memory. What is joined is a user in a round; what is independent is a user.

Reports are sorted by user, round and slot. Blocks are cut between users, and every report carries the number of its
user, so that what a user contributes in several rounds is added up before it is squared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable import arrow_functions as pc
from deniable.arrays import Integers
from deniable.engines.reports.user_blocks import BLOCK_REPORTS, TableBlock
from deniable.tables.schema.rounds import ROTATING, ROUND_COLUMN, Rounds

PERSON_COLUMN = "person"
"""The number of a report's user among all users of all tables."""
_ROUND_BITS = 20


@dataclass(frozen=True, slots=True, eq=False)
class RoundStore:
    """The reports of one table in all rounds."""

    reports: pa.Table
    slots: int
    ids: NDArray[np.int64]
    """One number for each user and round, ascending."""
    starts: Integers
    """Where each user begins among these, and where the last one ends."""

    @property
    def rows(self) -> int:
        """How many reports there are."""
        return int(self.reports.num_rows)

    def read(self, columns: Sequence[str]) -> Iterator[TableBlock]:
        """All reports, block by block, cut between users."""
        chosen = self.reports.select([*columns, PERSON_COLUMN])
        most = max(BLOCK_REPORTS // self.slots, 1)
        first = 0
        while first < self.ids.size:
            following = int(np.searchsorted(self.starts, first + most, side="right")) - 1
            end = int(self.starts[following])
            if end <= first:  # one user with many rounds
                end = int(self.starts[np.searchsorted(self.starts, first, side="right")])
            yield TableBlock(self.ids[first:end], chosen.slice(first * self.slots, (end - first) * self.slots))
            first = end

    def distinct(self, column: str) -> pa.Array:
        """The values that a public column has."""
        return self.reports[column].combine_chunks().unique()

    def view_counts(self, views: int) -> Integers:
        """How many reports there are of each view."""
        return np.bincount(np.asarray(self.reports["view"]), minlength=views)

    @property
    def persons(self) -> int:
        """How many users have sent anything."""
        return max(self.starts.size - 1, 0)


def round_stores(reports: Mapping[str, pa.Table], slots: Mapping[str, int]) -> dict[str, RoundStore]:
    """The valid reports of all tables. User ids are of one type."""
    if not reports:  # a collector that has just begun
        return {}
    everyone = (
        pa.concat_arrays([pc.unique(table["uid"].combine_chunks()) for table in reports.values()]).unique().sort()
    )
    return {name: _store(table, slots[name], everyone) for name, table in reports.items()}


def _store(table: pa.Table, slots: int, everyone: pa.Array) -> RoundStore:
    person = np.asarray(pc.index_in(table["uid"].combine_chunks(), everyone)).astype(np.int64)
    number = table[ROUND_COLUMN].to_numpy().astype(np.int64)
    order = np.lexsort((table["slot"].to_numpy(), number, person))
    ordered = table.take(pa.array(order)).drop_columns(["uid"]).combine_chunks()
    person, number = person[order], number[order]
    firsts = np.arange(0, person.size, slots)
    starts = np.flatnonzero(np.diff(person[firsts], prepend=-1))
    return RoundStore(
        ordered.append_column(PERSON_COLUMN, pa.array(person)),
        slots,
        in_round(person[firsts], number[firsts]),
        np.append(starts, firsts.size),
    )


def in_round(person: Integers, number: Integers) -> Integers:
    """One number for each user and round, in the order of users and then of rounds."""
    return np.asarray((person << _ROUND_BITS) | number)


class PeopleInRounds(Protocol):
    """What has to be known of who answered."""

    @property
    def persons(self) -> int:
        """How many users have sent anything."""

    def distinct(self, column: str) -> pa.Array:
        """The values that a public column has."""


def people_asked(rounds: Rounds, stores: Mapping[str, PeopleInRounds]) -> tuple[float, int]:
    """How many people there are, by those who answered, and in how many rounds they were asked.

    Where rounds rotate, some may not have had their turn yet.
    """
    people, most = [], 0
    for store in stores.values():
        asked = len(store.distinct(ROUND_COLUMN))
        never = 0.0
        if rounds.mode == ROTATING:
            never = math.comb(rounds.count - asked, rounds.answers) / math.comb(rounds.count, rounds.answers)
        people.append(store.persons / (1 - never) if never < 1 else 0.0)
        most = max(most, asked)
    return min(people), most
