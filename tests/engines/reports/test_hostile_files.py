"""Hostile files: names that are SQL or patterns, bombs, pipes; and sessions of DuckDB that open nothing."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from command_line import run
from deniable.engines.collecting.input_frames import as_arrow, column_types, count_rows
from deniable.engines.duckdb import spill_folders
from deniable.engines.duckdb.duckdb_session import literal_path, open_duckdb
from deniable.engines.duckdb.spill_folders import SPILL_PREFIX, SpillFolder
from deniable.errors import DeniableError, InvalidData, QueryRefused
from deniable.limits import LONGEST_TEXT

SHOP = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95), city=dn.Public()), epsilon=2.0)
ROWS = {"uid": [f"user {number}" for number in range(40)], "age": [31, 40] * 20, "city": ["Rome", "Oslo"] * 20}
MODES = [2**30, 0]


def written(folder, rows=ROWS):
    SHOP.perturb(users=rows, out=folder, source=dn.SeededSource(1), simulation=True)
    return folder


def changed(folder, change):
    """Rewrite the one file of a folder, keeping what it says of its specification."""
    path = folder / "users" / "part-0.parquet"
    table = pq.read_table(path)
    pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), path)
    return folder


# Sessions -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM '{secret}'",
        "SELECT * FROM glob('{folder}/*')",
        "COPY (SELECT 1) TO '{folder}/copied.csv'",
        "ATTACH '{folder}/attached.db'",
        "EXPORT DATABASE '{folder}/exported'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET memory_limit = '1TB'",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "SELECT * FROM visible",
    ],
)
def test_a_session_opens_nothing_but_what_it_was_opened_for(tmp_path, statement):
    secret, given = tmp_path / "secret.csv", tmp_path / "given.csv"
    secret.write_text("number\n73313\n")
    given.write_text("number\n1\n")
    visible = pa.table({"number": [73313]})
    with open_duckdb(files=[given]) as connection:
        assert connection.read_csv(literal_path(given)).fetchall() == [(1,)]
        with pytest.raises(duckdb.Error):
            connection.execute(statement.format(secret=secret, folder=tmp_path)).fetchall()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["given.csv", "secret.csv"]
    assert visible.num_rows


def test_no_other_session_is_opened():
    package = Path(dn.__file__).parent
    opening = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if any(call in path.read_text(encoding="utf-8") for call in ("duckdb.connect(", "duckdb.sql(", "duckdb.query("))
    }
    assert opening == {
        "engines/duckdb/duckdb_session.py",
        "queries/parsing/domain_values.py",  # public domains, in a session that can open nothing
        "queries/parsing/grammar.py",  # only parses
        "service/mysql/information_schema.py",  # names and types of columns, in a session that can open nothing
    }


@pytest.mark.parametrize("condition", ["city = (SELECT content FROM read_text('{0}'))", "city = read_text('{0}')"])
def test_public_conditions_open_no_file(tmp_path, condition):
    (tmp_path / "secret.txt").write_text("Rome")
    text = f"SELECT COUNT(*) FROM users WHERE {condition.format(tmp_path / 'secret.txt')}"
    with pytest.raises(QueryRefused):
        dn.connect(written(tmp_path / "reports")).sql(text)


# Names that are SQL ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory_limit", MODES)
def test_a_column_name_is_not_run(tmp_path, memory_limit):
    marker = tmp_path / "secret.txt"
    marker.write_text("73313")
    name = f"y\", (SELECT content FROM read_text('{marker}')) AS \"x"
    folder = changed(written(tmp_path / "reports"), lambda table: table.append_column(name, pa.array(["x"] * 40)))
    plain = written(tmp_path / "plain")
    database = dn.connect(folder, memory_limit=memory_limit)
    question = "SELECT city, AVG(age) AS age FROM users GROUP BY city"
    assert str(database.sql(question)) == str(dn.connect(plain).sql(question))  # further columns are not read


def test_a_table_with_odd_names_is_a_table(tmp_path):
    odd = {'a", (SELECT 1) AS "b': ["x"] * 40, "city; DROP TABLE everyone": ["y"] * 40, **ROWS}
    pq.write_table(pa.table(odd), tmp_path / "odd.parquet")
    options = {"source": dn.SeededSource(1), "simulation": True}
    assert (
        SHOP.perturb(users=tmp_path / "odd.parquet", **options)["users"] == SHOP.perturb(users=ROWS, **options)["users"]
    )
    key = 'u"; SELECT 1; --'
    pq.write_table(pa.table(ROWS).rename_columns([key, "age", "city"]), tmp_path / "key.parquet")
    perturbed = SHOP.perturb(users=tmp_path / "key.parquet", key=key, **options)
    assert perturbed["users"] == SHOP.perturb(users=ROWS, **options)["users"]


# Names that are patterns ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "other"), [("r[1]", "r1"), ("m*", "mother"), ("a?", "ab"), ("[ab]", "a"), ("{a,b}", "a")]
)
@pytest.mark.parametrize("memory_limit", MODES)
def test_a_folder_is_itself(tmp_path, name, other, memory_limit):
    folder = written(tmp_path / name)
    written(tmp_path / other, {"uid": ["x"], "age": [3], "city": ["Lima"]})
    changed(folder, lambda table: table.take(list(range(40))[::-1]))  # out of order, so that files are sorted
    (folder / "users" / "part-0.parquet").rename(folder / "users" / f"{name}.parquet")
    pq.write_table(pq.read_table(tmp_path / other / "users").slice(0, 0), folder / "users" / f"{other}.parquet")
    database = dn.connect(folder, memory_limit=memory_limit)
    assert database.stores["users"].rows == 40
    assert database.sql("SELECT city, COUNT(*) AS n FROM users GROUP BY city").groups["city"] == ["Oslo", "Rome"]


@pytest.mark.parametrize(("name", "other"), [("u[1]", "u1"), ("m*", "mother"), ("a?", "ab"), ("city=Lima", "a")])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_is_itself(tmp_path, name, other, ending):
    (tmp_path / name).mkdir()
    for path, number in ((tmp_path / name / f"{name}.{ending}", 1), (tmp_path / name / f"{other}.{ending}", 2)):
        table = pa.table({"uid": [number], "age": [number]})
        pq.write_table(table, path) if ending == "parquet" else path.write_text(f"uid,age\n{number},{number}\n")
    path = tmp_path / name / f"{name}.{ending}"
    assert as_arrow(path, "dimension").to_pydict() == {"uid": [1], "age": [1]}
    assert count_rows({"users": path}) == 1
    assert list(column_types(path)) == ["uid", "age"]
    collection = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    assert collection.perturb(users=path)["users"]["uid"].to_pylist() == [1]
    path.unlink()
    with pytest.raises(InvalidData, match="there is no file"):
        as_arrow(path, "dimension")


# Pipes, bombs, long names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("memory_limit", MODES)
def test_only_regular_files_are_opened(tmp_path, memory_limit):
    folder = written(tmp_path / "reports")
    os.mkfifo(folder / "users" / "pipe.parquet")
    with pytest.raises(InvalidData, match=r"'pipe\.parquet' is not a regular file"):
        dn.connect(folder, memory_limit=memory_limit)
    (folder / "users" / "pipe.parquet").unlink()
    (folder / "collection.json").unlink()
    os.mkfifo(folder / "collection.json")
    with pytest.raises(DeniableError, match=r"holds no collection\.json"):
        dn.connect(folder, memory_limit=memory_limit)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_tables_are_regular_files(tmp_path, ending):
    os.mkfifo(tmp_path / f"pipe.{ending}")
    with pytest.raises(InvalidData, match="is not a regular file"):
        SHOP.perturb(users=tmp_path / f"pipe.{ending}")
    with pytest.raises(InvalidData, match="is not a regular file"):
        dn.connect(SHOP.perturb(users=ROWS), dimensions={"cities": tmp_path / f"pipe.{ending}"})


@pytest.mark.parametrize("memory_limit", MODES)
@pytest.mark.parametrize("column", ["uid", "city"])
def test_a_dictionary_bomb_is_not_unpacked(tmp_path, memory_limit, column):
    # One text of a million letters for each of 40,000 rows: 40 GB from a file of some kilobytes.
    folder = written(tmp_path / "reports")
    path = folder / "users" / "part-0.parquet"
    table = pq.read_table(path)
    long = pa.DictionaryArray.from_arrays(pa.array(np.zeros(40_000, dtype=np.int32)), pa.array(["x" * 10**6]))
    bomb = pa.concat_tables([table] * 1_000).set_column(table.column_names.index(column), column, long)
    pq.write_table(bomb.replace_schema_metadata(table.schema.metadata), path)
    assert path.stat().st_size < 2**22
    with pytest.raises(InvalidData, match=f"texts of more than {LONGEST_TEXT:,} bytes"):
        dn.connect(folder, memory_limit=memory_limit)


@pytest.mark.parametrize("memory_limit", MODES)
def test_a_file_declares_what_it_can_hold(tmp_path, memory_limit):
    folder = written(tmp_path / "reports")
    few = pa.DictionaryArray.from_arrays(pa.array(np.zeros(2_000_000, dtype=np.int32)), pa.array(["x"]))
    same = {name: pa.array(np.zeros(2_000_000, dtype=np.uint32)) for name in ("slot", "view", "seed", "y")}
    changed(folder, lambda _: pa.table({"uid": few, **same, "city": few}))
    with pytest.raises(InvalidData, match="declare more than reports of their size can hold"):
        dn.connect(folder, memory_limit=memory_limit)
    os.truncate(folder / "users" / "part-0.parquet", 10)
    changed_texts = ["x" * 3_000_000] * 3
    folder = changed(
        written(tmp_path / "long"), lambda table: table.slice(0, 3).set_column(0, "uid", pa.array(changed_texts))
    )
    with pytest.raises(InvalidData, match="more than"):
        dn.connect(folder, memory_limit=memory_limit)


@pytest.mark.parametrize("memory_limit", MODES)
def test_one_user_with_all_reports(tmp_path, memory_limit):
    folder = changed(written(tmp_path / "reports"), lambda table: pa.concat_tables([table.slice(0, 1)] * 5_000))
    assert dn.connect(folder, memory_limit=memory_limit).refused["users"] == {"user and slot repeated": 5_000}


def test_long_names_are_cut(tmp_path):
    for call in (lambda name: dn.connect(name), lambda name: SHOP.perturb(users=name), as_arrow_of, column_types):
        with pytest.raises(DeniableError) as caught:
            call("x" * 10**6)
        assert len(str(caught.value)) < 500
    name = "x" * 10**6
    pq.write_table(pa.table({"uid": [1], name: [1]}), tmp_path / "long.parquet")
    done = run("init", "--from", tmp_path / "long.parquet")
    assert done.returncode == 2
    assert len(done.stdout + done.stderr) < 1_000


def as_arrow_of(path):
    return as_arrow(path, "dimension")


# What is too long to be read again is not written ---------------------------------------------------------------------


@pytest.mark.parametrize("column", ["uid", "city"])
def test_long_texts_are_refused_before_they_are_reports(tmp_path, column):
    rows = ROWS | {column: ["x" * (LONGEST_TEXT + 1), *ROWS[column][1:]]}
    for options in ({}, {"out": tmp_path / "reports"}):
        with pytest.raises(InvalidData, match=f"more than {LONGEST_TEXT:,} bytes"):
            SHOP.perturb(users=rows, **options)
    assert list(tmp_path.iterdir()) == []
    fitting = ROWS | {column: ["é" * (LONGEST_TEXT // 2), *ROWS[column][1:]]}
    assert dn.connect(SHOP.perturb(users=fitting, out=tmp_path / "reports")).stores["users"].rows == 40


# Spill folders --------------------------------------------------------------------------------------------------------

HOLDING = """
import pathlib, sys, time
from deniable.engines.duckdb.spill_folders import SpillFolder
folder = SpillFolder(pathlib.Path(sys.argv[1]))
(folder.path / "deep").mkdir()
(folder.path / "deep" / "rows").write_text("secret")
print(folder.path, flush=True)
time.sleep(600)
"""


def test_a_killed_run_leaves_nothing_for_long(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLDING, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        try:
            held = Path(process.stdout.readline().strip())
            assert stat.S_IMODE(held.stat().st_mode) == 0o700
            with SpillFolder(tmp_path) as mine:
                assert (held / "deep" / "rows").exists()  # its process lives
            assert not mine.path.exists()
        finally:
            process.kill()
    assert held.exists()
    (tmp_path / f"{SPILL_PREFIX}empty").mkdir()  # killed before it had its lock
    (tmp_path / f"{SPILL_PREFIX}link").symlink_to(tmp_path)
    with SpillFolder(tmp_path) as mine:
        assert {path.name for path in tmp_path.iterdir()} == {mine.path.name, f"{SPILL_PREFIX}link"}


def test_a_folder_that_is_taken_for_a_leftover_is_made_anew(tmp_path, monkeypatch):
    made = []

    def interrupted(*arguments, **options):
        folder = mkdtemp(*arguments, **options)
        if not made:
            spill_folders.remove_leftovers(tmp_path)  # another process looks before the lock is there
        made.append(folder)
        return folder

    mkdtemp = spill_folders.tempfile.mkdtemp
    monkeypatch.setattr(spill_folders.tempfile, "mkdtemp", interrupted)
    with SpillFolder(tmp_path) as folder:
        assert str(folder.path) == made[1]
        assert list(tmp_path.iterdir()) == [folder.path]


def test_runs_spill_where_they_are_told_to(tmp_path, monkeypatch):
    places = []
    opened = open_duckdb

    def noting(**options):
        folder = options.get("folder")
        places.append(folder and (folder.parent, stat.S_IMODE(folder.stat().st_mode)))
        return opened(**options)

    monkeypatch.setattr("deniable.engines.collecting.sorted_rows.open_duckdb", noting)
    monkeypatch.setattr("deniable.engines.reports.file_validation.open_duckdb", noting)
    chosen, system = tmp_path / "chosen", tmp_path / "system"
    chosen.mkdir()
    system.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(system))
    SHOP.perturb(users=ROWS, out=tmp_path / "one" / "two" / "reports")
    SHOP.perturb(users=ROWS, spill=chosen)
    SHOP.perturb(users=ROWS)
    folder = changed(written(tmp_path / "reports"), lambda table: table.take(list(range(40))[::-1]))
    dn.connect(folder, memory_limit=0, spill=chosen)
    assert places == [(parent, 0o700) for parent in (tmp_path / "one" / "two", chosen, system, tmp_path, chosen)]
    assert list(chosen.iterdir()) == list(system.iterdir()) == []
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(SPILL_PREFIX)]
    with pytest.raises(DeniableError, match="spill must be a folder that exists"):
        SHOP.perturb(users=ROWS, spill=tmp_path / "nowhere")


def test_a_fork_leaves_the_folder_alone(tmp_path):
    with SpillFolder(tmp_path) as folder:
        child = os.fork()
        if not child:
            folder.close()
            os._exit(0)
        os.waitpid(child, 0)
        assert folder.path.exists()
    assert not folder.path.exists()
