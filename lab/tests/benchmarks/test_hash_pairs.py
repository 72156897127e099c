"""Collisions of many pairs at once are those of the definition, and the chosen pairs differ as they should."""

import numpy as np
import pytest

from deniable.errors import InvalidParameter
from deniable.mechanisms.hashing import bucket_array, cell_keys
from deniable_lab.benchmarks.bit_planes import BLOCK, collisions, doubled
from deniable_lab.benchmarks.hash_pairs import EVERY, count_in_pieces, failing_pattern, one_and_two_bits, random_cells


def test_collisions_are_counted_as_defined():
    cells = np.array([0, 7, 123_456, 2**24 - 1])
    starts = np.array([0, 3 * BLOCK, 2**32 - BLOCK], dtype=np.uint32)
    seeds = np.concatenate([np.arange(BLOCK, dtype=np.uint32) + start for start in starts])
    first, second = np.tril_indices(cells.size, -1)
    counted = set()
    for odd in EVERY:
        counts = collisions(starts, *cell_keys(cells), odd)
        for column, g in enumerate(doubled(odd)):
            buckets = [bucket_array(seeds, np.full(seeds.size, cell), g) for cell in cells]
            assert counts[:, column].tolist() == [
                np.count_nonzero(buckets[a] == buckets[b]) for a, b in zip(first, second, strict=True)
            ]
            counted.add(g)
    assert counted == set(range(2, 65))


def test_the_chosen_keys_have_every_difference():
    bits = [int(difference).bit_count() for difference in one_and_two_bits().differences]
    assert (bits.count(1), bits.count(2), len(bits)) == (32, 496, 528)
    differences = set(failing_pattern().differences.tolist())
    assert differences == {t << 24 | t << 8 for t in range(1, 256)}
    assert random_cells(100_000).differences.size == 100_128


def test_an_interrupted_count_is_continued(tmp_path):
    keys = random_cells(6)
    whole = list(count_in_pieces(keys, 2**16, pieces=4))
    begun = count_in_pieces(keys, 2**16, tmp_path / "kept.npz", pieces=4)
    next(begun)
    begun.close()
    rest = list(count_in_pieces(keys, 2**16, tmp_path / "kept.npz", pieces=4))
    assert (len(whole), len(rest)) == (4, 3)
    assert (rest[-1].counts == whole[-1].counts).all()
    assert rest[-1].seeds == 2**16
    with pytest.raises(InvalidParameter, match="holds another count"):
        next(count_in_pieces(random_cells(10), 2**16, tmp_path / "kept.npz", pieces=4))
