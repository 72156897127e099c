"""A ledger: nothing leaves without its charge, nothing is charged twice, and what exceeds a limit is refused first."""

import errno
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from fractions import Fraction

import numpy as np
import pytest

import deniable as dn
from command_line import run
from deniable.accounting import Neighbours, Spending, Unit
from deniable.errors import BudgetExceeded, Failure, InvalidParameter
from deniable.stores import Batch, BatchPublisher, DurablePublisher
from deniable.streams import PAK, ToPS
from deniable.streams.local.stream_client import ToPLClient

USERS = dn.Table("users", age=dn.Ordinal(1, 95))
ORDERS = dn.Table("orders", many=5, tau=2, amount=dn.Ordinal(0, 99))
SHOP = dn.Collection(USERS, epsilon=2.0)
HALF = Spending(Unit.USER, Neighbours.ANY, 0.5)


@pytest.fixture(autouse=True)
def notes(tmp_path, monkeypatch):
    """Notes about the newest copies of ledgers go to a folder of the test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "notes"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.json"


def no_draw(_bound):
    raise AssertionError("something was drawn")


def test_one_ledger_adds_up_all_collections_and_streams_exactly(path, tmp_path):
    ledger = dn.Ledger(path, limit=8.0)
    both = dn.Collection(USERS, ORDERS, epsilon=0.7)
    client = both.client(tmp_path / "memory", ledger=ledger)
    client.report("users", {"age": 31})
    assert ledger.spent == both.spent_on("users").epsilon
    client.reports("orders", [])
    assert ledger.spent == both.spends.epsilon <= Fraction(0.7)
    ToPLClient(1.0, 500, tmp_path / "memory", ledger=ledger).report(7)
    SHOP.client(ledger=ledger).report("users", {"age": 31})
    assert ledger.spent == both.spends.epsilon + 1 + 2
    assert ledger.left == 8 - ledger.spent
    assert [entry.charge.specification for entry in ledger.entries][-1] == SHOP.sha256


def test_the_same_bytes_cost_nothing_and_other_bytes_cost_again(path, tmp_path):
    ledger = dn.Ledger(path, limit=8.0)
    memory = tmp_path / "memory"
    first = SHOP.client(memory, ledger=ledger).report("users", {"age": 31})
    shutil.copy(memory, tmp_path / "copied")
    for kept in (memory, tmp_path / "copied"):
        assert SHOP.client(kept, ledger=ledger).report("users", {"age": 90}) == first
    assert ledger.spent == 2
    SHOP.client(ledger=ledger).report("users", {"age": 31})  # this client remembers nothing: it answers anew
    memory.unlink()
    SHOP.client(memory, ledger=ledger).report("users", {"age": 31})
    assert ledger.spent == 6


def test_two_draws_that_come_out_alike_are_both_paid_for(path):
    """Otherwise what is charged would depend on what was drawn, and two answers that agree would cost one."""
    ledger = dn.Ledger(path, limit=8.0)
    reports = {dn.client.Client(SHOP, None, lambda _: 0, ledger=ledger).report("users", {"age": 31}) for _ in range(3)}
    assert (len(reports), ledger.spent) == (1, 6)
    values = {ToPLClient(0.5, 500, None, lambda _: 0, ledger=ledger).report(7) for _ in range(3)}
    assert (len(values), ledger.spent) == (1, Fraction(15, 2))


def test_many_specifications_that_differ_by_little_recover_nothing(path):
    ledger = dn.Ledger(path, limit=8.0)
    answers = 0
    for number in range(400):
        shop = SHOP.with_settings(epsilon=2.0 + number * 1e-9)
        try:
            shop.client(ledger=ledger).report("users", {"age": 31})
            answers += 1
        except BudgetExceeded:
            continue
    assert answers == 3  # the fourth would exceed 8 by 3e-9
    assert ledger.spent <= 8


@pytest.mark.parametrize("row", [{"age": 31}, {"age": None}, {}, {"age": "x"}])
def test_what_exceeds_the_limit_is_refused_before_a_draw_whatever_the_data(path, tmp_path, row):
    ledger = dn.Ledger(path, limit=1.5)
    client = dn.client.Client(SHOP, tmp_path / "memory", no_draw, ledger=ledger)
    message = r"asks for ε = 2, above 1\.5, what is left of 1\.5\. Nothing was drawn, charged or sent"
    with pytest.raises(BudgetExceeded, match=message) as refusal:
        client.report("users", row)
    assert (client.rejected, ledger.entries, (tmp_path / "memory").exists()) == ({}, (), False)
    assert "31" not in str(refusal.value)
    stream = ToPLClient(2.0, 500, None, no_draw, ledger=ledger)
    with pytest.raises(BudgetExceeded):
        stream.report(row.get("age"))
    assert ledger.spent == stream.clipped.total() == 0


def test_a_collection_of_two_tables_is_refused_before_its_first(path):
    ledger = dn.Ledger(path, limit=1.0)
    client = dn.client.Client(dn.Collection(USERS, ORDERS, epsilon=1.5), None, no_draw, ledger=ledger)
    assert client._collection.spent_on("users").epsilon < 1
    with pytest.raises(BudgetExceeded):
        client.report("users", {"age": 31})


def test_a_cap_on_one_collection_and_pinned_hashes(path):
    capped = dn.Ledger(path, limit=8.0, largest=1.0, pins=[SHOP])
    with pytest.raises(BudgetExceeded, match="the most that one collection may cost"):
        dn.client.Client(SHOP, None, no_draw, ledger=capped).report("users", {"age": 31})
    other = SHOP.with_settings(epsilon=0.5)
    with pytest.raises(InvalidParameter, match="is not one of those that this ledger pins"):
        dn.client.Client(other, None, no_draw, ledger=capped).report("users", {"age": 31})
    pinned = dn.Ledger(path, pins=[SHOP.sha256, other.sha256])
    other.client(ledger=pinned).report("users", {"age": 31})
    assert pinned.spent == Fraction(1, 2)
    memory = {}
    other.client(memory, ledger=pinned).report("users", {"age": 31})
    with pytest.raises(InvalidParameter, match="pins"):  # also what was sent before
        other.client(memory, ledger=capped).report("users", {"age": 31})
    with pytest.raises(InvalidParameter, match="must be specifications or their hashes"):
        dn.Ledger(path, pins=["shop"])


def test_fresh_answers_are_refused_with_a_ledger(path):
    client = ToPLClient(1.0, 500, ledger=dn.Ledger(path, limit=8.0))
    with pytest.raises(InvalidParameter, match="fresh answers are not charged"):
        client.fresh(7)


def test_units_are_counted_apart_and_delta_has_a_limit_of_its_own(path, tmp_path):
    ledger = dn.Ledger(path, limit=1.0)
    ledger.charge(Spending(Unit.VALUE, Neighbours.REPLACED, 1.0), what="meters", key="epoch 1")
    assert ledger.charge(HALF, what="shop")
    assert (ledger.spent_on(Unit.USER), ledger.spent_on(Unit.VALUE)) == ((Fraction(1, 2), 0), (1, 0))
    assert not ledger.charge(Spending(Unit.VALUE, Neighbours.REPLACED, 1.0), what="meters", key="epoch 1")
    with pytest.raises(BudgetExceeded, match="the δ that is left"):
        ledger.charge(Spending(Unit.USER, Neighbours.ANY, 0.1, 1e-9), what="shop")
    wider = dn.Ledger(tmp_path / "wider", limit=1.0, delta=1e-6)
    assert wider.charge(Spending(Unit.USER, Neighbours.ANY, 0.1, 1e-9), what="shop")
    with pytest.raises(BudgetExceeded, match="ε = inf"):
        wider.charge(Spending(Unit.USER, Neighbours.ANY, float("inf")), what="simulation")


def test_operators_charge_runs_and_streams(path, tmp_path):
    ledger = dn.Ledger(path, limit=4.0, delta=1e-9)
    rows = {"users": {"uid": [1, 2], "age": [31, 40]}}
    SHOP.perturb(**rows, ledger=ledger)
    SHOP.perturb(**rows, out=tmp_path / "out", ledger=ledger)
    with pytest.raises(BudgetExceeded):
        SHOP.perturb(**rows, out=tmp_path / "third", ledger=ledger)
    assert (ledger.spent, (tmp_path / "third").exists()) == (4, False)
    with pytest.raises(dn.DeniableError, match="holds reports of table 'users' already"):
        SHOP.perturb(**rows, out=tmp_path / "out", ledger=dn.Ledger(tmp_path / "fresh", limit=4.0))
    assert not dn.Ledger(tmp_path / "fresh").entries  # refused before it cost anything
    for _ in range(2):
        with DurablePublisher(tmp_path / "state", ToPS(1.0, 100, warmup=2, horizon=64), ledger=ledger) as stream:
            stream.push_many([5, 6, 7])
    assert ledger.spent_on(Unit.VALUE) == (1, 0)
    with BatchPublisher(PAK(3.0, 100, warmup=50, horizon=64), ledger=ledger) as batches:
        batches.publish(Batch(np.arange(60) % 50), lambda *_: None)
    assert ledger.spent_on(Unit.VALUE) == (4, Fraction(1, 2**40))
    another = DurablePublisher(tmp_path / "another", ToPS(1.0, 100, warmup=2, horizon=64), ledger=ledger)
    with another, pytest.raises(BudgetExceeded):
        another.push_many([5, 6, 7])
    assert another.taken == another.publisher.published == 0


def test_an_operator_is_charged_for_rounds_as_people_answer_them(path, tmp_path):
    def spent(number, rounds, epsilon=1.0, limit=50.0):
        users, name = dn.Table("users", flag=dn.Categorical("a", "b")), f"{path}-{number}"
        collection = dn.Collection(users, epsilon=epsilon, name="shop", design="mg", rounds=rounds)
        ledger, amounts = dn.Ledger(name, limit=limit), []
        for turn in range(1, rounds.count + 1):
            rows = {"uid": [1, 2], "flag": ["a", "b"]}
            memory = None if rounds.mode == "fresh" else tmp_path / f"memory-{number}"
            collection.perturb(users=rows, round=turn, memory=memory, ledger=ledger)
            amounts.append(ledger.spent)
        collection.perturb(users=rows, round=1, memory=memory, ledger=ledger)  # asked again, everybody answers again
        return collection, [*amounts, ledger.spent]

    rotating, amounts = spent(1, dn.Rounds(4, answers=2))
    assert amounts == [Fraction(1, 2), 1, 1, 1, Fraction(3, 2)]  # nobody answers in more than two rounds
    assert rotating.spends.epsilon == 1
    assert spent(2, dn.Rounds(3, mode="fresh"))[1] == [1, 2, 3, 4]
    kept = dn.Rounds(3, mode="memoised", permanent=1.5, changes_are_public=True)
    memoised, amounts = spent(3, kept, 1.4)
    assert amounts[:3] == [memoised.spent_on("users", answered).epsilon for answered in (1, 2, 3)]
    assert amounts[2] == memoised.spends.epsilon > 3 * Fraction(1.4)


# Bad input ------------------------------------------------------------------------------------------------------------


def test_a_damaged_ledger_stops_everything(path, tmp_path):
    ledger, memory = dn.Ledger(path, limit=8.0), tmp_path / "memory"
    SHOP.client(memory, ledger=ledger).report("users", {"age": 31})
    whole = path.read_bytes()
    changed = [
        whole.replace(b'"epsilon": "2"', b'"epsilon": "1"'),
        whole.replace(b'"limit": "8"', b'"limit": "9"'),
        whole[: len(whole) // 2],
        whole.replace(b"shop", b"shop").replace(b"users", b"Users"),
        whole + b" ",
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"format": "deniable ledger", "version": 2}',
    ]
    for content in changed:
        assert content != whole
        path.write_bytes(content)
        with pytest.raises(Failure, match=r"the ledger 'ledger\.json' is damaged.* Nothing was sent or charged"):
            dn.client.Client(SHOP, memory, no_draw, ledger=ledger).report("users", {"age": 31})
        with pytest.raises(Failure, match="is damaged"):
            dn.Ledger(path, limit=8.0)
    path.unlink()
    with pytest.raises(Failure, match="was removed, so what was spent is not known"):
        ledger.charge(HALF, what="shop")
    with pytest.raises(InvalidParameter, match=r"'ledger\.json' does not exist\. .*Give a limit"):
        dn.Ledger(path)
    path.write_bytes(whole)
    assert dn.Ledger(path, limit=8.0).spent == 2


def test_any_single_changed_byte_is_noticed(path):
    ledger = dn.Ledger(path, limit=8.0)
    ledger.charge(HALF, what="shop", key="a")
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(Failure, match="damaged"):
            ledger.charge(HALF, what="shop", key="b")


def test_of_several_copies_only_the_newest_goes_on(path, tmp_path):
    ledger = dn.Ledger(path, limit=8.0)
    shutil.copy(path, tmp_path / "copied")
    copied = dn.Ledger(tmp_path / "copied")
    ledger.charge(HALF, what="shop")
    with pytest.raises(Failure, match=r"this is an old copy of the ledger.* Nothing was sent or charged"):
        copied.charge(HALF, what="shop")
    shutil.copy(path, tmp_path / "copied")
    copied.charge(HALF, what="shop")
    with pytest.raises(Failure, match="old copy"):
        ledger.charge(HALF, what="shop")
    assert (copied.spent, ledger.spent) == (1, Fraction(1, 2))
    (note,) = (tmp_path / "notes" / "deniable" / "ledgers").iterdir()
    note.write_text("nonsense")
    with pytest.raises(Failure, match=r"note .* is damaged"):
        copied.charge(HALF, what="shop")


def test_links_lead_to_one_ledger_and_second_names_are_refused(path, tmp_path):
    ledger = dn.Ledger(path, limit=8.0)
    (tmp_path / "link").symlink_to(path)
    dn.Ledger(tmp_path / "link").charge(HALF, what="shop")
    assert (ledger.spent, (tmp_path / "link").is_symlink()) == (Fraction(1, 2), True)
    os.link(path, tmp_path / "hard")
    with pytest.raises(Failure, match=r"has 2 names \(hard links\).* Nothing was sent or charged"):
        ledger.charge(HALF, what="shop")


def test_a_memory_is_another_file(path, tmp_path):
    ledger = dn.Ledger(path, limit=8.0)
    (tmp_path / "link").symlink_to(path)
    for memory in (path, str(tmp_path / "link")):
        for made in (
            lambda memory=memory: SHOP.client(memory, ledger=ledger),
            lambda memory=memory: ToPLClient(1.0, 9, memory, ledger=ledger),
        ):
            with pytest.raises(InvalidParameter, match=r"ledger and the memory are one file\. .*Use two files"):
                made()
    assert ledger.spent == 0


def test_a_clock_that_goes_back_is_refused_and_times_never_do(path):
    now = [1_000_000.0]
    ledger = dn.Ledger(path, limit=8.0, clock=lambda: now[0])
    ledger.charge(HALF, what="shop")
    now[0] -= 30  # as when it is set right by the network
    ledger.charge(HALF, what="shop")
    assert len({entry.time for entry in ledger.entries}) == 1
    now[0] -= 3600
    client = dn.client.Client(SHOP, None, no_draw, ledger=ledger)
    with pytest.raises(Failure, match=r"the clock shows a time before the last charge.* Nothing was sent or charged"):
        client.report("users", {"age": 31})
    for no_time in (float("nan"), float("inf"), 1e12, -1.0):
        now[0] = no_time
        for change in (lambda: ledger.charge(HALF, what="shop"), lambda: ledger.raise_limit(9.0)):
            with pytest.raises(Failure, match="the clock shows no time"):
                change()
    now[0] = 2_000_000.0
    ledger.charge(HALF, what="shop")
    assert ledger.spent == Fraction(3, 2)


def test_limits_are_kept_and_can_only_be_raised(path):
    ledger = dn.Ledger(path, limit=1.0)
    for limit in (0, -1, float("inf"), float("nan"), "8"):
        with pytest.raises(InvalidParameter, match="limit"):
            dn.Ledger(path, limit=limit)
    with pytest.raises(InvalidParameter, match=r"limit is 2, and that of 'ledger\.json' is 1"):
        dn.Ledger(path, limit=2.0)
    with pytest.raises(InvalidParameter, match=r"largest is 2, and that of .* is none"):
        dn.Ledger(path, largest=2.0)
    ledger.charge(HALF.times(2), what="shop")
    with pytest.raises(BudgetExceeded):
        ledger.charge(HALF, what="shop")
    ledger.raise_limit(2.0)
    ledger.charge(HALF, what="shop")
    assert (ledger.limit, dn.Ledger(path, limit=2.0).left) == (2, Fraction(1, 2))
    with pytest.raises(InvalidParameter, match="is below 2"):
        ledger.raise_limit(1.0)


CHARGING = """
import sys
import deniable as dn
from deniable.accounting import Neighbours, Spending, Unit
ledger = dn.Ledger(sys.argv[1], limit=5.0)
charged = 0
for _ in range(30):
    try:
        charged += ledger.charge(Spending(Unit.USER, Neighbours.ANY, 0.125), what="shop")
    except dn.errors.BudgetExceeded:
        break
print(charged)
"""


def test_processes_and_threads_never_spend_more_than_the_limit_together(path):
    dn.Ledger(path, limit=5.0)
    command = [sys.executable, "-c", CHARGING, str(path)]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    counts = []

    def charge():
        ledger, charged = dn.Ledger(path), 0
        try:
            while True:
                charged += ledger.charge(Spending(Unit.USER, Neighbours.ANY, 0.125), what="shop")
        except BudgetExceeded:
            counts.append(charged)

    threads = [threading.Thread(target=charge) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    counts += [int(process.communicate()[0]) for process in processes]
    assert sum(counts) == len(dn.Ledger(path).entries) == 40
    assert dn.Ledger(path).left == 0


CALLS = ("open", "write", "fsync", "replace")


def failing(monkeypatch, at, code, *, for_good):
    """Make the numbered call that writes fail, and perhaps all after it; returns how many there were, by `len`."""
    made = []

    def watched(name, call):
        def called(*arguments, **named):
            if name != "open" or arguments[1] & os.O_CREAT:
                made.append(name)
                if len(made) == at or (for_good and len(made) > at):
                    raise OSError(code, os.strerror(code))
            return call(*arguments, **named)

        return called

    for name in CALLS:
        monkeypatch.setattr(os, name, watched(name, getattr(os, name)))
    return made


@pytest.mark.parametrize("for_good", [False, True])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS])
def test_a_full_or_read_only_disk_never_gives_an_answer_without_its_charge(tmp_path, code, for_good):
    at, ended = 0, False
    while not ended:
        at, folder = at + 1, tmp_path / str(at)
        folder.mkdir()
        ledger = dn.Ledger(folder / "ledger.json", limit=8.0)
        client, answer, problem = SHOP.client(folder / "memory.json", ledger=ledger), None, ""
        with pytest.MonkeyPatch.context() as patched:
            made = failing(patched, at, code, for_good=for_good)
            try:
                answer = client.report("users", {"age": 31})
            except Failure as failure:
                problem = str(failure)
        ended = len(made) < at
        assert (answer is None) == bool(problem) == (not ended)
        spent = ledger.spent
        assert ("Nothing was sent or charged" in problem) <= (spent == 0)  # what it says about the charge is true
        assert ended or any(words in problem.lower() for words in ("nothing was sent", "nothing more was done"))
        again = client.report("users", {"age": 31})
        assert answer in (None, again)
        assert ledger.spent == 2
        assert sorted(path.name for path in folder.iterdir()) == ["ledger.json", "memory.json"]
    assert at > 15


# The command line -----------------------------------------------------------------------------------------------------


def test_the_commands_show_and_export(path, tmp_path):
    ledger = dn.Ledger(path, limit=8.0, clock=lambda: 1_000_000.0)
    SHOP.client(ledger=ledger).report("users", {"age": 31})
    ledger.charge(Spending(Unit.VALUE, Neighbours.REPLACED, Fraction(1, 3)), what="meters")
    shown = run("ledger", "show", path)
    assert f"collection {SHOP.sha256[:8]}, table 'users'" in shown.stdout
    assert "For everything a user sends: ε = 2 of 8 spent, 6 left." in shown.stdout
    assert "For one value of a stream or a dataset: ε = 0.333333 of 8 spent, 7.66667 left." in shown.stdout
    facts = json.loads(run("ledger", "show", path, "--json").stdout)
    assert facts["units"]["user"] == {"spent": 2.0, "left": 6.0, "delta": 0.0}
    lines = run("ledger", "export", path).stdout.splitlines()
    assert lines[0] == "time,what,epsilon,delta,unit,neighbours,specification"
    assert lines[2].startswith("1970-01-12T13:46:40+00:00,meters,1/3,0,VALUE,REPLACED,")
    exported = [json.loads(line) for line in run("ledger", "export", "--json", path).stdout.splitlines()]
    assert [entry["epsilon"] for entry in exported] == ["2", "1/3"]
    ledger.charge(Spending(Unit.USER, Neighbours.ANY, Fraction(5, 4)), what="a" * 90)
    assert re.search(r"^ a{30,} +1\.25 +1970-01-12 +1970-01-12 +1 *$", run("ledger", "show", path).stdout, re.MULTILINE)
    refused = run("ledger", "show", tmp_path / "nowhere.json")
    assert refused.returncode == 2
    assert "does not exist" in refused.stderr
    assert not (tmp_path / "nowhere.json").exists()


def test_commands_charge_a_ledger(path, tmp_path):
    dn.Ledger(path, limit=3.0)
    SHOP.save(tmp_path / "shop.toml")
    (tmp_path / "users.csv").write_text("uid,age\n1,31\n2,40\n")
    (tmp_path / "values.txt").write_text("5\n6\n7\n")
    arguments = ["perturb", tmp_path / "shop.toml", f"users={tmp_path / 'users.csv'}", "--ledger", path]
    assert run(*arguments, "-o", tmp_path / "out").returncode == 0
    assert run(*arguments, "-o", tmp_path / "again").returncode == 2
    stream = ["--epsilon", "1", "--bound", "50", "--ledger", path, tmp_path / "values.txt"]
    assert run("stream", "publish", "--warmup", "1", "--theta", "9", "--horizon", "64", *stream).returncode == 0
    device = ["--uid", "7", "--memory", tmp_path / "memory"]
    assert run("stream", "report", *device, *stream).returncode == 0
    assert run("stream", "report", *stream).returncode == 2
    ledger = dn.Ledger(path)
    assert (ledger.spent_on(Unit.USER)[0], ledger.spent_on(Unit.VALUE)[0]) == (3, 1)
