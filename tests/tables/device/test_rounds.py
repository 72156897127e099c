"""Rounds on a device: whose turn it is, what is charged, what is remembered, and what is refused."""

import json
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import deniable as dn
from deniable.errors import BudgetExceeded, Failure, InvalidParameter
from deniable.tables.coins.turns import turn_prefix, turns_of
from deniable.tables.device.lifetimes import StickyDraws
from deniable.tables.schema.report_format import COVER
from deniable.tables.specification.lifetime_promises import memoised_promises

USERS = dn.Table("users", age=dn.Ordinal(1, 95))
ORDERS = dn.Table("orders", many=3, amount=dn.Ordinal(0, 9))


def shop(rounds, *tables, **settings):
    return dn.Collection(*(tables or (USERS,)), name="shop", rounds=rounds, **{"epsilon": 2.0, **settings})


@pytest.fixture(autouse=True)
def notes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "notes"))


@pytest.mark.parametrize("coins", ["drawn", "assigned"])
def test_a_person_answers_all_tables_in_the_same_rounds_and_nothing_in_others(coins):
    collection = shop(dn.Rounds(6, answers=2), USERS, ORDERS, coins=coins)
    for user in range(5):
        client = collection.client(user=user)
        hers = [number for number in range(1, 7) if client.report("users", {"age": 31}, round=number) is not None]
        assert len(hers) == 2
        assert [number for number in range(1, 7) if client.reports("orders", [], round=number)] == hers
        for number in hers:
            report = client.report("users", {"age": 90}, number)
            assert (report.round, report) == (number, client.report("users", {"age": 31}, number))


def test_turns_are_spread_evenly():
    """Each round is as likely as another: 2,000 people, a correct draw fails with a chance below 1e-6."""
    collection = shop(dn.Rounds(7, answers=3), coins="assigned")
    prefix = turn_prefix(collection, None)
    turns = [turns_of(collection.rounds, prefix, user) for user in range(2_000)]
    assert {len(mine) for mine in turns} == {3}
    counts = np.bincount([number for mine in turns for number in mine], minlength=8)[1:]
    low, high = binom.ppf(1e-7 / 2, 2_000, 3 / 7), binom.isf(1e-7 / 2, 2_000, 3 / 7)
    assert ((counts >= low) & (counts <= high)).all()


def test_user_zero_is_a_user_like_any_other():
    collection = shop(dn.Rounds(50), coins="assigned")
    turns = turns_of(collection.rounds, turn_prefix(collection, None), 0)
    client = collection.client(user=0)
    assert {number for number in range(1, 51) if client.report("users", {"age": 31}, number)} == turns


def test_a_cover_has_the_size_of_a_report_and_says_so():
    collection = shop(dn.Rounds(4, cover=True), USERS, ORDERS)
    client = collection.client()
    lines = {
        name: [client.reports(name, rows, number) for number in range(1, 5)]
        for name, rows in (("users", [{"age": 31}]), ("orders", []))
    }
    for sent in lines.values():
        assert sum(reports[0].y != COVER for reports in sent) == 1
        assert {len(report.to_json(7, "users")) for reports in sent for report in reports} == {
            len(sent[0][0].to_json(7, "users"))
        }


def test_fresh_and_memoised_answer_every_round_and_may_skip_some(tmp_path):
    fresh = shop(dn.Rounds(9, mode="fresh")).client(tmp_path / "memory")
    assert [fresh.report("users", {"age": 31}, number).round for number in (9, 2, 5)] == [9, 2, 5]
    rounds = dn.Rounds(9, mode="memoised", permanent=4.0, changes_are_public=True)
    memoised = shop(rounds).client(tmp_path / "memory")
    reports = [memoised.report("users", {"age": 31}, number) for number in (9, 2, 5)]
    assert len({(report.view, report.seed) for report in reports}) == 1  # for life
    again = shop(rounds).client(tmp_path / "memory")
    assert [again.report("users", {"age": 90}, number) for number in (9, 2, 5)] == reports


def test_a_ledger_is_charged_by_round(tmp_path):
    ledger = dn.Ledger(tmp_path / "ledger", limit=40.0)
    rotating = shop(dn.Rounds(4, answers=2)).client(ledger=ledger)
    spent = []
    for number in range(1, 5):
        rotating.report("users", {"age": 31}, number)
        spent.append(ledger.spent)
    assert sorted({0, *spent}) == [0, 1, 2]  # a round that is not hers costs nothing
    fresh = shop(dn.Rounds(4, mode="fresh")).client(ledger=ledger)
    for number in (1, 3, 3, 1):
        fresh.report("users", {"age": 31}, number)
    assert ledger.spent == 2 + 2 * 2
    collection = shop(dn.Rounds(3, mode="memoised", permanent=4.0, changes_are_public=True), design="mg")
    memoised = collection.client(ledger=ledger)
    for answered, number in enumerate((3, 1, 1, 2), 1):
        memoised.report("users", {"age": 31}, number)
        expected = memoised_promises(collection, "users", min(answered, 2 if answered < 4 else 3)).any_lifetimes
        assert ledger.spent == 6 + expected
    assert ledger.spent == 6 + collection.spends.epsilon


def test_a_collection_whose_lifetime_does_not_fit_is_refused_at_once(tmp_path):
    ledger = dn.Ledger(tmp_path / "ledger", limit=8.0)
    with pytest.raises(BudgetExceeded, match="asks for ε = 104"):
        shop(dn.Rounds(52, mode="fresh")).client(ledger=ledger).report("users", {"age": 31}, 1)
    assert ledger.entries == ()


def test_after_a_lost_memory_permanent_answers_are_new_and_charged_anew(tmp_path):
    collection = shop(dn.Rounds(3, mode="memoised", permanent=4.0, changes_are_public=True), design="mg")
    ledger = dn.Ledger(tmp_path / "ledger", limit=60.0)
    for _ in range(2):
        client = collection.client(ledger=ledger)
        client.report("users", {"age": 31}, 1)
        client.report("users", {"age": 31}, 2)
    assert ledger.spent == 2 * memoised_promises(collection, "users", 2).any_lifetimes


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [0, 5, -1, 1.0, "1", True, None, 2**40])
def test_a_round_that_does_not_exist_is_refused(number, tmp_path):
    client = shop(dn.Rounds(4, mode="fresh")).client(tmp_path / "memory")
    with pytest.raises(InvalidParameter, match="round must be an integer from 1 to 4"):
        client.report("users", {"age": 31}, round=number)
    assert not (tmp_path / "memory").exists()


def test_a_round_in_the_future_is_refused_until_it_begins(tmp_path):
    now = [0.0]
    collection = shop(dn.Rounds(4, mode="fresh", start="1970-01-02"))
    client = dn.client.Client(collection, tmp_path / "memory", clock=lambda: now[0])
    with pytest.raises(InvalidParameter, match="round 1 begins on 1970-01-02, which is in the future"):
        client.report("users", {"age": 31}, 1)
    now[0] = 86_400.0
    assert client.report("users", {"age": 31}, 1) is not None
    with pytest.raises(InvalidParameter, match="round 2 begins on 1970-01-09"):
        client.report("users", {"age": 31}, 2)
    now[0] = 0.0  # the clock goes back
    with pytest.raises(InvalidParameter, match="set the clock right"):
        client.report("users", {"age": 31}, 1)


def test_a_round_without_rounds_is_refused():
    with pytest.raises(InvalidParameter, match="this collection has no rounds"):
        dn.Collection(USERS, epsilon=2.0).client().report("users", {"age": 31}, round=1)


def test_a_damaged_memory_stops_every_round(tmp_path):
    memory = tmp_path / "memory"
    client = shop(dn.Rounds(3)).client(memory)
    client.report("users", {"age": 31}, 1)
    entries = json.loads(memory.read_text())
    for name in [name for name in entries if name != "seal"]:
        memory.write_text(json.dumps({**entries, name: "ff" * 32}))
        with pytest.raises(Failure, match=r"is damaged.* Nothing was sent"):
            client.report("users", {"age": 31}, 2)


def test_two_clients_on_one_memory_answer_alike(tmp_path):
    collection = shop(dn.Rounds(5, answers=2))
    first, second = (collection.client(tmp_path / "memory") for _ in range(2))
    for number in range(1, 6):
        assert first.report("users", {"age": 31}, number) == second.report("users", {"age": 90}, number)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"count": 0}, "count must be"),
        ({"count": 3, "every": "fortnight"}, "every is unknown"),
        ({"count": 3, "mode": "often"}, "mode is unknown"),
        ({"count": 3, "answers": 4}, "answers must be"),
        ({"count": 3, "mode": "fresh", "answers": 2}, "are for rotating rounds"),
        ({"count": 3, "mode": "fresh", "cover": True}, "are for rotating rounds"),
        ({"count": 3, "cover": 1}, "cover must be True or False"),
        ({"count": 3, "permanent": 3.0}, "are for memoised rounds"),
        ({"count": 3, "mode": "memoised"}, "permanent is missing"),
        ({"count": 3, "mode": "memoised", "permanent": -1.0}, "permanent must be above 0"),
        ({"count": 3, "start": "soon"}, "start is not a date"),
    ],
)
def test_impossible_rounds_are_refused(settings, message):
    with pytest.raises(InvalidParameter, match=message):
        dn.Rounds(**settings)


def test_what_shows_changes_must_say_so():
    with pytest.raises(InvalidParameter, match=r"each adds ε = .* to what shows that and when somebody changed"):
        shop(dn.Rounds(3, mode="memoised", permanent=2.5))
    quiet = shop(dn.Rounds(3, mode="memoised", permanent=2.5), epsilon=0.25)
    assert memoised_promises(quiet, "users", 3).step <= 1
    with pytest.raises(InvalidParameter, match="permanent is below epsilon"):
        shop(dn.Rounds(3, mode="memoised", permanent=1.0))


def test_a_specification_with_rounds_is_read_back(tmp_path):
    for rounds in (
        dn.Rounds(52, answers=4, cover=True, start="2027-01-04"),
        dn.Rounds(12, every="month", mode="fresh"),
        dn.Rounds(3, mode="memoised", permanent=8.0, changes_are_public=True),
    ):
        collection = shop(rounds)
        for name in ("shop.toml", "shop.json"):
            collection.save(tmp_path / name)
            assert dn.Collection.load(tmp_path / name) == collection
            assert dn.Collection.load(tmp_path / name).rounds == rounds
    assert len({shop(dn.Rounds(count)).sha256 for count in (3, 4)}) == 2
    (tmp_path / "shop.toml").write_text('epsilon = 1\nname = "shop"\n[rounds]\ncount = 3\nfoo = 1\n[tables.users]\n')
    with pytest.raises(InvalidParameter, match="foo is not a field of rounds"):
        dn.Collection.load(tmp_path / "shop.toml")
    for wrong, message in ((3, "must be dn.Rounds"), (dn.Rounds(3), "name is missing")):
        with pytest.raises(InvalidParameter, match=message):
            dn.Collection(USERS, epsilon=1.0, rounds=wrong, **({"name": "shop"} if wrong == 3 else {}))
    with pytest.raises(InvalidParameter, match="is the column of rounds"):
        shop(dn.Rounds(3), dn.Table("users", Round=dn.Ordinal(1, 9)))


def test_sticky_draws_are_even_and_differ_by_label():
    draws = StickyDraws(bytes(32))
    numbers = [draws.of(f"label {number}")(6) for number in range(3_000)]
    counts = np.bincount(numbers, minlength=6)
    assert ((counts >= binom.ppf(1e-8, 3_000, 1 / 6)) & (counts <= binom.isf(1e-8, 3_000, 1 / 6))).all()
    first, again = draws.of("rows"), draws.of("rows")
    assert [first(100) for _ in range(20)] == [again(100) for _ in range(20)]
    assert Fraction(len({draws.of("a")(2**128), draws.of("b")(2**128)})) == 2
