"""Reports of subset selection behind the device: what is valid, what a liar can reach, and that all loops agree."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.engines.kernel.cell_pairs import by_view, counted_pairs
from deniable.queries.forecasts.influence import _bounds, _signals
from deniable.randomness import SeededSource
from deniable.tables.reports.report_table import RowFaults, row_faults

PEOPLE = 4_000
LARGEST = dn.Table("people", answer=dn.Ordinal(0, 62))


def released(collection: dn.Collection, size: int):
    frame = {"uid": np.arange(PEOPLE), "answer": np.arange(PEOPLE) % size}
    return collection.perturb(people=frame, source=SeededSource(3), simulation=True)


@pytest.fixture(scope="module")
def survey():
    collection = dn.Collection(LARGEST, epsilon=1.0, design="mg", oracle="subset")
    assert [view.oracle.label for view in collection.design_of("people")] == ["subset"]
    return collection, released(collection, 63)


def test_answers_and_forecasts_on_the_largest_view(survey):
    collection, reports = survey
    db = dn.connect(reports)
    question = "SELECT COUNT(*) FROM people WHERE answer BETWEEN 5 AND 40"
    answer = db.sql(question).scalar()
    held = np.arange(PEOPLE) % 63
    assert abs(answer.value - ((held >= 5) & (held <= 40)).sum()) < 5 * answer.stderr
    assert collection.forecast(question, users=PEOPLE).scalar().stderr == pytest.approx(answer.stderr, rel=0.1)
    hashed = dn.Collection(LARGEST, epsilon=1.0, design="mg").forecast(question, users=PEOPLE).scalar()
    assert answer.stderr < hashed.stderr


def test_reports_with_other_numbers_of_bits_are_refused(survey):
    collection, reports = survey
    table = reports["people"]
    y = np.asarray(table["y"]).copy()
    y[:4] = [0, 2**62, 2**63 - 1, y[3] ^ 1]
    broken = table.set_column(table.schema.get_field_index("y"), table.schema.field("y"), pa.array(y))
    columns = {name: np.asarray(broken[name]).astype(np.int64) for name in ("slot", "view", "seed", "y")}
    faults = row_faults(collection, "people", columns)
    assert faults[:4].all()
    assert not faults[4:].any()
    assert (RowFaults(collection, "people").of(columns) == faults).all()


@pytest.mark.parametrize("options", [{}, {"design": "mg", "oracle": "subset"}, {"design": "sc"}])
def test_tabulated_checks_find_the_same_faults(options):
    table = dn.Table("people", answer=dn.Ordinal(0, 15), age=dn.Ordinal(0, 7), many=3, tau=2)
    collection = dn.Collection(table, epsilon=1.0, **options)
    good = collection.perturb(
        people={"uid": [*range(300)], "answer": [3] * 300, "age": [5] * 300}, everyone={"uid": [*range(300)]}
    )["people"]
    columns = {name: np.asarray(good[name]).astype(np.int64) for name in ("slot", "view", "seed", "y")}
    source = np.random.default_rng(5)
    for name, values in columns.items():
        changed = source.random(values.size) < 0.1
        odd = source.choice([-1, 0, 1, 2, 3, 7, 100, 2**32, 2**62], values.size)
        columns[name] = np.where(changed, odd, values)
    faults = row_faults(collection, "people", columns)
    assert {0, 1, 2, 3} == set(faults.tolist())
    assert (RowFaults(collection, "people").of(columns) == faults).all()


def test_pairs_of_cells_are_counted_as_the_oracle_says(survey):
    collection, reports = survey
    design = collection.design_of("people")
    columns = [np.asarray(reports["people"][name]) for name in ("view", "seed", "y")]
    (pairs,) = by_view(design, counted_pairs(design, *columns)).values()
    (view,) = design
    supports = view.oracle.supports(np.arange(63)[None, :], 0, columns[2][:, None]).astype(np.int64)
    assert (pairs == supports.T @ supports).all()


def test_what_a_liar_reaches_is_the_extreme_of_all_sets():
    table = dn.Table("people", answer=dn.Ordinal(0, 7))
    collection = dn.Collection(table, epsilon=1.0, design="mg", oracle="subset")
    db = dn.connect(released(collection, 8))
    plan = db.plan("SELECT SUM(answer) FROM people WHERE answer <> 3")
    (view,) = plan.tables[0].parts[0].views
    weights = np.ones(plan.tables[0].columns)
    cells, values = _signals(view, weights)
    every = np.zeros(8)
    every[cells] = values
    size = view.oracle.support.size
    assert size > 1
    sums = [sum(chosen) for chosen in itertools.combinations(every, size)]
    assert _bounds(view, weights) == pytest.approx((min(sums), max(sums)))
    (influence,) = db.influence("SELECT COUNT(*) FROM people WHERE answer < 3")
    assert influence.exact
