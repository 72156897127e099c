"""Whatever a row holds, a device sends: odd values of every type, by the thousand."""
# ruff: noqa: E501 - odd values read best when they are not one to a line

import math
import random
from collections import OrderedDict, UserDict, defaultdict
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from types import MappingProxyType

import numpy as np
import pandas as pd
import pytest

import deniable as dn
from deniable.client import ToPLClient
from deniable.errors import InvalidData, InvalidParameter
from deniable.tables.schema.placing import MISSING, OUTSIDE, WRONG_TYPE

FIELDS = dn.Table(
    "fields",
    whole=dn.Ordinal(0, 500),
    fine=dn.Ordinal("0", "9.99", "0.01"),
    day=dn.Ordinal(date(2020, 1, 1), date(2020, 12, 31)),
    hour=dn.Ordinal(datetime(2020, 1, 1), datetime(2020, 1, 2), "hour"),
    text=dn.Categorical("a", "b"),
    number=dn.Categorical(1, 2, 3),
    flag=dn.Categorical(True, False),
    city=dn.Public(),
)
PRIVATE = dict(zip(FIELDS.private, FIELDS.domains, strict=True))
MANY = dn.Table("many", many=3, tau=2, amount=dn.Ordinal(0, 500), kind=dn.Categorical("a", "b"))
ODD = dn.Collection(FIELDS, MANY, epsilon=2.0, design="mg")
GOOD = {
    "whole": 7, "fine": Decimal("0.5"), "day": date(2020, 2, 2), "hour": datetime(2020, 1, 1, 5), "text": "a", "number": 2, "flag": True,
}  # fmt: skip


def failing(base, *names):
    """A type whose operations fail."""

    def fails(self, *_):
        raise RuntimeError("987654")

    return type("Failing", (base,), dict.fromkeys(names, fails))


HOSTILE = [
    failing(object, "__eq__", "__hash__", "__float__", "__index__", "__int__", "__str__", "__repr__", "__bool__")(),
    failing(object, "__getattribute__")(),
    failing(int, "__int__", "__index__", "__eq__", "__hash__", "__lt__", "__float__")(5),
    failing(float, "__float__", "__eq__", "__hash__", "__repr__")(5.0),
    failing(str, "__hash__", "__eq__", "__str__", "__len__")("a"),
    failing(Decimal, "__eq__", "__hash__", "is_finite", "adjusted")(5),
    failing(Fraction, "__float__", "__eq__", "__hash__")(5),
    failing(date, "__sub__", "__eq__", "__hash__")(2020, 1, 5),
    failing(datetime, "__sub__", "date", "utcoffset", "__hash__")(2020, 1, 1, 5),
]
EXTREME = [
    None, True, False, 10**400, -(10**400), 10**100_000, 2**63, Fraction(10**400), Fraction(1, 10**400), Fraction(1, 3),
    Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"), Decimal("-Infinity"), Decimal("1e999999"), Decimal("-1e999999"),
    Decimal("1e-999999"), Decimal("0e999999"), Decimal("0." + "1" * 100_000), math.nan, math.inf, -math.inf, -0.0, 5e-324, 1.7e308, 1j,
    "", "1e1000000", "1" * 100_000, "٣", "²", "½", "\ud800", "a\x00", "nan", "2020-01-01", b"7", bytearray(b"a"), memoryview(b"7"),
    [], [7], (), (7,), {}, {"a": {"b": [{}]}}, set(), frozenset({7}), range(3), object(), type, len, NotImplemented, ..., iter([7]),
    date.min, date.max, datetime.min, datetime.max, datetime.max.replace(tzinfo=UTC), datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=14))),
    time(5), time(5, tzinfo=UTC), timedelta.max, pd.NaT, pd.NA, pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-01", tz="UTC"),
    np.float32(7), np.float64("nan"), np.longdouble("1e4000"), np.int8(7), np.uint64(2**64 - 1), np.bool_(True), np.datetime64("2020-01-01"),
    np.str_("a"), np.bytes_(b"a"), np.array([7]), np.array(7), np.complex128(1), np.void(b"a"), *HOSTILE,
]  # fmt: skip


def odd_values(count, seed=5):
    """Every extreme value, and random ones of every type."""
    chance = random.Random(seed)  # noqa: S311 - a script
    yield from EXTREME
    made = [
        lambda: chance.randint(-(10**3), 10**3),
        lambda: chance.choice((-1, 1)) * chance.getrandbits(chance.choice((31, 64, 200, 5000))),
        lambda: Decimal((chance.getrandbits(1), [chance.randrange(10) for _ in range(chance.randrange(1, 60))], chance.randrange(-(10**6), 10**6))),
        lambda: Fraction(chance.getrandbits(chance.choice((8, 64, 3000))), 1 + chance.getrandbits(chance.choice((4, 64, 3000)))),
        lambda: np.frombuffer(chance.randbytes(8), dtype=np.float64)[0],
        lambda: float(np.frombuffer(chance.randbytes(8), dtype=np.float64)[0]),
        lambda: np.frombuffer(chance.randbytes(4), dtype=chance.choice((np.float32, np.int32, np.uint32)))[0],
        lambda: "".join(chr(chance.randrange(0x11_0000)) for _ in range(chance.randrange(6))),
        lambda: f"{chance.getrandbits(20)}e{chance.randrange(-(10**7), 10**7)}",
        lambda: chance.randbytes(chance.randrange(9)),
        lambda: datetime(chance.randrange(1, 9999), 5, 5, tzinfo=chance.choice((None, UTC))),
        lambda: date(chance.randrange(1, 9999), 5, 5),
        lambda: [chance.choice(EXTREME)] * chance.randrange(3),
        lambda: {chance.getrandbits(8): chance.choice(EXTREME)},
        lambda: chance.choice(EXTREME),
    ]  # fmt: skip
    for _ in range(count - len(EXTREME)):
        yield chance.choice(made)()


def send_all(count):
    """One report for every value in every field; with as many others in order, a tenth through the whole client."""
    client, stream = ODD.client(), ToPLClient(1.0, 500)
    for number, value in enumerate(odd_values(count)):
        client._memory.clear()
        name = FIELDS.private[number % len(PRIVATE)]
        assert client._encoded(FIELDS, {**GOOD, name: value}) is None or isinstance(PRIVATE[name].encode(value), int)
        if number % 10 == 0 or number < len(EXTREME):
            assert len(client.reports("fields", [dict.fromkeys(GOOD, value)])) == 1
            row = {"amount": value, "kind": value}
            assert len(client.reports("many", [row, {"amount": 5, "kind": "a"}, row])) == 2
        assert len(stream.fresh(value, 40.0 if number % 2 else None).to_bytes()) == 16
        public = client.report("fields", GOOD).to_json(7, "fields", {"city": value})
        assert ODD.gather([public])["fields"].num_rows == 1 if number < len(EXTREME) else len(public) > 30


def test_whatever_a_row_holds_the_device_sends():
    send_all(3_000)


@pytest.mark.slow  # a minute: ten thousand odd values of each of ten kinds
def test_whatever_a_hundred_thousand_rows_hold_the_device_sends():
    send_all(100_000)


class Refusing(dict):
    """A mapping that fails when it is looked into."""

    def __getitem__(self, name):
        raise OSError("987654")

    get = __contains__ = __iter__ = __getitem__


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({}, MISSING),
        ({"whole": 7}, MISSING),
        ({**GOOD, 5: "a key that is no name", None: 1, ("a",): 2}, None),
        (MappingProxyType(GOOD), None),
        (UserDict(GOOD), None),
        (OrderedDict(GOOD), None),
        (defaultdict(lambda: 987_654), MISSING),
        (Refusing(GOOD), WRONG_TYPE),
        ({**GOOD, "whole": "1e1000000"}, WRONG_TYPE),
        ({**GOOD, "whole": Fraction(10**400)}, WRONG_TYPE),
        ({**GOOD, "whole": 10**400}, OUTSIDE),
        ({**GOOD, "whole": math.nan}, MISSING),
    ],
)
def test_odd_rows_are_counted_on_the_device_and_sent(row, reason):
    client, before = ODD.client(), len(row)
    assert client.report("fields", row).slot == 0
    assert client.rejected == ({reason: 1} if reason else {})
    assert len(row) == before  # a row with defaults is not filled


def test_what_a_programmer_got_wrong_is_refused():
    client = ODD.client()
    for row in ([], None, "row", 5, GOOD.items()):
        with pytest.raises(InvalidData, match="mapping"):
            client.report("fields", row)
    with pytest.raises(InvalidData, match="unknown attribute"):
        client.report("fields", {**GOOD, "wohle": 7})
    with pytest.raises(InvalidParameter, match="not in this collection"):
        client.report("felds", GOOD)


def test_a_number_of_a_specification_is_bounded_before_it_is_converted():
    for high in ("1e999999", "1" * 401, Decimal("1e-999999"), Fraction(10**400)):
        with pytest.raises(InvalidParameter, match="high"):
            dn.Ordinal(0, high)
    assert dn.Ordinal(Decimal("0e999999"), 5).low == 0


def test_odd_values_of_a_stream_are_counted_on_the_device():
    client = ToPLClient(1.0, 500)
    for value in (Decimal("1e999999"), Fraction(10**400), Decimal(-5), "987654", True, Decimal("sNaN"), [7], *HOSTILE):
        client.fresh(value)
    assert client.clipped["above the bound"] == 2
    assert client.clipped["below zero"] == 1
    assert client.clipped["not a number"] >= 4 + 4
