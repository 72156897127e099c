"""Mistakes of a first afternoon: each message says what happened, what it cost (nothing) and what to do, and shows no data."""
# ruff: noqa: E501 - a mistake and its message read best on one line

import math
import os
import re
import shutil
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from command_line import run
from deniable.audit import Output, Target, audit, worst_ratio
from deniable.client import ToPLClient
from deniable.engines.spark import spark_session
from deniable.mechanisms import RandomizedResponse

SECRET = 73_313
SEEDED = dn.SeededSource(1)
USERS = dn.Table("users", age=dn.Ordinal(1, 95), marital=dn.Categorical("married", "single"), city=dn.Public())
ORDERS = dn.Table("orders", many=10, amount=dn.Ordinal(0, 500))
SHOP = dn.Collection(USERS, ORDERS, epsilon=2.0)
HIDDEN = dn.Collection(ORDERS, epsilon=2.0, ids="pseudonym")
EXACT = dn.Collection(USERS, epsilon=math.inf)
U = {"uid": [1, 2, 3], "age": [31, 40, 52], "marital": ["single"] * 3, "city": ["Rome"] * 3}
O = {"uid": [1, 1, 3], "amount": [5, 6, 7]}  # noqa: E741 - beside U
NOTHING = (
    r"[Nn]othing (of it |more )?was (drawn|spent|released|computed|read|written|predicted|done|taken|proposed|fitted)"
    r"|No randomness was drawn|Nothing was (sent|measured|published)"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with everything that can go wrong in files."""
    folder = tmp_path_factory.mktemp("mistakes")
    SHOP.perturb(users=U, orders=O, out=folder / "reports")
    SHOP.save(folder / "shop.toml")
    template = 'epsilon = 1.0\n[tables.users]\nattributes.age = {{ kind = "{kind}", {low} = 1, high = 95 }}\n'
    (folder / "malformed.toml").write_text("epsilon = 2.0\n[tables.users\n")
    (folder / "kind.toml").write_text(template.format(kind="integer", low="low"))
    (folder / "field.toml").write_text(template.format(kind="ordinal", low="min"))
    (folder / "without.toml").write_text(template.format(kind="ordinal", low="low").partition("\n")[2])
    (folder / "undecided.toml").write_text(template.format(kind="ordinal", low="low").replace("1.0", '"DECIDE"', 1))
    (folder / "broken.parquet").write_bytes(b"PAR1 and no more")
    pq.write_table(pa.table({"uid": [1], "years": [31]}), folder / "other.parquet")
    pq.write_table(pa.table(U), folder / "users.parquet")
    (folder / "stream.txt").write_text(f"1\n2\n{SECRET}x\n")
    (folder / "two.sql").write_text("SELECT COUNT(*) FROM users WHERE city = ';'; -- one;\nSELECT MAX(age) FROM users;")
    (folder / "open.sql").write_text("SELECT COUNT(*) FROM users WHERE city = 'Rome;")
    (folder / "none.sql").write_text("-- nothing yet;\n;")
    (folder / "empty").mkdir()
    (folder / "empty.csv").mkdir()
    shutil.copytree(folder / "reports", folder / "mixed")
    dn.Collection(USERS, ORDERS, epsilon=1.0).save(folder / "mixed" / "collection.json")
    shutil.copytree(folder / "reports", folder / "torn")
    next((folder / "torn" / "users").glob("*.parquet")).write_bytes(b"PAR1 and no more")
    table = pq.read_table(next((folder / "reports" / "users").glob("*.parquet")))
    changes = {
        "doubled": table.append_column("UID", table["uid"]),
        "long": table.set_column(5, "city", pa.array([f"{SECRET}" * 400] * table.num_rows)),
    }
    for name, changed in changes.items():
        shutil.copytree(folder / "reports", folder / name)
        pq.write_table(changed, next((folder / name / "users").glob("*.parquet")))
    shutil.copytree(folder / "reports", folder / "nested")
    (folder / "nested" / "users" / "deep").mkdir()
    return folder


@pytest.fixture(scope="module")
def db():
    return dn.connect(SHOP.perturb(users=U, orders=O))


def going_on_twice():
    publisher = tops()
    state = publisher.state()
    publisher.push(SECRET)
    dn.streams.restore(state)


def tops(values=(), **settings):
    made = dn.streams.ToPS(**{"epsilon": 1.0, "bound": 100, "warmup": 2, "horizon": 64, **settings})
    for value in values:
        made.push(value)
    return made


def check(mistake, happened, repair):
    """The three parts of a message, in their order."""
    with pytest.raises(dn.DeniableError, match=happened) as stopped:
        mistake()
    text = str(stopped.value)
    places = [re.search(part, text) for part in (happened, NOTHING, repair)]
    assert all(places), text
    assert places[0].start() <= places[1].start() < places[2].start(), text
    assert str(SECRET) not in text
    assert f"{SECRET:,}" not in text


PRODUCTS = dn.Table("products", owner="shop", key="pid", price=dn.Ordinal(0, 9))
BOUGHT = dn.Table("bought", pid=dn.Ordinal(1, 9))
MARKET = dn.Collection(BOUGHT, PRODUCTS, epsilon=2.0, owners={"shop": 1.0})


SPECIFICATIONS = [
    (lambda: dn.Collection(USERS, PRODUCTS, epsilon=1.0), "owners must give every owner", "Name shop with an ε each"),
    (lambda: dn.Collection(PRODUCTS, epsilon=1.0, owners={"shop": 1.0}), "nobody is left who answers", "Leave out one"),
    (lambda: dn.Table("a", owner="shop", b=dn.Ordinal(0, 1)), "an owner or a key, and not both", "Name both"),
    (lambda: dn.Table("a", 3, owner="shop", key="b", c=dn.Ordinal(0, 1)), "each id has one row", "Leave it out"),
    (lambda: dn.Table("a", owner="shop", key="b", b=dn.Ordinal(0, 1)), "an attribute too", "Leave the attribute out"),
    (
        lambda: MARKET.forecast("SELECT COUNT(*) FROM bought JOIN products USING (uid)", 100),
        "joined on 'pid'|joined on its 'pid'",
        r"Write JOIN products USING \(pid\)",
    ),
    (
        lambda: dn.connect(MARKET.perturb(bought={"uid": [1], "pid": [2]})).sql(
            "SELECT SUM(price) FROM bought JOIN products USING (pid)"
        ),
        "no reports of table 'products'",
        "Collect them first",
    ),
    (lambda: dn.Collection(USERS, epsilon=0), "epsilon must be a positive number", r"Use 0\.1 to 10"),
    (lambda: dn.Collection(USERS, epsilon="2"), "epsilon must be a positive number", r"Use 0\.1 to 10"),
    (
        lambda: dn.Collection(USERS, epsilon=1000.0),
        "epsilon above 700 protects nobody",
        r"Use 0\.1 to 10, or math\.inf in a simulation",
    ),
    (lambda: dn.Collection(epsilon=1.0), "tables must be one Table or more", r"Pass dn\.Table"),
    (
        lambda: dn.Collection({"age": dn.Ordinal(1, 95)}, epsilon=1.0),
        "tables must be one Table or more",
        r"Pass dn\.Table",
    ),
    (lambda: dn.Collection(USERS, USERS, epsilon=1.0), "table 'users' is named twice", "Rename one of the two"),
    (lambda: dn.Collection(USERS, epsilon=1.0, design="best"), "design is unknown", "Use one of .*hio"),
    (
        lambda: dn.fit(USERS, epsilon=1.0, users=10, design="hio"),
        "design is not a setting of fit",
        "Use coins, fanout, name, oracle, shares; the design is always a grid",
    ),
    (
        lambda: dn.fit(USERS, epsilon=1.0, users=10, others=0.5),
        "others must be a number from 1 to 10: by what factor errors of the workload may rise",
        r"Use 1\.25",
    ),
    (lambda: dn.fit(5, epsilon=1.0, users=10), "tables must be one Table or more", "Pass dn.Table"),
    (
        lambda: dn.Collection.from_dict({"epsilon": 1.0, "tables": {"users": {"attributes": [{"kind": "public"}]}}}),
        "attribute has no name",
        "Give it one",
    ),
    (lambda: SHOP.save("shop.yaml"), r"'shop\.yaml' ends neither in \.toml nor in \.json", "Name it by its format"),
    (lambda: dn.SeededSource("one"), "seed must be an integer", "Use SeededSource"),
    (lambda: dn.Ordinal(95, 1), "low is above high", "Swap them"),
    (lambda: dn.Ordinal("young", "old"), "low must be a number, a date or a time", "For texts use Categorical"),
    (lambda: dn.Ordinal(0, 9.99), "high is not a whole number of steps above low", r"Give the step .* 0\.01"),
    (lambda: dn.Categorical("yes"), "values must be at least two", "leave it out"),
    (lambda: dn.Categorical("yes", 1), "values must be all texts, all integers or all truth values", "Use one type"),
    (lambda: dn.Categorical("a", "a"), "values list something twice", "Name every value once"),
    (lambda: dn.Text(max_length=0), "max_length must be 1 to 64 bytes", "Use 16"),
    (lambda: dn.Text(8, alphabet="é"), "alphabet must be a text of printable ASCII characters", "leave it out"),
    (lambda: dn.Text(8, alphabet="aa"), "alphabet must list at least two characters", "leave it out"),
    (lambda: dn.Table("t", w=dn.Text(8), age=dn.Ordinal(0, 9)), "levels would multiply", "a table of its own"),
    (lambda: dn.Table("t", many=3, w=dn.Text(8)), "each user reports one word", "choose a word on the device"),
    (
        lambda: dn.Collection(dn.Table("t", w=dn.Text(8)), epsilon=1.0, design="grid"),
        "views are prefixes and no cells of a grid",
        "Use another design",
    ),
    (
        lambda: dn.Collection(dn.Table("t", w=dn.Text(8)), epsilon=1.0, name="t", rounds=dn.Rounds(3)),
        "table 't' has a text",
        "collect the text without rounds",
    ),
    (
        lambda: dn.Table("users", age=int),
        "attribute 'age' is not an attribute",
        "Use Ordinal, Categorical, Text or Public",
    ),
    (
        lambda: dn.Table("users", city=dn.Public()),
        "table 'users' collects nothing private",
        "Add an Ordinal, Categorical or Text",
    ),
    (lambda: dn.Table("users", uid=dn.Ordinal(1, 9)), "attribute 'uid' is the column of user ids", "Rename it"),
    (
        lambda: dn.Collection(USERS, epsilon=1.0, ids="pseudonym"),
        "ids are pseudonyms, and public columns may tell whose they are",
        "Make these columns private",
    ),
    (
        lambda: dn.Collection(ORDERS, epsilon=1.0, ids="pseudonym", coins="assigned"),
        "would choose its coins with it",
        'Use coins="drawn"',
    ),
    (lambda: HIDDEN.client(user="7"), "user is given, and devices draw their own names here", "Leave it out"),
    (lambda: HIDDEN.client().bundle(), "table 'orders' has not reported yet", "A bundle holds all tables"),
    (lambda: SHOP.client().bundle(), "bundles are for pseudonyms", "Send the reports"),
    (lambda: dn.Table("my users", age=dn.Ordinal(1, 9)), "name 'my users' must be letters, digits and _", "Rename it"),
    (
        lambda: dn.Table("orders", many="10", amount=dn.Ordinal(0, 5)),
        "many must be 1 to 32768",
        "Name the most rows of a user",
    ),
    (lambda: dn.Table("orders", many=2, tau=3, amount=dn.Ordinal(0, 5)), "tau must be 1 to many", "Lower tau"),
    (
        lambda: SHOP.forecast("SELECT COUNT(*) FROM users", users=0),
        "users must be a whole number",
        "Say how many people",
    ),
]


@pytest.mark.parametrize(("mistake", "happened", "repair"), SPECIFICATIONS)
def test_mistakes_in_a_specification(mistake, happened, repair):
    check(mistake, happened, repair)


@pytest.mark.parametrize(
    ("name", "happened", "repair"),
    [
        ("nowhere.toml", r"file 'nowhere\.toml' cannot be read \(no such file", "Check the path"),
        ("malformed.toml", r"is not well-formed: .*line 2", "Correct it there"),
        ("without.toml", "epsilon is missing", "Say how much all of a user's reports may spend"),
        ("undecided.toml", "epsilon is still to be decided", "Replace every DECIDE"),
        ("kind.toml", "attribute 'age': kind is unknown", 'Use "ordinal", "dates", "categorical", "text" or "public"'),
        (
            "field.toml",
            "attribute 'age': min is not a field of ordinal attributes",
            "Its fields: high, low, missing, outside, round, step",
        ),
    ],
)
def test_mistakes_in_a_specification_file(folder, name, happened, repair):
    check(lambda: dn.Collection.load(folder / name), happened, repair)


DATA = [
    (
        lambda _: SHOP.client().report("user", {"age": 31}),
        "table 'user' is not in this collection",
        "It has users, orders",
    ),
    (
        lambda _: SHOP.client().report("users", [SECRET]),
        "a row of table 'users' is not a mapping",
        "Give age, marital by name",
    ),
    (
        lambda _: SHOP.client().report("users", {"age": 31, "marital": "single", "hair": SECRET}),
        "has an unknown attribute",
        "It has age, marital, city",
    ),
    (lambda _: SHOP.client().reports("users", []), "table 'users' takes exactly one row per user", "Pass that row"),
    (
        lambda _: [dn.SecureSource(bytes(31) + b"m").stream("a").words(1) for _ in range(2)],
        "these random bits were drawn before in this process",
        "Use another stream name, or a new SecureSource",
    ),
    (
        lambda _: [tops(key=bytes(31) + b"m") for _ in range(2)],
        "another publisher was made in this process with the same key and settings",
        "Leave key= out, give another name=, or go on from its state",
    ),
    (lambda _: SHOP.perturb(), "tables are missing", "Pass the rows of one table at least"),
    (lambda _: SHOP.perturb(user=U), "table 'user' is not in this collection", "It has users, orders"),
    (
        lambda _: SHOP.perturb(users={"years": [SECRET], **{name: U[name][:1] for name in ("uid", "marital", "city")}}),
        "table 'users' lacks the column 'age'",
        "Rename it, or change the specification",
    ),
    (lambda _: SHOP.perturb(users=U, key="id"), "lacks the column 'id' of user ids", r"Name it with key="),
    (
        lambda _: SHOP.perturb(users={**U, "age": [str(SECRET), "x", "y"]}),
        "column 'age' of table 'users' is of type string",
        "Convert the column",
    ),
    (lambda _: SHOP.perturb(users={**U, "uid": [1.5, 2.5, 3.5]}), "user ids must be integers or texts", "Convert them"),
    (
        lambda _: SHOP.perturb(users=U, orders={"uid": ["a"], "amount": [SECRET]}),
        "integers in one table and texts in another",
        "Use one type for all",
    ),
    (
        lambda _: SHOP.perturb(users=[SECRET]),
        "table 'users' cannot be read",
        "Pass a frame, a dictionary of columns, or the path",
    ),
    (
        lambda folder: SHOP.perturb(users=folder / "no.csv"),
        r"there is no file 'no\.csv'",
        "Pass a frame, a dictionary of columns, or the path",
    ),
    (
        lambda folder: SHOP.perturb(users=folder / "broken.parquet"),
        r"'broken\.parquet' is not a Parquet file",
        "Pass a frame, a dictionary of columns, or the path",
    ),
    (
        lambda _: SHOP.perturb(orders=O),
        "everyone is missing: users without rows must send reports too",
        "Pass the ids of all users",
    ),
    (
        lambda folder: SHOP.perturb(users=U, orders=O, out=folder / "reports"),
        "holds reports of table 'users' already; new ones would spend ε again",
        "choose another folder",
    ),
    (
        lambda _: SHOP.perturb(users=U, source=dn.SeededSource(1)),
        "a SeededSource can be repeated",
        "Leave `source` out for a release",
    ),
    (lambda _: SHOP.perturb(users=U, source=1), "source must be a source of this package", "Leave it out"),
    (
        lambda _: RandomizedResponse(1.0, 4).perturb_one(SECRET),
        r"the value must lie in the public domain 0\.\.3",
        "Clip or re-code it",
    ),
    (
        lambda _: RandomizedResponse(1.0, 4).perturb(np.array([0.5, SECRET])),
        "values must have an integer type",
        "Convert them",
    ),
    (
        lambda _: ToPLClient(epsilon=1.0, bound=500).report(SECRET, theta=0),
        "theta must lie above 0",
        "Announce another",
    ),
    (
        lambda folder: SHOP.client(folder / "nowhere" / "memory.json").report(
            "users", {"age": SECRET, "marital": "single"}
        ),
        r"the memory 'memory\.json' cannot be written \(no such file",
        "Check that its folder exists",
    ),
    (
        lambda folder: ToPLClient(1.0, 500, folder / "nowhere" / "memory.json").report(SECRET),
        r"the memory 'memory\.json' cannot be written",
        "Check that its folder exists",
    ),
    (
        lambda _: SHOP.save("no/such/folder/shop.toml"),
        r"file 'shop\.toml' cannot be written",
        "Check that its folder exists",
    ),
    (lambda _: SHOP.gather("a line"), "lines are a single text", "Pass a list of lines"),
    (
        lambda _: EXACT.client().report("users", {"age": 31}),
        "ε = inf lets the data out as they are",
        "pass simulation=True",
    ),
    (lambda _: EXACT.perturb(users=U), "ε = inf lets the data out as they are", "Use an ε of at most 64"),
    (lambda _: ToPLClient(100.0, 500), "ε = 100 lets the data out as they are", "Use an ε of at most 64"),
    (
        lambda _: audit(Target("mine", 1.0, lambda worlds, source: worlds), 1_000, SEEDED),
        "a draw did not give columns with one entry per run",
        "Return Output",
    ),
    (
        lambda _: audit(Target("mine", 1.0, lambda worlds, source: Output({"y": np.zeros(3)})), 1_000, SEEDED),
        "a draw did not give columns with one entry per run",
        "Return Output",
    ),
    (lambda _: worst_ratio([([1], [0.5, 0.5])]), "laws must be pairs", "Give one pair at least"),
]


@pytest.mark.parametrize(("mistake", "happened", "repair"), DATA)
def test_mistakes_with_data(folder, mistake, happened, repair):
    check(lambda: mistake(folder), happened, repair)


def test_a_value_outside_its_domain_is_counted_and_not_shown():
    check(
        lambda: SHOP.perturb(users={**U, "age": [31, SECRET, 52]}),
        "33.3 % of the rows of table 'users' would be rejected",
        'age: outside = "clip"',
    )
    reports = SHOP.perturb(users={**U, "age": [31, SECRET, 52]}, max_rejected=1.0)
    assert dict(reports.summaries["users"].rejected) == {"outside the domain": 1}
    client = SHOP.client()
    client.report("users", {"age": SECRET, "marital": "single"})
    assert dict(client.rejected) == {"outside the domain": 1}


REPORTS = [
    ("nowhere", "there is no folder 'nowhere'", "Pass a folder of reports"),
    ("doubled", "reports of table 'users' have the column 'uid' twice", "Keep one of them"),
    ("nested", "'deep' is a folder in the reports of table 'users'", "Remove it"),
    ("long", "has ids or public texts of more than 1,000 bytes", "Shorten them"),
    ("empty", r"'empty' holds no collection\.json", "Pass a folder of reports"),
    (
        "torn",
        r"file 'part-0\.parquet' of 'users' is damaged",
        "Restore it from a copy: collecting again would spend ε again",
    ),
    (
        "mixed",
        "all reports of table 'users' were refused: made under another specification",
        r"Open them with the collection\.json",
    ),
]


@pytest.mark.parametrize(("name", "happened", "repair"), REPORTS)
def test_mistakes_with_reports(folder, name, happened, repair):
    check(lambda: dn.connect(folder / name).sql("SELECT COUNT(*) FROM users WHERE age < 30"), happened, repair)


def test_something_else_than_reports():
    check(lambda: dn.connect(pa.table(U)), "reports are not a folder of reports", r"what Collection\.perturb gave")
    check(lambda: dn.connect({"users": U}), "reports by table are for Spark", "or a folder of reports")


SQL = [
    (
        "SELECT COUNT(*) FROM users WHERE agee < 30",
        "there is no attribute 'agee' .at character 34",
        "tables in FROM have age, marital, city",
    ),
    ("SELECT COUNT(*) FROM user", "there is no table 'user'", "There are users, orders"),
    ("SELECT * FROM users", "rows of single people cannot be shown, only aggregates", "Ask for numbers in groups"),
    ("SELECT age FROM users", "rows of single people cannot be shown", "Ask for numbers in groups"),
    ("SELECT MAX(age) FROM users", "MAX is one person's value", "Use QUANTILE_CONT"),
    ("SELECT COUNT(DISTINCT marital) FROM users", r"COUNT\(DISTINCT …\) is not possible", r"Count rows: COUNT\(\*\)"),
    (
        "SELECT COUNT(*) FROM (SELECT * FROM users LIMIT 10)",
        "rows of a derived table cannot be chosen",
        "Leave out DISTINCT and LIMIT",
    ),
    (
        "SELECT COUNT(*) FROM users LEFT JOIN orders USING (uid)",
        "rows without one in 'orders' would count",
        r"Ask about columns of orders",
    ),
    (
        "SELECT COUNT(*) FROM users JOIN orders ON age = amount",
        "joined on the user id only",
        r"Write JOIN … USING \(uid\)",
    ),
    (
        "SELECT COUNT(*) FROM users WHERE uid = 7",
        "users cannot be distinguished by their id",
        r"JOIN … USING \(uid\) only",
    ),
    ("SELECT COUNT(*) FROM users WHERE marital = 3", "has another type than the attribute", "It has married, single"),
    ("SELECT COUNT(*) FROM users WHERE age < CURRENT_DATE", "the day it is asked on", "Write the date"),
    (
        "SELECT COUNT(*) FROM users WHERE age < 'thirty'",
        "has another type than the attribute",
        "Compare like with like",
    ),
    (
        'SELECT COUNT(*) FROM users WHERE marital = "single"',
        "there is no attribute 'single'",
        "Write texts in single quotes: 'single'",
    ),
    ("SELECT SUM(marital) FROM users", "'marital' is not a number", "Sum attributes of numbers"),
    ("SELECT COUNT(*) FROM users WHERE marital GLOB 's*'", "GLOB is not known here", "Use LIKE"),
    ("SELEC COUNT(*) FROM users", "the text is not SQL .at character 1", "Correct the text there"),
    (
        "SELECT COUNT(*) AS n, SUM(age) AS n_stderr FROM users",
        "'n_stderr' is also the name of a column with the error of another answer",
        "Give it another name with AS",
    ),
    ("SELECT select, COUNT(*) FROM users", "the text is not SQL .at character 8", "in double quotes"),
    ("SELECT COUNT(*) FROM users WHERE CAST(marital AS INT) = 1", "cannot be calculated for every value", "TRY_CAST"),
    ("INSERT INTO users VALUES (1)", "one SELECT is expected", r"Write SELECT COUNT\(\*\)"),
    ("SELECT marital, COUNT(*) FROM users", "neither an aggregate nor in GROUP BY", "Add it to GROUP BY"),
    ("SELECT COUNT(*) OVER () FROM users", "of windows there are SUM, AVG, LAG", "Write SUM"),
    ("SELECT COUNT(*) > 9 FROM users", "a comparison of answers would be decided by noise", "look at their intervals"),
    ("SELECT LOG(1, COUNT(*)) FROM users", "the base of a logarithm is a number above 1", "Write LOG10"),
    (
        "SELECT MAX(marital) FROM (SELECT marital, COUNT(*) AS n FROM users GROUP BY 1) AS t",
        "'marital' is not an answer of the derived table",
        "Name a COUNT",
    ),
    (
        "SELECT age, SUM(COUNT(*)) OVER (ORDER BY age RANGE 2 PRECEDING) FROM users GROUP BY age",
        "frames of windows are counted in rows",
        "Write ROWS BETWEEN",
    ),
    ("", "there is no text", "Write SELECT"),
]


@pytest.mark.parametrize(("sql", "happened", "repair"), SQL)
def test_mistakes_in_sql(db, sql, happened, repair):
    check(lambda: db.sql(sql), happened, repair)


def test_mistakes_beside_sql(db):
    check(
        lambda: db.sql("SELECT COUNT(*) FROM users", confidence=95), "confidence must lie between 0 and 1", r"Use 0\.95"
    )
    check(lambda: db.sql("SELECT COUNT(*) FROM users", weights="best"), "weights are unknown", "Use greedy, optimal")
    check(
        lambda: db.sql("SELECT marital, COUNT(*) FROM users GROUP BY marital").scalar(),
        "several numbers",
        r"Read \.answers",
    )


def test_too_few_users_for_an_average_are_told_so():
    frame = {"uid": range(100), "age": [31] * 100, "marital": ["single"] * 100, "city": ["Rome"] * 100}
    reports = SHOP.perturb(users=frame, orders=O, source=dn.SeededSource(1), simulation=True)
    result = dn.connect(reports).sql("SELECT AVG(amount) AS a FROM orders JOIN users USING (uid) WHERE age < 20")
    assert "unclear" in str(result)
    assert result.notes == ("unclear: too few people, or too much noise, to divide by their number",)
    assert math.isnan(result.scalar().value)


STREAMS = [
    (lambda _: tops(warmup="2"), "warmup must be a Python integer", "Change that setting"),
    (lambda _: dn.streams.PersonStream(1.0, 9, most=0), "most must be a Python integer", "Change that setting"),
    (
        lambda _: dn.streams.PersonStream(1.0, 9, most=2, method=dn.streams.PAK),
        "has a δ, which grows faster",
        "Use one without",
    ),
    (
        lambda _: dn.streams.PersonStream(100.0, 9, most=2),
        "ε = 100 lets the data out as they are",
        "Use an ε of at most 64",
    ),
    (
        lambda _: dn.streams.PersonStream(1.0, 9, most=2).push_many([1, 2]),
        "an event needs the id of its person",
        "Give persons=",
    ),
    (
        lambda _: dn.streams.PersonStream(1.0, 9, most=2).push_many([1, 2], [1]),
        "one person for every value",
        "Give None where",
    ),
    (lambda _: dn.streams.PersonStream(1.0, 9, most=2).begin_epoch(), "has a fixed number of events", "Use epoch=0"),
    (lambda _: dn.streams.person_forecast(1.0, 1024, {}), "shares of persons by number of events", r"Use \{1: 0.8"),
    (lambda _: dn.streams.ToPLServer(1.0, 9).push("text"), "a report must be a StreamReport", "Pass what ToPLClient"),
    (lambda _: tops(epsilon=0), "epsilon must be a positive number", r"Use 0\.1 to 10"),
    (lambda _: tops(bound=0), "bound must be above low", "Give the public range"),
    (lambda _: tops(warmup=0), "warmup is 0, so there is nothing to learn from", "Give PublicThreshold"),
    (lambda _: tops(source=dn.SeededSource(1)), "a SeededSource can be repeated", "Leave `source` out"),
    (lambda _: tops([str(SECRET)]), "the value must be a number", "Convert or leave it out"),
    (lambda _: tops().push_many([1.0, math.nan]), "values contain NaN or infinity", "Replace or remove"),
    (lambda _: tops([-SECRET]), "values must not be below the public lower bound 0", "Give a lower `low`"),
    (lambda _: tops([1]).released, "nothing is published during the warm-up", "Push 1 more values first"),
    (
        lambda _: tops([1] * 10).released.sum(0, 500),
        "a window does not lie within the 8 published values",
        "Use 0 ≤ start ≤ stop",
    ),
    (
        lambda _: tops([1] * 10).released.mean(3, 3),
        "a window is empty, so it has no mean",
        "Ask for at least one value",
    ),
    (lambda _: tops([1] * 10).released.sum(0.5, 3), "windows must be pairs of whole positions", "Use integers"),
    (
        lambda _: tops([1] * 10).released.between("2024-01-01", "2024-02-01"),
        "this stream has no timestamps",
        "publish it with timestamps",
    ),
    (
        lambda folder: dn.streams.Released.load(folder / "no.parquet"),
        "there is no file",
        "Give the path of a released stream",
    ),
    (
        lambda folder: dn.streams.Released.load(folder / "other.parquet"),
        "not a released stream: its metadata are missing",
        "Use a file of stream publish",
    ),
    (
        lambda folder: dn.streams.Released.load(folder / "broken.parquet"),
        "is not a Parquet file",
        "Give a file of `deniable stream publish`",
    ),
    (
        lambda _: dn.streams.ToPLServer.restore(tops().state()),
        "state is not that of a ToPLServer",
        r"Use dn\.streams\.restore for publishers",
    ),
    (
        lambda _: dn.streams.restore({**tops().state(), "block": SECRET}),
        r"the state is damaged\. Nothing was read from it or published",
        "Use a whole copy",
    ),
    (lambda _: going_on_twice(), "this stream was continued from here already", "Go on from the newest state"),
]


@pytest.mark.parametrize(("mistake", "happened", "repair"), STREAMS)
def test_mistakes_with_streams(folder, mistake, happened, repair):
    check(lambda: mistake(folder), happened, repair)


COMMANDS = [
    ("query nowhere SELECT", "there is no folder 'nowhere'", "Pass a folder of reports"),
    ("query reports", "the SQL is missing or given twice", "Give it as an argument"),
    ("query reports SELECT --plot out.gif", r"the name of a plot must end in \.png", r"Name it out\.png"),
    ("query reports SELECT --engine hadoop", "the engine is unknown", "Write --engine duckdb"),
    ("query reports SELECT --json --csv", "--json and --csv exclude each other", "Choose one"),
    ("perturb shop.toml users.csv -o out", r"'users\.csv' is not TABLE=FILE", r"Write users=users\.csv"),
    ("perturb shop.toml users=no.csv -o out", r"there is no file 'no\.csv'", "Pass a Parquet or CSV file"),
    ("perturb no.toml users=no.csv -o out", r"file 'no\.toml' cannot be read", "Check the path"),
    ("check undecided.toml", "epsilon is still to be decided", "Replace every DECIDE"),
    ("init --from no.csv", r"there is no file 'no\.csv'", "Pass a Parquet or CSV file"),
    ("init --from empty.csv", r"'empty\.csv' is a folder", "Pass a Parquet or CSV file"),
    (
        "perturb shop.toml users=users.parquet -o out --spill nowhere",
        "spill must be a folder that exists",
        "Make it first",
    ),
    ("forecast shop.toml SELECT", "neither --users nor --error is given", "Say how many people will report"),
    (
        "stream publish --epsilon 1 --bound 10 --warmup 1 stream.txt -o out0.parquet",
        "line 3 cannot be read",
        "Repair it, and go on with it in a new stream",
    ),
    (
        "stream publish --epsilon 1 --bound 10 no.csv -o out1.parquet",
        r"there is no file 'no\.csv'",
        "Give a Parquet, CSV or JSON-lines file",
    ),
    (
        "stream publish --epsilon 1 --bound 10 other.parquet -o out2.parquet",
        "column value is not in the file",
        "Name it with --column",
    ),
    (
        "stream publish --epsilon 1 --bound 10 --drift 2 stream.txt -o out3.parquet",
        "drift must be a share of θ, from 0 to 1",
        r"Use 0\.05 for a stream that drifts",
    ),
    (
        "stream publish --epsilon 1 --bound 10 --drift 0.1 --method pak stream.txt -o out4.parquet",
        "--drift is a setting of ToPS",
        "Leave out --method",
    ),
    ("stream query other.parquet 0:5", "not a released stream", "Use a file of stream publish"),
    (
        "stream collect --epsilon 1 --bound 10 reports.jsonl -o other.parquet",
        "'other.parquet' exists already",
        "Name another file",
    ),
    (
        "stream collect --epsilon 1 --bound 10 --announce stream.txt reports.jsonl",
        r"'stream\.txt' exists already: devices may have read another threshold",
        "Remove it",
    ),
    ("stream publish --epsilon inf --bound 9 stream.txt", "ε = inf lets the data out as they are", "--simulation"),
    ("stream publish --epsilon 1 --bound inf stream.txt", "bound must be a finite number", "Give the public range"),
    ("stream publish --epsilon 1 --bound 9 --theta 20 stream.txt", "--theta must lie above 0", "Give another"),
    ("stream publish --epsilon 1 --bound 9 --theta 1 --low 2 stream.txt", "--theta must lie above 2", "Give another"),
    (
        "stream publish --epsilon 1 --bound 9 stream.txt -o other.parquet",
        "'other.parquet' exists already",
        "Name another file",
    ),
    (
        "stream publish --epsilon 1 --bound 9 stream.txt -o nowhere/out.parquet",
        "--output is in a folder that does not exist",
        "Make the folder first",
    ),
    (
        "stream publish --epsilon 1 --bound 9 stream.txt --skip-published",
        "--skip-published needs a store",
        "Give --store",
    ),
    (
        "stream publish --epsilon 1 --bound 9 stream.txt --store here -o out.parquet",
        "--output and --store exclude each other",
        "A store is read as it is",
    ),
    (
        "stream publish --epsilon 1 stream.txt",
        "--bound is missing, and there is no store to go on with",
        "Give it",
    ),
    ("stream publish --epsilon 1 --bound 9 stream.txt --key region", "--key needs a store", "Give --store"),
    (
        "stream publish --epsilon 1 --bound 9 stream.txt --key region --store keyed",
        "--key shows everybody which keys there are and how many values each has",
        "Add --public-keys if that is public",
    ),
    ("stream doctor nowhere", "is not well", "Restore what is damaged"),
    ("stream follow nowhere", "is not a store of a stream", "Give the folder of stream publish --store"),
    ("stream forecast --epsilon 0 --bound 9", "epsilon must be a positive number", r"Use 0\.1 to 10"),
    ("stream forecast --epsilon 1 --bound 0", "--bound must be a number above 0", "Give the largest value"),
    ("stream forecast --epsilon 1 --bound 9 --theta 0", "--theta must lie above 0", "Give another"),
    ("stream report --epsilon 1 --bound 9 other.parquet", "column value is not in the file", "Name it with --column"),
    ("compare shop.toml two.sql --users 9", "question 2: MAX is one person's value", "Use QUANTILE_CONT"),
    ("fit shop.toml open.sql --users 9", "question 1: a quotation or comment is not closed", "Close it"),
    ("compare shop.toml none.sql --users 9", "there is no question", "Write SELECTs separated by ;"),
    ("fit shop.toml --users 9 -o nowhere/f.toml", r"the folder of 'f\.toml' does not exist", "Make it first"),
    ("init --from other.parquet --key id", "the file has no column 'id' of user ids", "Name it with --key"),
    ("query reports/users SELECT", r"'users' holds no collection\.json", "Pass a folder of reports"),
]


@pytest.mark.parametrize(("command", "happened", "repair"), COMMANDS)
def test_mistakes_on_the_command_line(folder, command, happened, repair, monkeypatch):
    monkeypatch.chdir(folder)
    done = run(*command.split())
    assert done.returncode == 2
    said = done.stderr
    check(lambda: (_ for _ in ()).throw(dn.DeniableError(said.partition("Error: ")[2])), happened, repair)
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("command", "happened"),
    [
        ("querry", "No such command 'querry'"),
        ("check", "Missing argument 'SPECIFICATION'"),
        ("check shop.toml --view", "Did you mean"),
        ("check .", "is a directory"),
        ("query shop.toml SELECT", "is a file"),
        ("query reports SELECT --confidence 95%", "not a valid float"),
        ("forecast shop.toml SELECT --users many", "not a whole number. Write 1000000 or 1e6"),
        ("forecast shop.toml SELECT --users 1.5", "not a whole number"),
        ("stream forecast --epsilon 1 --bound 9 --block 0", "0 is not in the range"),
        ("stream publish --epsilon 1", "Missing argument 'INPUT'"),
    ],
)
def test_mistakes_in_how_a_command_is_called(folder, command, happened, monkeypatch):
    monkeypatch.chdir(folder)
    done = run(*command.split())
    assert done.returncode == 2
    assert happened in done.stderr
    assert done.stderr.endswith("Nothing was done.\n")


def test_a_folder_that_cannot_be_written_is_named(folder, monkeypatch):
    monkeypatch.chdir(folder)
    done = run("perturb", "shop.toml", "users=users.parquet", "-o", "/proc/nowhere/reports")
    assert done.returncode == 1
    check(
        lambda: (_ for _ in ()).throw(dn.DeniableError(done.stderr)),
        "the folder 'reports' cannot be written",
        "Check that its folder exists",
    )


def test_numbers_are_taken_as_people_write_them(folder, monkeypatch):
    monkeypatch.chdir(folder)
    asked = ["forecast", "shop.toml", "SELECT COUNT(*) FROM users WHERE age < 30", "--users"]
    assert len({run(*asked, number).stdout for number in ("1000000", "1e6", "1,000,000", "1_000_000")}) == 1


def test_java_is_missing(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(spark_session, "_JAVA_HOMES", ())
    check(
        spark_session.require_java,
        "Java was not found; Spark 4 needs Java 17 or newer",
        "Run: apt-get install openjdk-17",
    )
    assert "JAVA_HOME" not in os.environ


@pytest.mark.parametrize(
    ("package", "extra", "mistake"),
    [
        ("pyspark", "spark", spark_session.require_pyspark),
        (
            "matplotlib",
            "plot",
            lambda: run_command("query", "reports", "SELECT COUNT(*) FROM users", "--plot", "a.png"),
        ),
        ("uvicorn", "serve", lambda: run_command("serve", "collected")),
        ("starlette", "serve", lambda: run_command("serve", "--init", "shop.toml", "collected")),
        ("httptools", "serve", lambda: run_command("demo", "--serve")),
    ],
)
def test_an_extra_is_missing(monkeypatch, package, extra, mistake):
    for name in [module for module in sys.modules if module.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    check(
        mistake,
        f"this needs the package '{package}', which is not installed",
        rf"Run: pip install 'deniable\[{extra}\]'",
    )


def run_command(*arguments):
    from deniable.cli.main import cli

    cli.main(arguments, standalone_mode=False)


def test_there_are_a_hundred():
    assert sum(map(len, (SPECIFICATIONS, DATA, REPORTS, SQL, STREAMS, COMMANDS))) >= 100
