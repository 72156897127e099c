"""One cell of the zoo: tables, a workload, and questions inside and outside it, all drawn from a seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from deniable.arrays import Booleans, Floats, Integers
from deniable.tables import Categorical, Ordinal, Table
from deniable_lab.experiments.zoo.shapes import CATEGORIES, DRIFTING, MIXED, SHAPES, drawn_columns, shapes_of

EPSILONS = (0.5, 1.0, 2.0, 4.0)
ALONE, ONE_TO_ONE, ONE_TO_MANY = "alone", "one to one", "one to many"
KINDS = (ALONE, ALONE, ALONE, ONE_TO_ONE, ONE_TO_MANY)
MOST_ROWS = 4
ASKED = 4
"""Questions inside the workload; as many are asked outside it."""
ALL_SHAPES = (*SHAPES, DRIFTING, CATEGORIES, MIXED)


@dataclass(frozen=True, slots=True)
class Test:
    """An attribute between two values, both included; or one of some categories, given by their numbers."""

    table: str
    attribute: str
    low: int
    high: int
    members: tuple[int, ...] = ()

    def inside(self, values: Integers) -> Booleans:
        """Which values pass."""
        if self.members:
            return np.isin(values, self.members)
        return np.asarray((values >= self.low) & (values <= self.high))

    def __str__(self) -> str:
        name = f"{self.table}.{self.attribute}"
        if self.members:
            return f"{name} IN ({', '.join(repr(label(member)) for member in self.members)})"
        return f"{name} = {self.low}" if self.low == self.high else f"{name} BETWEEN {self.low} AND {self.high}"


def label(number: int) -> str:
    """The name of a category."""
    return f"c{number}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, with which its truth can be computed."""

    kind: str
    """COUNT, SUM or AVG."""
    measure: tuple[str, str]
    """Table and attribute of a sum."""
    tests: tuple[Test, ...]
    tables: tuple[str, ...]

    def __str__(self) -> str:
        asked = "COUNT(*)" if self.kind == "COUNT" else f"{self.kind}({'.'.join(self.measure)})"
        joined = " JOIN ".join(self.tables) + (" USING (uid)" if len(self.tables) > 1 else "")
        where = f" WHERE {' AND '.join(map(str, self.tests))}" if self.tests else ""
        return f"SELECT {asked} FROM {joined}{where}"  # noqa: S608 - parsed, never run


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """Tables and questions."""

    seed: int
    shape: str
    joined: str
    tables: tuple[Table, ...]
    frames: Mapping[str, Mapping[str, Integers]]
    """For each table its columns, with `uid`."""
    epsilon: float
    users: int
    workload: tuple[Asked, ...]
    outside: tuple[Asked, ...]

    def arrow(self) -> dict[str, Any]:
        """The frames that are perturbed."""
        tables = {table.name: table for table in self.tables}
        return {name: pa.table(_labelled(tables[name], columns)) for name, columns in self.frames.items()}

    def rows(self) -> dict[str, float]:
        """Rows per user by table, roughly: what somebody who plans a collection would know."""
        present = {name: frame["uid"].size / self.users for name, frame in self.frames.items()}
        return {name: float(f"{rows:.1g}") for name, rows in present.items() if rows != 1}

    def matching(self, asked: Asked) -> float:
        """The share of rows that meet a question's conditions, as roughly."""
        counted = replace(asked, kind="COUNT")
        everything = self.truth(replace(counted, tests=()))
        share = self.truth(counted) / everything if everything else 0.0
        return float(f"{max(share, 1 / self.users):.1g}")

    def truth(self, asked: Asked) -> float:
        """What plain SQL answers."""
        weights = np.ones(self.users)
        for name in asked.tables:
            frame = self.frames[name]
            inside: Booleans = np.ones(frame["uid"].size, dtype=bool)
            for test in asked.tests:
                if test.table == name:
                    inside &= test.inside(frame[test.attribute])
            worth: Floats = inside.astype(np.float64)
            weights = weights * np.bincount(frame["uid"], worth, minlength=self.users)
        if asked.kind == "COUNT":
            return float(weights.sum())
        name, attribute = asked.measure
        frame = self.frames[name]
        inside = np.ones(frame["uid"].size, dtype=bool)
        for test in asked.tests:
            if test.table == name:
                inside &= test.inside(frame[test.attribute])
        own = np.bincount(frame["uid"], inside.astype(np.float64), minlength=self.users)
        sums = np.bincount(frame["uid"], inside * frame[attribute].astype(np.float64), minlength=self.users)
        others = np.divide(weights, own, out=np.zeros(self.users), where=own > 0)
        total = float((others * sums).sum())
        if asked.kind == "SUM":
            return total
        return total / float(weights.sum()) if weights.sum() else float("nan")


def drawn_case(seed: int, *, quick: bool = False) -> Case:
    """The cell of a seed. Shapes take turns, so that every one is seen."""
    random = np.random.default_rng((21, seed))
    shape = ALL_SHAPES[seed // 2 % len(ALL_SHAPES)]
    joined = ALONE if quick else str(random.choice(KINDS))
    epsilon = float(random.choice(EPSILONS))
    exponents = (4.0, 4.5) if quick else (4.0, 4.5, 5.0, 5.0, 5.5, 6.0)
    users = int(10 ** random.choice(exponents))
    names = ("a",) if joined == ALONE else ("a", "b")
    frames: dict[str, dict[str, Integers]] = {}
    tables = []
    for position, name in enumerate(names):
        attributes = _attributes(shape, joined, random, quick=quick)
        shapes = shapes_of(shape, attributes, random)
        sizes = [_size(random, quick=quick or each == CATEGORIES) for each in shapes]
        many = joined == ONE_TO_MANY and position == 1
        ids = _ids(users, joined, position, random)
        columns = drawn_columns(shapes, sizes, ids.size, bool(random.random() < 0.5), random)
        names_of = [f"{name}{number}" for number in range(attributes)]
        frames[name] = {"uid": ids, **dict(zip(names_of, columns, strict=True))}
        domains: dict[str, Any] = {
            name: Categorical(*map(label, range(size))) if each == CATEGORIES else Ordinal(0, size - 1)
            for name, size, each in zip(names_of, sizes, shapes, strict=True)
        }
        tables.append(Table(name, many=MOST_ROWS, tau=1, **domains) if many else Table(name, **domains))
    drawn = [drawn_question(frames, tables, random) for _ in range(2 * ASKED)]
    return Case(seed, shape, joined, tuple(tables), frames, epsilon, users, tuple(drawn[:ASKED]), tuple(drawn[ASKED:]))


def _attributes(shape: str, joined: str, random: np.random.Generator, *, quick: bool) -> int:
    least = 2 if shape == DRIFTING else 1
    if quick or joined != ALONE:
        return max(least, int(random.integers(1, 3)))
    return max(least, int(random.choice([1, 1, 2, 2, 3, 4, 5])))


def _size(random: np.random.Generator, *, quick: bool) -> int:
    return int(10 ** random.uniform(1, 3 if quick else 6)) if random.random() < 0.6 else int(random.integers(10, 200))


def _ids(users: int, joined: str, position: int, random: np.random.Generator) -> Integers:
    """Who has rows in a table, and how many."""
    everybody = np.arange(users)
    if position == 0 or joined == ALONE:
        return everybody
    absent = random.uniform(0.0, 0.9)
    present = everybody[random.random(users) >= absent]
    if joined == ONE_TO_ONE:
        return present
    return np.sort(np.repeat(present, random.integers(1, MOST_ROWS + 1, present.size)))


def drawn_question(
    frames: Mapping[str, Mapping[str, Integers]], tables: list[Table], random: np.random.Generator
) -> Asked:
    """A count, sum or average under conditions on one to three attributes."""
    columns = [(table.name, attribute) for table in tables for attribute in table.private]
    count = min(len(columns), int(random.choice([1, 1, 2])) + (len(tables) > 1))
    picked = [columns[number] for number in sorted(random.choice(len(columns), count, replace=False).tolist())]
    domains = {
        (table.name, name): domain
        for table in tables
        for name, domain in zip(table.private, table.domains, strict=True)
    }
    tests = tuple(
        (_membership if isinstance(domains[column], Categorical) else drawn_test)(
            column, frames[column[0]][column[1]], domains[column].size, random
        )
        for column in picked
    )
    kind = str(random.choice(["COUNT", "COUNT", "COUNT", "COUNT", "SUM", "AVG"]))
    numbers = [column for column in columns if isinstance(domains[column], Ordinal)]
    if not numbers:
        kind, numbers = "COUNT", columns
    measure = numbers[int(random.integers(len(numbers)))]
    return Asked(kind, measure, tests, tuple(table.name for table in tables))


def _labelled(table: Table, columns: Mapping[str, Integers]) -> dict[str, Any]:
    """Columns as they are collected: categories by their names."""
    named = dict(zip(table.private, table.domains, strict=True))
    shown: dict[str, Any] = dict(columns)
    for name, domain in named.items():
        if isinstance(domain, Categorical):
            labels = pa.array([label(number) for number in range(domain.size)])
            shown[name] = labels.take(pa.array(columns[name]))
    return shown


def _membership(column: tuple[str, str], values: Integers, size: int, random: np.random.Generator) -> Test:
    """Up to five categories, some of which rows have."""
    count = int(random.integers(1, 6))
    drawn = np.where(
        random.random(count) < 0.6, values[random.integers(values.size, size=count)], random.integers(size, size=count)
    )
    return Test(*column, 0, 0, tuple(sorted(set(drawn.tolist()))))


def drawn_test(column: tuple[str, str], values: Integers, size: int, random: np.random.Generator) -> Test:
    """Constants are values of the data, round numbers, or anything."""

    def constant() -> int:
        if random.random() < 0.4:
            return int(values[random.integers(values.size)])
        value = random.uniform(0, size) if random.random() < 0.5 else size ** random.random()
        if random.random() < 0.5:
            step = 10 ** max(int(np.log10(max(value, 1))) - 0, 0)
            value = round(value / step) * step
        return int(min(max(value, 0), size - 1))

    form = random.random()
    first = constant()
    if form < 0.2:
        return Test(*column, first, first)
    if form < 0.4 and first > 0:
        return Test(*column, 0, first - 1)
    if form < 0.6 and first > 0:
        return Test(*column, first, size - 1)
    low, high = sorted((first, constant()))
    return Test(*column, low, high)
