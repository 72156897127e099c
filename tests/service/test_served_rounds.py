"""A collector of a collection with rounds: only open ones take reports, and questions see rounds."""

import pytest

import deniable as dn
from asgi import Served
from command_line import run
from deniable.tables.reports.upload_format import REPORT_LINES

WEEKS = dn.Collection(
    dn.Table("users", age=dn.Ordinal(1, 95), city=dn.Public()),
    epsilon=2.0, coins="assigned", name="shop", rounds=dn.Rounds(4, every="week", mode="fresh"),
)  # fmt: skip


def lines(uids, number):
    made = [
        WEEKS.client(user=uid).report("users", {"age": 31}, number).to_json(uid, "users", {"city": "Rome"})
        for uid in uids
    ]
    return "\n".join(made).encode()


@pytest.fixture
def served(tmp_path):
    made = Served(tmp_path / "collected", WEEKS)
    yield made
    made.close()


def test_only_open_rounds_take_reports_and_a_question_sees_rounds(served):
    first, second = lines("abc", 1), lines("abcd", 2)
    assert served.post(first, media_type=REPORT_LINES).json["refused"] == {"round_not_open": 3}
    assert run("round", "open", served.folder, 1).returncode == 0
    assert served.get("/v1/collections/shop").json["open_rounds"] == [1]
    assert served.post(first, media_type=REPORT_LINES).json["accepted"] == 3
    assert served.post(second, media_type=REPORT_LINES).json["refused"] == {"round_not_open": 4}
    assert run("round", "open", served.folder, 2).stderr == "Open rounds: 1, 2.\n"
    assert run("round", "close", served.folder, 1).stderr == "Open rounds: 2.\n"
    assert served.post(second, media_type=REPORT_LINES).json["accepted"] == 4
    assert served.post(first, media_type=REPORT_LINES).json["repeated"] == 3
    assert served.post(lines("e", 1), media_type=REPORT_LINES).json["refused"] == {"round_not_open": 1}
    question = "SELECT round, COUNT(*) AS n FROM users GROUP BY round"
    expected = dn.connect(WEEKS.gather([*first.decode().split("\n"), *second.decode().split("\n")])).sql(question)
    assert str(dn.connect(served.folder).sql(question)) == str(expected)
    assert run("seal", served.folder, "-o", served.folder.parent / "out").stdout.splitlines() == [
        "users, round 1: 3 reports", "users, round 2: 4 reports"
    ]  # fmt: skip
    assert str(dn.connect(served.folder.parent / "out").sql(question)) == str(expected)


def test_a_question_before_the_first_report_says_that_there_are_none(served):
    run("round", "open", served.folder, 1)
    asked = run("query", served.folder, "SELECT round, COUNT(*) AS n FROM users GROUP BY round")
    assert asked.returncode != 0
    assert "there are no reports of table 'users'. Nothing was computed. Collect them first." in asked.stderr
    assert run("seal", served.folder).stderr == "There are no reports yet. Nothing was written.\n"


def test_rounds_that_there_are_not(served, tmp_path):
    assert run("round", "open", served.folder, 5).returncode == 2
    plain = Served(tmp_path / "plain", WEEKS.with_settings(rounds=None))
    ended = run("round", "open", plain.folder, 1)
    plain.close()
    assert (ended.returncode, "the collection has no rounds. Nothing was changed" in ended.stderr) == (2, True)
