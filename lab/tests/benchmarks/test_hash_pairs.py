"""Collisions of many pairs at once are those of the definition, and the chosen pairs differ as they should."""

import numpy as np
import pytest

from deniable.errors import InvalidParameter
from deniable.mechanisms.hashing import bucket_array, cell_keys
from deniable_lab.benchmarks import bucket_masks
from deniable_lab.benchmarks.bit_planes import BLOCK, collisions, doubled
from deniable_lab.benchmarks.hash_pairs import (
    EVERY,
    AllPairs,
    count_in_pieces,
    divided_cells,
    failing_pattern,
    one_and_two_bits,
    random_cells,
)


def test_collisions_are_counted_as_defined():
    cells = np.array([0, 7, 123_456, 2**24 - 1])
    starts = np.array([0, 3 * BLOCK, 2**32 - BLOCK], dtype=np.uint32)
    seeds = np.concatenate([np.arange(BLOCK, dtype=np.uint32) + start for start in starts])
    first, second = np.tril_indices(cells.size, -1)
    counted = set()
    for odd in range(1, 64, 2):
        counts = collisions(starts, *cell_keys(cells), odd)
        for column, g in enumerate(doubled(odd)):
            buckets = [bucket_array(seeds, np.full(seeds.size, cell), g) for cell in cells]
            assert counts[:, column].tolist() == [
                np.count_nonzero(buckets[a] == buckets[b]) for a, b in zip(first, second, strict=True)
            ]
            counted.add(g)
    assert counted == set(EVERY)


def test_the_chosen_keys_have_every_difference():
    bits = [int(difference).bit_count() for difference in one_and_two_bits().differences]
    assert (bits.count(1), bits.count(2), len(bits)) == (32, 496, 528)
    differences = set(failing_pattern().differences.tolist())
    assert differences == {t << 24 | t << 8 for t in range(1, 256)}
    assert random_cells(100_000).differences.size == 196 * 512
    assert 0 not in random_cells(100_000).differences


def test_divided_cells_are_each_counted_for_one_odd_number():
    groups = divided_cells(50_000)
    assert list(groups) == list(range(1, 64, 2))
    assert {group.differences.size for group in groups.values()} == {1596}
    keys = np.concatenate([group.keys for group in groups.values()])
    assert np.unique(keys).size == keys.size


@pytest.mark.parametrize("g", [2, 3, 47, 64])
def test_collisions_with_512_columns_are_counted_as_defined(g):
    starts = np.array([0, 2**32 - bucket_masks.BLOCK], dtype=np.uint32)
    seeds = np.concatenate([np.arange(bucket_masks.BLOCK, dtype=np.uint32) + start for start in starts])
    cells = np.random.default_rng(g).choice(2**24, 515, replace=False)
    keys, factors = cell_keys(cells)
    columns, rows = (keys[:512], factors[:512]), (keys[512:], factors[512:])
    counts = bucket_masks.cross_collisions(starts, rows, columns, g)
    of_rows = [bucket_array(seeds, np.full(seeds.size, cell), g) for cell in cells[512:]]
    for column in range(0, 512, 33):
        buckets = bucket_array(seeds, np.full(seeds.size, cells[column]), g)
        assert counts[:, column].tolist() == [np.count_nonzero(row == buckets) for row in of_rows]


def test_what_512_columns_cannot_count_is_refused():
    keys, factors = cell_keys(np.arange(512))
    with pytest.raises(ValueError, match="cannot be counted"):
        bucket_masks.cross_collisions(np.zeros(1, dtype=np.uint32), (keys, factors), (keys, factors), 65)


def test_both_ways_of_counting_agree():
    crossed = random_cells(2 * 512)
    few = AllPairs("few", crossed.keys[[0, 511, 512, 513]])
    one = crossed.count(np.zeros(1, dtype=np.uint32), (5, 64))
    other = few.count(np.arange(0, bucket_masks.BLOCK, BLOCK, dtype=np.uint32), (5, 64))
    assert np.array_equal(one[[0, 511, 512, 1023]], other[[1, 2, 3, 4]])


def test_an_interrupted_count_is_continued(tmp_path):
    pairs = AllPairs("few", random_cells(1).keys[:4])
    whole = list(count_in_pieces(pairs, 2**16, (2, 3, 64), pieces=4))
    begun = count_in_pieces(pairs, 2**16, (2, 3, 64), tmp_path / "kept.npz", pieces=4)
    next(begun)
    begun.close()
    rest = list(count_in_pieces(pairs, 2**16, (2, 3, 64), tmp_path / "kept.npz", pieces=4))
    assert (len(whole), len(rest)) == (4, 3)
    assert (rest[-1].counts == whole[-1].counts).all()
    assert rest[-1].seeds == 2**16
    with pytest.raises(InvalidParameter, match="holds another count"):
        next(count_in_pieces(pairs, 2**16, (2, 64), tmp_path / "kept.npz", pieces=4))
