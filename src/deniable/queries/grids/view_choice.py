"""Fitting a grid to a workload: which views, how fine, and how often each is drawn, from public facts alone.

The error that is minimised is the one that answers will have (`grid_weights.py`): variance and squared bias under the
prior of a fit (`fitting_prior.py`), summed over the columns of all questions, each column relative to how far
apart the most and the least are that one row adds to it.

* Candidates are views of the attributes that questions use together, of their pairs, and of each alone.
* How fine (`candidate_cuts.py`): along the constants of conditions, so that these are answered without any assumption,
  unless that costs too much (`forecasts/fitted_views.py` weighs it in joins); then whichever cut leaves the least error
  if its view answers alone. The first and the last value of a domain get cells of their own where that costs little.
* How often: given the weights, the variance is Σ_v s_v/π_v, s_v what view v's weights spend; it is least for
  π_v ∝ √s_v. Weights and probabilities are improved in turn. Views that are hardly drawn any more are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from deniable.arrays import Floats
from deniable.queries.grids.candidate_cuts import candidates, follows, with_ends
from deniable.queries.grids.fitting_prior import where_asked
from deniable.queries.grids.grid_cells import Asked, CellView
from deniable.queries.grids.grid_weights import System, solve_grid
from deniable.queries.grids.other_views import OtherViews
from deniable.queries.grids.smoothness import SEPARATE
from deniable.queries.grids.workload import Subject, WorkloadColumn, borders, parts, subjects
from deniable.queries.weights.table_plan import Column, Product
from deniable.tables.designs.grid import grid
from deniable.tables.designs.views import Axis, Design, View
from deniable.tables.schema.attributes import Categorical, Private, Table
from deniable.tables.schema.grid_views import Cells, GridView, Points
from deniable.tables.specification.specification import Specification
from deniable.wording import counted, listed

MOST_TRIED_CELLS = 400
"""Limit for a view that is tried."""
MOST_TRIED_PATTERNS = 2_500
"""Limit for all views together."""
PRICE_OF_BORDERS = 1.25
"""By so much the error may rise for borders at all constants: what is not assumed cannot be wrong."""
PRICE_OF_ENDS = 1.05
"""By so much it may rise for cells of the first and the last value, where heaps are most common."""
HARDLY = 0.004
"""A view with a smaller part of the reports is dropped."""
DRAWING_ROUNDS = 6
CHANCE_STEPS = 400
"""Probabilities are rounded to multiples of one over this."""
SAMPLED_COLUMNS = 60
"""A question with more columns is represented by this many, evenly spaced."""


@dataclass(frozen=True, slots=True)
class NotFollowed:
    """Constants that no view answers without an assumption, and why."""

    constants: str
    reason: str

    def __str__(self) -> str:
        return f"{self.constants}: {self.reason}"


@dataclass(frozen=True, slots=True)
class ChosenViews:
    """The views of a table, and the constants that no view answers without an assumption."""

    views: tuple[GridView, ...]
    notes: tuple[NotFollowed, ...]
    paid: bool
    """Whether some view has borders at all constants although another would have a smaller error."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """A cut of a subject's attributes."""

    view: GridView
    reason: str = ""
    """Why it does not follow all constants."""
    paid: bool = False
    """Whether it follows them although another view would have a smaller error."""


@dataclass(frozen=True, slots=True, eq=False)
class ViewSearch:
    """A table, the ε of a report, and the columns that its views should answer well."""

    table: Table
    epsilon: float
    oracle: str
    items: Sequence[WorkloadColumn]
    examples: bool = False
    """Whether columns are only examples of others, so that borders do not follow theirs."""
    fanout: int = 5
    """Of the table's trees in `hio`."""
    most_for_others: float = 0.0
    """The part of the reports that may be spent on questions that no column is about."""
    seen: Mapping[str, Floats] = field(default_factory=dict)
    """By attribute, the part of the rows at each value, where a first look has seen them."""
    price_of_borders: float = PRICE_OF_BORDERS

    def chosen(self, advance: Callable[[float], None]) -> ChosenViews:
        """The views of least error. `advance` is told which part of the work was done since it was last called."""
        asked = subjects(self.table, self.items)
        every = sorted({*asked, *parts(asked)}, key=lambda subject: (len(subject.names), subject.names, subject.summed))
        chances = dict.fromkeys(every, 1 / len(every))
        choices: dict[Subject, _Choice] = {}
        for _ in range(2):
            known: dict[object, _Choice] = {}
            for subject, chance in chances.items():
                choices[subject] = self._finest(subject, asked, chance, known)
                advance(0.5 / len(chances))
            chances = self._divided({subject: choices[subject].view for subject in chances})
        weights: dict[tuple[object, ...], int] = {}
        views: dict[tuple[object, ...], GridView] = {}
        for subject, chance in chances.items():
            view = choices[subject].view
            key = tuple(view.axes.items())  # two subjects may have led to the same view
            views[key] = view
            weights[key] = weights.get(key, 0) + max(round(chance * CHANCE_STEPS), 1)
        fitted = tuple(replace(view, weight=weights[key]) for key, view in views.items())
        chosen = self._with_the_rest(fitted)
        notes = [] if self.examples else self._notes(fitted, chosen, asked, choices)
        return ChosenViews(chosen, tuple(notes), any(choices[subject].paid for subject in chances))

    def _with_the_rest(self, views: tuple[GridView, ...]) -> tuple[GridView, ...]:
        """The same views and, if wanted, those for questions that nobody announced.

        Constants that fitted views follow are borders of these, too, so that questions of the workload lose less than
        the reports they cost. Others are not: what was not worth its price would be answered by these reports alone.
        """
        if not self.most_for_others or self.examples:
            return views
        followed = {}
        for name, domain in zip(self.table.private, self.table.domains, strict=True):
            cuts = [view.axes[name] for view in views if name in view.axes]
            followed[name] = tuple(
                each for each in borders(self.items, name) if any(follows(cut, (each,), domain.size) for cut in cuts)
            )
        users = max((item.users for item in self.items), default=0.0)
        others = OtherViews(self.table, self.fanout, self.epsilon, users, self.most_for_others, self.seen)
        return others.added_to(views, followed)

    def _columns_about(
        self, subject: Subject, asked: Mapping[Subject, Sequence[WorkloadColumn]]
    ) -> list[WorkloadColumn]:
        """The columns for which a subject's attributes are cut; columns about more, if there are none about these."""
        mine = [
            item
            for other, items in asked.items()
            if other.names == subject.names and set(other.summed) <= set(subject.summed)
            for item in items
        ]
        if not any(other.names == subject.names for other in asked):
            mine = [item for other, items in asked.items() if set(subject.names) <= set(other.names) for item in items]
        return [item.restricted(subject.names) for item in mine]

    def _finest(
        self,
        subject: Subject,
        asked: Mapping[Subject, Sequence[WorkloadColumn]],
        chance: float,
        known: dict[object, _Choice],
    ) -> _Choice:
        """How to cut a view's attributes, if the view alone answers the columns about them."""
        mine = self._columns_about(subject, asked)
        summed = tuple(name in subject.summed for name in subject.names)
        key = (round(np.log2(chance), 1), summed, *(self._signature(name, mine) for name in subject.names))
        if key in known:  # the same question about attributes alike in all that matters
            choice = known[key]
            return replace(choice, view=GridView(dict(zip(subject.names, choice.view.axes.values(), strict=True))))
        constants = {name: borders(mine, name) for name in subject.names}
        tried = [
            view
            for view in candidates(self.table, subject, constants, follow=not self.examples, seen=self.seen)
            if self._cells(view) <= MOST_TRIED_CELLS
        ]
        errors = self._errors(tried, mine, chance)
        known[key] = self._preferred(subject, constants, list(zip(errors, tried, strict=True)), mine, chance)
        return known[key]

    def _preferred(
        self,
        subject: Subject,
        constants: Mapping[str, tuple[int, ...]],
        tried: list[tuple[float, GridView]],
        mine: Sequence[WorkloadColumn],
        chance: float,
    ) -> _Choice:
        """The view of least error, or one that follows all constants if its error is not much larger.

        Points that answer sums without an assumption, too, come first.
        """
        if not tried:
            sizes = {name: self._domain(name).size for name in subject.names}
            coarse = GridView({name: Cells(min(size, 2)) for name, size in sizes.items()})
            return _Choice(coarse, "even two cells of each attribute are too many together")
        least = error, view = min(tried, key=lambda each: each[0])
        reason = ""
        if not self.examples:
            following = [each for each in tried if self._follows(each[1], constants)]
            exact, followed = min(following, key=lambda each: each[0], default=(math.inf, view))
            rounded = [each for each in following if self._adds_up(each[1], subject)]
            sums_too, points = min(rounded, key=lambda each: each[0], default=(math.inf, view))
            if sums_too <= self.price_of_borders**2 * error:
                error, view = sums_too, points
            elif exact <= self.price_of_borders**2 * error:
                error, view = exact, followed
            elif math.isinf(exact):
                reason = f"its cells would be more than {MOST_TRIED_CELLS}"
            else:
                reason = f"errors would be {math.sqrt(exact / error):.1f} times as large"
        paid = (error, view) != least
        if len(subject.names) == 1 and not isinstance(self._domain(subject.names[0]), Categorical):
            ((name, cut),) = view.axes.items()
            ended = GridView({name: with_ends(cut, self._domain(name).size)})
            if ended != view and self._errors([ended], mine, chance)[0] <= PRICE_OF_ENDS**2 * error:
                view = ended
        return _Choice(view, reason, paid)

    def _any_follows(self, views: Sequence[GridView], constants: Mapping[str, tuple[int, ...]]) -> bool:
        return any(self._follows(view, constants) for view in views)

    def _follows(self, view: GridView, constants: Mapping[str, tuple[int, ...]]) -> bool:
        return all(
            name in view.axes and follows(view.axes[name], places, self._domain(name).size)
            for name, places in constants.items()
            if places
        )

    def _adds_up(self, view: GridView, subject: Subject) -> bool:
        """Whether what is added up is rounded to points: then nothing is assumed of where values lie in cells."""
        return all(isinstance(view.axes.get(name), Points) for name in subject.summed)

    def _notes(
        self,
        fitted: Sequence[GridView],
        chosen: Sequence[GridView],
        asked: Mapping[Subject, Sequence[WorkloadColumn]],
        choices: Mapping[Subject, _Choice],
    ) -> list[NotFollowed]:
        """In words, the constants that no fitted view answers without an assumption, and why."""
        notes = []
        for subject, items in asked.items():
            constants = {name: borders(items, name) for name in subject.names}
            if self._any_follows(fitted, constants):
                continue
            which = "only a view for other questions" if self._any_follows(chosen, constants) else "no view"
            named = [f"{counted(len(places), 'constant')} of {name}" for name, places in constants.items() if places]
            reason = choices[subject].reason or "the view that follows them would hardly be drawn"
            constants_named = f"{which} of {self.table.name} follows the {listed(named)} without assumptions"
            notes.append(NotFollowed(constants_named, reason))
        return list(dict.fromkeys(notes))

    def _domain(self, name: str) -> Private:
        return self.table.domains[self.table.private.index(name)]

    def _signature(self, name: str, items: Sequence[WorkloadColumn]) -> object:
        """What the choice of an attribute's cut depends on."""
        domain = self._domain(name)
        functions = tuple(
            (item.importance, item.users, *(_function(product, name, domain).tobytes() for product in item.column))
            for item in items
        )
        seen = self.seen[name].tobytes() if name in self.seen else b""
        return (isinstance(domain, Categorical), domain.size, borders(self.items, name), seen, functions)

    def _cells(self, view: GridView) -> int:
        """How many cells of a view carry weights of their own."""
        (groups,) = grid(self.table, [view])
        return math.prod(axis.tree.size for axis in groups[0].axes if not self._merged(axis))

    def _merged(self, axis: Axis) -> bool:
        """Whether most cells of an axis share their weights."""
        known = axis.attribute >= 0 and isinstance(self.table.domains[axis.attribute], Categorical)
        return known and axis.tree.size > SEPARATE

    def _prepared(self, views: Sequence[GridView], items: Sequence[WorkloadColumn]) -> tuple[Asked, list[View]]:
        """Columns under the prior of a fit, ready for each of some views."""
        design = Design(grid(self.table, views), self.epsilon, choice=self.oracle)
        asked = Asked.of(self.table, design, [item.column for item in items])
        constants = {} if self.examples else {name: borders(self.items, name) for name in self.table.private}
        return where_asked(self.table, asked, constants, self.seen), list(design)

    def _errors(self, views: Sequence[GridView], items: Sequence[WorkloadColumn], chance: float) -> list[float]:
        """The error of each view, if it alone answers; infinite if it has too many cells."""
        if not views:
            return []
        asked, designed = self._prepared(views, items)
        without = self._without(asked, items)
        errors = []
        for view in designed:
            cells = CellView.of(self.table, view, asked)
            if cells.means.size > MOST_TRIED_CELLS:
                errors.append(math.inf)
                continue
            errors.append(max(without - _explained(System.of(asked, [cells]), items, [chance]), 1e-12 * without))
        return errors

    @staticmethod
    def _without(asked: Asked, items: Sequence[WorkloadColumn]) -> float:
        """The error without any report."""
        every = np.arange(asked.columns)
        spread = asked.second_moments(every, every) - np.square(asked.column_means())
        return float(np.where(asked.known, 0.0, spread) @ np.array([item.importance for item in items]))

    def _divided(self, views: Mapping[Subject, GridView]) -> dict[Subject, float]:
        """How often to draw each view if all of them answer together."""
        every = list(views)
        asked, designed = self._prepared(list(views.values()), self.items)
        cells = [CellView.of(self.table, view, asked) for view in designed]
        chances = np.full(len(every), 1 / len(every))
        if sum(view.means.size for view in cells) > MOST_TRIED_PATTERNS:
            return dict(zip(every, chances.tolist(), strict=True))
        system = System.of(asked, cells)
        for _ in range(DRAWING_ROUNDS):
            spent = np.zeros(len(every))
            for users, columns in _by_users(self.items).items():
                part = replace(system, crossed=system.crossed[:, columns])
                importance = np.array([self.items[column].importance for column in columns]) / users
                spending = part.spending(part.weights(users, chances.tolist()))
                spent += np.array([float(of_view @ importance) for of_view in spending])
            chances = np.sqrt(np.maximum(spent, 0.0))
            if not chances.sum():
                return {every[0]: 1.0}
            chances = np.maximum(chances / chances.sum(), HARDLY / 4)
            chances /= chances.sum()
        kept = chances >= min(HARDLY, float(chances.max()))
        total = float(chances[kept].sum())
        return {
            subject: float(chance) / total for subject, chance, keep in zip(every, chances, kept, strict=True) if keep
        }


def _function(product: Product, name: str, domain: Private) -> Floats:
    function: Floats = np.ones(domain.size) * product.conditions.get(name, 1.0) * product.measures.get(name, 1.0)
    return function


def _explained(system: System, items: Sequence[WorkloadColumn], chances: Sequence[float]) -> float:
    """What views explain of the columns, by their importance."""
    total = 0.0
    for users, columns in _by_users(items).items():
        part = replace(system, crossed=system.crossed[:, columns])
        explained = np.einsum("uc,uc->c", part.crossed, part.weights(users, chances))
        total += float(sum(items[column].importance * explained[position] for position, column in enumerate(columns)))
    return total


def _by_users(items: Sequence[WorkloadColumn]) -> dict[float, list[int]]:
    columns: dict[float, list[int]] = {}
    for column, item in enumerate(items):
        columns.setdefault(item.users, []).append(column)
    return columns


def in_joins(collection: Specification, question: Mapping[str, Sequence[Column]], users: float) -> dict[str, float]:
    """For each table of a question, the effective number of users for the variance of its columns."""
    if len(question) == 1:
        return dict.fromkeys(question, users)
    effective = dict.fromkeys(question, users)
    for _ in range(2):
        solved = {
            name: solve_grid(collection[name], collection.design_of(name), columns, effective[name])
            for name, columns in question.items()
        }
        for name in question:
            others = [other for table, other in solved.items() if table != name]
            effective[name] = users * min(float(np.prod([other.truth / other.second for other in others])), 1.0)
    return effective
