"""Damaged report folders are judged alike in memory and from files, and what ends them is always ours to say."""

import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.engines.reports.report_stores import FileStore, MemoryStore
from deniable.errors import DeniableError

PEOPLE = 60
QUESTIONS = [
    "SELECT city, COUNT(*) AS n, AVG(age) AS a FROM users WHERE score > 1 OR city = 'Rome' GROUP BY city",
    "SELECT COUNT(*) AS n, SUM(amount) AS s FROM orders JOIN users USING (uid) WHERE age < 50",
]


def made(folder, *, text_ids):
    random = np.random.default_rng(2)
    ids = [f"u{number:03}" for number in range(PEOPLE)] if text_ids else list(range(PEOPLE))
    city = [["Rome", "Oslo", None, "São Tomé"][number % 4] for number in range(PEOPLE)]
    users = {"uid": ids, "age": random.integers(1, 96, PEOPLE), "city": city, "score": np.arange(PEOPLE) / 7}
    orders = {"uid": ids, "amount": random.integers(0, 9, PEOPLE)}
    shop = dn.Collection(
        dn.Table("users", age=dn.Ordinal(1, 95), city=dn.Public(), score=dn.Public()),
        dn.Table("orders", many=2, tau=2, amount=dn.Ordinal(0, 8)),
        epsilon=6.0,
    )
    shop.perturb(users=users, orders=orders, out=folder, source=dn.SeededSource(3), simulation=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Two folders without fault, with ids that are numbers and texts."""
    folders = [tmp_path_factory.mktemp("whole") / kind for kind in ("numbers", "texts")]
    for folder in folders:
        made(folder, text_ids=folder.name == "texts")
    return folders


# Ways to damage a folder ----------------------------------------------------------------------------------------------


def flip_bytes(path, random):
    data = bytearray(path.read_bytes())
    # The footer is short, and what stands there matters more.
    first = 0 if random.random() < 0.5 else max(len(data) - 1_500, 0)
    for offset in random.integers(first, len(data), random.integers(1, 4)):
        data[offset] ^= 1 << int(random.integers(8))
    path.write_bytes(bytes(data))


def truncate(path, random):
    os.truncate(path, int(random.integers(0, path.stat().st_size)))


def splice(path, random):
    data, cut = path.read_bytes(), sorted(random.integers(0, path.stat().st_size, 2))
    path.write_bytes(data[: cut[0]] + data[cut[1] :] if random.random() < 0.5 else data[: cut[1]] + data[cut[0] :])


NAMES = ["uid", "UID", "Uid", "slot", "view", "VIEW", "seed", "y", "Y", "city", "City", "score", "amount", "",
         'y"', 'y", 1 AS "x', "uid.x", "view.y", "a.b", "x" * 5_000, "é", "y;--", "'", "`uid`", "*"]  # fmt: skip
KINDS = [pa.int8(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint64(), pa.float32(), pa.float64(),
         pa.string(), pa.large_string(), pa.binary(), pa.bool_(),
         pa.date32(), pa.timestamp("ms"), pa.timestamp("ns", "UTC"), pa.time32("ms"),
         pa.decimal128(20, 2), pa.null(), pa.dictionary(pa.int32(), pa.string()), pa.list_(pa.int64()),
         pa.struct([("uid", pa.int64())])]  # fmt: skip


def rename(table, random):
    names = list(table.column_names)
    names[random.integers(len(names))] = NAMES[random.integers(len(NAMES))]
    return table.rename_columns(names)


def drop(table, random):
    return table.drop_columns([table.column_names[random.integers(table.num_columns)]])


def append(table, random):
    source = table.column(int(random.integers(table.num_columns)))
    index = int(random.integers(table.num_columns + 1))
    return table.add_column(index, NAMES[random.integers(len(NAMES))], source)


def reorder(table, random):
    return table.select([int(index) for index in random.permutation(table.num_columns)])


def retype(table, random):
    index, kind = int(random.integers(table.num_columns)), KINDS[random.integers(len(KINDS))]
    try:
        column = table.column(index).cast(kind, safe=False)
    except (pa.ArrowException, ValueError):
        column = pa.nulls(table.num_rows, kind)
    return table.set_column(index, table.column_names[index], column)


def put(table, random):
    """An odd value in some rows of a column."""
    index = int(random.integers(table.num_columns))
    values = table.column(index).to_pylist()
    kind = table.schema.field(index).type
    odd = {
        pa.types.is_string: ["", "\0", "x" * 999, "x" * 1_001, "\U0001f600", None],
        pa.types.is_floating: [float("nan"), 1e308, None],
    }
    odd_values = next((values_of_kind for test, values_of_kind in odd.items() if test(kind)), [0, 1, 99, 255, None])
    for row in random.integers(0, table.num_rows, random.integers(1, 5)):
        values[row] = odd_values[random.integers(len(odd_values))]
    return table.set_column(index, table.schema.field(index), pa.array(values, kind))


def rows(table, random):
    """Rows doubled, lost, or in another order."""
    way = random.integers(4)
    if way == 0:
        return table.take(pa.array(random.permutation(table.num_rows)))
    if way == 1:
        return pa.concat_tables([table, table.slice(int(random.integers(table.num_rows)), 5)])
    if way == 2:
        return table.filter(pa.array(random.random(table.num_rows) < 0.9))
    return table.slice(0, int(random.integers(3)))


def metadata(table, random):
    entries = dict(table.schema.metadata or {})
    for key in list(entries):
        way = random.integers(5)
        if way == 0:
            del entries[key]
        elif way == 1:
            entries[key] = b"\xff\xfe" + entries[key]
        elif way == 2:
            entries[b"org.apache.spark.sql.parquet.row.metadata"] = [
                b"[[[",
                b"[1]",
                b'{"fields": [3]}',
                b"{}",
                b"\xff",
            ][random.integers(5)]
    return table.replace_schema_metadata(entries)


def clutter(folder, path, random):
    """Something else in the folder: empty files, links, pipes, folders, a second part."""
    target = (
        path.parent
        / ["a.parquet", "z.parquet", "_z.parquet", ".z.parquet", "z[1].parquet", "*.parquet", "z.txt"][
            random.integers(7)
        ]
    )
    way = random.integers(9)
    if way == 0:
        target.touch()
    elif way == 1:
        target.symlink_to(path.parent / "nowhere")
    elif way == 2:
        target.symlink_to(target.name)
    elif way == 3:
        os.mkfifo(target)
    elif way == 4:
        target.mkdir()
    elif way == 5:
        target.symlink_to(path)  # everybody stands twice
    elif way == 6:
        path.rename(target)
    elif way == 7:
        shutil.copy(folder / ("orders" if path.parent.name == "users" else "users") / "part-0.parquet", target)
    else:
        table = pq.read_table(path)
        pq.write_table(retype(table, random).replace_schema_metadata(table.schema.metadata), target)


def specification(folder, path, random):
    specification = folder / "collection.json"
    way = random.integers(4)
    if way == 0:
        flip_bytes(specification, random)
    elif way == 1:
        specification.write_text(specification.read_text().replace('"epsilon":6.0', '"epsilon":3.0'))
    elif way == 2:
        specification.unlink()
        specification.mkdir()
    else:
        shutil.rmtree(path.parent)
        path.parent.symlink_to(folder / "orders" if path.parent.name == "users" else folder / "nowhere")


BYTES, TABLES, FOLDERS = (
    (flip_bytes, flip_bytes, truncate, splice),
    (rename, drop, append, reorder, retype, put, rows, metadata),
    (clutter, clutter, specification),
)


def damage(folder, random):
    """One to three kinds of damage."""
    for _ in range(random.integers(1, 4)):
        paths = sorted(path for path in folder.glob("*/part-0.parquet") if path.is_file())
        if not paths:
            return
        path = paths[random.integers(len(paths))]
        group = [BYTES, TABLES, TABLES, FOLDERS][random.integers(4)]
        way = group[random.integers(len(group))]
        try:
            if group is TABLES:
                table = pq.ParquetFile(path).read()
                changed = way(table, random)
                if way is not metadata:
                    changed = changed.replace_schema_metadata(table.schema.metadata)
                pq.write_table(changed, path, row_group_size=int(random.integers(1, 200)))
            elif group is FOLDERS:
                way(folder, path, random)
            else:
                way(path, random)
        except (pa.ArrowException, OSError, ValueError, KeyError):
            continue  # it was damaged too much before to be damaged like this


def rounded(value):
    """Sums over blocks of other sizes differ in their last bits."""
    return value if not isinstance(value, float) else f"{value:.6g}" if abs(value) > 1e-6 else "0"


def verdict(folder, memory_limit):
    """What becomes of a folder: an error of ours, or counts and answers."""
    try:
        database = dn.connect(folder, memory_limit=memory_limit)
    except DeniableError as error:
        return type(error), str(error)
    kind = FileStore if memory_limit == 0 else MemoryStore
    assert all(isinstance(store, kind) or not store.rows for store in database.stores.values())
    answers = []
    for text in QUESTIONS:
        try:
            answer = database.sql(text).to_arrow().to_pydict()
            answers.append({name: [rounded(value) for value in values] for name, values in answer.items()})
        except DeniableError as error:
            answers.append((type(error), str(error)))
    return {name: store.rows for name, store in database.stores.items()}, dict(database.refused), answers


def judged_alike(whole, folder, seed):
    random = np.random.default_rng(seed)
    shutil.copytree(whole[random.integers(2)], folder)
    damage(folder, random)
    held, streamed = verdict(folder, 2**30), verdict(folder, 0)
    assert repr(held) == repr(streamed), seed
    return held


def test_damaged_folders_are_judged_alike(whole, tmp_path):
    verdicts = [judged_alike(whole, tmp_path / str(seed), seed) for seed in range(100, 200)]
    refused = [error for error, *more in verdicts if isinstance(error, type)]
    assert 20 <= len(refused) <= 80  # both kinds of verdicts are compared


@pytest.mark.slow  # 20,000 folders, some ten minutes
@pytest.mark.parametrize("hundred", [0, *range(2, 201)])
def test_many_damaged_folders_are_judged_alike(whole, tmp_path, hundred):
    for seed in range(hundred * 100, hundred * 100 + 100):
        judged_alike(whole, tmp_path / "folder", seed)
        shutil.rmtree(tmp_path / "folder")
