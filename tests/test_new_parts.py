"""A new oracle, SQL function, engine and stream source: a file each, and a line in a list. Nothing else has to know.

The files are copied into a temporary package, as somebody outside the project would have them.
"""

import importlib
import shutil
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from sqlglot import exp

import deniable as dn
from deniable.cli.main import cli
from deniable.engines.local.opening import open_local
from deniable.errors import QueryRefused
from deniable.mechanisms import oracles
from deniable.queries.parsing import scalar_functions
from deniable.stores.sources import readers

AGES = np.arange(60_000) % 40
PEOPLE = dn.Table("people", age=dn.Ordinal(0, 39))
YOUNG = "SELECT COUNT(*) FROM people WHERE age < 15"


@pytest.fixture
def parts(tmp_path, monkeypatch):
    """A part by name, from the copy."""
    shutil.copytree(Path(__file__).parent / "new_parts", tmp_path / "somebody_elses")
    monkeypatch.syspath_prepend(tmp_path)
    yield lambda name: importlib.import_module(f"somebody_elses.{name}")
    for name in [name for name in sys.modules if name.partition(".")[0] == "somebody_elses"]:
        del sys.modules[name]


@pytest.fixture
def hadamard(parts):
    """The new oracle, in the list."""
    oracle = parts("hadamard_response").HadamardResponse
    oracles.ORACLES.append(oracle)
    yield oracle
    oracles.ORACLES.remove(oracle)


HADAMARD_EPSILON = 1.0625
"""Designs are kept by specification, so specifications with the new oracle have an ε of their own."""


def perturbed(epsilon=1.0, rows=AGES, seed=5, **settings):
    people = {"uid": np.arange(rows.size), "age": rows}
    collection = dn.Collection(PEOPLE, epsilon=epsilon, **settings)
    return collection.perturb(people=people, source=dn.SeededSource(seed), simulation=True)


def test_an_oracle_keeps_its_promise(hadamard):
    oracle = hadamard(1.0, 5)
    for seed in range(oracle.seeds):
        laws = [oracle.law(cell, seed) for cell in range(5)]
        assert all(sum(law) == 1 for law in laws)
        worst = max(left[bit] / right[bit] for left in laws for right in laws for bit in (0, 1))
        assert worst in (1, oracle.p / (1 - oracle.p))
        assert float(worst) <= np.exp(1.0)


def test_an_oracle_supports_as_often_as_it_says(hadamard):
    oracle = hadamard(1.0, 5)
    rows, cells = np.arange(oracle.seeds), range(5)
    for true in cells:
        supported = {
            cell: [
                sum(chance for bit, chance in enumerate(oracle.law(true, seed)) if oracle.supports(cell, seed, bit))
                for seed in rows
            ]
            for cell in cells
        }
        means = {cell: sum(chances, Fraction(0)) / oracle.seeds for cell, chances in supported.items()}
        assert means == {cell: oracle.p if cell == true else oracle.q for cell in cells}


def test_an_oracle_works_from_the_device_to_the_answer(hadamard):
    collection = dn.Collection(PEOPLE, epsilon=HADAMARD_EPSILON)
    used = {type(view.oracle) for view in collection.design_of("people") if view.cells > 1}
    assert used == {hadamard}
    client = collection.client()
    for _ in range(20):
        report = client.report("people", {"age": 31})
        client = collection.client()
        assert report.y in (0, 1)
    database = dn.connect(perturbed(HADAMARD_EPSILON))
    answer = database.sql(YOUNG).scalar()
    truth = np.count_nonzero(AGES < 15)
    assert abs(answer.value - truth) < 5 * answer.stderr
    forecast = database.explain(YOUNG).forecast.predictions[0].stderr
    assert answer.stderr == pytest.approx(forecast, rel=0.1)


def test_an_oracle_is_asked_about_pairs_of_cells_and_on_grids(hadamard):
    database = dn.connect(perturbed(HADAMARD_EPSILON))
    rows = database.sql("SELECT age, COUNT(*) AS n FROM people GROUP BY age").to_arrow()
    errors = np.asarray(rows["n"]) - np.bincount(AGES)
    assert np.mean(np.abs(errors) < 3 * np.asarray(rows["n_stderr"])) > 0.9
    grid = dn.connect(perturbed(HADAMARD_EPSILON, design="grid"))
    answer = grid.sql(YOUNG).scalar()
    assert abs(answer.value - np.count_nonzero(AGES < 15)) < 5 * answer.stderr


def test_a_function(parts, monkeypatch):
    text = "SELECT COUNT(*) FROM people WHERE CBRT(age) > 2"
    database = dn.connect(perturbed(epsilon=np.inf, rows=AGES[:400], design="mg"))
    with pytest.raises(QueryRefused, match="CBRT"):
        database.sql(text)
    monkeypatch.setitem(scalar_functions.ON_DOMAINS, exp.Cbrt, parts("cube_root").PARTS)
    assert database.sql(text).scalar().value == np.count_nonzero(AGES[:400] > 8)


def test_an_engine(parts):
    whole, collection = perturbed(), dn.Collection(PEOPLE, epsilon=1.0)
    table = whole.tables["people"]
    halves = [table.slice(0, 30_000), table.slice(30_000)]
    engines = [open_local(dn.Reports(collection, {"people": half}, whole.summaries)) for half in halves]
    sharded = dn.connect(engine=parts("sharded_engine").ShardedEngine(*engines))
    single = open_local(whole)
    plan = sharded.plan(YOUNG)
    ours, theirs = sharded.engine.moments(plan, {}), single.moments(plan, {}, counted=False)
    np.testing.assert_allclose(ours.sums, theirs.sums, rtol=1e-9)
    np.testing.assert_allclose(ours.crosses, theirs.crosses, rtol=1e-9)
    answer = sharded.sql(YOUNG).scalar()
    assert abs(answer.value - np.count_nonzero(AGES < 15)) < 5 * answer.stderr
    grouped = "SELECT age, COUNT(*) AS n FROM people GROUP BY age"
    assert str(sharded.sql(grouped)) == str(dn.connect(whole).sql(grouped))  # by pairs of cells, which add up exactly
    assert repr(sharded) == repr(dn.connect(whole))


@pytest.fixture
def packed(parts):
    """The new source, in the list."""
    source = parts("packed_numbers").PACKED
    readers.SOURCES.append(source)
    yield source
    readers.SOURCES.remove(source)


def test_a_source(packed, tmp_path):
    path, out = tmp_path / "meter.i32", tmp_path / "out.parquet"
    np.arange(3000, dtype="<i4").tofile(path)
    options = ["--epsilon", "1", "--bound", "3000", "--warmup", "1000", "--horizon", "2048", "-o", str(out)]
    result = CliRunner().invoke(cli, ["stream", "publish", *options, str(path)])
    assert result.exit_code == 0, result.output
    assert len(dn.streams.Released.load(out)) == 2000
