"""Reports under known draws, for clients in other languages: from the same draws they must get the same bytes.

    PYTHONPATH=tests .venv/bin/python -m tables.device.report_vectors

writes `tests/golden/reports.json` again. JSON has neither dates nor times, so rows hold {"date": …} and {"time": …}.
"""

import itertools
import json
from datetime import date, datetime, timedelta
from pathlib import Path

import deniable as dn
from deniable.client import Client
from deniable.randomness import SeededSource

VECTORS = Path(__file__).parents[2] / "golden" / "reports.json"
USERS = dn.Table("users", age=dn.Ordinal(1, 95), marital=dn.Categorical("married", "single"), city=dn.Public())
ORDERS = dn.Table("orders", many=10, tau=3, amount=dn.Ordinal(0, 500), kind=dn.Categorical("a", "b", "c"))
VISITS = dn.Table(
    "visits",
    day=dn.Ordinal(date(2020, 1, 1), date(2020, 3, 1)),
    week=dn.Ordinal(date(2020, 1, 6), date(2021, 1, 4), "week"),
    hour=dn.Ordinal(datetime(2020, 1, 1), datetime(2020, 1, 2), "hour"),
    tick=dn.Ordinal(datetime(2020, 1, 1), datetime(2020, 1, 1, 0, 0, 1), timedelta(milliseconds=125)),
)
READINGS = dn.Table(
    "readings",
    pay=dn.Ordinal(0, "99.5", "0.5"),
    code=dn.Categorical(10, 20, 50),
    cold=dn.Ordinal(-30, 30, summed=False),
    cents=dn.Ordinal("-0.50", "0.50", "0.01"),
    remote=dn.Categorical(True, False),
)
TRIPS = dn.Table(
    "trips",
    month=dn.Dates("2023-11-01", "2025-02-28", "month", outside="clip", missing="own"),
    quarter=dn.Dates("2020-01-01", "2025-12-31", "quarter", missing="own"),
    year=dn.Dates("1999-01-01", "2025-12-31", "year", missing="2000-06-01"),
    fare=dn.Ordinal(0, 50, outside="clip", round=True, missing="own"),
    class_=dn.Categorical("first", "second", map={"1": "first"}, missing="own"),
    bags=dn.Ordinal(0, 9, missing=0),
)
TRIP = {"month": {"date": "2024-02-29"}, "quarter": {"date": "2024-03-31"}, "year": {"date": "2001-12-31"}}
TRIP |= {"fare": 12.6, "class_": "1", "bags": 2}
WIDE = dn.Table("wide", **{f"a{number}": dn.Ordinal(0, 2**20 - 1) for number in range(3)})
DOZENS = dn.Table("dozens", answer=dn.Ordinal(0, 62))
DESIGNS = ("hio", "ahio", "ehio", "sr-hio", "sc", "mg", "amg")
GRIDS = {
    "users": [
        dn.GridView({"age": 8, "marital": 2}, weight=3),
        dn.GridView({"age": dn.Points([0, 30, 94])}, weight=2),
        dn.GridView({"age": dn.Cells([0, 17, 64])}),
        dn.GridView({"age": dn.Points(5), "marital": 1}),
    ],
    "orders": [dn.GridView({"amount": dn.Points(2), "kind": 3}, weight=5), dn.GridView({"amount": 60})],
}
ROW = {"age": 31, "marital": "single"}
SOME_ORDERS = [{"amount": 7, "kind": "b"}, {"amount": 500, "kind": "c"}]
MANY_ORDERS = [{"amount": 40 * number, "kind": "abc"[number % 3]} for number in range(13)]
VISIT = {"day": {"date": "2020-02-29"}, "week": {"date": "2020-06-17"}, "hour": {"time": "2020-01-01T07:59:59"}}
VISIT["tick"] = {"time": "2020-01-01T00:00:00.640000"}
READING = {"pay": 41.5, "code": 20, "cold": -7, "cents": 0.07, "remote": False}
ODD_USERS = [{}, {"age": None, "marital": "single"}, {"age": "", "marital": "single"}, {"age": [], "marital": "single"}]
ODD_USERS += [{"age": 31, "marital": None}, {"age": True, "marital": "single"}, {"age": 31.5, "marital": "single"}]
ODD_USERS += [{"age": "31", "marital": "single"}, {"age": 0, "marital": "married"}, {"age": 96, "marital": "married"}]
ODD_ORDERS = [
    {"amount": None, "kind": "a"},
    {"amount": 7, "kind": ""},
    {"amount": [], "kind": []},
    {"amount": 1, "kind": "a"},
]


def cases():
    """(collection, table, rows, user) of every vector."""
    for design, coins in itertools.product(DESIGNS, ("drawn", "assigned")):
        collection = dn.Collection(USERS, ORDERS, epsilon=2.0, design=design, coins=coins)
        user = None if coins == "drawn" else "ada"
        for table, rows in (("users", [ROW]), ("orders", []), ("orders", SOME_ORDERS)):
            yield collection, table, rows, user
    for coins, user in (("drawn", None), ("assigned", 7)):
        grid = dn.Collection(USERS, ORDERS, epsilon=2.0, design="grid", grids=GRIDS, coins=coins)
        for table, rows in (("users", [ROW]), ("users", [{"age": 95, "marital": "married"}]), ("orders", MANY_ORDERS)):
            yield grid, table, rows, user
        shared = dn.Collection(USERS, ORDERS, epsilon=3.0, shares={"users": 0.3, "orders": 1.7}, coins=coins)
        yield shared, "users", [ROW], user
        yield shared, "orders", MANY_ORDERS, user
        yield dn.Collection(VISITS, epsilon=4.0, design="mg", coins=coins), "visits", [VISIT], user
    for design in ("ahio", "ehio", "sr-hio", "amg"):
        yield dn.Collection(READINGS, epsilon=4.0, design=design), "readings", [READING], None
    for design in ("hio", "sc"):
        yield dn.Collection(VISITS, epsilon=4.0, design=design), "visits", [VISIT], None
    yield dn.Collection(VISITS, epsilon=9.0, design="sc"), "visits", [VISIT | {"day": "2020-02-29"}], None
    yield dn.Collection(USERS, ORDERS, epsilon=2.0, oracle="olh", fanout=3), "users", [ROW], None
    yield dn.Collection(WIDE, epsilon=1.0, design="mg"), "wide", [{f"a{n}": 1000 * n + 77 for n in range(3)}], None
    yield dn.Collection(USERS, epsilon=0.25, name="poll", coins="assigned"), "users", [ROW], -(2**63)
    yield dn.Collection(USERS, epsilon=8.0, design="mg", coins="assigned"), "users", [ROW], "Zoë 🐢"
    yield dn.Collection(USERS, epsilon=1.0, coins="assigned"), "users", [ROW], "x" * 200
    plain = dn.Collection(USERS, ORDERS, epsilon=6.0, design="mg")
    for row in ODD_USERS:
        yield plain, "users", [row], None
    yield plain, "orders", ODD_ORDERS, None
    readings = dn.Collection(READINGS, epsilon=6.0, design="mg")
    for change in ({"code": "20"}, {"remote": 0}, {"pay": 41.25}, {"cents": 0.1 + 0.2}, {"cents": -0.5}, {"cold": 31}):
        yield readings, "readings", [READING | change], None
    for design, coins in (("hio", "drawn"), ("mg", "drawn"), ("ahio", "assigned"), ("grid", "drawn")):
        trips = dn.Collection(TRIPS, epsilon=6.0, design=design, coins=coins)
        for row in (TRIP, {}, TRIP | {"month": {"date": "2031-01-01"}, "fare": 99.4}):
            yield trips, "trips", [row], None if coins == "drawn" else "ada"
    for epsilon, design, coins in ((1.0, "hio", "drawn"), (3.0, "hio", "assigned"), (4.0, "ehio", "drawn")):
        subsets = dn.Collection(USERS, ORDERS, epsilon=epsilon, design=design, oracle="subset", coins=coins)
        for table, rows in (("users", [ROW]), ("orders", MANY_ORDERS)):
            yield subsets, table, rows, None if coins == "drawn" else "ada"
    for answer in (0, 17, 62):
        yield dn.Collection(DOZENS, epsilon=1.0, design="mg", oracle="subset"), "dozens", [{"answer": answer}], None


def with_times(value):
    """A value of a row: {"date": …} and {"time": …} stand for what JSON lacks."""
    if isinstance(value, dict) and set(value) == {"date"}:
        return date.fromisoformat(value["date"])
    return datetime.fromisoformat(value["time"]) if isinstance(value, dict) else value


def made_vectors():
    vectors = []
    for collection, table, rows, user in cases():
        source, draws = SeededSource(len(vectors)), []

        def randbelow(bound, source=source, draws=draws):
            draws.append([str(bound), str(source.randbelow(bound))])
            return int(draws[-1][1])

        read = [{name: with_times(value) for name, value in row.items()} for row in rows]
        sent = Client(collection, randbelow=randbelow, user=user).reports(table, read)
        vectors.append(
            {
                "specification": collection.to_dict(),
                "sha256": collection.sha256,
                "table": table,
                "user": user if user is None else str(user),
                "rows": rows,
                "draws": draws,
                "reports": [report.to_bytes().hex() for report in sent],
            }
        )
    return vectors


if __name__ == "__main__":
    lines = ",\n".join(json.dumps(vector, ensure_ascii=False, separators=(",", ":")) for vector in made_vectors())
    VECTORS.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
