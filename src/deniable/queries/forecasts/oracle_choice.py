"""Which oracles views choose from, by what a workload's own questions are forecast to get from each.

A view takes the oracle of lowest variance for a cell that nobody holds, and sets of cells only where they are better
for the mean of all cells, too. A question weighs many cells, and its error depends on how their estimates vary jointly:
forecasts take the second moments of every law. If rows spread evenly over k cells, the estimates of an oracle whose
reports name a constant number of cells have the covariance a·(I − 1·1ᵀ/k): randomized response and sets of cells then
differ by the factor a alone, whatever is asked. Hashed cells have a·I, so a question that weighs many cells alike only
speaks against them. What is left is checked here, question by question.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

from deniable.mechanisms.oracles import AUTO, SUBSET
from deniable.mechanisms.subset_selection import SubsetSelection
from deniable.queries.forecasts.assumed_rows import MatchingGiven, RowsGiven, assumed_by_question, assumed_rows
from deniable.queries.forecasts.fit import AnySpecification, least_error, outside_errors, spans_of
from deniable.queries.forecasts.proposal import Proposal, score_of
from deniable.tables.designs import GRID
from deniable.tables.designs.views import MOST_MEASURED_VIEWS
from deniable.tables.specification.specification import Specification


def with_best_oracle(
    proposal: Proposal[AnySpecification], rows: RowsGiven, matching: MatchingGiven, advance: Callable[[float], None]
) -> Proposal[AnySpecification]:
    """The proposal with sets of cells, if its questions are forecast better with them."""
    fitted, before = proposal.fitted, proposal.collection
    with_sets = before.with_settings(oracle=SUBSET) if before.oracle == AUTO else before
    if before.oracle != AUTO or not _has_sets(with_sets):
        advance(1.0)
        return proposal
    assumed = assumed_by_question(before, rows, matching, len(fitted.questions))
    each = []
    for text, expected in zip(fitted.questions, assumed, strict=True):
        each.append(least_error(with_sets, text, fitted.users, expected))
        advance(0.5 / len(fitted.questions))
    errors = tuple(each)
    if not score_of(errors) < score_of(proposal.errors):
        advance(0.5)
        return proposal
    changed = replace(fitted, errors={**fitted.errors, before.design: errors})
    if before.design == GRID:
        spans = spans_of(with_sets, fitted.users, fitted.questions, assumed)
        changed = replace(changed, collection=with_sets, spans=spans)
        if fitted.outside:
            expected = assumed_rows(before, rows)
            asked = set(fitted.questions)
            outside = outside_errors(with_sets, fitted.users, asked, expected, lambda part: advance(part / 2))
            changed = replace(changed, outside=outside)
    return Proposal(with_sets, changed)


def _has_sets(specification: Specification) -> bool:
    """Whether any of the first views of a table sends sets of cells."""
    return any(
        view.oracle.label == SubsetSelection.label
        for table in specification.tables
        for view in islice(specification.design_of(table.name), MOST_MEASURED_VIEWS)
    )
