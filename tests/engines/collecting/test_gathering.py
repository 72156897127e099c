"""What arrives: twice, changed, with ids of two types, with doubled keys, with attributes named as columns are."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import deniable as dn
from command_line import run
from deniable.client import Report, StreamReport, ToPLClient
from deniable.engines.collecting.gathering import ANOTHER
from deniable.engines.collecting.sent_lines import LONGEST_LINE
from deniable.errors import BadInput, InvalidData, InvalidParameter
from deniable.strict_json import read_json

USERS = dn.Table("users", age=dn.Ordinal(1, 95), city=dn.Public())
ORDERS = dn.Table("orders", many=3, tau=2, amount=dn.Ordinal(0, 500))
SHOP = dn.Collection(USERS, ORDERS, epsilon=3.0)


def sent_by(uid, collection=SHOP, **public):
    client = collection.client()
    lines = [client.report("users", {"age": 31}).to_json(uid, "users", public or {"city": "Rome"})]
    return lines + [report.to_json(uid, "orders") for report in client.reports("orders", [])]


STORE = dn.Collection(
    dn.Table("users", age=dn.Ordinal(1, 95), marital=dn.Categorical("married", "single"), city=dn.Public()),
    dn.Table("orders", many=10, tau=3, amount=dn.Ordinal(0, 500), kind=dn.Categorical("a", "b", "c")),
    epsilon=2.0,
    design="ahio",
)
ROW = {"age": 31, "marital": "single"}


def rows(reports):
    return {name: reports[name].to_pylist() for name in reports.tables}


def test_what_arrives_several_times_counts_once_and_is_no_fault():
    lines = [line for user in range(5) for line in sent_by(user)]
    once, often = SHOP.gather(lines), SHOP.gather([*lines, *reversed(lines), *lines[:4]])
    assert rows(often) == rows(once)
    assert often.summaries["users"].rejected == often.summaries["orders"].rejected == {}
    assert (often.summaries["users"].rows, often.summaries["users"].reports) == (12, 5)
    database = dn.connect(often)
    assert {name: store.rows for name, store in database.stores.items()} == {"users": 5, "orders": 10}


def test_of_different_reports_for_one_slot_the_first_counts():
    first, second = sent_by(7), sent_by(7)
    reports = SHOP.gather([*first, *second, *first])
    assert rows(reports) == rows(SHOP.gather(first))
    differing = sum(before != after for before, after in zip(first[1:], second[1:], strict=True))
    assert reports.summaries["orders"].rejected == ({ANOTHER: differing} if differing else {})
    moved = Report.from_json(first[0])[2].to_json(7, "users", {"city": "Oslo"})
    assert SHOP.gather([first[0], moved]).summaries["users"].rejected == {ANOTHER: 1}


def test_ids_are_compared_as_texts():
    numbers, texts = sent_by(7), [line.replace('"uid":7', '"uid":"7"') for line in sent_by(7)]
    both = SHOP.gather([*numbers, texts[0]])
    assert both["users"]["uid"].to_pylist() == [7]
    mixed = SHOP.gather([*sent_by(10), *sent_by(9), *sent_by("ann"), *sent_by("007"), *sent_by(7)])
    assert mixed["users"]["uid"].to_pylist() == ["007", "10", "7", "9", "ann"]
    assert mixed["orders"].schema.field("uid").type == pa.string()
    more = [line for user in range(100, 140) for line in sent_by(user)]  # so many do not all answer alike
    answer = dn.connect(SHOP.gather([*more, *sent_by("ann")])).sql("SELECT COUNT(*) FROM orders JOIN users USING (uid)")
    assert answer.scalar().stderr > 0
    # One table alone says how ids are written for both: they are joined.
    alone = SHOP.gather([sent_by(1)[0], *sent_by("ann")[1:]])
    assert {alone[name].schema.field("uid").type for name in alone.tables} == {pa.string()}
    assert SHOP.gather(sent_by(-(2**63)))["users"]["uid"].to_pylist() == [-(2**63)]


def test_ids_of_streams_are_compared_as_texts():
    server = dn.streams.ToPLServer(1.0, 500, theta=40.0)
    report = ToPLClient(1.0, 500).report(7, 40.0)
    assert server.push(report, uid=7) is not None
    assert server.push(report, uid="7") is None
    assert server.push(report, uid="007") is not None
    column = pa.array([report.to_bytes()] * 5, pa.binary(16))
    server.push_many(pa.table({"uid": ["7", "8", "ann", "8", "-3"], "report": column}))
    server.push_many(pa.table({"uid": [8, -3, 9, 9, 10], "report": column}))
    assert (server.published, server.refused) == (7, {"of a user who has answered": 6})


def test_blank_lines_are_none_and_long_ones_are_not_read():
    reports = SHOP.gather(["", "\n", *sent_by(1), "  ", " " * LONGEST_LINE + sent_by(2)[0]])
    assert reports.summaries["(none)"].rejected == {"malformed": 1}


# JSON ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1, "a": 600}', "'a' occurs twice"),
        ('{"b": [{"a": 1, "c": 2, "a": 1}]}', "'a' occurs twice"),
        ('{"a": 1, "\\u0061": 2}', "'a' occurs twice"),
        (json.dumps({"k" * 10**6: 1})[:-1] + "," + json.dumps({"k" * 10**6: 1})[1:], "'k{40}' occurs twice"),
        ("[NaN]", "NaN is not"),
        ("-Infinity", "-Infinity is not"),
        ("[" * 100_000, "nested too deeply"),
        ("1" * 5000, "too many digits"),
        ("{half", "Expecting"),
        (b"\xff\xfe\x00", "decode"),
    ],
)
def test_json_means_one_thing_or_nothing(text, problem):
    with pytest.raises(ValueError, match=problem) as caught:
        read_json(text)
    assert len(str(caught.value)) < 200


def test_a_key_that_stands_twice_is_refused_wherever_json_is_read(tmp_path):
    twice = SHOP.to_json().replace('"epsilon":3.0', '"epsilon":3.0,"epsilon":600')
    (tmp_path / "shop.json").write_text(twice)
    with pytest.raises(InvalidParameter, match="'epsilon' occurs twice"):
        dn.Collection.load(tmp_path / "shop.json")
    SHOP.gather(sent_by(1)).save(tmp_path / "reports")
    (tmp_path / "reports" / "collection.json").write_text(twice)
    with pytest.raises(InvalidParameter, match="'epsilon' occurs twice"):
        dn.connect(tmp_path / "reports")
    for text in sent_by(1):
        doubled = text[:-1] + ',"uid":2}'
        with pytest.raises(InvalidData, match="JSON form"):
            Report.from_json(doubled)
        assert SHOP.gather([doubled]).summaries["(none)"].rejected == {"malformed": 1}
    with pytest.raises(InvalidData, match="JSON form"):
        StreamReport.from_json(ToPLClient(1.0, 500).report(7).to_json(1)[:-1] + ',"uid":2}')


# Folders and the command ----------------------------------------------------------------------------------------------


def test_gathered_reports_are_saved_as_perturbed_ones_are(tmp_path):
    reports = SHOP.gather([line for user in range(5) for line in sent_by(user)])
    written = reports.save(tmp_path / "out")
    assert repr(written).startswith("Collected(users: 5 reports, orders: 10 reports")
    assert dn.Collection.load(tmp_path / "out" / "collection.json") == SHOP
    read = dn.connect(tmp_path / "out")
    assert {name: store.rows for name, store in read.stores.items()} == {"users": 5, "orders": 10}
    for again in (reports, SHOP.gather(sent_by(9)[:1])):
        with pytest.raises(BadInput, match="holds reports of table 'users' already"):
            again.save(tmp_path / "out")
    SHOP.gather(sent_by(1)[:1]).save(tmp_path / "two")
    SHOP.gather(sent_by(1)[1:]).save(tmp_path / "two")  # a table may be added
    assert sorted(entry.name for entry in (tmp_path / "two").iterdir()) == ["collection.json", "orders", "users"]
    with pytest.raises(BadInput, match="holds something else"):
        dn.Collection(USERS, epsilon=1.0).gather([]).save(tmp_path / "out")


def test_the_command_gathers_files_and_a_pipe(tmp_path):
    SHOP.save(tmp_path / "shop.toml")
    lines = [sent_by(user) for user in ("ann", "bob", 7)]
    other = sent_by("ann", dn.Collection(USERS, ORDERS, epsilon=9.0))[:1]
    (tmp_path / "monday.jsonl").write_text("\n".join([*lines[0], *lines[1], "nonsense", *other]) + "\n")
    pipe = "\n".join([*lines[1], *lines[2]])
    done = run("gather", tmp_path / "shop.toml", tmp_path / "monday.jsonl", "-", "-o", tmp_path / "out", text=pipe)
    assert (done.returncode, done.stderr) == (0, "gathering\n")
    shown = [line.split() for line in done.stdout.splitlines()]
    assert ["users", "5", "3", "3", "1", "1"] in shown
    assert ["orders", "8", "3", "6", "1", "0"] in shown
    assert "users: 1 line rejected: made under another specification" in done.stdout
    assert "(none): 1 line rejected: malformed" in done.stdout
    assert pq.read_table(tmp_path / "out" / "users")["uid"].to_pylist() == ["7", "ann", "bob"]
    for (name, out), message in (
        (("monday.jsonl", "out"), "holds reports of table 'users' already"),
        (("tuesday.jsonl", "new"), "there is no file"),
        (("shop.toml", "new"), "none of the reports can be used. Nothing was written"),
    ):
        refused = run("gather", tmp_path / "shop.toml", tmp_path / name, "-o", tmp_path / out)
        assert refused.returncode == 2
        assert message in refused.stderr
    assert not (tmp_path / "new").exists()


# Names ----------------------------------------------------------------------------------------------------------------

NAMES = dn.Table(
    "t", y=dn.Ordinal(0, 9), Seed=dn.Categorical("a", "b"), view=dn.Public(), SLOT=dn.Public(), report=dn.Public()
)
MANY = dn.Table("m", many=2, tau=2, view=dn.Ordinal(0, 9), y=dn.Public(), seed=dn.Public())
EXACT = dn.Collection(NAMES, MANY, epsilon=700.0, design="mg")
PEOPLE = {
    "uid": list(range(6)), "y": [0, 1, 2, 3, 4, 5], "Seed": list("ababab"), "view": [1, 1, 2, 2, 3, 3],
    "SLOT": list("pqpqpq"), "report": [True] * 6,
}  # fmt: skip
EVENTS = {"uid": [0, 0, 1, 2], "view": [1, 1, 2, 3]}
EVERYONE = {"uid": list(range(6)), "y": [5.0, 6.0, 7.0, 8.0, 9.0, 10.0], "seed": list("zzzxxx")}
QUESTIONS = [
    ("SELECT COUNT(*) AS n FROM t WHERE view = 2", 2),
    ("SELECT COUNT(*) AS n FROM t WHERE view >= 2 AND slot = 'q' AND seed = 'b' AND report", 2),
    ("SELECT SUM(y * view) AS n FROM t", 0 + 1 + 4 + 6 + 12 + 15),
    ("SELECT COUNT(*) AS n FROM t JOIN named USING (view) WHERE named.word = 'two'", 2),
]


def check_names(database):
    for text, expected in QUESTIONS:
        assert database.sql(text).scalar().value == pytest.approx(expected, abs=1e-6), text
    joined = "SELECT COUNT(*) AS n FROM t JOIN m USING (uid) WHERE t.y < 4 AND m.y >= 7 AND m.seed = 'z'"
    assert -1e-6 <= database.sql(joined).scalar().value <= 2.5  # one user, whose rows are truncated
    assert database.sql("SELECT y, COUNT(*) AS n FROM m GROUP BY y").groups == {"y": EVERYONE["y"]}
    grouped = database.sql("SELECT slot, COUNT(*) AS n FROM t GROUP BY slot")
    assert grouped.groups == {"slot": ["p", "q"]}


def test_attributes_may_be_called_as_columns_of_reports_are(tmp_path):
    named = pa.table({"view": [1, 2, 3], "word": ["one", "two", "three"]})
    reports = EXACT.perturb(t=PEOPLE, m=EVENTS, everyone=EVERYONE, simulation=True)
    assert reports["t"].column_names == ["uid", "slot", "view", "seed", "y", "public:view", "public:SLOT", "report"]
    check_names(dn.connect(reports, dimensions={"named": named}))
    EXACT.perturb(t=PEOPLE, m=EVENTS, everyone=EVERYONE, simulation=True, out=tmp_path / "out")
    for limit in (1 << 30, 1):
        check_names(dn.connect(tmp_path / "out", dimensions={"named": named}, memory_limit=limit))


def test_devices_send_such_attributes_too():
    lines = []
    for index, uid in enumerate(PEOPLE["uid"]):
        row = {name: PEOPLE[name][index] for name in NAMES.attributes}
        client = EXACT.client(simulation=True)
        lines.append(client.report("t", row).to_json(uid, "t", {name: row[name] for name in NAMES.public}))
    database = dn.connect(
        EXACT.gather(lines, simulation=True), dimensions={"named": pa.table({"view": [2], "word": ["two"]})}
    )
    for text, expected in QUESTIONS[:3]:
        assert database.sql(text).scalar().value == pytest.approx(expected, abs=1e-6)
    assert json.loads(lines[0])["public"] == {"view": 1, "SLOT": "p", "report": True}


def test_what_devices_sent_becomes_reports_that_can_be_read():
    lines = []
    for user in range(30):
        client = STORE.client()
        lines.append(client.report("users", ROW).to_json(user, "users", {"city": "Rome"}))
        lines += [report.to_json(user, "orders") for report in client.reports("orders", [])]
    other = dn.Collection(*STORE.tables, epsilon=9.0).client().report("users", ROW)
    swapped = STORE.client().report("users", ROW)
    lines += ["nonsense", swapped.to_json(1, "visits"), other.to_json(99, "users"), swapped.to_json(98, "orders")]
    reports = STORE.gather(reversed(lines))
    database = dn.connect(reports)
    assert {name: store.rows for name, store in database.stores.items()} == {"users": 30, "orders": 90}
    assert database.refused == {"users": {}, "orders": {}}
    assert reports["users"]["city"].to_pylist() == ["Rome"] * 30
    assert reports["users"]["uid"].to_pylist() == list(range(30))
    assert reports.summaries["users"].rejected == {"made under another specification": 1}
    assert reports.summaries["orders"].rejected == {"made under another specification": 1}
    assert reports.summaries["(none)"].rejected == {"malformed": 1, "of an unknown table": 1}
    assert STORE.gather([]).tables == {}


@pytest.mark.parametrize(
    ("uid", "public", "reason"),
    [
        (2**63, {"city": "Rome"}, "malformed"),
        ("\ud800", {"city": "Rome"}, "malformed"),
        ("n" * 1_001, {"city": "Rome"}, "malformed"),
        (9, {"city": "n" * 1_001}, "with a public value of another type"),
        (9, {"city": 5}, "with a public value of another type"),
        (9, {"city": True}, "with a public value of another type"),
        (9, {"city": ["Rome"]}, "with a public value of another type"),
        (9, {"city": "\ud800"}, "with a public value of another type"),
    ],
)
def test_no_single_device_can_spoil_what_others_sent(uid, public, reason):
    lines = [STORE.client().report("users", ROW).to_json(user, "users", {"city": "Rome"}) for user in range(3)]
    odd = json.dumps(json.loads(lines[0]) | {"uid": uid, "public": public})  # not as our clients write it
    reports = STORE.gather([odd, *lines, "[" * 100_000])
    assert reports["users"]["uid"].to_pylist() == [0, 1, 2]
    rejected = [*reports.summaries["users"].rejected, *reports.summaries["(none)"].rejected]
    assert reason in rejected
    assert dn.connect(reports).sql("SELECT city, COUNT(*) AS n FROM users GROUP BY city").groups == {"city": ["Rome"]}


def test_public_numbers_of_devices_are_of_one_type():
    sent = [5, 2.5, None, "five", 2**64]
    lines = [
        STORE.client().report("users", ROW).to_json(user, "users", {"city": city}) for user, city in enumerate(sent)
    ]
    reports = STORE.gather(lines)
    assert reports["users"]["city"].to_pylist() == [5.0, 2.5, None, None]  # the last was sent as null
    assert reports.summaries["users"].rejected == {"with a public value of another type": 1}


def test_a_public_value_that_no_column_holds_is_refused_also_if_nobody_sends_another():
    report = SHOP.client().report("users", {"age": 31}).to_json(7, "users", {"city": "Rome"})
    for odd in ("-1000000000000000000000000000000", "[]", "{}", "1e999"):
        gathered = SHOP.gather([report.replace('"Rome"', odd)])
        assert gathered.summaries["users"].reports == 0, odd
        assert gathered.tables["users"].num_rows == 0, odd
