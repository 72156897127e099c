"""The front door: which design to collect with, for the questions that will be asked. What `dn.plan` does."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import geometric_mean
from typing import Generic

from deniable.queries.forecasts.fit import AnySpecification, Fit
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
    ('grid', '0.0030')
    """

    collection: AnySpecification
    fitted: Fit[AnySpecification]

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
        said = f'Proposed: design = "{self.design}".'
        if unclear:
            return f"{said} {unclear} of {len(self.errors)} questions stay unclear: try more users or a larger ε."
        return said

    def __str__(self) -> str:
        return f"{self.fitted}\n{self.advice}"


def propose(start: AnySpecification, fitted: Fit[AnySpecification]) -> Proposal[AnySpecification]:
    """The fitted grid, or another design if that is clearly better."""
    grid = _score(fitted.errors[GRID])
    scores = {name: _score(errors) for name, errors in fitted.errors.items() if name != GRID}
    best = min(scores, key=lambda name: scores[name], default=GRID)
    if best != GRID and scores[best] < CLEARLY_BETTER * grid:
        return Proposal(start.with_settings(design=best), fitted)
    return Proposal(fitted.collection, fitted)


def _score(errors: tuple[float, ...]) -> float:
    """The geometric mean of errors; infinite where one is unclear or not forecast."""
    if any(math.isinf(error) or math.isnan(error) for error in errors):
        return math.inf
    return geometric_mean([max(error, 1e-300) for error in errors])
