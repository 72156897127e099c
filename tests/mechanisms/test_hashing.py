"""The hash must behave like the random function that the variance of local hashing assumes."""

import numpy as np
import pytest

from agreement import agrees
from deniable.mechanisms import LocalHashing
from deniable.mechanisms._support import support_counts
from deniable.mechanisms.hashing import bucket, bucket_array, mix, mix_array, mixed_cell, mixed_cells
from deniable.randomness import SeededSource

SEEDS = 1_000_000


def seeds(count=SEEDS):
    return SeededSource(41).seeds(count)


def test_known_answers_for_clients_in_other_languages():
    assert [mix(x) for x in (0, 1, 2, 0xFFFFFFFF)] == [0, 0x514E28B7, 0x30F4C306, 0x81F16F39]
    pairs = ((0, 0), (1, 0), (0, 1), (12345, 678), (2**32 - 1, 2**32 - 1))
    assert [bucket(seed, cell, 4) for seed, cell in pairs] == [2, 1, 1, 0, 0]
    assert [bucket(seed, cell, 1000) for seed, cell in pairs] == [665, 433, 441, 114, 194]


def test_mix_is_a_bijection_on_a_sample_and_scalar_and_array_agree():
    x = np.arange(200_000, dtype=np.uint32) * np.uint32(21_473)
    assert np.unique(mix_array(x)).size == x.size
    assert [mix(int(v)) for v in x[:500]] == mix_array(x)[:500].tolist()
    assert [mixed_cell(int(v)) for v in x[:500]] == mixed_cells(x)[:500].tolist()


@pytest.mark.parametrize("g", [2, 3, 4, 8, 21])
def test_compiled_counts_equal_the_definition(g):
    some, chosen = seeds(5_003), SeededSource(42).below(g, 5_003)
    cells = np.array([0, 1, 2, 77, 2**31, 2**32 - 1])
    expected = [(bucket_array(some, np.full(some.size, cell), g) == chosen).sum() for cell in cells]
    assert support_counts(some, chosen, g, mixed_cells(cells)).tolist() == expected
    assert [bucket(int(some[i]), int(cells[i % 6]), g) for i in range(300)] == [
        int(bucket_array(some[i : i + 1], cells[i % 6 : i % 6 + 1], g)[0]) for i in range(300)
    ]


@pytest.mark.parametrize("g", [2, 3, 4, 8, 21])
@pytest.mark.parametrize("pair", [(0, 1), (5, 6), (0, 1024), (0, 2**31), (123_456, 654_321)])
def test_two_cells_collide_with_chance_one_in_g(g, pair):
    first, second = (bucket_array(seeds(), np.full(SEEDS, cell), g) for cell in pair)
    assert agrees(first, [1 / g] * g)
    assert agrees(first * g + second, [1 / g**2] * g**2)  # not only collisions: the two buckets are independent


def excess(hash_of, g=4, width=40, epsilon=1.0):
    """Variance of the support of `width` adjacent cells, given the true one, over what independent cells would have."""
    mechanism = LocalHashing(epsilon, 1000, buckets=g)
    random = SeededSource(43)
    true = hash_of(500)
    y = mechanism.response.draw(true, random)
    support = sum((hash_of(cell) == y).astype(np.int64) for cell in range(510, 510 + width))
    q = float(mechanism.q)
    return support.var() / (width * q * (1 - q))


def test_adjacent_cells_are_uncorrelated_given_the_true_one_and_a_linear_hash_fails_the_test():
    # The variance of a million draws has a relative standard error of about 0.14 %.
    some = seeds()
    assert excess(lambda cell: bucket_array(some, np.full(SEEDS, cell), 4)) == pytest.approx(1, abs=0.01)
    multiplier, offset = some.astype(np.uint64) | np.uint64(1), SeededSource(44).seeds(SEEDS).astype(np.uint64)

    def linear(cell):
        hashed = (multiplier * np.uint64(cell) + offset) & np.uint64(0xFFFFFFFF)
        return (hashed * np.uint64(4) >> np.uint64(32)).astype(np.int64)

    assert excess(linear) > 1.1


@pytest.mark.slow
def test_over_all_seeds_two_cells_collide_with_chance_one_in_g():
    import numba

    @numba.njit(nogil=True)
    def collisions(first, second, g):
        hits = 0
        for seed in range(2**32):
            a = np.uint32(seed ^ first)
            b = np.uint32(seed ^ second)
            for step in range(2):
                a = np.uint32(
                    (a ^ (a >> np.uint32(16 - 3 * step))) * np.uint32(0x85EBCA6B if step == 0 else 0xC2B2AE35)
                )
                b = np.uint32(
                    (b ^ (b >> np.uint32(16 - 3 * step))) * np.uint32(0x85EBCA6B if step == 0 else 0xC2B2AE35)
                )
            a ^= a >> np.uint32(16)
            b ^= b >> np.uint32(16)
            hits += (np.uint64(a) * np.uint64(g)) >> np.uint64(32) == (np.uint64(b) * np.uint64(g)) >> np.uint64(32)
        return hits

    # A random function over 2^32 seeds would be off by √(g − 1)/2^16 of 1/g; ours may be five times as far.
    for g, cells in ((2, (0, 1)), (4, (0, 1)), (4, (5, 6)), (8, (0, 1024))):
        share = collisions(np.uint32(mixed_cell(cells[0])), np.uint32(mixed_cell(cells[1])), g) / 2**32
        assert share == pytest.approx(1 / g, rel=5 * (g - 1) ** 0.5 / 2**16)
