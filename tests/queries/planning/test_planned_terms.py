"""Terms of a plan: what they show one by one is what the kernel computes."""

import numpy as np
import pytest

from deniable.engines.kernel.moment_totals import TermArrays
from golden.regenerate import plans


@pytest.fixture(scope="module")
def some_plans():
    """One golden plan in six: joins, groups and public factors among them."""
    chosen = [plan for _, plan in plans()][::6]
    assert any(len(plan.tables) > 1 for plan in chosen)
    assert any(plan.public for plan in chosen)
    assert any(len(plan.private_groups) > 1 for plan in chosen)
    return chosen


def test_terms_are_what_the_kernel_multiplies_and_adds(some_plans):
    random = np.random.default_rng(3)
    for plan in some_plans:
        columns = [random.normal(size=table.columns) for table in plan.tables]
        public = random.normal(size=len(plan.public))
        values = np.concatenate(([1.0], *columns, public))[None, :]
        outcomes = TermArrays.of(plan).outcomes(values)[0].reshape(plan.term_table.groups, plan.term_table.moments)
        for group in range(len(plan.private_groups)):
            for moment in range(len(plan.question.moments)):
                expected = sum(
                    term.coefficient
                    * np.prod([mine[column] for mine, column in zip(columns, term.columns, strict=True)])
                    * np.prod(public[list(term.public)])
                    for term in plan.terms(group, moment)
                )
                assert outcomes[group, moment] == pytest.approx(expected)


def test_terms_of_some_groups_are_a_part_of_all(some_plans):
    for plan in some_plans:
        table = plan.term_table
        groups = np.unique([0, table.groups // 2, table.groups - 1])
        part = table.taken(groups)
        np.testing.assert_array_equal(part.summed(part.coefficients), table.summed(table.coefficients)[groups])
        for position, group in enumerate(groups.tolist()):
            for moment in range(table.moments):
                assert list(part.of(position, moment)) == list(table.of(group, moment))


def test_a_term_prints(some_plans):
    joined = next(plan for plan in some_plans if len(plan.tables) > 1)
    first, *_ = joined.terms()
    assert str(first).startswith(f"{first.coefficient:g}·c{first.columns[0]}·c{first.columns[1]}")
