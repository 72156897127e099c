"""`deniable query` and `deniable shell`, as a person uses them."""

import csv
import io
import json

import pytest

from command_line import run, started
from deniable.errors import BadInput, Failure
from deniable.queries.answers.answer_layout import number
from deniable.queries.answers.answer_plot import draw
from deniable.queries.answers.result import Estimate, Result

COUNT = "SELECT marital, COUNT(*) AS n FROM users GROUP BY marital"


def ask(folder, *arguments, **given):
    return run("query", folder / "reports", *arguments, **given)


def test_sql_comes_as_an_argument_a_file_or_on_stdin(folder):
    shown = ask(folder, COUNT)
    assert shown.returncode == 0
    assert shown.stderr == ""
    assert "married" in shown.stdout
    assert "95 % interval" in shown.stdout
    assert ask(folder, "-f", folder / "count.sql").stdout == shown.stdout
    assert ask(folder, f"@{folder}/count.sql").stdout == shown.stdout
    assert ask(folder, "-", text=COUNT).stdout == shown.stdout
    assert started("query", folder / "reports", COUNT).stdout == shown.stdout


def test_wide_answers_fit_into_80_columns(folder):
    aggregates = "COUNT(*) AS n, AVG(age) AS mean, SUM(age) AS total, STDDEV(age) AS spread"
    shown = ask(folder, f"SELECT city, marital, {aggregates} FROM users GROUP BY city, marital")
    assert shown.returncode == 0
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert shown.stdout.count("95 % interval") == 4
    lines = ask(folder, f"SELECT city, {aggregates} FROM users GROUP BY city", "--stderr").stdout
    assert "mean (± standard error)" in lines
    assert "unclear" in shown.stdout


def test_no_answer_is_left_out_where_the_terminal_is_too_narrow(folder):
    names = [f"an_answer_with_a_rather_long_name_{number}" for number in range(5)] + ["long_" * 20]
    asked = ", ".join(f"COUNT(*) + {number} AS {name}" for number, name in enumerate(names))
    shown = ask(folder, f"SELECT marital, {asked} FROM users GROUP BY marital").stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert all(name in shown for name in names[:5])
    plain = json.loads(
        ask(folder, f"SELECT marital, {asked} FROM users GROUP BY marital", "--json").stdout.split("\n")[0]
    )
    assert all(f"{plain[name]:,.0f} " in shown for name in names)
    assert shown.count("95 %") == len(names)


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
    cities = ["--dimension", f"cities={folder}/cities.csv"]
    assert run("explain", folder / "reports", text, *cities).stdout.startswith("optimal weights, direct sums")
    joined = ask(folder, text, *cities, "--csv")
    assert [line.split(",")[0] for line in joined.stdout.splitlines()] == ["country", "Italy", "Norway"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the SQL is missing or given twice"),
        (["SELECT 1", "-f", "x.sql"], "the SQL is missing or given twice"),
        (["@/no/such/file.sql"], "file 'file.sql' cannot be read"),
        ([COUNT, "--json", "--csv"], "exclude each other"),
        ([COUNT, "--dimension", "cities"], "not given as NAME=PATH"),
        ([COUNT, "--dimension", "c=a.csv", "--dimension", "c=b.csv"], "given twice"),
        ([COUNT, "--weights", "best"], "weights are unknown"),
        ([COUNT, "--plot", "out.gif"], "the name of a plot must end in .png"),
        (["SELECT COUNT(*) FROM users WHERE age = 'x'"], "has another type than the attribute"),
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
    clear, unclear = Estimate(3.0, 1.0), Estimate(nan, nan)
    for index, result in enumerate([
        Result({}, {"n": (clear,)}),
        Result({}, {"n": (unclear,)}),
        Result({"a $b$ & <c>": ["x$", None, "long " * 9]}, {"$n^": (clear, unclear, clear), "m": (unclear,) * 3}),
        Result({"age": list(range(95))}, {"n": (clear,) * 94 + (unclear,)}),
        Result({"flag": [True, False], "city": ["Rome", None]}, {"n": (clear, clear)}),
    ]):  # fmt: skip
        draw(result, str(tmp_path / f"{index}.svg"))
        assert "<svg" in (tmp_path / f"{index}.svg").read_text()
    with pytest.raises(BadInput, match="over 200 rows"):
        draw(Result({"age": list(range(201))}, {"n": (clear,) * 201}), str(tmp_path / "x.png"))
    with pytest.raises(Failure, match="cannot be written"):
        draw(Result({}, {"n": (clear,)}), str(tmp_path / "no such folder" / "x.png"))
