"""Reports that do not fit into memory: the same answers, the same refusals, bounded memory, nothing left behind."""

import gc
import json
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.engines.duckdb.duckdb_session import open_duckdb
from deniable.engines.reports import file_validation as validating
from deniable.engines.reports import report_files
from deniable.engines.reports import report_stores as stores
from deniable.engines.reports import user_blocks as blocks
from deniable.engines.reports.report_stores import FileStore, MemoryStore
from deniable.queries.parsing.domain_values import _evaluator
from deniable.randomness import SeededSource

USERS = dn.Table(
    "users", age=dn.Ordinal(0, 49), kind=dn.Categorical("a", "b", "c"), city=dn.Public(), score=dn.Public()
)
ORDERS = dn.Table("orders", many=4, tau=2, amount=dn.Ordinal(0, 24))
QUESTIONS = [
    "SELECT COUNT(*) AS n, AVG(age) AS a FROM users WHERE age BETWEEN 7 AND 31",
    "SELECT city, kind, COUNT(*) AS n, SUM(score) AS s FROM users WHERE city <> 'Oslo' OR age > 20 GROUP BY city, kind",
    "SELECT COUNT(*) AS n, SUM(amount) AS s FROM orders WHERE amount < 10",
    "SELECT kind, COUNT(*) AS n, SUM(amount) AS s FROM orders JOIN users USING (uid) WHERE city = 'Rome' GROUP BY kind",
]
PEOPLE = 1_500


def collected(folder, *, text_ids=False, design="hio"):
    """Reports of everybody in a folder, some users in one table only."""
    random = np.random.default_rng(6)
    ids = np.sort(random.permutation(10 * PEOPLE)[:PEOPLE]) - 5_000
    names = np.array([f"user {number}" for number in ids]) if text_ids else ids
    owners = np.repeat(names[200:], random.integers(0, 6, PEOPLE - 200))
    users = pa.table({
        "uid": names[:-100],
        "age": random.integers(0, 50, PEOPLE - 100),
        "kind": np.array(["a", "b", "c"])[random.integers(0, 3, PEOPLE - 100)],
        "city": pa.array([["Rome", "Oslo", None][city] for city in random.integers(0, 3, PEOPLE - 100)]),
        "score": random.normal(size=PEOPLE - 100),
    })  # fmt: skip
    orders = pa.table({"uid": owners, "amount": random.integers(0, 25, owners.size)})
    collection = dn.Collection(USERS, ORDERS, epsilon=6.0, design=design)
    everyone = pa.table({"uid": names[200:]})
    options = {"source": SeededSource(4), "simulation": True, "out": folder}
    collection.perturb(users=users, **options)
    collection.perturb(orders=orders, everyone=everyone, **options)
    return folder


def rewrite(folder, change):
    """Change a table's rows, keeping what the file says of its specification; in two files."""
    paths = sorted(folder.glob("*.parquet"))
    table = pa.concat_tables([pq.read_table(path) for path in paths])
    changed = change(table).replace_schema_metadata(table.schema.metadata)
    for path in paths:
        path.unlink()
    half = changed.num_rows // 2
    pq.write_table(changed.slice(0, half), folder / "part-0.parquet")
    pq.write_table(changed.slice(half), folder / "part-1.parquet")


def shuffled(table):
    return table.take(pa.array(np.random.default_rng(1).permutation(table.num_rows)))


def put(table, column, rows, value):
    """Overwrite a column's value in some rows."""
    values = table[column].to_pylist()
    for row in rows:
        values[row] = value
    index = table.column_names.index(column)
    return table.set_column(index, table.schema.field(column), pa.array(values, table.schema.field(column).type))


FAULTS = {
    "none": lambda table: table,
    "shuffled": shuffled,
    "reversed": lambda table: table.take(pa.array(np.arange(table.num_rows)[::-1])),
    "repeated": lambda table: pa.concat_tables([table, table.slice(10, 50)]),
    "repeated and shuffled": lambda table: shuffled(pa.concat_tables([table, table.slice(10, 50)])),
    "missing slots": lambda table: table.filter(pa.array(np.arange(table.num_rows) % 7 != 3)),
    "wrong views": lambda table: put(table, "view", range(0, table.num_rows, 11), 4_000_000),
    "wrong y": lambda table: put(table, "y", range(0, table.num_rows, 13), 2**32 - 1),
    "wrong slots": lambda table: put(table, "slot", range(0, table.num_rows, 17), 9),
    "no ids": lambda table: put(table, "uid", range(0, table.num_rows, 19), None),
    "nobody": lambda table: table.slice(0, 0),
    "everything": lambda table: shuffled(
        put(put(pa.concat_tables([table, table.slice(5, 9)]), "view", [3, 400], 9_999), "uid", [77, 1_000], None)
    ),
}


def same(left, right):
    """Whether two databases have the same reports, and give the same answers."""
    assert {name: store.rows for name, store in left.stores.items()} == {n: s.rows for n, s in right.stores.items()}
    assert left.refused == right.refused
    for text in QUESTIONS:
        first, second = left.sql(text).to_arrow().to_pydict(), right.sql(text).to_arrow().to_pydict()
        assert first.keys() == second.keys()
        for name, values in first.items():
            if values and isinstance(values[0], float):
                assert values == pytest.approx(second[name], rel=1e-9, abs=1e-6, nan_ok=True)
            else:
                assert values == second[name]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    # Many blocks, cut in the middle of users, also from few reports.
    monkeypatch.setattr(stores, "BLOCK_REPORTS", 1_024)
    monkeypatch.setattr(report_files, "BLOCK_REPORTS", 1_024)
    monkeypatch.setattr(validating, "BLOCK_REPORTS", 1_024)
    monkeypatch.setattr(blocks, "BLOCK_REPORTS", 1_024)


@pytest.mark.parametrize("fault", [*FAULTS, "everything, texts", "none, texts", "missing slots, texts"])
def test_files_give_the_same_answers_as_memory(tmp_path, fault):
    fault, *text_ids = fault.split(", ")
    folder = collected(tmp_path / "reports", text_ids=bool(text_ids))
    for table in ("users", "orders"):
        rewrite(folder / table, FAULTS[fault])
    held, streamed = dn.connect(folder), dn.connect(folder, memory_limit=0)
    assert all(isinstance(store, MemoryStore) for store in held.stores.values())
    assert fault == "nobody" or all(isinstance(store, FileStore) for store in streamed.stores.values())
    # What a later file repeats, byte for byte, is neither counted nor refused.
    assert fault in ("none", "shuffled", "reversed", "nobody", "repeated") or held.refused["orders"]
    same(held, streamed)


@pytest.mark.parametrize("text_ids", [False, True], ids=["integers", "texts"])
def test_a_table_in_files_joins_one_in_memory(tmp_path, text_ids):
    folder = collected(tmp_path / "reports", text_ids=text_ids)
    # Orders have twice as many reports as users: a limit between the two keeps only users in memory.
    mixed = dn.connect(folder, memory_limit=64 * PEOPLE)
    assert isinstance(mixed.stores["users"], MemoryStore)
    assert isinstance(mixed.stores["orders"], FileStore)
    same(dn.connect(folder), mixed)


def test_a_number_and_a_text_that_looks_like_it_are_one_user(tmp_path):
    folder = collected(tmp_path / "reports")
    numbers = dn.connect(folder)
    rewrite(folder / "users", lambda table: table.set_column(0, "uid", table["uid"].cast(pa.string())))
    same(numbers, dn.connect(folder))
    same(numbers, dn.connect(folder, memory_limit=64 * PEOPLE))
    same(numbers, dn.connect(folder, memory_limit=0))


def test_designs_of_several_parts(tmp_path):
    folder = collected(tmp_path / "reports", design="sc")
    rewrite(folder / "orders", shuffled)
    same(dn.connect(folder), dn.connect(folder, memory_limit=0))


def test_texts_are_ordered_alike_everywhere(tmp_path):
    # By code points, not by what a language thinks.
    folder = collected(tmp_path / "reports", text_ids=True)
    odd = ["Z", "a", "é", "É", "ß", "", "\U0001f600", "￿", "user"]

    def renamed(table):
        texts = [f"{odd[zlib.crc32(uid.encode()) % len(odd)] if uid else ''}{uid}" for uid in table["uid"].to_pylist()]
        return table.set_column(0, table.schema.field("uid"), pa.array(texts, table.schema.field("uid").type))

    rewrite(folder / "users", lambda table: shuffled(renamed(table)))
    rewrite(folder / "orders", lambda table: shuffled(renamed(table)))
    same(dn.connect(folder), dn.connect(folder, memory_limit=0))
    same(dn.connect(folder), dn.connect(folder, memory_limit=64 * PEOPLE))


def test_temporary_files_are_removed(tmp_path, monkeypatch):
    folder = collected(tmp_path / "reports")
    rewrite(folder / "users", FAULTS["everything"])
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    database = dn.connect(folder, memory_limit=0)
    assert len(list(temporary.iterdir())) == 1  # users are copied, orders are used as they are
    database.sql(QUESTIONS[0])
    del database
    gc.collect()
    assert list(temporary.iterdir()) == []


def test_duckdb_does_not_print():
    # Its progress bar goes to stdout, also into a pipe, where answers are: so nothing in the package opens another.
    with open_duckdb(memory_limit=2**26) as made:
        made.execute("SELECT current_setting('enable_progress_bar')")
        assert made.fetchone() == (False,)
    package = Path(dn.__file__).parent
    opening = {
        path.relative_to(package).as_posix()
        for room in ("tables", "queries", "engines")
        for path in (package / room).rglob("*.py")
        if "duckdb.connect(" in path.read_text(encoding="utf-8")
    }
    assert opening == {
        "engines/duckdb/duckdb_session.py",
        "queries/parsing/domain_values.py",
        "queries/parsing/grammar.py",  # runs no statement
    }
    for setting in ("enable_progress_bar", "enable_external_access", "python_enable_replacements"):
        assert _evaluator().execute(f"SELECT current_setting('{setting}')").fetchone() == (False,)
    with pytest.raises(duckdb.InvalidInputException, match="locked"):
        _evaluator().execute("SET enable_external_access = true")


MEASURED = """
import re, sys, json
import deniable as dn
database = dn.connect(sys.argv[1], memory_limit=int(sys.argv[2]))
answers = [database.sql(text).to_arrow().to_pydict() for text in json.loads(sys.argv[3])]
# Not getrusage: it counts what the process held before it became this one.
peak = re.search(r"VmHWM:\\s+([0-9]+)", open("/proc/self/status").read())[1]
print(json.dumps([int(peak) // 1024, answers]))
"""


def repeated(folder, larger, users, times):
    """A folder of several times as many people, with ids of their own, who sent the same reports."""
    (larger / "users").mkdir(parents=True)
    (larger / "collection.json").write_bytes((folder / "collection.json").read_bytes())
    table = pq.read_table(folder / "users")
    for number in range(times):
        uid = pa.array(table["uid"].to_numpy() + number * users, table.schema.field("uid").type)
        part = table.set_column(table.column_names.index("uid"), table.schema.field("uid"), uid)
        pq.write_table(part, larger / "users" / f"part-{number}.parquet")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak memory of a process is read from /proc")
@pytest.mark.slow
def test_memory_stays_bounded(tmp_path):
    collection = dn.Collection(dn.Table("users", age=dn.Ordinal(0, 49), city=dn.Public()), epsilon=2.0)
    texts = json.dumps([
        "SELECT COUNT(*) AS n, AVG(age) AS a FROM users WHERE age < 20",
        "SELECT city, COUNT(*) AS n FROM users GROUP BY city",
    ])  # fmt: skip
    peaks, answers = {}, {}
    few, times = 500_000, 5
    random = np.random.default_rng(1)
    cities = pa.array(["Rome", "Oslo"]).take(pa.array(random.integers(0, 2, few)))
    rows = pa.table({"uid": np.arange(few), "age": random.integers(0, 50, few), "city": cities})
    collection.perturb(users=rows, out=tmp_path / str(few), source=SeededSource(1), simulation=True)
    repeated(tmp_path / str(few), tmp_path / str(times * few), few, times)
    for reports in (few, times * few):
        folder = tmp_path / str(reports)
        for name, limit in (("memory", 2**40), ("files", 2**24)):
            command = [sys.executable, "-c", MEASURED, str(folder), str(limit), texts]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            peaks[name, reports], answers[name] = json.loads(done.stdout)
        for held, streamed in zip(answers["memory"], answers["files"], strict=True):
            for column, values in held.items():
                assert streamed[column] == (pytest.approx(values) if isinstance(values[0], float) else values)
    # Two million reports more take over 200 MB in memory, and no more than some noise of the allocator from files.
    assert peaks["memory", 2_500_000] - peaks["memory", 500_000] > 150
    assert peaks["files", 2_500_000] - peaks["files", 500_000] < 75
