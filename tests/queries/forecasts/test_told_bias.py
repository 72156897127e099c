"""A forecast that is told how many rows match knows how far off an answer will be that noise leaves at its prior."""

import math

import numpy as np
import pytest

import deniable as dn
from deniable.queries.forecasts.told_bias import SAID_ROUGHLY, with_told_bias


def error(prior: float, answered: float, truth: float, *, counted: bool = True) -> float:
    model, moments = np.full((1, 1, 1), float(prior) ** 2), (np.full((1, 1), float(each)) for each in (answered, truth))
    return math.sqrt(with_told_bias(model, *moments, [0] if counted else [])[0, 0, 0])


def test_a_bias_that_is_known_replaces_a_wide_prior_and_contradicts_a_narrow_one():
    assert error(1e6, 20, 95) == pytest.approx(math.hypot(75, SAID_ROUGHLY * 95), rel=1e-3)
    assert error(10, 110, 800) == pytest.approx(690, rel=0.05)
    assert error(10, 805, 800) == pytest.approx(10, rel=0.05)  # what is said roughly does not shrink a small error
    assert error(0, 20, 95) == 0  # what is exact stays exact


def test_sums_only_get_a_larger_bias():
    assert error(50, 20, 25, counted=False) == 50
    assert error(50, 520, 100, counted=False) == pytest.approx(math.sqrt(420**2 - 50**2))


def test_products_of_biases_stay_possible():
    random = np.random.default_rng(1)
    roots = random.normal(size=(5, 3, 3))
    model = roots @ roots.transpose(0, 2, 1)
    made = with_told_bias(model, random.normal(size=(5, 3)), random.normal(size=(5, 3)), [1])
    assert np.linalg.eigvalsh(made).min() > -1e-12


def test_a_forecast_that_is_told_of_many_rows_expects_answers_that_stay_near_an_even_spread():
    # One view of eight cells at a tiny ε shows nothing: the answer stays near 3 % of the users, and 30 % match.
    table = dn.Table("p", a=dn.Ordinal(0, 99))
    collection = dn.Collection(table, epsilon=0.01, design="grid", grids={"p": [dn.GridView({"a": dn.Cells(8)})]})
    question = "SELECT COUNT(*) FROM p WHERE a BETWEEN 40 AND 42"
    known = collection.forecast(question, users=2_000, matching=0.3).scalar().error
    frame = {"uid": np.arange(2_000), "a": np.where(np.arange(2_000) % 10 < 3, 41, np.arange(2_000) % 40)}
    reports = collection.perturb(p=frame, source=dn.SeededSource(1), simulation=True)
    answer = dn.connect(reports).sql(question).scalar()
    assert known / 1.5 < abs(answer.value - 600) < 1.5 * known
