"""`deniable init`, `check` and `perturb`, as a person uses them."""

import json
import re
import tomllib
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from command_line import run
from deniable.collection import Collection

SPECIFICATION = """
epsilon = 2.0
design = "ahio"

[tables.users]
attributes.age = { kind = "ordinal", low = 1, high = 95 }
attributes.marital = { kind = "categorical", values = ["married", "single", "widowed"] }
attributes.city = { kind = "public" }

[tables.orders]
many = 10
attributes.amount = { kind = "ordinal", low = 0, high = "5.00", step = "0.01" }
"""
USERS = "uid,age,marital,city\na,31,single,Rome\nb,40,married,Oslo\nc,200,single,Rome\n,3,single,X\n"
ORDERS = "uid,amount\na,3.14\na,2.5\nz,1\na,3.333\n"


@pytest.fixture
def shop(tmp_path):
    for name, text in (("shop.toml", SPECIFICATION), ("users.csv", USERS), ("orders.csv", ORDERS)):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_check_prints_the_design_and_what_each_user_spends(shop):
    done = run("check", shop / "shop.toml")
    assert done.returncode == 0
    assert "Each user sends 2 reports and spends ε = 2 in all." in done.stdout
    assert "age:95" not in done.stdout  # only the first views
    assert "… and 4 more" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    everything = run("check", "--views", shop / "shop.toml")
    assert "age:95 marital:3 age⇅:2" in everything.stdout
    assert "2,004" in everything.stdout


def test_check_prints_the_canonical_form_for_pages_and_other_languages(shop):
    done = run("check", shop / "shop.toml", "--canonical")
    assert done.returncode == 0
    collection = Collection.load(shop / "shop.toml")
    assert done.stdout == collection.to_json() + "\n"
    assert done.stderr == f"SHA-256 {collection.sha256}\n"
    (shop / "shop.json").write_text(done.stdout)
    assert Collection.load(shop / "shop.json") == collection


def test_both_forms_in_the_readme_of_the_web_client_are_one_specification(tmp_path):
    readme = (Path(__file__).parents[2] / "clients" / "javascript" / "README.md").read_text()
    (tmp_path / "shop.toml").write_text(re.search(r"```toml\n(.*?)```", readme, re.DOTALL)[1])
    (tmp_path / "shop.json").write_text(re.search(r"fromJson\(`(.*?)`", readme, re.DOTALL)[1])
    assert Collection.load(tmp_path / "shop.toml") == Collection.load(tmp_path / "shop.json")


def test_perturb_writes_reports_and_says_what_it_did(shop):
    rows = (f"users={shop}/users.csv", f"orders={shop}/orders.csv")
    ended = run("perturb", shop / "shop.toml", *rows, "-o", shop / "out")
    assert ended.returncode == 2
    assert "50 % of the rows of table 'users' would be rejected, above 1 %" in ended.stderr
    assert "nothing was spent" in ended.stderr
    assert 'age: outside = "clip", or a wider domain' in ended.stderr
    assert not (shop / "out").exists()
    dry = run("perturb", shop / "shop.toml", *rows, "--dry-run")
    assert dry.returncode == 0
    assert "users: 2 of 4 rows would be rejected (50 %, more than 1 %: nothing would be drawn)." in dry.stdout
    assert "Nothing was drawn, charged or written." in dry.stdout
    done = run("perturb", shop / "shop.toml", *rows, "-o", shop / "out", "--max-rejected", "1")
    assert (done.returncode, done.stderr) == (0, "randomising\n")
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["users", "4", "3", "3", "1", "2"] in lines
    assert ["orders", "4", "3", "3", "1", "2"] in lines
    assert "users: 1 row rejected: outside the domain" in done.stdout
    assert "orders: 1 row rejected: of an unknown user" in done.stdout
    assert "200" not in done.stdout.replace("2,004", "")  # no value of anybody's
    assert pq.read_table(shop / "out" / "users").num_rows == 3
    again = run("perturb", shop / "shop.toml", *rows, "-o", shop / "out", "--max-rejected", "1")
    assert again.returncode == 2
    assert "spend ε again" in again.stderr


def test_an_odd_value_far_down_a_csv_file_spoils_its_own_row_only(shop):
    rows = [f"{i},{1 + i % 95},single,Rome" for i in range(60_000)] + ["60000,SECRET,single,Rome"]
    (shop / "users.csv").write_text("\n".join(["uid,age,marital,city", *rows]) + "\n")
    done = run("perturb", shop / "shop.toml", f"users={shop}/users.csv", "-o", shop / "out")
    assert done.returncode == 0
    assert "users: 1 row rejected: of the wrong type" in done.stdout
    assert "SECRET" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["users"], "is not TABLE=FILE"),
        (["users=a.csv", "users=b.csv"], "named twice"),
        (["visits={shop}/users.csv"], "'visits' is not in this collection"),
        (["users=nowhere.csv"], "cannot be read"),
        (["orders={shop}/orders.csv"], "everyone is missing"),
    ],
)
def test_bad_requests_exit_2(shop, arguments, message):
    given = [argument.format(shop=shop) for argument in arguments]
    done = run("perturb", shop / "shop.toml", *given, "-o", shop / "out")
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())
    assert not (shop / "out").exists()


def test_everyone_may_come_from_a_file(shop):
    (shop / "ids.csv").write_text("uid\na\nb\nc\nd\n")
    rows = (f"orders={shop}/orders.csv", "--everyone", shop / "ids.csv", "--max-rejected", "1")
    done = run("perturb", shop / "shop.toml", *rows, "-o", shop / "out")
    assert done.returncode == 0
    assert pq.read_table(shop / "out" / "orders")["uid"].to_pylist() == ["a", "b", "c", "d"]


def test_init_proposes_names_and_types_and_leaves_domains_to_a_person(shop):
    done = run("init", "--from", shop / "users.csv")
    assert done.returncode == 0
    assert 'attributes.age = { kind = "ordinal", low = "DECIDE"' in done.stdout
    assert 'attributes.marital = { kind = "categorical", values = "DECIDE' in done.stdout
    assert "uid" not in done.stdout
    for value in ("31", "single", "Rome", "200"):
        assert value not in done.stdout
    tomllib.loads(done.stdout)
    (shop / "skeleton.toml").write_text(done.stdout)
    checked = run("check", shop / "skeleton.toml")  # it does not load before everything is decided
    assert checked.returncode == 2
    assert "epsilon is still to be decided" in checked.stderr
    (shop / "skeleton.toml").write_text(re.sub('epsilon = ".*"', "epsilon = 2", done.stdout))
    assert "tables.users.attributes.age.low is still to be decided" in run("check", shop / "skeleton.toml").stderr


def test_init_proposes_a_table_for_each_file_and_rules(shop):
    (shop / "more.csv").write_text("uid,paid,day,back\n1,2.5,2024-01-01,true\n2,3.5,2024-01-02,false\n")
    done = run("init", "--from", shop / "users.csv", "--from", f"bought={shop / 'more.csv'}")
    parsed = tomllib.loads(done.stdout)
    assert list(parsed["tables"]) == ["users", "bought"]
    kinds = {name: entry["kind"] for name, entry in parsed["tables"]["bought"]["attributes"].items()}
    assert kinds == {"paid": "ordinal", "day": "dates", "back": "categorical"}
    assert parsed["tables"]["bought"]["attributes"]["paid"]["round"] is True
    assert parsed["tables"]["bought"]["attributes"]["day"]["missing"] == "own"
    again = run("init", "--from", shop / "users.csv", "--from", shop / "users.csv")
    assert "two tables are called 'users'" in again.stderr


def test_init_names_the_column_of_ids_that_perturb_will_need(shop):
    (shop / "bought.csv").write_text("customer id,paid\n1,2\n")
    done = run("init", "--from", shop / "bought.csv", "--key", "customer id")
    assert '--key "customer id"' in done.stdout
    assert list(tomllib.loads(done.stdout)["tables"]["bought"]["attributes"]) == ["paid"]


def test_init_mends_names_that_a_specification_cannot_have(shop):
    (shop / "my file-2.csv").write_text("uid,the age,y,2nd\n1,2,3,4\n")
    done = run("init", "--from", shop / "my file-2.csv")
    parsed = tomllib.loads(done.stdout)
    assert list(parsed["tables"]) == ["my_file_2"]
    assert list(parsed["tables"]["my_file_2"]["attributes"]) == ["the_age", "y", "_2nd"]
    assert 'rename the column "the age" to this' in done.stdout


def test_no_two_columns_are_proposed_under_one_name(tmp_path):
    (tmp_path / "2024.csv").write_text("uid,net worth,net-worth,Net_Worth,1st,Größe,view\n1,2,3,4,5,6,7\n")
    proposed = run("init", "--from", tmp_path / "2024.csv").stdout
    names = [line.split()[0] for line in proposed.splitlines() if line.startswith("attributes.")]
    assert len({name.lower() for name in names}) == 6
    assert "attributes._1st" in names
    assert 'rename the column "Größe" to this' in proposed
    decided = proposed.replace('low = "DECIDE", high = "DECIDE"', "low = 1, high = 9")
    (tmp_path / "odd.toml").write_text(re.sub('epsilon = ".*"', "epsilon = 2", decided))
    assert run("check", tmp_path / "odd.toml").returncode == 0


def test_long_names_fold_instead_of_pushing_numbers_out(shop):
    names = ["a_rather_long_attribute_name", "another_rather_long_name", "yet_another_quite_long_name"]
    attributes = "".join(f'attributes.{name} = {{ kind = "ordinal", low = 0, high = 99 }}\n' for name in names)
    (shop / "long.toml").write_text(f"epsilon = 1\n[tables.t]\n{attributes}")
    done = run("check", shop / "long.toml")
    assert max(map(len, done.stdout.splitlines())) <= 80
    for word in ("view", "cells", "chance", "oracle", *names):
        assert word in done.stdout


def test_query_answers_with_intervals_and_refuses_with_advice(shop):
    rows = "".join(f"{i},{1 + i % 95},{('married', 'single', 'widowed')[i % 3]},Rome\n" for i in range(3000))
    (shop / "users.csv").write_text("uid,age,marital,city\n" + rows)
    assert run("perturb", shop / "shop.toml", f"users={shop}/users.csv", "-o", shop / "out").returncode == 0
    sql = "SELECT marital, COUNT(*) AS n FROM users WHERE age < 50 GROUP BY marital"
    done = run("query", shop / "out", sql)
    assert done.returncode == 0
    assert all(word in done.stdout for word in ("married", "single", "widowed", "95 % interval"))
    assert max(map(len, done.stdout.splitlines())) <= 80
    lines = run("query", shop / "out", sql, "--json").stdout.splitlines()
    assert [sorted(json.loads(line)) for line in lines] == [["marital", "n", "n_high", "n_low", "n_stderr"]] * 3
    assert run("query", shop / "out", "-", "--json", text=sql).stdout.splitlines() == lines
    nobody = run("query", shop / "out", "SELECT COUNT(*) FROM users WHERE age > 200")
    assert nobody.returncode == 0
    assert "200 is outside the domain of age, which is 1 to 95" in nobody.stdout
    refused = run("query", shop / "out", "SELECT COUNT(*) FROM users WHERE age > 'old'")
    assert refused.returncode == 2
    assert "has another type than the attribute" in refused.stderr
    assert run("query", shop / "nowhere", sql).returncode == 2
