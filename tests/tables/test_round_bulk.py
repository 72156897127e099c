"""Rounds in bulk: the law of devices, turns that agree with theirs, and a memory that all rounds share."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

import deniable as dn
from command_line import run
from deniable.errors import BadInput, Failure, InvalidParameter
from deniable.mechanisms.memoised_response import MemoisedResponse
from deniable.mechanisms.randomized_response import RandomizedResponse
from deniable.queries.answers.estimation import Moments, over_rounds
from deniable.tables.bulk import memoised_bulk
from deniable.tables.bulk.memoised_bulk import BulkLife
from deniable.tables.coins.coin_columns import CoinColumns, turn_columns
from deniable.tables.coins.turns import turns_of
from effort import some
from tables.enumeration import EnumeratedSource, law_of

USERS = dn.Table("users", age=dn.Ordinal(1, 95))


def shop(rounds, *tables, **settings):
    return dn.Collection(*(tables or (USERS,)), name="shop", rounds=rounds, **{"epsilon": 2.0, **settings})


def enumerated_words(choose, kept, k):
    """Stands in for SHA-256: whether the permanent answer is the truth, and which other one it is, each kept."""
    known = {}

    def coins(prefix, users, slots):
        for user in users.to_pylist():
            if (prefix, user) not in known:
                others = [kept.q] * (k - 1)
                known[prefix, user] = choose([kept.p, *others])
        drawn = [known[prefix, user] for user in users.to_pylist()]
        group = np.array([0 if number == 0 else 2**64 - 1 for number in drawn], dtype=np.uint64)
        view = np.array([((max(number, 1) - 1) * 2**64) // (k - 1) + 1 for number in drawn], dtype=np.uint64)
        return CoinColumns(group, view, np.zeros(len(drawn), dtype=np.uint64))

    return coins


@pytest.mark.parametrize(("epsilon", "permanent", "k"), [(1.4, 1.5, 2), (0.75, 1.5, 3)])
def test_memoised_rounds_in_bulk_have_the_law_of_devices(monkeypatch, epsilon, permanent, k):
    mechanism, oracle = MemoisedResponse(epsilon, permanent, k), RandomizedResponse(epsilon, k)
    rounds = 3 if k == 2 else 2
    for lifetime in ((0,) * rounds, (0, 1, 0)[:rounds], (1, 0, 0)[:rounds]):

        def run(choose, lifetime=lifetime):
            coins = enumerated_words(choose, mechanism.kept, k)
            monkeypatch.setattr(memoised_bulk, "secret_coins", coins)
            life = BulkLife.of(permanent, bytes(32), pa.array(["ann"]), 1, 1)
            source, zero = EnumeratedSource(choose), np.zeros(1, dtype=np.int64)
            return tuple(
                int(life.responses([oracle], zero, np.array([outcome]), zero.astype(np.uint32), 0, source)[0])
                for outcome in lifetime
            )

        law = law_of(run)
        answers = list(itertools.product(range(k), repeat=rounds))
        assert law == {answer: mechanism.law(lifetime, answer) for answer in answers}


def test_permanent_answers_follow_their_law_and_stay():
    """40,000 people; a correct draw fails with a chance below 1e-6, and a wrong ε∞ is noticed."""
    users, k = pa.array([f"user {number}" for number in range(40_000)]), 4
    which, truth = np.zeros(40_000, dtype=np.int64), np.full(40_000, 2)
    outcomes = np.full(40_000, k)

    def share(permanent, secret=b"s" * 32):
        life = BulkLife.of(permanent, secret, users, 1, 1)
        return life._permanent([RandomizedResponse(permanent, k).p], which, outcomes, truth, 0)

    def agrees(kept, permanent):
        response = RandomizedResponse(permanent, k)
        counts = np.bincount(kept, minlength=k)
        chances = [response.p if cell == 2 else response.q for cell in range(k)]
        tail = 1e-6 / 8
        return all(
            binom.ppf(tail, 40_000, float(c)) <= n <= binom.isf(tail, 40_000, float(c))
            for n, c in zip(counts, chances, strict=True)
        )

    kept = share(1.5)
    assert (kept == share(1.5)).all()
    assert not (kept == share(1.5, b"t" * 32)).all()
    assert agrees(kept, 1.5)
    assert not agrees(kept, 1.65)
    assert not agrees(kept, 1.35)


@pytest.mark.parametrize("chance", [Fraction(1, 2), RandomizedResponse(1.5, 4).p, RandomizedResponse(0.1, 300).p])
def test_rounding_to_64_bits_never_makes_another_answer_rarer(chance):
    for k in (2, 4, 300):
        limit = Fraction(memoised_bulk._limit(chance, k), 2**64)
        rarest = (1 - limit) * (Fraction(1, k - 1) - Fraction(1, 2**64))
        assert limit <= chance
        assert limit / rarest <= chance / ((1 - chance) / (k - 1))


@pytest.mark.parametrize("answers", [1, 3])
def test_turns_in_bulk_are_those_of_devices(answers):
    rounds = dn.Rounds(9, answers=answers)
    for users in (pa.array([5, -7, 123456789]), pa.array(["ann", "bob", "", "é" * 90])):
        turns = turn_columns(rounds, bytes(64), users)
        for mine, user in zip(turns.tolist(), users.to_pylist(), strict=True):
            assert set(mine) == turns_of(rounds, bytes(64), user)


def frame(number, users=300):
    return {"uid": np.arange(users), "age": (np.arange(users) * 7 + number) % 95 + 1}


@pytest.mark.parametrize("coins", ["assigned", "drawn"])
def test_rotating_rounds_ask_everybody_as_often_as_promised(tmp_path, coins):
    collection = shop(dn.Rounds(5, answers=2), coins=coins)
    memory = tmp_path / "memory" if coins == "drawn" else None
    seen = np.zeros(300, dtype=np.int64)
    for number in range(1, 6):
        reports = collection.perturb(users=frame(number), round=number, memory=memory)
        seen[reports["users"]["uid"].to_numpy()] += 1
        assert set(reports["users"]["round"].to_pylist()) == {number}
    assert (seen == 2).all()
    if coins == "assigned":  # the same rounds as on devices
        for user in (0, 1, 299):
            client = collection.client(user=user)
            hers = [number for number in range(1, 6) if client.report("users", {"age": 31}, number)]
            assert len(hers) == 2
            for number in hers:
                bulk = collection.perturb(users=frame(number), round=number)["users"].to_pylist()
                mine = next(row for row in bulk if row["uid"] == user)
                report = client.report("users", {"age": 31}, number)
                assert (mine["view"], mine["seed"]) == (report.view, report.seed)


def test_memoised_rounds_share_views_seeds_and_permanent_answers(tmp_path):
    rounds = dn.Rounds(3, mode="memoised", permanent=8.0, changes_are_public=True)
    for design in ("hio", "ahio"):
        collection = shop(rounds, epsilon=7.9, design=design)
        memory = tmp_path / design
        first, second = (collection.perturb(users=frame(0), round=number, memory=memory)["users"] for number in (1, 2))
        for column in ("view", "seed"):
            assert first[column].to_pylist() == second[column].to_pylist()
        same = np.mean(first["y"].to_numpy() == second["y"].to_numpy())
        assert same > 0.9  # rounding and permanent answers stay; the instantaneous answer mostly repeats them


# Folders --------------------------------------------------------------------------------------------------------------


def test_a_folder_takes_one_round_after_the_other(tmp_path):
    collection = shop(dn.Rounds(4, mode="fresh"), USERS, dn.Table("orders", many=2, amount=dn.Ordinal(0, 9)))
    orders = {"uid": np.arange(300), "amount": np.arange(300) % 10}
    for number in (3, 1):
        collection.perturb(users=frame(number), orders=orders, round=number, out=tmp_path / "out")
    with pytest.raises(BadInput, match="holds reports of table 'users' already"):
        collection.perturb(users=frame(1), round=1, out=tmp_path / "out")
    db = dn.connect(tmp_path / "out")
    assert {name: store.rows for name, store in db.stores.items()} == {"users": 600, "orders": 600}
    assert db.collection == collection
    counted = db.sql("SELECT round, COUNT(*) AS n FROM users GROUP BY round")
    assert counted.groups == {"round": [1, 3]}
    joined = db.sql("SELECT COUNT(*) AS n FROM users JOIN orders USING (uid) WHERE round = 3")
    assert joined.scalar().stderr > 0
    with pytest.raises(BadInput, match="holds something else"):
        shop(dn.Rounds(5, mode="fresh")).perturb(users=frame(1), round=1, out=tmp_path / "out")


def test_lines_of_devices_and_bulk_runs_are_read_alike(tmp_path):
    collection = shop(dn.Rounds(3, answers=2, cover=True), coins="assigned")
    lines, covers = [], 0
    for user, number in itertools.product(range(30), (1, 2, 3)):
        report = collection.client(user=user).report("users", {"age": 31}, number)
        lines.append(report.to_json(user, "users"))
        covers += report.y == 2**64 - 1
    reports = collection.gather([*lines, lines[0]])
    assert reports["users"].num_rows == 60
    assert (covers, reports.summaries["users"].rejected["which say that it is not their turn"] >= 30) == (30, True)
    db = dn.connect(reports.save(tmp_path / "out"))
    assert (db.stores["users"].rows, db.refused["users"].total()) == (60, 0)
    forged = reports["users"].set_column(5, "round", pa.array([3] * 60, pa.uint32()))
    for wrong, reason in ((forged, "of a round that is not the user's"), (_moved(reports["users"], 9), "there is not")):
        refused = dn.connect(dn.Reports(collection, {"users": wrong}, {})).refused["users"]
        assert any(reason in word for word in refused)


def _moved(table, number):
    return table.set_column(5, "round", pa.array([number] * table.num_rows, pa.uint32()))


def test_what_a_run_needs_and_what_is_refused(tmp_path):
    rotating = shop(dn.Rounds(3))
    with pytest.raises(InvalidParameter, match="memory is missing: rotating rounds need to know"):
        rotating.perturb(users=frame(1), round=1)
    for number in (None, 0, 4, "1"):
        with pytest.raises(InvalidParameter, match="round must be an integer from 1 to 3"):
            rotating.perturb(users=frame(1), round=number, memory=tmp_path / "memory")
    with pytest.raises(InvalidParameter, match="are for collections with rounds"):
        dn.Collection(USERS, epsilon=2.0).perturb(users=frame(1), round=1)
    rotating.perturb(users=frame(1), round=1, memory=tmp_path / "memory")
    assert (tmp_path / "memory").stat().st_mode & 0o077 == 0
    with pytest.raises(Failure, match="is damaged, or of another specification"):
        shop(dn.Rounds(4)).perturb(users=frame(1), round=1, memory=tmp_path / "memory")
    (tmp_path / "memory").write_text("nonsense")
    with pytest.raises(Failure, match=r"is damaged.* Nothing was read or written"):
        rotating.perturb(users=frame(1), round=2, memory=tmp_path / "memory")


def test_the_command_adds_rounds_to_a_folder(tmp_path):
    shop(dn.Rounds(3)).save(tmp_path / "shop.toml")
    (tmp_path / "users.csv").write_text("uid,age\n" + "".join(f"{user},31\n" for user in range(50)))
    command = ["perturb", tmp_path / "shop.toml", f"users={tmp_path / 'users.csv'}", "-o", tmp_path / "out"]
    for number in (1, 2, 3):
        done = run(*command, "--round", number, "--memory", tmp_path / "memory")
        assert (done.returncode, done.stderr) == (0, "randomising\n")
    assert dn.connect(tmp_path / "out").stores["users"].rows == 50  # each person once
    assert run(*command, "--round", 3, "--memory", tmp_path / "memory").returncode == 2
    assert run(*command, "--round", 4, "--memory", tmp_path / "memory").returncode == 2


# Questions ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rounds",
    [
        dn.Rounds(3, mode="fresh"),
        dn.Rounds(3, answers=3),
        dn.Rounds(3, mode="memoised", permanent=math.inf, changes_are_public=True),
    ],
    ids=["fresh", "rotating", "memoised"],
)
def test_without_noise_answers_equal_plain_sql(tmp_path, rounds):
    import duckdb

    table = dn.Table("users", age=dn.Ordinal(1, 95), city=dn.Public())
    collection = shop(rounds, table, epsilon=math.inf, design="mg", coins="assigned")
    memory = tmp_path / "memory" if rounds.mode == "memoised" else None
    tables, plain = [], []
    for number in (1, 2, 3):
        rows = {**frame(number), "city": np.array(["Rome", "Oslo"])[np.arange(300) % 2]}
        tables.append(collection.perturb(users=rows, round=number, memory=memory, simulation=True)["users"])
        plain.append(pa.table({**rows, "round": np.full(300, number)}))
    db = dn.connect(dn.Reports(collection, {"users": pa.concat_tables(tables)}, {}))
    users = pa.concat_tables(plain)  # noqa: F841 - DuckDB reads it by its name
    for sql in (
        "SELECT COUNT(*) AS n FROM users WHERE age < 30 AND round = 2",
        "SELECT AVG(age) AS n FROM users WHERE round BETWEEN 2 AND 3 AND city = 'Rome'",
        "SELECT SUM(age) FILTER (WHERE round = 3) - SUM(age) FILTER (WHERE round = 2) AS n FROM users",
        "SELECT COUNT(*) FILTER (WHERE age < 30 AND round = 3) AS n FROM users WHERE city = 'Oslo'",
        "SELECT SUM(age * round) AS n FROM users",
    ):
        expected = duckdb.sql(sql).fetchall()[0][0]
        assert db.sql(sql).scalar().value == pytest.approx(expected, rel=1e-9), sql
    grouped = db.sql("SELECT round, COUNT(*) AS n FROM users WHERE age < 30 GROUP BY round ORDER BY round")
    by_hand = duckdb.sql("SELECT round, COUNT(*) FROM users WHERE age < 30 GROUP BY round ORDER BY round").fetchall()
    assert grouped.groups["round"] == [number for number, _ in by_hand]
    assert [estimate.value for estimate in grouped.answers["n"]] == pytest.approx([count for _, count in by_hand])


def test_users_are_the_unit_of_variance(tmp_path):
    """Two rounds with the same answers are not twice the evidence: the error of their sum is twice that of one."""
    collection = shop(dn.Rounds(2, mode="memoised", permanent=3.0, changes_are_public=True))
    first = collection.perturb(users=frame(1, 3_000), round=1, memory=tmp_path / "memory")["users"]
    again = first.set_column(5, "round", pa.array([2] * 3_000, pa.uint32()))
    db = dn.connect(dn.Reports(collection, {"users": pa.concat_tables([first, again])}, {}))
    alone = db.sql("SELECT COUNT(*) FROM users WHERE age < 30 AND round = 1").scalar()
    pooled = db.sql("SELECT COUNT(*) FROM users WHERE age < 30").scalar()
    counts = [f"COUNT(*) FILTER (WHERE age < 30 AND round = {number})" for number in (1, 2)]
    change = f"SELECT {counts[1]} - {counts[0]} AS n FROM users"
    assert pooled.value == pytest.approx(2 * alone.value)
    assert pooled.stderr == pytest.approx(2 * alone.stderr, rel=0.05)
    assert (db.sql(change).scalar().value, db.sql(change).scalar().stderr) == (0, 0)


def test_the_noise_of_fresh_rounds_is_independent():
    """Whoever stays counts in every round, but her noise is drawn anew: errors of a sum over rounds grow as a root."""
    collection = shop(dn.Rounds(6, mode="fresh"), design="mg", coins="assigned")
    tables = [collection.perturb(users=frame(1, 1_500), round=number)["users"] for number in range(1, 7)]
    db = dn.connect(dn.Reports(collection, {"users": pa.concat_tables(tables)}, {}))
    for sum_of in ("COUNT(*)", "SUM(age)"):
        alone = db.sql(f"SELECT {sum_of} AS n FROM users WHERE age < 60 AND round = 1").scalar()
        pooled = db.sql(f"SELECT {sum_of} AS n FROM users WHERE age < 60").scalar()
        assert pooled.stderr == pytest.approx(6**0.5 * alone.stderr, rel=0.1)


@pytest.mark.parametrize("answers", [1, 2, 3, 4])
def test_the_variance_of_pooled_rounds_in_which_people_answer_several_times(answers):
    """4 rounds, 60 people who hold 0 or 1 in each, 4,000 draws of turns and noise: the mean of both estimates."""
    rng, rounds = np.random.default_rng(7), dn.Rounds(4, answers=answers)
    truth = (rng.random((60, 1)) < 0.5) ^ (rng.random((60, 4)) < 0.1)
    sums, summed, separate = [], [], []
    for _ in range(4_000):
        turns = rng.permuted(np.tile(np.arange(4) < answers, (60, 1)), axis=1)
        w = turns * (truth + rng.normal(0, 1, (60, 4)))
        made = np.array([[[(w.sum(axis=1) ** 2).sum()]], [[(w**2).sum()]]])
        nothing = np.zeros((1, 1, 1))
        moments = Moments(
            ((),), np.array([60.0]), np.array([[w.sum()]]), made[:1], nothing, np.zeros(1, np.int64),
            np.zeros((1, 1), bool), by_round=made[1:], rows=np.array([60.0 * answers]),
        )  # fmt: skip
        over = over_rounds(moments, rounds, 60.0, 4)
        sums.append(over.sums[0, 0])
        summed.append(over.crosses[0, 0, 0])
        separate.append(over.crosses[0, 0, 0] if over.by_round is None else over.by_round[0, 0, 0])
    actual, whole = np.var(sums), truth.sum(axis=1)
    assert np.mean(summed) - (whole**2).sum() == pytest.approx(actual, rel=0.1)
    if answers > 1:  # squares of single rounds suffice: nothing has to be known about two rounds of a person
        assert np.mean(separate) - truth.sum() == pytest.approx(actual, rel=0.1)


@pytest.mark.parametrize("mode", some(["memoised", "rotating", "fresh"], 3))
def test_intervals_of_levels_and_changes_cover(tmp_path, mode):
    """20 collections; an honest interval of 95 % misses more than 5 of them with a chance below 0.1 % per question."""
    rng, misses = np.random.default_rng(11), np.zeros(3)
    kept = {"permanent": 3.0, "changes_are_public": True} if mode == "memoised" else {}
    collection = shop(dn.Rounds(2, mode=mode, **kept), design="mg", coins="assigned")
    for attempt in range(20):
        before = rng.integers(1, 96, 600)
        after = np.where(rng.random(600) < 0.05, rng.integers(1, 96, 600), before)
        memory = tmp_path / f"{attempt}" if mode == "memoised" else None
        tables = [
            collection.perturb(
                users={"uid": np.arange(600) + 10_000 * attempt, "age": ages},
                round=number,
                memory=memory,
                source=dn.SeededSource(100 * attempt + number),
                simulation=True,
            )["users"]
            for number, ages in ((1, before), (2, after))
        ]
        db = dn.connect(dn.Reports(collection, {"users": pa.concat_tables(tables)}, {}))
        young = [(ages < 30).sum() for ages in (before, after)]
        counts = [f"COUNT(*) FILTER (WHERE age < 30 AND round = {number})" for number in (1, 2)]
        truths = (young[1], young[1] - young[0], sum(young))
        for index, (sql, truth) in enumerate(
            zip((counts[1], f"{counts[1]} - {counts[0]}", f"{counts[1]} + {counts[0]}"), truths, strict=True)
        ):
            answer = db.sql(f"SELECT {sql} AS n FROM users").scalar()
            misses[index] += abs(answer.value - truth) > 1.96 * answer.stderr
    assert binom.sf(5, 20, 0.05) < 1e-3
    assert (misses <= 5).all()


def test_rounds_that_do_not_fit_into_memory_are_answered_alike(tmp_path):
    orders = dn.Table("orders", many=3, tau=2, amount=dn.Ordinal(0, 9))
    collection = shop(dn.Rounds(4, answers=3), USERS, orders, coins="assigned")
    rng = np.random.default_rng(5)
    for number in (1, 2, 4):
        users = {"uid": [f"u{user}" for user in range(300)], "age": frame(number)["age"]}
        bought = {"uid": [f"u{user}" for user in rng.integers(0, 300, 500)], "amount": rng.integers(0, 10, 500)}
        collection.perturb(users=users, orders=bought, round=number, out=tmp_path / "out")
    inside, outside = dn.connect(tmp_path / "out"), dn.connect(tmp_path / "out", memory_limit=0, spill=tmp_path)
    assert {name: type(store).__name__ for name, store in outside.engine.stores.items()} == {
        "users": "RoundFileStore",
        "orders": "RoundFileStore",
    }
    for sql in (
        "SELECT COUNT(*) AS n FROM users WHERE age < 30",
        "SELECT round, AVG(age) AS n FROM users GROUP BY round",
        "SELECT SUM(amount) FILTER (WHERE round = 4) - SUM(amount) FILTER (WHERE round = 2) AS n FROM orders",
        "SELECT COUNT(*) AS n FROM users JOIN orders USING (uid) WHERE age < 50 AND amount > 3 AND round < 4",
    ):
        here, there = inside.sql(sql), outside.sql(sql)
        assert here.groups == there.groups
        for mine, theirs in zip(here.answers["n"], there.answers["n"], strict=True):
            assert (mine.value, mine.stderr) == pytest.approx((theirs.value, theirs.stderr))
    outside.close()
