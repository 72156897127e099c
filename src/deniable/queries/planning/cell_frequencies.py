"""A plan that measures frequencies of cells instead of answering a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.queries.grids.grid_cells import CellView
from deniable.queries.grids.grid_weights import weights_of_view
from deniable.queries.planning.plan import Plan
from deniable.queries.planning.planned_terms import TermTable
from deniable.queries.question.question import MomentOf, PrivateGroups, PublicGroups, Term
from deniable.queries.weights.table_plan import PartPlan, Product, TablePlan

_ALL = (Product(1.0, {}, {}),)


def counting_table(table: str, views: Sequence[CellView], blocks: Sequence[Floats]) -> TablePlan:
    """Contributions whose means are frequencies: for each view patterns × columns, what its cells count for."""
    columns = blocks[0].shape[1] if blocks else 1
    constants = np.zeros(columns) if blocks else np.ones(1)  # no tables have a single combination
    weighed = tuple(weights_of_view(view, block) for view, block in zip(views, blocks, strict=True))
    return TablePlan(table, (PartPlan(constants, weighed, ()),), (_ALL,) * columns)


def counting_plan(plan: Plan, tables: Sequence[TablePlan]) -> tuple[Plan, Integers]:
    """A plan for the frequencies of all combinations of the tables' columns, within the public groups of a given plan.

    They are the private groups of its only moment. Also returns the column of each table for every combination.
    """
    sizes = [table.columns for table in tables]
    outcomes = int(np.prod(sizes))
    columns = np.stack(np.unravel_index(np.arange(outcomes), sizes), axis=1)
    terms = TermTable(
        outcomes, 1, np.arange(outcomes), np.ones(outcomes), columns, np.zeros((outcomes, 0), dtype=np.int64)
    )
    public = tuple(group for group in plan.question.groups if isinstance(group, PublicGroups))
    cells = PrivateGroups("#", (plan.question.tables[0], ""), tuple(range(outcomes)), np.zeros(0, dtype=np.int64))
    question = replace(
        plan.question,
        moments=(MomentOf("frequency", (Term(1.0, {}, {}, {}),), indicator=True),),
        outputs=(),
        groups=(*public, cells),
    )
    made = replace(
        plan,
        question=question,
        tables=tuple(tables),
        private_groups=tuple((number,) for number in range(outcomes)),
        term_table=terms,
        measured=(),
        biases=(),
    )
    return made, np.asarray(columns)
