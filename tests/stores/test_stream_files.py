"""Streams in files and pipes, and states that cannot be used twice."""

import io
import json
import os
import stat

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable.errors import Failure, InvalidData, InvalidParameter, RandomnessFault
from deniable.randomness import SeededSource
from deniable.stores.stream_files import read_batches, read_lines
from deniable.stores.stream_state import Journal, StateFile
from deniable.streams import ToPS, restore
from same_noise import forget_what_was_drawn

VALUES = np.arange(1000) % 37


def make(**more):
    forget_what_was_drawn()
    return ToPS(1.0, 50, **{"warmup": 100, "horizon": 256, "block": 8, "key": bytes(32), **more})


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "txt"])
def test_every_format_brings_the_same_values(tmp_path, kind):
    path = tmp_path / f"stream.{kind}"
    if kind == "parquet":
        pq.write_table(pa.table({"other": VALUES, "value": VALUES.astype(np.uint8)}), path)
    elif kind == "csv":
        path.write_text("other,value\n" + "".join(f"1,{value}\n" for value in VALUES))
    elif kind == "jsonl":
        path.write_text("".join(json.dumps({"value": int(value), "x": "y"}) + "\n" for value in VALUES))
    else:
        path.write_text("\n".join(map(str, VALUES)))
    batches = list(read_batches(path, "value", None))
    assert np.concatenate([batch.values for batch in batches]).tolist() == VALUES.tolist()
    assert batches[0].first == 1
    if kind != "txt":
        with pytest.raises(InvalidData if kind == "jsonl" else InvalidParameter):
            list(read_batches(path, "absent", None))
    with pytest.raises(InvalidData, match="no file"):
        list(read_batches(tmp_path / "absent.csv", "value", None))


def test_timestamps_come_along(tmp_path):
    stamps = np.datetime64("2024-01-01T00:00:00", "us") + np.arange(1000) * np.timedelta64(1, "s")
    pq.write_table(pa.table({"value": VALUES, "at": stamps}), tmp_path / "stream.parquet")
    lines = "".join(json.dumps({"value": int(v), "at": str(t)}) + "\n" for v, t in zip(VALUES, stamps, strict=True))
    (tmp_path / "stream.jsonl").write_text(lines)
    for name in ("stream.parquet", "stream.jsonl"):
        batches = list(read_batches(tmp_path / name, "value", "at"))
        assert (np.concatenate([batch.timestamps for batch in batches]) == stamps).all()


def test_timestamps_that_are_missing_or_unreadable_are_not_times(tmp_path):
    stamps = ["2024-01-01T00:00", None, "31.01.2024", "2024-01-01T01:00+01:00", "2024-01-02"]
    expected = np.array(["2024-01-01", "NaT", "NaT", "2024-01-01", "2024-01-02"], dtype="datetime64[us]")
    pq.write_table(pa.table({"value": range(5), "at": stamps}), tmp_path / "stream.parquet")
    lines = "".join(json.dumps({"value": v, "at": t}) + "\n" for v, t in enumerate(stamps))
    (tmp_path / "stream.jsonl").write_text(lines)
    (tmp_path / "stream.csv").write_text("value,at\n" + "".join(f"{v},{t or ''}\n" for v, t in enumerate(stamps)))
    for name in ("stream.parquet", "stream.jsonl", "stream.csv"):
        (batch,) = read_batches(tmp_path / name, "value", "at")
        assert np.array_equal(batch.timestamps, expected, equal_nan=True), name
    (tmp_path / "stream.txt").write_text("1\n2\n")
    with pytest.raises(InvalidParameter, match="--time-column cannot be in a text"):
        list(read_batches(tmp_path / "stream.txt", "value", "at"))


def test_blank_lines_count_in_the_number_of_a_line():
    (batch,) = read_lines(io.BytesIO(b"\n1\n2\n\n\n3\n"), column=None, time_column=None)
    assert [batch.place(position) for position in range(3)] == [2, 3, 6]
    (batch,) = read_lines(io.BytesIO(b"\n1\n2\n"), column=None, time_column=None)
    assert [batch.place(position) for position in range(2)] == [2, 3]


def test_a_line_without_its_timestamp_is_not_handed_on():
    lines = io.BytesIO(b'{"value": 1, "at": 1}\n{"value": 2}\n')
    batches = read_lines(lines, column="value", time_column="at")
    batch = next(batches)
    assert (batch.values.tolist(), batch.timestamps.tolist()) == ([1], [1])
    with pytest.raises(InvalidData, match="line 2 cannot be read"):
        next(batches)


def test_an_unreadable_line_is_named_and_not_shown():
    batches = read_lines(io.BytesIO(b"1\n2\n\nsecret\n4\n"), column=None, time_column=None)
    assert next(batches).values.tolist() == [1, 2]
    with pytest.raises(InvalidData, match="line 4 cannot be read") as refusal:
        next(batches)
    assert "secret" not in str(refusal.value)


def test_a_state_file_is_private_and_goes_on_exactly(tmp_path):
    whole = make().push_many(VALUES)
    path, parts = tmp_path / "state.json", []
    for start in range(0, 1000, 77):
        file = StateFile(path)
        journal = Journal(file, make() if file.record is None else restore(file.record["state"]))
        parts.append(journal.push_many(VALUES[start : start + 50]))
        parts.append(journal.push_many(VALUES[start + 50 : start + 77]))
        journal.close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert np.concatenate(parts).tolist() == whole.tolist()


def interrupted(path, upto, batch):
    """A run that published `batch` values after `upto` and died before it could say so."""
    file = StateFile(path)
    journal = Journal(file, make())
    journal.push_many(VALUES[:upto])
    released = journal.push_many(VALUES[upto : upto + batch])
    file.close()
    return released


def test_an_interrupted_run_goes_on_with_the_same_values_and_no_others(tmp_path):
    path = tmp_path / "state.json"
    released = interrupted(path, 500, 100)
    other = VALUES[500:600].copy()
    other[3] += 1
    file = StateFile(path)
    journal = Journal(file, restore(file.record["state"], replay=True))
    assert journal.replaying == 100
    with pytest.raises(InvalidData, match="other values"):
        journal.push_many(other)
    assert journal.publisher.consumed == 500
    assert journal.push_many(VALUES[500:540]).size == 0
    again = journal.push_many(VALUES[540:700])
    journal.close()
    assert again[:100].tolist() == released.tolist()
    assert again.tolist() == make().push_many(VALUES[:700])[400:].tolist()
    file = StateFile(path)
    assert file.record["announced"] is None
    assert restore(file.record["state"]).consumed == 700
    file.close()


def test_a_state_that_was_never_used_again_keeps_its_announcement(tmp_path):
    path = tmp_path / "state.json"
    interrupted(path, 500, 100)
    file = StateFile(path)
    journal = Journal(file, restore(file.record["state"], replay=True))
    journal.push_many(VALUES[500:510])
    journal.close()
    file = StateFile(path)
    assert file.record["announced"]["count"] == 100
    file.close()


def test_a_state_file_is_one_whatever_name_it_is_reached_by(tmp_path):
    real, link = tmp_path / "state.json", tmp_path / "link.json"
    link.symlink_to(real)
    publish(link, VALUES[:200])
    assert link.is_symlink()
    with StateFile(real) as file:
        assert restore(file.record["state"]).consumed == 200
        with pytest.raises(Failure, match="in use"):
            StateFile(link)
    publish(link, VALUES[200:300])
    with StateFile(real) as file:
        assert restore(file.record["state"]).consumed == 300
    os.link(real, tmp_path / "second name.json")
    with pytest.raises(Failure, match=r"has 2 names .* Nothing was published"):
        StateFile(real)


def publish(path, values):
    with StateFile(path) as file:
        journal = Journal(file, make() if file.record is None else restore(file.record["state"]))
        journal.push_many(values)
        journal.close()


def test_an_older_copy_of_a_state_file_is_refused(tmp_path):
    path = tmp_path / "state.json"
    publish(path, VALUES[:200])
    older = path.read_bytes()
    publish(path, VALUES[200:300])
    path.write_bytes(older)
    with pytest.raises(RandomnessFault, match="continued from here already"):
        publish(path, VALUES[300:400])


def test_a_run_without_values_leaves_a_state_to_go_on_from(tmp_path):
    path = tmp_path / "state.json"
    publish(path, VALUES[:200])
    file = StateFile(path)
    journal = Journal(file, restore(file.record["state"]))
    assert journal.push_many(VALUES[:0]).size == 0
    file.close()  # killed
    publish(path, VALUES[200:300])


@pytest.mark.parametrize("low", [2**60, -(2**60)])
def test_large_values_are_not_mistaken_for_their_neighbours(tmp_path, low):
    path, values = tmp_path / "state.json", low + VALUES[:200]
    settings = {"low": low, "warmup": 20, "horizon": 256, "block": 8}
    file = StateFile(path)
    journal = Journal(file, ToPS(1.0, low + 50, **settings))
    journal.push_many(values[:100])
    released = journal.push_many(values[100:])
    file.close()
    other = values[100:].copy()
    other[3] += 1
    assert other.astype(float).tolist() == values[100:].astype(float).tolist()
    file = StateFile(path)
    journal = Journal(file, restore(file.record["state"], replay=True))
    with pytest.raises(InvalidData, match="other values"):
        journal.push_many(other)
    with pytest.raises(InvalidData, match="below the public lower bound"):
        journal.push_many(np.array([low - 1]))
    assert journal.push_many(values[100:150]).size == 0
    assert journal.push_many(values[150:]).tolist() == released.tolist()
    journal.close()


def test_refused_values_are_not_announced(tmp_path):
    file = StateFile(tmp_path / "state.json")
    journal = Journal(file, make())
    journal.push_many(VALUES[:200])
    with pytest.raises(InvalidData):
        journal.push_many(np.array([1.0, np.nan]))
    assert journal.push_many(VALUES[200:300]).tolist() == make().push_many(VALUES[:300])[100:].tolist()
    journal.close()


def test_a_state_file_is_used_by_one_process_at_a_time_and_read_by_nobody_else(tmp_path):
    path = tmp_path / "state.json"
    file = StateFile(path)
    with pytest.raises(Failure, match="another process"):
        StateFile(path)
    Journal(file, make()).close()
    os.chmod(path, 0o644)  # noqa: PTH101
    with pytest.raises(InvalidData, match="read by others"):
        StateFile(path)
    os.chmod(path, 0o600)  # noqa: PTH101
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "version": 99}))
    with pytest.raises(InvalidData, match="version"):
        StateFile(path)
    path.write_text("{")
    with pytest.raises(InvalidData, match="damaged"):
        StateFile(path)


def test_a_simulation_has_no_state_file(tmp_path):
    simulated = make(key=None, source=SeededSource(1), simulation=True)
    with pytest.raises(InvalidParameter, match="simulation"):
        Journal(StateFile(tmp_path / "state.json"), simulated)
