"""What a cell of the zoo shows: answers of several releases next to the truth, the forecast, and other designs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.collection import Collection, fit
from deniable.database import Database, connect
from deniable.errors import QueryRefused
from deniable.queries.answers.result import Estimate
from deniable.randomness import SeededSource
from deniable_lab.experiments.zoo.drawn_case import ONE_TO_MANY, Asked, Case

NEGLIGIBLE = 1e-7
"""An error of this part of an answer is rounding of floats."""
HIO_CELLS = 10_000
"""Hierarchies over larger products of domains are too slow to ask, and far too noisy to win."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One question of one cell, over all releases."""

    seed: int
    shape: str
    joined: str
    epsilon: float
    users: int
    question: str
    inside: bool
    """Whether the grid was fitted to it."""
    truth: float
    answers: tuple[Estimate, ...]
    """One per release; unclear ones are not a number."""
    reference: float
    """The error of `hio` or of the grid without assumptions, whichever states the smaller one; infinite if neither
    answers. That of `hio` is what it states; that of the grid is measured on the same reports."""
    forecast: float
    """The error that is predicted by somebody who knows roughly how many rows people have, and how many match."""

    @property
    def clear(self) -> tuple[Estimate, ...]:
        """The answers that are numbers."""
        return tuple(answer for answer in self.answers if not math.isnan(answer.value))

    @property
    def covered(self) -> tuple[bool, ...]:
        """Whether each interval holds the truth."""
        slack = 1e-9 * abs(self.truth) + 1e-9
        return tuple(answer.interval[0] - slack <= self.truth <= answer.interval[1] + slack for answer in self.clear)

    @property
    def worst(self) -> float:
        """The largest |z|."""
        slack = 1e-9 * abs(self.truth) + 1e-9
        return max((abs(a.value - self.truth) / (a.error + slack) for a in self.clear), default=0.0)

    @property
    def error(self) -> float:
        """The root of the mean squared error."""
        return _root_mean_square([answer.value - self.truth for answer in self.clear])

    @property
    def ratio(self) -> float:
        """Its error over that of the better design without a model."""
        return self.error / self.reference if 0 < self.reference < math.inf else math.nan

    @property
    def stated(self) -> float:
        """The root of the mean square of the errors that answers state."""
        return _root_mean_square([answer.error for answer in self.clear])

    @property
    def of_forecast(self) -> float:
        """Its error over the predicted one; not a number where either is not known, or nothing but rounding."""
        exact = self.forecast <= NEGLIGIBLE * (1 + abs(self.truth))
        return math.nan if exact or math.isinf(self.forecast) else self.error / self.forecast


def measured_case(case: Case, releases: int) -> list[Measured]:
    """All questions of a cell."""
    workload = [str(asked) for asked in case.workload]
    fitted = fit(list(case.tables), epsilon=case.epsilon, users=case.users, workload=workload, compared=False)
    frames = case.arrow()
    databases = [_opened(fitted.collection, case, frames, release) for release in range(releases)]
    domains = [domain.size for table in case.tables for domain in table.domains]
    plain = None
    if len(domains) <= 3 and math.prod(domains) <= HIO_CELLS:
        plain = _opened(Collection(*case.tables, epsilon=case.epsilon), case, frames, releases)
    measured = []
    for inside, asked in [*((True, each) for each in case.workload), *((False, each) for each in case.outside)]:
        text, truth = str(asked), case.truth(asked)
        answers = tuple(answer for db in databases if (answer := _asked(db, text)) is not None)
        if not answers or math.isnan(truth):
            continue
        measured.append(
            Measured(
                case.seed,
                case.shape,
                case.joined,
                case.epsilon,
                case.users,
                text,
                inside,
                truth,
                answers,
                _reference(databases, plain, text, truth),
                _forecast(fitted.collection, case, asked),
            )
        )
    return measured


def _opened(collection: Collection, case: Case, frames: dict[str, Any], release: int) -> Database:
    source = SeededSource(1000 * case.seed + release)
    everyone = {"uid": np.arange(case.users)} if case.joined == ONE_TO_MANY else None
    return connect(collection.perturb(**frames, everyone=everyone, source=source, simulation=True))


def _asked(db: Database, text: str, *, unbiased: bool = False) -> Estimate | None:
    """The answer; None if it is refused."""
    try:
        return db.sql(text, unbiased=unbiased).scalar()
    except QueryRefused:
        return None


def _reference(grids: Sequence[Database], plain: Database | None, text: str, truth: float) -> float:
    """Of `hio` one release is enough: it has no model, and states its errors well."""
    hierarchy = None if plain is None else _asked(plain, text)
    least = math.inf if hierarchy is None or math.isnan(hierarchy.value) else hierarchy.error
    exact = [_asked(grid, text, unbiased=True) for grid in grids]
    clear = [answer for answer in exact if answer is not None and not math.isnan(answer.value)]
    if len(clear) < len(grids) or _root_mean_square([answer.error for answer in clear]) > least:
        return least
    return _root_mean_square([answer.value - truth for answer in clear])


def _root_mean_square(values: Sequence[float]) -> float:
    return math.sqrt(float(np.mean(np.square(values)))) if values else math.nan


def _forecast(collection: Collection, case: Case, asked: Asked) -> float:
    known = collection.forecast(str(asked), users=case.users, rows=case.rows(), matching=case.matching(asked))
    return known.scalar().error
