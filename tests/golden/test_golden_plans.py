"""Plans of many queries, with their weights, as they were when somebody last looked at them."""

from dataclasses import replace

import numpy as np
import pytest

from golden.plan_weights import same
from golden.regenerate import CASES, PATH, plan_text, plans, text


def test_plans_are_those_of_the_golden_file():
    # To accept a change: .venv/bin/python tests/golden/regenerate.py
    expected, actual = PATH.read_text(encoding="utf-8"), text()
    if not same(expected, actual):
        assert actual == expected  # shows where they differ


def test_there_are_enough_different_queries():
    assert len({query for *_, query in CASES}) >= 60
    assert len({name for name, *_ in CASES}) >= 8
    assert {weights for _, weights, *_ in CASES} >= {"greedy", "rdc", "rdc(4)", "optimal"}


@pytest.fixture(scope="module")
def planned():
    return [plan for _, plan in plans()]


@pytest.mark.parametrize("change", [0.99, 1.01])
def test_one_weight_that_changes_by_one_percent_is_noticed(planned, change):
    noticed = 0
    for plan in planned:
        before = plan_text(plan)
        for table, part, view in every_view(plan):
            if view.weights.size:
                assert not same(before, plan_text(with_changed_weight(plan, table, part, view, change)))
                noticed += 1
    assert noticed >= 90


def test_rounding_is_not_noticed(planned):
    for plan in planned[::10]:
        before = plan_text(plan)
        for table, part, view in every_view(plan):
            assert same(before, plan_text(with_changed_weight(plan, table, part, view, 1 + 1e-9)))


def every_view(plan):
    """(table, part, view) by their positions, for one view of every part."""
    return [
        (t, p, part.views[len(part.views) // 2])
        for t, table in enumerate(plan.tables)
        for p, part in enumerate(table.parts)
        if part.views
    ]


def with_changed_weight(plan, table, part, view, factor):
    """The same plan with the largest weight of one view multiplied."""
    weights = view.weights.copy()
    weights[int(np.argmax(np.abs(weights)))] *= factor
    changed = replace(view, weights=weights)
    mine = plan.tables[table]
    views = tuple(changed if other is view else other for other in mine.parts[part].views)
    parts = (*mine.parts[:part], replace(mine.parts[part], views=views), *mine.parts[part + 1 :])
    return replace(plan, tables=(*plan.tables[:table], replace(mine, parts=parts), *plan.tables[table + 1 :]))
