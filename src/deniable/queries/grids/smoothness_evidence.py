"""What reports say about how smooth the data is.

Before there are reports, a prior has to be assumed (`smoothness.ASSUMED_SMOOTHNESS`). Afterwards the frequencies of
cells show whether it was right: cells that differ from their neighbours more than it expects speak for a rougher prior.
For each ordinal attribute a few kinds of smoothness are compared, the assumed one and rougher ones, by how likely they
make the frequencies of all cells along this attribute,

    log L(h) = −½ log|C_h + N| − ½ yᵀ(C_h + N)⁻¹y ,

where y are frequencies less those of evenly spread rows, C_h their covariance under the kind h, and N the noise of the
reports. Expected squares of biases are linear in each attribute's kernel, so its average over the kinds is all that the
errors of answers need.

Cells cannot show how steep the density is inside them, and where most rows share a few cells much depends on it. So
where the density is far above the average, it may rise and fall by as much as it exceeds the average.

Weights on cells stay as planned. Only the stated errors change.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.linalg import block_diag, cho_factor, cho_solve

from deniable.arrays import Floats, Integers
from deniable.queries.grids.grid_cells import Asked, CellView, kron
from deniable.queries.grids.grid_weights import MOST_PATTERNS, RIDGE, Bias, System
from deniable.queries.grids.smoothness import Ground, Smoothness, believed, rough_kernel, smooth_kernel
from deniable.queries.weights.table_plan import Product
from deniable.tables.designs.views import View
from deniable.tables.schema.attributes import Categorical
from deniable.tables.specification.specification import Specification

KERNEL_LENGTHS = (0.25, 0.08, 0.025)
AMPLITUDES = (2.5, 5.0, 10.0)
ROUGHNESSES = (0.3, 1.0, 3.0)
"""The kinds that are compared; the first of each is the assumed one."""
GRANTED = 0.9
"""The prior probability of the assumed kind. Others are proportional to √length / (amplitude · √roughness)."""
FAR_ABOVE = 2.5
"""Densities up to this many times the average are ordinary."""
STEEPNESS = 1.25
"""What exceeds that may be gained or lost nearby, times this factor."""
MOST_COUNTED_CELLS = 2**12
"""A view with more cells takes long to count, and a sum of that many noisy numbers says little."""


@dataclass(frozen=True, slots=True, eq=False)
class Belief:
    """What is believed of an attribute."""

    smoothness: Smoothness
    steep: Floats
    """For every value of the domain how much the density may rise or fall nearby, relative to evenness."""


Beliefs = Mapping[int, Belief]
"""What is believed of some attributes of a table, by their numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """The frequencies of cells along one attribute, of all views that have it."""

    known: Ground
    cells: Floats
    """cells × atoms: what part of an atom each counts."""
    noise: Floats
    """The covariances of their frequencies as estimated from one report."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What is counted in the reports of a table, and how it is read."""

    views: tuple[View, ...]
    """The views whose cells are counted."""
    along: Mapping[int, Along]

    @classmethod
    def of(cls, collection: Specification, name: str) -> Evidence:
        """For a table with a grid."""
        table, design = collection[name], collection.design_of(name)
        everything = (Product(1.0, {}, {}),)
        asked = Asked.of(table, design, [everything])
        seen = [CellView.of(table, view, asked) for view in design if view.cells > 1]
        views = [view for view in seen if view.means.size <= MOST_PATTERNS and view.view.cells <= MOST_COUNTED_CELLS]
        along: dict[int, Along] = {}
        for attribute, domain in enumerate(table.domains):
            mine = [view for view in views if attribute in view.functions]
            if isinstance(domain, Categorical) or not mine:
                continue
            added = [_added(view, attribute) for view in mine]
            noise = [
                matrix.T @ view.noise @ matrix / float(view.view.probability)
                for view, matrix in zip(mine, added, strict=True)
            ]
            cells = np.concatenate([view.functions[attribute] for view in mine])
            along[attribute] = Along(asked.grounds[attribute], cells, block_diag(*noise))
        return cls(tuple(view.view for view in views) if along else (), along)

    def beliefs(self, counts: Floats, reports: Integers) -> Beliefs:
        """What to believe of each attribute, from the counts of the views' cells and of the views' reports.

        The counts are those of all cells of the first view, then of the second. All views of the table are numbered.
        """
        if not reports[[view.number for view in self.views]].all():
            return {}
        total = float(reports.sum())
        return {
            attribute: _believed(evidence, self.frequencies(attribute, counts, reports), total)
            for attribute, evidence in self.along.items()
        }

    def frequencies(self, attribute: int, counts: Floats, reports: Integers) -> Floats:
        """The part of rows in each cell along an attribute, view after view."""
        frequencies, start = [], 0
        for view in self.views:
            mine = counts[start : start + view.cells] / reports[view.number]
            start += view.cells
            attributes = [axis.attribute for axis in view.group.axes]
            if attribute in attributes:
                position = attributes.index(attribute)
                others = tuple(other for other in range(len(attributes)) if other != position)
                frequencies.append(mine.reshape([axis.tree.size for axis in view.group.axes]).sum(axis=others))
        return np.concatenate(frequencies)


def _added(view: CellView, attribute: int) -> Floats:
    """patterns × cells along an attribute: which patterns of a view add up to each."""
    total: Floats = np.ones((1, 1))
    for other, functions in view.functions.items():
        size = functions.shape[0]
        total = kron(total, np.eye(size) if other == attribute else np.ones((size, 1)))
    return total


def _believed(along: Along, frequencies: Floats, reports: float) -> Belief:
    """What the frequencies of cells along an attribute, estimated from this many reports, say about it."""
    known, cells = along.known, along.cells
    rest, noise = frequencies - known.means(cells), along.noise / reports
    smoothness = _compared(known, cells, rest, noise)
    kernel = believed(known, smoothness).kernel
    gained = kernel @ cells.T @ np.linalg.solve(cells @ kernel @ cells.T + noise, rest)
    density = 1 + gained / known.shares
    return Belief(smoothness, (STEEPNESS * np.maximum(density - FAR_ABOVE, 0.0))[known.atom_of])


def _compared(known: Ground, cells: Floats, rest: Floats, noise: Floats) -> Smoothness:
    """The average over kinds of smoothness, weighted by how likely they make the observed frequencies."""
    shared = cells * known.shares
    centred = shared - np.outer(shared.sum(axis=1), known.shares)  # no shape changes the number of rows
    smooth = {length: centred @ smooth_kernel(known, length) @ centred.T for length in KERNEL_LENGTHS}
    rough = centred @ rough_kernel(known) @ centred.T
    kinds = list(product(KERNEL_LENGTHS, AMPLITUDES, ROUGHNESSES))
    likelihoods = np.array(
        [
            _log_density(rest, amplitude**2 * smooth[length] + roughness**2 * rough + noise)
            for length, amplitude, roughness in kinds
        ]
    )
    before = np.array([math.sqrt(length / roughness) / amplitude for length, amplitude, roughness in kinds])
    before[0] = before[1:].sum() * GRANTED / (1 - GRANTED)
    chances = before * np.exp(likelihoods - likelihoods.max())
    chances /= chances.sum()
    variances = dict.fromkeys(KERNEL_LENGTHS, 0.0)
    for chance, (length, amplitude, _) in zip(chances.tolist(), kinds, strict=True):
        variances[length] += chance * amplitude**2
    squares = np.array([roughness**2 for _, _, roughness in kinds])
    return Smoothness(tuple(variances.items()), float(chances @ squares))


def _log_density(values: Floats, covariance: Floats) -> float:
    """The log density of a normal distribution, up to a constant."""
    spread = covariance + RIDGE * np.trace(covariance) / values.size * np.eye(values.size)
    factor = cho_factor(spread, lower=True)
    return float(-np.log(np.diag(factor[0])).sum() - values @ cho_solve(factor, values) / 2)


def revised_bias(bias: Bias, beliefs: Beliefs) -> Bias:
    """What weights leave to an assumption, in the light of what is believed."""
    grounds = list(bias.asked.grounds)
    for attribute, belief in beliefs.items():
        grounds[attribute] = believed(grounds[attribute], belief.smoothness, belief.steep)
    system = System.of(replace(bias.asked, grounds=tuple(grounds)), bias.system.views)
    return replace(bias, system=system, spread=system.prior @ bias.weights)
