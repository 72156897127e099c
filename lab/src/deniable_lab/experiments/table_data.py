"""Tables of [XDW20]: SYN-1 and SYN-2 as described there, and households, real or drawn.

What the paper leaves open is filled in here and said in `ABOUT`: values are rounded and cut to their domains,
categories are equally likely, and the ordinal attributes of SYN-2 are made like those of SYN-1.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from deniable.arrays import Floats, Integers
from deniable_lab.experiments.parquet_files import read_columns

Frames = dict[str, pa.Table]
"""A frame of rows per table, each with the column `uid`."""

SIZE = 125
"""Values of an ordinal attribute, 1 to 125, where nothing else is said."""
CATEGORIES = 500
NOISE = 10.0
MANY = 10
"""The most rows that a user has in a table with many."""
SEED = 20_200_831

AGES = 120
INCOMES = 125
INCOME_STEP = 2_000
"""Dollars: the unit in which incomes are counted."""
STATES = (
    1, 2, 4, 5, 6, 8, 9, 10, 11, 12, 13, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33,
    34, 35, 36, 37, 38, 39, 40, 41, 42, 44, 45, 46, 47, 48, 49, 50, 51, 53, 54, 55, 56,
)  # fmt: skip
"""Codes of the states, as the census numbers them."""
WEST = (2, 4, 6, 8, 15, 16, 30, 32, 35, 41, 49, 53, 56)
CALIFORNIA = 6
FILING = ("single", "joint", "separate", "head")
SIZES_1940 = (0.071, 0.248, 0.224, 0.181, 0.115, 0.068, 0.045, 0.025, 0.014, 0.009)
"""Assumed shares of households with 1 to 10 persons. Their mean is that of the United States in 1940: 3.67 persons in
34,949,000 households (Statistical Abstract of the United States 2008, from Current Population Reports). A test
compares how they fall from 3 persons on with the census itself: persons whose deaths were linked (CenSoc-Numident demo,
census1940_persons.parquet) have a number within their household, which has a k-th person if it has k or more. That
file says nothing about small households, because old people are rarely linked."""

ABOUT = {
    "WORDS": "WORDS: drawn, 20,000 pronounceable words of 2 to 12 letters, whose popularity follows Zipf's law (1.5).",
    "ADDRESSES": (
        "ADDRESSES: drawn, 20,000 addresses of web sites of up to 20 bytes, whose popularity follows Zipf's law (1.2)."
    ),
    "NO-HITTERS": "NO-HITTERS: drawn, everybody has another word of 6 letters.",
    "FEW-LETTERS": "FEW-LETTERS: drawn, 500 words of 1 to 6 of the letters a to e, by Zipf's law (1).",
    "PRODUCTS": (
        "PRODUCTS: drawn, once for each number of products: people with an age of 0 to 9, one transaction each with "
        "an amount of 0 to 9, and products of uneven popularity (Dirichlet, 2) with a country of three and a price of "
        "0 to 9."
    ),
    "SYN-1": (
        "SYN-1: drawn as the paper describes: one ordinal attribute normal (m/2, m/4), the others that plus normal "
        "(0, 10); rounded and cut to 1..m; categories uniform on 500."
    ),
    "SYN-2": (
        "SYN-2: drawn as the paper describes: two tables, each with an ordinal attribute of 125 values (made as in "
        "SYN-1) and a categorical one of 500 (uniform); one to one, or 1 to 10 rows of the second for one of the first."
    ),
    "CPS": (
        "CPS: real, 200,576 US households of 2012 to 2014 with their 280,005 tax units (age of the head, filing "
        "status, wages), for the paper's households and persons of 1940; households are drawn with replacement up to "
        "the number of rows wanted, and the state stands for the city."
    ),
    "CPS stand-in": (
        "CPS stand-in: synthetic, not real; households in 51 states with 1 to 10 units, each with an age, a status and "
        "an income, about as the Current Population Survey has them. The state stands for the paper's city."
    ),
    "ATUS": (
        "ATUS: real, age, marital status and weekly hours of 181,335 respondents of the American Time Use Survey, "
        "drawn with replacement, for the paper's 3 million census records."
    ),
    "ATUS stand-in": "ATUS stand-in: synthetic, not real; ages, marital status and hours about as in that survey.",
}
"""What a result says about each."""


@lru_cache(maxsize=2)
def syn1(rows: int, ordinals: int = 4, categoricals: int = 0, first_size: int = SIZE) -> pa.Table:
    """SYN-1: `o1`…, `c1`…, and `open`, the attribute that is not sensitive.  [XDW20, Section 7]

    The first attribute may have another domain, 1..first_size: then it follows the same normal law on that scale.
    """
    random = np.random.default_rng([SEED, 1])
    z = random.standard_normal(rows)
    base = SIZE / 2 + z * SIZE / 4
    columns = {"uid": np.arange(rows), "o1": _cut(first_size / 2 + z * first_size / 4, first_size)}
    for number in range(2, ordinals + 1):
        columns[f"o{number}"] = _cut(base + random.normal(0, NOISE, rows), SIZE)
    columns["open"] = _cut(base + random.normal(0, NOISE, rows), SIZE)
    for number in range(1, categoricals + 1):
        columns[f"c{number}"] = random.integers(1, CATEGORIES + 1, rows)
    return pa.table(columns)


@lru_cache(maxsize=2)
def syn2(rows: int, many: bool = False) -> Frames:
    """SYN-2 with so many joined rows: `one` has attributes a, b and `two` has x, z.  [XDW20, Section 7]"""
    random = np.random.default_rng([SEED, 2, int(many)])
    users = max(round(rows / ((1 + MANY) / 2)), 1) if many else rows
    owner = np.repeat(np.arange(users), random.integers(1, MANY + 1, users)) if many else np.arange(users)
    base = random.normal(SIZE / 2, SIZE / 4, users)
    first = {"uid": np.arange(users), "a": _cut(base, SIZE), "b": random.integers(1, CATEGORIES + 1, users)}
    x = _cut(base[owner] + random.normal(0, NOISE, owner.size), SIZE)
    return {"one": pa.table(first), "two": pa.table({"uid": owner, "x": x, "z": random.integers(1, 501, owner.size)})}


def _cut(values: Floats, size: int) -> Integers:
    """Whole numbers from 1 to size."""
    return np.clip(np.rint(values), 1, size).astype(np.int64)


@lru_cache(maxsize=2)
def households(rows: int, west: bool, folder: Path | None, sizes: tuple[float, ...] = ()) -> Frames:
    """`homes` (state) and `people` (status, age, income), about so many of the latter.

    With `west` only the households of that region, where California has two fifths, as Chicago has in Illinois; in
    the country it has a tenth, as Indianapolis has in Indiana. `sizes` are shares of households with 1, 2, … people:
    then people of the survey are put together at random, in households of such sizes.
    """
    random = np.random.default_rng([SEED, 3])
    state, first, count, status, age, income = _drawn(random) if folder is None else _census(folder)
    usable = np.flatnonzero(np.isin(state, WEST) | (not west))
    if sizes:
        members = np.arange(1, len(sizes) + 1)
        homes = random.choice(usable, max(round(rows / float(members @ np.array(sizes))), 1))
        owner = np.repeat(np.arange(homes.size), random.choice(members, homes.size, p=sizes))
        unit = random.integers(0, status.size, owner.size)
    else:
        homes = random.choice(usable, max(round(rows / count[usable].mean()), 1))
        # The units of a household stand together.
        owner = np.repeat(np.arange(homes.size), count[homes])
        within = np.arange(owner.size) - np.repeat(np.cumsum(count[homes]) - count[homes], count[homes])
        unit = first[homes][owner] + within
    people = {
        "uid": owner,
        "status": pa.array(FILING).take(pa.array(status[unit])),
        "age": np.clip(age[unit], 1, AGES),
        "income": np.minimum(income[unit] // INCOME_STEP, INCOMES - 1),
    }
    return {"homes": pa.table({"uid": np.arange(homes.size), "state": state[homes]}), "people": pa.table(people)}


_Columns = tuple[Integers, Integers, Integers, Integers, Integers, Integers]


def _census(folder: Path) -> _Columns:
    """The real households: state, first unit, number of units; and per unit status, age, income."""
    homes = read_columns(folder / "cps_households.parquet", "hh_id", "state_fips").sort_by("hh_id")
    facts = ("filing_status", "age_head", "wages_dollars")
    units = read_columns(folder / "cps_tax_units.parquet", "hh_id", *facts).sort_by("hh_id")
    owner, ids = _numbers(units["hh_id"]), _numbers(homes["hh_id"])
    first = np.searchsorted(owner, ids)
    count = np.searchsorted(owner, ids, side="right") - first
    status, age, income = (_numbers(units[name]) for name in facts)
    return _numbers(homes["state_fips"]), first, count, status - 1, age, income


def _drawn(random: np.random.Generator, homes: int = 200_000) -> _Columns:
    """Households of about the same shape."""
    shares = np.array([1 / (2.0 + rank) for rank in range(len(STATES))])
    west, there = np.isin(STATES, WEST), np.equal(STATES, CALIFORNIA)
    shares *= np.where(west, 0.155 / shares[west & ~there].sum(), 0.74 / shares[~west].sum())
    shares[there] = 0.105
    state = random.choice(STATES, homes, p=shares).astype(np.int64)
    count = np.minimum(random.geometric(0.72, homes), MANY).astype(np.int64)
    first = np.cumsum(count) - count
    units = int(count.sum())
    status = random.choice(len(FILING), units, p=[0.52, 0.38, 0.02, 0.08]).astype(np.int64)
    age = np.clip(random.normal(48, 18, units), 15, 85).astype(np.int64)
    works = random.random(units) < np.where(age < 65, 0.75, 0.2)
    income = works * random.lognormal(10.3 + 0.6 * (status == 1), 0.9, units)
    return state, first, count, status, age, np.minimum(income, 2e6).astype(np.int64)


def _numbers(column: pa.ChunkedArray) -> Integers:
    return np.asarray(pc.cast(column, pa.int64()).to_numpy(), dtype=np.int64)
