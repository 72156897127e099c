"""Sets of cells are proposed where a workload's own questions gain by them, and what makes that choice is a theorem."""

from fractions import Fraction

import pytest

import deniable as dn
from deniable.mechanisms import LocalHashing, RandomizedResponse
from deniable.mechanisms.subset_selection import SubsetSelection

PEOPLE = dn.Table("people", age=dn.Ordinal(0, 29))
DECADES = ["SELECT COUNT(*) FROM people WHERE age < 10", "SELECT COUNT(*) FROM people WHERE age BETWEEN 10 AND 19"]
THIRDS = [f"SELECT COUNT(*) FROM people WHERE age BETWEEN {first} AND {first + 2}" for first in range(0, 30, 3)]


def mean_covariance(oracle, k):
    """Over all true cells alike: the variance of a cell's indicator in a report, and the covariance of two cells'."""
    p, q, (with_true, of_others) = oracle.p, oracle.q, oracle.pairs
    alone = (p * (1 - p) + (k - 1) * q * (1 - q)) / k
    return alone, (2 * (with_true - p * q) + (k - 2) * (of_others - q * q)) / k


@pytest.mark.parametrize("k", [3, 8, 25])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_between_responses_and_sets_no_question_decides_and_hashing_only_loses_by_one(epsilon, k):
    for oracle in (RandomizedResponse(epsilon, k), SubsetSelection(epsilon, k)):
        alone, two = mean_covariance(oracle, k)
        assert two == -alone / (k - 1)  # a·(I − 1·1ᵀ/k), in fractions
    _, two = mean_covariance(LocalHashing(epsilon, k), k)
    assert abs(two) < Fraction(1, 10**6)


def test_a_plan_takes_sets_where_its_questions_gain_and_says_so():
    planned = dn.plan(PEOPLE, THIRDS, epsilon=1.0, users=50_000, only_workload=True)
    assert planned.collection.oracle == "subset"
    assert planned.advice == 'Proposed: design = "grid", oracle = "subset".'
    plain = planned.collection.with_settings(oracle="auto")
    for question, error in zip(THIRDS, planned.errors, strict=True):
        with_sets, without = (each.forecast(question, users=50_000).scalar() for each in (planned.collection, plain))
        assert with_sets.error / 50_000 == pytest.approx(error)
        assert with_sets.error < without.error


def test_nothing_changes_where_no_view_has_sets_or_another_oracle_was_asked_for():
    few = dn.plan(PEOPLE, DECADES, epsilon=2.0, users=50_000, only_workload=True)
    assert few.collection.oracle == "auto"
    assert few.advice == 'Proposed: design = "grid".'
    hashed = dn.plan(PEOPLE, THIRDS, epsilon=1.0, users=50_000, only_workload=True, oracle="olh")
    assert hashed.collection.oracle == "olh"
