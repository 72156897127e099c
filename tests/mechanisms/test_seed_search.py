"""The search that drops seeds early finds what adding up all cells under all seeds finds."""

import numpy as np
import pytest

from deniable.mechanisms import _seed_search
from deniable.mechanisms._seed_search import search_seeds
from deniable.mechanisms._support import extreme_sums
from deniable.mechanisms.hashing import cell_keys

COUNT = 5_000


@pytest.mark.parametrize("g", [2, 3, 8, 300])
@pytest.mark.parametrize("size", [1, 2, 7, 60])
def test_what_is_found_is_the_best_of_all_seeds(g, size, monkeypatch):
    monkeypatch.setattr(_seed_search, "_SEEDS_A_TASK", 1_300)
    rng = np.random.default_rng(g + size)
    for values in (rng.normal(size=size), np.abs(rng.normal(size=size)), np.where(rng.random(size) < 0.5, -1.0, 2.0)):
        cells = rng.choice(2**24, size, replace=False)
        lows, highs = extreme_sums(np.arange(COUNT, dtype=np.uint32), *cell_keys(cells), values, g)
        best = lows.min(), highs.max()
        assert search_seeds(cells, values, g, COUNT, (np.inf, -np.inf)) == pytest.approx(best)
        between = np.sort(lows)[5], np.sort(highs)[-5]
        assert search_seeds(cells, values, g, COUNT, between) == pytest.approx(best)
        assert search_seeds(cells, values, g, COUNT, (best[0] - 1, best[1] + 1)) == (best[0] - 1, best[1] + 1)


def test_the_search_ends_where_nothing_can_be_better(monkeypatch):
    """One cell fills one bucket under the first seed: no other part of the seeds is looked at."""
    monkeypatch.setattr(_seed_search, "_SEEDS_A_TASK", 512)
    monkeypatch.setattr(_seed_search.os, "cpu_count", lambda: 1)
    looked_at = []
    inner = _seed_search._improved
    monkeypatch.setattr(_seed_search, "_improved", lambda *a: looked_at.append(a[0]) or inner(*a))
    assert search_seeds(np.array([5]), np.array([1.5]), 2, 2**32, (np.inf, -np.inf)) == (0.0, 1.5)
    assert looked_at == [0]
