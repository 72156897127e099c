"""Several thresholds one after another: the estimates under each, and windows that reach over them.

Estimates are numbered in the order in which their reports came, through all phases. A window's sum is that of its
estimates. Each is right on average for a value cut at the θ of its phase; what cutting takes from a value on average is
known from first reports, with its error, and is added back for the stream as it was.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.errors import QueryRefused
from deniable.streams.local.estimates import Estimates, state_before
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.streams.local.threshold_choice import LocalChoice
from deniable.streams.released.windows import WindowEstimate


class Phases:
    """The estimates of a server, phase by phase; the last phase is the present one."""

    def __init__(self, protocol: ToPLProtocol, *, keep: bool) -> None:
        self._protocol, self._keep = protocol, keep
        self._all: list[Estimates] = []

    @property
    def present(self) -> Estimates | None:
        """The estimates under the present θ; None before there is one."""
        return self._all[-1] if self._all else None

    @property
    def thetas(self) -> tuple[float, ...]:
        """All thresholds so far, in order."""
        return tuple(phase.choice.theta for phase in self._all)

    @property
    def number(self) -> int:
        """How many estimates there are."""
        return sum(phase.number for phase in self._all)

    @property
    def earlier(self) -> int:
        """How many of them have an earlier θ than the present one."""
        return sum(phase.number for phase in self._all[:-1])

    def begin(self, choice: LocalChoice) -> Estimates:
        """From now on, values are cut at this θ."""
        self._all.append(Estimates(self._protocol, choice, keep=self._keep))
        return self._all[-1]

    def total(self) -> WindowEstimate:
        """The sum of all estimates, of cut values."""
        totals = [phase.total for phase in self._all]
        losses = [answer.truncation for answer in totals]
        loss = None if any(part is None for part in losses) else math.fsum(part or 0.0 for part in losses)
        value = math.fsum(answer.value for answer in totals)
        return WindowEstimate(value, math.hypot(*(answer.stderr for answer in totals)), truncation=loss)

    def window(self, start: int, stop: int, *, confidence: float, cut: bool) -> WindowEstimate:
        """The sum over estimates start … stop − 1, of values as they were, or of cut ones.

        `stderr` is that of the noise; `smoothing` here is the standard error of what was added back.
        """
        if not 0 <= start <= stop <= self.number:
            raise QueryRefused(f"there are {self.number:,} estimates", "Ask for a window of these.")
        first, value, noise, added, loss = 0, 0.0, 0.0, 0.0, 0.0
        for phase in self._all:
            low, high = max(start - first, 0), min(stop - first, phase.number)
            first += phase.number
            if low >= high:
                continue
            count, choice = high - low, phase.choice
            value += float(phase.kept()[low:high].sum())
            noise += count * phase.variance
            if choice.mean is None:  # a public θ: nothing is known about what lies above it
                loss += float(phase.loss(count))
            elif not cut:
                value += count * choice.excess
                added += count**2 * choice.excess_stderr**2 + count * choice.excess_square
        known = None if math.isnan(loss) else loss
        errors: tuple[float, float] = (math.sqrt(noise), math.sqrt(added))
        return WindowEstimate(value, errors[0], confidence, smoothing=errors[1], truncation=known)

    def kept(self) -> Floats:
        """All estimates, in order."""
        return np.concatenate([phase.kept() for phase in self._all])

    def state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON: the present phase as it always was, and the earlier ones."""
        *past, present = [{"choice": asdict(phase.choice), **phase.state()} for phase in self._all] or [
            {"choice": None, **state_before(keep=self._keep)}
        ]
        return {**present, "past": past}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._all = []
        for part in [*state.get("past", []), state]:
            if part["choice"] is not None:
                self.begin(LocalChoice(**part["choice"])).resume(part)
