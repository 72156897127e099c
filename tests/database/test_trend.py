"""A level over rounds: measured, smoothed by a stated prior, and forecast under each mode."""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from command_line import run
from deniable.errors import InvalidParameter, QueryRefused
from deniable.queries.answers.trend import smoothed
from deniable.queries.forecasts.round_forecast import answering, round_errors
from deniable.queries.parsing.round_questions import question_by_round

USERS = dn.Table("users", age=dn.Ordinal(1, 95))
YOUNG = "SELECT COUNT(*) AS young FROM users WHERE age < 30"


def shop(rounds, **settings):
    return dn.Collection(USERS, name="shop", coins="assigned", rounds=rounds, **{"epsilon": 2.0, **settings})


@pytest.fixture(scope="module")
def db():
    collection, rng = shop(dn.Rounds(4, mode="fresh"), design="mg"), np.random.default_rng(3)
    tables = [
        collection.perturb(
            users={"uid": np.arange(3_000), "age": rng.integers(1, 96, 3_000)},
            round=number,
            source=dn.SeededSource(number),
            simulation=True,
        )["users"]
        for number in (1, 2, 4)
    ]
    return dn.connect(dn.Reports(collection, {"users": pa.concat_tables(tables)}, {}))


def test_levels_are_those_of_single_rounds_and_hold_at_once(db):
    followed = db.trend(YOUNG)
    assert followed.groups == {"round": [1, 2, 4]}
    for number, estimate in zip((1, 2, 4), followed.answers["young"], strict=True):
        alone = db.sql(f"{YOUNG} AND round = {number}").scalar()
        assert estimate.value == pytest.approx(alone.value)
        assert estimate.stderr == pytest.approx(alone.stderr, rel=0.05)
        assert estimate.together == 3
    assert followed.simulation
    assert "all 3 intervals hold at once with 95%" in str(followed)


def test_smoothing_says_what_it_assumes_and_both_errors(db):
    followed = db.trend(YOUNG, moves=10.0)
    raw, even = followed.answers["young"], followed.answers["young_smoothed"]
    assert all(after.stderr < before.stderr for before, after in zip(raw, even, strict=True))
    assert np.std([estimate.value for estimate in even]) < np.std([estimate.value for estimate in raw])
    assert "smoothed: if it moves by about 10 from one round to the next" in str(followed)
    free = db.trend(YOUNG, moves=1e9).answers["young_smoothed"]  # a prior that says nothing changes nothing
    assert [estimate.value for estimate in free] == pytest.approx([estimate.value for estimate in raw], rel=1e-4)
    ratio = db.trend("SELECT AVG(age) AS age FROM users", moves=0.5).answers["age_smoothed"]
    assert all(40 < estimate.value < 56 for estimate in ratio)


def test_smoothed_intervals_cover_what_moves_as_stated():
    """4,000 walks that follow the prior: 95 % intervals cover 95 % of levels; twice as fast, they do not."""
    rng, spread = np.random.default_rng(8), np.diag([4.0, 9.0, 4.0, 1.0]) + 0.5
    rounds, root = [1, 2, 3, 5], np.linalg.cholesky(np.diag([4.0, 9.0, 4.0, 1.0]) + 0.5)

    def coverage(speed):
        hits = 0
        for _ in range(1_000):
            steps = rng.normal(size=3) * speed * np.sqrt(np.diff(rounds))
            level = 100 + np.concatenate(([0.0], np.cumsum(steps)))
            even, errors = smoothed(level + root @ rng.normal(size=4), spread, rounds, moves=1.0)
            hits += int((np.abs(even - level) < 1.96 * errors).sum())
        return hits / 4_000

    assert coverage(1.0) == pytest.approx(0.95, abs=0.015)
    assert coverage(3.0) < 0.85


def test_what_a_trend_cannot_follow_is_refused(db):
    for sql in (f"{YOUNG} GROUP BY round", "SELECT COUNT(*), AVG(age) FROM users", f"{YOUNG} LIMIT 3"):
        with pytest.raises(QueryRefused, match="a trend follows one number"):
            db.trend(sql)
    for moves in (0, -1.0, float("nan"), "fast"):
        with pytest.raises(InvalidParameter, match="moves must be"):
            db.trend(YOUNG, moves=moves)
    with pytest.raises(QueryRefused, match="there are over 100 rounds"):
        question_by_round(YOUNG, range(1, 200))
    once = dn.Collection(USERS, epsilon=2.0).perturb(users={"uid": [1, 2], "age": [31, 40]})
    with pytest.raises(QueryRefused, match="this collection has no rounds"):
        dn.connect(once).trend(YOUNG)


def test_filters_of_the_question_stay():
    name, asked = question_by_round("SELECT 2 * SUM(age) FILTER (WHERE age < 9) - COUNT(*) FROM users", [7])
    assert name == "((2 * sum(age) FILTER (WHERE (age < 9))) - count_star())"  # as DuckDB calls it
    assert asked.count("round = 7") == 2
    assert "age < 9 AND round = 7" in asked


# Forecasts ------------------------------------------------------------------------------------------------------------


def test_dividing_people_beats_dividing_epsilon():
    """The variance of a level over 12 rounds at ε = 1: about a twelfth, before and with the draw of who answers."""
    errors = {each.mode: each for each in round_errors(shop(dn.Rounds(12), epsilon=1.0), YOUNG, 100_000)}
    assert (errors["rotating"].lifetime, errors["fresh"].lifetime) == (1.0, pytest.approx(1.0))
    assert (errors["rotating"].level / errors["fresh"].level) ** 2 == pytest.approx(1 / 12, rel=0.2)
    assert errors["rotating"].change == pytest.approx(2**0.5 * errors["rotating"].level, rel=0.01)


def test_whoever_answers_one_of_two_rounds_does_not_answer_the_other():
    """Without noise and changes, COUNT(*) is twice those who answer: 2·(n₂ − n₁) with n₁ + n₂ = N has variance 4·N."""
    collection, sql = shop(dn.Rounds(2)), "SELECT COUNT(*) AS n FROM users"
    rotating = next(iter(round_errors(collection, sql, 10_000, changing=0.0)))
    assert (rotating.level, rotating.change) == pytest.approx((100.0, 200.0))


def by_mode(collection, **options):
    return {each.mode: each for each in round_errors(collection, YOUNG, 100_000, **options)}


def test_memoised_changes_are_more_precise_than_levels():
    kept = dn.Rounds(12, mode="memoised", permanent=2.0, changes_are_public=True)
    errors = by_mode(shop(kept, epsilon=1.9, design="mg"), changing=0.05)
    assert errors["memoised"].change < errors["memoised"].level
    moving = by_mode(shop(kept, epsilon=1.9, design="mg"), changing=1.0)["memoised"]
    assert moving.change == pytest.approx(2**0.5 * moving.level)
    assert list(errors) == ["rotating", "fresh", "memoised"]
    # Compared at what two people who change in the same rounds are promised: 8 outcomes, 2 each.
    assert [errors[mode].lifetime for mode in ("rotating", "fresh")] == pytest.approx([16.0, 16.0])
    assert errors["memoised"].same_changes == 16.0 < errors["memoised"].lifetime


@pytest.mark.parametrize(("count", "most"), [(2, 0.305), (12, 0.075)])
def test_all_modes_are_compared_at_the_same_lifetime(count, most):
    """At ε = 8 and 5 % who change, a memoised change of a hashed cell has a fraction of the error of a fresh one."""
    wide = dn.Table("users", city=dn.Categorical([f"city {number}" for number in range(2_000)]))
    collection = dn.Collection(wide, epsilon=8.0, design="mg", name="shop", rounds=dn.Rounds(count))
    cell = "SELECT COUNT(*) AS n FROM users WHERE city = 'city 7'"
    errors = {each.mode: each for each in round_errors(collection, cell, 100_000)}
    assert errors["memoised"].same_changes == pytest.approx(8.0, rel=0.01)
    assert errors["memoised"].change < most * errors["fresh"].change
    assert errors["rotating"].level < errors["fresh"].level


def test_who_answers_is_part_of_the_forecast():
    """COUNT(*) of a rotating round is known only up to the draw of who answers."""
    forecast = shop(dn.Rounds(12)).forecast("SELECT COUNT(*) AS n FROM users", users=120_000).scalar()
    assert forecast.stderr == pytest.approx((120_000 * 11) ** 0.5)
    assert forecast.causes["who answers"] == 1.0
    assert (
        answering(shop(dn.Rounds(12, answers=3)), 120_000)
        == "rounds: 12, and about 30,000 of 120,000 users answer each"
    )
    assert "all 9 users" in answering(shop(dn.Rounds(2, mode="fresh")), 9)


def test_explanations_know_rounds(db):
    said = str(db.explain(f"{YOUNG} AND round = 2"))
    assert "rounds: 4, and all 3,000 users answer each" in said
    assert [line.split()[0] for line in said.splitlines() if line.startswith(("rot", "fresh", "memoised "))] == [
        "rotating",
        "fresh",
        "memoised",
    ]


@pytest.mark.slow
def test_forecasts_meet_what_simulations_measure(tmp_path):
    """Errors of a level and of a change over 24 memoised collections, within what so few of them can show."""
    kept = dn.Rounds(2, mode="memoised", permanent=4.0, changes_are_public=True)
    collection = shop(kept, epsilon=3.0, design="mg")
    predicted = {each.mode: each for each in round_errors(collection, YOUNG, 1_500, changing=0.05)}["memoised"]
    rng, levels, changes = np.random.default_rng(4), [], []
    counts = [f"COUNT(*) FILTER (WHERE age < 30 AND round = {number})" for number in (1, 2)]
    for number in range(24):
        before = rng.integers(1, 96, 1_500)
        after = np.where(rng.random(1_500) < 0.05, rng.integers(1, 96, 1_500), before)
        tables = [
            collection.perturb(
                users={"uid": np.arange(1_500) + 10_000 * number, "age": ages},
                round=turn,
                memory=tmp_path / f"{number}",
                source=dn.SeededSource(10 * number + turn),
                simulation=True,
            )["users"]
            for turn, ages in ((1, before), (2, after))
        ]
        asked = dn.connect(dn.Reports(collection, {"users": pa.concat_tables(tables)}, {}))
        level = asked.sql(f"SELECT {counts[1]} AS n FROM users").scalar().value
        change = asked.sql(f"SELECT {counts[1]} - {counts[0]} AS n FROM users").scalar().value
        levels.append(level - (after < 30).sum())
        changes.append(change - ((after < 30).sum() - (before < 30).sum()))
    # A chi of 24 degrees lies within 0.5 and 1.6 of its mean with a chance above 1 − 1e-4.
    assert 0.5 < np.sqrt(np.mean(np.square(levels))) / predicted.level < 1.6
    assert 0.5 < np.sqrt(np.mean(np.square(changes))) / predicted.change < 1.6


def test_the_command_shows_levels_and_changes(tmp_path):
    shop(dn.Rounds(12), epsilon=1.0).save(tmp_path / "shop.toml")
    shown = run("forecast", tmp_path / "shop.toml", "--users", "100000", f"{YOUNG} AND round = 2").stdout
    assert "Rounds: 12" in shown
    assert [line.split()[0] for line in shown.splitlines() if "young" in line][1:] == ["rotating", "fresh", "memoised"]
    assert "about 8,333 of 100,000 users answer each" in shown
    (tmp_path / "questions.sql").write_text(f"{YOUNG};\nSELECT AVG(age) AS age FROM users;\n")
    compared = run("compare", tmp_path / "shop.toml", tmp_path / "questions.sql", "--users", "100000").stdout
    assert [line.split()[:2] for line in compared.splitlines() if "memoised" in line and "young" in line] == [
        ["q1", "memoised"]
    ]
