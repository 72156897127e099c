"""Raw tables, their reports without noise, and the comparison of answers with those of plain SQL."""

import math
from datetime import date, datetime, timedelta

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import deniable as dn

PEOPLE = dn.Table(
    "people",
    age=dn.Ordinal(-5, 20),
    weight=dn.Ordinal(0, "2.5", "0.25"),
    kind=dn.Categorical("a", "b", "c", "d"),
    flag=dn.Categorical(True, False),
    city=dn.Public(),
    score=dn.Public(),
    points=dn.Public(),
    born=dn.Public(),
    member=dn.Public(),
)
JOBS = dn.Table(
    "jobs", hours=dn.Ordinal(0, 24), sector=dn.Categorical("it", "arts"), region=dn.Public(), pay=dn.Public()
)
VISITS = dn.Table(
    "visits",
    grade=dn.Categorical(10, 20, 30),
    joined=dn.Ordinal(date(2020, 1, 1), date(2020, 1, 10)),
    seen=dn.Ordinal(datetime(2020, 1, 1), datetime(2020, 1, 1, 7), "hour"),
)
# With many=1 a user has one row or none, and nothing is sampled: the weight is 0 or 1.
GIFTS = dn.Table("gifts", many=1, amount=dn.Ordinal(0, 9), wrap=dn.Categorical("box", "bag"))
USERS = 600

DIMENSIONS = {
    # No row for kind d, no label for c; factors with a hole.
    "kinds": pa.table({
        "kind": ["a", "b", "c", "z"], "label": ["x", "y", None, "x"], "factor": [1.5, None, -2.0, 9.0],
    }),
    # Bern is missing, and a row without a name matches nobody.
    "cities": pa.table({
        "name": ["Rome", "Oslo", "Paris", None],
        "country": ["it", None, "fr", "none"],
        "population": [28, 7, None, 1],
    }),
    "bands": pa.table({
        "age": list(range(-5, 21)), "band": [["child", "adult", "old"][i // 9] for i in range(26)],
        "price": [i * 0.5 for i in range(26)],
    }),
    "regions": pa.table({"region": ["north", "south"], "climate": ["cold", "warm"], "pay": [1, 2]}),
}  # fmt: skip


def some(random, values, size, missing=0.0):
    """Random values, some of them missing."""
    return [None if random.random() < missing else values[random.integers(len(values))] for _ in range(size)]


def raw_tables(*, text_ids=False):
    """The rows of everybody; some users are missing in some tables."""
    random = np.random.default_rng(11)
    ids = random.permutation(10 * USERS)[:USERS] - 2000
    frames = {
        "people": {
            "uid": ids,
            "age": random.binomial(25, 0.4, USERS) - 5,
            "weight": random.integers(0, 11, USERS) * 0.25,
            "kind": some(random, ["a", "b", "d", "c"], USERS),
            "flag": some(random, [True, False, False], USERS),
            "city": some(random, ["Rome", "Oslo", "Bern", 'O\'Brien "x"'], USERS, 0.2),
            "score": some(random, [1.5, -2.25, 0.0, 4.0], USERS, 0.2),
            "points": some(random, [-3, 0, 1, 7], USERS, 0.1),
            "born": some(random, [date(1990, 1, day) for day in range(1, 5)], USERS, 0.1),
            "member": some(random, [True, False], USERS, 0.1),
        },
        "jobs": {
            "uid": ids[100:],
            "hours": random.integers(0, 25, USERS - 100),
            "sector": some(random, ["it", "arts"], USERS - 100),
            "region": some(random, ["north", "south", "east"], USERS - 100, 0.2),
            "pay": some(random, [10, 20, 35], USERS - 100, 0.2),
        },
        "visits": {
            "uid": ids[:500],
            "grade": some(random, [10, 20, 30], 500),
            "joined": some(random, [date(2020, 1, day) for day in range(1, 11)], 500),
            "seen": some(random, [datetime(2020, 1, 1) + hour * timedelta(hours=1) for hour in range(8)], 500),
        },
        "gifts": {
            "uid": ids[::2],
            "amount": random.integers(0, 10, USERS // 2),
            "wrap": some(random, ["box", "bag"], USERS // 2),
        },
    }
    tables = {name: pa.table(columns) for name, columns in frames.items()}
    if text_ids:
        tables = {
            name: table.set_column(0, "uid", pa.array([f"user {uid}" for uid in table["uid"].to_pylist()]))
            for name, table in tables.items()
        }
    return tables


class Pair:
    """The same rows twice: as reports without noise, and as they are."""

    def __init__(
        self,
        *,
        text_ids=False,
        design="mg",
        tables=(PEOPLE, JOBS, VISITS, GIFTS),
        raw=None,
        dimensions=DIMENSIONS,
        owners=None,
    ):
        self.raw = raw_tables(text_ids=text_ids) if raw is None else raw
        self.collection = dn.Collection(*tables, epsilon=math.inf, design=design, owners=owners)
        self.database = dn.connect(self.collection.perturb(**self.raw, simulation=True), dimensions=dimensions)
        self.plain = duckdb.connect()
        for name, frame in {**self.raw, **dimensions}.items():
            self.plain.register(name, frame)

    def check(self, text, *, ordered=False, clear_from=0):
        """Compare. Averages may be unclear where the first answer, a count, is below `clear_from`."""
        ours = self.database.sql(text)
        answered = self.plain.sql(text)
        names, rows = [name for name, *_ in answered.description], answered.fetchall()
        groups = list(ours.groups)
        grouped = [column for column, name in enumerate(names) if name in groups]
        outputs = [column for column in range(len(names)) if column not in grouped]
        assert len(outputs) == len(ours.answers)
        # Group columns stand first in ours, in the order of the text.
        expected = [(tuple(row[column] for column in grouped), [row[column] for column in outputs]) for row in rows]
        keys = list(zip(*ours.groups.values(), strict=True)) if groups else [()] * len(ours)
        got = [(key, [answer[row].value for answer in ours.answers.values()]) for row, key in enumerate(keys)]
        assert len(set(keys)) == len(keys)
        if ordered:
            assert [key for key, _ in got] == [key for key, _ in expected]
        else:
            truth = dict(expected)
            assert len(truth) == len(expected)
            assert truth.keys() <= {key for key, _ in got}
            for key, values in got:
                if key not in truth:
                    assert all(value == 0 or math.isnan(value) for value in values), (key, values)
            got = [(key, values) for key, values in got if key in truth]
            expected = [(key, truth[key]) for key, _ in got]
        for (key, values), (_, wanted) in zip(got, expected, strict=True):
            for value, want in zip(values, wanted, strict=True):
                if want is None or math.isnan(want):
                    assert value == 0 or math.isnan(value), (key, value)
                elif not math.isnan(value) or values[0] >= clear_from:
                    assert value == pytest.approx(float(want), rel=1e-10, abs=1e-8), key
