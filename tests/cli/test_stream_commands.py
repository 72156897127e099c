"""`deniable stream` as people use it: files, pipes, windows, pictures."""

import json
import signal
import subprocess
import sys

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import DENIABLE, run
from deniable.errors import Failure, InvalidParameter
from deniable.stores import DurablePublisher, read_release
from deniable.stores.parquet_output import ParquetOutput
from deniable.streams import Released, ToPS

VALUES = np.random.default_rng(1).geometric(0.1, 20_000)
SETTINGS = ["--epsilon", "1", "--bound", "500", "--warmup", "2000", "--horizon", "10000"]


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stream")
    stamps = np.datetime64("2024-01-01", "s") + np.arange(20_000) * np.timedelta64(1, "m")
    pq.write_table(pa.table({"at": stamps, "amount": VALUES}), folder / "input.parquet")
    arguments = [
        "--column",
        "amount",
        "--time-column",
        "at",
        folder / "input.parquet",
        "-o",
        folder / "private.parquet",
    ]
    done = run("stream", "publish", *SETTINGS, *arguments)
    assert done.returncode == 0, done.stderr
    assert "20,000 values taken, 18,000 published" in done.stderr
    assert "θ = " in done.stderr
    return folder


def test_a_published_file_answers(published):
    released = Released.load(published / "private.parquet")
    assert len(released) == 18_000
    truth = VALUES[2000:]
    answer = released.sum(0, 10_000)
    assert abs(answer.value - truth[:10_000].sum()) < 5 * answer.error
    about = {name: value for name, value in released.about.items() if name != "hierarchy"}
    assert about | {"theta": 0} == {
        "method": "tops",
        "epsilon": 1.0,
        "theta": 0,
        "warmup": 2000,
        "r": 10_000,
        "b": released.about["b"],
        "s": released.about["s"],
        "chunk": 1,
    }
    total = duckdb.read_parquet(str(published / "private.parquet")).sum("value").fetchall()[0][0]
    assert total == pytest.approx(released.sum(0, 18_000, cut=True).value)
    assert abs(total - truth.sum()) < 5 * released.sum(0, 18_000).error


def test_windows_by_position_and_by_time(published):
    path = published / "private.parquet"
    released = Released.load(path)
    done = run("stream", "query", path, "1000:5000", "2024-01-02T09:20:00..2024-01-03", ":", "--json")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert rows[0]["sum"] == released.sum(1000, 5000).value
    assert rows[0]["stderr"] == released.sum(1000, 5000).stderr
    # The first 2,000 minutes were the warm-up.
    assert (rows[1]["start"], rows[1]["stop"]) == (0, 2 * 1440 - 2000)
    assert (rows[2]["start"], rows[2]["stop"]) == (0, 18_000)
    shown = run("stream", "query", path, "1000:5000", "--mean").stdout
    assert "1000:5000" in shown
    assert "18,000 values: epsilon = 1" in shown


@pytest.mark.parametrize("window", ["5000", "a:b", "5:4", "0:99999", "x..y"])
def test_impossible_windows_exit_2(published, window):
    assert run("stream", "query", published / "private.parquet", window).returncode == 2


def test_a_picture_with_and_without_the_truth(published):
    for more in ([], ["--truth", published / "input.parquet", "--column", "amount", "--window", 500]):
        done = run("stream", "plot", published / "private.parquet", "-o", published / "stream.png", *more)
        assert done.returncode == 0, done.stderr
        assert (published / "stream.png").read_bytes().startswith(b"\x89PNG")
    assert run("stream", "plot", published / "private.parquet", "-o", "stream.txt").returncode == 2


def test_a_pipe_answers_line_by_line():
    arguments = ["stream", "publish", "--epsilon", "1", "--bound", "500", "--theta", "100", "--warmup", "2", "-"]
    with subprocess.Popen(
        [DENIABLE, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdin.write("5\n6\n")
        for value in ("7\n", "8.4\n"):
            process.stdin.write(value)
            process.stdin.flush()
            assert float(process.stdout.readline()) is not None  # it does not wait for more lines
        process.stdin.close()
        assert process.stdout.read() == ""
        assert process.wait() == 0
        assert "4 values taken, 2 published" in process.stderr.read()


def test_a_bad_line_stops_after_everything_before_it_and_is_not_shown():
    done = run("stream", "publish", *SETTINGS, "-", text="\n".join(map(str, VALUES[:2100])) + "\n-17\n5\n")
    assert done.returncode == 2
    assert len(done.stdout.splitlines()) == 100
    assert "line 2,101 was refused" in done.stderr
    assert "-17" not in done.stderr
    done = run("stream", "publish", *SETTINGS, "-", text="\n".join(map(str, VALUES[:2100])) + "\nwhat\n5\n")
    assert (done.returncode, len(done.stdout.splitlines())) == (2, 100)
    assert "line 2,101 cannot be read" in done.stderr
    assert "to publish earlier values again would spend ε again" in done.stderr
    early = run("stream", "publish", *SETTINGS, "-", text="1\n\n2\n\n-17\n")
    assert "line 5 was refused" in early.stderr
    assert "begin again: nothing has been published" in early.stderr


def test_a_timestamp_that_goes_back_stops_before_it(tmp_path):
    stamps = np.arange(5000)
    stamps[4000] = 7
    pq.write_table(pa.table({"at": stamps, "value": VALUES[:5000]}), tmp_path / "input.parquet")
    arguments = ["--time-column", "at", tmp_path / "input.parquet", "-o", tmp_path / "private.parquet"]
    done = run("stream", "publish", *SETTINGS, *arguments)
    assert done.returncode == 2
    assert "row 4,001 was refused: its timestamp goes back" in done.stderr
    released = Released.load(tmp_path / "private.parquet")
    assert (len(released), released.between(2500, 3000)) == (2000, (500, 1000))


def test_times_that_nobody_can_ask_for_are_refused_before_anything_is_published(tmp_path):
    lines = [f"{1 + day % 28:02}.02.2024,{value}" for day, value in enumerate(VALUES[:2500])]
    (tmp_path / "input.csv").write_text("at,value\n" + "\n".join(lines))
    arguments = ["--time-column", "at", tmp_path / "input.csv", "-o", tmp_path / "private.parquet"]
    done = run("stream", "publish", *SETTINGS, *arguments)
    assert done.returncode == 2
    assert "row 1 was refused: its timestamp is missing, or neither a number nor like 2024-01-31T12:00" in done.stderr
    assert not (tmp_path / "private.parquet").exists()
    for text in ({"text": "1\n2\n"}, {}):
        source = "-" if text else tmp_path / "input.txt"
        (tmp_path / "input.txt").write_text("1\n2\n")
        done = run("stream", "publish", *SETTINGS, "--time-column", "at", source, **text)
        assert (done.returncode, "--time-column cannot be in a text" in done.stderr) == (2, True)


def test_windows_in_time_say_what_they_lack(tmp_path):
    stamps = np.datetime64("2024-01-01", "us") + np.arange(5000) * np.timedelta64(1, "m")
    pq.write_table(pa.table({"at": stamps, "value": VALUES[:5000]}), tmp_path / "input.parquet")
    private = tmp_path / "private.parquet"
    run("stream", "publish", *SETTINGS, "--time-column", "at", tmp_path / "input.parquet", "-o", private)
    later = run("stream", "query", private, "2030-01-01..2031-01-01")
    assert later.returncode == 2
    assert "holds no published value" in later.stderr
    assert "There are values from 2024-01-02T09:20:00.000000 to 2024-01-04T11:19:00.000000" in later.stderr
    assert run("stream", "query", private, "..2024-01-01").returncode == 2
    partly = run("stream", "query", private, "2024-01-01..2024-01-03", "--json")
    assert json.loads(partly.stdout)["start"] == 0
    assert "2024-01-01..2024-01-03 begins before the first value" in partly.stderr
    assert run("stream", "query", private, "2024-01-02T10:00..", "--json").stderr == ""


def test_a_stream_in_a_store_goes_on_and_is_asked_meanwhile(tmp_path):
    store = tmp_path / "store"
    (tmp_path / "one.txt").write_text("\n".join(map(str, VALUES[:5000])))
    (tmp_path / "all.txt").write_text("\n".join(map(str, VALUES[:9000])))
    first = run("stream", "publish", *SETTINGS, "--store", store, tmp_path / "one.txt")
    assert (first.returncode, first.stdout) == (0, "")
    assert len(first.stderr.splitlines()) == 1  # not a terminal
    again = run("stream", "publish", "--store", store, "--skip-published", "-o", "-", tmp_path / "all.txt")
    assert (again.returncode, len(again.stdout.splitlines())) == (0, 4000), again.stderr
    assert "goes on at position 5,000; 3,000 values are published" in again.stderr
    released = read_release(store)
    truth = np.minimum(VALUES[2000:9000], released.about["theta"])
    answer = released.sum(0, 7000)
    assert abs(answer.value - truth.sum()) < 5 * np.hypot(answer.stderr, answer.smoothing)
    several = run("stream", "query", store, "0:100", "0:99999", "x", "10:20", "--json")
    lines = [json.loads(line) for line in several.stdout.splitlines()]
    assert [line.get("start", line.get("window")) for line in lines] == [0, "0:99999", "x", 10]
    assert several.returncode == 2
    shown = run("stream", "query", store, "0:100", "0:99999")
    assert "does not lie within the 7,000 published values" in shown.stdout
    followed = run("stream", "follow", store, "--every", "2000", "--mean", "--stop", "--json")
    assert [json.loads(line)["stop"] for line in followed.stdout.splitlines()] == [2000, 4000, 6000]
    values = run("stream", "follow", store, "--values", "--from", "6998", "--stop")
    assert [line.split()[0] for line in values.stdout.splitlines()] == ["6998", "6999"]
    assert "7,000 values published" in run("stream", "doctor", store).stdout
    other = run("stream", "publish", "--epsilon", "2", *SETTINGS[2:], "--store", store, tmp_path / "one.txt")
    assert other.returncode == 2
    assert "not those of the store" in other.stderr
    both = run("stream", "publish", "--store", store, "-o", tmp_path / "out.parquet", tmp_path / "one.txt")
    assert "--output and --store exclude each other" in both.stderr
    (store / "settings.json").unlink()
    assert run("stream", "doctor", store).returncode == 2


def test_following_a_store_shows_a_rise_and_the_next_theta(tmp_path):
    rng = np.random.default_rng(1)
    values = np.concatenate((rng.geometric(0.1, 30_000), 10 * rng.geometric(0.1, 30_000)))
    store = tmp_path / "store"
    with DurablePublisher(store, ToPS(1.0, 2_000, warmup=1024, horizon=1 << 14, key=bytes(32), name="rise")) as stream:
        stream.push_many(values)
    lines = run("stream", "follow", store, "--every", "4000", "--mean", "--stop").stdout.splitlines()
    notes = {number: line for number, line in enumerate(lines) if line.startswith("  note: ")}
    assert any("θ was learnt again" in note for note in notes.values())
    pressed = [number for number, note in notes.items() if "press against θ" in note]
    assert min(pressed) > 5  # not before the rise
    facts = [json.loads(line) for line in run("stream", "follow", store, "--stop", "--json").stdout.splitlines()]
    assert facts[-1]["theta"] > 5 * facts[0]["theta"]


def test_positions_times_and_bad_values_of_a_store(tmp_path):
    hours = np.datetime64("2024-01-01T00:00", "m") + 10 * np.arange(300)
    rows = [f"{100 + number},{hour},{number % 9}" for number, hour in enumerate(hours)]
    rows[150] = f"250,{hours[150]},oops"
    (tmp_path / "in.csv").write_text("n,at,value\n" + "\n".join(rows) + "\n")
    publish = ["stream", "publish", "--epsilon", "5", "--bound", "9", "--theta", "9", "--warmup", "2", "--block", "1"]
    publish += ["--horizon", "512", "--position-column", "n", "--time-column", "at", "--store", tmp_path / "store"]
    done = run(*publish, "--on-bad", "zero", tmp_path / "in.csv")
    assert done.returncode == 0, done.stderr
    assert "300 values taken, 298 published, " in done.stderr
    assert ", 1 bad" in done.stderr
    replay = run(*publish[:2], *publish[-6:], tmp_path / "in.csv")
    assert "0 values taken, 0 published" in replay.stderr, replay.stderr
    (tmp_path / "gap.csv").write_text("n,at,value\n401,2024-02-01T00:00,1\n")
    gap = run(*publish[:2], *publish[-6:], tmp_path / "gap.csv")
    assert "row 1 was refused: positions before it are missing" in gap.stderr
    followed = run("stream", "follow", tmp_path / "store", "--every", "1d", "--stop")
    assert [line.split()[0] for line in followed.stdout.splitlines()] == ["2024-01-01T00:00:00", "2024-01-02T00:00:00"]
    day = run("stream", "query", tmp_path / "store", "2024-01-02..2024-01-03", "--json")
    assert json.loads(day.stdout)["stop"] - json.loads(day.stdout)["start"] == 144
    plain = run("stream", "follow", tmp_path / "store", "--every", "week")
    assert "--every is neither a number of values nor a time" in plain.stderr


def test_the_shortest_horizon_has_a_forecast():
    done = run("stream", "forecast", "--epsilon", "1", "--bound", "10", "--horizon", "1")
    assert (done.returncode, done.stderr) == (0, "")
    assert "chunks of 1, blocks of 1" in done.stdout


def test_a_forecast_reads_no_data():
    done = run("stream", "forecast", "--epsilon", "0.05", "--bound", "1638", "--theta", "60")
    assert done.returncode == 0, done.stderr
    assert "65,536" in done.stdout
    assert "blocks of 8,192" in " ".join(done.stdout.split())


@pytest.mark.parametrize("method", ["pak", "nme", "hc16", "smooth-hc16", "flat"])
def test_every_method_publishes(method, tmp_path):
    text = "\n".join(map(str, VALUES[:3000]))
    done = run("stream", "publish", *SETTINGS, "--method", method, "-", text=text)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 1000), done.stderr


def test_a_stream_that_ends_in_the_warm_up_publishes_nothing(tmp_path):
    (tmp_path / "short.txt").write_text("1\n2\n3")
    done = run("stream", "publish", *SETTINGS, tmp_path / "short.txt", "-o", tmp_path / "private.parquet")
    assert done.returncode == 0
    assert "1,997 more values are needed; no file was written" in done.stderr
    assert not (tmp_path / "private.parquet").exists()


def test_a_stream_that_drifts_gets_smaller_blocks(tmp_path):
    np.savetxt(tmp_path / "values.txt", VALUES, fmt="%d")
    sizes, public = [], ["--theta", "60", "--warmup", "0"]  # nothing is learnt, so no noise has a say
    for drift in (("--drift", "0.001"), ("--drift", "1")):
        output = tmp_path / f"{drift[1]}.parquet"
        done = run("stream", "publish", *SETTINGS, *public, *drift, tmp_path / "values.txt", "-o", output)
        assert done.returncode == 0, done.stderr
        sizes.append(Released.load(output).covariance.layout.block)
    assert sizes[1] < sizes[0]


def test_answers_for_windows_fit_80_columns(published):
    by_time = "2024-01-02T09:20:00 .. 2024-01-03T12:30:00"
    shown = run("stream", "query", published / "private.parquet", ":", "0:18000", "10:20", by_time)
    assert shown.returncode == 0
    assert max(len(line.rstrip()) for line in shown.stdout.splitlines()) <= 80
    assert "95% interval" in shown.stdout
    cuts = [line.split()[-1] for line in shown.stdout.splitlines() if " to " in line]
    assert len(cuts) == 4
    assert all(cut[-1].isdigit() or cut[-1] in "kM" for cut in cuts)


def test_what_was_released_is_not_overwritten(published):
    before = (published / "private.parquet").read_bytes()
    more = ["--column", "amount", published / "input.parquet", "-o", published / "private.parquet"]
    done = run("stream", "publish", *SETTINGS, *more)
    assert done.returncode == 2
    assert "'private.parquet' exists already" in done.stderr
    assert (published / "private.parquet").read_bytes() == before


def test_two_runs_cannot_write_one_file_and_a_killed_one_leaves_nothing_in_the_way(tmp_path):
    out, settings = tmp_path / "out.parquet", ["--epsilon", "1", "--bound", "500", "--theta", "100", "--warmup", "2"]
    command = [DENIABLE, "stream", "publish", *settings, "--block", "1", "-", "-o", str(out)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        for value in range(3000):
            process.stdin.write(f"{value}\n" * 100)  # the writer holds the newest batch back
            process.stdin.flush()
            if (tmp_path / ".out.parquet.partial").exists():
                break
        second = run("stream", "publish", *settings, "-", "-o", out, text="1\n2\n3\n")
        assert (second.returncode, second.stdout) == (1, "")
        assert "the output 'out.parquet' is in use" in second.stderr
        assert "Nothing was read or published" in second.stderr
        process.kill()
    assert not out.exists()
    assert (tmp_path / ".out.parquet.partial").exists()
    third = run("stream", "publish", *settings, "-", "-o", out, text="1\n2\n3\n4\n")
    assert third.returncode == 0, third.stderr
    assert len(Released.load(out)) == 2
    assert [path.name for path in tmp_path.iterdir()] == ["out.parquet"]


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path):
    out = tmp_path / "out.parquet"
    with ParquetOutput(out) as output:
        output.write(VALUES, None)
        out.write_text("somebody else's")
        with pytest.raises(Failure, match=r"What was released is in '\.out\.parquet\.partial'"):
            output.close({})
    assert out.read_text() == "somebody else's"
    with pytest.raises(InvalidParameter, match="exists already"):
        ParquetOutput(out)
    assert pq.read_table(tmp_path / ".out.parquet.partial")["value"].to_pylist() == VALUES.tolist()


@pytest.mark.parametrize("odd", ["", "73313x", "-73313"])
def test_a_csv_file_is_published_up_to_an_odd_row(tmp_path, odd):
    values = [*map(str, VALUES[:2100]), odd, "5"]
    rows = "".join(f"{number},{value}\n" for number, value in enumerate(values))
    (tmp_path / "meter.csv").write_text(f"at,watts\n{rows}")
    out = tmp_path / "private.parquet"
    columns = ["--column", "watts", "--time-column", "at"]
    done = run("stream", "publish", *SETTINGS, *columns, tmp_path / "meter.csv", "-o", out)
    assert done.returncode == 2
    assert "row 2,101" in done.stderr
    assert "Nothing of it was taken" in done.stderr
    assert "73313" not in done.stderr
    released = Released.load(out)
    assert (len(released), released.between(2050, 2100)) == (100, (50, 100))
    if not odd.endswith("x"):
        assert "to publish earlier values again would spend ε again" in done.stderr


def test_a_missing_value_needs_no_pandas(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    (tmp_path / "gap.csv").write_text("at,value\n1,5\n2,\n3,7\n")
    done = run("stream", "publish", *SETTINGS, tmp_path / "gap.csv")
    assert "row 2 was refused: it has no value" in done.stderr


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_goes_on_where_it_was(tmp_path, how):
    arguments = ["stream", "publish", "--epsilon", "1", "--bound", "500", "--theta", "100", "--warmup", "2"]
    arguments += ["--store", str(tmp_path / "store"), "-o", "-", "-"]
    with subprocess.Popen(
        [DENIABLE, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        process.stdin.write("5\n6\n7\n")
        process.stdin.flush()
        assert process.stdout.readline()
        process.send_signal(how)
        assert process.wait() == 128 + how
        assert "Interrupted" in process.stderr.read()
    again = run(*arguments, text="8\n9\n")
    assert (again.returncode, len(again.stdout.splitlines())) == (0, 2), again.stderr
    assert "goes on at position 3; 1 values are published" in again.stderr
