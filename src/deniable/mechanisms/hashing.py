"""The hash of local hashing: 32-bit arithmetic that a phone, a browser and a server compute alike.

    bucket(seed, cell) = ⌊ mix(seed xor mix(cell + φ)) · g / 2^32 ⌋

`mix` is a bijection of 32-bit integers that spreads every input bit over every output bit: two rounds of multiply and
shift with the constants of murmur3's finaliser. A linear hash would not do: adjacent cells would then collide together,
and the sum over a range would have a higher variance than the law predicts (a test shows both).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deniable.arrays import Integers, Words32

MASK = 0xFFFFFFFF
FIRST_MULTIPLIER, SECOND_MULTIPLIER = 0x85EBCA6B, 0xC2B2AE35
CELL_OFFSET = 0x9E3779B9  # 2^32 divided by the golden ratio: cell 0 must not be the fixed point of `mix`


def mix(x: int) -> int:
    """A bijection of {0, …, 2^32 − 1} without visible structure."""
    x ^= x >> 16
    x = x * FIRST_MULTIPLIER & MASK
    x ^= x >> 13
    x = x * SECOND_MULTIPLIER & MASK
    return x ^ x >> 16


def mixed_cell(cell: int) -> int:
    """The number a cell enters the hash with; a query computes it once per cell."""
    return mix((cell + CELL_OFFSET) & MASK)


def bucket(seed: int, cell: int, buckets: int) -> int:
    """The bucket of a cell under a seed."""
    return mix(seed ^ mixed_cell(cell)) * buckets >> 32


def mix_array(x: Words32) -> Words32:
    """`mix` of every element; numpy's unsigned arithmetic wraps as needed."""
    import numpy as np

    x = x ^ (x >> np.uint32(16))
    x *= np.uint32(FIRST_MULTIPLIER)
    x ^= x >> np.uint32(13)
    x *= np.uint32(SECOND_MULTIPLIER)
    x ^= x >> np.uint32(16)
    return x


def mixed_cells(cells: NDArray[Any]) -> Words32:
    """`mixed_cell` of every element."""
    import numpy as np

    return mix_array(cells.astype(np.uint32) + np.uint32(CELL_OFFSET))


def bucket_array(seeds: Words32, cells: NDArray[Any], buckets: int) -> Integers:
    """`bucket` of every pair of a seed and a cell."""
    import numpy as np

    hashes = mix_array(seeds ^ mixed_cells(cells)).astype(np.uint64)
    hashes *= np.uint64(buckets)
    return (hashes >> np.uint64(32)).astype(np.int64)
