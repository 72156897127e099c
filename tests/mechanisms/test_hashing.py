"""The hash must behave like the random function that the variance of local hashing assumes."""

import numpy as np
import pytest

from agreement import agrees
from deniable.mechanisms import LocalHashing
from deniable.mechanisms._support import extreme_sums, support_counts
from deniable.mechanisms.hashing import bucket, bucket_array, cell_key, cell_keys, mix, mix_array, spread
from deniable.randomness import SeededSource

SEEDS = 1_000_000


def seeds(count=SEEDS):
    return SeededSource(41).seeds(count)


def test_known_answers_for_clients_in_other_languages():
    assert [mix(x) for x in (0, 1, 2, 0xFFFFFFFF)] == [0, 0x514E28B7, 0x30F4C306, 0x81F16F39]
    pairs = ((0, 0), (1, 0), (0, 1), (12345, 678), (2**32 - 1, 2**32 - 1))
    assert [bucket(seed, cell, 4) for seed, cell in pairs] == [3, 3, 0, 1, 2]
    assert [bucket(seed, cell, 1000) for seed, cell in pairs] == [800, 842, 39, 376, 744]


def test_mix_is_a_bijection_on_a_sample_and_scalar_and_array_agree():
    x = np.arange(200_000, dtype=np.uint32) * np.uint32(21_473)
    assert np.unique(mix_array(x)).size == x.size
    assert [mix(int(v)) for v in x[:500]] == mix_array(x)[:500].tolist()
    assert [cell_key(int(v)) for v in x[:500]] == list(
        zip(*(array[:500].tolist() for array in cell_keys(x)), strict=True)
    )
    assert len({spread(int(v)) for v in x[:50_000]}) == 50_000


@pytest.mark.parametrize(
    "g", [2, 3, 21, 47, 48, 5_000, 2**20]
)  # of 12 cells, up to 47 buckets have totals of their own
def test_extreme_sums_of_a_bucket_equal_the_definition(g):
    cells, some = np.arange(12) * 1_000_003, np.append(seeds(700), np.uint32([0, 2**32 - 1]))
    values = np.random.default_rng(g).normal(size=cells.size)
    least, most = extreme_sums(some, *cell_keys(cells), values, g)
    where = np.stack([bucket_array(some, np.full(some.size, cell), g) for cell in cells])
    for number in range(some.size):
        _, inverse = np.unique(where[:, number], return_inverse=True)
        sums = np.bincount(inverse, values)
        sums = sums if sums.size == g else np.append(sums, 0.0)
        assert (least[number], most[number]) == pytest.approx((sums.min(), sums.max()), abs=1e-12)


@pytest.mark.parametrize("g", [2, 3, 4, 8, 21])
def test_compiled_counts_equal_the_definition(g):
    some, chosen = seeds(5_003), SeededSource(42).below(g, 5_003)
    cells = np.array([0, 1, 2, 77, 2**31, 2**32 - 1])
    expected = [(bucket_array(some, np.full(some.size, cell), g) == chosen).sum() for cell in cells]
    assert support_counts(some, chosen, g, *cell_keys(cells)).tolist() == expected
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


# Pairs that a weaker hash keeps together or apart ---------------------------------------------------------------------


def unmixed(key):
    """The number that `mix` turns into a key: its steps backwards."""
    inverses = [pow(multiplier, -1, 2**32) for multiplier in (0xC2B2AE35, 0x85EBCA6B)]
    key ^= key >> 16
    key = key * inverses[0] & 0xFFFFFFFF
    key ^= key >> 13 ^ key >> 26
    key = key * inverses[1] & 0xFFFFFFFF
    return key ^ key >> 16


def cells_apart(difference, count=1):
    """Pairs of cells whose keys differ by these bits."""
    for key in SeededSource(difference).seeds(count).tolist():
        yield tuple((unmixed(k) - 0x9E3779B9) % 2**32 for k in (key, key ^ difference))


def worst_z(pairs, hash_of, buckets=(2, 4, 8, 64), count=1 << 18):
    """How far collisions are from one in g, in standard errors: the furthest of all pairs and all g."""
    some, furthest = seeds(count), 0.0
    for first, second in pairs:
        hashes = [hash_of(some, cell) for cell in (first, second)]
        for g in buckets:
            same = np.count_nonzero(
                hashes[0] * np.uint64(g) >> np.uint64(32) == hashes[1] * np.uint64(g) >> np.uint64(32)
            )
            furthest = max(furthest, abs(same - count / g) / (count * (g - 1)) ** 0.5 * g)
    return furthest


def ours(some, cell):
    return bucket_array(some, np.full(some.size, cell), 2**32).astype(np.uint64)


def earlier(some, cell):
    """Two rounds of the seed and the mixed cell number: what this package had before."""
    return mix_array(some ^ mix_array(np.full(some.size, cell, dtype=np.uint32) + np.uint32(0x9E3779B9))).astype(
        np.uint64
    )


WEAK = [t << 24 | t << 8 for t in (0x28, 0x80, 0xA8, 0x14, 0x55)]


def test_pairs_that_were_weak_are_not():
    # 6.5 standard errors: a false alarm in fewer than one of 10^7 runs, over 4 values of g and all pairs of this test.
    differences = [1 << i for i in range(0, 32, 3)] + [1 << i | 1 << (i - 16) for i in range(20, 32, 2)] + WEAK
    pairs = [pair for difference in differences for pair in cells_apart(difference)]
    assert [cell_key(a)[0] ^ cell_key(b)[0] for a, b in pairs] == differences
    assert worst_z(pairs, ours) < 6.5
    assert worst_z([pair for difference in WEAK[:2] for pair in cells_apart(difference)], earlier) > 100


def test_a_cell_is_not_estimated_at_the_cost_of_another():
    """Everybody is in one cell: the cells whose keys are close to it are still estimated at zero."""
    mechanism = LocalHashing(2.0, 2**32)
    for (held, other), *_ in (list(cells_apart(difference)) for difference in WEAK):
        reports = mechanism.perturb(np.full(100_000, held), source=SeededSource(5), simulation=True)
        estimate = mechanism.estimate(reports, cells=[other])[0]
        assert abs(estimate) < 6 * mechanism.variance(100_000) ** 0.5
