"""Commands whose outputs, inputs or terminals fail them: each ends with a message and the right exit code."""

import errno
import io
import os
import pathlib
import shlex
import signal
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest

import deniable as dn
from command_line import PATHS, run
from deniable.errors import Failure
from effort import some

SECRET = 86_420_713
SHOP = dn.Collection(
    dn.Table("users", age=dn.Ordinal(1, 95), marital=dn.Categorical("married", "single"), city=dn.Public()), epsilon=2.0
)
SQL = "SELECT city, COUNT(*) AS n FROM users WHERE age < 30 GROUP BY city"
AGREED = ["--epsilon", "2", "--bound", "500"]
PUBLISH = ["stream", "publish", *AGREED, "--warmup", "100", "--horizon", "1000"]
COMMANDS = {
    "init": ["init", "--from", "users.csv"],
    "check": ["check", "shop.toml"],
    "query": ["query", "reports", SQL],
    "query --json": ["query", "reports", SQL, "--json"],
    "query --csv": ["query", "reports", SQL, "--csv"],
    "explain": ["explain", "reports", SQL],
    "forecast": ["forecast", "shop.toml", SQL, "--users", "1000"],
    "compare": ["compare", "shop.toml", "queries.sql", "--users", "1000"],
    "fit": ["fit", "shop.toml", "queries.sql", "--users", "1000"],
    "audit": ["audit", "hybrid", "--samples", "200", "--seed", "1"],
    "reproduce": ["reproduce"],
    "stream query": ["stream", "query", "private.parquet", "0:100"],
    "stream forecast": ["stream", "forecast", *AGREED],
    "stream publish": [*PUBLISH, "values.txt"],
    "stream report": ["stream", "report", *AGREED, "values.txt"],
    "stream collect": ["stream", "collect", *AGREED, "--first", "100", "sent.jsonl"],
}
WRITING = {
    "perturb": (["perturb", "shop.toml", "users=users.csv", "-o", "OUT"], "the folder 'out'"),
    "fit": (["fit", "shop.toml", "queries.sql", "--users", "1000", "-o", "OUT.toml"], "file 'out.toml'"),
    "query --plot": (["query", "reports", SQL, "--plot", "OUT.png"], "the picture 'out.png'"),
    "stream plot": (["stream", "plot", "private.parquet", "-o", "OUT.png"], "the picture 'out.png'"),
    "stream publish": ([*PUBLISH, "values.txt", "-o", "OUT.parquet"], "the output"),
    "demo": (["demo", "--users", "20000", "-o", "OUT"], "the folder 'out'"),
    "reproduce": (["reproduce", "streams/overall", "--quick", "-o", "OUT"], "the folder 'out'"),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Everything that commands read. Cities need more than ASCII, and hold a secret."""
    folder = tmp_path_factory.mktemp("edges")
    users = {"uid": range(200), "age": [20, 40] * 100, "marital": ["single"] * 200, "city": ["Zürich ±", "Oslo"] * 100}
    SHOP.save(folder / "shop.toml")
    SHOP.perturb(users=users, out=folder / "reports")
    lines = zip(*users.values(), strict=True)
    (folder / "users.csv").write_text(
        "uid,age,marital,city\n" + "".join(",".join(map(str, row)) + "\n" for row in lines)
    )
    (folder / "queries.sql").write_text("SELECT COUNT(*) FROM users WHERE age < 30;")
    values = np.random.default_rng(1).geometric(0.15, 400)
    (folder / "values.txt").write_text("".join(f"{value}\n" for value in values))
    (folder / "few.txt").write_text("3\n")
    published = run(*PUBLISH, folder / "values.txt", "-o", folder / "private.parquet")
    assert published.returncode == 0, published.stderr
    (folder / "sent.jsonl").write_text(run("stream", "report", *AGREED, folder / "values.txt").stdout)
    (folder / "folder").mkdir()
    return folder


class Stream(io.StringIO):
    """Standard output that fails as a device does."""

    def __init__(self, problem=None):
        super().__init__()
        self.problem = problem

    def write(self, text):
        if self.problem and text:
            raise OSError(self.problem, os.strerror(self.problem))
        return super().write(text)


def run_into(stream, *arguments):
    """A command whose stdout is this one."""
    from deniable.cli import main

    with pytest.MonkeyPatch.context() as patch:
        errors = Stream()
        patch.setattr(sys, "stdout", stream)
        patch.setattr(sys, "stderr", errors)
        with pytest.raises(SystemExit) as stopped:
            main.run(list(arguments))
    return SimpleNamespace(returncode=stopped.value.code, stderr=errors.getvalue())


FAILURES = [(command, errno.ENOSPC, 1) for command in COMMANDS] + [(command, errno.EPIPE, 141) for command in COMMANDS]
FAILURES += [(command, errno.EIO, 1) for command in some(COMMANDS, 4)]  # treated as a full disk is


@pytest.mark.parametrize(("command", "problem", "code"), FAILURES)
def test_standard_output_fails(inputs, monkeypatch, command, problem, code):
    monkeypatch.chdir(inputs)
    done = run_into(Stream(problem), *COMMANDS[command])
    streams = problem == errno.EPIPE and command in ("stream publish", "stream report", "stream collect")
    assert done.returncode == (0 if streams else code), done.stderr
    if problem != errno.EPIPE:
        assert f"the output cannot be written ({os.strerror(problem).lower()})" in done.stderr
    assert "unexpected" not in done.stderr


def full(*_, **__):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("command", list(WRITING))
def test_the_disk_is_full(inputs, tmp_path, monkeypatch, command):
    arguments, what = WRITING[command]
    monkeypatch.chdir(inputs)
    if command == "demo":
        monkeypatch.setattr("deniable.cli.demo.story._outcome", full)
    monkeypatch.setattr("deniable_lab.experiments.running.run", full)
    from matplotlib.figure import Figure

    monkeypatch.setattr(Figure, "savefig", full)
    monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    monkeypatch.setattr(pq.ParquetWriter, "write_batch", full)
    monkeypatch.setattr(pathlib.Path, "write_text", full)
    done = run(*(word.replace("OUT", str(tmp_path / "out")) for word in arguments))
    assert done.returncode == 1, done.stderr
    assert f"Error: {what} cannot be written (no space left on device). " in done.stderr
    assert "Check that its folder exists, has room, and may be written to." in done.stderr
    assert not (tmp_path / "out").exists() or command == "demo"


@pytest.mark.parametrize("command", [name for name in WRITING if name not in ("demo", "reproduce")])
def test_a_file_stands_where_a_folder_should_be(inputs, tmp_path, monkeypatch, command):
    arguments, what = WRITING[command]
    monkeypatch.chdir(inputs)
    (tmp_path / "file").write_text("in the way")
    done = run(*(word.replace("OUT", str(tmp_path / "file" / "out")) for word in arguments))
    assert (done.returncode, "unexpected" in done.stderr) in ((1, False), (2, False)), done.stderr
    assert f"{what} cannot be written (not a directory)" in done.stderr or "folder" in done.stderr
    assert (tmp_path / "file").read_text() == "in the way"


INPUTS = {
    "init": ["init", "--from", "IN"],
    "check": ["check", "IN"],
    "perturb": ["perturb", "shop.toml", "users=IN", "-o", "never"],
    "perturb --everyone": ["perturb", "shop.toml", "users=users.csv", "--everyone", "IN", "-o", "never"],
    "query": ["query", "IN", SQL],
    "query -f": ["query", "reports", "-f", "IN"],
    "query @": ["query", "reports", "@IN"],
    "query --dimension": ["query", "reports", SQL, "--dimension", "cities=IN"],
    "query SQL": ["query", "reports", "SELECT COUNT(*) FROM users WHERE city = 'IN'", "--confidence", "2"],
    "query column": ["query", "reports", 'SELECT COUNT(*) FROM users WHERE "IN" = 1'],
    "shell": ["shell", "IN"],
    "explain": ["explain", "reports", "@IN"],
    "forecast": ["forecast", "IN", SQL, "--users", "9"],
    "compare": ["compare", "shop.toml", "IN", "--users", "9"],
    "fit": ["fit", "shop.toml", "IN", "--users", "9"],
    "stream query": ["stream", "query", "IN", "0:9"],
    "stream query window": ["stream", "query", "private.parquet", "IN"],
    "stream plot": ["stream", "plot", "IN", "-o", "never.png"],
    "stream plot --truth": ["stream", "plot", "private.parquet", "--truth", "IN", "-o", "never.png"],
    "stream publish": [*PUBLISH, "IN"],
    "stream publish --column": [*PUBLISH, "users.csv", "--column", "IN"],
    "stream publish --state": [*PUBLISH, "values.txt", "--state", "IN"],
    "stream report": ["stream", "report", *AGREED, "IN"],
    "stream report --memory": ["stream", "report", *AGREED, "few.txt", "--uid", "1", "--memory", "IN"],
    "stream report --theta-from": [
        "stream",
        "report",
        *AGREED,
        "values.txt",
        "--first",
        "1",
        "--theta-from",
        "IN",
        "--wait",
        "0",
    ],
    "stream collect": ["stream", "collect", *AGREED, "IN"],
    "stream collect --announce": ["stream", "collect", *AGREED, "--theta", "9", "--announce", "IN", "sent.jsonl"],
    "reproduce": ["reproduce", "IN"],
    "audit": ["audit", "IN"],
    "demo": ["demo", "--users", "IN"],
}
ODD = {
    "a folder": "folder",
    "not there": "nowhere/file",
    "a lone surrogate": "x\udcff",
    "not text": "odd.bin",
    "a file as a folder": "shop.toml/x",
    "long": "x" * 5000,
}


FINE = {
    ("stream collect", "not text"),  # malformed reports are counted
    *((command, "a lone surrogate") for command in ("stream publish --state", "stream report --memory")),
    ("stream collect --announce", "a lone surrogate"),
}


@pytest.mark.parametrize("command", INPUTS)
def test_inputs_that_cannot_be_read(inputs, tmp_path, monkeypatch, command):
    """Every odd name as every argument: a message and 1 or 2, or it is a fine name for something new."""
    monkeypatch.chdir(inputs)
    (inputs / "odd.bin").write_bytes(b"\xff\xfe\x00" + bytes(range(256)))
    for odd, name in ODD.items():
        done = run(*(word.replace("IN", name) for word in INPUTS[command]))
        if (command, odd) not in FINE:
            assert done.returncode in (1, 2), (odd, done.stdout[-300:], done.stderr[-300:])
            assert "Error: " in done.stderr
        assert "unexpected" not in done.stderr, (odd, done.stderr)
        assert not (inputs / "never").exists()
        (inputs / name).unlink() if odd == "a lone surrogate" and (inputs / name).is_file() else None


def shell(script, folder, encoding="utf-8", **environment):
    plain = {"PATH": f"{pathlib.Path(sys.executable).parent}:/usr/bin:/bin", "COLUMNS": "80", **PATHS, **environment}
    command = ["/bin/bash", "-o", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, env=plain, capture_output=True, encoding=encoding, check=False)


ASK = shlex.join(["deniable", "query", "reports", SQL])


@pytest.mark.parametrize(
    ("script", "code", "said"),
    [
        ("deniable check shop.toml > /dev/full", 1, "Error: the output cannot be written (no space left on device)"),
        ("deniable check shop.toml | true", 141, ""),
        ("deniable --help | true", 141, ""),
        (f"{ASK} >&- 2>&- <&-", 0, ""),
        ("deniable forecast shop.toml - --users 9 <&-", 2, "there is no text"),
        ("deniable perturb shop.toml users=users.csv -o OUT/a > /dev/full", 1, "Finished files are kept"),
        ("ulimit -f 1; deniable perturb shop.toml users=users.csv -o OUT/c", 1, "the folder 'c' cannot be written"),
    ],
)
def test_a_process_whose_streams_fail(inputs, tmp_path, script, code, said):
    done = shell(script.replace("OUT", str(tmp_path)), inputs)
    shown = done.stdout + done.stderr
    assert (done.returncode, said in shown, "Traceback" in shown, "ignored" in shown) == (code, True, False, False), (
        shown
    )
    if "ulimit" in script:
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("encoding", ["ascii", pytest.param("latin-1", marks=pytest.mark.slow)])
def test_a_terminal_that_cannot_show_every_character(inputs, tmp_path, encoding):
    script = f"deniable check shop.toml && {ASK} --json"
    if encoding == "ascii":
        script += f" && deniable perturb shop.toml users=users.csv -o {tmp_path}/reports"
    done = shell(script, inputs, PYTHONIOENCODING=encoding, encoding=encoding)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert "spends epsilon = 2 in all" in done.stdout
    assert '{"city": "Z\\u00fcrich \\u00b1"' in done.stdout  # JSON's own escapes
    if encoding == "ascii":
        _, header, _, row = done.stdout.partition("Collected")[2].strip().splitlines()[:4]
        assert "epsilon per report" in header
        borders = [[index for index, letter in enumerate(line) if letter == "|"] for line in (header, row)]
        assert borders[0] == borders[1]  # the column is as wide as its heading


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_stopped(inputs, tmp_path, number):
    # A shell starts commands in the background deaf to Ctrl-C, and their children inherit that.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    start = f"{listen}; from deniable.cli.main import run; run()"
    arguments = [sys.executable, "-c", start, "audit", "--samples", "100000000"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(arguments, **pipes) as process:
        try:
            assert "attacking" in process.stderr.readline()
            process.send_signal(number)
            _, shown = process.communicate(timeout=120)
        finally:
            process.kill()
    assert (process.returncode, "Traceback" in shown) == (128 + number, False)
    assert "Interrupted. Nothing more was done." in shown


@pytest.mark.parametrize(
    ("write", "reason"), [("save", "not a directory"), ("released", "not a directory"), ("perturb", "file exists")]
)
def test_python_says_it_too(inputs, tmp_path, write, reason):
    users = {"uid": [SECRET], "age": [31], "marital": ["single"], "city": ["Rome"]}
    calls = {
        "save": lambda path: SHOP.save(path.with_suffix(".toml")),
        "released": lambda path: dn.streams.Released.load(inputs / "private.parquet").save(path),
        "perturb": lambda path: SHOP.perturb(users=users, out=path),
    }
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(
        Failure, match=rf"cannot be written \({reason}\)\. .*\. Check that its folder exists"
    ) as stopped:
        calls[write](tmp_path / "file" / "out")
    assert str(SECRET) not in str(stopped.value)
