"""What every mechanism accepts, what it refuses, and that a refusal repeats no value."""

import math
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from deniable import SeededSource
from deniable.errors import InvalidData, InvalidParameter, SimulationOnly
from deniable.mechanisms import (
    DiscreteLaplace,
    HashedReports,
    Hybrid,
    LocalHashing,
    NoisyMax,
    PermuteAndFlip,
    Piecewise,
    RandomizedResponse,
    SquareWave,
    StochasticRounding,
)

CELLS = [RandomizedResponse(1.0, 10), LocalHashing(1.0, 10), LocalHashing.binary(1.0, 10)]
REALS = [StochasticRounding(1.0, 0, 9), Piecewise(1.0, 0, 9), Hybrid(1.0, 0, 9), SquareWave(1.0, 0, 9)]
INTEGERS = [DiscreteLaplace(1.0), NoisyMax(1.0), PermuteAndFlip(1.0)]
EVERY = CELLS + REALS + INTEGERS
SECRET = 7_654_321


def same(a, b):
    if isinstance(a, HashedReports):
        return (a.seeds == b.seeds).all() and (a.buckets == b.buckets).all()
    return np.array_equal(a, b)


@pytest.mark.parametrize("mechanism", EVERY, ids=repr)
@pytest.mark.parametrize("kind", [list, pa.array, pa.chunked_array, pd.Series, pl.Series, "int32"])
def test_columns_of_any_library_give_the_same_reports(mechanism, kind):
    values = np.array([1, 2, 3, 4, 5, 6])
    if kind == "int32":
        column = values.astype(np.int32)
    else:
        column = kind([values[:2], values[2:]]) if kind is pa.chunked_array else kind(values.tolist())
    seeded = {"source": SeededSource(1), "simulation": True}
    expected = mechanism.perturb(values, source=SeededSource(1), simulation=True)
    assert same(mechanism.perturb(column, **seeded), expected)


def test_float_columns_of_any_library_give_the_same_reports():
    values = np.linspace(0, 9, 50)
    for mechanism in REALS:
        expected = mechanism.perturb(values, source=SeededSource(1), simulation=True)
        for column in (pa.array(values), pd.Series(values), pl.Series(values), values.tolist()):
            assert same(mechanism.perturb(column, source=SeededSource(1), simulation=True), expected)


BAD_FOR_ALL = {
    "empty": np.array([], dtype=np.int64),
    "two dimensions": np.ones((2, 2), dtype=np.int64),
    "text": np.array([str(SECRET)]),
    "objects": np.array([SECRET, None], dtype=object),
    "truth values": np.array([True, False]),
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "complex": np.array([1j * SECRET]),
    "masked": np.ma.masked_array([1, 2], mask=[False, True]),
    "ragged": [[1, 2], [3]],
    "missing in Arrow": pa.array([1, None]),
    "missing in Polars": pl.Series([1, None]),
}


@pytest.mark.parametrize("mechanism", EVERY, ids=repr)
@pytest.mark.parametrize("name", BAD_FOR_ALL)
def test_columns_that_nobody_takes(mechanism, name):
    with pytest.raises(InvalidData) as caught:
        mechanism.perturb(BAD_FOR_ALL[name])
    assert str(SECRET) not in str(caught.value)
    assert "nothing was spent" in str(caught.value)


@pytest.mark.parametrize("mechanism", CELLS + REALS, ids=repr)
@pytest.mark.parametrize("bad", [[-1], [10], [SECRET], [-SECRET], [2**63 - 1]])
def test_values_outside_the_domain(mechanism, bad):
    with pytest.raises(InvalidData) as caught:
        mechanism.perturb(np.array([1, 2, *bad]))
    assert str(SECRET) not in str(caught.value)
    assert "public" in str(caught.value)


@pytest.mark.parametrize("mechanism", CELLS + INTEGERS, ids=repr)
def test_fractions_are_no_cells(mechanism):
    with pytest.raises(InvalidData, match="integer"):
        mechanism.perturb(np.array([1.5]))


@pytest.mark.parametrize("mechanism", REALS, ids=repr)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_numbers_that_are_none(mechanism, bad):
    with pytest.raises(InvalidData, match="NaN or infinity"):
        mechanism.perturb(np.array([1.0, bad]))
    with pytest.raises(InvalidData, match="finite"):
        mechanism.perturb_one(bad)


@pytest.mark.parametrize("mechanism", CELLS + REALS, ids=repr)
@pytest.mark.parametrize("bad", [-1, 10, SECRET, str(SECRET), None, True])
def test_single_values_outside_the_domain(mechanism, bad):
    with pytest.raises(InvalidData) as caught:
        mechanism.perturb_one(bad)
    assert str(SECRET) not in str(caught.value)


def test_single_values_of_integer_mechanisms():
    for bad in (1.5, "1", None, True):
        with pytest.raises(InvalidData, match="integer"):
            DiscreteLaplace(1.0).perturb_one(bad)
    for mechanism in (NoisyMax(1.0), PermuteAndFlip(1.0)):
        with pytest.raises(InvalidData, match="empty"):
            mechanism.perturb_one([])
        with pytest.raises(InvalidData, match="integers"):
            mechanism.perturb_one([1, 2.5])


def test_single_values_of_numpy_are_welcome():
    for mechanism in CELLS:
        assert mechanism.perturb_one(np.int64(3)) is not None
    for mechanism in REALS:
        assert mechanism.perturb_one(np.float32(2.5)) >= 0
    assert LocalHashing(math.inf, 10).perturb_one(np.int32(3), simulation=True)[1] == 3


@pytest.mark.parametrize("mechanism", EVERY, ids=repr)
def test_a_seeded_source_is_refused_for_single_values_too(mechanism):
    value = [1, 2] if isinstance(mechanism, (NoisyMax, PermuteAndFlip)) else 1
    with pytest.raises(SimulationOnly):
        mechanism.perturb_one(value, randbelow=SeededSource(1).randbelow)
    assert mechanism.perturb_one(value, randbelow=SeededSource(1).simulated_randbelow) is not None


@pytest.mark.parametrize(
    "mechanism", [StochasticRounding(1.0), Piecewise(1.0), Hybrid(1.0), RandomizedResponse(1.0, 3)]
)
def test_how_many_words_are_drawn_does_not_depend_on_the_value(mechanism):
    def drawn(value, seed):
        source = SeededSource(seed)
        mechanism.perturb_one(value, randbelow=source.simulated_randbelow)
        return source.counter

    values = [0, 1, 2] if isinstance(mechanism, RandomizedResponse) else [-1, 0, 0.1, 1 / 3, 1]
    for seed in range(30):
        assert len({drawn(value, seed) for value in values}) == 1
    bulk = {}
    for value in values:
        source = SeededSource(5)
        mechanism.perturb(np.full(500, value), source=source, simulation=True)
        bulk[value] = source.counter
    assert len(set(bulk.values())) == 1


def test_how_many_words_a_choice_draws_does_not_depend_on_the_scores():
    counters = set()
    for scores in ([0, 0, 0], [0, 100, 0], [5, 5, 0]):
        for mechanism in (PermuteAndFlip(1.0), NoisyMax(1.0)):
            source = SeededSource(6)
            mechanism.perturb(scores, source=source, simulation=True)
            counters.add((type(mechanism).__name__, source.counter))
    assert len(counters) == 2


@pytest.mark.parametrize("kind", [StochasticRounding, Piecewise, Hybrid, SquareWave])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1e-310), (-1e300, 1e300), (1e17, 1e17 + 16), (0.0, 1e-149)])
def test_extreme_ranges_are_refused_or_stay_on_the_grid(kind, low, high):
    try:
        mechanism = kind(1.0, low, high)
    except InvalidParameter:
        return
    reports = mechanism.perturb(np.repeat([low, high, (low + high) / 2], 200))
    outputs = getattr(mechanism, "outputs", None) or getattr(getattr(mechanism, "window", None), "outputs", 2)
    assert reports.min() >= 0
    assert reports.max() < outputs


def test_integers_leave_room_for_noise():
    with pytest.raises(InvalidData, match=r"within ±2\^61"):
        DiscreteLaplace(1.0).perturb(np.array([2**62]))


@pytest.mark.parametrize("mechanism", EVERY, ids=repr)
def test_a_seeded_source_is_refused_unless_it_is_a_simulation(mechanism):
    with pytest.raises(SimulationOnly):
        mechanism.perturb([1, 2], source=SeededSource(1))


@pytest.mark.parametrize("mechanism", EVERY, ids=repr)
def test_mechanisms_are_frozen_values(mechanism):
    with pytest.raises(FrozenInstanceError):
        mechanism.epsilon = 2.0
    assert mechanism == eval(repr(mechanism), globals())  # noqa: S307 - our own text
    assert hash(mechanism) == hash(type(mechanism)(*[getattr(mechanism, field.name) for field in fields(mechanism)]))


@pytest.mark.parametrize("kind", [RandomizedResponse, LocalHashing])
def test_impossible_domains(kind):
    for k in (1, 0, -3, 2.5, True, 2**32 + 1):
        with pytest.raises(InvalidParameter, match="k must be a Python integer from 2 to 4294967296"):
            kind(1.0, k)


@pytest.mark.parametrize("kind", [StochasticRounding, Piecewise, Hybrid, SquareWave])
@pytest.mark.parametrize(
    ("low", "high", "problem"),
    [
        (1, 1, "low must be below high"),
        (2, 1, "low must be below high"),
        (0, math.inf, "high must be a finite number"),
        (math.nan, 1, "low must be a finite number"),
        ("0", 1, "low must be a finite number"),
        (False, 1, "low must be a finite number"),
        (0, 10**400, "low and high must lie within ±1e150"),
        (-1e308, 1e308, "low and high must lie within ±1e150"),
    ],
)
def test_impossible_ranges(kind, low, high, problem):
    with pytest.raises(InvalidParameter, match=f"^{problem}"):
        kind(1.0, low, high)


@pytest.mark.parametrize("mechanism", EVERY, ids=repr)
@pytest.mark.parametrize("epsilon", [0, -1, math.nan, "1", 1e-40, 10**400])
def test_impossible_epsilons(mechanism, epsilon):
    arguments = {name: getattr(mechanism, name) for name in mechanism.__slots__} | {"epsilon": epsilon}
    with pytest.raises(InvalidParameter, match="epsilon"):
        type(mechanism)(**arguments)


def test_other_impossible_settings():
    for make, word in (
        (lambda: LocalHashing(1.0, 10, buckets=1), "buckets"),
        (lambda: Piecewise(1.0, steps=0), "steps"),
        (lambda: SquareWave(1.0, cells=1), "cells"),
        (lambda: DiscreteLaplace(1.0, sensitivity=0), "sensitivity"),
        (lambda: DiscreteLaplace(1e-9, sensitivity=10**6), "noise scale"),
        (lambda: NoisyMax(1000.0), "epsilon"),
        (lambda: DiscreteLaplace(1.0).law(0, 3, 3), "low"),
    ):
        with pytest.raises(InvalidParameter, match=word):
            make()


def test_bad_reports_are_refused():
    with pytest.raises(InvalidData, match="reports must lie"):
        RandomizedResponse(1.0, 4).estimate([0, 4])
    with pytest.raises(InvalidData, match="more seeds than buckets"):
        LocalHashing(1.0, 4).estimate(HashedReports(np.zeros(3, dtype=np.uint32), np.zeros(2, dtype=np.int64)))
    with pytest.raises(InvalidData, match="reports"):
        Piecewise(1.0).estimate([10**9])


def test_foreign_reports_are_refused_without_being_shown():
    with pytest.raises(InvalidData) as caught:
        DiscreteLaplace(1.0).estimate([str(SECRET)])
    assert str(SECRET) not in str(caught.value)
    for seeds in (np.array([-1]), np.array([2**40]), np.array([np.nan])):
        with pytest.raises(InvalidData, match="seeds"):
            LocalHashing(1.0, 4).estimate(HashedReports(seeds, np.array([1])))


def test_reports_print_no_report():
    assert repr(LocalHashing(1.0, 4).perturb([1, 2, 3])) == "HashedReports(3 reports)"


def test_chosen_cells_are_estimated_alone():
    mechanism = LocalHashing(3.0, 100)
    reports = mechanism.perturb(np.arange(100).repeat(50), source=SeededSource(3), simulation=True)
    np.testing.assert_array_equal(mechanism.estimate(reports, [7, 99]), mechanism.estimate(reports)[[7, 99]])


def test_infinite_epsilon_returns_the_data():
    values = np.array([0, 3, 9, 9])
    counts = np.bincount(values, minlength=10)
    for mechanism in (RandomizedResponse(math.inf, 10), LocalHashing(math.inf, 10)):
        np.testing.assert_allclose(mechanism.estimate(mechanism.perturb(values, simulation=True)), counts)
    assert LocalHashing(math.inf, 10).perturb_one(3, simulation=True)[1] == 3
    for mechanism in (StochasticRounding(math.inf, 0, 9), Piecewise(math.inf, 0, 9, 9), Hybrid(math.inf, 0, 9, 9)):
        ends = np.array([0, 9, 9, 0])
        np.testing.assert_allclose(mechanism.estimate(mechanism.perturb(ends, simulation=True)), ends, atol=1e-12)
    hybrid = Hybrid(math.inf, 0, 9, 9)
    np.testing.assert_allclose(hybrid.estimate(hybrid.perturb(values, simulation=True)), values)


def test_the_number_of_buckets():
    assert [LocalHashing(epsilon, 10).g for epsilon in (0.1, 1.0, 2.0, 3.0, 50.0)] == [2, 4, 8, 21, 65536]
    assert LocalHashing.binary(3.0, 10).g == 2
