"""The views of a grid, and questions about a table, as functions of rows.

A cell of a view is a function of a row: how likely the row is to be counted in it before anything is randomised, one
or nothing for a cell with borders, between them for a point that neighbours are rounded to. A view's cell is a product
of such functions, one per axis. So is a question, and a prior says how the two go together (`smoothness.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from deniable.arrays import Booleans, Floats, Integers
from deniable.mechanisms.frequency_oracle import second_moments
from deniable.queries.grids.learnt_density import INTERACTIONS, Learnt
from deniable.queries.grids.learnt_interactions import LearntInteractions
from deniable.queries.grids.smoothness import SEPARATE, Ground, ground, weight_ground
from deniable.queries.weights.table_plan import Column
from deniable.tables.designs.views import POINTS, WEIGHT, Axis, Design, Group, View
from deniable.tables.schema.attributes import Categorical, Table


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """The columns of a question about one table, product by product."""

    grounds: tuple[Ground, ...]
    """Of every private attribute, and of the weight of a table with many rows."""
    functions: tuple[Floats, ...]
    """For each ground the distinct functions of its atoms."""
    given: tuple[Floats, ...]
    """The same of values."""
    means: tuple[Floats, ...]
    """Their means over evenly spread rows."""
    function_numbers: Integers
    """products × grounds: which function each product takes."""
    owners: Integers
    """The column of each product."""
    coefficients: Floats
    columns: int
    interaction: float = 1.0
    """How much attributes have to do with each other, relative to the prior; kernels of grounds are times this."""

    @classmethod
    def of(cls, table: Table, design: Design, columns: Sequence[Column], learnt: Learnt | None = None) -> Asked:
        """Prepare columns for a table's grid, in the light of what was learnt of its attributes."""
        products = [(number, product) for number, members in enumerate(columns) for product in members]
        grounds, given, averaged, means, function_numbers = [], [], [], [], []
        for attribute, (name, domain) in enumerate(zip(table.private, table.domains, strict=True)):
            distinct: dict[bytes, int] = {}
            ones = np.ones(domain.size)
            taken = []
            for _, product in products:
                values: Floats = ones * product.conditions.get(name, ones) * product.measures.get(name, ones)
                taken.append(distinct.setdefault(values.tobytes(), len(distinct)))
            function_numbers.append(taken)
            batch = np.array([np.frombuffer(function) for function in distinct]).reshape(len(distinct), domain.size)
            cuts = [axis.places for part in design.parts for group in part for axis in group.axes]
            mine = [cut for cut, owner in zip(cuts, _attributes(design), strict=True) if owner == attribute]
            given.append(batch)
            known = ground(domain, mine, batch)
            grounds.append(_known(known, batch, attribute, learnt))
            averaged.append(grounds[-1].averaged(batch))
            # Of a constant the mean is its value, whatever the shares of atoms add up to.
            means.append(np.where(_constant(batch), batch[:, 0], grounds[-1].means(averaged[-1])))
        if table.many is not None:
            given.append(np.array([[0.0, table.many / table.tau]]))
            number = len(table.domains)
            grounds.append(_known(weight_ground(), given[-1], number, learnt))
            averaged.append(given[-1])
            means.append(grounds[-1].means(averaged[-1]))
            function_numbers.append([0] * len(products))
        taken_functions = np.array(function_numbers, dtype=np.int64).reshape(len(grounds), len(products)).T
        factor = _interaction(given, taken_functions, learnt)
        if factor != 1:
            grounds = [replace(known, kernel=factor * known.kernel) for known in grounds]
        return cls(
            tuple(grounds),
            tuple(averaged),
            tuple(given),
            tuple(means),
            taken_functions,
            np.array([number for number, _ in products], dtype=np.int64),
            np.array([product.coefficient for _, product in products]),
            len(columns),
            factor,
        )

    @property
    def relevant_grounds(self) -> set[int]:
        """The grounds on which some function is not the same everywhere."""
        return {number for number, batch in enumerate(self.given) if not _constant(batch).all()}

    @property
    def constant_products(self) -> Booleans:
        """The products that are the same for every row."""
        constant = np.ones(self.function_numbers.shape[0], dtype=bool)
        for number, batch in enumerate(self.given):
            constant &= _constant(batch)[self.function_numbers[:, number]]
        return constant

    @property
    def known(self) -> Booleans:
        """The columns that are the same for every row: they need no view and no assumption."""
        return np.asarray(np.bincount(self.owners, ~self.constant_products, minlength=self.columns) == 0)

    def column_means(self) -> Floats:
        """The mean of each column over evenly spread rows."""
        total: Floats = np.ones((1, self.function_numbers.shape[0]))
        for number, means in enumerate(self.means):
            total = total * means[self.function_numbers[:, number]]
        averages: Floats = self._summed(total)[0]
        return averages

    def _summed(self, products: Floats) -> Floats:
        """Values of products (along the last axis) as values of columns."""
        out = np.zeros((products.shape[0], self.columns))
        np.add.at(out.T, self.owners, (products * self.coefficients).T)
        return out

    def covariances(self, view: CellView) -> Floats:
        """The prior's covariance of every pattern of a view with every column."""
        total = np.ones((1, self.function_numbers.shape[0]))
        for number, (known, functions) in enumerate(zip(self.grounds, self.functions, strict=True)):
            mine = view.functions.get(number)
            if mine is None:
                total = total * self.means[number][self.function_numbers[:, number]]
            else:
                second = known.second(mine, functions)[:, self.function_numbers[:, number]]
                both = total[:, None, :] * second[None, :, :]
                total = both.reshape(total.shape[0] * second.shape[0], total.shape[1])
        covariances = self._summed(total) - np.outer(view.means, self.column_means())
        return np.where(self.known, 0.0, covariances / self.interaction)

    def second_moments(self, left: Integers, right: Integers) -> Floats:
        """E[p(f)·p(g)] for pairs of columns f and g."""
        seconds = [
            known.second(functions, functions) for known, functions in zip(self.grounds, self.functions, strict=True)
        ]
        sizes = np.bincount(self.owners, minlength=self.columns)
        firsts = np.cumsum(sizes) - sizes  # products stand column after column
        counts = sizes[left] * sizes[right]
        pair = np.arange(left.size).repeat(counts)
        inside = np.arange(pair.size) - (np.cumsum(counts) - counts).repeat(counts)
        down, along = np.divmod(inside, np.maximum(sizes[right], 1)[pair])
        a, b = firsts[left][pair] + down, firsts[right][pair] + along
        value = self.coefficients[a] * self.coefficients[b]
        for number, second in enumerate(seconds):
            value = value * second[self.function_numbers[a, number], self.function_numbers[b, number]]
        total = np.bincount(pair, value, minlength=left.size).astype(np.float64)
        if self.interaction == 1:
            return total
        means = self.column_means()
        base = means[left] * means[right]
        return np.asarray(base + (total - base) / self.interaction)


def _interaction(given: Sequence[Floats], function_numbers: Integers, learnt: Learnt | None) -> float:
    """How much attributes have to do with each other, as far as products of functions combine them."""
    known = (learnt or {}).get(INTERACTIONS)
    if not isinstance(known, LearntInteractions):
        return 1.0
    varies = np.array([~_constant(batch)[numbers] for batch, numbers in zip(given, function_numbers.T, strict=True)])
    return known.among({frozenset(np.flatnonzero(mine).tolist()) for mine in varies.T})


def _known(known: Ground, functions: Floats, number: int, learnt: Learnt | None) -> Ground:
    """A ground in the light of what was learnt."""
    mine = (learnt or {}).get(number)
    return known if mine is None or isinstance(mine, LearntInteractions) else mine.ground(known, functions)


def _constant(functions: Floats) -> Booleans:
    """Which functions (one per row) are the same everywhere."""
    return np.asarray(np.all(functions == functions[:, :1], axis=1))


def kron(left: Floats, right: Floats) -> Floats:
    """The products of all entries of one array with all entries of the other, like `numpy.kron`, but faster."""
    if left.ndim == 1:
        return np.multiply.outer(left, right).ravel()
    products = left[:, None, :, None] * right[None, :, None, :]
    return products.reshape(left.shape[0] * right.shape[0], left.shape[1] * right.shape[1])


def _attributes(design: Design) -> list[int]:
    return [axis.attribute for part in design.parts for group in part for axis in group.axes]


@dataclass(frozen=True, slots=True, eq=False)
class CellView:
    """A view as patterns of cells: all cells of a pattern carry the same weight."""

    view: View
    patterns: tuple[Integers, ...]
    """For each axis the pattern of each of its cells; −1 for cells that carry no weight."""
    functions: Mapping[int, Floats]
    """For each ground of an axis the patterns as functions of atoms."""
    means: Floats
    """The part of evenly spread rows in each pattern."""
    counts: Floats
    """How many cells each pattern has."""
    noise: Floats
    """The mean square of what one report of this view contributes, as a matrix over weights of patterns."""

    @classmethod
    def of(cls, table: Table, view: View, asked: Asked) -> CellView:
        """A view prepared for a question."""
        patterns, functions = [], {}
        means: Floats = np.ones(1)
        counts: Floats = np.ones(1)
        for axis in view.group.axes:
            number = len(table.domains) if axis.kind == WEIGHT else axis.attribute
            cells = np.eye(2) if axis.kind == WEIGHT else _cell_functions(axis, asked.grounds[number])
            pattern = np.arange(cells.shape[0])
            if axis.kind != WEIGHT and isinstance(table.domains[number], Categorical) and cells.shape[0] > SEPARATE:
                pattern = _alike(cells, asked.functions[number])
            patterns.append(pattern)
            used = int(pattern.max()) + 1
            functions[number] = np.zeros((used, cells.shape[1]))
            np.add.at(functions[number], pattern[pattern >= 0], cells[pattern >= 0])
            means = kron(means, asked.grounds[number].means(functions[number]))
            counts = kron(counts, np.bincount(pattern[pattern >= 0], minlength=used).astype(np.float64))
        return cls(view, tuple(patterns), functions, means, counts, report_noise(view, means, counts))

    def covariances(self, other: CellView, asked: Asked) -> Floats:
        """The prior's covariance of every pattern with every one of another view."""
        total: Floats = np.ones((1, 1))
        for number, known in enumerate(asked.grounds):
            left, right = self.functions.get(number), other.functions.get(number)
            if left is not None and right is not None:
                total = kron(total, known.second(left, right))
            elif left is not None:
                total = kron(total, known.means(left)[:, None])
            elif right is not None:
                total = kron(total, known.means(right)[None, :])
        return np.asarray((total - np.outer(self.means, other.means)) / asked.interaction)

    def spread(self) -> tuple[Integers, Integers]:
        """The cells that carry weight and the pattern of each, by the cells' numbers."""
        group: Group = self.view.group
        pattern, number = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
        for axis, mine in zip(group.axes, self.patterns, strict=True):
            used = int(mine.max()) + 1
            kept = np.flatnonzero(mine >= 0)
            pattern = (pattern[:, None] * used + mine[kept][None, :]).ravel()
            number = (number[:, None] * axis.tree.size + kept[None, :]).ravel()
        return number, pattern


def _cell_functions(axis: Axis, known: Ground) -> Floats:
    """cells × atoms: the part of each atom's values that lies in a cell, or is rounded to a point."""
    size, borders = known.atom_of.size, np.array(axis.places)
    firsts = known.firsts()
    if firsts is not None and np.isin(borders, [*firsts, size - 1]).all():
        return _of_whole_atoms(axis, known, firsts)
    values = np.arange(size)
    cell = np.searchsorted(borders, values, side="right") - 1
    atoms = known.shares.size
    weights = known.weights()
    if axis.kind != POINTS:
        cells = np.bincount(cell * atoms + known.atom_of, weights, minlength=borders.size * atoms)
        return np.asarray(cells.reshape(-1, atoms))
    cell = np.minimum(cell, borders.size - 2)
    up = (values - borders[cell]) / np.diff(borders)[cell]
    number = cell * atoms + known.atom_of
    lower, upper = (
        np.bincount(number, part * weights, minlength=borders.size * atoms).reshape(-1, atoms) for part in (1 - up, up)
    )
    return np.asarray(lower + np.roll(upper, 1, axis=0))


def _of_whole_atoms(axis: Axis, known: Ground, firsts: Integers) -> Floats:
    """The same where no border divides an atom, without a look at every value of a wide domain."""
    borders, atoms = np.array(axis.places), np.arange(firsts.size)
    cell = np.searchsorted(borders, firsts, side="right") - 1
    functions = np.zeros((borders.size, firsts.size))
    if axis.kind != POINTS:
        functions[cell, atoms] = 1.0
        return functions
    cell = np.minimum(cell, borders.size - 2)
    up = (known.middles(firsts) - borders[cell]) / np.diff(borders)[cell]
    functions[cell, atoms] = 1 - up
    functions[cell + 1, atoms] += up
    return functions


def _alike(cells: Floats, functions: Floats) -> Integers:
    """A pattern for every cell: cells that mean the same to the question share one; ignored cells have none (−1)."""
    _, pattern = np.unique(np.round(cells, 12), axis=0, return_inverse=True)
    relevant = (np.abs(cells) @ np.abs(functions).sum(axis=0)) > 0
    pattern = np.where(relevant, pattern.reshape(-1), -1)
    kept = np.unique(pattern[pattern >= 0])
    return np.asarray(np.where(pattern >= 0, np.searchsorted(kept, pattern), -1))


def report_noise(view: View, means: Floats, counts: Floats) -> Floats:
    """A report of the view with weights α on patterns has the mean square αᵀ·noise·α, rows being spread evenly.

    A mean square, not a variance: reports of other views contribute nothing, so the mean varies, too.
    """
    if view.cells == 1:
        return np.zeros((1, 1))
    own, every = np.diag(means), np.diag(counts)
    return np.asarray(second_moments(view.oracle).of(every, own, counts, means, np.outer))
