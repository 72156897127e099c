"""Weights on the cells of a grid: the least error, variance and bias together.

A question f about a row need not be constant on cells, so that no weights α reproduce it: the mean of
f̂(t) = α_0 + Σ_v α_v(cell_v(t)) over the rows differs from that of f. Under the prior of `smoothness.py` the square of
this bias is expected to be (f̂ − f)·C·(f̂ − f), C being the prior's covariance, and with n users the variance of the
answer per user is Σ_v α_v·N_v·α_v/(n·π_v), N_v being the noise of a view's report. The least sum of both has

    α = (C_cells + N/(n·π))⁻¹ · C_cells,f ,        α_0 = f̄ − Σ_v ᾱ_v ,

where C_cells are the covariances between cells of all views. That is generalised least squares over all views that say
something about f, including views with other attributes. As n grows, it fits exactly what cells can determine.

Columns that cells or points reproduce need no prior. They come first: their weights are those of
`grid_exact_weights.py`, whatever the data is like, and have no model error. With `unbiased` the others are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy  # its parts are loaded on first use: most questions need none

from deniable.arrays import Booleans, Floats, Integers
from deniable.errors import QueryRefused
from deniable.mechanisms.frequency_oracle import NamedCell
from deniable.queries.grids.grid_cells import Asked, CellView
from deniable.queries.grids.grid_exact_weights import ExactWeights, exact_weights
from deniable.queries.grids.learnt_density import Learnt
from deniable.queries.grids.unshown_values import unshown_values
from deniable.queries.weights.row_products import Rows
from deniable.queries.weights.table_plan import Column, PartPlan, TablePlan, ViewWeights
from deniable.tables.designs.views import WEIGHT, Design
from deniable.tables.schema.attributes import Table

MOST_PATTERNS = 4_000
MOST_WEIGHTS = 50_000_000
WORTH = 0.02
"""A view that explains less than this part of what the best view explains is left out."""
FEW_CELLS = 100
"""A view with more cells than this must explain proportionally more."""
RIDGE = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class System:
    """Views and columns under the prior: everything but how many users there are and how they are divided."""

    asked: Asked
    views: tuple[CellView, ...]
    spans: tuple[slice, ...]
    """The position of each view's patterns among all patterns."""
    prior: Floats
    """Covariances of patterns."""
    crossed: Floats
    """Covariances of patterns and columns."""

    @classmethod
    def of(cls, asked: Asked, views: Sequence[CellView]) -> System:
        """Covariances of everything with everything."""
        reach = np.concatenate(([0], np.cumsum([view.means.size for view in views], dtype=np.int64))).tolist()
        spans = tuple(slice(low, high) for low, high in pairwise(reach))
        prior, crossed = np.zeros((reach[-1], reach[-1])), np.zeros((reach[-1], asked.columns))
        for number, (view, mine) in enumerate(zip(views, spans, strict=True)):
            crossed[mine] = asked.covariances(view)
            for other, theirs in zip(views[number:], spans[number:], strict=True):
                prior[mine, theirs] = view.covariances(other, asked)
                prior[theirs, mine] = prior[mine, theirs].T
        return cls(asked, tuple(views), spans, prior, crossed)

    def weights(self, users: float, chances: Sequence[float]) -> Floats:
        """patterns × columns: the weights of least error."""
        return self.fitted(users, chances, self.crossed)

    def fitted(self, users: float, chances: Sequence[float], crossed: Floats) -> Floats:
        """The weights of least error for anything of which the covariances with all patterns are given."""
        if not self.views or not self.prior.any():
            return np.zeros_like(crossed)
        matrix = self.prior.copy()
        for view, span, chance in zip(self.views, self.spans, chances, strict=True):
            matrix[span, span] += view.noise / (users * chance)
        matrix[np.diag_indices_from(matrix)] += RIDGE * np.trace(matrix) / matrix.shape[0]
        return np.asarray(
            scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix, overwrite_a=True, check_finite=False), crossed)
        )

    def spending(self, weights: Floats) -> list[Floats]:
        """For each view what its weights add to the variance of every column, times the view's probability."""
        return [
            np.einsum("uc,uc->c", weights[span], view.noise @ weights[span])
            for view, span in zip(self.views, self.spans, strict=True)
        ]


@dataclass(frozen=True, slots=True, eq=False)
class Bias:
    """What a table's weights answer under the prior, compared with what its columns ask."""

    system: System
    weights: Floats
    """patterns × columns."""
    spread: Floats
    """Covariances of patterns and answers."""
    users: float
    """The number of users for which the weights were chosen; in a join an effective number."""
    reports: int
    """How many reports of a user are added up."""
    exact: Booleans
    """The columns that are answered without an assumption; their weights are not listed."""

    @property
    def asked(self) -> Asked:
        """The columns."""
        return self.system.asked

    def products(self, left: Integers, right: Integers) -> tuple[Floats, Floats, Floats, Floats]:
        """E[p(f)p(g)], E[p(f̂)p(g)], E[p(f)p(ĝ)], E[p(f̂)p(ĝ)] for pairs of columns, f̂ being what is answered for f."""
        means = self.asked.column_means()
        base = means[left] * means[right]
        known = self.asked.known
        sure = known[left] | known[right]  # p(f) is f, and so is what is answered
        first, second = self.weights[:, left], self.weights[:, right]
        truth = self.asked.second_moments(left, right)
        left_answered = base + np.einsum("up,up->p", first, self.system.crossed[:, right])
        right_answered = base + np.einsum("up,up->p", second, self.system.crossed[:, left])
        both_answered = base + np.einsum("up,up->p", first, self.spread[:, right])
        left_exact, right_exact = self.exact[left], self.exact[right]
        left_answered = np.where(left_exact, truth, left_answered)
        right_answered = np.where(right_exact, truth, right_answered)
        both_answered = np.where(left_exact, right_answered, np.where(right_exact, left_answered, both_answered))
        expectations = (truth, left_answered, right_answered, both_answered)
        return tuple(np.where(sure, base, each) * self.reports**2 for each in expectations)  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """Weights for the columns of a table, and how large they make contributions."""

    plan: TablePlan
    bias: Bias | None
    """What the weights leave to an assumption; None if nothing is asked."""
    second: float
    """E[W²] of a user's contribution, averaged over columns."""
    truth: float
    """The same for the true value of her rows."""

    @property
    def assumes(self) -> bool:
        """Whether some column is not reproduced."""
        return self.bias is not None and not self.bias.exact.all()


ROUNDS = 3


def plan_grids(
    asked: Sequence[tuple[Table, Design, Sequence[Column]]],
    users: float,
    *,
    unbiased: bool = False,
    exact_first: bool = True,
    learnt: Mapping[str, Learnt] | None = None,
) -> tuple[Solved, ...]:
    """Weights for all tables of a question, in the light of what was learnt of each.

    In a join a user's contributions are multiplied, W = Π_k W_k. The variance of one table's weights is then multiplied
    by E[W²] of the others and the square of its bias by what the others are worth, E[p(f)²]: to this table it is as if
    there were E[p(f)²]/E[W²] times as many users. A few rounds over the tables settle.
    """

    def solve(table: tuple[Table, Design, Sequence[Column]], effective: float) -> Solved:
        known = (learnt or {}).get(table[0].name)
        return solve_grid(*table, effective, unbiased=unbiased, exact_first=exact_first, learnt=known, reporting=users)

    solved = [solve(table, users) for table in asked]
    if len(asked) > 1 and any(grid.assumes for grid in solved):
        for _ in range(ROUNDS):
            for position, table in enumerate(asked):
                others = [other for number, other in enumerate(solved) if number != position]
                worth = float(np.prod([other.truth / other.second for other in others]))
                solved[position] = solve(table, users * min(worth, 1.0))
    return tuple(solved)


def solve_grid(
    table: Table,
    design: Design,
    columns: Sequence[Column],
    users: float,
    *,
    unbiased: bool = False,
    exact_first: bool = True,
    only: int | None = None,
    learnt: Learnt | None = None,
    reporting: float | None = None,
) -> Solved:
    """Weights for columns, if this many users report; `only` restricts them to a single view.

    In a join `users` are an effective number, and `reporting` says how many there are.
    """
    if not columns:
        empty = TablePlan(table.name, (PartPlan(np.zeros(0), (), ()),), ())
        return Solved(empty, None, 1.0, 1.0)
    asked = Asked.of(table, design, columns, learnt)
    _check_collected(table, design, asked)
    seen = _informative(table, design, asked) if only is None else [CellView.of(table, design.view(only), asked)]
    if sum(view.means.size for view in seen) * asked.columns > MOST_WEIGHTS:
        raise QueryRefused("the question has too many groups for a grid", "Group by bins: FLOOR(x / 10).")
    evidence = frozenset() if unbiased else unshown_values(table, design, users if reporting is None else reporting)
    exact = exact_weights(asked, seen, evidence) if exact_first or unbiased else ExactWeights.none(asked, seen)
    if unbiased and not exact.exact.all():
        raise QueryRefused(
            f"no view of table {table.name!r} can answer this without assuming anything",
            "Ask for ranges along its cells' borders, for sums of rounded attributes; or leave out unbiased.",
        )
    relevant = set() if exact.exact.all() else set(_relevant(asked, seen, users) if only is None else [0])
    system = System.of(asked, [seen[number] for number in sorted(relevant)])
    fitted = np.where(exact.exact, 0.0, system.weights(users, [float(view.view.probability) for view in system.views]))
    blocks = list(exact.weights)
    for number, span in zip(sorted(relevant), system.spans, strict=True):
        blocks[number] = blocks[number] + fitted[span]
    used = [number for number, block in enumerate(blocks) if number in relevant or block.any()]
    views, weights = [seen[number] for number in used], [blocks[number] for number in used]
    known = asked.column_means()
    mean_answers = sum((view.means @ block for view, block in zip(views, weights, strict=True)), np.zeros(len(columns)))
    constants = known - mean_answers
    second = np.square(constants) + 2 * constants * mean_answers
    for view, block in zip(views, weights, strict=True):
        second = second + np.einsum("uc,uc->c", block, view.noise @ block) / float(view.view.probability)
    part = PartPlan(
        constants,
        tuple(weights_of_view(view, block) for view, block in zip(views, weights, strict=True)),
        tuple(_described(table, view) for view in views),
    )
    every = np.arange(len(columns))
    bias = Bias(system, fitted, system.prior @ fitted, users, table.tau, exact.exact)
    plan = TablePlan(table.name, (part,), tuple(columns))
    return Solved(plan, bias, float(second.mean()), float(asked.second_moments(every, every).mean()))


def _check_collected(table: Table, design: Design, asked: Asked) -> None:
    """Refuse attributes that no view collects: the assumption alone would answer."""
    collected = {axis.attribute for view in design for axis in view.group.axes}
    for number in sorted(asked.relevant_grounds - collected):
        if number < len(table.domains):
            raise QueryRefused(
                f"no view of table {table.name!r} collects {table.private[number]!r}",
                "Ask about attributes that the grid collects, or fit the next collection to this question, too.",
            )


def _informative(table: Table, design: Design, asked: Asked) -> list[CellView]:
    """The views that say something about what is asked."""
    about = asked.relevant_grounds
    private = about - {len(table.domains)}
    seen = []
    for view in design:
        grounds = {axis.attribute for axis in view.group.axes if axis.attribute >= 0}
        if view.cells == 1 or not about or (private and not private & grounds):
            continue
        cells = CellView.of(table, view, asked)
        if cells.means.size <= MOST_PATTERNS:
            seen.append(cells)
    return seen


def _relevant(asked: Asked, seen: Sequence[CellView], users: float) -> list[int]:
    """The numbers of the most informative views, as many as there is room for."""
    if not seen:
        return []
    alone = [System.of(asked, [view]) for view in seen]
    explained = [
        np.einsum("uc,uc->c", system.crossed, system.weights(users, [float(view.view.probability)]))
        for system, view in zip(alone, seen, strict=True)
    ]
    best = np.max(explained, axis=0)
    worth = [float((each / np.maximum(best, 1e-300)).max()) for each in explained]
    order = sorted(range(len(seen)), key=lambda rank: (-worth[rank], rank))
    chosen, room = [], MOST_PATTERNS
    for rank in order:
        size, cells = seen[rank].means.size, seen[rank].counts.sum()
        if worth[rank] >= WORTH * max(1.0, cells / FEW_CELLS) and size <= room:
            chosen.append(rank)
            room -= size
    return chosen


def weights_of_view(seen: CellView, weights: Floats) -> ViewWeights:
    """A view's weights in the form that engines use."""
    view = seen.view
    cells, pattern = seen.spread()
    probability = float(view.probability)
    patterns, columns = weights.shape
    shares = (seen.means / seen.counts)[pattern]
    dense = 2 * np.count_nonzero(weights) > weights.size
    by_column = dense and columns < patterns and not isinstance(view.oracle.support, NamedCell)
    if by_column:  # one row per column, of all cells
        rows, each = columns, cells.size
        listed, values = np.tile(cells, rows), weights[pattern].T.ravel()
        row_starts = np.arange(rows + 1) * each
        numbers, coefficients = np.arange(columns), np.full(columns, 1 / probability)
        column_starts = np.arange(columns + 1)
        shares = np.tile(shares, rows)
    else:  # one row per cell, of all columns
        listed, values = cells, np.ones(cells.size)
        row_starts = np.arange(cells.size + 1)
        each_cell = Rows.of(weights[pattern] / probability)
        numbers, coefficients, column_starts = each_cell.columns, each_cell.values, each_cell.starts
    return ViewWeights(
        view=view.number,
        levels=view.levels,
        cells=listed,
        weights=values,
        shares=shares,
        row_starts=row_starts,
        columns=numbers,
        coefficients=coefficients,
        column_starts=column_starts,
        probability=probability,
        p=float(view.oracle.p),
        q=float(view.oracle.q),
        cell_count=view.cells,
        oracle=view.oracle,
    )


def _described(table: Table, seen: CellView) -> str:
    """How each axis is cut: `age 8 × sex 2 cells`, or `age 8 cells × income 5 points`; and how often it is drawn."""
    axes = seen.view.group.axes
    names = [table.private[axis.attribute] if axis.attribute >= 0 else axis.kind for axis in axes]
    kinds = {axis.kind for axis in axes if axis.kind != WEIGHT}
    mixed = len(kinds) > 1
    cuts = [
        f"{name} {axis.tree.size}" + (f" {axis.kind}" if mixed and axis.kind != WEIGHT else "")
        for name, axis in zip(names, axes, strict=True)
    ]
    shown = " × ".join(cuts) + ("" if mixed else f" {axes[0].kind}")
    return f"{shown}, {float(seen.view.probability):.1%} of the reports"
