"""Two looks on drawn tables: a tenth of the users choose the design of the rest, next to one design for everybody.

Nobody says beforehand what will be asked. Questions are ranges with constants from the data, round numbers, or
anything, as in the rest of the zoo. Errors are those of answers over all users, forecast and measured. Chance decides
who is in the first group.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.arrays import Booleans
from deniable.collection import Collection, fit, plan
from deniable.database import Database, connect
from deniable.queries.forecasts.assumed_rows import NOTHING_SAID
from deniable.queries.forecasts.first_look import densities
from deniable.queries.forecasts.two_looks import GroupOfUsers, two_looks
from deniable.randomness import SeededSource
from deniable.tables import Ordinal, Table
from deniable_lab.experiments.zoo.drawn_case import Asked, Case, drawn_test
from deniable_lab.experiments.zoo.shapes import drawn_columns

UNEVEN_SHAPES = ("skewed", "zero-inflated", "atoms")
"""Shapes that are skewed or spiky. A first look at a nearly constant attribute says that a second is worth little."""
FIRST_SHARE = 10
"""One user in so many is asked first."""
QUESTIONS = 12
DRAWN_SIZES = (200, 1_000, 10_000)


@dataclass(frozen=True, slots=True)
class MeasuredLooks:
    """One drawn table, or two that are joined."""

    shape: str
    tables: int
    size: int
    """Of the domain of the first attribute."""
    epsilon: float
    forecast: float
    """How many times smaller the error of all users together is with two looks, as predicted …"""
    measured: float
    """… and in fact: the ratio of root mean squared errors over questions and releases."""


def drawn_looks(seed: int, users: int) -> Case:
    """A table of an uneven shape, or two, and questions about them."""
    random = np.random.default_rng((21, seed))
    shape = UNEVEN_SHAPES[seed // 2 % len(UNEVEN_SHAPES)]
    names = ("a", "b") if seed // 2 // len(UNEVEN_SHAPES) % 2 else ("a",)
    sizes = {name: int(random.choice(DRAWN_SIZES)) for name in names}
    columns = {name: drawn_columns([shape], [size], users, False, random)[0] for name, size in sizes.items()}
    tables = tuple(Table(name, v=Ordinal(0, size - 1)) for name, size in sizes.items())
    asked = tuple(
        Asked(
            "COUNT",
            ("a", "v"),
            tuple(drawn_test((name, "v"), columns[name], sizes[name], random) for name in names),
            names,
        )
        for _ in range(QUESTIONS)
    )
    frames = {name: {"uid": np.arange(users), "v": values} for name, values in columns.items()}
    epsilon = float(random.choice([2.0, 4.0])) * len(names)
    return Case(seed, shape, "one to one" if len(names) > 1 else "alone", tables, frames, epsilon, users, (), asked)


def measured_looks(case: Case, releases: int) -> MeasuredLooks:
    """Both ways to collect, several times."""
    first = Collection(*case.tables, epsilon=case.epsilon)
    unlooked = fit(list(case.tables), epsilon=case.epsilon, users=case.users, compared=False).collection
    texts = [str(asked) for asked in case.outside]
    truths = np.array([case.truth(asked) for asked in case.outside])
    squares, predicted = np.zeros(2), np.zeros(2)
    for release in range(releases):
        early = np.random.default_rng((22, case.seed, release)).random(case.users) * FIRST_SHARE < 1
        looked = connect(_reports(first, case, early, release))
        rest = plan(list(case.tables), None, epsilon=case.epsilon, users=int((~early).sum()), after=looked).collection
        groups = GroupOfUsers(first, int(early.sum())), GroupOfUsers(rest, int((~early).sum()))
        seen, assumed = densities(looked, rest), [NOTHING_SAID] * len(texts)
        looks = two_looks(*groups, unlooked, texts, seen, assumed, alike=True)
        predicted += [float(np.sum(np.square(errors))) for errors in (looks.one_look, looks.two_looks)]
        everybody = np.ones(case.users, dtype=bool)
        alone = connect(_reports(unlooked, case, everybody, release))
        both = connect([_reports(first, case, early, release), _reports(rest, case, ~early, release)], alike=True)
        squares += [float(np.sum(np.square(_answers(db, texts) - truths))) for db in (alone, both)]
    return MeasuredLooks(
        case.shape,
        len(case.tables),
        case.tables[0].domains[0].size,
        case.epsilon,
        math.sqrt(predicted[0] / predicted[1]),
        math.sqrt(squares[0] / squares[1]),
    )


def _reports(collection: Collection, case: Case, who: Booleans, release: int) -> Any:
    frames: dict[str, Any] = {
        name: {column: values[who] for column, values in rows.items()} for name, rows in case.frames.items()
    }
    source = SeededSource(1000 * case.seed + release + (10**6 if who.all() else 0))
    return collection.perturb(**frames, source=source, simulation=True)


def _answers(db: Database, texts: list[str]) -> Any:
    return np.array([db.sql(text).scalar().value for text in texts])
