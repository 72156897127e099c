"""First reports as a server counts them: those that a θ was chosen from already, and those since."""

from __future__ import annotations

from typing import Any

import numpy as np

from deniable.arrays import Integers
from deniable.mechanisms.reconstruction import count_outputs
from deniable.streams.local.renewal import weight_of_earlier
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.streams.local.value_distribution import FirstReports, bins_of
from deniable.streams.structure.state_values import packed, unpacked


class HeardReports:
    """Counts of first reports by bins of outputs. Earlier ones count less after the stream has changed."""

    def __init__(self, protocol: ToPLProtocol, horizon: int) -> None:
        self._protocol, self._horizon = protocol, horizon
        self._window = protocol.wave.window
        self._bins = bins_of(self._window)
        self._counts = np.zeros(-(-self._window.outputs // (self._window.inputs // self._bins)))
        self._earlier = np.zeros_like(self._counts)
        self._before = 0

    @property
    def since(self) -> int:
        """First reports since the last θ; without a `renewal`, all of them."""
        return int(self._counts.sum())

    @property
    def number(self) -> int:
        """All first reports."""
        return self._before + self.since

    def take(self, codes: Integers) -> None:
        """Count first reports."""
        self._counts += count_outputs(self._window, codes, self._bins)

    @property
    def weight(self) -> float:
        """How much earlier first reports still count: less than 1 if the stream has changed since the last θ."""
        return weight_of_earlier(self._earlier, self._counts)

    def reports(self) -> FirstReports:
        """All of them, earlier ones by their weight."""
        return FirstReports(self._protocol, self.weight * self._earlier + self._counts, self._horizon)

    def chosen(self) -> None:
        """A θ was chosen from them; if there will be others, these wait for no choice any more."""
        if self._protocol.renewal:
            self._before += self.since
            self._earlier = self.weight * self._earlier + self._counts
            self._counts = np.zeros_like(self._counts)

    def state(self) -> dict[str, Any]:
        """Everything needed to go on, as JSON."""
        earlier = packed(self._earlier) if self._before else None
        return {"counts": packed(self._counts.astype(np.int64)), "before": self._before, "earlier": earlier}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from a state."""
        self._counts += unpacked(state["counts"])
        self._before = state.get("before", 0)
        if state.get("earlier") is not None:  # earlier versions forgot them
            self._earlier += unpacked(state["earlier"], np.float64)
