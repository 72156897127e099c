"""The front door: which design to collect with, for the questions that will be asked. What `dn.plan` does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean
from typing import Any, Generic

from deniable.mechanisms.oracles import SUBSET
from deniable.queries.forecasts.assumed_rows import MatchingGiven, RowsGiven, assumed_by_question
from deniable.queries.forecasts.first_look import densities
from deniable.queries.forecasts.fit import AnySpecification, Fit, fit_grids
from deniable.queries.forecasts.two_looks import GroupOfUsers, TwoLooks, two_looks
from deniable.tables.designs import GRID

CLEARLY_BETTER = 0.9
"""Another design is proposed only if its errors are at most so many times those of the fitted grid."""


@dataclass(frozen=True, slots=True)
class Proposal(Generic[AnySpecification]):
    """The specification to collect with, and the predicted error of each question under it and other designs.

    >>> import deniable as dn
    >>> people = dn.Table("people", age=dn.Ordinal(0, 99))
    >>> proposal = dn.plan(people, ["SELECT COUNT(*) FROM people WHERE age < 18"], epsilon=1.0, users=100_000)
    >>> proposal.design, f"{proposal.errors[0]:.4f}"
    ('grid', '0.0039')
    """

    collection: AnySpecification
    fitted: Fit[AnySpecification]
    looks: TwoLooks | None = None
    """After a first look: the errors of all users together."""

    @property
    def design(self) -> str:
        """The name of the design."""
        return self.collection.design

    @property
    def errors(self) -> tuple[float, ...]:
        """The predicted error of each question: per user for COUNT and SUM; infinite if the answer is unclear."""
        return self.fitted.errors[self.design]

    @property
    def advice(self) -> str:
        """The design, and what to do if it leaves a question unclear."""
        unclear = sum(map(math.isinf, self.errors))
        sets = f', oracle = "{SUBSET}"' if self.collection.oracle == SUBSET else ""
        said = f'Proposed: design = "{self.design}"{sets}.'
        if unclear:
            return f"{said} {unclear} of {len(self.errors)} questions stay unclear: try more users or a larger ε."
        return said

    def __str__(self) -> str:
        return "\n".join(map(str, (self.fitted, *([] if self.looks is None else [self.looks]), self.advice)))


def propose(start: AnySpecification, fitted: Fit[AnySpecification]) -> Proposal[AnySpecification]:
    """The fitted grid, or another design if that is clearly better."""
    grid = score_of(fitted.errors[GRID])
    scores = {name: score_of(errors) for name, errors in fitted.errors.items() if name != GRID}
    best = min(scores, key=lambda name: scores[name], default=GRID)
    if best != GRID and scores[best] < CLEARLY_BETTER * grid:
        return Proposal(start.with_settings(design=best), fitted)
    return Proposal(fitted.collection, fitted)


def propose_after(
    database: Any,
    start: AnySpecification,
    users: int,
    workload: Sequence[str] | None,
    *,
    rows: RowsGiven,
    matching: MatchingGiven,
    advance: Callable[[float], None],
    only_workload: bool,
    others: float | None,
    alike: bool,
) -> Proposal[AnySpecification]:
    """A grid for the rest of the users, by what the reports of a first group say of where rows are.

    Other designs do not follow what was seen, and are forecast for evenly spread rows: they are not compared.
    """
    seen = densities(database, start)
    kept: dict[str, Any] = {
        "compared": False,
        "predicted": False,
        "only_workload": only_workload,
        "others": others,
        "rows": rows,
        "matching": matching,
    }
    # A fit without predictions is half of the work of one with them.
    fitted = fit_grids(start, users, workload, seen=seen, advance=lambda part: advance(0.8 * part), **kept)
    reported = [facts.rows // database.collection.reports_per_user(name) for name, facts in database.stores.items()]
    first = GroupOfUsers(database.collection, max(reported, default=1))
    unlooked = fit_grids(
        start, first.users + fitted.users, workload, advance=lambda part: advance(0.8 * part), **kept
    ).collection
    assumed = assumed_by_question(start, rows, matching, len(fitted.questions))
    second = GroupOfUsers(fitted.collection, fitted.users)
    looks = two_looks(first, second, unlooked, fitted.questions, seen, assumed, alike=alike)
    advance(0.2)
    errors = {GRID: looks.two_looks, "one look": looks.one_look}
    return Proposal(fitted.collection, replace(fitted, errors=errors, users=looks.users), looks)


def score_of(errors: tuple[float, ...]) -> float:
    """The geometric mean of errors; infinite where one is unclear or not forecast."""
    if any(math.isinf(error) or math.isnan(error) for error in errors):
        return math.inf
    return geometric_mean([max(error, 1e-300) for error in errors])
