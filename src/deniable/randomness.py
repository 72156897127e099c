"""Where random bits come from, and exact laws drawn from them millions at a time.

A source is a keystream with an address: (key, stream name, counter). The same address always gives the same bits, so
noise can be recomputed from its address instead of being kept, and two different names never share a bit.
Every draw below follows its law exactly: integers only, no float decides anything, no tail is cut.
"""

from __future__ import annotations

import hashlib
import operator
import os
import threading
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, NoReturn, Self

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, CipherContext, algorithms, modes

from deniable import addresses
from deniable.addresses import KEY_BYTES, Name
from deniable.arrays import Booleans, Integers, Words, Words32
from deniable.errors import InvalidParameter, RandomnessFault, SimulationOnly
from deniable.exact import (
    WORD_BITS,
    Chance,
    GeometricDigits,
    RandBelow,
    RationalChance,
    checked_scale,
    coin,
    nonzero_chance,
    word,
)
from deniable.simulation import SimulatedDraws, check_noise

_BLOCK_WORDS = 2  # one AES block is 128 bits
_BATCH_DRAWS = 1 << 14  # draws made together, so that their words stay in the cache
_ZEROS = bytes(8 * _BATCH_DRAWS * 16)


class Source:
    """A keystream of AES-256 in counter mode, read forwards from an address that can be set.

    `stream(*name)` gives another, independent keystream under the same key; `at(counter)` gives this one from
    another position. `counter` counts blocks of 128 bits; every draw starts on a new block.
    """

    simulation: ClassVar[bool]

    def __init__(self, key: bytes, name: tuple[Name, ...] = (), counter: int = 0) -> None:
        self._key, self._name, self._counter = key, name, counter
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._cipher: CipherContext | None = None

    @property
    def name(self) -> tuple[Name, ...]:
        """Which of its key's keystreams this is."""
        return self._name

    @property
    def counter(self) -> int:
        """The next block that will be read."""
        return self._counter

    def stream(self, *name: Name) -> Self:
        """The keystream called `name` (below this one's own name), from its beginning.

        Name a stream for what it is drawn for, once. Of two streams of one name, a secure source refuses the second.
        """
        if not name:
            raise InvalidParameter("name", "is missing: the stream would repeat this one's bits", "Give a name.")
        return self._sibling((*self._name, *map(addresses.checked_part, name)), 0)

    def at(self, counter: int) -> Self:
        """This keystream, read from block `counter` on."""
        if counter < 0:
            raise InvalidParameter("counter", "must not be negative", "Use a counter that a source has shown.")
        return self._sibling(self._name, counter)

    def fresh(self, *name: Name) -> Self:
        """A keystream for one use: that of a secure source is new at every call, that of a seeded one the same."""
        return self.stream(*name) if name else self

    def recomputable(self, *, again: bool = False) -> Self:  # noqa: ARG002 - for secure sources
        """This keystream and those below it, for an owner who draws its bits `again`, each time for the same data."""
        return self

    def _sibling(self, name: tuple[Name, ...], counter: int) -> Self:
        """Another position under the same key."""
        sibling = object.__new__(type(self))
        Source.__init__(sibling, self._key, name, counter)
        return sibling

    def __repr__(self) -> str:
        return f"{type(self).__name__}(name={self._name!r}, counter={self._counter})"

    # Bits ---------------------------------------------------------------------------------------------------------

    def words(self, size: int) -> Words:
        """`size` uniform 64-bit words."""
        blocks = -(-size // _BLOCK_WORDS)
        with self._lock:
            if self._cipher is None:
                self._cipher = self._opened(addresses.stream_key(self._key, self._name))
            self._counter += blocks
            need = 16 * blocks
            data = self._cipher.update(memoryview(_ZEROS)[:need] if need <= len(_ZEROS) else bytes(need))
        # Words are little-endian on every machine, so that an address means the same bits everywhere.
        return np.frombuffer(data, dtype="<u8", count=size)

    def _opened(self, stream_key: bytes) -> CipherContext:
        """The cipher at the first block that will be read."""
        return Cipher(algorithms.AES(stream_key), modes.CTR(self._counter.to_bytes(16, "big"))).encryptor()

    def check_process(self) -> None:
        """Refuse where two processes may use the same bits. Anyone who keeps draws for later asks before using them."""

    def randbelow(self, bound: int) -> int:
        """One uniform integer in {0, …, bound − 1}, of any size."""
        if bound < 1:
            raise InvalidParameter("bound", "must be at least 1", "Ask for at least one outcome.")
        bits = (bound - 1).bit_length()
        count = max(1, -(-bits // WORD_BITS))
        while True:
            drawn = int.from_bytes(self.words(count).tobytes(), "little") >> (WORD_BITS * count - bits)
            if drawn < bound:
                return drawn

    # Laws ---------------------------------------------------------------------------------------------------------

    def below(self, bound: int, size: int) -> Integers:
        """Uniform integers in {0, …, bound − 1}, without modulo bias."""
        if not 1 <= bound <= 2**63:
            raise InvalidParameter("bound", "must be between 1 and 2^63", "Ask for fewer outcomes.")
        words, surplus = self.words(size), 2**WORD_BITS % bound
        if surplus:
            words = self._not_below(np.broadcast_to(np.uint64(surplus), words.shape), words)
        divisor = np.uint64(bound)
        # numpy divides by a scalar faster than it takes remainders
        return (words - words // divisor * divisor).astype(np.int64)

    def seeds(self, size: int) -> Words32:
        """Uniform 32-bit integers, such as hash seeds."""
        return self.words(-(-size // 2)).view(np.uint32)[:size]

    def bernoulli(self, chance: Chance | Fraction | float, size: int) -> Booleans:
        """Independent coins that are true with exactly the given probability."""
        if isinstance(chance, (Fraction, float, int)):
            chance = Fraction(chance)
            if not 0 <= chance <= 1:
                raise InvalidParameter("chance", "must lie between 0 and 1", "Use a probability.")
            chance = RationalChance(chance)
        threshold = word(chance, 0)
        if threshold == 2**WORD_BITS:
            return np.ones(size, dtype=np.bool_)
        words = self.words(size)
        return self._refine(words < np.uint64(threshold), words, threshold, chance)

    def coins(self, thresholds: Words) -> Booleans:
        """Independent coins; coin i is true with probability thresholds[i] · 2^-64, exactly."""
        return self.words(thresholds.size) < thresholds

    def bernoulli_each(self, chances: Sequence[Chance | Fraction], which: Integers) -> Booleans:
        """Independent coins; coin i is true with exactly the probability chances[which[i]]."""
        exact = [RationalChance(chance) if isinstance(chance, Fraction) else chance for chance in chances]
        firsts = [word(chance, 0) for chance in exact]
        certain = np.array([first == 2**WORD_BITS for first in firsts])[which]
        thresholds = np.array([first % 2**WORD_BITS for first in firsts], dtype=np.uint64)[which]
        words = self.words(which.size)
        hits: Booleans = words < thresholds
        for tie in np.flatnonzero((words == thresholds) & ~certain):
            hits[tie] = coin(exact[which[tie]], self.randbelow, equal_words=1)
        hits |= certain
        return hits

    def ratio_coins(self, numerators: Integers, denominator: int) -> Booleans:
        """Independent coins; coin i is true with probability numerators[i]/denominator, rounded down to 64 bits.

        For rounding values before they are randomised: privacy does not rest on these.
        """
        if not 1 <= denominator < 2**31:
            raise InvalidParameter("denominator", "must be 1 to 2^31", "Use a smaller domain.")
        # Long division in two steps of 32 bits.
        first, rest = np.divmod(numerators.astype(np.uint64) << np.uint64(32), np.uint64(denominator))
        second = (rest << np.uint64(32)) // np.uint64(denominator)
        hits: Booleans = self.words(numerators.size) < ((first << np.uint64(32)) | second)
        hits |= numerators == denominator
        return hits

    def below_each(self, bounds: Integers) -> Integers:
        """Independent uniform integers; the i-th in {0, …, bounds[i] − 1}."""
        divisors = bounds.astype(np.uint64)
        words = self._not_below((-divisors) % divisors, self.words(bounds.size))
        return (words % divisors).astype(np.int64)

    def _not_below(self, surplus: Words, words: Words) -> Words:
        """Words without those among the lowest `surplus` = 2^64 modulo a bound, which are drawn again.

        The number of words left is a multiple of the bound, so every remainder is equally likely.
        """
        rejected = np.flatnonzero(words < surplus)
        if rejected.size:
            words = words.copy()
        while rejected.size:
            words[rejected] = self.words(rejected.size)
            rejected = rejected[words[rejected] < surplus[rejected]]
        return words

    def geometric(self, scale: Fraction | float, size: int) -> Integers:
        """P(G = k) ∝ e^(−k/scale) for k = 0, 1, 2, …"""
        scale = checked_scale(scale)
        return _batched(size, lambda count: self._geometric(scale, count))

    def discrete_laplace(self, scale: Fraction | float, size: int) -> Integers:
        """P(X = k) ∝ e^(−|k|/scale) for every integer k."""
        scale = checked_scale(scale)
        return _batched(size, lambda count: self._discrete_laplace(scale, count))

    def _discrete_laplace(self, scale: Fraction, size: int) -> Integers:
        nonzero = self.bernoulli(nonzero_chance(scale), size)
        negative = np.unpackbits(self.words(-(-size // WORD_BITS)).view(np.uint8), count=size)
        magnitude = self._geometric(scale, size) + 1
        magnitude *= nonzero
        magnitude *= 1 - 2 * negative.astype(np.int64)
        return magnitude

    def _geometric(self, scale: Fraction, size: int) -> Integers:
        """One row of coins per binary digit, and one for the tail (see `GeometricDigits`)."""
        digits = GeometricDigits.of(scale)
        chances = (*digits.bits, digits.tail)
        thresholds = _thresholds(scale)
        words = self.words(len(chances) * size).reshape(len(chances), size)
        hits = words < thresholds
        ties = words == thresholds
        if ties.any():
            for row, column in np.argwhere(ties):
                hits[row, column] = coin(chances[row], self.randbelow, equal_words=1)
        packed = np.packbits(hits[:-1], axis=0, bitorder="little")
        total = np.zeros(size, dtype=np.int64)
        for byte in range(packed.shape[0]):
            total |= packed[byte].astype(np.int64) << (8 * byte)
        for column in np.flatnonzero(hits[-1]):
            blocks = 1 + self._blocks_in_tail(digits)
            total[column] = _checked_int64(int(total[column]) + (blocks << len(digits.bits)))
        return total

    def _blocks_in_tail(self, digits: GeometricDigits) -> int:
        blocks = 0
        while coin(digits.tail, self.randbelow):
            blocks += 1
        return blocks

    def _refine(self, hits: Booleans, words: Words, threshold: int, chance: Chance) -> Booleans:
        """Decide the coins whose first 64 digits equal those of the probability by their further digits."""
        for tie in np.flatnonzero(words == np.uint64(threshold)):
            hits[tie] = coin(chance, self.randbelow, equal_words=1)
        return hits


class SecureSource(Source):
    """The source for releases: keyed by the operating system, or by a 32-byte secret drawn from it earlier.

    It refuses to be copied, pickled or used after a fork, and to draw one stream's bits twice in a process: two holders
    of one keystream would add the same noise to different data, and the difference of what they publish would be the
    data. Any number of threads may draw from one source.

    >>> SecureSource().words(3).size
    3
    """

    simulation = False

    def __init__(self, key: bytes | None = None) -> None:
        # A key that is drawn here is unique; a key that is passed in may be passed in twice.
        self._taken: addresses.Taken = {} if key is None else addresses.OF_GIVEN_KEYS
        if key is None:
            key = os.urandom(KEY_BYTES)
        if not isinstance(key, bytes) or len(key) != KEY_BYTES:
            raise InvalidParameter("key", f"must be {KEY_BYTES} bytes", "Use SecureSource.new_key().")
        super().__init__(key)
        self._repeats = False

    @staticmethod
    def new_key() -> bytes:
        """A fresh secret from the operating system, for noise that must be recomputed later."""
        return os.urandom(KEY_BYTES)

    def words(self, size: int) -> Words:
        """`size` uniform 64-bit words, in the process that made this source."""
        self.check_process()
        return super().words(size)

    def check_process(self) -> None:
        """Refuse to go on in a fork of the process that made this source."""
        if os.getpid() != self._process:
            raise RandomnessFault(
                "this SecureSource was made in another process, which may draw the same bits. "
                "Nothing was drawn. Make a new one here: with a key, under another stream name."
            )

    def _sibling(self, name: tuple[Name, ...], counter: int) -> Self:
        sibling = super()._sibling(name, counter)
        sibling._process, sibling._taken, sibling._repeats = self._process, self._taken, self._repeats
        return sibling

    def fresh(self, *name: Name) -> Self:
        """A keystream that nobody else has, below this one's name."""
        return self.stream(*name, os.urandom(16).hex())

    def recomputable(self, *, again: bool = False) -> Self:
        """This keystream and those below it, for an owner that accounts for what it draws."""
        sibling = self._sibling(self._name, self._counter)
        if not self._repeats:
            addresses.take(self._taken, addresses.stream_key(self._key, self._name), again=again)
            sibling._repeats = True
        return sibling

    def _opened(self, stream_key: bytes) -> CipherContext:
        if not self._repeats:
            addresses.take(self._taken, stream_key)
        return super()._opened(stream_key)

    def __reduce__(self) -> NoReturn:
        raise RandomnessFault(
            "a SecureSource cannot be copied or pickled: its key would leave this process, or two holders would "
            "draw the same bits. Nothing was copied. Make a new one where it is needed."
        )


class SeededSource(Source):
    """For tests and simulation only: anyone who knows the seed can repeat every draw.

    >>> bool((SeededSource(7).words(4) == SeededSource(7).words(4)).all())
    True
    >>> SeededSource(7)
    SeededSource(name=(), counter=0)
    """

    simulation = True

    def __init__(self, seed: int) -> None:
        try:
            seed = operator.index(seed)
        except TypeError:
            raise InvalidParameter("seed", "must be an integer", "Use SeededSource(1).") from None
        super().__init__(hashlib.blake2b(str(seed).encode(), digest_size=KEY_BYTES, person=b"seeded").digest())

    def words(self, size: int) -> Words:
        """`size` uniform 64-bit words; a fork draws the same ones as its parent."""
        if os.getpid() != self._process:  # in a fork, a lock that another thread held is never released
            self._lock, self._cipher, self._process = threading.Lock(), None, os.getpid()
        return super().words(size)

    @property
    def simulated_randbelow(self) -> RandBelow:
        """`randbelow` for tests and simulations of one device, where `perturb_one` would refuse the method itself."""
        return SimulatedDraws(self.randbelow)


def release_source(source: Source | None, *, simulation: bool, epsilon: float) -> Source:
    """The source a release may use: a fresh secure one by default, a seeded one only if the caller says so.

    An ε that adds no noise is refused likewise.
    """
    check_noise(epsilon, simulation=simulation)
    if source is None:
        return SecureSource()
    if not isinstance(source, Source):
        raise InvalidParameter("source", "must be a source of this package", "Leave it out, or use SecureSource().")
    if source.simulation and not simulation:
        raise SimulationOnly
    return source


@lru_cache(maxsize=256)
def _thresholds(scale: Fraction) -> Words:
    """The first 64 binary digits of the chance of every digit and of the tail, one per row."""
    digits = GeometricDigits.of(scale)
    return np.array([[word(chance, 0)] for chance in (*digits.bits, digits.tail)], dtype=np.uint64)


def _checked_int64(value: int) -> int:
    if value >= 2**63:  # less likely than e^(−10^6): a scale of 1e12 needs 46 of the 63 bits
        raise RandomnessFault("a draw exceeds 63 bits. Nothing was released. Draw again.")
    return value


def _batched(size: int, draw: Callable[[int], Integers]) -> Integers:
    if size <= _BATCH_DRAWS:
        return draw(size)
    return np.concatenate([draw(min(_BATCH_DRAWS, size - start)) for start in range(0, size, _BATCH_DRAWS)])
