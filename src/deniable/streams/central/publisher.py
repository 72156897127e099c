"""A publisher: values in, private values out, one for one, for ever.

The first m values (the warm-up) choose the threshold and are never published. Every later value is cut at θ, added to
its block, and answered with a private value: a prediction inside a block, and at its end whatever makes the block add
up to its noisy sum. With `renew`, everything is learnt again after each epoch, for the next one.

Privacy, for neighbours that differ in one value (replace one). The value is in the warm-up or in one epoch, and each
part looks at its own values alone, so ε covers all of them (parallel composition). What is learnt is a list of private
answers one after another, whose shares add up to ε in the warm-up and to a share of ε in an epoch (sequential
composition). What is published is `Perturber`'s, with the rest of ε. Block size and tree follow from public settings
and private answers. How many values there are, and when they come, is not hidden.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from deniable.accounting import Spending
from deniable.arrays import Integers
from deniable.errors import InvalidParameter, QueryRefused, SimulationOnly
from deniable.locking import Turn, in_turn
from deniable.notebook import html_table
from deniable.randomness import SecureSource, Source, release_source
from deniable.simulation import NOTE
from deniable.streams.central.block_publisher import BlockPublisher, state_before
from deniable.streams.central.epochs import Epochs, begin
from deniable.streams.central.evidence import KeptValues
from deniable.streams.central.perturber import own_noise
from deniable.streams.central.published_epochs import EpochFacts
from deniable.streams.central.release import release
from deniable.streams.central.settings import Settings, check_possible
from deniable.streams.central.stream_forecast import StreamPlan
from deniable.streams.central.warmup import Learnt, learn, public_rows
from deniable.streams.released.released_stream import Released
from deniable.streams.structure.fence import Fence, copy_refused
from deniable.streams.structure.growing_array import GrowingArray
from deniable.streams.structure.state_values import packed, seal, unpacked, unseal

STATE_VERSION = 4


class Publisher:
    """Publishes a stream, with ε-DP for one replaced value. `flush` ends it, `state` and `restore` move it.

    The noise is a function of (key, settings, epoch, chunk, node): a publisher restored from a state publishes exactly
    what the first one would have. Only one of them continues: as soon as one does, the other copies on this machine are
    refused. Two publishers must never share a key, settings and name for different values: in one process the second is
    refused, and by default every publisher draws a key of its own. `keep=False` forgets what was published, for streams
    without end. Any number of threads may use one publisher: a call is done before the next one begins. A run that
    protects nobody (a seeded source, an infinite ε, a threshold that is not private) needs `simulation`, and what it
    publishes says so.

    >>> import deniable as dn
    >>> tops = dn.streams.ToPS(1.0, 100, warmup=1000, horizon=1000, source=dn.SeededSource(1), simulation=True)
    >>> private = tops.push_many([5, 6, 7, 8] * 1000)
    >>> tops
    ToPS(epsilon=1; 3,000 published; simulation)
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
        self._set_up(settings, key, source, simulation=simulation, keep=keep, goes_on=False)

    def _set_up(
        self,
        settings: Settings,
        key: bytes | None,
        source: Source | None,
        *,
        simulation: bool,
        keep: bool,
        goes_on: bool,
    ) -> None:
        """Set up a new publisher, or one that goes on from a state."""
        if not settings.threshold.private and not simulation:
            raise InvalidParameter("threshold", "is not private", "Use it with simulation=True, on data of nobody.")
        if source is None:
            key = SecureSource.new_key() if key is None else key
            source = SecureSource(key)
        elif key is not None:
            raise InvalidParameter("key", "and source exclude each other", "Give one of them.")
        source = release_source(source, simulation=simulation, epsilon=settings.epsilon)
        self.settings, self.simulation, self._key = settings, simulation, key
        if not goes_on:  # otherwise it was checked when the stream began
            check_possible(settings)
        self._source = own_noise(source, settings.digest, given=key is None, goes_on=goes_on)
        self._grid, self._top = settings.grid, settings.grid.top
        self._plain = settings.grid.low == 0 and settings.grid.resolution == 1
        self._keep = keep
        self._warm = GrowingArray()  # values that wait for the end of the warm-up
        self._blocks: BlockPublisher | Epochs | None = None  # as soon as something is learnt
        self._open: BlockPublisher | Epochs | None = None  # the same, unless it has ended or a state was handed out
        self._ended = False
        self._fence = None if simulation else Fence()  # simulations go on from wherever they like
        self._waiting = False  # a state was handed out since the last value
        self._turn = Turn()
        self._free = self._turn.free
        if settings.warmup == 0:
            self._begin(self._learn())

    def __repr__(self) -> str:
        where = "warming up" if self.warming_up else f"{self.published:,} published"
        return f"{type(self).__name__}(epsilon={self.settings.epsilon:g}; {where}{'; simulation' * self.simulation})"

    @property
    def spends(self) -> Spending:
        """What the whole stream costs, however long it is: (ε, δ) for one replaced value."""
        return self.settings.spends

    def _repr_html_(self) -> str:
        """Public settings, and what is published, for notebooks."""
        rows = public_rows(self.settings, self.plan, self.learnt, self.published)
        return html_table(("", type(self).__name__), rows, notes=[NOTE] * self.simulation)

    # What is known -------------------------------------------------------------------------------------------------

    @property
    def warming_up(self) -> bool:
        """Whether values are still consumed without being published."""
        return self._blocks is None

    @property
    def learnt(self) -> Learnt | None:
        """The private answers that hold now, once there are any. Public."""
        return None if self._blocks is None else self._blocks.learnt

    @property
    def plan(self) -> StreamPlan:
        """Blocks and tree that hold now, or are expected."""
        return self.settings.plan if self._blocks is None else self._blocks.plan

    @property
    @in_turn
    def notice(self) -> str | None:
        """A warning from published numbers, if any: the stream presses against θ, or has moved. Free, and public."""
        return None if self._blocks is None else self._blocks.notice()

    @property
    @in_turn
    def published(self) -> int:
        """How many values were published."""
        return 0 if self._blocks is None else self._blocks.published

    @property
    @in_turn
    def consumed(self) -> int:
        """How many values were taken in, the warm-up included."""
        return len(self._warm) if self._blocks is None else self.settings.warmup + self._blocks.published

    @in_turn
    def epoch_facts(self, after: int = 0) -> list[EpochFacts]:
        """What is public about every epoch that has begun, from number `after` on: all that a reader needs.

        >>> tops.epoch_facts()[0].begin
        0
        """
        return [] if self._blocks is None else self._blocks.facts(after)

    @property
    @in_turn
    def released(self) -> Released:
        """Everything published so far, with its standard errors."""
        if self._blocks is not None and not self._keep:
            raise QueryRefused("this publisher forgets what it publishes", "Keep its output, or use keep=True.")
        return self._release(np.zeros(0) if self._blocks is None else self._blocks.values(), 0, None)

    @in_turn
    def release_of(self, steps: NDArray[Any], *, first: int = 0, timestamps: NDArray[Any] | None = None) -> Released:
        """Values that were published and kept by the caller, in steps of the grid, from number `first` on, with errors.

        >>> len(tops.release_of(private))
        3000
        """
        return self._release(steps, first, timestamps)

    def _release(self, steps: NDArray[Any], first: int, timestamps: NDArray[Any] | None) -> Released:
        if self._blocks is None:
            more = self.settings.warmup - len(self._warm)
            raise QueryRefused("nothing is published during the warm-up", f"Push {more:,} more values first.")
        facts: dict[str, Any] = {"first": first, "timestamps": timestamps, "simulation": self.simulation}
        return release(steps, self.settings, self._blocks, **facts)

    # Publishing ----------------------------------------------------------------------------------------------------

    def push(self, value: float) -> float | None:
        """Take one value. Returns its private stand-in, or None during the warm-up. A refused value changes nothing.

        >>> tops = dn.streams.ToPS(1.0, 100, warmup=2, horizon=1000, source=dn.SeededSource(1), simulation=True)
        >>> [tops.push(value) is None for value in (5, 6, 7)]
        [True, True, False]
        """
        if type(value) is not int or value < 0 or not self._plain:
            step = self._push_one(self._grid.unit(value))
            return step if step is None or self._plain else self._grid.value(step)
        free = self._free  # as `in_turn` does, but without its call
        try:
            free.pop()
        except IndexError:
            self._turn.wait()
        except BaseException:
            free.append(None)
            raise
        try:
            blocks = self._open
            return self._push_carefully(value) if blocks is None else blocks.push(value)
        finally:
            free.append(None)

    @in_turn
    def _push_one(self, unit: int) -> float | None:
        return self._push_carefully(unit) if self._open is None else self._open.push(unit)

    def _push_carefully(self, unit: int) -> float | None:
        """A value of the warm-up, the first value after a state was handed out, or a value after the end."""
        self._go_on()
        if self._blocks is not None:
            return self._blocks.push(unit)
        self._warm.append(min(unit, self._top))
        if len(self._warm) == self.settings.warmup:
            self._begin(self._learn())
        return None

    @in_turn
    def forget(self) -> None:
        """Keep nothing that is published from now on, so that memory stays bounded for ever.

        >>> tops.forget()
        >>> tops.push(5) is None
        False
        """
        self._keep = False
        if self._blocks is not None:
            self._blocks.forget()

    @in_turn
    def check(self, values: Any) -> None:
        """Refuse what `push_many` would refuse, and do nothing else.

        >>> tops.check([5, 6])
        """
        if self._ended:
            self._refuse_after_end()
        self._grid.units(values)

    def push_many(self, values: Any) -> NDArray[Any]:
        """Take many values. Returns private stand-ins for those after the warm-up. If one is refused, all are.

        >>> private.size
        3000
        """
        return self._grid.values(self._push(self._grid.units(values)))

    @in_turn
    def _push(self, units: Integers) -> NDArray[Any]:
        if self._ended:
            self._refuse_after_end()
        if units.size:
            self._go_on()
        blocks = self._blocks
        if blocks is None:
            first, units = np.split(units, [self.settings.warmup - len(self._warm)])
            self._warm.extend(first)
            if len(self._warm) < self.settings.warmup:
                return np.zeros(0, dtype=np.int64 if self.plan.block == 1 else np.float64)
            blocks = self._begin(self._learn())
        return blocks.push_many(units)

    @in_turn
    def flush(self) -> float:
        """End the stream: close the open block early. Returns what has to be added to the last published value.

        `released` has it added already. If no block was open, it is 0. Nothing more can be pushed after this.

        >>> tops.flush()
        0
        """
        if self._ended:
            return 0
        self._go_on()
        self._ended, self._open = True, None
        return 0 if self._blocks is None else self._grid.resolution * self._blocks.end()

    def _refuse_after_end(self) -> None:
        raise InvalidParameter("this publisher", "was ended by flush()", "Start another one for more values.")

    def _go_on(self) -> None:
        """Before a value is taken: the first one after a state was handed out begins a new generation."""
        if self._ended:
            self._refuse_after_end()
        if self._waiting and self._fence is not None:
            self._fence.begin()
            self._waiting, self._open = False, self._blocks

    def _wait(self) -> None:
        """A state was handed out: before the next value, look up whether somebody else has gone on from it."""
        self._waiting = self._fence is not None
        if self._waiting or self._ended:
            self._open = None

    def _learn(self) -> Learnt:
        """Ask about the values of the warm-up, and forget them."""
        if self.settings.start is not None:
            return Learnt(max(self._grid.unit(self.settings.start), 1))
        values = KeptValues(self._warm.array(), self._top)
        settings = self.settings.begun if self.settings.renew else self.settings
        learnt = learn(values, settings, self.settings.epsilon, self._source.stream("warm-up"))
        self._warm.clear()
        return learnt

    def _begin(self, learnt: Learnt) -> BlockPublisher | Epochs:
        self._blocks = self._open = blocks = begin(self.settings, learnt, self._source, keep=self._keep)
        return blocks

    def __reduce__(self) -> NoReturn:
        raise copy_refused()

    # State ---------------------------------------------------------------------------------------------------------

    @in_turn
    def state(self) -> dict[str, Any]:
        """Everything needed to continue elsewhere, as JSON. As secret as the data: it holds values and the noise's key.

        It is valid until something more is pushed here. After that `restore` refuses it on this machine.

        >>> sorted(tops.state())[:3]
        ['block', 'differences', 'ended']
        """
        if self._key is None and not self._source.simulation:
            raise InvalidParameter("source", "was handed in, so its key is not known here", "Use key= instead.")
        self._wait()
        state = {
            "version": STATE_VERSION,
            "kind": self.kind,
            "settings": self.settings.describe(),
            "plan": [self.plan.block, self.plan.fanout],
            "key": None if self._key is None else self._key.hex(),
            "generation": None if self._fence is None else self._fence.state(),
            "keep": self._keep,
            "ended": self._ended,
            "simulation": self.simulation,
            "warm": packed(self._warm.array()) if self._blocks is None else None,
            "learnt": None if self.learnt is None else asdict(self.learnt),
            **(state_before(keep=self._keep) if self._blocks is None else self._blocks.state()),
        }
        return seal(state)

    @classmethod
    def restore(cls, state: dict[str, Any], *, source: Source | None = None) -> Self:
        """The publisher that `state()` described. A simulation's source has to be handed in again.

        A changed state is refused as damaged. So is a state from which the stream was continued already, here
        or by another process of this user. `DurablePublisher` survives its process.

        >>> again = dn.streams.ToPS.restore(tops.state(), source=dn.SeededSource(1))
        >>> again.published == tops.published
        True
        """
        return cls._restored(state, source)

    @classmethod
    def _restored(cls, state: dict[str, Any], source: Source | None = None, *, replay: bool = False) -> Self:
        state = unseal(state, STATE_VERSION)
        if state["key"] is None and source is None:
            raise SimulationOnly
        made = cls.__new__(cls)
        key = None if state["key"] is None else bytes.fromhex(state["key"])
        settings = Settings.read(state["settings"])
        simulation = bool(state.get("simulation", False))
        made._set_up(settings, key, source, simulation=simulation, keep=state["keep"], goes_on=True)
        if state["learnt"] is None:
            made._warm.extend(unpacked(state["warm"]))
        else:
            first = state["epochs"][0] if state.get("epochs") else state
            made._begin(Learnt.read(first["learnt"])).resume(state)
        if [made.plan.block, made.plan.fanout] != state["plan"]:
            raise InvalidParameter(
                "state", "was planned by another version or machine", "Use that one, or give block and fanout."
            )
        if made._fence is not None:
            made._fence = Fence.restore(state["generation"], replay=replay)
        made._ended = state["ended"]
        made._wait()
        return made
