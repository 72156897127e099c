"""The benchmark of grids: shapes are what they are called, and small runs find what large ones do."""

from itertools import islice

import numpy as np
import pytest

from deniable.benchmarks.grid_accuracy import GRID, HIO, SHAPES, VALUES, copula, measure


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape):
    rows = copula(shape, 3, 20_000, np.random.default_rng(0))
    assert rows.min() >= 0
    assert rows.max() < VALUES
    assert np.corrcoef(rows[:, 0], rows[:, 1])[0, 1] > 0.4
    counts = np.sort(np.bincount(rows[:, 0], minlength=VALUES) / 20_000)[::-1]
    assert (counts[0] > 0.1) == (shape in ("zipf", "spiky"))


def test_a_small_run_of_joins():
    rows = list(islice(measure(20_000, 1, 2, 0, None, lambda _: None, ("joins",)), 3))
    assert [(row.question, row.epsilon) for row in rows] == [
        ("join COUNT", 1.0),
        ("join COUNT", 2.0),
        ("join COUNT", 5.0),
    ]
    assert all(row.wanted is not None for row in rows)
    # At 20,000 users hierarchies have little to say about a join.
    assert all(row.errors[GRID] < row.errors[HIO] / 3 for row in rows)
