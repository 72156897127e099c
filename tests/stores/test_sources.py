"""Where values come from: files of every kind and pipes bring the same batches, and a new kind is one entry."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from deniable.errors import InvalidData, InvalidParameter
from deniable.stores.sources.batch import Batch, Columns, StreamSource
from deniable.stores.sources.line_source import read_lines
from deniable.stores.sources.readers import SOURCES, read_file, read_pipe

VALUES = np.arange(1000) % 37


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
    batches = list(read_file(path, Columns()))
    assert np.concatenate([batch.values for batch in batches]).tolist() == VALUES.tolist()
    assert batches[0].first == 1
    if kind != "txt":
        with pytest.raises(InvalidData if kind == "jsonl" else InvalidParameter):
            list(read_file(path, Columns("absent")))
    with pytest.raises(InvalidData, match="no file"):
        list(read_file(tmp_path / "absent.csv", Columns()))


def test_timestamps_come_along(tmp_path):
    stamps = np.datetime64("2024-01-01T00:00:00", "us") + np.arange(1000) * np.timedelta64(1, "s")
    pq.write_table(pa.table({"value": VALUES, "at": stamps}), tmp_path / "stream.parquet")
    lines = "".join(json.dumps({"value": int(v), "at": str(t)}) + "\n" for v, t in zip(VALUES, stamps, strict=True))
    (tmp_path / "stream.jsonl").write_text(lines)
    for name in ("stream.parquet", "stream.jsonl"):
        batches = list(read_file(tmp_path / name, Columns(time="at")))
        assert (np.concatenate([batch.timestamps for batch in batches]) == stamps).all()


def test_timestamps_that_are_missing_or_unreadable_are_not_times(tmp_path):
    stamps = ["2024-01-01T00:00", None, "31.01.2024", "2024-01-01T01:00+01:00", "2024-01-02"]
    expected = np.array(["2024-01-01", "NaT", "NaT", "2024-01-01", "2024-01-02"], dtype="datetime64[us]")
    pq.write_table(pa.table({"value": range(5), "at": stamps}), tmp_path / "stream.parquet")
    lines = "".join(json.dumps({"value": v, "at": t}) + "\n" for v, t in enumerate(stamps))
    (tmp_path / "stream.jsonl").write_text(lines)
    (tmp_path / "stream.csv").write_text("value,at\n" + "".join(f"{v},{t or ''}\n" for v, t in enumerate(stamps)))
    for name in ("stream.parquet", "stream.jsonl", "stream.csv"):
        (batch,) = read_file(tmp_path / name, Columns(time="at"))
        assert np.array_equal(batch.timestamps, expected, equal_nan=True), name
    (tmp_path / "stream.txt").write_text("1\n2\n")
    with pytest.raises(InvalidParameter, match="--time-column cannot be in a text"):
        list(read_file(tmp_path / "stream.txt", Columns(time="at")))


def test_blank_lines_count_in_the_number_of_a_line():
    (batch,) = read_lines(io.BytesIO(b"\n1\n2\n\n\n3\n"), None)
    assert [batch.number(index) for index in range(3)] == [2, 3, 6]
    (batch,) = read_lines(io.BytesIO(b"\n1\n2\n"), None)
    assert [batch.number(index) for index in range(2)] == [2, 3]


def test_a_line_without_its_timestamp_is_not_handed_on():
    lines = io.BytesIO(b'{"value": 1, "at": 1}\n{"value": 2}\n')
    batches = read_lines(lines, Columns(time="at"))
    batch = next(batches)
    assert (batch.values.tolist(), batch.timestamps.tolist()) == ([1], [1])
    with pytest.raises(InvalidData, match="line 2 cannot be read"):
        next(batches)


def test_an_unreadable_line_is_named_and_not_shown():
    batches = read_lines(io.BytesIO(b"1\n2\n\nsecret\n4\n"), None)
    assert next(batches).values.tolist() == [1, 2]
    with pytest.raises(InvalidData, match="line 4 cannot be read") as refusal:
        next(batches)
    assert "secret" not in str(refusal.value)


def test_a_pipe_brings_numbers_or_json():
    (batch,) = read_pipe(io.BytesIO(b"5\n6.5\n"), Columns(), json_lines=False)
    assert (batch.values.tolist(), batch.unit) == ([5, 6.5], "line")
    (batch,) = read_pipe(io.BytesIO(b'{"value": 5, "at": 7}\n'), Columns(time="at"), json_lines=True)
    assert (batch.values.tolist(), batch.timestamps.tolist()) == ([5], [7])
    with pytest.raises(InvalidParameter, match="--time-column cannot be in a text"):
        read_pipe(io.BytesIO(b""), Columns(time="at"), json_lines=False)


def test_a_new_kind_of_file_is_one_entry_in_the_list(tmp_path):
    def read_words(path, columns):
        yield Batch(np.array([len(word) for word in path.read_text().split()]))

    (tmp_path / "stream.words").write_text("a stream of words")
    words = StreamSource((".words",), read_words)
    (batch,) = read_file(tmp_path / "stream.words", Columns(), [*SOURCES, words])
    assert batch.values.tolist() == [1, 6, 2, 5]
    with pytest.raises(InvalidData, match="line 1 cannot be read"):
        list(read_file(tmp_path / "stream.words", Columns()))


def test_every_ending_has_one_source():
    endings = [ending for source in SOURCES for ending in source.endings]
    assert len(endings) == len(set(endings))
