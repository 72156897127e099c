"""Groups of users that were drawn by chance: each says something about all of them."""

from itertools import combinations

import numpy as np
import pytest

import deniable as dn
from deniable.errors import InvalidParameter
from deniable.queries.answers.alike_groups import NOT_ALIKE, inverse_weights

TABLE = dn.Table("p", a=dn.Ordinal(0, 99), kind=dn.Categorical("x", "y"), city=dn.Public())
QUESTIONS = (
    "SELECT COUNT(*) FROM p WHERE a < 20",
    "SELECT SUM(a) FROM p WHERE a < 50",
    "SELECT AVG(a) FROM p WHERE kind = 'x'",
    "SELECT kind, COUNT(*) FROM p GROUP BY kind",
    "SELECT city, AVG(a) FROM p GROUP BY city",
    "SELECT kind, COUNT(*) FROM p WHERE a < 20 GROUP BY kind HAVING COUNT(*) > 100",
    "SELECT MEDIAN(a) FROM p",
)

VIEWS = [dn.GridView({"a": dn.Cells((0, 20, 50)), "kind": 2})]
DESIGNS = {"hio": {"design": "hio"}, "grid": {"design": "grid", "grids": {"p": VIEWS}}}


def people(count, random):
    values = np.clip(np.exp(random.normal(3, 0.8, count)), 0, 99).astype(int)
    return {
        "uid": np.arange(count),
        "a": values,
        "kind": np.where(random.random(count) < 0.3 + values / 200, "x", "y"),
        "city": random.choice(["s", "t"], count),
    }


def sent(rows, who, seed, table=TABLE, **settings):
    collection = dn.Collection(table, **{"epsilon": 2.0, **settings})
    mine = {name: values[who] for name, values in rows.items()}
    return collection.perturb(p=mine, source=dn.SeededSource(seed), simulation=True)


def flat(result):
    return [estimate for each in result.answers.values() for estimate in each]


def test_without_noise_alike_groups_are_plain_sql():
    rows = people(1_000, np.random.default_rng(1))
    early = np.random.default_rng(2).random(1_000) < 0.2
    exact = {"epsilon": float("inf"), "design": "mg"}
    groups = [sent(rows, early, 1, **exact), sent(rows, ~early, 2, **exact)]
    both, whole = dn.connect(groups, alike=True), dn.connect(sent(rows, early | ~early, 3, **exact))
    for text in QUESTIONS:
        mine, plain = both.sql(text), whole.sql(text)
        assert mine.groups == plain.groups
        for answer, expected in zip(flat(mine), flat(plain), strict=True):
            assert answer.value == pytest.approx(expected.value)


def test_weights_minimise_the_error_and_add_up_to_all_users():
    users, spreads = np.array([[100.0], [900.0], [0.0]]), np.array([[400.0], [900.0], [0.0]])
    weights = inverse_weights(users, spreads)
    assert (weights * users).sum() == pytest.approx(1_000)
    best = (weights**2 * spreads).sum()
    for moved in (-0.1, 0.1):  # what one group counts more, the other counts less
        other = weights + np.array([[moved], [-moved / 9], [0.0]])
        assert (other**2 * spreads).sum() > best
    # Groups whose users say equally much are added up, and so is what has no noise in one of them.
    assert inverse_weights(users, users * 3.0)[:2].ravel() == pytest.approx([1, 1])
    assert inverse_weights(users, np.array([[0.0], [900.0], [0.0]])).ravel().tolist() == [1, 1, 1]


def test_the_stated_variance_is_that_over_all_draws_of_the_groups():
    """Σ α_g²·V_g − N·Q, enumerated: six users, of whom any two are in the first group, and independent noise."""
    worth, noise = np.array([0.0, 0.0, 1.0, 3.0, 1.0, 2.0]), np.array([4.0, 0.25])
    total, spread = worth.sum(), worth.var()
    users = np.array([[2.0], [4.0]])
    # What users of a group contribute varies with their noise and with what they are worth.
    spreads = users * (noise + spread)[:, None]
    first, second = inverse_weights(users, spreads).ravel()
    errors = []
    for early in combinations(range(6), 2):
        mine = worth[list(early)].sum()
        errors.append(first * mine + second * (total - mine) - total)
    assert np.mean(errors) == pytest.approx(0)
    # Σ (f − mean)² over a population of N has N·Q, and a draw of the groups is without replacement: N/(N − 1) of it.
    drawn = np.mean(np.square(errors))
    of_noise = first**2 * 2 * noise[0] + second**2 * 4 * noise[1]
    stated = first**2 * spreads[0, 0] + second**2 * spreads[1, 0] - 6 * spread
    assert of_noise + drawn * 5 / 6 == pytest.approx(stated)


@pytest.mark.parametrize(("designs", "least"), [(("hio", "grid"), 1.2), (("grid", "hio"), 1.0), (("hio", "hio"), 0.9)])
def test_a_noisy_group_is_read_off_the_other_and_intervals_hold_the_truth(designs, least):
    random = np.random.default_rng(3)
    rows = people(12_000, random)
    texts = [*QUESTIONS[:3], "SELECT COUNT(*) FROM p WHERE kind = 'x' AND a < 50"]
    masks = [rows["a"] < 20, rows["a"] < 50, rows["kind"] == "x", (rows["kind"] == "x") & (rows["a"] < 50)]
    truths = [masks[0].sum(), rows["a"][masks[1]].sum(), rows["a"][masks[2]].mean(), masks[3].sum()]
    covered, squares = 0, np.zeros((2, len(texts)))
    for release in range(12):
        early = random.random(12_000) < 0.15
        groups = [
            sent(rows, who, 10 * release + number, **DESIGNS[design])
            for number, (who, design) in enumerate(zip((early, ~early), designs, strict=True))
        ]
        for kind, both in enumerate((dn.connect(groups), dn.connect(groups, alike=True))):
            for number, (text, truth) in enumerate(zip(texts, truths, strict=True)):
                answer = both.sql(text).scalar()
                squares[kind, number] += (answer.value - truth) ** 2
                covered += kind * (answer.interval[0] <= truth <= answer.interval[1])
    assert covered >= 41  # of 48, at 95 %: fewer have a chance of 10^-3
    # Weights take a model error at its word: that of an average inside of cells may be far less than stated.
    gain = np.sqrt(squares[0] / squares[1])[[0, 1, 3]]
    assert np.prod(gain) ** (1 / 3) > least


def test_an_explanation_counts_what_the_draw_of_the_groups_leaves_open():
    rows = people(20_000, np.random.default_rng(4))
    early = np.random.default_rng(5).random(20_000) < 0.1
    groups = [sent(rows, early, 1), sent(rows, ~early, 2, **DESIGNS["grid"])]
    plain, alike = dn.connect(groups), dn.connect(groups, alike=True)
    text = "SELECT COUNT(*) FROM p WHERE a < 20"
    apart, together = (db.explain(text).forecast.scalar() for db in (plain, alike))
    assert together.stderr < 0.9 * apart.stderr
    assert together.stderr == pytest.approx(alike.sql(text).scalar().stderr, rel=0.3)
    assert sum(together.causes.values()) == pytest.approx(1)
    # A liar in the group that counts for more moves the answer more, and the other way round.
    weights = alike._together([group._read(group.plan(text)) for group in alike.groups]).weights
    moved = [group.influence(text)[0].reached for group in alike.groups]
    (liar,) = alike.influence(text)
    assert liar.reached == pytest.approx(max(m * w.max() for m, w in zip(moved, weights, strict=True)), rel=0.01)
    assert weights[0].max() < 1 < weights[1].max()


def test_groups_that_chance_does_not_explain_are_only_added_up():
    rows = people(20_000, np.random.default_rng(6))
    early = rows["a"] < 20  # nobody drew these
    groups = [sent(rows, early, 1), sent(rows, ~early, 2)]
    plain, alike = (dn.connect(groups, alike=said).sql(QUESTIONS[0]) for said in (False, True))
    assert NOT_ALIKE in alike.notes
    assert NOT_ALIKE not in plain.notes
    assert alike.scalar() == plain.scalar()


def test_one_collection_has_no_groups_that_could_be_alike(tmp_path):
    rows = people(100, np.random.default_rng(7))
    report = sent(rows, rows["uid"] < 50, 1)
    with pytest.raises(InvalidParameter, match="several groups of users"):
        dn.connect(report, alike=True)
    with pytest.raises(InvalidParameter, match="there is one"):
        dn.plan(TABLE, list(QUESTIONS[:1]), epsilon=1.0, users=100, alike=True)
    both = dn.connect([report, sent(rows, rows["uid"] >= 50, 2)], alike=True)
    assert repr(both).endswith("; alike)")
    assert both.alike
