"""Errors with subset selection over errors without it, on the drawn tables and joins of the zoo.

Predictions are exact for even data of the same size, so a question that gets worse would show there. What reports say
of their own error varies by a few percent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np

from deniable import Collection, SeededSource, connect, fit
from deniable.errors import DeniableError, QueryRefused
from deniable_lab.experiments.zoo.drawn_case import ALONE, ONE_TO_MANY, Case, drawn_case

HIERARCHY, FITTED = "hio", "fitted grid"
MOST_USERS = 10_000
"""Larger cells of the zoo are cut to so many users."""
MOST_VIEWS, MOST_LEAVES = 64, 2_000
"""Of a hierarchy over all attributes of a table. Of two tables, each."""
NOISE = 1e-9


@dataclass(frozen=True, slots=True)
class Gain:
    """One question: errors with subset selection over those without."""

    seed: int
    design: str
    joined: str
    epsilon: float
    question: str
    predicted: float
    measured: float


@dataclass(frozen=True, slots=True)
class Gains:
    """All questions of a kind."""

    design: str
    joined: str
    questions: int
    changed: int
    """Questions whose error is another one: some read no view that changes."""
    median: float
    """Of predictions that change."""
    best: float
    worst: float
    measured: float
    """The median of what reports say."""


def measured_gains(seeds: range, advance: Callable[[float], None], *, fitted: bool) -> Iterator[Gain]:
    """Every question of the cells of some seeds; `fitted`, of grids too, which takes most of the time."""
    for seed in seeds:
        case = smaller(drawn_case(seed))
        for design in (HIERARCHY, FITTED) if fitted else (HIERARCHY,):
            yield from _gains(case, design)
        advance(1.0)


def smaller(case: Case) -> Case:
    """The first users of a cell."""
    if case.users <= MOST_USERS:
        return case
    frames = {
        name: {column: values[frame["uid"] < MOST_USERS] for column, values in frame.items()}
        for name, frame in case.frames.items()
    }
    parts = (case.seed, case.shape, case.joined, case.tables, frames, case.epsilon, MOST_USERS)
    return Case(*parts, case.workload, case.outside)


def _gains(case: Case, design: str) -> Iterator[Gain]:
    collections = [_collection(case, design, oracle) for oracle in ("auto", "subset")]
    if None in collections:
        return
    made = [collection for collection in collections if collection is not None]
    everyone = {"uid": np.arange(case.users)} if case.joined == ONE_TO_MANY else None
    databases = [
        connect(each.perturb(**case.arrow(), everyone=everyone, source=SeededSource(case.seed), simulation=True))
        for each in made
    ]
    for asked in (*case.workload, *case.outside):
        text = str(asked)
        known = {"users": case.users, "rows": case.rows(), "matching": case.matching(asked)}
        try:
            predicted = [float(each.forecast(text, **known).scalar().error) for each in made]  # type: ignore[arg-type]
            measured = [float(db.sql(text).scalar().error) for db in databases]
        except QueryRefused:
            continue
        if min(*predicted, *measured) > 0 and math.isfinite(sum(predicted) + sum(measured)):
            ratios = predicted[1] / predicted[0], measured[1] / measured[0]
            yield Gain(case.seed, design, case.joined, case.epsilon, text, *ratios)


def _collection(case: Case, design: str, oracle: str) -> Collection | None:
    """The cell's collection; None where a hierarchy would have too many views, or nothing can be fitted."""
    if design == HIERARCHY:
        made = Collection(*case.tables, epsilon=case.epsilon, oracle=oracle)
        leaves = max(math.prod(domain.size for domain in table.domains) for table in case.tables)
        views = max(made.views(table.name) for table in case.tables)
        return made if views <= MOST_VIEWS and leaves <= MOST_LEAVES else None
    workload = [str(asked) for asked in case.workload]
    settings = {"users": case.users, "workload": workload, "compared": False, "oracle": oracle}
    try:
        return fit(list(case.tables), epsilon=case.epsilon, **settings).collection  # type: ignore[arg-type]
    except DeniableError:
        return None


def summarised(gains: list[Gain]) -> Iterator[Gains]:
    """By design, and by whether tables are joined."""
    for design in (HIERARCHY, FITTED):
        for joined, name in ((False, "one table"), (True, "joins")):
            mine = [each for each in gains if each.design == design and (each.joined != ALONE) == joined]
            changed = [each for each in mine if abs(each.predicted - 1) > NOISE]
            if changed:
                ratios = [each.predicted for each in changed]
                measured = median(each.measured for each in changed)
                yield Gains(design, name, len(mine), len(changed), median(ratios), min(ratios), max(ratios), measured)
