"""The benchmark of grids: shapes are what they are called, and small runs find what large ones do."""

from itertools import islice

import numpy as np
import pytest

from deniable_lab.benchmarks.grid_accuracy import GRID, HIO, SHAPES, VALUES, copula, measure
from deniable_lab.experiments.data import Data


@pytest.mark.parametrize("shape", SHAPES)
def test_shapes(shape):
    rows = copula(shape, 3, 20_000, np.random.default_rng(0))
    assert rows.min() >= 0
    assert rows.max() < VALUES
    assert np.corrcoef(rows[:, 0], rows[:, 1])[0, 1] > 0.4
    counts = np.sort(np.bincount(rows[:, 0], minlength=VALUES) / 20_000)[::-1]
    assert (counts[0] > 0.1) == (shape in ("zipf", "spiky"))


@pytest.mark.slow  # fits a join; test_table_findings.py compares grids in joins with less
def test_a_small_run_of_joins():
    (row,) = islice(measure(50_000, 1, 3, 0, Data(), lambda _: None, ("joins",)), 1)
    assert (row.question, row.epsilon) == ("join COUNT", 1.0)
    assert row.wanted is not None
    assert row.errors[GRID] < row.errors[HIO] / 5  # hierarchies have little to say about a join at this ε
