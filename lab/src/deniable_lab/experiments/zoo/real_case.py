"""Cells of the zoo from real tables: rows are those of surveys, and only the questions, ε and attributes are drawn.

Surveys have what drawn shapes leave out: heaps at 40 hours and at round incomes, top codes, zeros of people who were
not asked, and attributes that depend on each other in their own way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.arrays import Integers
from deniable.tables import Ordinal, Table
from deniable_lab.experiments.data import Data
from deniable_lab.experiments.parquet_files import read_columns
from deniable_lab.experiments.zoo.drawn_case import (
    ALONE,
    ASKED,
    EPSILONS,
    ONE_TO_MANY,
    ONE_TO_ONE,
    Case,
    drawn_question,
)

MOST_ATTRIBUTES = 3
LARGEST_VALUE = 999_999


@dataclass(frozen=True, slots=True)
class Survey:
    """Files of the data folder that share a key, the users, and which of their columns may be asked about."""

    name: str
    joined: str
    key: str
    columns: Mapping[str, tuple[str, ...]]
    """By file; the first file has one row per user."""
    most_rows: int = 1


SURVEYS = (
    Survey("adult", ALONE, "person_id", {"adult": ("age", "education_num", "hours_per_week", "capital_gain")}),
    Survey(
        "atus", ALONE, "person_id", {"atus_work": ("work_hrs_week", "weekly_earn_dollars", "hh_size", "occup_code")}
    ),
    Survey(
        "atus joined",
        ONE_TO_ONE,
        "person_id",
        {
            "atus_demographics": ("age", "marital", "famincome"),
            "atus_work": ("work_hrs_week", "weekly_earn_dollars", "labor_status"),
        },
    ),
    Survey(
        "cps",
        ONE_TO_MANY,
        "hh_id",
        {"cps_households": ("state_fips", "n_people"), "cps_tax_units": ("age_head", "wages_dollars", "agi_bin")},
        12,
    ),
)


def real_case(data: Data, seed: int) -> Case:
    """The cell of a seed. Surveys take turns."""
    random = np.random.default_rng((22, seed))
    survey = SURVEYS[seed // 2 % len(SURVEYS)]
    epsilon = float(random.choice(EPSILONS))
    frames: dict[str, dict[str, Integers]] = {}
    tables: list[Table] = []
    known: Integers = np.zeros(0, dtype=np.int64)
    for position, (file, columns) in enumerate(survey.columns.items()):
        most = MOST_ATTRIBUTES if survey.joined == ALONE else 2
        count = int(random.integers(1, most + 1))
        picked = [columns[number] for number in sorted(random.choice(len(columns), count, replace=False).tolist())]
        read = read_columns(data.required("tables", file), survey.key, *picked)
        keys: Integers = read[survey.key].to_numpy().astype(np.int64)
        if position == 0:
            known = np.unique(keys)
        frame = {"uid": np.searchsorted(known, keys)}
        for column in picked:
            frame[column] = np.minimum(read[column].to_numpy().astype(np.int64), LARGEST_VALUE)
        name = "ab"[position]
        frames[name] = frame
        domains: dict[str, Any] = {column: Ordinal(0, int(frame[column].max())) for column in picked}
        many = survey.joined == ONE_TO_MANY and position == 1
        tables.append(Table(name, many=survey.most_rows, tau=1, **domains) if many else Table(name, **domains))
    asked = [drawn_question(frames, tables, random) for _ in range(2 * ASKED)]
    inside, outside = tuple(asked[:ASKED]), tuple(asked[ASKED:])
    return Case(seed, survey.name, survey.joined, tuple(tables), frames, epsilon, known.size, inside, outside)
