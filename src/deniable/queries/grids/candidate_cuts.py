"""Cuts of attributes to try for a view.

Even cells, of several numbers. Cells that start where conditions change, so that each of them is answered without any
assumption. Points, where an attribute is added up; and points on both sides of every such place. A value is rounded
only between neighbouring points, so that these answer conditions as cells do, and sums as points do.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from deniable.arrays import Floats
from deniable.queries.grids.piece_densities import origin_of
from deniable.queries.grids.workload import Subject
from deniable.tables.schema.attributes import Categorical, Ordinal, Private, Table
from deniable.tables.schema.grid_views import Cells, Cut, GridView, Points, with_own_cell

LADDER = (2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64)
"""Numbers of even cells that are tried."""
FEWEST_FINER, MOST_FINER = 12, 32
"""How many even cells there are at least and at most for questions that nobody announced."""
LARGE_EPSILON = 32.0
"""Above it, nothing changes any more."""
SHOWN = 2.0
"""How many standard errors of its count an even one of them holds."""
LADDER_STEPS = range(len(LADDER))


@dataclass(frozen=True, slots=True)
class Options:
    """How one attribute may be cut, for each step of the ladder."""

    cells: tuple[Cut, ...]
    bordered: tuple[Cut, ...]
    """Cells that start where conditions change; even ones if there are no conditions."""
    points: tuple[Cut, ...]
    """Points, on both sides of these places, too; even cells if nothing is added up."""
    even_points: tuple[Cut, ...]

    @classmethod
    def of(cls, domain: Private, borders: tuple[int, ...], *, summed: bool, seen: Floats | None = None) -> Options:
        """The cuts of an attribute whose conditions change at some places; `seen` is where rows are, if known."""
        plain = cls._of(domain, borders, summed=summed, seen=seen)
        if domain.missing_position is None:
            return plain
        each = (plain.cells, plain.bordered, plain.points, plain.even_points)
        return cls(*(tuple(with_own_cell(cut, domain) for cut in cuts) for cuts in each))

    @classmethod
    def _of(cls, domain: Private, borders: tuple[int, ...], *, summed: bool, seen: Floats | None) -> Options:
        size = domain.size
        along: Cut | None = Cells((0, *borders)) if borders else None
        if isinstance(domain, Categorical):
            whole = (Cells(size),) * len(LADDER)
            bordered = whole if along is None else (along,) * len(LADDER)
            return cls(whole, bordered, bordered, whole)
        cells = tuple(_even_cells(min(step, size), seen) for step in LADDER)
        bordered = cells if along is None else (along,) * len(LADDER)
        if not summed:
            return cls(cells, bordered, bordered, cells)
        even = tuple(_even_points(min(step, size), seen) for step in LADDER)
        sides = {side for border in borders for side in (border - 1, border)}
        points = tuple(Points(tuple(sorted({*sides, *points.places(size)}))) for points in even)
        return cls(cells, bordered, points, even)


def _even_cells(count: int, seen: Floats | None) -> Cells:
    """Cells with the same number of values, or of the rows that were seen."""
    return Cells(count) if seen is None else Cells(_quantiles(count, seen))


def _even_points(count: int, seen: Floats | None) -> Points:
    return Points(count) if seen is None else Points(tuple(sorted({*_quantiles(count - 1, seen), seen.size - 1})))


def _quantiles(count: int, seen: Floats) -> tuple[int, ...]:
    """Where equal parts of the rows begin, at least at 0; a value that holds such a part alone stands for itself."""
    before = np.cumsum(seen) - seen
    starts = np.searchsorted(before, np.arange(count) / count - 1e-12)
    heavy = np.flatnonzero(seen >= 1 / count)
    return tuple(sorted({0, *np.minimum([*starts, *heavy, *(heavy + 1)], seen.size - 1).tolist()}))


def candidates(
    table: Table,
    subject: Subject,
    borders: Mapping[str, tuple[int, ...]],
    *,
    follow: bool,
    seen: Mapping[str, Floats],
) -> list[GridView]:
    """Views of some attributes to try; unless they `follow` conditions, cells are even."""
    options = [
        Options.of(
            table.domains[table.private.index(name)],
            borders.get(name, ()) if follow else (),
            summed=name in subject.summed,
            seen=seen.get(name),
        )
        for name in subject.names
    ]
    tried = [tuple(each.cells[step] for each in options) for step in LADDER_STEPS]
    tried += [tuple(each.even_points[step] for each in options) for step in LADDER_STEPS]
    tried += [tuple(each.bordered[step] for each in options) for step in LADDER_STEPS]
    tried += [tuple(each.points[step] for each in options) for step in LADDER_STEPS]
    if len(options) > 1:  # one attribute finer than the others
        tried += [
            tuple(each.cells[step if position == fine else max(step - 2, 0)] for position, each in enumerate(options))
            for step in LADDER_STEPS[1:]
            for fine in range(len(options))
        ]
    return [GridView(dict(zip(subject.names, cuts, strict=True))) for cuts in dict.fromkeys(tried)]


def follows(cut: Cut, borders: tuple[int, ...], size: int) -> bool:
    """Whether a cut shows conditions that change at some places without any assumption."""
    places = set(cut.places(size))
    if isinstance(cut, Cells):
        return places.issuperset(borders)
    return all(border in places and border - 1 in places for border in borders)


def with_ends(cut: Cut, size: int) -> Cut:
    """The same cells, and cells of their own for the first and the last value."""
    starts = sorted({*cut.places(size), 1, size - 1})
    return Cells(tuple(starts)) if isinstance(cut, Cells) and all(low < high for low, high in pairwise(starts)) else cut


def finer_cells(epsilon: float, reports: float, most: int = MOST_FINER) -> int:
    """How many even cells so many reports show: each holds, on average, `SHOWN` times the noise of its count.

    Local hashing counts the part of rows in a cell with the variance 1/(reports·sinh²(ε/2)). Fewer cells hide where
    rows are inside of them, which is all that matters if these share a value. More cells show such values only.
    """
    shown = math.sqrt(reports) * math.sinh(min(epsilon, LARGE_EPSILON) / 2) / SHOWN
    return int(min(max(shown, FEWEST_FINER), most))


def finer_cut(domain: Private, borders: tuple[int, ...], seen: Floats | None, cells: int = FEWEST_FINER) -> Cut:
    """How an attribute is cut for questions that nobody announced: into its categories; or along borders, into more
    cells, even or with equal parts of the rows that were seen, and the ends.

    Even cells of a wide domain put all of a heavy tail into one. Nobody knows its scale, so that every power of ten has
    a border, as far as even cells have none.
    """
    if isinstance(domain, Categorical):
        return Cells(domain.size)
    even = _even_cells(min(cells, domain.size), seen)
    further = {
        *borders,
        *(() if seen is not None or not isinstance(domain, Ordinal) else _powers_of_ten(domain, cells)),
    }
    cut = Cells(tuple(sorted({*even.places(domain.size), *further}))) if further else even
    return with_own_cell(with_ends(cut, domain.size), domain)


def _powers_of_ten(domain: Ordinal, cells: int) -> tuple[int, ...]:
    """Where they are, on both sides of zero, if the domain has it, and closer to it than half of an even cell."""
    origin, half = origin_of(domain), domain.size // cells // 2
    steps = [10**digits for digits in range(1, len(str(half)) + 1) if 10**digits <= half]
    starts = [origin + step for step in steps] + [origin - step + 1 for step in steps]
    if 0 < origin < domain.size - 1 and steps:
        starts += [origin, origin + 1]
    return tuple(start for start in starts if 0 < start < domain.size)
