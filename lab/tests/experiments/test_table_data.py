from pathlib import Path

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from deniable_lab.experiments import table_data
from deniable_lab.experiments.table_data import CALIFORNIA, FILING, SIZES_1940, STATES, WEST, households, syn1, syn2

CENSUS = Path(__file__).parents[4] / "shared" / "data" / "tables" / "census1940_persons.parquet"


def columns(table):
    return {name: table[name].to_numpy(zero_copy_only=False) for name in table.column_names}


def test_syn1_is_as_the_paper_describes():
    drawn = columns(syn1(200_000, 4, 4))
    assert list(drawn) == ["uid", "o1", "o2", "o3", "o4", "open", "c1", "c2", "c3", "c4"]
    for name in ("o1", "o2", "o3", "o4", "open"):
        assert drawn[name].min() == 1
        assert drawn[name].max() == 125
        assert abs(drawn[name].mean() - 62.5) < 1
    # Cutting two standard deviations away leaves about 29 of 31.25.
    assert 28 < drawn["o1"].std() < 31.25
    apart = (drawn["o2"] - drawn["o1"])[(drawn["o1"] > 40) & (drawn["o1"] < 85)]
    assert abs(apart.std() - 10) < 0.2
    for name in ("c1", "c4"):
        counts = np.bincount(drawn[name], minlength=501)
        assert counts[0] == 0
        assert counts[1:].min() > 300
        assert counts.size == 501


def test_the_first_attribute_of_syn1_may_have_another_domain():
    for size in (5, 25, 250):
        first = columns(syn1(50_000, 2, 0, size))["o1"]
        assert (first.min(), first.max()) == (1, size)
        assert abs(first.mean() - size / 2) < 0.02 * size + 0.1


def test_syn2_joins_one_to_one_and_one_to_many():
    for many in (False, True):
        frames = syn2(110_000, many)
        first, second = columns(frames["one"]), columns(frames["two"])
        rows = np.bincount(second["uid"], minlength=first["uid"].size)
        assert (rows.min(), rows.max()) == ((1, 10) if many else (1, 1))
        assert abs(second["uid"].size - 110_000) < 2_000
        assert np.corrcoef(first["a"][second["uid"]], second["x"])[0, 1] > 0.9
        assert second["z"].max() == first["b"].max() == 500


def test_households_stand_in_has_the_shape_of_the_real_ones():
    for west, low, high in ((False, 0.08, 0.13), (True, 0.3, 0.6)):
        frames = households(60_000, west, None)
        homes, people = frames["homes"], frames["people"]
        assert abs(people.num_rows - 60_000) < 1_500
        assert low < pc.mean(pc.equal(homes["state"], CALIFORNIA)).as_py() < high
        assert set(homes["state"].to_pylist()) <= set(WEST if west else STATES)
        rows = np.bincount(people["uid"].to_numpy(), minlength=homes.num_rows)
        assert 1 <= rows.min() <= rows.max() <= 10
        assert set(people["status"].to_pylist()) == set(FILING)
        assert 1 <= pc.min(people["age"]).as_py() <= pc.max(people["age"]).as_py() <= 120
        assert 0 <= pc.min(people["income"]).as_py() <= pc.max(people["income"]).as_py() <= 124


def test_larger_households_hold_the_same_people():
    frames = households(60_000, True, None, SIZES_1940)
    people, homes = frames["people"], frames["homes"]
    assert abs(people.num_rows - 60_000) < 1_500
    assert abs(people.num_rows / homes.num_rows - 3.68) < 0.1
    assert round(sum(SIZES_1940), 12) == 1.0
    rows = np.bincount(people["uid"].to_numpy(), minlength=homes.num_rows)
    assert (rows.min(), rows.max()) == (1, 10)
    assert set(homes["state"].to_pylist()) <= set(WEST)


@pytest.mark.skipif(not CENSUS.exists(), reason="the census's file is not here")
def test_sizes_of_1940_fall_as_in_the_census():
    persons = pq.read_table(CENSUS, columns=["age", "person_no"]).to_pandas()
    young = persons[persons["age"] < 50]
    numbers = np.bincount(young["person_no"], 1 / np.bincount(young["age"])[young["age"]], minlength=11)[3:11]
    at_least = np.cumsum(SIZES_1940[::-1])[::-1][2:]
    assert np.abs(at_least / at_least[0] - numbers / numbers[0]).max() < 0.045


def test_data_are_the_same_every_time():
    before = [syn1(1_000), syn2(1_000, True)["two"], households(1_000, True, None)["people"]]
    for made in (syn1, syn2, households):
        made.cache_clear()
    after = [syn1(1_000), syn2(1_000, True)["two"], households(1_000, True, None)["people"]]
    assert all(column.equals(other) for column, other in zip(before, after, strict=True))


def test_every_name_of_data_is_explained():
    papers = {"SYN-1", "SYN-2", "CPS", "CPS stand-in", "ATUS", "ATUS stand-in"}
    assert papers | {"PRODUCTS", "WORDS", "ADDRESSES", "NO-HITTERS", "FEW-LETTERS"} == set(table_data.ABOUT)
