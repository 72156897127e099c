"""Cells of the zoo that look like columns people really have, and unlike the shapes that constants were chosen on.

Prices that end in 99, years of birth with heaps, codes far apart, opinions at both ends of a scale, amounts on a
logarithmic scale, incomes that begin at an age and have a hole, columns that are mostly missing, days with seasons, zip
codes in blocks, stripes, top codes, and two columns that are nearly the same. Their parameters, ε, the number of users
and the questions are drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from deniable.arrays import Integers
from deniable.tables import Ordinal, Table
from deniable_lab.experiments.zoo.drawn_case import ALONE, ASKED, EPSILONS, Case, drawn_question

Columns = Mapping[str, tuple[Integers, int]]
"""By attribute its values, and the size of its domain."""


def _within(values: object, size: int) -> tuple[Integers, int]:
    """Whole numbers of a domain."""
    return np.clip(np.floor(np.asarray(values, dtype=np.float64)), 0, size - 1).astype(np.int64), size


def _prices(random: np.random.Generator, users: int) -> Columns:
    euros = np.floor(np.exp(random.normal(3, random.uniform(0.6, 1.2), users)))
    return {"price": _within(100 * euros + random.choice([99, 95, 50, 0], users, p=[0.7, 0.15, 0.1, 0.05]), 20_000)}


def _births(random: np.random.Generator, users: int) -> Columns:
    years = np.floor(120 - np.abs(random.normal(0, random.uniform(25, 45), users)))
    heaped = random.random(users)
    years = np.where(heaped < 0.25, years // 10 * 10, np.where(heaped < 0.4, years // 5 * 5, years))
    return {"born": _within(years, 120), "children": _within(random.poisson(1.3, users), 10)}


def _far_codes(random: np.random.Generator, users: int) -> Columns:
    codes = np.array([17, 40_321, 99_998])
    return {"code": _within(random.choice(codes, users, p=random.dirichlet(np.ones(3))), 100_000)}


def _opinions(random: np.random.Generator, users: int) -> Columns:
    low, high = random.uniform(0.2, 0.6, 2)
    return {
        "score": _within(1000 * random.beta(low, high, users), 1000),
        "trust": _within(100 * random.beta(high, low, users), 100),
    }


def _amounts(random: np.random.Generator, users: int) -> Columns:
    return {"amount": _within(10 ** (6 * random.random(users)), 1_000_000)}


def _incomes(random: np.random.Generator, users: int) -> Columns:
    age = random.integers(0, 100, users)
    earned, pension = np.exp(random.normal(8, 0.6, users)), np.exp(random.normal(7, 0.3, users))
    income = np.where(age < 18, 0.0, np.where(age >= 67, pension, earned))
    return {"age": _within(age, 100), "income": _within(np.where((income > 400) & (income < 520), 520, income), 10_000)}


def _missing(random: np.random.Generator, users: int) -> Columns:
    absent = random.random(users) < random.uniform(0.9, 0.98)
    measured = np.minimum(random.normal(300, 60, users), 998)
    return {
        "value": _within(np.where(absent, 999, measured), 1000),
        "visits": _within(np.where(absent, 0, random.integers(1, 50, users)), 50),
    }


def _days(random: np.random.Generator, users: int) -> Columns:
    day = random.integers(0, 1461, users)
    holiday = 365 * random.integers(0, 4, users) + 355 + random.integers(-6, 7, users)
    day = np.where(random.random(users) < 0.5 + 0.5 * np.sin(day * (2 * np.pi / 365.25)), day, holiday)
    hour = 12 + 6 * np.sin(day / 58) + random.normal(0, 2, users)
    return {"day": _within(day, 1461), "hour": _within(hour, 24)}


def _zip_codes(random: np.random.Generator, users: int) -> Columns:
    blocks = 100 * random.choice(1000, 120, replace=False)
    shares = np.arange(1, 121) ** -random.uniform(0.5, 1.2)
    inside = 100 * random.beta(1, 3, users)
    return {"zip": _within(random.choice(blocks, users, p=shares / shares.sum()) + np.floor(inside), 100_000)}


def _stripes(random: np.random.Generator, users: int) -> Columns:
    width = int(random.integers(3, 15))
    values = random.integers(0, 500, users)
    values = np.where(values // width % 2 == 0, values, values - width)
    return {"stripe": _within(values, 500), "other": _within(499 - values + random.integers(0, 5, users), 500)}


def _pay(random: np.random.Generator, users: int) -> Columns:
    pay = np.minimum(np.exp(random.normal(10.4, 0.8, users)), 99_999)
    pay = np.where(random.random(users) < 0.6, pay // 1000 * 1000, pay)
    hours = np.where(random.random(users) < 0.3, 0, random.integers(1, 80, users))
    return {"pay": _within(pay, 100_000), "hours": _within(np.where(random.random(users) < 0.55, 40, hours), 100)}


def _twins(random: np.random.Generator, users: int) -> Columns:
    first = random.integers(0, 300, users)
    second = np.where(random.random(users) < random.uniform(0.7, 0.99), first, random.integers(0, 300, users))
    return {"first": _within(first, 300), "second": _within(second, 300)}


EVERYDAY: Mapping[str, Callable[[np.random.Generator, int], Columns]] = {
    "prices": _prices,
    "births": _births,
    "far codes": _far_codes,
    "opinions": _opinions,
    "amounts": _amounts,
    "incomes": _incomes,
    "missing": _missing,
    "days": _days,
    "zip codes": _zip_codes,
    "stripes": _stripes,
    "pay": _pay,
    "twins": _twins,
}


def everyday_case(seed: int) -> Case:
    """The cell of a seed. Tables take turns."""
    random = np.random.default_rng((23, seed))
    name = list(EVERYDAY)[seed // 2 % len(EVERYDAY)]
    epsilon = float(random.choice(EPSILONS))
    users = int(10 ** random.choice([4.0, 4.5, 5.0, 5.3]))
    columns = EVERYDAY[name](random, users)
    frames = {"a": {"uid": np.arange(users), **{column: values for column, (values, _) in columns.items()}}}
    domains: dict[str, Any] = {column: Ordinal(0, size - 1) for column, (_, size) in columns.items()}
    tables = [Table("a", **domains)]
    asked = [drawn_question(frames, tables, random) for _ in range(2 * ASKED)]
    return Case(seed, name, ALONE, tuple(tables), frames, epsilon, users, tuple(asked[:ASKED]), tuple(asked[ASKED:]))
