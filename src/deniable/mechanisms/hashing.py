"""The hash of local hashing: 32-bit arithmetic that a phone, a browser and a server compute alike.

    key = mix(cell + φ),  factor = mix(key + φ) with its last bit set
    bucket(seed, cell) = ⌊ spread((seed xor key) · factor) · g / 2^32 ⌋

`mix` and `spread` are bijections of 32-bit integers, and so is the product with an odd factor: over all seeds, every
cell is equally often in every bucket, as far as g divides 2^32. Every cell multiplies by a factor of its own. If the
seed met the cells in an exclusive or alone, two cells would differ by the same bits under every seed, and for some
differences the buckets would be far from independent: with two multiplications half of all collisions can be missing,
and with three there still are differences that are off by more than a percent. `deniable bench hash` measures this.

A linear hash would not do: adjacent cells would then collide together, and the sum over a range would have a higher
variance than the law predicts (a test shows both).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deniable.arrays import Integers, Words32

MASK = 0xFFFFFFFF
FIRST_MULTIPLIER, SECOND_MULTIPLIER = 0x85EBCA6B, 0xC2B2AE35
"""Of `mix`: those of the last step of murmur3."""
MIDDLE_FACTOR, LAST_FACTOR, SPREAD_SHIFT = 0xAC4C1B51, 0x31848BAB, 15
"""Of `spread`."""
CELL_OFFSET = 0x9E3779B9  # 2^32 divided by the golden ratio: cell 0 must not be the fixed point of `mix`


def mix(x: int) -> int:
    """A bijection of {0, …, 2^32 − 1} without visible structure."""
    x ^= x >> 16
    x = x * FIRST_MULTIPLIER & MASK
    x ^= x >> 13
    x = x * SECOND_MULTIPLIER & MASK
    return x ^ x >> 16


def spread(x: int) -> int:
    """A bijection of {0, …, 2^32 − 1} whose first bits depend on all bits of x."""
    x ^= x >> SPREAD_SHIFT
    x = x * MIDDLE_FACTOR & MASK
    x ^= x >> SPREAD_SHIFT
    return x * LAST_FACTOR & MASK


def cell_key(cell: int) -> tuple[int, int]:
    """The key and the factor that a cell enters the hash with; a query computes them once per cell."""
    key = mix((cell + CELL_OFFSET) & MASK)
    return key, mix((key + CELL_OFFSET) & MASK) | 1


def bucket(seed: int, cell: int, buckets: int) -> int:
    """The bucket of a cell under a seed."""
    key, factor = cell_key(cell)
    return spread((seed ^ key) * factor & MASK) * buckets >> 32


def mix_array(x: Words32) -> Words32:
    """`mix` of every element; numpy's unsigned arithmetic wraps as needed."""
    import numpy as np

    x = x ^ (x >> np.uint32(16))
    x *= np.uint32(FIRST_MULTIPLIER)
    x ^= x >> np.uint32(13)
    x *= np.uint32(SECOND_MULTIPLIER)
    x ^= x >> np.uint32(16)
    return x


def cell_keys(cells: NDArray[Any]) -> tuple[Words32, Words32]:
    """`cell_key` of every element: keys and factors."""
    import numpy as np

    offset = np.uint32(CELL_OFFSET)
    keys = mix_array(cells.astype(np.uint32) + offset)
    return keys, mix_array(keys + offset) | np.uint32(1)


def hash_array(seeds: Words32, keys: Any, factors: Any) -> Words32:
    """`spread((seed xor key) · factor)` of every seed, with the keys and factors of cells."""
    import numpy as np

    x: Words32 = (seeds ^ keys) * factors
    x ^= x >> np.uint32(SPREAD_SHIFT)
    x *= np.uint32(MIDDLE_FACTOR)
    x ^= x >> np.uint32(SPREAD_SHIFT)
    x *= np.uint32(LAST_FACTOR)
    return x


def bucket_array(seeds: Words32, cells: NDArray[Any], buckets: int) -> Integers:
    """`bucket` of every pair of a seed and a cell."""
    import numpy as np

    hashes = hash_array(seeds, *cell_keys(cells)).astype(np.uint64)
    hashes *= np.uint64(buckets)
    return (hashes >> np.uint64(32)).astype(np.int64)
