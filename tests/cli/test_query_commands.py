"""`deniable query` and `deniable shell`, as a person uses them."""

import csv
import io
import json
import os
import select
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from cli.test_command_line import deniable_command
from deniable.cli.main import run
from deniable.cli.plots import draw
from deniable.cli.shell import Session, completions, history_file, words
from deniable.errors import BadInput
from deniable.queries.result import Estimate, Result, number

COUNT = "SELECT marital, COUNT(*) AS n FROM users GROUP BY marital"
USERS = dn.Table(
    "users", age=dn.Ordinal(1, 95), marital=dn.Categorical("married", "single", "widowed"), city=dn.Public()
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("shop")
    random, size = np.random.default_rng(1), 20_000
    frame = pa.table({
        "uid": np.arange(size),
        "age": np.clip(random.normal(45, 15, size).astype(int), 1, 95),
        "marital": np.array(["married", "single", "widowed"])[random.choice(3, size, p=[0.6, 0.399, 0.001])],
        "city": np.array(["Rome", "Oslo", "Bern"])[random.integers(0, 3, size)],
    })  # fmt: skip
    options = {"source": dn.SeededSource(1), "simulation": True}
    dn.Collection(USERS, epsilon=3.0).perturb(users=frame, out=place / "reports", **options)
    (place / "cities.csv").write_text("name,country\nRome,Italy\nOslo,Norway\n")
    (place / "count.sql").write_text(COUNT + "\n;\n")
    return place


def in_process(arguments, typed="", **environment):
    """The command line without starting another interpreter: what it printed, and its exit code."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in {"COLUMNS": "80", **environment}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdin", io.StringIO(typed))
        with pytest.raises(SystemExit) as stopped:
            run([str(one) for one in arguments])
    return SimpleNamespace(returncode=stopped.value.code, stdout=out.getvalue(), stderr=err.getvalue())


def ask(folder, *arguments, typed="", **environment):
    return in_process(["query", folder / "reports", *arguments], typed, **environment)


def test_sql_comes_as_an_argument_a_file_or_on_stdin(folder):
    shown = ask(folder, COUNT)
    assert shown.returncode == 0
    assert shown.stderr == ""
    assert "married" in shown.stdout
    assert "95 % interval" in shown.stdout
    assert ask(folder, "-f", folder / "count.sql").stdout == shown.stdout
    assert ask(folder, f"@{folder}/count.sql").stdout == shown.stdout
    assert ask(folder, "-", typed=COUNT).stdout == shown.stdout
    assert deniable_command("query", str(folder / "reports"), COUNT).stdout == shown.stdout


def test_wide_answers_fit_into_80_columns(folder):
    aggregates = "COUNT(*) AS n, AVG(age) AS mean, SUM(age) AS total, STDDEV(age) AS spread"
    shown = ask(folder, f"SELECT city, marital, {aggregates} FROM users GROUP BY city, marital")
    assert shown.returncode == 0
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "mean ± error" in shown.stdout
    assert "unclear" in shown.stdout


def test_json_and_csv_hold_the_same_numbers(folder):
    text = "SELECT marital, COUNT(*) AS n, AVG(age) AS a FROM users GROUP BY marital"
    lines = [json.loads(line) for line in ask(folder, text, "--json").stdout.splitlines()]
    done = ask(folder, text, "--csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["marital"] for row in rows] == [line["marital"] for line in lines] == ["married", "single", "widowed"]
    assert list(rows[0]) == ["marital", "n", "n_stderr", "n_low", "n_high", "a", "a_stderr", "a_low", "a_high"]
    assert [float(row["n"]) for row in rows] == [line["n"] for line in lines]
    # JSON has no word for what is unclear, and CSV leaves it out; why is said beside the data.
    assert lines[2]["a"] is None
    assert rows[2]["a"] == ""
    assert "unclear" in done.stderr


def test_options_reach_the_question(folder):
    def values(*arguments):
        done = ask(folder, COUNT, "--json", *arguments)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]

    plain = values()
    assert values("--weights", "greedy") != plain
    assert values("--weights", "rdc(4)") != plain
    assert values("--sums", "designed") == plain  # HIO rounds nothing
    assert values("--simultaneous")[0]["n_high"] > plain[0]["n_high"]
    assert values("--confidence", "0.5")[0]["n_high"] < plain[0]["n_high"]
    assert all(row["n"] >= 0 for row in values("--clip"))
    text = "SELECT country, COUNT(*) AS n FROM users JOIN cities ON city = name GROUP BY country"
    joined = ask(folder, text, "--dimension", f"cities={folder}/cities.csv", "--csv")
    assert [line.split(",")[0] for line in joined.stdout.splitlines()] == ["country", "Italy", "Norway"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no SQL is given, or twice"),
        (["SELECT 1", "-f", "x.sql"], "no SQL is given, or twice"),
        (["@/no/such/file.sql"], "file 'file.sql' cannot be read"),
        ([COUNT, "--json", "--csv"], "exclude each other"),
        ([COUNT, "--dimension", "cities"], "not given as NAME=PATH"),
        ([COUNT, "--dimension", "c=a.csv", "--dimension", "c=b.csv"], "given twice"),
        ([COUNT, "--weights", "best"], "weights are unknown"),
        ([COUNT, "--plot", "out.gif"], "a plot ends in .png"),
        (["SELECT COUNT(*) FROM users WHERE age = 200"], "outside the attribute's domain"),
        (["SELECT marital, COUNT(*) FROM users GROUP BY marital LIMIT 0", "--plot", "out.png"], "has no rows"),
    ],
)
def test_what_cannot_be_asked(folder, arguments, message):
    done = ask(folder, *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


def test_an_answer_without_rows_is_shown_as_one(folder):
    done = ask(folder, COUNT + " LIMIT 0")
    assert done.returncode == 0
    assert "marital" in done.stdout
    assert ask(folder, COUNT + " LIMIT 0", "--csv").stdout == "marital,n,n_stderr,n_low,n_high\n"


def test_numbers_have_the_digits_that_their_error_leaves():
    assert number(16_210.7354, 1_390.2) == "16,211"
    assert number(45.12345, 0.0712) == "45.123"
    assert number(3.0, 0.0) == "3"
    assert number(-0.00123, 12.0) == "0"


def test_plots_are_written_for_every_kind_of_answer(folder, tmp_path):
    done = ask(folder, COUNT, "--plot", tmp_path / "a.png", MPLCONFIGDIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "drawn in a.png\n")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    nan = float("nan")
    one, unclear = Estimate(3.0, 1.0), Estimate(nan, nan)
    for place, result in enumerate([
        Result({}, {"n": (one,)}),
        Result({}, {"n": (unclear,)}),
        Result({"a $b$ & <c>": ["x$", None, "long " * 9]}, {"$n^": (one, unclear, one), "m": (unclear,) * 3}),
        Result({"age": list(range(95))}, {"n": (one,) * 94 + (unclear,)}),
        Result({"flag": [True, False], "city": ["Rome", None]}, {"n": (one, one)}),
    ]):  # fmt: skip
        draw(result, str(tmp_path / f"{place}.svg"))
        assert "<svg" in (tmp_path / f"{place}.svg").read_text()
    with pytest.raises(BadInput, match="over 200 rows"):
        draw(Result({"age": list(range(201))}, {"n": (one,) * 201}), str(tmp_path / "x.png"))
    with pytest.raises(BadInput, match="cannot be written"):
        draw(Result({}, {"n": (one,)}), str(tmp_path / "no such folder" / "x.png"))


# The shell ------------------------------------------------------------------------------------------------------------


def piped(folder, text, *arguments):
    return in_process(["shell", folder / "reports", *arguments], text)


def test_the_shell_reads_a_pipe_and_goes_on_after_errors(folder):
    done = piped(
        folder,
        ".tables\n.schema\nSELECT COUNT(*) AS n\n  FROM users\n\nWHERE age < 30;\nSELECT nothing FROM users;\n"
        ".explain SELECT AVG(age) FROM users;\n.nonsense\n;\n\nSELECT COUNT(*) AS last FROM users WHERE city = ';'",
        "--dimension",
        f"cities={folder}/cities.csv",
    )
    assert done.returncode == 2
    assert "20,000" in done.stdout
    assert "married, single, widowed" in done.stdout
    assert "country" in done.stdout
    assert "avg_age" in done.stdout
    assert "last" in done.stdout
    assert "there is no attribute 'nothing'" in done.stderr
    assert ".nonsense is no command" in done.stderr
    assert "deniable>" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    calm = piped(folder, ".help\n.quit\nSELECT nonsense;\n")
    assert (calm.returncode, calm.stderr) == (0, "")
    assert ".explain SQL" in calm.stdout


def test_a_semicolon_within_quotes_does_not_end_a_question(capsys):
    asked = []

    class Database:
        def sql(self, text, **_):
            asked.append(text)
            raise BadInput("refused")

    session = Session(Database(), {})
    assert session.run(["SELECT COUNT(*) FROM users", "WHERE city = ';", "' AND age = 3;", "SELECT 2;", None]) == 2
    assert asked == ["SELECT COUNT(*) FROM users\nWHERE city = ';\n' AND age = 3;", "SELECT 2;"]
    assert session.run(["SELECT 3", None, "SELECT 4;", ".quit", "SELECT 5;"]) == 3
    assert asked[2:] == ["SELECT 4;"]
    assert capsys.readouterr().err.count("Error: refused") == 3


def test_foreign_errors_do_not_quote_data(capsys, monkeypatch):
    monkeypatch.delenv("DENIABLE_TRACEBACK", raising=False)

    class Database:
        def sql(self, text, **_):
            raise ValueError("secret 4711")

    assert Session(Database(), {}).run(["SELECT 1;"]) == 1
    assert "4711" not in capsys.readouterr().err


def test_completion_and_history_file(folder, monkeypatch):
    database = dn.connect(folder / "reports", dimensions={"cities": folder / "cities.csv"})
    known = words(database)
    assert completions(known, "us") == ["USING", "users"]
    assert completions(known, "users.ma") == ["users.marital"]
    assert completions(known, ".ex") == [".explain"]
    assert completions(known, "cou") == ["COUNT(*)", "country"]
    assert completions(known, "zz") == []
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert history_file() == Path("/state/deniable/history")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")  # which the specification says to ignore
    assert history_file() == Path.home() / ".local" / "state" / "deniable" / "history"


def test_on_a_terminal_there_are_prompts_completion_and_history(folder, tmp_path):
    pty = pytest.importorskip("pty")
    pytest.importorskip("readline")
    master, slave = pty.openpty()
    command = [str(Path(sys.executable).parent / "deniable"), "shell", str(folder / "reports")]
    environment = {"PATH": "/usr/bin:/bin", "COLUMNS": "80", "TERM": "dumb", "XDG_STATE_HOME": str(tmp_path)}
    child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment, close_fds=True)
    os.close(slave)
    seen = ""

    def until(text):
        nonlocal seen
        end = time.monotonic() + 120
        while text not in seen and time.monotonic() < end:
            if select.select([master], [], [], 0.2)[0]:
                seen += os.read(master, 4096).decode(errors="replace")
        _, found, seen = seen.partition(text)
        assert found

    until("deniable> ")
    os.write(master, b"SELECT COUNT(*) AS total\n")
    until("...> ")
    os.write(master, b"FROM user\t;\n")  # completed to users
    until("95 % interval")
    until("deniable> ")
    os.write(master, b"SELECT nothing;\n")
    until("FROM is missing")
    until("deniable> ")
    os.write(master, b"\x04")
    assert child.wait(timeout=60) == 0
    os.close(master)
    assert "SELECT COUNT(*) AS total" in (tmp_path / "deniable" / "history").read_text()
