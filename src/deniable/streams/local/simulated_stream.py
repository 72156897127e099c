"""Both sides of a stream without trust, on an array: for experiments, and for anyone who already has the values."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.errors import InvalidData
from deniable.locking import Turn, in_turn
from deniable.mechanisms._arrays import as_array
from deniable.randomness import Source, release_source
from deniable.streams.local.server import ToPLServer
from deniable.streams.local.stream_protocol import LOG_STEPS, ToPLProtocol
from deniable.streams.released.released_stream import Released

_SLAB = 1 << 18


class ToPL:
    """Both sides of a stream without trust, simulated. The first users send first reports, all others second reports.

    Every value belongs to a different user. Settings are those of `ToPLServer`. `publish` may be called again with more
    values. The reports have the same law as those of devices, value by value. Threads may share it, as they may share a
    server.

    >>> import numpy as np
    >>> from deniable.randomness import SeededSource
    >>> topl = ToPL(epsilon=2.0, bound=1000, first=5_000, source=SeededSource(1), simulation=True)
    >>> estimates = topl.publish(np.arange(25_000) % 20)
    >>> topl.theta, estimates.size
    (28.07, 20000)
    """

    def __init__(
        self,
        epsilon: float,
        bound: float,
        *,
        source: Source | None = None,
        simulation: bool = False,
        **settings: Any,
    ) -> None:
        self._source = release_source(source, simulation=simulation, epsilon=epsilon)
        self.server = ToPLServer(epsilon, bound, simulation=simulation, **settings)

    @property
    def protocol(self) -> ToPLProtocol:
        """What both sides agree on."""
        return self.server.protocol

    @property
    def theta(self) -> float | None:
        """The announced threshold; None before."""
        return self.server.theta

    @property
    def released(self) -> Released:
        """The published stream, which answers for windows."""
        return self.server.released

    @property
    def _turn(self) -> Turn:
        return self.server._turn

    def renew(self) -> float:
        """Choose a new θ, and announce it. See `ToPLServer.renew`."""
        return self.server.renew()

    def publish(self, values: Any) -> Floats:
        """One estimate for every value that comes after the first phase."""
        return self._publish(cut_to(values, float(self.protocol.bound)))

    @in_turn
    def _publish(self, checked: Floats) -> Floats:
        if self.theta is None:
            mine = checked[: self.server.first - self.server._first.since]
            if mine.size:
                self.server._take_first(first_codes(self.protocol, mine, self._source))
            checked = checked[mine.size :]
        parts = [
            part
            for start in range(0, checked.size, _SLAB)
            for part in self._under_thresholds(checked[start : start + _SLAB])
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _under_thresholds(self, values: Floats) -> list[Floats]:
        """Estimates of values that come after the first phase, up to each time that θ is looked at again."""
        parts = []
        while values.size:
            stop, firsts = values.size, np.zeros(values.size, dtype=np.bool_)
            if self.protocol.renewal:
                firsts = self._source.bernoulli(Fraction(self.protocol.renewal), values.size).astype(np.bool_)
                missing, places = self.server._missing, np.flatnonzero(firsts)
                if missing is not None and places.size >= missing:
                    stop = int(places[missing - 1]) + 1
            mine, others = values[:stop][firsts[:stop]], values[:stop][~firsts[:stop]]
            if others.size:
                parts.append(self.server._take_second(self._second(others)))
            if mine.size:
                self.server._take_first(first_codes(self.protocol, mine, self._source))
            values = values[stop:]
        return parts

    def _second(self, values: Floats) -> Integers:
        theta = self.theta
        assert theta is not None  # noqa: S101 - for the type checker
        return second_codes(self.protocol, values, theta, self._source)


def cut_to(values: Any, bound: float) -> Floats:
    """Values as a device cuts them: to [0, bound]. Missing values are 0."""
    array = as_array(values)
    if array.dtype.kind not in "iuf":
        raise InvalidData("values must be numbers", "Convert them to a numeric type first.")
    floats = np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
    return np.clip(floats, 0.0, bound)


def first_codes(protocol: ToPLProtocol, values: Floats, source: Source) -> Integers:
    """First reports of many users, in bulk; values lie in [0, bound]."""
    positions = values / protocol.bound
    if protocol.scale == "log":
        positions = np.log1p(LOG_STEPS * positions) / np.log1p(LOG_STEPS)
    return protocol.wave.draw(np.minimum(positions, 1.0), source)


def second_codes(protocol: ToPLProtocol, values: Floats, theta: float, source: Source) -> Integers:
    """Second reports of many users, in bulk."""
    return protocol.second(theta).draw(np.minimum(values, theta), source)
