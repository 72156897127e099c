"""Views for questions that nobody announced, next to those that a workload is fitted to.

`hio` spends all of its reports on such questions, so each of these views gets as many reports as `hio` would give to
one view of its own: a good part with one attribute, little with several or in large domains. All of them together get
at least `LEAST_FOR_OTHERS`, and never so many that errors of the workload rise by more than a factor that users choose:
with the part s for other questions, the workload is left with 1 − s of the reports, and its errors rise by at most
1/√(1 − s), or a per cent more where it also matters which view a user draws. In a join the factors of its tables
multiply.

An attribute is cut into all of its values if reports show so many: then nothing is assumed about it. Long ranges would
be sums of many values, so that a second view has runs of them. Otherwise there are as many cells as reports show, and
where `hio` is a rival a view of all values as evidence: it finds the few values that hold many rows
(`unshown_values.py`).
Where there are few attributes, or `hio` would spend more than the least share, pairs of attributes get a view, too. A
fitted view that is as fine counts as one of these.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from deniable.arrays import Floats
from deniable.checks import check_number
from deniable.queries.grids.candidate_cuts import MOST_FINER, finer_cells, finer_cut
from deniable.tables.designs.hio import hio
from deniable.tables.schema.attributes import Categorical, Private, Table
from deniable.tables.schema.grid_views import Cells, Cut, GridView, with_own_cell

OTHERS, OTHERS_IN_JOINS = 1.25, 1.08
"""By what factor errors of a workload may rise for other questions, unless the user says so."""
LARGEST_FACTOR = 10.0
LEAST_FOR_OTHERS = 0.075
"""The part of the reports that other questions get, if that factor allows it."""
MOST_SHOWN_VALUES = 1_000
"""An attribute with more values is never cut into all of them."""
MOST_PAIRED = 200
"""Two attributes are cut into no more cells together."""
FEW_VALUES = 16
"""One with more of them than this also gets a view of runs."""
FEW_ATTRIBUTES = 3
"""All pairs of so many get a view, even if `hio` is no rival: otherwise nothing shows how they depend on each other."""
AS_FINE = 1.25
"""A fitted view with so many times fewer cells serves other questions as well."""


@dataclass(frozen=True, slots=True, eq=False)
class OtherViews:
    """What views for other questions depend on."""

    table: Table
    fanout: int
    epsilon: float
    users: float
    """How many report, as far as the variance is concerned."""
    most: float
    """The part of the reports that may be spent."""
    seen: Mapping[str, Floats]
    """By attribute, the part of the rows at each value, where a first look has seen them."""

    def added_to(self, fitted: Sequence[GridView], followed: Mapping[str, tuple[int, ...]]) -> tuple[GridView, ...]:
        """The fitted views, and further ones. `followed` are the places whose conditions these follow, too."""
        wished = [
            GridView({name: cut})
            for name, domain in self._domains.items()
            for cut in self._cuts(
                domain, followed[name], self.seen.get(name), values_fitted=self._shows_all(fitted, name)
            )
        ]
        if self._like_hio * len(wished) >= LEAST_FOR_OTHERS or len(self._domains) <= FEW_ATTRIBUTES:
            wished += self._pairs()
        each = max(self._like_hio, LEAST_FOR_OTHERS / len(wished))
        missing = {number: each - self._served(view, fitted) for number, view in enumerate(wished)}
        lacking = {number: part for number, part in missing.items() if part > 0}
        wanted = sum(lacking.values())
        share = min(wanted, self.most)
        if not share:
            return tuple(fitted)
        total = sum(view.weight for view in fitted) / (1 - share)
        weights = {number: int(part / wanted * share * total) for number, part in lacking.items()}
        return (*fitted, *(GridView(wished[number].axes, max(weight, 1)) for number, weight in weights.items()))

    def _served(self, view: GridView, fitted: Sequence[GridView]) -> float:
        """The part of the reports of fitted views that are as fine, or nearly, as one for other questions."""

        def cells(each: GridView, name: str) -> int:
            return len(each.axes[name].places(self._domains[name].size))

        alike = (
            other.weight
            for other in fitted
            if other.axes.keys() == view.axes.keys()
            and all(AS_FINE * cells(other, name) >= cells(view, name) for name in view.axes)
        )
        return sum(alike) / sum(other.weight for other in fitted) * (1 - self.most)

    @property
    def _domains(self) -> dict[str, Private]:
        return dict(zip(self.table.private, self.table.domains, strict=True))

    @property
    def _like_hio(self) -> float:
        """The part of the reports that one view of `hio` gets."""
        ((levels,),) = hio(self.table, self.fanout)
        return 1 / levels.views

    @property
    def _is_rival(self) -> bool:
        """Whether `hio` would spend much on questions about single attributes, and they get half of that at least.

        In joins they do not, and two views of little would both say little.
        """
        attributes = len(self.table.private)
        return LEAST_FOR_OTHERS <= self._like_hio * attributes <= self.most

    def _shown(self, most: int) -> int:
        """How many cells the reports of a view show."""
        share = max(min(self._like_hio, self.most), LEAST_FOR_OTHERS / len(self.table.private))
        return finer_cells(self.epsilon, self.users * share, most)

    def _shows_all(self, fitted: Sequence[GridView], name: str) -> bool:
        """Whether the workload asks for every value of an attribute, and a view of its own answers that."""
        size = self._domains[name].size
        return any(view.axes.keys() == {name} and len(view.axes[name].places(size)) == size for view in fitted)

    def _cuts(
        self, domain: Private, followed: tuple[int, ...], seen: Floats | None, *, values_fitted: bool
    ) -> list[Cut]:
        """How one attribute is cut: into all values, and into runs of them, or into as many cells as reports show.

        Next to such cells a view of all values would be evidence only. If it answers the workload, there are none.
        """
        if isinstance(domain, Categorical):
            return [Cells(domain.size)]
        values = with_own_cell(Cells(domain.size), domain)
        if domain.size > self._shown(MOST_SHOWN_VALUES):
            if values_fitted:
                return [values]
            coarser = finer_cut(domain, followed, seen, self._shown(MOST_FINER))
            return [coarser, values] if domain.size <= MOST_SHOWN_VALUES and self._is_rival else [coarser]
        if domain.size <= FEW_VALUES:
            return [values]
        runs = Cells(tuple(sorted({*range(0, domain.size, round(math.sqrt(domain.size))), *followed})))
        return [values, with_own_cell(runs, domain)]

    def _pairs(self) -> list[GridView]:
        """Two attributes together in even cells; categories only if there is room for all of them."""
        side = math.isqrt(self._shown(MOST_PAIRED))
        paired = {
            name: with_own_cell(Cells(min(side, domain.size)), domain)
            for name, domain in self._domains.items()
            if domain.size <= side or not isinstance(domain, Categorical)
        }
        return [GridView(dict(pair)) for pair in combinations(paired.items(), 2)]


def checked_others(others: Any, *, only_workload: bool) -> float | None:
    """The factor that was given; 1 if nothing is to be kept for other questions; None if nothing was said."""
    if only_workload:
        others = 1.0
    if others is not None:
        problem = f"must be a number from 1 to {LARGEST_FACTOR:g}: by what factor errors of the workload may rise"
        check_number("others", others, problem, "Use 1.25.", smallest=1.0, largest=LARGEST_FACTOR)
    return None if others is None else float(others)


def most_for_others(others: float | None, tables: int) -> float:
    """The part of a table's reports that raises errors of questions about so many tables by at most this factor."""
    factor = others if others is not None else OTHERS if tables == 1 else OTHERS_IN_JOINS
    return float(1 - factor ** (-2 / tables))
