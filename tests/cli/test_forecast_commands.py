"""`deniable explain`, `forecast` and `compare` as a person would run them."""

import json

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from command_line import run
from deniable.cli.sql_text import ended, questions
from deniable.errors import QueryRefused

SHOP = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95), kind=dn.Categorical("a", "b")), epsilon=2.0)
YOUNG = "SELECT COUNT(*) AS n FROM users WHERE age < 30"


@pytest.fixture
def specification(tmp_path):
    SHOP.save(tmp_path / "shop.toml")
    return str(tmp_path / "shop.toml")


def printed(*arguments, text=""):
    done = run(*arguments, text=text)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_forecasts_of_users_errors_and_epsilon(specification, tmp_path):
    text = printed("forecast", specification, "--users", "1000000", YOUNG)
    assert text.startswith("1,000,000 users, ε = 2, design hio, optimal weights")
    assert "randomiser" in text
    (row,) = [
        json.loads(line)
        for line in printed("forecast", specification, "--users", "1000000", "--json", YOUNG).splitlines()
    ]
    assert row["name"] == "n"
    assert row["stderr"] == pytest.approx(SHOP.forecast(YOUNG, users=1_000_000).scalar().stderr)
    users = json.loads(printed("forecast", specification, "--error", "0.01", "--json", "-", text=YOUNG))["users"]
    (tmp_path / "young.sql").write_text(YOUNG)
    epsilon = json.loads(
        printed("forecast", specification, "--error", "0.01", "--users", str(users), "--json", f"@{tmp_path}/young.sql")
    )["epsilon"]
    assert epsilon == pytest.approx(2.0, rel=0.01)
    assert printed("forecast", specification, "--error", "0.01", YOUNG) == f"{users:,} users\n"


def test_designs_are_compared(specification, tmp_path):
    (tmp_path / "q.sql").write_text(f"{YOUNG};\nSELECT AVG(age) FROM users;\n")
    text = printed("compare", specification, str(tmp_path / "q.sql"), "--users", "1000000")
    assert 'Recommended: design = "grid", asked with optimal weights.' in text
    assert "deniable plan" in text
    assert max(map(len, text.splitlines())) <= 80
    lines = printed("compare", specification, str(tmp_path / "q.sql"), "--users", "1000000", "--csv").splitlines()
    assert lines[0] == "design,weights,sums,q1,q2"
    assert lines[1].startswith("grid,optimal,direct,")
    assert lines[2].startswith("hio,optimal,direct,")
    text = printed("compare", specification, "-", "--users", "50", text="SELECT AVG(age) FROM users WHERE age = 3")
    assert "No design answers all of them clearly" in text


@pytest.mark.slow
def test_no_error_is_left_out_where_there_are_many_questions(specification):
    arguments = ["compare", specification, "-", "--users", "1000000"]
    asked = ";".join(f"SELECT COUNT(*) FROM users WHERE age < {age}" for age in range(5, 17))
    text, lines = printed(*arguments, text=asked), printed(*arguments, "--csv", text=asked).splitlines()
    assert max(map(len, text.splitlines())) <= 80
    for name in lines[0].split(",")[3:]:
        assert f" {name} " in text
    best = lines[1].split(",")
    assert all(f" {float(error):,.3g} " in text for error in best[3:])


def test_a_grid_is_fitted_and_written(specification, tmp_path):
    (tmp_path / "q.sql").write_text(f"{YOUNG};\n")
    out = tmp_path / "fitted.toml"
    text = printed("fit", specification, str(tmp_path / "q.sql"), "--users", "100000", "-o", str(out))
    assert max(map(len, text.splitlines()[:-1])) <= 80
    for name in ("grid", "hio", "ahio", "ehio"):
        assert name in text
    assert dn.Collection.load(out).design == "grid"
    assert "Nothing was written" in printed("fit", specification, "-", "--users", "100000", text=YOUNG)
    predicted = json.loads(printed("forecast", str(out), "--users", "100000", "--json", YOUNG))
    assert predicted["stderr"] > 0


def test_a_plan_is_printed_and_written_next_to_the_specification(specification, tmp_path):
    (tmp_path / "q.sql").write_text(f"{YOUNG};\nSELECT AVG(age) FROM users;\n")
    text = printed("plan", specification, str(tmp_path / "q.sql"), "--users", "60000")
    for said in ("q2: SELECT AVG(age) FROM users", "not in the workload", 'Proposed: design = "grid"', "Wrote"):
        assert said in text
    written = tmp_path / "shop.planned.toml"
    assert dn.Collection.load(written).design == "grid"
    again = run("plan", specification, str(tmp_path / "q.sql"), "--users", "60000")
    assert again.returncode == 2  # it is not overwritten
    assert "'shop.planned.toml' exists" in again.stderr
    printed("plan", specification, str(tmp_path / "q.sql"), "--users", "60000", "-o", str(written), "--only-workload")
    nowhere = run(
        "plan", specification, str(tmp_path / "q.sql"), "--users", "60000", "-o", str(tmp_path / "no" / "x.toml")
    )
    assert "does not exist" in nowhere.stderr


def test_plan_names_the_server_where_devices_have_assigned_coins(tmp_path):
    text = 'epsilon = 2.0\ncoins = "assigned"\n[tables.t]\nattributes.age = { kind = "ordinal", low = 0, high = 9 }\n'
    (tmp_path / "s.toml").write_text(text)
    (tmp_path / "q.sql").write_text("SELECT COUNT(*) FROM t WHERE age < 3")
    text = printed("plan", str(tmp_path / "s.toml"), str(tmp_path / "q.sql"), "--users", "500")
    assert "Collect with it: deniable serve --init, or deniable perturb." in text


def test_explanations(tmp_path):
    random = np.random.default_rng(1)
    frame = pa.table({"uid": np.arange(2_000), "age": random.integers(1, 96, 2_000), "kind": ["a", "b"] * 1_000})
    SHOP.perturb(users=frame, out=tmp_path / "reports")
    text = printed("explain", str(tmp_path / "reports"), YOUNG)
    assert text.startswith("optimal weights, direct sums\nm0 = count(*): 1 term\nn = m0\ntable users: ")
    assert "of 2,000 reports count, 1 per user with ε = 2 each" in text
    assert "predicted:" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["forecast", "{spec}", YOUNG], "neither --users nor --error"),
        (["forecast", "{spec}", "--users", "0", YOUNG], "users must be a whole number"),
        (["forecast", "{spec}", "--users", "9", "@missing.sql"], "'missing.sql' cannot be read as text"),
        (["forecast", "{spec}", "--users", "9", "SELECT MAX(age) FROM users"], "MAX is one person's value"),
        (["compare", "{spec}", "missing.sql", "--users", "9"], "'missing.sql' cannot be read as text"),
    ],
)
def test_mistakes_exit_with_two_and_say_what_to_do(specification, arguments, message):
    done = run(*(argument.format(spec=specification) for argument in arguments))
    assert done.returncode == 2
    assert message in done.stderr


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("SELECT 'a;b'; SELECT 2", ["SELECT 'a;b'", "SELECT 2"]),
        ("SELECT 'it''s; fine' ;SELECT 2;", ["SELECT 'it''s; fine'", "SELECT 2"]),
        ('SELECT "x;y"; SELECT 2', ['SELECT "x;y"', "SELECT 2"]),
        ("-- first; of two\nSELECT 1;\n-- second;\nSELECT 2", ["SELECT 1", "SELECT 2"]),
        ("SELECT /* a; b */ 1; /* ; */ SELECT 2 -- end;", ["SELECT 1", "SELECT 2"]),
        ("SELECT 1 -- it's one\n; SELECT 2", ["SELECT 1", "SELECT 2"]),
        (";; SELECT 1;\n ; -- no more\n;", ["SELECT 1"]),
        ("SELECT 'é;ü';SELECT\n  2\n", ["SELECT 'é;ü'", "SELECT\n  2"]),
        ("-- nothing; at all", []),
        ("", []),
    ],
)
def test_a_semicolon_parts_questions_but_not_texts_names_or_comments(text, parts):
    assert questions(text) == parts
    assert ended(text + "\n;")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("SELECT 'a", 1),
        ("SELECT 'a;b'; SELECT \"c; SELECT 3", 2),
        ("SELECT 1 -- ;\n, 'x", 1),
        ("SELECT 1; ; SELECT 2; /* never", 3),
    ],
)
def test_a_quotation_without_end_is_found_in_its_question(text, number):
    with pytest.raises(QueryRefused, match=f"question {number}: a quotation or comment is not closed"):
        questions(text)
    assert not ended(text + ";")


def test_a_refused_question_is_named_by_its_number(specification, tmp_path):
    (tmp_path / "q.sql").write_text(f"-- those; under 30\n{YOUNG};\nSELECT MAX(age) FROM users;\n")
    (tmp_path / "none.sql").write_text("-- none;\n")
    for command in ("compare", "fit"):
        done = run(command, specification, tmp_path / "q.sql", "--users", 1000)
        assert done.returncode == 2
        assert "question 2: MAX is one person's value" in done.stderr
        assert "Nothing was computed" in done.stderr
        done = run(command, specification, tmp_path / "none.sql", "--users", 1000)
        assert (done.returncode, "there is no question. Nothing was computed" in done.stderr) == (2, True)
