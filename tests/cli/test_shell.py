"""`deniable shell`, from a pipe and at a terminal."""

import os
import select
import subprocess
import time
from pathlib import Path

import pytest

import deniable as dn
from command_line import DENIABLE, PATHS, run
from deniable.cli.line_editing import completions, history_file, words
from deniable.cli.shell import Session, completed_commands
from deniable.errors import BadInput


def piped(folder, text, *arguments):
    return run("shell", folder / "reports", *arguments, text=text)


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
    assert "avg(age)" in done.stdout
    assert "last" in done.stdout
    assert "there is no attribute 'nothing'" in done.stderr
    assert ".nonsense is an unknown command" in done.stderr
    assert "deniable>" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    calm = piped(folder, ".help\n.quit\nSELECT nonsense;\n")
    assert (calm.returncode, calm.stderr) == (0, "")
    assert ".explain SQL" in calm.stdout


def test_a_semicolon_within_quotes_does_not_end_a_question(capsys):
    asked = []

    class Database:
        def answer(self, text, options):
            asked.append(text)
            raise BadInput("refused")

    session = Session(Database(), dn.AnswerOptions())
    assert session.run(["SELECT COUNT(*) FROM users", "WHERE city = ';", "' AND age = 3;", "SELECT 2;", None]) == 2
    assert asked == ["SELECT COUNT(*) FROM users\nWHERE city = ';\n' AND age = 3", "SELECT 2"]
    assert session.run(["SELECT 3", None, "SELECT 4;", ".quit", "SELECT 5;"]) == 3
    assert asked[2:] == ["SELECT 4"]
    assert session.run(["-- that's a comment", ".quit"]) == 3
    assert session.run(["SELECT 6; SELECT 7; -- and", "SELECT 8 -- ;", ";"]) == 6
    assert asked[3:] == ["SELECT 6", "SELECT 7", "SELECT 8"]
    assert capsys.readouterr().err.count("Error: refused") == 6


@pytest.fixture(scope="module")
def grid_folder(tmp_path_factory):
    people, minors = dn.Table("people", age=dn.Ordinal(0, 99)), "SELECT COUNT(*) FROM people WHERE age < 18"
    fitted = dn.fit(people, epsilon=1.0, users=5_000, workload=[minors], only_workload=True)
    parent = tmp_path_factory.mktemp("grid")
    frame = {"uid": range(5_000), "age": [7, 70] * 2_500}
    fitted.collection.perturb(people=frame, out=parent / "reports", source=dn.SeededSource(1), simulation=True)
    return parent


def test_settings_change_how_a_grid_is_asked(grid_folder):
    minors, odd = "SELECT COUNT(*) AS n FROM people WHERE age < 18;", "SELECT COUNT(*) AS n FROM people WHERE age < 9;"
    done = piped(grid_folder, f"{odd}\n.unbiased on\n{odd}\n{minors}\n.unbiased off\n{odd}\n")
    assert done.returncode == 2
    assert done.stderr.count("Error: ") == 1
    assert "or leave out unbiased" in done.stderr
    assert "unbiased is on" in done.stdout
    assert done.stdout.count("model error") == 2  # before, and after it was switched off
    answers = {}
    for word in ("off", "consistent"):
        done = piped(grid_folder, f".postprocess {word}\n{minors}\n")
        assert done.returncode == 0, done.stderr
        answers[word] = done.stdout.partition("\n")[2]
    assert answers["off"] != answers["consistent"]
    explained = piped(grid_folder, f".explain {odd}\n.unbiased on\n.explain {odd}\n")
    assert (explained.returncode, "or leave out unbiased" in explained.stderr) == (2, True)


def test_settings_are_shown_set_and_refused(folder):
    assert "the engine is unknown" in piped(folder, "", "--engine", "hadoop").stderr
    done = piped(folder, ".confidence 0.5\n.weights rdc\n.clip ON;\n.settings\n.sums\n", "--sums", "designed")
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.splitlines())) <= 80
    lines = [line.split() for line in done.stdout.splitlines()]
    for setting in (["confidence", "0.5"], ["weights", "rdc(8)"], ["clip", "on"], ["postprocess", "off"]):
        assert setting in [line[:2] for line in lines]
    assert lines[-1] == ["sums", "is", "designed"]
    asked = "SELECT COUNT(*) AS n FROM users WHERE age < 30;"
    assert "50 % interval" in piped(folder, f".confidence 0.5\n{asked}\n").stdout
    for wrong, said in (
        (".unbiased perhaps", "Use on or off"),
        (".postprocess always", "Use consistent or off"),
        (".confidence 95", r"Use 0.95"),
        (".confidence high", r"Use 0.95"),
        (".weights best", "Use greedy, optimal or rdc(8)"),
    ):
        done = piped(folder, wrong)
        assert done.returncode == 2
        assert said in done.stderr
        assert "Nothing was" in done.stderr
    assert max(map(len, piped(folder, ".help").stdout.splitlines())) <= 80


def test_foreign_errors_do_not_quote_data(capsys, monkeypatch):
    monkeypatch.delenv("DENIABLE_TRACEBACK", raising=False)

    class Database:
        def answer(self, text, options):
            raise ValueError("secret 4711")

    assert Session(Database(), dn.AnswerOptions()).run(["SELECT 1;"]) == 1
    assert "4711" not in capsys.readouterr().err


def test_completion_and_history_file(folder, monkeypatch):
    database = dn.connect(folder / "reports", dimensions={"cities": folder / "cities.csv"})
    known = words(database, completed_commands())
    assert completions(known, "us") == ["USING", "users"]
    assert completions(known, "users.ma") == ["users.marital"]
    assert completions(known, ".ex") == [".explain"]
    assert completions(known, "cou") == ["COUNT(*)", "country"]
    assert completions(known, ".unb") == [".unbiased"]
    assert completions(known, "consis") == ["consistent"]
    assert completions(known, "zz") == []
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert history_file() == Path("/state/deniable/history")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")  # which the specification says to ignore
    assert history_file() == Path.home() / ".local" / "state" / "deniable" / "history"


def test_on_a_terminal_there_are_prompts_completion_and_history(folder, tmp_path):
    pty = pytest.importorskip("pty")
    pytest.importorskip("readline")
    master, slave = pty.openpty()
    command = [DENIABLE, "shell", str(folder / "reports")]
    environment = {"PATH": "/usr/bin:/bin", "COLUMNS": "80", "TERM": "dumb", "XDG_STATE_HOME": str(tmp_path), **PATHS}
    child = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment, close_fds=True)
    os.close(slave)
    seen = ""

    def until(text):
        nonlocal seen
        end = time.monotonic() + 120
        while text not in seen and time.monotonic() < end:
            if select.select([master], [], [], 0.2)[0]:
                seen += os.read(master, 4096).decode(errors="replace")
        _, match, seen = seen.partition(text)
        assert match

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
