"""Stream files with changed bytes: CSV, Parquet, JSON lines, text, and released streams. Each is read or refused."""

import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import deniable as dn
from command_line import run
from fuzzing.harness import SECRET, cases, fuzz
from fuzzing.mutations import PLAIN, mutated_bytes, mutated_value

VALUES = [3, 7.5, 0, SECRET, 12, 31, 5, 8, 9, 1]
TIMES = [f"2024-01-{day:02}T12:00" for day in range(1, 11)]
ROWS = [{"value": value, "time": time} for value, time in zip(VALUES, TIMES, strict=True)]


def parquet(table):
    out = io.BytesIO()
    pq.write_table(table, out)
    return out.getvalue()


FILES = {
    "in.csv": ("value,time\n" + "".join(f"{row['value']},{row['time']}\n" for row in ROWS)).encode(),
    "in.jsonl": "".join(json.dumps(row) + "\n" for row in ROWS).encode(),
    "in.txt": "".join(f"{value}\n" for value in VALUES).encode(),
    "in.parquet": parquet(pa.table({"value": VALUES, "time": pa.array(np.array(TIMES, "datetime64[us]"))})),
}


def published():
    tops = dn.streams.ToPS(1.0, 10**9, warmup=100, horizon=1000, source=dn.SeededSource(1), simulation=True)
    tops.push_many(np.arange(1000) % 50)
    return tops.released


def publish(path, *options):
    done = run(
        *("stream", "publish", path, "--epsilon", "1", "--bound", "1e9", "--warmup", "4", "--horizon", "64", *options),
        DENIABLE_TRACEBACK="1",
    )
    assert done.returncode in (0, 2)
    assert str(SECRET) not in done.stderr


@cases(200)
def test_bytes_of_stream_files(tmp_path, count):
    def attempt(chance):
        name, data = chance.choice(list(FILES.items()))
        if name == "in.jsonl" and chance.random() < 0.3:
            data = "".join(json.dumps(mutated_value(chance, row, PLAIN)) + "\n" for row in ROWS).encode()
        else:
            data = mutated_bytes(chance, data)
        path = tmp_path / name
        path.write_bytes(data)
        timed = ("--time-column", "time") if name != "in.txt" and chance.random() < 0.5 else ()
        publish(path, *timed)

    assert set(fuzz(attempt, "bytes of stream files", count)) == {"works"}


@cases(300)
def test_bytes_of_released_streams(tmp_path, count):
    path = tmp_path / "private.parquet"
    published().save(path)
    whole = path.read_bytes()

    def attempt(chance):
        path.write_bytes(mutated_bytes(chance, whole))
        released = dn.streams.Released.load(path)
        with np.errstate(all="ignore"):  # numbers that are damaged may be huge
            released.sum(0, len(released))
            released.mean(len(released) // 2, len(released))

    outcomes = fuzz(attempt, "bytes of released streams", count)
    assert "InvalidData" in outcomes


@cases(200)
def test_bytes_of_reports_in_parquet(tmp_path, count):
    sent = [dn.client.ToPLClient(2.0, 500.0).report(value).to_bytes() for value in range(5)]
    whole = parquet(pa.table({"uid": [SECRET + uid for uid in range(5)], "report": pa.array(sent, pa.binary(16))}))

    def attempt(chance):
        path = tmp_path / "sent.parquet"
        path.write_bytes(mutated_bytes(chance, whole))
        done = run("stream", "collect", "--epsilon", "2", "--bound", "500", path, DENIABLE_TRACEBACK="1")
        assert done.returncode in (0, 2)
        assert str(SECRET) not in done.stdout + done.stderr

    assert set(fuzz(attempt, "bytes of reports in Parquet", count)) == {"works"}
