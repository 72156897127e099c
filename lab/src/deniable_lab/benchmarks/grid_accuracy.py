"""Mean absolute errors of fitted grids next to HIO, on data of known shapes, and what later systems are printed with.

Ranges: attributes of 64 values with a correlation of 0.8 between all (a normal copula), in several shapes; questions
about random ranges of half of each domain. Joins: two tables with an attribute of 125 values (normal, as SYN-2 of
[XDW20]) and a categorical one of 500; ranges of 15 values on each side. Households: the Current Population Survey's,
one to many, if the data folder has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import ndtr, ndtri

from deniable.arrays import Floats, Integers
from deniable.collection import Collection, fit
from deniable.database import Database, connect
from deniable.randomness import SeededSource
from deniable.tables import Categorical, Ordinal, Table
from deniable_lab.experiments.data import Data
from deniable_lab.experiments.parquet_files import read_columns

VALUES, CORRELATION = 64, 0.8
JOIN_VALUES, CATEGORIES, JOIN_RANGE = 125, 500, 15
GRID, CONSISTENT, HIO = "grid", "grid, consistent", "hio"
SHAPES = ("normal", "zipf", "spiky", "bimodal")
WANTED = {
    ("2-D COUNT of 4", 0.2): 0.056, ("2-D COUNT of 4", 0.5): 0.033,
    ("2-D COUNT of 4", 1.0): 0.021, ("2-D COUNT of 4", 2.0): 0.0106,
    ("2-D COUNT of 6", 1.0): 0.019,
    ("join COUNT", 1.0): 0.0121, ("join COUNT", 2.0): 0.0057, ("join COUNT", 5.0): 0.0039,
}  # fmt: skip
"""Mean absolute errors of the better of HDG and PriPL-Tree, and of a prototype of grids in joins."""


@dataclass(frozen=True, slots=True)
class Row:
    """One setting: the mean absolute error of each method, and how often its 95 % intervals covered."""

    question: str
    shape: str
    epsilon: float
    errors: Mapping[str, float]
    covered: Mapping[str, float]
    wanted: float | None = None


@dataclass(slots=True)
class _Tally:
    errors: dict[str, list[float]] = field(default_factory=dict)
    covered: dict[str, list[bool]] = field(default_factory=dict)

    def add(self, method: str, database: Database, text: str, truth: float, scale: float) -> None:
        """Ask, and compare with the truth; an answer that is unclear counts as the largest error there is."""
        answer = database.sql(text, postprocess="consistent" if method == CONSISTENT else None).scalar()
        low, high = answer.interval
        error = 1.0 if math.isnan(answer.value) else abs(answer.value - truth) / scale
        self.errors.setdefault(method, []).append(error)
        self.covered.setdefault(method, []).append(bool(low <= truth <= high))

    def row(self, question: str, shape: str, epsilon: float) -> Row:
        """What was found."""
        return Row(
            question,
            shape,
            epsilon,
            {name: float(np.mean(values)) for name, values in self.errors.items()},
            {name: float(np.mean(values)) for name, values in self.covered.items()},
            WANTED.get((question, epsilon)) if shape == "normal" else None,
        )


def copula(shape: str, attributes: int, users: int, random: np.random.Generator) -> Integers:
    """users × attributes: correlated values of a shape."""
    common = math.sqrt(CORRELATION) * random.standard_normal((users, 1))
    z = common + math.sqrt(1 - CORRELATION) * random.standard_normal((users, attributes))
    if shape == "normal":
        low, high = z.min(axis=0), z.max(axis=0)
        return np.asarray(np.minimum((z - low) / (high - low) * VALUES, VALUES - 1), dtype=np.int64)
    u = ndtr(z)
    if shape == "zipf":
        reach = np.cumsum(1 / np.arange(1, VALUES + 1))
        return np.asarray(np.searchsorted(reach / reach[-1], u), dtype=np.int64)
    if shape == "bimodal":
        half = np.where(u < 0.5, ndtri(np.clip(2 * u, 1e-9, 1 - 1e-9)), ndtri(np.clip(2 * u - 1, 1e-9, 1 - 1e-9)))
        return np.clip(np.where(u < 0.5, 16 + 5 * half, 46 + 5 * half), 0, VALUES - 1).astype(np.int64)
    smooth = np.clip(32 + 12 * z, 0, VALUES - 1).astype(np.int64)
    return np.where(random.random(z.shape) < 0.5, smooth // 10 * 10, smooth)  # half of all values are round


def measure(
    users: int,
    seeds: int,
    questions: int,
    first_seed: int,
    data: Data,
    advance: Callable[[int], None],
    parts: tuple[str, ...] = (),
    *,
    alone: bool = False,
) -> Iterator[Row]:
    """All rows; parts: ranges, many, shapes, joins, skewed, households. With `alone` only plain answers of grids."""
    methods, pair = ((GRID,), (GRID,)) if alone else ((GRID, CONSISTENT, HIO), (GRID, HIO))
    chosen = parts or ("ranges", "many", "shapes", "joins", "skewed", "households")
    if "ranges" in chosen:
        for epsilon in (0.2, 0.5, 1.0, 2.0):
            yield _ranges("normal", 4, 2, epsilon, users, seeds, questions, first_seed, methods)
            advance(1)
    if "many" in chosen:
        yield _ranges("normal", 6, 2, 1.0, users, seeds, questions, first_seed, (GRID,))
        advance(1)
        fewer, plain = max(questions // 3, 3), (GRID,) if alone else (GRID, CONSISTENT)
        yield _ranges("normal", 6, 4, 1.0, users, seeds, fewer, first_seed, plain)
        advance(1)
    if "shapes" in chosen:
        for shape in SHAPES:
            for kind in ("COUNT", "SUM", "AVG"):
                yield _ranges(shape, 4, 2, 1.0, users, seeds, questions, first_seed, pair, kind)
                advance(1)
    if "joins" in chosen:
        for kind, epsilon in (("COUNT", 1.0), ("COUNT", 2.0), ("COUNT", 5.0), ("SUM", 2.0), ("AVG", 2.0)):
            yield _joins(kind, epsilon, users, seeds, questions, first_seed, methods if kind == "COUNT" else pair)
            advance(1)
    if "skewed" in chosen:
        for median in (36, 100):
            yield _skewed(median, users, seeds, first_seed)
            advance(1)
    if "households" in chosen and data.folder is not None:
        for epsilon in (1.0, 2.0, 5.0):
            yield _households(data, epsilon, seeds, first_seed, pair)
            advance(1)


def _ranges(
    shape: str,
    attributes: int,
    dimensions: int,
    epsilon: float,
    users: int,
    seeds: int,
    questions: int,
    first_seed: int,
    methods: tuple[str, ...],
    kind: str = "COUNT",
) -> Row:
    described: dict[str, Any] = {f"a{number}": Ordinal(0, VALUES - 1) for number in range(attributes)}
    table = Table("t", **described)
    grid = fit(table, epsilon=epsilon, users=users, compared=False).collection
    tally = _Tally()
    for seed in range(first_seed, first_seed + seeds):
        random = np.random.default_rng(seed)
        rows = copula(shape, attributes, users, random)
        frame = pa.table({"uid": np.arange(users), **{f"a{number}": rows[:, number] for number in range(attributes)}})
        collections = {GRID: grid, CONSISTENT: grid, HIO: Collection(table, epsilon=epsilon)}
        databases: dict[str, Database] = {}
        for method in methods:
            same = databases.get(GRID) if method == CONSISTENT else None
            databases[method] = same or _asked(collections[method], seed, t=frame)
        for _ in range(questions):
            picked = random.choice(attributes, dimensions, replace=False).tolist()
            inside, tests = np.ones(users, dtype=bool), []
            for number in picked:
                low = int(random.integers(0, VALUES // 2 + 1))
                inside &= (rows[:, number] >= low) & (rows[:, number] < low + VALUES // 2)
                tests.append(f"a{number} BETWEEN {low} AND {low + VALUES // 2 - 1}")
            if not inside.any():
                continue
            measure = f"a{picked[0]}"
            truth, scale = {
                "COUNT": (float(inside.sum()), float(users)),
                "SUM": (float(rows[inside, picked[0]].sum()), float(users * (VALUES - 1))),
                "AVG": (float(rows[inside, picked[0]].mean()), float(VALUES - 1)),
            }[kind]
            asked = "COUNT(*)" if kind == "COUNT" else f"{kind}({measure})"
            text = f"SELECT {asked} FROM t WHERE {' AND '.join(tests)}"  # noqa: S608 - parsed, never run
            for method, database in databases.items():
                tally.add(method, database, text, truth, scale)
    return tally.row(f"{dimensions}-D {kind} of {attributes}", shape, epsilon)


def _joins(
    kind: str, epsilon: float, users: int, seeds: int, questions: int, first_seed: int, methods: tuple[str, ...]
) -> Row:
    names = [str(number) for number in range(CATEGORIES)]
    left = Table("a", x=Ordinal(0, JOIN_VALUES - 1), c=Categorical(*names))
    right = Table("b", z=Ordinal(0, JOIN_VALUES - 1), d=Categorical(*names))
    asked = "COUNT(*)" if kind == "COUNT" else f"{kind}(x)"

    def text(low: int, other: int) -> str:
        return (
            f"SELECT {asked} FROM a JOIN b USING (uid) WHERE x BETWEEN {low} AND {low + JOIN_RANGE - 1} "  # noqa: S608
            f"AND z BETWEEN {other} AND {other + JOIN_RANGE - 1}"
        )

    last = JOIN_VALUES - JOIN_RANGE
    workload = [text(number * last // 14, (number * 9 + 5) % 15 * last // 14) for number in range(15)]
    grid = fit([left, right], epsilon=epsilon, users=users, workload=workload, compared=False).collection
    tally = _Tally()
    for seed in range(first_seed, first_seed + seeds):
        random = np.random.default_rng(seed)
        x, z = (
            np.clip(np.rint(random.normal(JOIN_VALUES / 2, JOIN_VALUES / 4, users)), 0, JOIN_VALUES - 1).astype(
                np.int64
            )
            for _ in range(2)
        )
        labels = [pa.array(names).take(pa.array(random.integers(0, CATEGORIES, users))) for _ in range(2)]
        frames = {
            "a": pa.table({"uid": np.arange(users), "x": x, "c": labels[0]}),
            "b": pa.table({"uid": np.arange(users), "z": z, "d": labels[1]}),
        }
        databases = {GRID: _asked(grid, seed, **frames)}
        if HIO in methods:
            databases[HIO] = _asked(Collection(left, right, epsilon=epsilon), seed, **frames)
        for _ in range(questions):
            low, other = random.integers(0, last + 1, 2).tolist()
            inside = (x >= low) & (x < low + JOIN_RANGE) & (z >= other) & (z < other + JOIN_RANGE)
            if not inside.any():
                continue
            truth, scale = {
                "COUNT": (float(inside.sum()), float(users)),
                "SUM": (float(x[inside].sum()), float(users * (JOIN_VALUES - 1))),
                "AVG": (float(x[inside].mean()), float(JOIN_VALUES - 1)),
            }[kind]
            for method in methods:
                database = databases[HIO if method == HIO else GRID]
                tally.add(method, database, text(low, other), truth, scale)
    return tally.row(f"join {kind}", "normal", epsilon)


def _skewed(median: int, users: int, seeds: int, first_seed: int) -> Row:
    """A lognormal attribute on a domain that is much wider than its values: data that a grid does not expect."""
    table = Table("t", x=Ordinal(0, 999), s=Categorical("f", "m"))
    grid = fit(table, epsilon=1.0, users=users, compared=False).collection
    tally = _Tally()
    for seed in range(first_seed, first_seed + seeds):
        random = np.random.default_rng(seed)
        x = np.minimum(random.lognormal(math.log(median), 0.8, users), 999).astype(np.int64)
        sex = pa.array(["f", "m"]).take(pa.array(random.integers(0, 2, users)))
        database = _asked(grid, seed, t=pa.table({"uid": np.arange(users), "x": x, "s": sex}))
        for low, high in ((0, 29), (0, 99), (30, 99), (50, 149), (100, 299), (0, 499), (200, 499), (300, 999)):
            text = f"SELECT COUNT(*) FROM t WHERE x BETWEEN {low} AND {high}"  # noqa: S608 - parsed, never run
            tally.add(GRID, database, text, float(((x >= low) & (x <= high)).sum()), float(users))
    return tally.row("1-D COUNT", f"skew {median}", 1.0)


def _households(data: Data, epsilon: float, seeds: int, first_seed: int, methods: tuple[str, ...]) -> Row:
    """Households with few people joined to tax units with heads of an age: one to many, one report each."""
    homes = read_columns(data.required("tables", "cps_households"), "hh_id", "n_people")
    units = read_columns(data.required("tables", "cps_tax_units"), "hh_id", "age_head")
    people: Integers = np.minimum(homes["n_people"].to_numpy().astype(np.int64), 15)
    ages: Integers = np.clip(units["age_head"].to_numpy().astype(np.int64), 0, 99)
    owners: Integers = units["hh_id"].to_numpy().astype(np.int64)
    ids: Integers = homes["hh_id"].to_numpy().astype(np.int64)
    size = dict(zip(ids.tolist(), people.tolist(), strict=True))
    of_unit: Floats = np.array([size.get(owner, -1) for owner in owners.tolist()], dtype=np.float64)
    tables = (Table("homes", people=Ordinal(0, 15)), Table("units", many=10, tau=1, age=Ordinal(0, 99)))

    def text(few: int, low: int) -> str:
        return (
            f"SELECT COUNT(*) FROM units JOIN homes USING (uid) WHERE people <= {few} "  # noqa: S608
            f"AND age BETWEEN {low} AND {low + 19}"
        )

    asked = [(few, low) for few in (1, 2, 3, 4) for low in (20, 35, 50, 65)]
    workload = [text(few, low) for few, low in asked]
    grid = fit(list(tables), epsilon=epsilon, users=ids.size, workload=workload, compared=False).collection
    tally = _Tally()
    frames = {"homes": pa.table({"uid": ids, "people": people}), "units": pa.table({"uid": owners, "age": ages})}
    for seed in range(first_seed, first_seed + seeds):
        databases = {GRID: _asked(grid, seed, **frames)}
        if HIO in methods:
            databases[HIO] = _asked(Collection(*tables, epsilon=epsilon), seed, **frames)
        for few, low in asked:
            truth = float(((of_unit >= 0) & (of_unit <= few) & (ages >= low) & (ages < low + 20)).sum())
            for method, database in databases.items():
                tally.add(method, database, text(few, low), truth, float(ids.size))
    return tally.row("household COUNT", "real", epsilon)


def _asked(collection: Collection, seed: int, **frames: Any) -> Database:
    return connect(collection.perturb(**frames, source=SeededSource(seed), simulation=True))
