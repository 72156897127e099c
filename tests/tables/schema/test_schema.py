import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.errors import InvalidData, InvalidParameter
from deniable.tables.bulk.column_encoding import REASONS, encode

DOMAINS = {
    "integers": dn.Ordinal(-3, 95),
    "even integers": dn.Ordinal(0, 100, 2),
    "cents": dn.Ordinal(0, "9.99", "0.01"),
    "tenths": dn.Ordinal(-1.5, 1.5, 0.1),
    "days": dn.Ordinal(date(2020, 1, 1), date(2020, 12, 31)),
    "weeks": dn.Ordinal(date(2020, 1, 6), date(2020, 12, 28), "week"),
    "hours": dn.Ordinal(datetime(2020, 1, 1), datetime(2020, 1, 2, 23), "hour"),
    "texts": dn.Categorical("a", "b", "ü"),
    "numbers": dn.Categorical([5, 3, -7]),
    "truth": dn.Categorical(True, False),
}


@pytest.mark.parametrize("name", DOMAINS)
def test_every_place_of_a_domain_is_read_back(name):
    domain = DOMAINS[name]
    for code in range(domain.size):
        assert domain.encode(domain.decode(code)) == code


@pytest.mark.parametrize("name", DOMAINS)
def test_arrays_are_encoded_like_single_values(name):
    domain = DOMAINS[name]
    values = [domain.decode(code) for code in range(domain.size)]
    column = pa.array(list(map(float, values)) if name in ("cents", "tenths") else values)
    codes, problems = encode(domain, column)
    assert codes.tolist() == list(range(domain.size))
    assert not problems.any()


def test_sizes():
    assert {name: domain.size for name, domain in DOMAINS.items()} == {
        "integers": 99,
        "even integers": 51,
        "cents": 1000,
        "tenths": 31,
        "days": 366,
        "weeks": 52,
        "hours": 48,
        "texts": 3,
        "numbers": 3,
        "truth": 2,
    }


def test_points_in_time_belong_to_their_interval():
    hours = DOMAINS["hours"]
    assert hours.encode(datetime(2020, 1, 1, 5, 59, 59)) == 5
    assert encode(hours, pa.array([datetime(2020, 1, 1, 5, 59, 59)]))[0].tolist() == [5]
    days = DOMAINS["days"]
    assert days.encode(datetime(2020, 1, 2, 23)) == 1
    assert encode(days, pa.array([datetime(2020, 1, 2, 23)]))[0].tolist() == [1]


BAD = [
    ("integers", 96, "outside the domain"),
    ("integers", -4, "outside the domain"),
    ("integers", 2**62, "outside the domain"),
    ("integers", 2.5, "not on the grid"),
    ("even integers", 3, "not on the grid"),
    ("cents", 1.234, "not on the grid"),
    ("cents", 10.0, "outside the domain"),
    ("integers", "5", "of the wrong type"),
    ("integers", True, "of the wrong type"),
    ("integers", None, "missing"),
    ("days", 5, "of the wrong type"),
    ("days", date(2021, 1, 1), "outside the domain"),
    ("hours", datetime(2019, 12, 31, 23, 59), "outside the domain"),
    ("texts", "z", "outside the domain"),
    ("texts", 1, "of the wrong type"),
    ("texts", None, "missing"),
    ("numbers", 4, "outside the domain"),
    ("numbers", "5", "of the wrong type"),
    ("truth", 1, "of the wrong type"),
]


@pytest.mark.parametrize(("name", "value", "reason"), BAD)
def test_values_without_a_place_are_refused_alike_and_not_repeated(name, value, reason):
    with pytest.raises(InvalidData, match=reason) as caught:
        DOMAINS[name].encode(value)
    assert str(value) not in str(caught.value) or len(str(value)) == 1
    codes, problems = encode(DOMAINS[name], pa.array([value]))
    assert (codes.tolist(), REASONS[problems[0]]) == ([0], reason)


@given(
    st.lists(st.one_of(st.none(), st.floats(allow_nan=True, width=32), st.integers(-200, 200).map(float)), min_size=1)
)
def test_float_columns_agree_with_single_values(values):
    domain = DOMAINS["integers"]
    codes, problems = encode(domain, pa.array(values, type=pa.float64()))
    for value, code, problem in zip(values, codes, problems, strict=True):
        if value is not None and not math.isfinite(value):
            assert problem
            continue
        if problem:
            with pytest.raises(InvalidData, match=REASONS[problem]):
                domain.encode(value)
        else:
            assert domain.encode(value) == code


@pytest.mark.parametrize(
    "kind",
    [
        pa.int8(),
        pa.uint8(),
        pa.int16(),
        pa.uint64(),
        pa.float32(),
        pa.decimal128(20, 1),
        pa.dictionary(pa.int8(), pa.int64()),
    ],
)
def test_numbers_of_any_type(kind):
    column = pa.array([5, 90]).cast(kind) if not pa.types.is_dictionary(kind) else pa.array([5, 90]).dictionary_encode()
    assert encode(DOMAINS["integers"], column)[0].tolist() == [8, 93]


def test_huge_unsigned_numbers_are_outside():
    codes, problems = encode(DOMAINS["integers"], pa.array([2**64 - 1], type=pa.uint64()))
    assert REASONS[problems[0]] == "outside the domain"
    assert codes.tolist() == [0]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())])
def test_texts_of_any_type(kind):
    assert encode(DOMAINS["texts"], pa.array(["ü", "a"]).cast(kind))[0].tolist() == [2, 0]


def test_times_with_a_zone_are_of_the_wrong_type():
    zoned = datetime(2020, 1, 1, tzinfo=UTC)
    with pytest.raises(InvalidData, match="wrong type"):
        DOMAINS["hours"].encode(zoned)
    assert REASONS[encode(DOMAINS["hours"], pa.array([zoned]))[1][0]] == "of the wrong type"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dn.Ordinal(5, 1), "low is above high"),
        (lambda: dn.Ordinal(1, 1), "gives 1 value instead"),
        (lambda: dn.Ordinal(0, 2**40), "gives 1,099,511,627,777 values"),
        (lambda: dn.Ordinal(0, 10, 3), "high is not a whole number of steps"),
        (lambda: dn.Ordinal(0, 10, 0), "step must be a positive number"),
        (lambda: dn.Ordinal(0, math.inf), "high must be finite"),
        (lambda: dn.Ordinal(0, "ten"), "high must be a number"),
        (lambda: dn.Ordinal(0, date(2020, 1, 1)), "low and high must be of one kind"),
        (lambda: dn.Ordinal(date(2020, 1, 1), date(2020, 1, 9), "hour"), "step must be whole days"),
        (lambda: dn.Ordinal(date(2020, 1, 1), date(2020, 1, 9), "decade"), "step must be a span of time"),
        (lambda: dn.Ordinal(datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 9)), "low has a time zone"),
        (lambda: dn.Categorical(), "values must be at least two"),
        (lambda: dn.Categorical("a"), "values must be at least two"),
        (lambda: dn.Categorical("a", "a"), "values list something twice"),
        (lambda: dn.Categorical("a", 1), "values must be all texts"),
        (lambda: dn.Categorical(1.5, 2.5), "values must be all texts"),
        (lambda: dn.Table("t"), "collects nothing private"),
        (lambda: dn.Table("t", a=dn.Public()), "collects nothing private"),
        (lambda: dn.Table("a b", a=dn.Categorical("x", "y")), "table name"),
        (lambda: dn.Table("out", a=dn.Categorical("x", "y")), "argument of perturb"),
        (lambda: dn.Table("t", UID=dn.Categorical("x", "y")), "attribute 'UID' is the column of user ids"),
        (lambda: dn.Table("t", a=5), "attribute 'a' is not an attribute"),
        (lambda: dn.Table("t", tau=2, a=dn.Categorical("x", "y")), "tau is for tables with many rows"),
        (lambda: dn.Table("t", tau=True, a=dn.Categorical("x", "y")), "tau is for tables with many rows"),
        (lambda: dn.Table("t", tau=1.0, a=dn.Categorical("x", "y")), "tau is for tables with many rows"),
        (lambda: dn.Table("t", many=3, tau=4, a=dn.Categorical("x", "y")), "tau must be 1 to many"),
        (lambda: dn.Table("t", many=0, a=dn.Categorical("x", "y")), "many must be 1 to"),
    ],
)
def test_every_mistake_names_the_field_and_the_repair(make, message):
    with pytest.raises(InvalidParameter) as caught:
        make()
    assert message in str(caught.value)
    assert len(str(caught.value).split(". ")) >= 3  # what happened, what it cost, what to do


def test_numpy_scalars_are_welcome():
    assert dn.Ordinal(np.int64(0), np.float64(9.0)) == dn.Ordinal(0, 9)
    assert dn.Ordinal(0, 9).encode(np.float64(3.0)) == dn.Ordinal(0, 9).encode(np.int32(3)) == 3
    assert dn.Categorical(5, 3).encode(np.int64(3)) == 1


def test_large_numbers_are_exact_on_both_paths():
    cents = dn.Ordinal(10**9, 10**9 + 100, "0.01")
    values = [float(cents.decode(code)) for code in range(0, cents.size, 7)]
    codes, problems = encode(cents, pa.array(values))
    assert not problems.any()
    assert codes.tolist() == [cents.encode(value) for value in values] == list(range(0, cents.size, 7))
    halves = dn.Ordinal(2**60, 2**60 + 9, "0.5")
    assert encode(halves, pa.array([2**60 + 1]))[0].tolist() == [halves.encode(2**60 + 1)] == [2]
    with pytest.raises(InvalidParameter, match="too large"):
        dn.Ordinal(10**30, 10**30 + 5)
    with pytest.raises(InvalidParameter, match="beyond 64 bits"):
        dn.Categorical(10**30, 1)
    assert REASONS[encode(dn.Categorical(5, 3), pa.array([2**64 - 1], pa.uint64()))[1][0]] == "outside the domain"


def test_decimals_are_exact():
    cents = DOMAINS["cents"]
    assert cents.encode(0.1 + 0.2) == 30
    assert cents.encode(Decimal("9.99")) == 999
    assert encode(cents, pa.array([0.1 + 0.2, 9.99, 0.07]))[0].tolist() == [30, 999, 7]
    assert dn.Ordinal(0, 1, 0.1).decode(3) == Decimal("0.3")
    assert dn.Ordinal(datetime(2020, 1, 1), datetime(2020, 1, 2), timedelta(minutes=15)).size == 97
