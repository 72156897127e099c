"""What reports say about where rows are, and how smoothly they are spread.

Before there are reports, a prior has to be assumed (`smoothness.ASSUMED_SMOOTHNESS`). Afterwards the frequencies of
cells show whether it was right: cells that differ from their neighbours more than it expects speak for a rougher prior.
For each ordinal attribute a few kinds of smoothness are compared, the assumed one and rougher ones, by how likely they
make the frequencies of all cells along this attribute,

    log L(h) = −½ log|C_h + N| − ½ yᵀ(C_h + N)⁻¹y ,

where y are frequencies less those of evenly spread rows, C_h their covariance under the kind h, and N the noise of the
reports. Under the average of the kinds follows how many rows each piece between borders most likely holds, none of them
fewer than none. Plans take that as their base (`learnt_density.py`), and weights and errors both follow from it.

How loosely rows lie in their piece cannot be seen. But pieces whose density differs much from that of their neighbours
speak for steep or spiky data, and so does it if pieces do so elsewhere. Densities are compared on two scales, the
values' own and a logarithmic one; the scale on which neighbours are more alike has more to say on where rows are inside
pieces.

Of a table with many rows per user only reports that stand for rows count, those of weight one; how many they are is
learnt, too. Categories have no order, so that there is nothing to be smooth (`learnt_categories.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import scipy

from deniable.arrays import Floats, Integers
from deniable.queries.grids.compared_spreads import Along, ValueSpread, compared_spreads
from deniable.queries.grids.grid_cells import Asked, CellView, kron, report_noise
from deniable.queries.grids.grid_weights import MOST_PATTERNS, RIDGE
from deniable.queries.grids.heaps import possible_heaps
from deniable.queries.grids.learnt_categories import Categories
from deniable.queries.grids.learnt_density import INTERACTIONS, Learnt, LearntDensity, LearntWeight
from deniable.queries.grids.learnt_interactions import LearntInteractions, PairOfAxes, learnt_interactions
from deniable.queries.grids.piece_densities import contrasts_of, logarithmic, origin_of, parts_inside
from deniable.queries.grids.possible_parts import possible_parts
from deniable.queries.grids.smoothness import Ground, believed
from deniable.queries.grids.unshown_values import unshown_values
from deniable.queries.weights.table_plan import Product
from deniable.tables.designs.views import POINTS, WEIGHT, View
from deniable.tables.schema.attributes import Categorical, Ordinal
from deniable.tables.specification.specification import Specification

LOOSE = 0.5
"""The looseness of a piece whose neighbours are empty: all of its rows may share a value."""
ALIKE_INSIDE = 0.82
"""The looseness of a piece relative to its contrast with neighbours: what both are if single values are independent."""
TIGHT = 0.05
"""The least looseness of any piece."""
FEWEST_ROWS = 0.05
"""The least part of reports that stand for rows which is believed."""
MOST_COUNTED_CELLS = 2**12
"""A view with more cells takes long to count, and a sum of that many noisy numbers says little."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What is counted in the reports of a table, and how it is read."""

    views: tuple[View, ...]
    """The views whose cells are counted."""
    along: Mapping[int, Along]
    categories: Mapping[int, Categories]
    weight: int | None
    """The number of the weight among the grounds of a table with many rows per user."""
    pairs: Mapping[int, CellView]
    """By their numbers, the views of two attributes."""
    grounds: tuple[Ground, ...]
    """Of all attributes, before there are reports."""

    @classmethod
    def of(cls, collection: Specification, name: str, users: float = math.inf) -> Evidence:
        """For a table with a grid of which so many users report."""
        table, design = collection[name], collection.design_of(name)
        unshown = unshown_values(table, design, users)
        everything = (Product(1.0, {}, {}),)
        asked = Asked.of(table, design, [everything])
        seen = [CellView.of(table, view, asked) for view in design if view.cells > 1 and view.number not in unshown]
        views = [view for view in seen if view.means.size <= MOST_PATTERNS and view.view.cells <= MOST_COUNTED_CELLS]
        along: dict[int, Along] = {}
        categories: dict[int, Categories] = {}
        weight = None if table.many is None else len(table.domains)
        for attribute, domain in enumerate(table.domains):
            mine = [view for view in views if attribute in view.functions]
            cut = _with_cells(mine, attribute)
            if not mine:
                continue
            if isinstance(domain, Categorical):
                categories[attribute] = Categories.of([view.view for view in cut], attribute, domain.size)
                continue
            assert isinstance(domain, Ordinal)  # noqa: S101 - no grid has a text
            added = [_added(view, attribute, weight) for view in mine]
            noise = [
                matrix.T @ view.noise @ matrix / float(view.view.probability)
                for view, matrix in zip(mine, added, strict=True)
            ]
            cells = np.concatenate([view.functions[attribute] for view in mine])
            of_cells = np.repeat([view in cut for view in mine], [view.functions[attribute].shape[0] for view in mine])
            cuts = [axis.places for view in cut for axis in view.view.group.axes if axis.attribute == attribute]
            starts = np.unique(np.concatenate([np.array([0]), *map(np.array, cuts)]))
            along[attribute] = Along(
                frozenset(view.view.number for view in mine),
                asked.grounds[attribute],
                cells,
                scipy.linalg.block_diag(*noise),
                starts[starts < domain.size],
                origin_of(domain),
                possible_heaps(domain),
                None if of_cells.all() else of_cells,
            )
        counted = tuple(view.view for view in views) if along or categories else ()
        pairs = {view.view.number: view for view in views if len(view.functions) == 2 and weight is None}
        return cls(counted, along, categories, weight, pairs, asked.grounds)

    def learnt(self, counts: Floats, reports: Integers) -> Learnt:
        """What is learnt of each attribute, from the counts of the views' cells and of the views' reports.

        The counts are those of all cells of the first view, then of the second. All views of the table are numbered.
        """
        if not reports[[view.number for view in self.views]].all():
            return {}
        total = float(reports.sum())
        tables = self._of_rows(counts, reports)
        rows = 1.0 if self.weight is None else max(_rows(tables, reports), FEWEST_ROWS)
        learnt: dict[int, LearntDensity | LearntWeight | LearntInteractions] = {}
        for attribute, evidence in self.along.items():
            frequencies = _along(tables, attribute, evidence.views)
            learnt[attribute] = _learnt(evidence, frequencies / rows, total * rows**2)
        for attribute, categories in self.categories.items():
            cells = _along(tables, attribute, categories.numbers)
            learnt[attribute] = categories.learnt(cells / rows, np.asarray(reports * rows**2, dtype=np.float64))
        if self.weight is not None:
            learnt[self.weight] = LearntWeight(min(rows, 1 - FEWEST_ROWS))
        if self.pairs:
            learnt[INTERACTIONS] = self._interactions(tables, learnt, reports)
        return learnt

    def _interactions(self, tables: list[tuple[View, Floats]], learnt: Learnt, reports: Integers) -> LearntInteractions:
        """What views of two attributes say, relative to what each of these does by itself."""
        compared = []
        for view, frequencies in tables:
            pair = self.pairs.get(view.number)
            if pair is None or pair.means.size != frequencies.size:
                continue
            grounds = [self._ground(number, learnt) for number in pair.functions]
            functions = list(pair.functions.values())
            bases = [known.means(mine) for known, mine in zip(grounds, functions, strict=True)]
            kernels = [known.covered(mine) for known, mine in zip(grounds, functions, strict=True)]
            expected = kron(*bases)
            noise = report_noise(view, expected, pair.counts) - np.outer(expected, expected)
            compared.append(
                PairOfAxes(
                    frequencies.reshape(bases[0].size, bases[1].size),
                    (bases[0], bases[1]),
                    (kernels[0], kernels[1]),
                    noise / float(reports[view.number]),
                )
            )
        return learnt_interactions(compared, (frozenset(pair.functions) for pair in self.pairs.values()))

    def _ground(self, number: int, learnt: Learnt) -> Ground:
        known, mine = self.grounds[number], learnt.get(number)
        everything = np.ones((1, known.atom_of.size))
        return mine.ground(known, everything) if isinstance(mine, LearntDensity) else known

    def frequencies(self, attribute: int, counts: Floats, reports: Integers) -> Floats:
        """The part of reports that are of rows in each cell along an attribute, view after view."""
        return _along(self._of_rows(counts, reports), attribute, self.along[attribute].views)

    def _of_rows(self, counts: Floats, reports: Integers) -> list[tuple[View, Floats]]:
        """For each view the parts of its reports in cells, an array with one axis per attribute; of rows alone."""
        tables, start = [], 0
        for view in self.views:
            mine = (counts[start : start + view.cells] / reports[view.number]).reshape(
                [axis.tree.size for axis in view.group.axes]
            )
            start += view.cells
            weighted = tuple(slice(1, 2) if axis.kind == WEIGHT else slice(None) for axis in view.group.axes)
            tables.append((view, mine[weighted]))
        return tables


def _along(tables: list[tuple[View, Floats]], attribute: int, numbers: frozenset[int]) -> Floats:
    """The parts in cells along an attribute, of the views with these numbers."""
    parts = []
    for view, mine in tables:
        if view.number in numbers:
            attributes = [axis.attribute for axis in view.group.axes]
            position = attributes.index(attribute)
            parts.append(mine.sum(axis=tuple(other for other in range(len(attributes)) if other != position)))
    return np.concatenate(parts)


def _rows(tables: list[tuple[View, Floats]], reports: Integers) -> float:
    """The part of reports that stand for rows."""
    counts = [float(reports[view.number]) for view, _ in tables]
    return float(np.average([mine.sum() for _, mine in tables], weights=counts))


def _added(view: CellView, attribute: int, weight: int | None) -> Floats:
    """patterns × cells along an attribute: which patterns of a view add up to each, of rows alone."""
    total: Floats = np.ones((1, 1))
    for other, functions in view.functions.items():
        size = functions.shape[0]
        every = np.array([[0.0], [1.0]]) if other == weight else np.ones((size, 1))
        total = kron(total, np.eye(size) if other == attribute else every)
    return total


def _with_cells(views: list[CellView], attribute: int) -> list[CellView]:
    """The views that cut an attribute into cells, if there are any: points mix where rows are with how many.

    Those say how many rows pieces hold. Points then say more of where in them rows are.
    """
    cut = [
        view
        for view in views
        if any(axis.attribute == attribute and axis.kind != POINTS for axis in view.view.group.axes)
    ]
    return cut or views


def _learnt(along: Along, frequencies: Floats, reports: float) -> LearntDensity:
    """What the frequencies of cells along an attribute, estimated from this many reports, say about it.

    Where it stays open whether there are heaps, rows are expected as either says, by how likely it is, and pieces are
    as loose as the looser of both.
    """
    known, noise = along.known, along.noise / reports
    counts = np.bincount(known.atom_of)
    piece = np.searchsorted(along.starts, np.cumsum(counts) - counts, side="right") - 1
    inside = np.zeros((along.starts.size, known.shares.size))
    inside[piece, np.arange(piece.size)] = 1.0
    mass, looseness = np.zeros(known.atom_of.size), np.zeros(along.starts.size)
    for chance, kind in compared_spreads(along, inside, frequencies, noise):
        expected, loose = _under(kind, along, inside, frequencies, noise)
        mass, looseness = mass + chance * expected, np.maximum(looseness, loose)
    return LearntDensity(mass, along.starts, looseness)


def _under(
    kind: ValueSpread, along: Along, inside: Floats, frequencies: Floats, noise: Floats
) -> tuple[Floats, Floats]:
    """The part of rows at every value, and the looseness of pieces, if values are spread in a certain way."""
    known = along.known
    matrix = np.eye(known.shares.size) if kind.heaps is None else kind.heaps.matrix(known)
    cells = along.cells @ matrix
    rest = frequencies - known.means(cells)
    within = inside * known.shares
    within /= within.sum(axis=1, keepdims=True)
    kernel = believed(known, kind.smoothness).kernel + kind.spikes * within.T @ within
    gained = kernel @ cells.T @ np.linalg.solve(cells @ kernel @ cells.T + noise, rest)
    held, errors = _held(along, matrix @ kernel @ matrix.T, inside, matrix @ known.shares, frequencies, noise)
    size, values = known.atom_of.size, np.diff(np.append(along.starts, known.atom_of.size))
    lengths = [kind.moved(np.diff(scale)) for scale in (np.arange(size + 1.0), logarithmic(size, along.origin))]
    unseen = np.minimum(errors / held, 1.0) ** 2 / 2  # what noise may hide of the differences between pieces
    contrasts = [contrasts_of(held, np.add.reduceat(length, along.starts), values) ** 2 for length in lengths]
    contrasts = [np.where(values > 1, np.minimum(contrast + unseen, 1.0), 0.0) for contrast in contrasts]
    few = 1 / max(int(np.count_nonzero(values > 1)), 1) ** 2  # that few pieces are alike may be chance
    pooled = [float(held @ contrast) + few for contrast in contrasts]
    logged = pooled[0] ** 2 / (pooled[0] ** 2 + pooled[1] ** 2)
    typical = (1 - logged) * (contrasts[0] + pooled[0]) + logged * (contrasts[1] + pooled[1])
    density = kind.moved(np.maximum(1 + gained / known.shares, 0.0)[known.atom_of])
    guesses = [parts_inside(density, along.starts), parts_inside(lengths[1], along.starts)]
    mass = np.repeat(held, values) * ((1 - logged) * guesses[0] + logged * guesses[1])
    return mass / mass.sum(), np.clip(ALIKE_INSIDE * np.sqrt(typical / 2), TIGHT, LOOSE)


def _held(
    along: Along, kernel: Floats, inside: Floats, expected: Floats, frequencies: Floats, noise: Floats
) -> tuple[Floats, Floats]:
    """The part of rows in each piece, and its error: the most likely one, but none that is nothing for sure.

    Pieces that are known badly may be known well together: all of them share what others leave (`possible_parts.py`).
    """
    shares, pieces = along.known.shares, along.starts.size
    even = inside @ expected
    counted = np.ones(frequencies.size, dtype=bool) if along.of_cells is None else along.of_cells
    frequencies, noise = frequencies[counted], noise[np.ix_(counted, counted)]
    cells = (along.cells[counted] * shares) @ inside.T / (inside @ shares)
    spread = inside @ kernel @ inside.T
    spread[np.diag_indices_from(spread)] += RIDGE + 1e-6 * even**2
    noisy = noise + RIDGE * np.trace(noise) / noise.shape[0] * np.eye(noise.shape[0])
    roots = [scipy.linalg.cholesky(matrix, lower=True) for matrix in (noisy, spread)]
    rows = [
        scipy.linalg.solve_triangular(roots[0], cells, lower=True),
        scipy.linalg.solve_triangular(roots[1], np.eye(pieces), lower=True),
    ]
    wanted = [
        scipy.linalg.solve_triangular(roots[0], frequencies, lower=True),
        scipy.linalg.solve_triangular(roots[1], even, lower=True),
    ]
    stacked = np.concatenate(rows)
    held = possible_parts(stacked, np.concatenate(wanted), even)
    return held / held.sum(), np.sqrt(np.diag(np.linalg.inv(stacked.T @ stacked)))
