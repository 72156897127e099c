"""Questions about words that nobody listed: exact without noise, and within the stated rates with it."""

import math
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.engines.collecting.collected_reports import Reports
from deniable.errors import QueryRefused
from deniable.queries.words.prefix_walk import FALSE_POSITIVES
from deniable.tables.reports.report_table import report_schema

GROUPED = "SELECT word, COUNT(*) AS n FROM words GROUP BY word ORDER BY n DESC, word"
HELD = ["news"] * 9 + ["new"] * 5 + ["mail", "n", "", "日本", "newspapers", "mailbox", "xylophones"] * 2


@cache
def exhaustive():
    """A database without noise; every view was observed once for every word, and twice where it is twice as likely."""
    collection = dn.Collection(dn.Table("words", word=dn.Text(10)), epsilon=math.inf)
    domain, design = collection["words"].domains[0], collection.design_of("words")
    views, cells = [], []
    for view in design:
        times = int(view.probability * 11)
        numbers = [view.group.number(view.levels, (domain.encode(word),)) for word in HELD]
        views += [view.number] * times * len(HELD)
        cells += numbers * times
    schema = report_schema(collection, "words", pa.int64(), {}, simulation=True)
    blank = np.zeros(len(views), dtype=np.int64)
    made = pa.table({"uid": np.arange(len(views)), "slot": blank, "view": views, "seed": blank, "y": cells})
    reports = made.cast(schema.remove_metadata()).replace_schema_metadata(schema.metadata)
    return dn.connect(Reports(collection, {"words": reports}, {}))


def estimates(database, text):
    """Answers by their group."""
    result = database.sql(text)
    (groups,), (answers,) = result.groups.values(), result.answers.values()
    return dict(zip(groups, answers, strict=True))


def counts(database, text):
    return {word: estimate.value / 11 for word, estimate in estimates(database, text).items()}


def test_without_noise_all_words_are_listed_with_their_counts():
    database = exhaustive()
    expected = {word: HELD.count(word) for word in HELD}
    assert counts(database, GROUPED) == pytest.approx(expected)
    assert list(counts(database, GROUPED))[:2] == ["news", "new"]


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ("word = 'new'", lambda word: word == "new"),
        ("'new' = word", lambda word: word == "new"),
        ("word <> 'news'", lambda word: word != "news"),
        ("word IN ('news', 'n', 'absent')", lambda word: word in ("news", "n")),
        ("word NOT IN ('news', '')", lambda word: word not in ("news", "")),
        ("word LIKE 'new%'", lambda word: word.startswith("new")),
        ("word LIKE 'n%' AND word NOT LIKE 'news%'", lambda word: word.startswith("n") and not word.startswith("news")),
        ("starts_with(word, 'mail') OR word = '日本'", lambda word: word.startswith("mail") or word == "日本"),
        ("word LIKE 'xylophones%'", lambda word: word == "xylophones"),
        ("word = 'a word that is far too long'", lambda _: False),
        ("word LIKE 'new%' AND word <> 'new'", lambda word: word.startswith("new") and word != "new"),
    ],
)  # fmt: skip
def test_without_noise_conditions_count_exactly(condition, holds):
    database = exhaustive()
    answer = database.sql(f"SELECT COUNT(*) AS n FROM words WHERE {condition}").scalar().value
    assert answer / 11 == pytest.approx(sum(map(holds, HELD)), abs=1e-9)


def test_groups_follow_conditions():
    database = exhaustive()
    assert counts(database, GROUPED.replace(" GROUP", " WHERE word IN ('mail', 'new') GROUP")) == {"new": 5, "mail": 2}
    assert counts(database, GROUPED.replace(" GROUP", " WHERE word LIKE 'new%' GROUP")) == pytest.approx(
        {"news": 9, "new": 5, "newspapers": 2}
    )
    assert counts(database, GROUPED.replace(" ORDER", " HAVING COUNT(*) > 50 ORDER")) == pytest.approx(
        {"news": 9, "new": 5}
    )


@pytest.mark.parametrize(
    ("text", "happened"),
    [
        ("SELECT COUNT(*) FROM words WHERE length(word) > 3", "listed words and prefixes only"),
        ("SELECT COUNT(*) FROM words WHERE word LIKE '%x'", "listed words and prefixes only"),
        ("SELECT COUNT(*) FROM words WHERE word LIKE 'a_b%'", "listed words and prefixes only"),
        ("SELECT COUNT(*) FROM words WHERE word > 'x'", "categories have no order"),
        ("SELECT COUNT(*) FROM words WHERE word = 'ne' || 'w'", "compared with something that is computed"),
        ("SELECT upper(word), COUNT(*) FROM words GROUP BY 1", "listed words and prefixes only"),
    ],
)
def test_what_cannot_be_known_of_words_is_refused(text, happened):
    with pytest.raises(QueryRefused, match=happened):
        exhaustive().sql(text)


@pytest.fixture(scope="module")
def noisy():
    random = np.random.default_rng(5)
    words = np.array([f"word{number}" for number in range(40)])
    held = random.choice(words, 20_000, p=np.r_[0.3, 0.2, 0.1, np.full(37, 0.4 / 37)])
    collection = dn.Collection(
        dn.Table("words", word=dn.Text(8, alphabet="dorw0123456789")),
        dn.Table("users", old=dn.Ordinal(0, 1)),
        epsilon=8.0,
    )
    rows = {"words": {"uid": np.arange(20_000), "word": held.tolist()}}
    rows["users"] = {"uid": np.arange(20_000), "old": (held == "word1").astype(int)}
    return held, dn.connect(collection.perturb(**rows, source=dn.SeededSource(6), simulation=True))


def test_frequent_words_are_listed_and_a_note_says_what_that_means(noisy):
    held, database = noisy
    answer = database.sql(GROUPED)
    words = list(answer.groups["word"])
    assert words[:3] == ["word0", "word1", "word2"]
    assert set(words) <= set(held.tolist())
    for word, estimate in zip(words[:3], answer.answers["n"], strict=False):
        assert abs(estimate.value - np.count_nonzero(held == word)) < 5 * estimate.stderr
    (note,) = [note for note in answer.notes if "threshold" in note]
    assert f"With a chance of at most {FALSE_POSITIVES:.0%}, some listed word is nobody's" in note


def test_words_join_other_tables(noisy):
    _, database = noisy
    answer = estimates(
        database,
        "SELECT word, COUNT(*) AS n FROM words JOIN users USING (uid) WHERE old = 1 AND word IN ('word0', 'word1') GROUP BY word",  # noqa: E501
    )
    assert abs(answer["word1"].value - 4_000) < 5 * answer["word1"].stderr
    assert abs(answer["word0"].value) < 5 * answer["word0"].stderr


@pytest.mark.parametrize(
    "settings", [{}, {"coins": "assigned"}, {"ids": "pseudonym"}], ids=["drawn", "assigned", "names"]
)
def test_words_that_devices_report_are_found(settings, tmp_path):
    table = dn.Table("words", word=dn.Text(4, alphabet="abn"))
    collection = dn.Collection(table, epsilon=12.0, name="words", **settings)
    lines = []
    for user in range(90):
        named = "ids" in settings
        client = collection.client(tmp_path / f"{user}.json") if named else collection.client(user=user)
        report = client.report("words", {"word": "ban" if user % 3 else "nab"})
        lines.append(client.bundle().to_json() if named else report.to_json(uid=user, table="words"))
    found = estimates(dn.connect(collection.gather(lines)), GROUPED)
    assert set(found) == {"ban", "nab"}
    assert abs(found["ban"].value - 60) < 7 * found["ban"].stderr


def test_nothing_is_listed_where_no_word_is_common():
    held = np.random.default_rng(1).integers(97, 123, (300, 8), dtype=np.uint8).view("S8").ravel().astype(str)
    collection = dn.Collection(dn.Table("words", word=dn.Text(8, alphabet="abcdefghijklmnopqrstuvwxyz")), epsilon=1.0)
    rows = {"uid": np.arange(300), "word": held.tolist()}
    answer = dn.connect(collection.perturb(words=rows, source=dn.SeededSource(1), simulation=True)).sql(GROUPED)
    assert len(answer) == 0
    assert any("0 words estimated above the threshold" in note for note in answer.notes)


def test_a_forecast_says_how_common_a_word_has_to_be():
    collection = dn.Collection(dn.Table("words", word=dn.Text(8)), epsilon=2.0)
    forecast = collection.forecast("SELECT COUNT(*) FROM words WHERE word = 'news'", users=100_000)
    oracle = collection.design_of("words").view(7).oracle
    p, q = float(oracle.p), float(oracle.q)
    share, shown = 0.5, 5 / 9  # half of all rows; levels of 5, 6 and 7 bytes, and twice that of 8
    noise = (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2 + share * (1 - share) * (1 - shown)
    assert forecast.scalar().stderr == pytest.approx((100_000 * noise / shown) ** 0.5, rel=0.02)
    with pytest.raises(QueryRefused, match="likely to be found if about"):
        collection.forecast(GROUPED, users=100_000)


@pytest.mark.slow
def test_words_that_nobody_has_are_listed_as_rarely_as_stated():
    wrong = 0
    for seed in range(60):
        random = np.random.default_rng([seed, 1])
        held = random.integers(97, 123, (4_000, 6), dtype=np.uint8).view("S6").ravel().astype(str)
        collection = dn.Collection(
            dn.Table("words", word=dn.Text(6, alphabet="abcdefghijklmnopqrstuvwxyz")), epsilon=2.0
        )
        rows = {"uid": np.arange(held.size), "word": held.tolist()}
        database = dn.connect(collection.perturb(words=rows, source=dn.SeededSource(seed), simulation=True))
        wrong += bool(set(database.sql(GROUPED).groups["word"]) - set(held.tolist()))
    assert wrong <= 10  # a rate of 5 % exceeds this with a chance of 1.3e-4
