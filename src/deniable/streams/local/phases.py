"""Several thresholds one after another: the estimates under each, in the order in which their reports came.

A report names the θ that it was made under, and counts for the phase that this θ began: also if it was on its way when
a later θ was announced. So values under several θ may stand between each other. Each is right on average for a value
cut at its own θ, with the noise of that θ; what cutting takes away is believed phase by phase. A window adds these up.
"""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats, Integers
from deniable.errors import InvalidParameter, QueryRefused
from deniable.streams.local.estimates import Estimates, state_before
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.streams.local.threshold_choice import LocalChoice, told_of
from deniable.streams.local.value_distribution import DistributionBelief, FirstReports
from deniable.streams.released.covariance import IndependentNoise
from deniable.streams.released.released_stream import Released
from deniable.streams.released.stretch import Stretch
from deniable.streams.released.windows import WindowEstimate
from deniable.streams.structure.growing_array import GrowingArray
from deniable.streams.structure.state_values import packed, unpacked
from deniable.streams.structure.value_grid import Grid

MOST_THETAS = 256
"""Thresholds that one stream may ever announce: a value remembers its own in one byte."""


class PhasedEstimates(NamedTuple):
    """Estimates in the order of their reports, and the phase of each: the number of its θ among all announced."""

    values: Floats
    phases: NDArray[np.uint8]


class Phases:
    """The estimates of a server; the last phase is the present one. With keep=False single estimates are forgotten."""

    def __init__(self, protocol: ToPLProtocol, *, keep: bool) -> None:
        self._protocol, self._keep = protocol, keep
        self._all: list[Estimates] = []
        self._codes, self._marks = GrowingArray(np.uint32), GrowingArray(np.uint8)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def present(self) -> Estimates | None:
        """The estimates under the present θ; None before there is one."""
        return self._all[-1] if self._all else None

    @property
    def latest(self) -> Estimates:
        """The estimates under the present θ, refused before there is one."""
        if not self._all:
            raise QueryRefused("there is no threshold yet", "Collect first reports, or call announce().")
        return self._all[-1]

    @property
    def thetas(self) -> tuple[float, ...]:
        """All thresholds so far, in order."""
        return tuple(phase.choice.theta for phase in self._all)

    @property
    def number(self) -> int:
        """How many estimates there are."""
        return sum(phase.number for phase in self._all)

    @property
    def has_room(self) -> bool:
        """Whether another θ may be announced."""
        return len(self._all) < MOST_THETAS

    def check_room(self) -> None:
        """Refuse a θ too many."""
        if not self.has_room:
            raise QueryRefused(f"this stream has announced {MOST_THETAS} thresholds, the most", "Keep the last one.")

    def begin(self, choice: LocalChoice) -> Estimates:
        """From now on, values are cut at this θ."""
        self.check_room()
        self._all.append(Estimates(self._protocol, choice))
        return self._all[-1]

    def learn(self, belief: DistributionBelief, reports: FirstReports) -> None:
        """What first reports say about the present θ: it is about estimates that came since θ was last looked at."""
        phase = self.latest
        phase.revise(told_of(phase.choice.theta, belief, reports), phase.looked_at)
        phase.looked_at = phase.number

    def marks(self, thetas: Floats) -> Integers:
        """The phase of each of these thresholds, all of which were announced. Of equal ones it is the last."""
        announced = np.array(self.thetas)
        order = np.argsort(announced, kind="stable")
        places = np.searchsorted(announced[order], thetas, side="right") - 1
        return np.asarray(order[places], dtype=np.int64)

    def take(self, codes: Integers, marks: Integers) -> Floats:
        """One estimate per report, each under the θ of its phase."""
        estimates = np.empty(codes.size)
        for phase, mine in self._parts(marks):
            estimates[mine] = self._all[phase].take(codes[mine])
        if self._keep and codes.size == 1:
            self._codes.append(int(codes[0]))
            self._marks.append(int(marks[0]))
        elif self._keep:
            self._codes.extend(codes)
            self._marks.extend(marks)
        return estimates

    def _parts(self, marks: Integers) -> list[tuple[int, Any]]:
        """Each phase that occurs, and which reports are its own."""
        if marks.size and marks[0] == marks[-1] and (marks == marks[0]).all():
            return [(int(marks[0]), slice(None))]
        return [(int(phase), np.flatnonzero(marks == phase)) for phase in np.unique(marks)]

    def noise(self, marks: NDArray[Any]) -> Floats:
        """The variance of the noise of estimates of these phases."""
        variances: Floats = np.array([phase.variance for phase in self._all])
        return np.asarray(variances[marks])

    def total(self) -> WindowEstimate:
        """The sum of all estimates, of cut values."""
        totals = [phase.total for phase in self._all]
        losses = [answer.truncation for answer in totals]
        loss = None if any(part is None for part in losses) else math.fsum(part or 0.0 for part in losses)
        value = math.fsum(answer.value for answer in totals)
        return WindowEstimate(value, math.hypot(*(answer.stderr for answer in totals)), truncation=loss)

    def release(self, about: dict[str, Any]) -> Released:
        """All estimates, with everything that is needed to answer for windows."""
        if not self._keep:
            raise InvalidParameter("keep", "is False, so single estimates are gone", "Ask for `total`.")
        marks, codes = self._marks.array(), self._codes.array().astype(np.int64)
        estimates = np.empty(codes.size)
        for phase, mine in self._parts(marks):
            estimates[mine] = self._all[phase].decoded(codes[mine])
        return self.release_of(estimates, marks, about, 0)

    def release_of(self, values: Floats, marks: NDArray[Any] | None, about: dict[str, Any], first: int) -> Released:
        """Estimates from number `first` on, of these phases; without `marks`, all of the present one."""
        self.latest  # noqa: B018 - refuses if there is none
        bound = float(self._protocol.bound)
        stretch, *later = (
            Stretch(0, IndependentNoise(phase.variance), phase.restored_by(bound))
            for phase in (self._all if marks is not None else self._all[-1:])
        )
        made = Released(values, stretch.covariance, Grid(self._protocol.bound), about, stretch.truncation, first=first)
        return replace(made, later=tuple(later), phases=marks) if later else made

    def state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON: the present phase, the earlier ones, and reports in their order."""
        *past, present = [{"choice": asdict(phase.choice), **phase.state()} for phase in self._all] or [
            {"choice": None, **state_before()}
        ]
        codes = packed(self._codes.array()) if self._keep else None
        marks = packed(self._marks.array()) if self._keep and past else None
        return {**present, "codes": codes, "phases": marks, "past": past}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a state. Earlier versions kept the reports of each phase for itself."""
        self._all = []
        for part in [*state.get("past", []), state]:
            if part["choice"] is not None:
                self.begin(LocalChoice(**part["choice"])).resume(part)
        if not self._keep:
            return
        if state.get("phases") is None:
            for mark, part in enumerate([*state.get("past", []), state]):
                codes = unpacked(part["codes"], np.uint32)
                self._codes.extend(codes)
                self._marks.extend(np.full(codes.size, mark))
        else:
            self._codes.extend(unpacked(state["codes"], np.uint32))
            self._marks.extend(unpacked(state["phases"], np.uint8))
