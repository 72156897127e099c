"""The client on one device, for streams without trust. Standard library only.

value ── cut to [0, bound] ──▶ no θ yet: position on the scale ── square wave ──▶ report
                               θ known:  min(value, θ) ────────── hybrid ───────▶ report
                               θ known, and a coin with chance `renewal` says so: as if there were none
"""

from __future__ import annotations

import math
import secrets
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from numbers import Real
from pathlib import Path
from typing import Any

from deniable.errors import InvalidParameter
from deniable.exact import RandBelow, check_randbelow, fraction_coin
from deniable.ledger import Ledger
from deniable.ledger_entries import Charge
from deniable.locking import Turn, in_turn
from deniable.simulation import SimulatedDraws, is_simulated
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.streams.local.stream_report import FIRST, SECOND, StreamReport
from deniable.tables.device.sent_reports import ReportMemory, alone_with, memory_of, name_of_draw

ABOVE_BOUND, BELOW_ZERO, NOT_A_NUMBER = "above the bound", "below zero", "not a number"


class ToPLClient:
    """The one report of one user. Asked again, in either phase and under any θ, it sends the same bytes.

    ε-LDP: in either phase, and whatever θ a server announces, any two values give any report with probabilities at most
    a factor e^ε apart, and there is no second report. `memory` remembers what was sent: a path, or any mutable mapping
    from texts to texts. Without it the client remembers as long as it lives. An infinite ε needs `simulation`. Reports
    of a simulation carry another tag, so that a release does not take them. Threads may share a client, and several
    clients may share a memory. A `ledger` is charged before the report is sent, and refuses a stream that would exceed
    its limit before anything is drawn.

    >>> client = ToPLClient(epsilon=1.0, bound=500)
    >>> first = client.report(31)
    >>> client.report(7, theta=40.0) == first, len(first.to_bytes())
    (True, 16)
    """

    def __init__(
        self,
        epsilon: float,
        bound: float,
        memory: ReportMemory | str | Path | None = None,
        randbelow: RandBelow = secrets.randbelow,
        *,
        simulation: bool = False,
        ledger: Ledger | None = None,
        **settings: Any,
    ) -> None:
        self.protocol = ToPLProtocol(epsilon, bound, **settings)
        check_randbelow(randbelow, epsilon, simulation=simulation)
        self.simulation = simulation or is_simulated(randbelow)
        self._randbelow = SimulatedDraws(randbelow) if self.simulation else randbelow
        self._memory = memory_of(memory, ledger)
        self._alone = alone_with(self._memory)
        self._ledger = ledger
        self._turn = Turn()
        self.clipped: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"ToPLClient(protocol {self.protocol.sha256[:8]}{'; simulation' * self.simulation})"

    def report(self, value: Any, theta: float | None = None) -> StreamReport:
        """The report of the user's value: a first report while no threshold is announced, a second report under θ.

        A value outside [0, bound] counts as the nearer end. Anything that is not a number (None, NaN, a text) counts as
        0: a device that fell silent would reveal that something was odd. `clipped` counts both, on the device only.
        """
        threshold = None if theta is None else self.protocol.check_theta(theta)
        number = _as_float(value)
        with self._alone():
            key = f"topl:{self.protocol.sha256}" + ":simulation" * self.simulation
            if self._ledger is None:
                return self._answer(key, number, threshold)
            name = f"stream {self.protocol.name!r}" if self.protocol.name else "stream"
            what, digest = f"{name} {self.protocol.sha256[:8]}", self.protocol.sha256
            charge = Charge(what, self.protocol.spends, "", digest)
            with self._ledger.account() as account:
                account.check_pinned(digest)
                if key not in self._memory:
                    account.admit(charge)
                drawn = name_of_draw(self._memory, key)
                answer = self._answer(key, number, threshold)
                account.charge(replace(charge, key=drawn))
            return answer

    def _answer(self, key: str, number: float, threshold: float | None) -> StreamReport:
        """What was sent, from memory; drawn and remembered the first time."""
        if key not in self._memory:
            self._memory[key] = self._randomised(self._cut(number), threshold).to_bytes().hex()
        return StreamReport.from_bytes(bytes.fromhex(self._memory[key]))

    def fresh(self, value: Any, theta: float | None = None) -> StreamReport:
        """The report of another user with the same settings, which is not remembered: to try things out."""
        if self._ledger is not None:
            problem = "has a ledger, and fresh answers are not charged to it"
            raise InvalidParameter("this client", problem, "Use report, or a client without a ledger.")
        threshold = None if theta is None else self.protocol.check_theta(theta)
        return self._randomised(self._cut(_as_float(value)), threshold)

    def _randomised(self, value: float, theta: float | None) -> StreamReport:
        protocol, tag = self.protocol, self.protocol.run_tag(simulation=self.simulation)
        if theta is None or self._keeps_to_first_reports():
            y = protocol.wave.draw_one(protocol.position(value), self._randbelow)
            return StreamReport(FIRST, y, 0.0, tag)
        y = protocol.second(theta).draw_one(min(value, theta), self._randbelow)
        return StreamReport(SECOND, y, theta, tag)

    def _keeps_to_first_reports(self) -> bool:
        """Whether this user is one of those who send first reports for ever. The value is not looked at."""
        return self.protocol.renewal > 0 and fraction_coin(Fraction(self.protocol.renewal), self._randbelow)

    def _cut(self, value: float) -> float:
        if math.isnan(value):
            self._count(NOT_A_NUMBER)
            return 0.0
        if value > self.protocol.bound:
            self._count(ABOVE_BOUND)
        elif value < 0:
            self._count(BELOW_ZERO)
        return min(max(value, 0.0), float(self.protocol.bound))

    @in_turn
    def _count(self, reason: str) -> None:
        self.clipped[reason] += 1


def _as_float(value: Any) -> float:
    """A number as a float; NaN for everything else, and for a value that raises when it is looked at."""
    try:
        if isinstance(value, bool) or not isinstance(value, (Real, Decimal)):
            return math.nan
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf  # type: ignore[operator]
    except Exception:
        return math.nan
