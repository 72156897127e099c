"""Designs side by side: the error that each would have on some questions, before anything is collected."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from deniable.errors import InvalidParameter, QueryRefused
from deniable.notebook import html_table
from deniable.queries.forecasts.assumed_rows import AssumedRows, MatchingGiven, RowsGiven, Span, assumed_by_question
from deniable.queries.forecasts.fit import FINEST_ONLY, fit_grids, ignored, is_quick, shown_error, sums_values
from deniable.queries.forecasts.forecast import checked_users, error_of, planned
from deniable.queries.forecasts.round_forecast import RoundErrors, round_errors
from deniable.queries.parsing.sql import parse
from deniable.queries.weights.axis_weights import GREEDY, OPTIMAL, RDC
from deniable.queries.weights.table_plan import DESIGNED, DIRECT
from deniable.tables.designs import DESIGNS, GRID
from deniable.tables.specification.specification import Specification
from deniable.wording import counted


@dataclass(frozen=True, slots=True)
class Choice:
    """A design, how it is asked, and the error of every question."""

    design: str
    weights: str
    sums: str
    errors: tuple[float, ...]
    """Infinite where a question is unclear or refused, NaN where a forecast would take minutes."""

    @property
    def score(self) -> float:
        """The geometric mean of the errors; infinite if one is unclear or was not forecast."""
        known = all(math.isfinite(error) for error in self.errors)
        return geometric_mean([max(error, 1e-300) for error in self.errors]) if known else math.inf


@dataclass(frozen=True, slots=True)
class Comparison:
    """Designs and weights by the error they would have, best first."""

    users: int
    questions: tuple[str, ...]
    choices: tuple[Choice, ...]
    rounds: tuple[tuple[RoundErrors, ...], ...] = ()
    """For every question, levels and changes under each mode of rounds, with the design that is recommended."""
    spans: tuple[Span, ...] = ()
    """For each question the error of the fitted grid from low to high, as far as rows are known; else not numbers."""

    @property
    def best(self) -> Choice:
        """The recommendation: the smallest geometric mean of errors over the questions."""
        return self.choices[0]

    def _repr_html_(self) -> str:
        """A table for notebooks, best first."""
        header = ["design", "weights", "sums", *(f"q{number}" for number in range(1, len(self.questions) + 1))]
        rows = (
            [
                choice.design,
                choice.weights,
                choice.sums,
                *map(shown_error, choice.errors),
            ]
            for choice in self.choices
        )
        notes = (f"q{number}: {text}" for number, text in enumerate(self.questions, 1))
        return html_table(header, rows, title=f"Predicted standard errors, {counted(self.users, 'user')}", notes=notes)


def compare(
    collection: Specification,
    questions: Sequence[str],
    users: int,
    *,
    rows: RowsGiven = None,
    matching: MatchingGiven = None,
    advance: Callable[[float], None] = ignored,
) -> Comparison:
    """The predicted errors of some questions under each design and weighting, before anything is collected.

    `rows` are those that users are expected to have, as in `Collection.forecast`, and `matching` is the share of them
    that meets the conditions: a number, a range, or a list with one of these per question.
    `advance` is called with the part of the work that was done since it was last called.
    """
    count = checked_users(users)
    if not questions:
        raise InvalidParameter("questions", "are missing", "Give at least one SELECT.")
    for text in questions:
        parse(text, collection)  # what is refused is refused once, and not by every design
    assumed = assumed_by_question(collection, rows, matching, len(questions))
    designs: dict[str, Specification] = {}
    for design in sorted(DESIGNS):
        try:
            designs[design] = collection.with_settings(design=design)
        except InvalidParameter:
            continue  # too many views for this design
    choices = []
    summing = [sums_values(collection, text) for text in questions]
    for design, changed in designs.items():
        quick = [is_quick(changed, text) for text in questions]
        direct: dict[str, tuple[float, ...]] = {}
        for weights, sums in _ways(design):
            errors = tuple(
                (_error_or_none(changed, text, count, weights, sums, assumed[number]) if quick[number] else math.nan)
                if sums == DIRECT or summing[number]
                else direct[weights][number]
                for number, text in enumerate(questions)
            )
            if sums == DIRECT:
                direct[weights] = errors
            choices.append(Choice(design, weights, sums, errors))
            advance(0.5 / len(designs) / len(_ways(design)))
    start = collection.with_settings(design=GRID)
    fitted = fit_grids(
        start,
        count,
        list(questions),
        compared=False,
        rows=rows,
        matching=matching,
        advance=lambda part: advance(part / 2),
    )
    choices.append(Choice(GRID, "optimal", DIRECT, fitted.errors[GRID]))
    # Between equals the simpler choice comes first.
    choices.sort(
        key=lambda choice: (
            choice.score,
            sum(not math.isfinite(error) for error in choice.errors),
            choice.sums != DIRECT,
            choice.weights != "optimal",
        )
    )
    best = fitted.collection if choices[0].design == GRID else designs[choices[0].design]
    clear = collection.rounds is not None and math.isfinite(choices[0].score)
    rounds = tuple(round_errors(best, text, count) for text in questions) if clear else ()
    return Comparison(count, tuple(questions), tuple(choices), rounds, fitted.spans)


def _ways(design: str) -> list[tuple[str, str]]:
    """The weights and ways to sum that make a difference."""
    if design in FINEST_ONLY:
        return [(OPTIMAL, DIRECT)] if design == "mg" else [(OPTIMAL, DIRECT), (OPTIMAL, DESIGNED)]
    rules = (OPTIMAL, GREEDY, RDC)
    ways = [(rule, DIRECT) for rule in rules]
    return ways + [(rule, DESIGNED) for rule in rules] if design in ("ahio", "ehio", "sr-hio") else ways


def _error_or_none(
    collection: Specification, text: str, users: int, weights: str, sums: str, assumed: AssumedRows
) -> float:
    try:
        return error_of(planned(collection, text, weights, sums, users, assumed=assumed), users, assumed.middle)
    except QueryRefused:  # too many cells for this design
        return math.inf
