"""A publisher: values in, private values out, one for one, for ever.

The first m values (the warm-up) choose the threshold and are never published. Every later value is cut at θ, added to
its block, and answered with a private value: a prediction inside a block, and at its end what makes the block add up to
its noisy sum.

Privacy, for neighbours that differ in one value (replace one). The value is either in the warm-up or published, and
each part looks at its own values alone, so ε covers both (parallel composition). In the warm-up, θ, the mean, the mean
square and the share above θ are four private answers one after another, whose shares add up to ε (sequential
composition; each may depend on what the earlier ones told). What is published is `Perturber`'s, with ε. Block size
and tree are chosen from public settings. How many values there are, and when they come, is not hidden.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import asdict, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from deniable.errors import InvalidParameter, QueryRefused, SimulationOnly
from deniable.notebook import html_table
from deniable.randomness import SecureSource, Source, release_source
from deniable.streams.covariance import TreeNoise
from deniable.streams.hierarchy import Floats, Integers
from deniable.streams.layout import Layout
from deniable.streams.perturber import ChunkNoise, Perturber
from deniable.streams.record import SLAB, Record, measured_smoothing, published_values
from deniable.streams.released import Released, Smoothing, Truncation
from deniable.streams.settings import Settings, check_possible
from deniable.streams.smoother import publish_blocks
from deniable.streams.warmup import Learnt, learn

STATE_VERSION = 1


class Publisher:
    """ε-DP for one replaced value. `push` and `push_many` publish, `flush` ends, `state` and `restore` move a stream.

    The noise is a function of (key, settings, chunk, node): a publisher that is restored from a state publishes exactly
    what the first one would have. Two publishers must never share a key, settings and name for different values; by
    default every publisher draws a key of its own. `keep=False` forgets what was published, for streams without end.

    >>> import deniable as dn
    >>> tops = dn.streams.ToPS(1.0, 100, warmup=1000, horizon=1000, source=dn.SeededSource(1), simulation=True)
    >>> private = tops.push_many([5, 6, 7, 8] * 1000)
    >>> tops
    ToPS(epsilon=1; 3,000 published)
    >>> len(private)
    3000
    """

    kind: ClassVar[str] = "publisher"

    def __init__(
        self,
        settings: Settings,
        *,
        key: bytes | None = None,
        source: Source | None = None,
        simulation: bool = False,
        keep: bool = True,
    ) -> None:
        if not settings.threshold.private and not simulation:
            raise InvalidParameter(
                "threshold", "is not private", "Use it with simulation=True, on data that need no protection."
            )
        if source is None:
            key = SecureSource.new_key() if key is None else key
            source = SecureSource(key)
        elif key is not None:
            raise InvalidParameter("key", "and source exclude each other", "Give one of them.")
        source = release_source(source, simulation=simulation)
        self.settings, self.plan, self._key = settings, settings.plan, key
        check_possible(settings, self.plan)
        digest = hashlib.sha256(json.dumps(settings.describe(), sort_keys=True).encode()).hexdigest()
        self._source = source.stream("deniable stream", digest)
        self._grid = settings.grid
        self._plain = settings.grid.low == 0 and settings.grid.resolution == 1
        self._top = settings.grid.top
        self._warm: list[Integers] = []
        self._warm_count = 0
        self._waiting: list[int] = []  # warm-up values that came one by one
        self._learnt: Learnt | None = None
        self._ended = False
        self._missing = 0.0  # what flush added to the last value
        self._block = 0  # number of the open block, through all chunks
        self._sum = self._over = 0  # the open block's cut values, and how many
        self._rate = 0.0
        self._memory: list[Any] = []
        self._theta = self._cut = 0
        self._length = 0
        self._noise: tuple[int, ChunkNoise] | None = None
        self._ready: list[int] = []  # noise of the next blocks of one value, last first
        self._record = Record(keep=keep)
        if settings.warmup == 0:
            self._start(np.zeros(0, dtype=np.int64))

    def __repr__(self) -> str:
        where = "warming up" if self.warming_up else f"{self.published:,} published"
        return f"{type(self).__name__}(epsilon={self.settings.epsilon:g}; {where})"

    def _repr_html_(self) -> str:
        """Public settings, and what is published, for notebooks."""
        settings, plan = self.settings, self.plan
        rows: list[tuple[str, object]] = [
            ("ε", f"{settings.epsilon:g}"),
            ("values", f"{settings.grid.low:g} to {settings.grid.high:g}, in steps of {settings.grid.resolution:g}"),
            ("warm-up", f"{settings.warmup:,} values, never published"),
            ("chunks, blocks, fan-out", f"{plan.horizon:,}, {plan.block:,}, {plan.fanout}"),
            ("state", "warming up" if self.warming_up else f"{self.published:,} published"),
        ]
        if self._learnt is not None:
            rows.append(("θ", f"{settings.grid.value(self._learnt.theta):g}"))
        return html_table(("", type(self).__name__), rows)

    # What is known -------------------------------------------------------------------------------------------------

    @property
    def warming_up(self) -> bool:
        """Whether values are still consumed without being published."""
        return self._learnt is None

    @property
    def learnt(self) -> Learnt | None:
        """The private answers of the warm-up, once there are any. Public."""
        return self._learnt

    @property
    def published(self) -> int:
        """How many values were published."""
        return int(Layout(self.plan.horizon, self.plan.block).position(np.array([self._block]))[0]) + self._over

    @property
    def consumed(self) -> int:
        """How many values were taken in, the warm-up included."""
        return self.settings.warmup + self.published if not self.warming_up else self._warm_count + len(self._waiting)

    @property
    def released(self) -> Released:
        """Everything published so far, with its standard errors."""
        if self.warming_up:
            more = self.settings.warmup - self.consumed
            raise QueryRefused("nothing is published during the warm-up", f"Push {more:,} more values first.")
        if not self._record.keep:
            raise QueryRefused("this publisher forgets what it publishes", "Keep its output, or use keep=True.")
        return self.release_of(self._published_values())

    def release_of(self, steps: NDArray[Any], *, first: int = 0, timestamps: NDArray[Any] | None = None) -> Released:
        """Published values that the caller kept, in steps of the grid, from number `first` on, with their errors.

        >>> import deniable as dn
        >>> tops = dn.streams.ToPS(1.0, 100, warmup=1000, horizon=1000, source=dn.SeededSource(1), simulation=True)
        >>> private = tops.push_many([5, 6, 7, 8] * 1000)
        >>> len(tops.release_of(private))
        3000
        """
        if self._learnt is None:
            raise QueryRefused("nothing is published during the warm-up", "Push more values first.")
        truncation = Truncation(
            self._theta,
            self._top,
            self._learnt.above,
            self._learnt.above_stderr,
            self.settings.expectation.tail,
        )
        return Released(
            steps,
            self._covariance(),
            self._grid,
            self._about(),
            truncation,
            self._smoothing(),
            timestamps,
            first,
        )

    # Publishing ----------------------------------------------------------------------------------------------------

    def push(self, value: float) -> float | None:
        """Take one value; its private stand-in, or None during the warm-up. A refused value changes nothing.

        >>> import deniable as dn
        >>> tops = dn.streams.ToPS(1.0, 100, warmup=2, horizon=1000, source=dn.SeededSource(1), simulation=True)
        >>> [tops.push(value) is None for value in (5, 6, 7)]
        [True, True, False]
        """
        if self._ended:
            self._refuse_after_end()
        unit = value if type(value) is int and self._plain and value >= 0 else self._grid.unit(value)
        if not self._theta:
            self._waiting.append(min(unit, self._top))
            if self._warm_count + len(self._waiting) == self.settings.warmup:
                self._warm.append(np.array(self._waiting, dtype=np.int64))
                self._waiting = []
                self._start(np.concatenate(self._warm))
            return None
        if unit > self._cut:
            unit = self._cut
        over = self._over + 1
        if over < self._length:
            self._over = over
            self._sum += unit
            result = self._rate
        elif self._ready and self.plan.block == 1:
            result = unit + self._ready.pop()
            self._block += 1
            if self._record.keep:
                self._record.singles.append(result)
        else:
            result = self._close(unit)
        return result if self._plain else self._grid.value(result)

    def forget(self) -> None:
        """From now on keep nothing that is published, so that memory stays bounded for ever.

        >>> import deniable as dn
        >>> tops = dn.streams.ToPS(1.0, 100, warmup=1000, horizon=1000, source=dn.SeededSource(1), simulation=True)
        >>> private = tops.push_many([5, 6, 7, 8] * 1000)
        >>> tops.forget()
        >>> tops.push(5) is None
        False
        """
        self._record.forget()

    def check(self, values: Any) -> None:
        """Refuse what `push_many` would refuse, and do nothing else.

        >>> import deniable as dn
        >>> tops = dn.streams.ToPS(1.0, 100, warmup=1000, horizon=1000, source=dn.SeededSource(1), simulation=True)
        >>> private = tops.push_many([5, 6, 7, 8] * 1000)
        >>> tops.check([5, 6])
        """
        if self._ended:
            self._refuse_after_end()
        self._grid.units(values)

    def push_many(self, values: Any) -> NDArray[Any]:
        """Take many values; private stand-ins for those that came after the warm-up. All are refused if one is.

        >>> import deniable as dn
        >>> tops = dn.streams.ToPS(1.0, 100, warmup=1000, horizon=1000, source=dn.SeededSource(1), simulation=True)
        >>> private = tops.push_many([5, 6, 7, 8] * 1000)
        >>> private.size
        3000
        """
        if self._ended:
            self._refuse_after_end()
        units = self._grid.units(values)
        if self.warming_up:
            if self._waiting:
                self._warm.append(np.array(self._waiting, dtype=np.int64))
                self._warm_count += len(self._waiting)
                self._waiting = []
            take = self.settings.warmup - self._warm_count
            self._warm.append(units[:take].copy())
            self._warm_count += self._warm[-1].size
            units = units[take:]
            if self._warm_count < self.settings.warmup:
                return self._grid.values(np.zeros(0, dtype=np.int64 if self.plan.block == 1 else np.float64))
            self._start(np.concatenate(self._warm))
        cut = np.minimum(units, self._cut)
        self._ready = []
        result: NDArray[Any] = self._publish_ones(cut) if self.plan.block == 1 else self._publish_blocks(cut)
        return self._grid.values(result)

    def flush(self) -> float:
        """End the stream: close the open block early. What is returned is to be added to the last published value.

        `released` has it added already. After this nothing more can be pushed. 0 if no block was open.

        >>> import deniable as dn
        >>> tops = dn.streams.ToPS(1.0, 100, warmup=1000, horizon=1000, source=dn.SeededSource(1), simulation=True)
        >>> private = tops.push_many([5, 6, 7, 8] * 1000)
        >>> tops.flush()
        0
        """
        if self._ended:
            return 0
        self._ended = True
        if self.warming_up or self._over == 0:
            return 0
        self._missing = self._sum + int(self._leaves(self._block, 1)[0]) - self._over * self._rate
        return self._grid.resolution * self._missing

    def _refuse_after_end(self) -> None:
        raise InvalidParameter("this publisher", "was ended by flush()", "Start another one for more values.")

    def _start(self, values: Integers) -> None:
        learnt = learn(values, self.settings, self.plan, self._source.stream("warm-up"))
        self._warm, self._warm_count = [], 0
        self._begin(learnt)

    def _begin(self, learnt: Learnt) -> None:
        self._learnt, self._theta = learnt, learnt.theta
        self._cut = min(learnt.theta, self._top)  # an uncapped θ may lie above the bound
        plan = self.plan
        self._perturber = Perturber(
            self.settings.epsilon, learnt.theta, plan.horizon, plan.block, plan.fanout, plan.consistent
        )
        self._layout = Layout(plan.horizon, plan.block)
        self._rate = self._initial_rate
        self._memory = plan.smoother.begin(self._rate, plan.block)
        self._length = self._layout.length(0)

    @property
    def _initial_rate(self) -> float:
        assert self._learnt is not None  # noqa: S101 - for the type checker
        return self._theta / 2 if self._learnt.mean is None else self._learnt.mean

    def _leaves(self, block: int, count: int) -> Integers:
        """Noise of `count` blocks of one chunk."""
        chunk, leaf = divmod(block, self._layout.blocks)
        if self._noise is None or self._noise[0] != chunk:
            self._noise = (chunk, self._perturber.noise(self._source, chunk))
        return self._noise[1].leaves(leaf, leaf + count)

    def _close(self, unit: int) -> float:
        """The last value of a block, one at a time."""
        if self.plan.block == 1:
            ahead = min(4096, self._layout.blocks - self._block % self._layout.blocks)
            self._ready = self._leaves(self._block, ahead).tolist()[::-1]
            single: int = unit + self._ready.pop()
            self._block += 1
            if self._record.keep:
                self._record.singles.append(single)
            return single
        total = self._sum + unit + int(self._leaves(self._block, 1)[0])
        result = total - (self._length - 1) * self._rate
        self._advance(np.array([total]), np.array([self._length]))
        return result

    def _advance(self, totals: Integers, lengths: Integers) -> Floats:
        """Complete blocks are known: remember them, and predict. The rates that held inside these blocks."""
        rates, self._memory = self.plan.smoother.follow(self._memory, totals, lengths)
        inside = np.concatenate(([self._rate], rates[:-1]))
        self._rate = float(rates[-1])
        self._block += totals.size
        self._sum = self._over = 0
        self._length = self._layout.length(self._block)
        self._record.add(totals)
        return inside

    def _publish_ones(self, cut: Integers) -> Integers:
        parts, start = [], 0
        while start < cut.size:
            count = min(cut.size - start, self._layout.blocks - self._block % self._layout.blocks)
            parts.append(cut[start : start + count] + self._leaves(self._block, count))
            self._block += count
            start += count
            self._record.add(parts[-1])
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def _publish_blocks(self, cut: Integers) -> Floats:
        result = np.empty(cut.size)
        start, block = 0, self.plan.block
        while start < cut.size:
            left = self._length - self._over
            regular = self._over == 0 and self._length == block
            # Blocks of full length that are complete in these values and in this chunk, a slab at a time.
            until_short = self._layout.blocks - self._block % self._layout.blocks
            if self._layout.length(self._layout.blocks - 1) != block:
                until_short -= 1
            count = min((cut.size - start) // block, until_short, max(SLAB // block, 1)) if regular else 0
            if count:
                stop = start + count * block
                totals = cut[start:stop].reshape(count, block).sum(1) + self._leaves(self._block, count)
                rates = self._advance(totals, np.full(count, block))
                result[start:stop] = publish_blocks(totals, rates, block)
            else:
                stop = min(start + left, cut.size)
                self._extend(cut[start:stop], result[start:stop])
            start = stop
        return result

    def _extend(self, cut: Integers, out: Floats) -> None:
        """Part of one block, possibly up to its end."""
        self._sum += int(cut.sum())
        ends = self._over + cut.size == self._length
        out[:] = self._rate
        if not ends:
            self._over += cut.size
            return
        total = self._sum + int(self._leaves(self._block, 1)[0])
        out[-1] = total - (self._length - 1) * self._rate
        self._advance(np.array([total]), np.array([self._length]))

    # Released ------------------------------------------------------------------------------------------------------

    def _published_values(self) -> NDArray[Any]:
        values = published_values(
            self._record.totals(), self._layout, self.plan.smoother, self._initial_rate, self._over
        )
        if self._missing:
            values[-1] += self._missing
        return values

    def _covariance(self) -> TreeNoise:
        assert self._learnt is not None  # noqa: S101 - for the type checker
        plan, node = self.plan, self._perturber.node_variance
        layout, start = self._ended_layout(), self._learnt.mean_variance
        return TreeNoise(layout, plan.fanout, plan.consistent, node, start, plan.smoother)

    def _ended_layout(self) -> Layout:
        return replace(self._layout, end=self.published if self._ended and self._over else None)

    def _smoothing(self) -> Smoothing | None:
        assert self._learnt is not None  # noqa: S101 - for the type checker
        if self.plan.block == 1:
            return None
        expected, spread = self.settings.expectation, self._learnt.spread
        return measured_smoothing(
            self._record.totals(),
            self._ended_layout(),
            node_variance=self._perturber.node_variance,
            spread=(expected.spread * self._theta) ** 2 if spread is None else spread,
            expected_drift=(expected.drift * self._theta) ** 2,
        )

    def _about(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"method": self.settings.method, "epsilon": self.settings.epsilon}
        if self.settings.delta:
            facts["delta"] = self.settings.delta
        facts |= {
            "theta": float(self._grid.value(self._theta)),
            "warmup": self.settings.warmup,
            "r": self.plan.horizon,
            "b": self.plan.fanout,
            "s": self.plan.block,
            "chunk": self._block // self._layout.blocks,
        }
        return facts

    # State ---------------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere, as JSON. As secret as the data: it holds values and the noise's key.

        >>> import deniable as dn
        >>> tops = dn.streams.ToPS(1.0, 100, warmup=1000, horizon=1000, source=dn.SeededSource(1), simulation=True)
        >>> private = tops.push_many([5, 6, 7, 8] * 1000)
        >>> sorted(tops.state())[:3]
        ['block', 'ended', 'keep']
        """
        if self._key is None and not self._source.simulation:
            raise InvalidParameter("source", "was handed in, so its key is not known here", "Use key= instead.")
        waiting = [*self._warm, np.array(self._waiting, dtype=np.int64)]
        return {
            "version": STATE_VERSION,
            "kind": self.kind,
            "settings": self.settings.describe(),
            "plan": [self.plan.block, self.plan.fanout],
            "key": None if self._key is None else self._key.hex(),
            "keep": self._record.keep,
            "ended": self._ended,
            "warm": _packed(np.concatenate(waiting)) if self.warming_up else None,
            "learnt": None if self._learnt is None else asdict(self._learnt),
            "block": self._block,
            "sum": self._sum,
            "over": self._over,
            "missing": self._missing,
            "rate": self._rate,
            "memory": self._memory,
            "totals": _packed(self._record.totals()) if self._record.keep else None,
        }

    @classmethod
    def restore(cls, state: dict[str, Any], *, source: Source | None = None) -> Self:
        """The publisher that `state()` described. A simulation's source has to be handed in again.

        >>> import deniable as dn
        >>> tops = dn.streams.ToPS(1.0, 100, warmup=1000, horizon=1000, source=dn.SeededSource(1), simulation=True)
        >>> private = tops.push_many([5, 6, 7, 8] * 1000)
        >>> again = dn.streams.ToPS.restore(tops.state(), source=dn.SeededSource(1))
        >>> again.published == tops.published
        True
        """
        if state.get("version") != STATE_VERSION:
            raise InvalidParameter("state", "was written by another version", "Use the version that wrote it.")
        if state["key"] is None and source is None:
            raise SimulationOnly
        made = cls.__new__(cls)
        key = None if state["key"] is None else bytes.fromhex(state["key"])
        settings = Settings.read(state["settings"])
        Publisher.__init__(made, settings, key=key, source=source, simulation=key is None, keep=state["keep"])
        if [made.plan.block, made.plan.fanout] != state["plan"]:
            raise InvalidParameter(
                "state", "was planned by another version or machine", "Use that one, or give block and fanout."
            )
        if state["learnt"] is None:
            made._warm = [_unpacked(state["warm"])]
            made._warm_count = made._warm[0].size
        else:
            made._begin(Learnt(**state["learnt"]))
            if state["keep"]:
                made._record.add(_unpacked(state["totals"]))
            made._block, made._sum, made._over = state["block"], state["sum"], state["over"]
            made._missing, made._rate, made._memory = state["missing"], state["rate"], state["memory"]
            made._length = made._layout.length(made._block)
        made._ended = state["ended"]
        return made


def _packed(values: Integers) -> str:
    return base64.b64encode(values.astype("<i8").tobytes()).decode()


def _unpacked(text: str) -> Integers:
    return np.frombuffer(base64.b64decode(text), dtype="<i8").astype(np.int64)
