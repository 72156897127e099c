"""What private questions look at: values of a warm-up, or sums over an epoch that were added up while it ran.

Both give the same figures: scores of thresholds, and a list of sums with the most that one replaced value moves each of
them by. The noise comes after, in `learn`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from deniable.arrays import Integers
from deniable.randomness import Source
from deniable.streams.central.threshold import PredictedError, Situation, Threshold
from deniable.streams.structure.growing_array import GrowingArray
from deniable.streams.structure.state_values import packed, unpacked

SQUARE_STEPS = 1 << 10
"""Values are squared in steps of θ/2^10, so that sums of squares fit 64 bits for any θ."""
EXCESS_REACH = 3
"""Of a value above θ, at most three times θ counts as excess: what one value may add decides the noise."""
_RUN_LENGTHS, _FEWEST_PAIRS = (1, 32, 128, 512, 2048), 8
_LOOKED_UP = 1 << 16
"""Ranges of so many steps have a table from values to candidates of θ."""
_WHOLE_FLOATS = 1 << 53


@dataclass(frozen=True, slots=True)
class PrivateSum:
    """A sum over values that is asked privately, and by how much one replaced value may move it."""

    name: str
    sensitivity: int
    total: int


def run_lengths(count: int) -> tuple[int, ...]:
    """Lengths of runs that are compared among `count` values: 1, 32, 128, 512, 2,048, if there are eight pairs.

    Windows shorter than 32 values depend on single values more than on what is learnt of runs.

    >>> run_lengths(10_000)
    (1, 32, 128, 512)
    """
    return (1, *(length for length in _RUN_LENGTHS[1:] if 2 * _FEWEST_PAIRS * length <= count))


def run_totals(values: Integers, theta: int, lengths: tuple[int, ...]) -> Integers:
    """How much neighbouring runs of values cut at θ differ, added up over pairs of runs, for every length.

    A value is in at most one pair of every length. Replacing it moves the sum of its run by at most θ, and so the
    distance of the two runs. At length 1, the squares of distances are added up, in steps of θ/2^10: they are 0 to
    2^20.
    """
    cut = np.minimum(values, theta)
    # Floats divide in a tenth of the time, and exactly: θ is below 2^40, so a quotient is an integer or 2^-40 off one.
    steps = np.floor((cut * SQUARE_STEPS).astype(np.float64) / theta).astype(np.int64)
    totals, runs = [np.square(_differences(steps)).sum()], cut
    for shorter, longer in pairwise(lengths):
        joined = longer // shorter
        whole = runs[: runs.size // joined * joined]
        runs = sum((whole[first::joined] for first in range(1, joined)), whole[::joined])
        totals.append(np.abs(_differences(runs)).sum())
    return np.array(totals, dtype=np.int64)


def _differences(sums: Integers) -> Integers:
    """How much each run differs from the next, in pairs."""
    pairs = sums.size // 2
    return np.asarray(sums[: 2 * pairs : 2] - sums[1 : 2 * pairs : 2])


def _questions(
    theta: int, mean: int, above: int, excess: int, reach: int, runs_theta: int, runs: Integers
) -> list[PrivateSum]:
    lengths = _RUN_LENGTHS[: len(runs)]
    return [
        PrivateSum("mean", theta, mean),
        PrivateSum("above", 1, above),
        PrivateSum("excess", max(reach, 1), excess),
        PrivateSum("runs of 1", SQUARE_STEPS**2, int(runs[0])),
        *(
            PrivateSum(f"runs of {length}", runs_theta, int(total))
            for length, total in zip(lengths[1:], runs[1:], strict=True)
        ),
    ]


@dataclass(frozen=True, slots=True, eq=False)
class KeptValues:
    """The values of a warm-up, as steps 0 … top."""

    values: Integers
    top: int

    @property
    def count(self) -> int:
        """How many values there are."""
        return int(self.values.size)

    def choose(
        self,
        rule: Threshold,
        situation: Situation,
        cost: float,
        source: Source,
        earlier: tuple[int, float] | None = None,  # noqa: ARG002 - there is none before a warm-up
    ) -> int:
        """θ by a rule."""
        return rule.draw(self.values, situation, cost, source)  # type: ignore[union-attr]

    def runs_at(self, theta: int) -> int:
        """Where values are cut before runs are compared."""
        return theta

    def questions(self, theta: int) -> list[PrivateSum]:
        """Everything that is asked once θ is known."""
        reach = max(min(EXCESS_REACH * theta, self.top - theta), 0)
        return _questions(
            theta,
            int(np.minimum(self.values, theta).sum()),
            int((self.values > theta).sum()),
            int(np.clip(self.values - theta, 0, reach).sum()),
            reach,
            theta,
            run_totals(self.values, theta, run_lengths(self.count)),
        )


class EpochSums:
    """Sums over the values of an epoch that is being published, from which the next one is learnt.

    Values are counted and added up between candidates of θ, so memory does not grow with the epoch. Runs are compared
    after they were cut at the epoch's own θ. `waiting` values are not added up yet.
    """

    def __init__(self, rule: PredictedError, top: int, theta: int, length: int) -> None:
        self._top, self._theta = top, theta
        self._candidates = rule.candidates(top)
        self._table = np.searchsorted(self._candidates, np.arange(min(top + 1, _LOOKED_UP)), side="left")
        self.length = length
        self.taken = 0
        self._lengths = run_lengths(length)
        self._together = 2 * self._lengths[-1]
        self._counts = np.zeros(self._candidates.size + 1, dtype=np.int64)
        self._sums = np.zeros(self._candidates.size + 1, dtype=np.int64)
        self._runs = np.zeros(len(self._lengths), dtype=np.int64)
        self._waiting = GrowingArray()

    @property
    def count(self) -> int:
        """How many values there are."""
        return self.taken

    def add(self, unit: int) -> None:
        """Take one value."""
        self._waiting.append(min(unit, self._top))
        self.taken += 1
        if len(self._waiting) == self._together:
            self._add_up()

    def extend(self, units: Integers) -> None:
        """Take many values."""
        units = np.minimum(units, self._top)
        self.taken += units.size
        room = self._together - len(self._waiting)
        if units.size >= room:
            self._waiting.extend(units[:room])
            self._add_up()
            units = units[room:]
            whole = units.size // self._together * self._together
            self._absorb(units[:whole])
            units = units[whole:]
        self._waiting.extend(units)

    def _add_up(self) -> None:
        self._absorb(self._waiting.array())
        self._waiting.clear()

    def _absorb(self, values: Integers) -> None:
        if values.size:
            between = self._between(values)
            self._counts += np.bincount(between, minlength=self._counts.size)
            if self._top * values.size < _WHOLE_FLOATS:  # sums in floats are exact, and much faster
                sums = np.bincount(between, weights=values, minlength=self._sums.size)
                self._sums += sums.astype(np.int64)
            else:
                np.add.at(self._sums, between, values)
            self._runs += run_totals(values, self._theta, self._lengths)

    def _between(self, values: Integers) -> Integers:
        """For every value v the number i of candidates with θ_{i−1} < v ≤ θ_i."""
        if self._table.size > self._top:
            return self._table[values]
        return np.asarray(np.searchsorted(self._candidates, values, side="left"))

    def choose(
        self,
        rule: Threshold,
        situation: Situation,
        cost: float,
        source: Source,
        earlier: tuple[int, float] | None = None,
    ) -> int:
        """θ by noisy max."""
        self._add_up()
        assert isinstance(rule, PredictedError)  # noqa: S101 - settings allow no other rule where θ is renewed
        return rule.draw_by_counts(self._above(), situation, cost, source, earlier)

    def _above(self) -> Integers:
        """#{v > θ} for every candidate θ."""
        return np.asarray(self._counts.sum() - np.cumsum(self._counts)[:-1])

    def runs_at(self, theta: int) -> int:  # noqa: ARG002 - that of the epoch, not the next one's
        """Where values are cut before runs are compared."""
        return self._theta

    def questions(self, theta: int) -> list[PrivateSum]:
        """Everything that is asked once θ, a candidate, is known."""
        self._add_up()
        index = int(np.searchsorted(self._candidates, theta))
        # At most EXCESS_REACH·θ beyond θ, up to a candidate.
        last = int(np.searchsorted(self._candidates, (EXCESS_REACH + 1) * theta, side="right")) - 1
        above, upto = self._above(), np.cumsum(self._sums)
        reach = int(self._candidates[last]) - theta
        excess = int(upto[last] - upto[index]) - theta * int(above[index] - above[last]) + reach * int(above[last])
        mean = int(upto[index]) + theta * int(above[index])
        return _questions(theta, mean, int(above[index]), excess, reach, self._theta, self._runs)

    def state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON. As secret as the data."""
        arrays = {"counts": self._counts, "sums": self._sums, "runs": self._runs, "waiting": self._waiting.array()}
        return {"taken": self.taken, **{name: packed(array) for name, array in arrays.items()}}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self.taken = state["taken"]
        self._counts, self._sums, self._runs = (unpacked(state[name]).copy() for name in ("counts", "sums", "runs"))
        self._waiting.extend(unpacked(state["waiting"]))


Evidence = KeptValues | EpochSums
