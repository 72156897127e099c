"""The server of a stream without trust: reports in, a threshold and then unbiased estimates out.

It holds no data that need protection: every report was randomised with ε on the device that sent it, and everything
here is computed from reports. The server has to count each user once, to take nothing that was made under other
settings, and to know its own noise.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Booleans, Floats, Integers, Words
from deniable.checks import check_integer
from deniable.errors import InvalidData, InvalidParameter
from deniable.locking import Turn, in_turn
from deniable.mechanisms import Hybrid
from deniable.simulation import check_noise
from deniable.streams.local.announced_thresholds import AnnouncedThresholds
from deniable.streams.local.answered_ids import AnsweredIds
from deniable.streams.local.heard_reports import HeardReports
from deniable.streams.local.phases import PhasedEstimates, Phases
from deniable.streams.local.renewal import ASKED, RENEWALS
from deniable.streams.local.report_arrays import DUPLICATE, MALFORMED, read_one, read_table, refusals
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.streams.local.stream_report import FIRST, StreamReport
from deniable.streams.local.threshold_choice import RULES_BY_KIND, LocalChoice, LocalRule, SmoothTail
from deniable.streams.released.released_stream import SIMULATION, Released
from deniable.streams.released.windows import WindowEstimate
from deniable.streams.structure.state_values import seal, unseal

_SLAB = 1 << 18  # reports that are looked at together
STATE_VERSION, STATE_KIND = 2, "topl"


class ToPLServer(AnnouncedThresholds):
    """Takes reports of `ToPLClient`, announces a threshold, and publishes one unbiased estimate per second report.

    `first` first-phase reports are taken; then `rule` chooses θ, which may be announced. Until then `theta` is None.
    If settings have a `renewal`, some users keep sending first reports. With renew="auto" θ is looked at again after
    every tenth part of `first` of these, and another one is announced if it is worth it; with renew="asked" only by
    calling `renew`.
    With a public threshold `theta` there is no first phase. Reports that cannot be taken are counted in `refused`, by
    reason. With keep=False only running sums are kept, and memory grows by eight bytes per user id and nothing else.
    Reports without ids cannot be checked for duplicates. With `simulation` the server takes only what simulated devices
    sent, allows an infinite ε, and marks what it publishes. Any number of threads may use one server: a call is done
    before the next one begins.

    >>> from deniable.client import ToPLClient
    >>> server = ToPLServer(epsilon=1.0, bound=10, theta=10.0)
    >>> estimate = server.push(ToPLClient(epsilon=1.0, bound=10).report(4, theta=server.theta), uid="ann")
    >>> server.push(ToPLClient(epsilon=1.0, bound=10).report(4, theta=5.0), uid="bob") is None, dict(server.refused)
    (True, {'made for another θ': 1})
    """

    def __init__(
        self,
        epsilon: float,
        bound: float,
        *,
        first: int = 1 << 16,
        horizon: int = 1 << 20,
        rule: LocalRule | None = None,
        theta: float | None = None,
        keep: bool = True,
        renew: str = "auto",
        simulation: bool = False,
        **settings: Any,
    ) -> None:
        self.protocol = ToPLProtocol(epsilon, bound, **settings)
        check_noise(epsilon, simulation=simulation)
        self.simulation = simulation
        check_integer("first", first, 1, 1 << 40)
        check_integer("horizon", horizon, 1, 1 << 40)
        if renew not in RENEWALS:
            raise InvalidParameter("renew", f"must be one of {', '.join(RENEWALS)}", "Use the default.")
        self.first, self.horizon, self.renewals = first, horizon, renew
        self.rule: LocalRule = SmoothTail() if rule is None else rule
        self._public_theta = None if theta is None else self.protocol.check_theta(theta)
        self.refused: Counter[str] = Counter()
        self._first = HeardReports(self.protocol, horizon)
        self._answered = AnsweredIds()
        self._keep = keep
        self._phases = Phases(self.protocol, keep=keep)
        self._turn = Turn()
        if self._public_theta is not None:
            self._start(LocalChoice(self._public_theta))

    def __repr__(self) -> str:
        state = f"{self.heard:,} of {self.first:,} first reports" if self.theta is None else f"θ = {self.theta:g}"
        end = "; simulation" * self.simulation
        return f"ToPLServer(ε = {self.protocol.epsilon:g}, {state}, {self.published:,} estimates{end})"

    # Reports -------------------------------------------------------------------------------------------------------

    def push(self, report: StreamReport | bytes, uid: int | str | None = None) -> float | None:
        """Take one report. Returns its estimate; None for a first-phase report, and for a refused one."""
        if not isinstance(report, (bytes, StreamReport)):
            raise InvalidData("a report must be a StreamReport or its 16 bytes", "Pass what ToPLClient.report gave.")
        return self._push(read_one(report if isinstance(report, bytes) else report.to_bytes()), uid)

    @in_turn
    def _push(self, wire: NDArray[Any] | None, uid: int | str | None) -> float | None:
        if wire is None:
            self.refused[MALFORMED] += 1
            return None
        if reasons := refusals(wire, self.protocol, self.thetas, simulation=self.simulation):
            self.refused[reasons[0][0]] += 1
            return None
        if uid is not None:
            key = self._answered.key(uid)
            if not self._answered.is_fresh(key):
                self.refused[DUPLICATE] += 1
                return None
            self._answered.add_one(key)
        codes = wire["y"].astype(np.int64)
        if wire["phase"][0] == FIRST:
            self._take_first(codes)
            return None
        return float(self._phases.take(codes, self._phases.marks(wire["theta"]))[0])

    @in_turn
    def push_many(self, reports: Any) -> Floats:
        """Take many reports. Returns the estimates of the second-phase reports that were taken, in order.

        `reports` is an Arrow table or batch with a column `report` of 16 bytes each and, to find duplicates, a column
        `uid` of integers or texts.
        """
        return self._push_many(reports).values

    @in_turn
    def take_many(self, reports: Any) -> PhasedEstimates:
        """As `push_many`, with the phase of each estimate: the number of its θ in `thetas`."""
        return self._push_many(reports)

    def _push_many(self, reports: Any) -> PhasedEstimates:
        wire = read_table(reports)
        keys = self._answered.keys(reports.column("uid")) if "uid" in reports.schema.names else None
        taken = [
            part
            for start in range(0, wire.size, _SLAB)
            for part in self._push_slab(
                wire[start : start + _SLAB], None if keys is None else keys[start : start + _SLAB]
            )
        ]
        values, phases = zip(*taken, strict=True) if taken else ([np.zeros(0)], [np.zeros(0, dtype=np.int64)])
        return PhasedEstimates(np.concatenate(values), np.concatenate(phases).astype(np.uint8))

    def _push_slab(self, wire: NDArray[Any], keys: Words | None) -> list[tuple[Floats, Integers]]:
        """Reports of one phase after the other. If θ is chosen among them, the rest is judged again."""
        estimates: list[tuple[Floats, Integers]] = []
        while wire.size:
            good = np.ones(wire.size, dtype=np.bool_)
            reasons = refusals(wire, self.protocol, self.thetas, simulation=self.simulation)
            for _, where in reasons:
                good &= ~where
            duplicates = np.zeros(wire.size, dtype=np.bool_)
            if keys is not None:
                rows = np.flatnonzero(good)
                known = ~self._answered.fresh(keys[rows])
                duplicates[rows[known]] = True
                good[rows[known]] = False
            stop, missing = wire.size, self._missing
            if missing is not None:
                taken = np.flatnonzero(good & (wire["phase"] == FIRST))
                stop = int(taken[missing - 1]) + 1 if taken.size >= missing else stop
            here = slice(0, stop)
            for reason, where in (*reasons, (DUPLICATE, duplicates)):
                self._count(reason, where[here])
            if keys is not None:
                self._answered.add(keys[here][good[here]])
            codes = wire["y"][here][good[here]].astype(np.int64)
            firsts = wire["phase"][here][good[here]] == FIRST
            if not firsts.all():
                marks = self._phases.marks(wire["theta"][here][good[here]][~firsts].astype(np.float64))
                estimates.append((self._phases.take(codes[~firsts], marks), marks))
            if firsts.any():
                self._take_first(codes[firsts])
            wire, keys = wire[stop:], None if keys is None else keys[stop:]
        return estimates

    def _count(self, reason: str, where: Booleans) -> None:
        number = int(where.sum())
        if number:
            self.refused[reason] += number

    # Released ------------------------------------------------------------------------------------------------------

    @property
    @in_turn
    def variance(self) -> float:
        """Variance of the noise of one estimate, averaged over the distribution that values are believed to have."""
        return self._phases.latest.variance

    @in_turn
    def noise_of(self, phases: NDArray[np.uint8]) -> Floats:
        """The variance of the noise of estimates of these phases, each averaged like `variance`."""
        return self._phases.noise(phases)

    @property
    @in_turn
    def total(self) -> WindowEstimate:
        """The running sum of all published estimates, even if single ones are not kept."""
        return self._phases.total() if self._phases.present else self._phases.latest.total

    @in_turn
    def window(self, start: int, stop: int, *, confidence: float = 0.95, cut: bool = False) -> WindowEstimate:
        """The sum over estimates start … stop − 1, also over several θ, for values as they were; with `cut`, cut at θ.

        The same as `released.sum`.
        """
        return self._released().sum(start, stop, confidence=confidence, cut=cut)

    @property
    @in_turn
    def released(self) -> Released:
        """The published stream, which answers for windows; each value has the noise of its own θ.

        What cutting took is added back, and intervals cover the error of that.
        """
        return self._released()

    def _released(self) -> Released:
        return self._phases.release(self._about())

    @in_turn
    def release_of(self, values: Floats, first: int = 0, phases: NDArray[Any] | None = None) -> Released:
        """Estimates that were kept elsewhere, with everything that is needed to answer for windows.

        `phases` are those that `take_many` gave; without them, all estimates are under the present θ.
        """
        return self._phases.release_of(values, phases, self._about(), first)

    @in_turn
    def about(self) -> dict[str, Any]:
        """Public facts for a file."""
        return self._about()

    def _about(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"method": "topl", "epsilon": self.protocol.epsilon, "theta": self.theta}
        facts |= {"first": self._first.number, "mechanism": self.protocol.mechanism, "rule": self.rule.kind}
        facts |= {SIMULATION: True} if self.simulation else {}
        mixed = self.theta is not None and self.protocol.mechanism == "hybrid"
        return facts | {"alpha": float(Hybrid(self.protocol.epsilon).alpha)} if mixed else facts

    # State ---------------------------------------------------------------------------------------------------------

    @property
    def settings(self) -> dict[str, Any]:
        """Everything public that was decided before the first report, as JSON.

        >>> ToPLServer(epsilon=1.0, bound=10).settings["rule"]
        {'kind': 'smooth tail'}
        """
        if type(self.rule) is not RULES_BY_KIND.get(self.rule.kind):
            raise InvalidParameter("rule", "is not one of this package, so a state cannot name it", "Use one that is.")
        return {
            "protocol": asdict(self.protocol),
            "first": self.first,
            "horizon": self.horizon,
            "rule": {"kind": self.rule.kind, **asdict(self.rule)},  # type: ignore[call-overload]
            "theta": self._public_theta,
            "keep": self._keep,
            "simulation": self.simulation,
            **({"renew": self.renewals} if self.protocol.renewal else {}),
        }

    @in_turn
    def state(self) -> dict[str, Any]:
        """Everything needed to continue elsewhere, as JSON. As secret as the user ids: it shows who has answered.

        The reports in it are randomised already, and the server has no noise of its own to keep secret.

        >>> from deniable.client import ToPLClient
        >>> server = ToPLServer(epsilon=1.0, bound=10, theta=10.0)
        >>> estimate = server.push(ToPLClient(epsilon=1.0, bound=10).report(4, theta=10.0), uid="ann")
        >>> sorted(server.state())[:3]
        ['answered', 'before', 'choice']
        """
        state = {
            "version": STATE_VERSION,
            "kind": STATE_KIND,
            "settings": self.settings,
            "answered": self._answered.state(),
            "refused": dict(self.refused),
            **self._first.state(),
            **self._phases.state(),
        }
        return seal(state)

    @classmethod
    def restore(cls, state: dict[str, Any]) -> ToPLServer:
        """The server that `state()` described. It takes, refuses and publishes what the first one would have.

        >>> from deniable.client import ToPLClient
        >>> server = ToPLServer(epsilon=1.0, bound=10, theta=10.0)
        >>> report = ToPLClient(epsilon=1.0, bound=10).report(4, theta=10.0)
        >>> estimate = server.push(report, uid="ann")
        >>> again = ToPLServer.restore(server.state())
        >>> again.push(report, uid="ann") is None, again.total == server.total
        (True, True)
        """
        of_others = isinstance(state, dict) and state.get("kind") not in (None, STATE_KIND)
        if of_others and state.get("version") != STATE_VERSION:  # otherwise it may as well be damaged
            raise InvalidParameter("state", "is not that of a ToPLServer", "Use dn.streams.restore for publishers.")
        state = unseal(state, STATE_VERSION)
        settings = {"renew": ASKED, **state["settings"]}  # earlier versions renewed only then
        protocol, rule = dict(settings.pop("protocol")), dict(settings.pop("rule"))
        made = cls(**protocol, **settings, rule=RULES_BY_KIND[rule.pop("kind")](**rule))
        made._first.resume(state)
        made._phases.resume(state)
        made._answered = AnsweredIds.restore(state["answered"])
        made.refused.update(state["refused"])
        return made
