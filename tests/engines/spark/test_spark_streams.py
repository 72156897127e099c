"""Streams on Spark: what is published equals a local publisher's bytes, whatever happened to the query."""

import base64
import io
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.errors import StreamingQueryException

import deniable as dn
from deniable.engines.spark.spark_session import ROCKSDB, STATE_STORE
from deniable.errors import BadInput, Failure, InvalidParameter, RandomnessFault, SimulationOnly
from deniable.streams import KeyedPublisher
from same_noise import forget_what_was_drawn

RANDOM = np.random.default_rng(5)
BATCHES, SIZE = 3, 70
REGIONS = np.array(["north", "south", 'ost\'s "x"'])[RANDOM.integers(0, 3, BATCHES * SIZE)]
READINGS = RANDOM.integers(0, 80, BATCHES * SIZE)
SCHEMA = "region string, reading bigint, offset bigint"
COLUMNS = {"key": "region", "value": "reading", "order": "offset"}
PUBLIC = {"epsilon": 1.0, "bound": 100, "horizon": 16, "block": 4, "public_keys": True, "theta": 60}
OWN = {**PUBLIC, "theta": None, "warmup": 20, "per_key": True}


@pytest.fixture
def streaming(spark, monkeypatch, tmp_path):
    """A session with the state store that streams need, and notes of its own about secrets."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "notes"))
    before = spark.conf.get(STATE_STORE)
    spark.conf.set(STATE_STORE, ROCKSDB)
    yield spark
    spark.conf.set(STATE_STORE, before)


@pytest.fixture
def secret(tmp_path):
    """A file with a new secret."""
    path = tmp_path / "stream.key"
    path.write_text(secrets.token_hex(32) + "\n")
    return path


def arrive(folder, *numbers):
    """Files of values, one micro-batch each. Rows in a file are in no order."""
    folder.mkdir(exist_ok=True)
    for number in numbers:
        rows = np.random.default_rng(number).permutation(np.arange(number * SIZE, (number + 1) * SIZE))
        table = pa.table({"region": REGIONS[rows], "reading": READINGS[rows], "offset": rows})
        pq.write_table(table, folder / f"{number}.parquet")
        os.utime(folder / f"{number}.parquet", (1_700_000_000 + number,) * 2)


def arriving(spark, folder):
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder))


def ended(start):
    """The query that `start` starts, when it has ended.

    Spark gives a Python process on the driver a limited time to start, before the first batch. A busy machine may take
    longer, and the query is started again, as an operator would.
    """
    for _ in range(20):
        query = start()
        try:
            query.awaitTermination()
        except StreamingQueryException as problem:
            if "failed to connect back" not in str(problem):
                raise
        else:
            return query
        finally:
            query.stop()
    pytest.fail("Python processes of Spark do not start")


def publish(spark, folder, settings, secret):
    """Publish what has arrived, and end."""
    columns = {**COLUMNS, "settings": settings, "secret": secret, "checkpoint": folder / "checkpoint"}
    writer = dn.spark.publish_stream(arriving(spark, folder / "in"), **columns).trigger(availableNow=True)
    return ended(writer.format("parquet").option("path", str(folder / "out")).start)


def published(spark, folder):
    """Private values by key, in their order, as the sink's readers see them."""
    table = spark.read.parquet(str(folder / "out")).toArrow().sort_by([("key", "ascending"), ("position", "ascending")])
    return table.select(["key", "position", "value"])


def expected(settings, secret):
    """What a local publisher with the same secret and settings publishes of the same values."""
    forget_what_was_drawn()
    keyed = KeyedPublisher(**settings, key=bytes.fromhex(secret.read_text()))
    private = keyed.push_many(REGIONS.tolist(), READINGS)
    table = pa.table({"key": private.key.tolist(), "position": private.position, "value": private.value})
    return table.sort_by([("key", "ascending"), ("position", "ascending")])


def same_bytes(one, other):
    assert one["key"].to_pylist() == other["key"].to_pylist()
    for name in ("position", "value"):
        assert one[name].to_numpy().tobytes() == other[name].to_numpy().tobytes()


def test_a_restarted_query_equals_the_local_publisher_and_never_shows_its_secret(streaming, tmp_path, secret):
    arrive(tmp_path / "in", 0)
    query = publish(streaming, tmp_path, OWN, secret)
    shown = io.StringIO()
    with redirect_stdout(shown):
        query.explain(extended=True)
    arrive(tmp_path / "in", 1, 2)
    query = publish(streaming, tmp_path, OWN, secret)
    same_bytes(published(streaming, tmp_path), expected(OWN, secret))
    digits = secret.read_text().strip()
    assert "TransformWithState" in shown.getvalue()
    for text in (shown.getvalue(), str(query.lastProgress)):
        assert digits not in text
    for path in (path for path in tmp_path.rglob("*") if path.is_file() and path != secret):
        content = path.read_bytes()
        assert digits.encode() not in content, path
        assert bytes.fromhex(digits) not in content, path
    # Another checkpoint, or a checkpoint that was lost, would publish the same noise with other values.
    shutil.rmtree(tmp_path / "checkpoint")
    with pytest.raises(RandomnessFault, match="from another checkpoint, or the checkpoint was deleted"):
        publish(streaming, tmp_path, OWN, secret)


def files_of(folder):
    """Every file below a folder; links are not followed."""
    for place, _, names in os.walk(folder):
        yield from (path for path in (Path(place) / name for name in names) if path.is_file() and not path.is_symlink())


def refused(given, message, error=InvalidParameter, **changes):
    with pytest.raises(error, match=message):
        dn.spark.publish_stream(**{**given, **changes})
    assert not given["checkpoint"].exists()


def test_what_cannot_be_published_is_refused_before_a_query_exists(streaming, tmp_path, secret):
    arrive(tmp_path / "in", 0)
    frame = arriving(streaming, tmp_path / "in")
    given = {"frame": frame, **COLUMNS, "settings": PUBLIC, "secret": secret, "checkpoint": tmp_path / "mine"}
    private = {name: value for name, value in PUBLIC.items() if name != "public_keys"}
    refused(given, "public_keys is not given: everybody sees which keys", settings=private)
    refused(given, "public_keys is not given", settings={**PUBLIC, "public_keys": False})
    refused(given, "cannot learn it together", settings={**PUBLIC, "theta": None, "warmup": 20})
    refused(given, "arguments of KeyedPublisher", settings={**PUBLIC, "blocks": 3})
    refused(given, "key is not a setting on Spark", settings={**PUBLIC, "key": bytes(32)})
    refused(given, "lets the data out", SimulationOnly, settings={**PUBLIC, "epsilon": float("inf")})
    refused(given, "must be a streaming DataFrame", frame=streaming.read.parquet(str(tmp_path / "in")))
    refused(given, "which the frame does not have", key="country")
    refused(given, "must be a column of integers or floats", value="region")
    refused(given, "do not depend on values", order=["offset", "reading"])
    refused(given, "on_bad must be one of", on_bad="guess")
    refused(given, "travels to executors", secret=bytes(32))
    carried = bytes.fromhex(secret.read_text())
    refused(given, "carries the secret with it", secret=lambda: carried)
    refused(given, "cannot be read on this machine", Failure, secret=tmp_path / "none.key")
    (tmp_path / "short.key").write_text("abcd")
    refused(given, "64 hexadecimal digits", Failure, secret=tmp_path / "short.key")
    streaming.conf.unset(STATE_STORE)
    refused(given, "must be RocksDB's")
    streaming.conf.set(STATE_STORE, ROCKSDB)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "metadata").touch()
    with pytest.raises(BadInput, match="is of another query"):
        dn.spark.publish_stream(**{**given, "checkpoint": tmp_path / "other"})
    dn.spark.publish_stream(**given)
    with pytest.raises(BadInput, match="begun with other settings, columns or another secret"):
        dn.spark.publish_stream(**{**given, "settings": {**PUBLIC, "epsilon": 2.0}})


def collected(spark, folder, secret, seen, settings=PUBLIC, through=lambda batch: batch):
    """Publish into `seen`: what every attempt at every batch has published."""

    def note(batch, number):
        seen.setdefault(number, []).append(
            through(batch).toArrow().sort_by([("key", "ascending"), ("position", "ascending")])
        )

    writer = dn.spark.publish_stream(
        arriving(spark, folder / "in"), **COLUMNS, settings=settings, secret=secret, checkpoint=folder / "checkpoint"
    )
    ended(writer.trigger(availableNow=True).foreachBatch(note).start)


def joined(seen):
    """What all batches have published, each of them counted once."""
    whole = pa.concat_tables([attempts[-1] for attempts in seen.values()])
    return whole.sort_by([("key", "ascending"), ("position", "ascending")])


@pytest.mark.slow
@pytest.mark.parametrize("settings", [PUBLIC, OWN])
def test_a_batch_that_is_replayed_from_the_checkpoint_publishes_the_same_bytes(streaming, tmp_path, secret, settings):
    arrive(tmp_path / "in", *range(BATCHES))
    seen = {}
    collected(streaming, tmp_path, secret, seen, settings)
    same_bytes(joined(seen), expected(settings, secret))
    for _ in range(2):  # the query ended after its last batch was published, before Spark noted that
        for commit in (tmp_path / "checkpoint" / "commits").glob(f"*{BATCHES - 1}*"):
            commit.unlink()
        collected(streaming, tmp_path, secret, seen, settings)
    assert [len(attempts) for attempts in seen.values()] == [1] * (BATCHES - 1) + [3]
    for attempt in seen[BATCHES - 1]:
        same_bytes(attempt, seen[BATCHES - 1][0])


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before a key is published", "after some rows have left"])
def test_a_worker_that_is_killed_changes_nothing(streaming, tmp_path, secret, when):
    arrive(tmp_path / "in", *range(BATCHES))
    killed, driver, early = tmp_path / "killed", os.getpid(), when.startswith("before")

    def die_once():
        if os.getpid() != driver and not killed.exists():
            killed.touch()
            os.kill(os.getpid(), signal.SIGKILL)

    def fetched():
        if early:
            die_once()
        return bytes.fromhex(secret.read_text())

    def dying(batches):
        for number, batch in enumerate(batches):
            yield batch
            if not early and number == 0 and batch.num_rows:
                die_once()

    seen = {}
    collected(streaming, tmp_path, fetched, seen, through=lambda batch: batch.mapInArrow(dying, batch.schema))
    assert killed.exists()
    same_bytes(joined(seen), expected(PUBLIC, secret))


@pytest.mark.slow
def test_two_values_in_one_place_are_refused(streaming, tmp_path, secret):
    (tmp_path / "in").mkdir()
    table = pa.table({"region": ["north", "north"], "reading": [47, 48], "offset": [7, 7]})
    pq.write_table(table, tmp_path / "in" / "0.parquet")
    with pytest.raises(Exception, match="the same place in the order") as caught:
        publish(streaming, tmp_path, PUBLIC, secret)
    assert secret.read_text().strip() not in str(caught.value)


@pytest.mark.slow
def test_bad_values_follow_the_rule_that_was_declared(streaming, tmp_path, secret):
    (tmp_path / "in").mkdir()
    readings = pa.array([5, None, -3, 7, 200, 9, 1, 2], pa.int64())
    pq.write_table(
        pa.table({"region": ["north"] * 8, "reading": readings, "offset": range(8)}), tmp_path / "in" / "0.parquet"
    )
    given = {**COLUMNS, "settings": PUBLIC, "secret": secret, "checkpoint": tmp_path / "checkpoint", "on_bad": "zero"}
    writer = dn.spark.publish_stream(arriving(streaming, tmp_path / "in"), **given).trigger(availableNow=True)
    ended(writer.format("parquet").option("path", str(tmp_path / "out")).start)
    forget_what_was_drawn()
    keyed = KeyedPublisher(**PUBLIC, key=bytes.fromhex(secret.read_text()))
    private = keyed.push_many(["north"] * 8, [5, 0, 0, 7, 200, 9, 1, 2])
    assert published(streaming, tmp_path)["value"].to_numpy().tobytes() == private.value.tobytes()


@pytest.mark.slow
def test_an_executor_that_is_killed_changes_nothing_and_no_log_holds_the_secret(tmp_path, secret):
    """In a cluster of two executors with a JVM each, on this machine, which log as much as they can."""
    home = tmp_path / "home"  # executors log below it
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        (home / entry.name).symlink_to(entry)
    arrive(tmp_path / "in", *range(BATCHES))
    about = {"columns": COLUMNS, "settings": PUBLIC, "schema": SCHEMA}
    (tmp_path / "about.json").write_text(json.dumps(about))
    command = [sys.executable, Path(__file__).with_name("killed_executor.py"), tmp_path, secret]
    environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "notes"), "SPARK_HOME": str(home)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, [
        line for line in done.stderr.splitlines() if " DEBUG " not in line and " INFO " not in line
    ][-60:]
    assert (tmp_path / "killed").exists()
    found = pq.read_table(tmp_path / "published.parquet")
    same_bytes(found.sort_by([("key", "ascending"), ("position", "ascending")]), expected(PUBLIC, secret))
    written = {path: path.read_bytes() for path in files_of(tmp_path) if path != secret}
    written |= {"stdout": done.stdout.encode(), "stderr": done.stderr.encode()}
    events = [text for path, text in written.items() if str(path).startswith(str(tmp_path / "events"))]
    logs = [text for path, text in written.items() if str(path).startswith(str(home / "work"))]
    # The test has teeth: plans, events and logs of driver and executors are there, and name what they read.
    assert "TransformWithState" in done.stdout
    assert any(b"TransformWithState" in text for text in events)
    assert sum(b"CoarseGrainedExecutorBackend" in text for text in logs) >= 2
    assert sum(text.count(b" INFO ") for text in logs) > 100
    assert done.stderr.count(" DEBUG ") > 100
    key = bytes.fromhex(secret.read_text())
    forms = (key, key.hex().encode(), key.hex().upper().encode(), base64.b64encode(key).rstrip(b"="))
    forms += (repr(key).encode(), str(list(key)).encode(), str(int.from_bytes(key, "big")).encode())
    assert [(path, form) for path, text in written.items() for form in forms if form in text] == []


@pytest.mark.slow
def test_the_program_of_the_page_runs_and_goes_on(streaming, tmp_path, secret):
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "spark-streams.md").read_text()
    (program,) = re.findall(r"```python\n(import .*?)```", page, flags=re.S)
    program = program.replace("hdfs:///data", str(tmp_path)).replace("/etc/deniable/stream.key", str(secret))
    for number in (0, 1):
        arrive(tmp_path / "readings", number)
        exec(compile(program, "readings.py", "exec"), {})  # noqa: S102 - the page's own program
    assert streaming.read.parquet(str(tmp_path / "published")).count() == 2 * SIZE
