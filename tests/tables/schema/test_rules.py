"""Rules for values without a place: part of a specification, and the same on a device and in bulk."""

import random
from datetime import date

import pyarrow as pa
import pytest

import deniable as dn
from deniable.errors import InvalidParameter, QueryRefused
from deniable.tables.bulk.column_encoding import REASONS, encode
from deniable.tables.schema.placing import Unplaceable

NUMBERS = [
    dn.Ordinal(0, 100, outside="clip", round=True, missing=3),
    dn.Ordinal("0", "9.99", "0.01", round=True),
    dn.Ordinal(-5, 5, outside="clip"),
    dn.Ordinal(1, 9, 2, round=True, outside="clip"),
    dn.Ordinal("0.5", "4.5", "0.5", round=True, outside="clip", missing="1.5"),
]
SEXES = dn.Categorical("male", "female", "?", map={"M": "male", "F": "female"}, other="?", missing="?")


def placed(domain, value):
    try:
        return domain.encode(value), ""
    except Unplaceable as odd:
        return 0, odd.reason


@pytest.mark.parametrize("domain", NUMBERS, ids=str)
@pytest.mark.parametrize("kind", [int, float])
def test_numbers_have_the_same_place_on_a_device_and_in_bulk(domain, kind):
    chance = random.Random(1)  # noqa: S311 - which numbers are tried is no secret
    odd = [2.675, 0.125, 0.005, 1.5, 2.5, -0.5, 100.5, float("nan")]
    floats = [chance.choice([round(chance.uniform(-20, 130), chance.randint(0, 4)), *odd]) for _ in range(500)]
    values = [*(floats if kind is float else range(-20, 130)), None]
    codes, problems = encode(domain, pa.array(values, pa.float64() if kind is float else pa.int64()))
    bulk = [(int(code), REASONS[problem]) for code, problem in zip(codes, problems, strict=True)]
    assert bulk == [placed(domain, value) for value in values]


def test_categories_and_dates_have_the_same_place_on_a_device_and_in_bulk():
    days = dn.Ordinal(date(2024, 1, 1), date(2024, 12, 31), outside="clip", missing=date(2024, 6, 1))
    plain = dn.Categorical("a", "b", map={"A": "a"})
    for domain, values in (
        (SEXES, ["male", "M", "F", "x", None, "?"]),
        (plain, ["a", "A", "x", None]),
        (dn.Categorical(1, 2, 3, other=3, missing=1), [1, 7, None]),
        (days, [date(2023, 1, 1), date(2025, 1, 1), date(2024, 5, 5), None]),
    ):
        codes, problems = encode(domain, pa.array(values))
        bulk = [(int(code), REASONS[problem]) for code, problem in zip(codes, problems, strict=True)]
        assert bulk == [placed(domain, value) for value in values]


def test_rules_are_part_of_the_specification_and_of_its_hash(tmp_path):
    plain = dn.Collection(dn.Table("t", a=dn.Ordinal(0, 100)), epsilon=1.0)
    ruled = dn.Collection(dn.Table("t", a=NUMBERS[0], b=NUMBERS[4], c=SEXES), epsilon=1.0)
    assert "outside" not in str(plain.to_dict())
    assert (
        ruled.sha256
        != dn.Collection(dn.Table("t", a=NUMBERS[0], b=NUMBERS[4], c=dn.Categorical(*SEXES.values)), epsilon=1.0).sha256
    )
    for name in ("x.toml", "x.json"):
        ruled.save(tmp_path / name)
        assert dn.Collection.load(tmp_path / name) == ruled


def test_rows_that_rules_mend_are_not_rejected():
    frame = {"uid": range(300), "a": [1.25, 250.0, None] * 100, "c": ["M", "odd", None] * 100}
    plain = dn.Collection(dn.Table("t", a=dn.Ordinal(0, 100), c=dn.Categorical(*SEXES.values)), epsilon=1.0)
    ruled = dn.Collection(dn.Table("t", a=NUMBERS[0], c=SEXES), epsilon=1.0)
    assert plain.inspect(t=frame)["t"].share == 1.0
    with pytest.raises(dn.DeniableError, match=r"100 % of the rows .* a: round = true"):
        plain.perturb(t=frame)
    assert ruled.inspect(t=frame)["t"].problems == {}
    database = dn.connect(ruled.perturb(t=frame))
    with pytest.raises(QueryRefused, match="missing values of 'a' were replaced"):
        database.sql("SELECT COUNT(*) FROM t WHERE a IS NULL")
    assert database.sql("SELECT COUNT(a) FROM t").scalar().value == 300


@pytest.mark.parametrize(
    "rules",
    [{"outside": "cut"}, {"round": 1}, {"missing": 300}, {"missing": "x"}],
)
def test_rules_that_mean_nothing_are_refused(rules):
    with pytest.raises(InvalidParameter):
        dn.Ordinal(0, 100, **rules)


@pytest.mark.parametrize(
    "rules", [{"other": "z"}, {"missing": 3}, {"map": {"x": "z"}}, {"map": {"a": "b"}}, {"odd": 1}]
)
def test_rules_of_categories_that_mean_nothing_are_refused(rules):
    with pytest.raises(InvalidParameter):
        dn.Categorical("a", "b", **rules)
