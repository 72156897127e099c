"""One stream per key, all under one set of settings, with noise addressed by (secret, key, chunk, node).

Privacy. Keys are public, and so is when a value of a key arrives: two streams are neighbours if one value of one key is
another. The value is in its key's stream alone, in the warm-up or in one block of it, and streams of different keys
have noise of their own (parallel composition). So ε covers it, whatever its key. If keys are not public, this does not
hide them: which keys there are, and how many values each has, is seen by everybody.

θ is public, or learnt once from the first values of all keys together, or by every key from its own first values; these
values are never published. Every key has the same blocks, so a batch is published in a few passes over arrays, and
quiet keys cost some numbers each. What is published equals what a `BlockPublisher` of that key would publish.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from itertools import islice
from typing import Any, ClassVar, NoReturn

import numpy as np

from deniable.accounting import Spending
from deniable.arrays import Booleans, Floats, Integers
from deniable.errors import InvalidData, InvalidParameter, SimulationOnly
from deniable.locking import Turn, in_turn
from deniable.randomness import SecureSource, Source, release_source
from deniable.streams.central.evidence import KeptValues
from deniable.streams.central.perturber import own_noise
from deniable.streams.central.published_epochs import EpochFacts, released_from
from deniable.streams.central.settings import Settings, check_possible
from deniable.streams.central.stream_forecast import StreamPlan
from deniable.streams.central.stream_keys import KeyedValues, by_key, encoded_keys, key_name, keyed_settings
from deniable.streams.central.threshold import PublicThreshold
from deniable.streams.central.warmup import Learnt, learn
from deniable.streams.released.keyed_release import KeyedReleased
from deniable.streams.structure.fence import Fence, copy_refused
from deniable.streams.structure.growing_array import GrowingArray
from deniable.streams.structure.state_values import packed, seal, unpacked, unseal

_KEYED_STATE_VERSION = 1
_OPEN_BLOCK_COLUMNS: dict[str, Any] = {"taken": np.int64, "sum": np.int64, "theta": np.int64, "rate": np.float64}


class KeyedPublisher:
    """Publishes one stream per key: ε-DP for one replaced value of one key. Keys are public: say `public_keys=True`.

    `theta` is a public threshold. Without it θ is learnt: from the first `warmup` values of all keys together, or with
    `per_key=True` from the first `warmup` values of every key. `keys` lists keys beforehand; others may appear at any
    time, and when they do is public. θ is not renewed.

    >>> import numpy as np
    >>> keyed = KeyedPublisher(1.0, 100, theta=50, horizon=64, block=4, public_keys=True)
    >>> private = keyed.push_many(["north", "south", "north"], [5, 6, 7])
    >>> private.key.tolist(), private.position.tolist()
    (['north', 'south', 'north'], [0, 0, 1])
    """

    kind: ClassVar[str] = "keyed"

    def __init__(
        self,
        epsilon: float,
        bound: float,
        *,
        low: float = 0,
        resolution: float = 1,
        theta: float | None = None,
        per_key: bool = False,
        warmup: int | None = None,
        horizon: int = 1 << 14,
        block: int | None = None,
        public_keys: bool = False,
        keys: Iterable[str | int] = (),
        name: str = "",
        key: bytes | None = None,
        source: Source | None = None,
        simulation: bool = False,
    ) -> None:
        if not public_keys:
            raise InvalidParameter(
                "public_keys",
                "is not given: everybody sees which keys there are, and how many values each of them has",
                "Say public_keys=True if that is public; otherwise publish one stream without keys.",
            )
        settings = keyed_settings(
            epsilon,
            bound,
            low=low,
            resolution=resolution,
            theta=theta,
            warmup=warmup,
            horizon=horizon,
            block=block,
            name=name,
            per_key=per_key,
        )
        self._set_up(settings, key, source, per_key=per_key, simulation=simulation, goes_on=False)
        self._codes_of([key_name(listed) for listed in keys])

    def _set_up(
        self,
        settings: Settings,
        key: bytes | None,
        source: Source | None,
        *,
        per_key: bool,
        simulation: bool,
        goes_on: bool,
    ) -> None:
        if source is None:
            key = SecureSource.new_key() if key is None else key
            source = SecureSource(key)
        elif key is not None:
            raise InvalidParameter("key", "and source exclude each other", "Give one of them.")
        source = release_source(source, simulation=simulation, epsilon=settings.epsilon)
        if not goes_on:
            check_possible(settings)
        self.settings, self.per_key, self.simulation, self._secret = settings, per_key, simulation, key
        self._source = own_noise(source, settings.digest, given=key is None, goes_on=goes_on)
        self.plan: StreamPlan = settings.plan
        self._number, self._names = dict[str, int](), list[str]()  # of every key
        self._columns = {name: np.zeros(0, dtype=kind) for name, kind in _OPEN_BLOCK_COLUMNS.items()}
        self._noise: dict[int, tuple[int, Integers]] = {}  # of keys whose blocks close: chunk, and noise of its leaves
        self._own: dict[int, Learnt] = {}  # where keys learn their own
        self._waiting: dict[int, GrowingArray] = {}  # values of warm-ups: of key −1 if it is shared
        self.learnt: Learnt | None = None  # what all keys share
        if isinstance(settings.threshold, PublicThreshold):
            self.learnt = Learnt(max(settings.grid.unit(settings.threshold.theta), 1))
        self._fence = None if simulation else Fence()  # simulations go on from wherever they like
        self._handed_out = False  # a state was, since the last value
        self._turn = Turn()

    def __repr__(self) -> str:
        return f"KeyedPublisher(epsilon={self.settings.epsilon:g}; {len(self._names):,} keys)"

    @property
    def spends(self) -> Spending:
        """What all streams together cost: (ε, δ) for one replaced value of one key."""
        return self.settings.spends

    @property
    def keys(self) -> list[str]:
        """Every key, in the order of its appearance."""
        return list(self._names)

    @property
    @in_turn
    def published(self) -> int:
        """How many values all keys together have published."""
        return int(self._columns["taken"].sum())

    # Keys ------------------------------------------------------------------------------------------------------------

    def _codes_of(self, keys: list[Any]) -> Integers:
        """The number of every key; new ones get the next."""
        number = self._number
        try:
            return np.fromiter(map(number.__getitem__, keys), np.int64, len(keys))
        except (KeyError, TypeError):
            pass
        for key in keys:
            if key not in number:
                number[key] = len(self._names)
                self._names.append(key)
        self._grow()
        return np.fromiter(map(number.__getitem__, keys), np.int64, len(keys))

    def _grow(self) -> None:
        have, need, shared = self._columns["taken"].size, len(self._names), self.learnt
        if need > have:
            room = max(need, 2 * have, 64)
            for name, column in self._columns.items():
                grown = np.zeros(room, dtype=column.dtype)
                grown[:have] = column
                self._columns[name] = grown
            if shared is not None:
                self._columns["theta"][have:] = shared.theta
                self._columns["rate"][have:] = _first_rate(shared)

    def learnt_of(self, key: str | int) -> Learnt | None:
        """The private answers that a key's stream is published with, once there are any."""
        if not self.per_key:
            return self.learnt
        return self._own.get(self._number.get(key_name(key), -1))

    def facts_of(self, key: str | int) -> list[EpochFacts]:
        """What is public about a key's stream: all that a reader needs."""
        learnt = self.learnt_of(key)
        return [] if learnt is None else [EpochFacts(0, self.settings.horizon, learnt, self.plan.choice)]

    @in_turn
    def facts(self, after: int = 0) -> list[EpochFacts]:
        """What is public about the streams of all keys, from number `after` on: one entry, or one per key."""
        shared = [] if self.learnt is None else [EpochFacts(0, self.settings.horizon, self.learnt, self.plan.choice)]
        own = islice(self._own.items(), after, None)
        return [
            EpochFacts(0, self.settings.horizon, it, self.plan.choice, self._names[code]) for code, it in own
        ] or shared[after:]

    @property
    def warmed(self) -> int:
        """How many values wait for the end of the warm-up that all keys share."""
        return len(self._waiting.get(-1, ()))

    # Publishing ------------------------------------------------------------------------------------------------------

    def push_many(self, keys: Any, values: Any) -> KeyedValues:
        """Take values, each with its key. Returns private values for those after a warm-up. If one is refused, all are.

        `keys` are texts or whole numbers, or a pair (numbers, names) of an encoded column.
        """
        units = self.settings.grid.units(values)
        numbers, names = encoded_keys(keys)
        if numbers.size != units.size:
            raise InvalidData("there must be one key for every value", "Give as many keys as values.")
        return self._push(numbers, names, units)

    @in_turn
    def _push(self, numbers: Integers, names: list[str], units: Integers) -> KeyedValues:
        self._source.check_process()
        if self._handed_out and self._fence is not None and units.size:
            self._fence.begin()
            self._handed_out = False
        codes = self._codes_of(names)[numbers] if names else numbers
        index = np.arange(units.size)
        if self.per_key:
            index = self._take_own_warmups(codes, units)
        elif self.learnt is None:
            index = self._take_shared_warmup(units)
        return self._publish(codes[index], units[index], index)

    def _take_shared_warmup(self, units: Integers) -> Integers:
        warm = self._waiting.setdefault(-1, GrowingArray())
        first = min(self.settings.warmup - len(warm), units.size)
        warm.extend(np.minimum(units[:first], self.settings.grid.top))
        if len(warm) == self.settings.warmup:
            self.learnt = self._learn(self._waiting.pop(-1), self._source)
            self._columns["theta"][:] = self.learnt.theta
            self._columns["rate"][:] = _first_rate(self.learnt)
        return np.arange(first, units.size)

    def _take_own_warmups(self, codes: Integers, units: Integers) -> Integers:
        """Values of keys that still warm up are kept for them; the places of all others."""
        waits = self._columns["theta"][codes] == 0
        if not waits.any():
            return np.arange(codes.size)
        publishes = ~waits
        for code in np.unique(codes[waits]).tolist():
            places = np.flatnonzero(codes == code)
            warm = self._waiting.setdefault(code, GrowingArray())
            first = self.settings.warmup - len(warm)
            warm.extend(np.minimum(units[places[:first]], self.settings.grid.top))
            if len(warm) == self.settings.warmup:
                learnt = self._learn(self._waiting.pop(code), self._stream_of(code))
                self._own[code] = learnt
                self._columns["theta"][code], self._columns["rate"][code] = learnt.theta, _first_rate(learnt)
                publishes[places[first:]] = True
        return np.flatnonzero(publishes)

    def _learn(self, warm: GrowingArray, source: Source) -> Learnt:
        evidence = KeptValues(warm.array(), self.settings.grid.top)
        return learn(evidence, self.settings, self.settings.epsilon, source.stream("warm-up"))

    def _stream_of(self, code: int) -> Source:
        return self._source.stream("key", self._names[code]).recomputable()

    def _publish(self, codes: Integers, units: Integers, index: Integers) -> KeyedValues:
        """Blocks of all keys at once: sort by key, add up blocks, close those that are full, predict inside others."""
        block, columns = self.plan.block, self._columns
        order = np.argsort(codes, kind="stable")
        mine = codes[order]
        cut = np.minimum(units[order], np.minimum(columns["theta"][mine], self.settings.grid.top))
        begins = np.flatnonzero(np.diff(mine, prepend=-1))
        counts = np.diff(begins, append=mine.size)
        keys = mine[begins]
        position = columns["taken"][mine] + np.arange(mine.size) - np.repeat(begins, counts)
        inside = position % block
        starts = np.union1d(begins, np.flatnonzero(inside == 0)) if block > 1 else np.arange(mine.size)
        sums = np.add.reduceat(cut, starts) if cut.size else np.zeros(0, dtype=np.int64)
        first_run = np.searchsorted(starts, begins)  # the run that goes on with a key's open block
        sums[first_run] += np.where(inside[begins] > 0, columns["sum"][keys], 0)
        lasts = np.append(starts[1:], mine.size) - 1 if starts.size else starts
        closed = inside[lasts] == block - 1
        totals = sums + self._noise_of(mine[lasts], position[lasts] // block, closed)
        rates = self._rates(totals, keys, first_run, starts.size, block)
        values: Floats = np.repeat(rates, np.diff(starts, append=mine.size))
        values[lasts[closed]] = totals[closed] - (block - 1) * rates[closed]
        final = np.append(first_run[1:], starts.size) - 1 if starts.size else first_run
        open_still = ~closed[final]
        columns["sum"][keys] = np.where(open_still, sums[final], 0)
        columns["rate"][keys] = np.where(open_still, rates[final], totals[final] / block)
        columns["taken"][keys] += counts
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        released = values[back] if block > 1 else np.rint(values[back]).astype(np.int64)
        names = np.array(self._names, dtype=object)[codes] if codes.size else np.zeros(0, dtype=object)
        return KeyedValues(index, names, position[back], self.settings.grid.values(released))

    def _rates(self, totals: Integers, keys: Integers, first_run: Integers, runs: int, block: int) -> Floats:
        """The prediction that holds in every run: the mean of the block before, of the same key."""
        rates = np.empty(runs)
        rates[1:] = totals[:-1] / block
        rates[first_run] = self._columns["rate"][keys]
        return rates

    def _noise_of(self, codes: Integers, blocks: Integers, closed: Booleans) -> Integers:
        """The noise of every block that is complete, zero for others. That of a key's chunk is kept while it lasts."""
        result = np.zeros(codes.size, dtype=np.int64)
        chunks, leaves = np.divmod(blocks, self.plan.layout.blocks)
        for run in np.flatnonzero(closed).tolist():
            code, chunk = int(codes[run]), int(chunks[run])
            kept = self._noise.get(code)
            if kept is None or kept[0] != chunk:
                kept = self._noise[code] = (chunk, self._chunk_noise(code, chunk))
            result[run] = kept[1][leaves[run]]
        return result

    def _chunk_noise(self, code: int, chunk: int) -> Integers:
        theta = int(self._columns["theta"][code])
        noise = self.plan.perturber(self.settings.epsilon, theta).noise(self._stream_of(code), chunk)
        return noise.leaves(0, self.plan.layout.blocks)

    # Answers and states ----------------------------------------------------------------------------------------------

    def release_of(self, published: Iterable[KeyedValues]) -> KeyedReleased:
        """Private values that were published and kept by the caller, from the first on, as one release per key.

        >>> len(keyed.release_of([private])["north"])
        2
        """
        streams = {}
        for name, values in by_key(published):
            steps = self.settings.grid.steps(values)
            steps = np.rint(steps).astype(np.int64) if self.plan.block == 1 else steps
            streams[name] = released_from(self.settings, self.facts_of(name), steps, simulation=self.simulation)
        return KeyedReleased(streams, shared=not self.per_key and self.settings.measure_start)

    @in_turn
    def state(self) -> dict[str, Any]:
        """Everything needed to continue elsewhere, as JSON. As secret as the data: it holds values and the noise's key.

        Of all copies on this machine, only the first that takes another value continues, as for `Publisher`.

        >>> KeyedPublisher.restore(keyed.state()).keys
        ['north', 'south']
        """
        if self._secret is None and not self._source.simulation:
            raise InvalidParameter("source", "was handed in, so its key is not known here", "Use key= instead.")
        self._handed_out, count = True, len(self._names)
        state = {
            "version": _KEYED_STATE_VERSION,
            "kind": self.kind,
            "settings": self.settings.describe(),
            "per_key": self.per_key,
            "key": None if self._secret is None else self._secret.hex(),
            "generation": None if self._fence is None else self._fence.state(),
            "simulation": self.simulation,
            "names": self.keys,
            "columns": {name: packed(column[:count]) for name, column in self._columns.items()},
            "learnt": None if self.learnt is None else asdict(self.learnt),
            "own": {str(code): asdict(learnt) for code, learnt in self._own.items()},
            "waiting": {str(code): packed(warm.array()) for code, warm in self._waiting.items()},
        }
        return seal(state)

    @classmethod
    def restore(cls, state: dict[str, Any], *, source: Source | None = None) -> KeyedPublisher:
        """The publisher that `state()` described. See `Publisher.restore`."""
        return cls._restored(state, source)

    @classmethod
    def _restored(cls, state: dict[str, Any], source: Source | None = None, *, replay: bool = False) -> KeyedPublisher:
        state = unseal(state, _KEYED_STATE_VERSION)
        if state.get("kind") != cls.kind:
            raise InvalidParameter("state", "is not that of a KeyedPublisher", "Use dn.streams.restore for others.")
        if state["key"] is None and source is None:
            raise SimulationOnly
        made = cls.__new__(cls)
        key = None if state["key"] is None else bytes.fromhex(state["key"])
        facts = {"per_key": state["per_key"], "simulation": state["simulation"]}
        made._set_up(Settings.read(state["settings"]), key, source, **facts, goes_on=True)
        if state["learnt"] is not None:
            made.learnt = Learnt.read(state["learnt"])
        made._codes_of(state["names"])
        for name, kind in _OPEN_BLOCK_COLUMNS.items():
            made._columns[name][: len(state["names"])] = unpacked(state["columns"][name], kind)
        made._own = {int(code): Learnt.read(learnt) for code, learnt in state["own"].items()}
        for code, values in state["waiting"].items():
            made._waiting.setdefault(int(code), GrowingArray()).extend(unpacked(values))
        if made._fence is not None:
            made._fence = Fence.restore(state["generation"], replay=replay)
        made._handed_out = True
        return made

    def __reduce__(self) -> NoReturn:
        raise copy_refused()


def _first_rate(learnt: Learnt) -> float:
    return learnt.theta / 2 if learnt.mean is None else learnt.mean
