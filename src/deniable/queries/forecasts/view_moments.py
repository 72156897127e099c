"""What one report contributes on average, view by view, for rows spread evenly or as an `Assumption` tilts them.

Cells of a view are worked out once, for all stages of a forecast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.mechanisms.frequency_oracle import second_moments
from deniable.queries.forecasts.assumed_rows import Assumption
from deniable.queries.forecasts.matching_rows import SHOWN_AXES, axis_shares, tilt_of
from deniable.queries.planning.plan import Plan
from deniable.queries.weights.table_plan import CellWeights, PartPlan, TablePlan, ViewWeights
from deniable.tables.designs.views import NUMBERED_CELLS, WEIGHT, Design


@dataclass(frozen=True, slots=True)
class EvenShares:
    """Where reports of a table lie among cells, given how many rows users have."""

    design: Design
    sizes: tuple[int, ...]
    """Of the domains of all attributes."""
    up: float | None
    """How likely a weight is rounded up; None where every report counts alike."""
    tilts: Mapping[int, Floats]
    """By the number of an attribute, how many times as many rows have each value as if spread evenly."""

    @classmethod
    def of(cls, plan: Plan, table: TablePlan, assumed: Assumption) -> EvenShares:
        """Of a table of a plan."""
        described = plan.collection[table.table]
        up = None if described.many is None else assumed.weighted(described)
        tilts = {
            described.private.index(name): tilt
            for (owner, name), tilt in tilt_of(plan, assumed).items()
            if owner == table.table
        }
        sizes = tuple(domain.size for domain in described.domains)
        return cls(plan.collection.design_of(table.table), sizes, up, tilts)

    def by_cell(self, view: ViewWeights) -> CellWeights:
        """The weights of a view's cells; half of the reports have weight in plans, and as many as assumed here.

        A plan that follows reports has shares that follow them, too: tilted ones are worked out anew where they can be.
        """
        cells = view.by_cell()
        if (self.up in (None, 0.5) and not self.tilts) or view.cell_count > NUMBERED_CELLS:
            return cells
        axes = list(zip(self.design.view(view.view).group.axes, view.levels, strict=True))
        anew = bool(self.tilts) and all(axis.kind in (*SHOWN_AXES, WEIGHT) for axis, _ in axes)
        numbers, shares = cells.cells, np.ones_like(cells.shares) if anew else cells.shares
        for axis, level in reversed(axes):
            numbers, node = np.divmod(numbers, axis.tree.cells(level))
            if self.up is not None and axis.rounds_weight and axis.tree.cells(level) > 1:
                heavy = node >= axis.tree.cells(level) // 2
                shares = shares * np.where(heavy, 2 * self.up, 2 * (1 - self.up))
            if anew and axis.kind == WEIGHT:
                shares = shares / axis.tree.cells(level)
                continue
            tilt = self.tilts.get(axis.attribute)
            if axis.kind in SHOWN_AXES and (anew or tilt is not None):
                ones = np.ones(self.sizes[axis.attribute])
                evenly = ones.size if anew else np.maximum(axis_shares(axis, level, ones), 1e-300)
                shares = shares * (axis_shares(axis, level, ones if tilt is None else tilt) / evenly)[node]
        return cells._replace(shares=shares)


@dataclass(frozen=True, slots=True, eq=False)
class PartMoments:
    """Of one report of a part, for pairs of columns."""

    viewed: Floats
    """E[w_i·w_j] if reports were not randomised."""
    randomised: Floats
    """E[w_i·w_j] as they are."""
    between: Floats
    """Σ_v π_v·x_v·x_vᵀ − x·xᵀ, x_v being what reports of view v contribute on average."""

    @classmethod
    def of(cls, part: PartPlan, shares: EvenShares, left: Integers, right: Integers) -> PartMoments:
        """With the weights of a plan."""
        constants = part.constants
        viewed = constants[left] * constants[right]
        randomised, between, mean = viewed.copy(), np.zeros(left.size), np.zeros(constants.size)
        for view in part.views:
            cells = shares.by_cell(view)
            weights = cells.weights.dense(constants.size)
            products, means = weights[:, left] * weights[:, right], cells.shares @ weights
            own = cells.shares @ products  # the cell that the row lies in
            sums, law = weights.sum(axis=0), second_moments(view.oracle)
            noisy = law.of(products.sum(axis=0), own, sums, means, lambda first, second: first[left] * second[right])
            crossed = constants[left] * means[right] + constants[right] * means[left]
            viewed += view.probability * (crossed + own)
            randomised += view.probability * (crossed + noisy)
            between += view.probability * means[left] * means[right]
            mean += view.probability * means
        return cls(viewed, randomised, between - mean[left] * mean[right])
