"""`deniable stream report` and `collect`: two filters joined by a pipe."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from command_line import run
from deniable.streams import Released

FOLDER = Path(sys.executable).parent
DENIABLE = shlex.quote(str(FOLDER / "deniable"))
VALUES = np.random.default_rng(1).geometric(0.15, 900)
AGREED = ["--epsilon", "2", "--bound", "500"]
TEXT = "".join(f"{value}\n" for value in VALUES)
DOCS = Path(__file__).parents[2] / "docs" / "streams.md"


def shell(script, folder):
    environment = {**os.environ, "PATH": f"{FOLDER}:{os.environ['PATH']}"}
    return subprocess.run(
        ["/bin/sh", "-c", script], cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.parametrize("named_pipe", [True, False])
def test_both_phases_through_one_pipe(tmp_path, named_pipe):
    (tmp_path / "values.txt").write_text(TEXT)
    if named_pipe:
        os.mkfifo(tmp_path / "theta")
    agreed = " ".join(AGREED)
    done = shell(
        f"{DENIABLE} stream report {agreed} --first 400 --theta-from theta values.txt"
        f" | {DENIABLE} stream collect {agreed} --first 400 --announce theta",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    theta, *estimates = done.stdout.splitlines()
    assert 0 < float(theta.removeprefix("theta ")) <= 500
    assert len(estimates) == 500
    assert "900 reports: 400 first, 500 second\n" in done.stderr
    assert "sum " in done.stderr


def test_values_that_end_with_the_first_phase_do_not_hang(tmp_path):
    (tmp_path / "values.txt").write_text(TEXT)
    os.mkfifo(tmp_path / "theta")
    agreed = " ".join(AGREED)
    done = shell(
        f"{DENIABLE} stream report {agreed} --first 900 --theta-from theta values.txt"
        f" | {DENIABLE} stream collect {agreed} --first 900 --announce theta",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"theta \S+\n", done.stdout)


def test_phases_one_after_the_other_and_a_file_of_estimates(tmp_path):
    first = run("stream", "report", *AGREED, text=TEXT)
    lines = first.stdout.splitlines()
    assert [json.loads(line)["uid"] for line in lines] == list(range(900))
    assert len({len(json.loads(line)["report"]) for line in lines}) == 1
    chosen = run("stream", "collect", *AGREED, "--first", "900", text=first.stdout)
    assert chosen.returncode == 0
    theta = chosen.stdout.split()[1]
    second = run("stream", "report", *AGREED, "--theta", theta, "--first-uid", "1000", text=TEXT)
    out = tmp_path / "private.parquet"
    done = run("stream", "collect", *AGREED, "--theta", theta, "-o", out, text=second.stdout)
    assert done.stdout == f"theta {theta}\n"
    released = Released.load(out)
    assert len(released) == 900
    assert abs(released.sum(0, 900).value - np.minimum(VALUES, float(theta)).sum()) < 6 * released.sum(0, 900).stderr
    assert run("stream", "query", out, "0:900").returncode == 0
    means = run("stream", "collect", *AGREED, "--theta", theta, "--every", "400", text=second.stdout)
    assert [len(line.split()) for line in means.stdout.splitlines()] == [2, 2, 2]


def test_reports_in_a_parquet_file(tmp_path):
    lines = run("stream", "report", *AGREED, "--theta", "40", text=TEXT).stdout.splitlines()
    reports = [json.loads(line) for line in lines]
    data = pa.array([bytes.fromhex(report["report"]) for report in reports], pa.binary(16))
    pq.write_table(
        pa.table({"uid": [f"u{report['uid']}" for report in reports], "report": data}), tmp_path / "r.parquet"
    )
    (tmp_path / "r.jsonl").write_text("\n".join(lines))
    outputs = [
        run("stream", "collect", *AGREED, "--theta", "40", tmp_path / name).stdout for name in ("r.parquet", "r.jsonl")
    ]
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 901
    (tmp_path / "broken.parquet").write_text("no")
    for name, problem in (("broken.parquet", "not a Parquet file"), ("none.jsonl", "no file")):
        done = run("stream", "collect", *AGREED, "--theta", "40", tmp_path / name)
        assert (done.returncode, problem in done.stderr) == (2, True)


def test_refused_reports_are_counted_by_reason():
    good = run("stream", "report", *AGREED, "--theta", "40", text="1\n2\n3\n").stdout
    other = run("stream", "report", *AGREED, "--theta", "41", "--first-uid", "10", text="1\n2\n").stdout
    first = run("stream", "report", *AGREED, "--first-uid", "20", text="1\n").stdout
    odd = 'nonsense\n{"uid": 5, "report": "00"}\n{"uid": 99999999999999999999, "report": "' + "00" * 16 + '"}\n'
    odd += good.splitlines()[0].replace('"uid":0', '"uid":"\\ud800"') + "\n" + "[" * 100_000 + "\n"
    texts = json.dumps({"uid": "ann", "report": json.loads(good.splitlines()[0])["report"]}) + "\n"
    done = run("stream", "collect", *AGREED, "--theta", "40", text=good + good + other + first + odd + "\n" + texts)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 5
    assert "15 reports: 0 first, 4 second; refused: 1 first-phase, after θ was announced, 2 made for another θ, " in (
        done.stderr
    )
    assert "5 malformed, 3 of a user who has answered\n" in done.stderr


def test_a_user_with_a_memory_repeats_the_answer(tmp_path):
    memory = ["--uid", "ann", "--memory", str(tmp_path / "memory.json")]
    first = run("stream", "report", *AGREED, *memory, text="7\n").stdout
    assert run("stream", "report", *AGREED, *memory, "--theta", "40", text="400\n").stdout == first
    assert json.loads(first)["uid"] == "ann"
    done = run("stream", "report", *AGREED, "--uid", "ann", text="7\n")
    assert (done.returncode, "belong together" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "text", "problem"),
    [
        (["report", "--theta", "3", "--theta-from", "x"], "1\n", "Give one of them"),
        (["report", "--theta", "501"], "1\n", "not above the bound"),
        (["report"], "1\n98765x\n", "line 2 cannot be read"),
        (["collect", "-o", "out.csv"], "", "must be a .parquet file"),
        (["collect", "--announce", __file__], "", "exists already"),
    ],
)
def test_bad_input_is_explained(arguments, text, problem):
    done = run("stream", arguments[0], *AGREED, *arguments[1:], text=text)
    assert done.returncode == 2
    assert problem in done.stderr
    assert "98765" not in done.stderr


def test_who_waits_in_vain_is_told(tmp_path):
    wait = ["--first", "1", "--theta-from", tmp_path / "theta", "--wait", "0.01"]
    done = run("stream", "report", *AGREED, *wait, text="1\n2\n")
    assert (done.returncode, len(done.stdout.splitlines())) == (1, 1)
    assert "no threshold was announced" in done.stderr
    os.mkfifo(tmp_path / "theta")
    assert "no threshold was announced" in run("stream", "report", *AGREED, *wait, text="1\n2\n").stderr
    (tmp_path / "theta").unlink()
    (tmp_path / "theta").write_text("many")
    assert "holds no threshold" in run("stream", "report", *AGREED, *wait, text="1\n2\n").stderr
    sent = run("stream", "report", "--epsilon", "1", "--bound", "500", text="1\n2\n").stdout
    done = run("stream", "collect", *AGREED, "--first", "2", "--announce", tmp_path / "new", text=sent)
    assert (done.returncode, "all 2 reports were refused: 2 made under other settings" in done.stderr) == (1, True)
    single = run("stream", "report", *AGREED, text="1\n").stdout
    done = run("stream", "collect", *AGREED, "--first", "2", "--announce", tmp_path / "new", text=single + sent)
    assert float((tmp_path / "new").read_text()) == pytest.approx(float(done.stdout.split()[1]))
    done = run("stream", "collect", *AGREED, "--first", "2", text=single)
    assert "no threshold yet: 1 more first reports are needed" in done.stderr


def test_a_collection_goes_on_where_the_last_run_ended(tmp_path):
    """Runs that end inside the first phase, after it, and inside a mean: the same as one run over everything."""
    state, theta = ["--state", tmp_path / "secret.json"], tmp_path / "theta"
    first = run(
        "stream", "report", *AGREED, "--first-uid", "0", text="".join(TEXT.splitlines(keepends=True)[:400])
    ).stdout
    settings = [*AGREED, "--first", "400", "--every", "70", "--announce", theta]
    part = run("stream", "collect", *settings, *state, text="".join(first.splitlines(keepends=True)[:150]))
    assert (part.stdout, theta.exists()) == ("", False)
    assert "250 more first reports" in part.stderr
    assert (tmp_path / "secret.json").stat().st_mode & 0o077 == 0
    part = run("stream", "collect", *settings, *state, text=first)  # the first 150 again
    assert part.stdout == f"theta {float(theta.read_text()):g}\n"
    assert "550 reports: 400 first, 0 second; refused: 150 of a user who has answered" in part.stderr
    told = ["--theta", theta.read_text().strip(), "--first-uid", "400"]
    second = run("stream", "report", *AGREED, *told, text="".join(TEXT.splitlines(keepends=True)[400:])).stdout
    lines = second.splitlines(keepends=True)
    pieces = [run("stream", "collect", *settings, *state, text="".join(lines[a:b])) for a, b in ((0, 99), (99, 500))]
    shown = [line for piece in pieces for line in piece.stdout.splitlines() if not line.startswith("theta")]
    theta.unlink()
    whole = run("stream", "collect", *settings, text=first + second)
    assert shown == whole.stdout.splitlines()[1:]
    assert pieces[1].stderr.splitlines()[-1] == whole.stderr.splitlines()[-1]
    theta.write_text("3")
    done = run("stream", "collect", *settings, *state, text="")
    assert (done.returncode, "another threshold" in done.stderr) == (2, True)
    done = run("stream", "collect", *AGREED, "--first", "401", *state, text="")
    assert (done.returncode, "not those of the state file" in done.stderr) == (2, True)
    (tmp_path / "secret.json").chmod(0o644)
    done = run("stream", "collect", *AGREED, "--first", "400", *state, text="")
    assert (done.returncode, "it holds who has answered" in done.stderr) == (2, True)


def test_a_threshold_that_was_told_holds_in_the_next_run(tmp_path):
    """The announcement fails after the threshold was chosen: the next run announces the same one."""
    state, told = tmp_path / "secret.json", tmp_path / "folder" / "theta"
    sent = run("stream", "report", *AGREED, text=TEXT).stdout
    settings = [*AGREED, "--first", "400", "--announce", told, "--state", state]
    failed = run("stream", "collect", *settings, text=sent)
    assert (failed.returncode, "The threshold was not announced" in failed.stderr) == (1, True)
    written = json.loads(state.read_text())["state"]["choice"]["theta"]
    assert failed.stdout == f"theta {written:g}\n"
    told.parent.mkdir()
    again = run("stream", "collect", *settings, text="")
    assert again.stdout == f"theta {written:g}\n"
    assert float(told.read_text()) == written


def test_the_pipe_of_the_docs_runs(tmp_path):
    (script,) = re.findall(r"```sh\n(mkfifo.*?)```", DOCS.read_text(), flags=re.S)
    (tmp_path / "values.txt").write_text("".join(f"{value}\n" for value in np.random.default_rng(1).poisson(6, 3000)))
    done = shell(script, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("theta ")
    assert len(done.stdout.splitlines()) == 3


@pytest.mark.parametrize("text", ["", "\n", "  \n", "abc\n", "nan\n", "12"])
def test_a_device_never_falls_silent(text, tmp_path):
    done = run("stream", "report", *AGREED, "--uid", "ann", "--memory", str(tmp_path / "memory"), text=text)
    (line,) = done.stdout.splitlines()
    assert json.loads(line)["uid"] == "ann"
    (tmp_path / "value.txt").write_text(text)
    from_file = [str(tmp_path / "value.txt"), "--uid", "bob", "--memory", str(tmp_path / "other")]
    (line,) = run("stream", "report", *AGREED, *from_file).stdout.splitlines()
    assert json.loads(line)["uid"] == "bob"
