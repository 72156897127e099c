"""What is too large is refused before any work that grows with it: the work is counted, no clock is read."""

import json
import tomllib
from collections import Counter
from pathlib import Path

import duckdb
import numpy as np
import pytest
import sqlglot

import deniable as dn
from deniable import limits
from deniable.errors import BadInput, InvalidParameter, QueryRefused
from deniable.queries.forecasts import even_means
from deniable.queries.forecasts.forecast import error_of, planned
from deniable.queries.parsing import grammar
from deniable.queries.parsing.sql import parse
from deniable.queries.planning.term_pairs import TermPairs
from deniable.queries.weights import axis_weights
from deniable.tables.designs import DESIGNS
from deniable.tables.schema import attributes as schema

DIGIT = dn.Ordinal(0, 9)
PEOPLE = dn.Table("people", age=dn.Ordinal(0, 94), income=dn.Ordinal(0, 99), city=dn.Public())
SURVEY = dn.Collection(PEOPLE, epsilon=1.0)
PAGE = Path(__file__).parents[1] / "docs" / "reference" / "limits.md"
LONG = "x" * 1_000_000


def specification(**changes):
    attributes = {"a": {"kind": "ordinal", "low": 0, "high": 3}}
    return {"epsilon": 1.0, "tables": {"t": {"attributes": attributes}}, **changes}


def with_attribute(name="a", **fields):
    return specification(tables={"t": {"attributes": {name: fields}}})


@pytest.mark.parametrize("name", [name for name in vars(limits) if name.isupper()])
def test_the_page_states_every_limit(name):
    limit = getattr(limits, name)
    shown = f"{limit // 2**20} MiB" if name.startswith("LARGEST") else f"{limit:,}"
    assert f"| {shown} |" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        (with_attribute(kind="ordinal", low=0, high="1e999999"), "high is beyond"),
        (with_attribute(kind="ordinal", low=0, high="1e-999999"), "high is beyond"),
        (with_attribute(kind="ordinal", low=0, high="1" * 10**6), "high is longer than 400"),
        (with_attribute(kind="ordinal", low=0, high=10**4000), "too large"),
        (with_attribute(kind="ordinal", low="2020-01-01", high="2021-01-01", step="9" * 400 + " s"), "span of time"),
        (with_attribute(kind="categorical", values=["a", LONG]), "over 1,000 characters"),
        (with_attribute(kind="categorical", values=list(range(10**6 + 1))), "more than 1,000,000"),
        (with_attribute(LONG, kind="public"), "longer than 200"),
        (with_attribute(LONG, kind="nothing"), "kind is unknown"),
        (with_attribute(kind="public", **{LONG: 1}), "not a field"),
        (specification(tables={LONG: {"attributes": {"a": {"kind": "public"}}}}), "longer than 200"),
        (specification(tables={LONG: 3}), "named fields"),
        (specification(tables={f"t{number}": {} for number in range(100_000)}), "more than 1,000"),
        (
            specification(tables={"t": {"attributes": {f"a{number}": {} for number in range(100_000)}}}),
            "more than 1,000",
        ),
        (specification(**{LONG: 3}), "not a field"),
        (specification(design="grid", grids={LONG: []}), "not of any table"),
        (specification(design="grid", grids={"t": [{"axes": {LONG: 2}}]}), "names 'xxx"),
        (specification(design="grid", grids={"t": [{"axes": {"a": 2}}] * 5_001}), "more than 5,000 views"),
        (specification(shares={"t": 10**400}), "positive number"),
        (specification(epsilon=10**400), "protects nobody"),
    ],
)
def test_specifications(entries, said):
    with pytest.raises(InvalidParameter, match=said) as refused:
        dn.Collection.from_dict(entries)
    assert len(str(refused.value)) < 600


def test_iterables_are_not_read_to_their_end():
    taken = []

    def without_end():
        while len(taken) < 2 * limits.MOST_CATEGORIES:
            taken.append(len(taken))
            yield len(taken)

    with pytest.raises(InvalidParameter, match="more than"):
        dn.Categorical(without_end())
    assert len(taken) == limits.MOST_CATEGORIES + 1


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.json", "[" * 10**6, "nested too deeply"),
        ("a.toml", "a = " + "[" * 10**5, "nested too deeply"),
        ("a.json", '{"epsilon": ' + "1" * 10**4 + "}", "too many digits"),
        ("a.toml", "epsilon = " + "1" * 10**4, "too many digits"),
        ("a.json", " " * (2**24 + 1), "larger than 16 MiB"),
        ("a.toml", "\n" * (2**20 + 1), "larger than 1 MiB"),
        ("a.toml", ".".join("a" * 50_000) + " = 1", "over 16 parts"),
        ("a.toml", "[" + " . ".join(['"a"'] * 20) + "]", "over 16 parts"),
        ("a.toml", "b = { c.d = 1, " + ".".join("a" * 20) + " = 1 }", "over 16 parts"),
    ],
)
def test_specification_files(tmp_path, monkeypatch, name, text, said):
    if "deeply" not in said and "digits" not in said:  # the others are seen by the parsers themselves, at once
        monkeypatch.setattr(tomllib, "loads", None)
        monkeypatch.setattr(json, "loads", None)
    (tmp_path / name).write_text(text)
    with pytest.raises(InvalidParameter, match=said):
        dn.Collection.load(tmp_path / name)


def test_texts_with_many_points_are_no_keys(tmp_path):
    numbers = dn.Table("t", oid=dn.Categorical(".".join(["1"] * 40), ".".join(["2"] * 40)))
    made = dn.Collection(numbers, epsilon=1.0)
    made.save(tmp_path / "a.toml")
    assert dn.Collection.load(tmp_path / "a.toml") == made


def test_checks_of_a_collection_take_linear_time(monkeypatch):
    calls = Counter()

    def counted(table, fanout, design=DESIGNS["hio"]):
        calls["designs"] += 1
        return design(table, fanout)

    class Name(str):
        def casefold(self):
            calls["names"] += 1
            return super().casefold()

    monkeypatch.setitem(DESIGNS, "hio", counted)
    tables = [dn.Table(f"t{number}", a=DIGIT) for number in range(60)]
    made = dn.Collection(*tables, epsilon=1.0)
    assert calls["designs"] <= 120
    assert made.epsilon_per_report("t7") <= 1 / 60
    assert calls["designs"] <= 120
    schema.repeated(Name(f"t{number}") for number in range(60))
    assert calls["names"] <= 120


@pytest.mark.parametrize(
    ("design", "problem"),
    [
        *((design, r"has over 2\^32 views in design") for design in ("hio", "sr-hio", "ahio", "ehio")),
        ("grid", "has too many attributes for a view of every pair: over 5,000"),
    ],
)
def test_designs_that_would_have_too_many_views_are_not_built(monkeypatch, design, problem):
    monkeypatch.setitem(DESIGNS, design, None)
    wide = dn.Table("t", **{f"a{number}": DIGIT for number in range(500)})
    with pytest.raises(InvalidParameter, match=f"^table 't' {problem}"):
        dn.Collection(wide, epsilon=1.0, design=design)


WHERE = "SELECT COUNT(*) FROM people WHERE "


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (WHERE + "(" * 5_000, "nested more than 32 deep"),
        (WHERE + "'é' = '(((' AND " + "(" * 33 + "age < 3" + ")" * 33, r"nested more than 32 deep \(at character 83"),
        (WHERE + "[" * 40, "nested more than 32 deep"),
        (WHERE + "NOT " * 20_000 + "age < 3", "over 10,000 words"),
        (WHERE + "age IN (" + ",".join(["3"] * 20_000) + ")", "over 10,000 words"),
        ("SELECT " + "1, " * 20_000, "over 10,000 words"),
        (WHERE + "age < 3 " + " " * 100_000, "longer than 100,000"),
        (WHERE + "city = '\ud800'", "unpaired surrogate"),
    ],
)
def test_texts_that_no_parser_sees(monkeypatch, text, said):
    monkeypatch.setattr(grammar, "_parser", None)
    monkeypatch.setattr(sqlglot, "parse", None)
    with pytest.raises(QueryRefused, match=said):
        parse(text, SURVEY)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"SELECT COUNT(*) AS {'x' * 201} FROM people", "a name has more than 200"),
        (f"SELECT SUM({'x' * 90_000}) FROM people", "a name has more than 200"),
        (f"SELECT COUNT(*) FROM {'x' * 90_000}", "a name has more than 200"),
        ("SELECT " + ", ".join(f"SUM({n} * age) AS a{n}" for n in range(1, 1_001)) + " FROM people", "SELECT lists"),
        ("SELECT COUNT(*) FROM people ORDER BY " + ", ".join(["COUNT(*)"] * 201), "ORDER lists"),
        ("SELECT COUNT(*) FROM people GROUP BY " + ", ".join(["age"] * 201), "GROUP lists"),
        ("SELECT COUNT(*) FROM people HAVING " + " AND ".join(["COUNT(*) > 1"] * 202), "HAVING has more than 200"),
        ("SELECT age, income, " + ", ".join(f"SUM({n} * age) AS a{n}" for n in range(1, 100))
         + " FROM people GROUP BY age, income", "too much memory"),
    ],
)  # fmt: skip
def test_questions(text, said):
    with pytest.raises(QueryRefused, match=said) as refused:
        planned(SURVEY, text, "optimal", "direct", 1_000)
    assert len(str(refused.value)) < 600


def test_sums_of_a_question(monkeypatch):
    monkeypatch.setattr("deniable.queries.parsing.aggregates.MOST_MOMENTS", 3)
    parse("SELECT SUM(age), SUM(2 * age), SUM(3 * age) FROM people", SURVEY)
    with pytest.raises(QueryRefused, match="over 3 sums"):
        parse("SELECT SUM(age), SUM(2 * age), AVG(3 * age) FROM people", SURVEY)


def test_brackets_and_comments_of_plain_questions():
    deep = "(" * 30 + "age < 3" + ")" * 30
    for text in (
        f"{WHERE}{deep[20:-20]} AND {deep[20:-20]}",
        f"{WHERE}city = '{'(' * 100}' AND age < 3",
        f"{WHERE}age < 3 -- {'(' * 100}",
        f"{WHERE}age < 3 /* {'(' * 100} */",
    ):
        assert parse(text, SURVEY).moments


def test_sums_of_the_same_share_their_weights(monkeypatch):
    calls = Counter()

    def counted(name, function):
        def call(*given, **named):
            calls[name] += 1
            return function(*given, **named)

        return call

    monkeypatch.setattr(axis_weights, "_weigh_family", counted("weights", axis_weights._weigh_family))
    monkeypatch.setattr(even_means.AttributeFunctions, "of", counted("means", even_means.AttributeFunctions.of))
    sums = ", ".join(f"SUM({number} * age) AS a{number}" for number in range(1, 31))
    plan = planned(SURVEY, f"SELECT {sums} FROM people WHERE income < 50", "optimal", "direct", 1_000)
    assert error_of(plan, 1_000) > 0
    assert calls["weights"] == 1
    assert calls["means"] <= 20  # per attribute and stage, not per pair of answers


def test_pairs_of_terms_are_counted_first(monkeypatch):
    plan = planned(
        SURVEY, "SELECT COUNT(*), SUM(age), SUM(income) FROM people WHERE age < 3", "optimal", "direct", 1_000
    )
    monkeypatch.setattr("deniable.queries.planning.term_pairs.MOST_CROSSES", 8)
    with pytest.raises(QueryRefused, match="too many groups, or terms"):
        TermPairs.of(plan, np.zeros(1, dtype=np.int64))


def test_what_is_not_there_is_said_briefly():
    wide = dn.Collection(*(dn.Table(f"table_{number}", a=DIGIT) for number in range(300)), epsilon=1.0)
    for ask in (lambda: wide[LONG], lambda: parse("SELECT COUNT(*) FROM nothing", wide)):
        with pytest.raises(BadInput, match="300 in all") as refused:
            ask()
        assert len(str(refused.value)) < 400


def test_duckdb_counts_tokens_in_bytes():
    assert [start for start, _ in duckdb.tokenize("'é' (")] == [0, 5]
