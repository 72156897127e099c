"""Plans for what an answer cannot be below or above, whatever the data is like.

A range that ends inside cells holds at least the rows of the cells that lie in it, and at most those of all cells that
it touches. More generally, a product of functions that are never negative lies between the products of their least and
of their largest values on each cell. Both are constant on cells, so that reports answer them without any assumption.
Other functions are differences of two that are never negative, and products of such differences sums of products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from itertools import product as combinations_of

import numpy as np

from deniable.arrays import Floats
from deniable.errors import QueryRefused
from deniable.queries.grids.grid_exact_weights import on_axis
from deniable.queries.grids.grid_weights import plan_grids
from deniable.queries.grids.learnt_density import Learnt, LearntDensity
from deniable.queries.planning.plan import Plan
from deniable.queries.planning.planned_terms import TermTable
from deniable.queries.weights.between_points import between_points
from deniable.queries.weights.table_plan import Column, PartPlan, Product, TablePlan
from deniable.tables.designs.views import POINTS, Design, View
from deniable.tables.schema.attributes import Table

UNSEEN = (2 / 5) ** 2
"""So few places that the interval reaches the further bound (`answers/guard.py`)."""
REACH = 2.0
"""Standard deviations that noise reaches beyond a bound."""
ROUNDS = 3
"""So often the views of a join's tables are chosen in turn."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundingPlans:
    """The same question twice, with functions that cells can answer."""

    low: Plan
    high: Plan
    ends: Floats
    """private groups × moments: in how many places the question does not follow borders; at least one.

    A cell of several attributes, of one table or of several, may hold rows that share values of all of them. So these
    are off in the same places, and those of the attribute with the most count. Nothing says how attributes depend on
    each other that no view shows together: such a question counts as `UNSEEN` places.
    """


def bounding_plans(plan: Plan, learnt: Mapping[str, Learnt]) -> BoundingPlans | None:
    """The question with the least and with the largest functions that cells can answer; None if there are none."""
    bounds = bounding_questions(plan, learnt)
    if bounds is None:
        return None
    collection = plan.collection
    asked = [(collection[table.table], collection.design_of(table.table), table.asked) for table in bounds.low.tables]
    try:
        solved = plan_grids(asked, plan.users, unbiased=True, learnt=learnt)
    except QueryRefused:
        return None
    tables = tuple(grid.plan for grid in solved)
    return replace(bounds, low=replace(bounds.low, tables=tables), high=replace(bounds.high, tables=tables))


def bounding_questions(plan: Plan, learnt: Mapping[str, Learnt]) -> BoundingPlans | None:
    """The same without weights; None where nothing is assumed."""
    if not plan.biases:
        return None
    books = [
        _BoundingColumns(
            plan.collection[table.table],
            plan.collection.design_of(table.table),
            learnt.get(table.table, {}),
            plan.users,
        )
        for table in plan.tables
    ]
    _in_joins(plan, books)
    sides = [_side(plan, books, upper) for upper in (False, True)]
    tables = tuple(
        TablePlan(book.table.name, (PartPlan(np.zeros(len(book.columns)), (), ()),), tuple(book.columns))
        for book in books
    )
    low, high = (replace(plan, tables=tables, term_table=terms, biases=()) for terms in sides)
    return BoundingPlans(low, high, _ends(plan, books))


def _in_joins(plan: Plan, books: Sequence[_BoundingColumns]) -> None:
    """Say how many users there are to each table of a join: its noise is multiplied by what the others contribute.

    As for weights (`grids/grid_weights.py`), and settled in a few rounds, because views depend on each other.
    """
    for _ in range(ROUNDS if len(books) > 1 else 0):
        for book in books:
            others = (
                other.worth(table.asked) for other, table in zip(books, plan.tables, strict=True) if other is not book
            )
            book.users = plan.users * float(np.prod(list(others)))
            book.views.clear()


@dataclass(slots=True, eq=False)
class _BoundingColumns:
    """The columns of one table that bounds need."""

    table: Table
    design: Design
    learnt: Learnt
    users: float
    """How many report, as far as the variance is concerned: in a join fewer than there are."""
    columns: list[Column] = field(default_factory=list)
    parts: dict[int, tuple[Column, Column]] = field(default_factory=dict)
    """Of columns of the question what is added and what is taken away, neither ever negative."""
    numbers: dict[tuple[int, int, bool], int] = field(default_factory=dict)
    """(column, part, upper) → the column that bounds it."""
    views: dict[int, View] = field(default_factory=dict)
    """By product, for as long as the question is there, the view with the closest bounds."""

    def split(self, number: int, column: Column) -> tuple[Column, Column]:
        """A column of the question as a difference."""
        if number not in self.parts:
            self.parts[number] = _split(column, self.table, self.design)
        return self.parts[number]

    def bound(self, number: int, part: int, upper: bool) -> int:
        """The number of the column that bounds a part of a column of the question."""
        key = (number, part, upper)
        if key not in self.numbers:
            self.numbers[key] = len(self.columns)
            self.columns.append(tuple(self._bounded(product, upper) for product in self.parts[number][part]))
        return self.numbers[key]

    def view(self, product: Product) -> View:
        """The view with the closest bounds, noise included, where half of the rows are as learnt and half anywhere.

        Cells of a view that few people report leave little open, and are known so badly that they exclude nothing.
        And what was learnt may be what bounds have to contradict.
        """
        if id(product) not in self.views:
            gaps = [
                (self._gap(view, product.conditions) + self._noise(view, product.conditions), view.number)
                for view in self.design
            ]
            self.views[id(product)] = self.design.view(min(gaps)[1])
        return self.views[id(product)]

    def _bounded(self, product: Product, upper: bool) -> Product:
        view = self.view(product)
        chosen = {
            name: self._bounds(view, name, values)[1 if upper else 0] for name, values in product.conditions.items()
        }
        return Product(product.coefficient, chosen, {}, product.family)

    def _gap(self, view: View, functions: Mapping[str, Floats]) -> float:
        low = high = 1.0
        for name, values in functions.items():
            mass = (self._mass(name, values.size) + 1 / values.size) / 2
            least, largest = self._bounds(view, name, values)
            low, high = low * float(mass @ least), high * float(mass @ largest)
        return high - low

    def worth(self, columns: Sequence[Column]) -> float:
        """The squared mean of what a user contributes to an upper bound, relative to its mean square."""
        worths = []
        for number, column in enumerate(columns):
            for product in (product for part in self.split(number, column) for product in part):
                view, mean = self.view(product), 1.0
                for name, values in product.conditions.items():
                    mean *= float(self._mass(name, values.size) @ self._bounds(view, name, values)[1])
                worths.append(mean**2 / max(self._squares(view, product.conditions)[1] + mean**2, 1e-300))
        return float(np.mean(worths)) if worths else 1.0

    def _noise(self, view: View, functions: Mapping[str, Floats]) -> float:
        """How far noise reaches from both bounds, relative to the users."""
        return float(REACH * np.sqrt(self._squares(view, functions) / self.users).sum())

    def _squares(self, view: View, functions: Mapping[str, Floats]) -> Floats:
        """What the noise of one report adds to the mean square of both bounds: that of all cells they add up."""
        p, q = float(view.oracle.p), float(view.oracle.q)
        squares = np.full(2, q * (1 - q) / (p - q) ** 2 / float(view.probability))
        shown = {self.table.private[axis.attribute]: axis for axis in view.group.axes if axis.attribute >= 0}
        for name, values in functions.items():
            starts = np.minimum(shown[name].places, values.size - 1) if name in shown else np.zeros(1, dtype=np.int64)
            squares *= [np.sum(bound[starts] ** 2) for bound in self._bounds(view, name, values)]
        for axis, level in zip(view.group.axes, view.levels, strict=True):
            if axis.attribute < 0 or self.table.private[axis.attribute] not in functions:
                squares *= axis.tree.cells(level)
        return squares

    def _mass(self, name: str, size: int) -> Floats:
        """The part of rows that is expected at each value."""
        known = self.learnt.get(self.table.private.index(name))
        return known.mass if isinstance(known, LearntDensity) else np.full(size, 1 / size)

    def _bounds(self, view: View, name: str, values: Floats) -> tuple[Floats, Floats]:
        """The closest functions below and above that cells or points determine; constants without an axis."""
        attribute = self.table.private.index(name)
        for axis in view.group.axes:
            if axis.attribute != attribute:
                continue
            starts = np.array(axis.places)
            if on_axis(axis, values) is not None:
                return values, values
            if axis.kind == POINTS:
                return between_points(starts, values, self._mass(name, values.size))
            widths = np.diff(np.append(starts, values.size))
            low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
            return np.repeat(low, widths), np.repeat(high, widths)
        return np.full(values.size, values.min()), np.full(values.size, values.max())

    def ends(self, number: int, column: Column) -> int:
        """In how many places a column does not follow the borders of its views."""
        measured = {name for product in column for name in product.measures}
        return max((self._open(product, measured) for part in self.parts[number] for product in part), default=0)

    def unseen(self, number: int) -> bool:
        """Whether a column combines attributes that no view shows together."""
        shown = [
            {self.table.private[axis.attribute] for axis in view.group.axes if axis.attribute >= 0}
            for view in self.design
        ]
        return any(
            not any(names >= set(pair) for names in shown)
            for part in self.parts[number]
            for product in part
            for pair in combinations([name for name, values in product.conditions.items() if np.ptp(values) > 0], 2)
        )

    def _open(self, product: Product, measured: set[str]) -> int:
        """Measures are off in all cells alike: in one place."""
        view, most = self.view(product), 0
        for name, values in product.conditions.items():
            low, high = self._bounds(view, name, values)
            open_values = low < high
            runs = int(np.count_nonzero(np.diff(open_values.astype(np.int8), prepend=0) == 1))
            most = max(most, min(runs, 1) if name in measured else runs)
        return most


def _side(plan: Plan, books: Sequence[_BoundingColumns], upper: bool) -> TermTable:
    """The terms of a bound. A product of differences is a sum of products, each bounded from its own side."""
    given = plan.term_table
    owners, coefficients, columns, public = [], [], [], []
    for owner, coefficient, mine, factors in zip(
        given.owners.tolist(), given.coefficients.tolist(), given.columns.tolist(), given.public.tolist(), strict=True
    ):
        parts = [
            book.split(number, table.asked[number])
            for book, table, number in zip(books, plan.tables, mine, strict=True)
        ]
        for choice in combinations_of((0, 1), repeat=len(books)):
            if not all(part[which] for part, which in zip(parts, choice, strict=True)):
                continue
            signed = coefficient * (-1) ** sum(choice)
            owners.append(owner)
            coefficients.append(signed)
            columns.append(
                [
                    book.bound(number, which, upper == (signed > 0))
                    for book, number, which in zip(books, mine, choice, strict=True)
                ]
            )
            public.append(factors)
    return replace(
        given,
        owners=np.array(owners, dtype=np.int64),
        coefficients=np.array(coefficients, dtype=np.float64),
        columns=np.array(columns, dtype=np.int64).reshape(-1, len(books)),
        public=np.array(public, dtype=np.int64).reshape(len(owners), given.public.shape[1]),
    )


def _ends(plan: Plan, books: Sequence[_BoundingColumns]) -> Floats:
    given = plan.term_table
    ends = np.ones(given.groups * given.moments)
    for owner, mine in zip(given.owners.tolist(), given.columns.tolist(), strict=True):
        of_tables = (
            book.ends(number, table.asked[number]) for book, table, number in zip(books, plan.tables, mine, strict=True)
        )
        ends[owner] = max(ends[owner], *of_tables)
    for owner, mine in zip(given.owners.tolist(), given.columns.tolist(), strict=True):
        if any(book.unseen(number) for book, number in zip(books, mine, strict=True)):
            ends[owner] = UNSEEN
    return ends.reshape(given.groups, given.moments)


def _split(column: Column, table: Table, design: Design) -> tuple[Column, Column]:
    """What is added and what is taken away, as products of functions that are never negative."""
    added: list[Product] = []
    taken: list[Product] = []
    for product in column:
        functions: dict[str, Floats] = {}
        for given in (product.conditions, product.measures):
            for name, values in given.items():
                functions[name] = functions.get(name, 1.0) * np.asarray(values, dtype=np.float64)
        parts = {name: _signed(values, table, design, name) for name, values in functions.items()}
        for choice in combinations_of(*(range(len(signed)) for signed in parts.values())):
            chosen = {name: parts[name][which] for name, which in zip(parts, choice, strict=True)}
            if all(values.any() for values in chosen.values()) and product.coefficient:
                positive = (sum(choice) % 2 == 0) == (product.coefficient > 0)
                bounded = Product(abs(product.coefficient), chosen, {}, product.family)
                (added if positive else taken).append(bounded)
    return tuple(added), tuple(taken)


def _signed(values: Floats, table: Table, design: Design, name: str) -> tuple[Floats, ...]:
    """A function as a difference of two that are never negative; points determine those that are moved as a whole."""
    if values.min() >= 0:
        return (values,)
    attribute = table.private.index(name)
    for view in design:
        for axis in view.group.axes:
            if axis.attribute == attribute and axis.kind == POINTS and on_axis(axis, values) is not None:
                return values - values.min(), np.full(values.size, -values.min())
    return np.maximum(values, 0.0), np.maximum(-values, 0.0)
