"""Device reports that arrive in a streaming DataFrame: each counts once, whatever happened to the query."""

import json
import os
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.engines.collecting.gathering import ANOTHER
from deniable.engines.collecting.wire_reports import MALFORMED, ODD_PUBLIC, UNKNOWN_TABLE
from deniable.engines.spark import report_gathering
from deniable.engines.spark.report_paths import Folder
from deniable.errors import BadInput, InvalidData, InvalidParameter
from deniable.tables.reports.report_table import OTHER_SPECIFICATION

PEOPLE = 30
USERS = dn.Table("users", age=dn.Ordinal(1, 95), city=dn.Public())
ORDERS = dn.Table("orders", many=3, tau=2, amount=dn.Ordinal(0, 9))
SHOP = dn.Collection(USERS, ORDERS, epsilon=4.0, name="shop")
WEEKLY = dn.Collection(
    dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=4.0, name="weekly", rounds=dn.Rounds(2, mode="fresh")
)


def shop_lines(person, city="Rome"):
    """What the device of one person sends."""
    client = SHOP.client()
    report = client.report("users", {"age": 20 + person})
    lines = [report.to_json(f"user {person}", "users", public={"city": city})]
    return lines + [report.to_json(f"user {person}", "orders") for report in client.reports("orders", [{"amount": 3}])]


def weekly_lines(person, number):
    return [WEEKLY.client().report("users", {"age": 20 + person}, number).to_json(person, "users")]


def arrive(folder, number, lines):
    """A file of lines, which is one micro-batch."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{number}.txt"
    path.write_text("\n".join(lines) + "\n")
    os.utime(path, (1_700_000_000 + number,) * 2)


def gather(spark, folder, collection=SHOP, out="out", checkpoint="checkpoint", **more):
    """Gather what has arrived, and end."""
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder / "in"))
    places = {"out": folder / out, "checkpoint": folder / checkpoint}
    writer = dn.spark.gather_stream(lines, collection, **places, **more)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return dn.spark.gathered(spark, folder / out)


def contents(folder):
    """What every table holds, read without Spark."""
    opened = dn.connect(folder)
    tables = [table.name for table in opened.collection.tables if (folder / table.name).exists()]
    read = {}
    for table in tables:
        parts = [pq.read_table(path) for path in sorted((folder / table).rglob("*.parquet"))]
        columns = parts[0].column_names
        whole = pa.concat_tables([part.replace_schema_metadata(None).select(columns) for part in parts])
        order = [(name, "ascending") for name in columns if name in ("uid", "round", "slot")]
        read[table] = whole.sort_by(order).to_pylist()
    return read


def expected(collection, lines):
    """What `gather` makes of the same lines, with ids as texts."""
    tables = collection.gather(lines).tables
    rows = {name: table.to_pylist() for name, table in tables.items()}
    for table in rows.values():
        for row in table:
            row["uid"] = str(row["uid"])
        table.sort(key=lambda row: (row["uid"], row.get("round", 0), row["slot"]))
    return rows


@pytest.mark.slow
def test_lines_count_once_through_restarts_repetitions_and_a_lost_checkpoint(spark, tmp_path):
    people = [shop_lines(person) for person in range(PEOPLE)]
    liar = SHOP.client().report("users", {"age": 90}).to_json("user 3", "users", public={"city": "Oslo"})
    odd = shop_lines(77, city=5)[:1]
    foreign = WEEKLY.client().report("users", {"age": 31}, 1).to_json("user 99", "users")
    unknown = json.dumps({**json.loads(people[0][0]), "table": "visits"})
    arrive(tmp_path / "in", 0, [line for lines in people[:20] for line in lines] + people[4])
    counts = gather(spark, tmp_path)
    assert counts == {"lines": 63, "reports": 60, "repeated": 3}
    arrive(tmp_path / "in", 1, [line for lines in people[10:] for line in lines] + ["", "no report", foreign, unknown])
    arrive(tmp_path / "in", 2, [liar, *people[29], *odd])
    counts = gather(spark, tmp_path)  # a restart
    refused = {MALFORMED: 1, OTHER_SPECIFICATION: 1, UNKNOWN_TABLE: 1, ANOTHER: 1, ODD_PUBLIC: 1}
    assert counts == {"lines": 63 + 63 + 5, "reports": 90, "repeated": 36, **refused}
    lines = [line for lines in people for line in lines]
    assert contents(tmp_path / "out") == expected(SHOP, lines)
    # Everything comes again, with a new checkpoint.
    before = sorted(path.relative_to(tmp_path) for path in (tmp_path / "out").rglob("*.parquet"))
    shutil.rmtree(tmp_path / "checkpoint")
    again = gather(spark, tmp_path)
    assert again["reports"] == 90
    assert sorted(path.relative_to(tmp_path) for path in (tmp_path / "out").rglob("*.parquet")) == before
    for engine in (None, spark):
        answer = dn.connect(tmp_path / "out", engine=engine).sql("SELECT COUNT(*) AS n FROM users WHERE city = 'Rome'")
        assert answer.answers["n"][0].value == PEOPLE
    sums = [
        dn.connect(tmp_path / "out", engine=engine).sql("SELECT SUM(amount) AS n FROM orders JOIN users USING (uid)")
        for engine in (None, spark)
    ]
    values = [answer.answers["n"][0].value for answer in sums]
    assert values[0] == pytest.approx(values[1], rel=1e-9)


@pytest.mark.slow
def test_a_batch_that_is_interrupted_at_any_move_is_taken_once(spark, tmp_path, monkeypatch):
    first = [line for person in range(6) for line in weekly_lines(person, 1)]
    second = [line for person in range(4) for line in weekly_lines(person, 2)] + first[:2] + weekly_lines(9, 1)
    real, left = Folder.move, [-1]

    def moved(self, to):
        left[0] -= 1
        if left[0] == -1:
            raise OSError("the machine stops here")
        real(self, to)

    monkeypatch.setattr(Folder, "move", moved)

    def taken(stop):
        """What is gathered if the second batch is interrupted at a move, and tried again."""
        out = tmp_path / str(stop)
        folder = Folder(spark, str(out))
        report_gathering._begin(folder, WEEKLY, simulation=False)
        gatherer = report_gathering._Gatherer(folder, WEEKLY, "00c0ffee", {}, False)
        batches = [spark.createDataFrame([(line,) for line in lines], ["line"]) for lines in (first, second)]
        gatherer.take(batches[0], 0)
        left[0] = stop
        interrupted = False
        try:
            gatherer.take(batches[1], 1)
        except OSError:
            interrupted = True
            gatherer.take(batches[1], 1)
        left[0] = -1
        assert not [path.name for path in out.iterdir() if path.name.startswith(".partial")]
        return interrupted, contents(out), report_gathering.gathered(folder)

    _, whole, counts = taken(100)
    assert counts == {"lines": 13, "reports": 11, "repeated": 2}
    assert whole == expected(WEEKLY, first + second)
    files = (tmp_path / "100" / "users").rglob("*.parquet")
    assert {path.parent.name for path in files} == {"round-000001", "round-000002"}
    stop = 0
    while (run := taken(stop))[0]:
        assert run[1:] == (whole, counts), stop
        stop += 1
    assert stop >= 3


@pytest.mark.slow
def test_a_complete_batch_that_spark_tries_again_changes_nothing(spark, tmp_path):
    arrive(tmp_path / "in", 0, weekly_lines(1, 1))
    arrive(tmp_path / "in", 1, [*weekly_lines(2, 1), "{}"])
    counts = gather(spark, tmp_path, WEEKLY)
    before = contents(tmp_path / "out")
    for commit in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        commit.unlink()  # the query ended after its last batch, before Spark noted that
    assert gather(spark, tmp_path, WEEKLY) == counts
    assert contents(tmp_path / "out") == before


@pytest.mark.slow
def test_what_cannot_be_gathered_is_refused_before_anything_is_read(spark, tmp_path):
    arrive(tmp_path / "in", 0, weekly_lines(1, 1))
    gather(spark, tmp_path, WEEKLY)
    cases = [
        ({"collection": SHOP}, BadInput, "of another specification"),
        ({"collection": WEEKLY, "simulation": True}, InvalidData, "cannot be mixed"),
        ({"collection": WEEKLY, "column": "line"}, InvalidParameter, "not a column of texts"),
        ({"collection": WEEKLY, "public": {"city": "string"}}, InvalidParameter, "types of public attributes"),
        ({"collection": WEEKLY, "out": "in", "checkpoint": "other"}, BadInput, "holds something else"),
        ({"collection": WEEKLY, "checkpoint": "in"}, BadInput, "of another query"),
    ]
    for given, error, message in cases:
        with pytest.raises(error, match=message) as refused:
            gather(spark, tmp_path, **given)
        assert "Nothing was" in str(refused.value), message
    with pytest.raises(InvalidParameter, match="streaming DataFrame"):
        dn.spark.gather_stream(spark.createDataFrame([("x",)], ["value"]), WEEKLY, tmp_path / "o", checkpoint="c")
    SHOP.gather(shop_lines(1)).save(tmp_path / "saved")
    with pytest.raises(BadInput, match="not gathered from a stream"):
        gather(spark, tmp_path, out="saved", checkpoint="new")


@pytest.mark.slow
def test_the_program_of_the_page_gathers(spark, tmp_path):
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "spark-streams.md").read_text()
    (program,) = re.findall(r"```python\n(lines = .*?)```", page, flags=re.S)
    arrive(tmp_path / "arriving", 0, shop_lines(1) + shop_lines(2))
    names = {"dn": dn, "spark": spark, "shop": SHOP}
    exec(compile(program.replace("hdfs:///data", str(tmp_path)), "gather.py", "exec"), names)  # noqa: S102 - the page's own
    assert names["database"].sql("SELECT COUNT(*) AS n FROM users").answers["n"][0].value == 2
