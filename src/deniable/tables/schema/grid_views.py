"""Grids: a few views that are chosen one by one, each with the attributes it shows and how finely.

A view of a grid names some attributes of a table and cuts each into cells, or rounds it to points. Borders may lie
anywhere. Users are divided over these views alone, in proportion to their weights, instead of over all combinations of
levels of all attributes. Fewer questions can be answered exactly, and those that can get many more reports each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

from deniable.checks import check_integer, is_integer
from deniable.errors import InvalidParameter
from deniable.limits import MOST_GRID_VIEWS
from deniable.tables.schema.attributes import Categorical, Private, Table
from deniable.tables.schema.specification_entries import as_mapping
from deniable.wording import counted, listed, shortened, shown

MOST_WEIGHT = 2**20
CELLS_ALONE, CELLS_PAIRED = 32, 8
"""The default number of cells of an ordinal attribute, alone and in pairs."""


@dataclass(frozen=True, slots=True)
class Cells:
    """An attribute cut into cells: their number, to cut evenly, or the positions where they start, the first being 0.

    >>> Cells(4).places(10)
    (0, 2, 5, 7)
    """

    starts: int | Sequence[int]

    def places(self, size: int) -> tuple[int, ...]:
        """Where the cells start in a domain of `size` values."""
        if isinstance(self.starts, int):
            return tuple(number * size // self.starts for number in range(self.starts))
        return tuple(self.starts)

    def __str__(self) -> str:
        return _in_words(self.starts, "cell")


@dataclass(frozen=True, slots=True)
class Points:
    """An attribute rounded at random to one of the two neighbouring points, to the nearer one more likely.

    A value v between points a and b becomes b with probability (v − a)/(b − a), so that it is right on average: sums
    need no assumption. Two points, the ends of the domain, are what AHIO rounds to.

    >>> Points(3).places(101)
    (0, 50, 100)
    """

    at: int | Sequence[int]

    def places(self, size: int) -> tuple[int, ...]:
        """The points in a domain of `size` values; the first and the last value are points."""
        if isinstance(self.at, int):
            steps = max(self.at - 1, 1)
            return tuple((2 * number * (size - 1) + steps) // (2 * steps) for number in range(self.at))
        return tuple(self.at)

    def __str__(self) -> str:
        return _in_words(self.at, "point")


def _in_words(given: int | Sequence[int], what: str) -> str:
    """How many there are: 8 cells, or 3 uneven cells."""
    return counted(given, what) if isinstance(given, int) else counted(len(given), f"uneven {what}")


Cut = Cells | Points


@dataclass(frozen=True, slots=True)
class GridView:
    """One view of a grid: how each of its attributes is cut, and how often the view is drawn, relative to others.

    An attribute's cut may be given as a number of even cells.

    >>> GridView({"age": 8, "income": Points(5)}, weight=2)
    GridView(axes={'age': Cells(starts=8), 'income': Points(at=5)}, weight=2)
    """

    axes: Mapping[str, Cut]
    weight: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.axes, Mapping):
            raise InvalidParameter("axes", "must name attributes and their cuts", 'Use {"age": 8}.')
        given: dict[str, Any] = dict(self.axes)
        cuts = {name: Cells(cut) if isinstance(cut, int) else cut for name, cut in given.items()}
        object.__setattr__(self, "axes", cuts)


def with_own_cell(cut: Cut, domain: Private) -> Cut:
    """The same cut, in which missing values that have their own cell share it with no value."""
    if domain.missing_position is None or isinstance(domain, Categorical):
        return cut
    last, places = domain.missing_position, cut.places(domain.size)
    if isinstance(cut, Cells):
        return Cells(tuple(sorted({*places, last})))
    return Points(tuple(sorted({*places, last - 1, last})))


def default_grid(table: Table) -> tuple[GridView, ...]:
    """Every attribute alone, finely, and every pair, coarsely; all equally likely. `fit` chooses better ones."""
    sizes = dict(zip(table.private, table.domains, strict=True))
    if len(sizes) * (len(sizes) + 1) > 2 * MOST_GRID_VIEWS:
        problem = f"has too many attributes for a view of every pair: over {MOST_GRID_VIEWS:,}"
        raise InvalidParameter(f"table {table.name!r}", problem, "List the views in grids, or let dn.fit choose.")

    def cut(name: str, most: int) -> Cut:
        domain = sizes[name]
        return with_own_cell(Cells(domain.size if isinstance(domain, Categorical) else min(domain.size, most)), domain)

    alone = [GridView({name: cut(name, CELLS_ALONE)}) for name in table.private]
    pairs = [GridView({name: cut(name, CELLS_PAIRED) for name in pair}) for pair in combinations(table.private, 2)]
    return (*alone, *pairs)


def checked_grids(tables: Sequence[Table], given: Mapping[str, Any] | None) -> dict[str, tuple[GridView, ...]]:
    """The views of every table's grid in their canonical form, the default where none are given; or what is wrong."""
    named = {} if given is None else as_mapping("grids", given)
    if unknown := sorted(map(str, set(named) - {table.name for table in tables})):
        where = f"grids of {shown(unknown[0])}"
        raise InvalidParameter(where, "are not of any table", "Name tables of this collection.")
    return {
        table.name: _checked(table, named[table.name] if table.name in named else default_grid(table))
        for table in tables
    }


def listed_grids(grids: Mapping[str, tuple[GridView, ...]]) -> dict[str, Any]:
    """The views of grids as plain entries."""
    return {name: [_to_dict(view) for view in views] for name, views in grids.items()}


def _checked(table: Table, views: Any) -> tuple[GridView, ...]:
    """The views of a table's grid, attributes in the table's order."""
    where = f"grid of table {table.name!r}"
    if not isinstance(views, Sequence) or isinstance(views, (str, bytes)) or not views:
        raise InvalidParameter(where, "must be a list of views", "Give at least one GridView.")
    if len(views) > MOST_GRID_VIEWS:
        raise InvalidParameter(where, f"has more than {MOST_GRID_VIEWS:,} views", "List fewer, or let dn.fit choose.")
    checked = []
    for given in views:
        view = given if isinstance(given, GridView) else _from_dict(where, given)
        if unknown := sorted(map(str, set(view.axes) - set(table.private))):
            raise InvalidParameter(where, f"names {shown(unknown[0])}", f"Use {listed(table.private)}.")
        if not view.axes:
            raise InvalidParameter(where, "has a view without attributes", "Name at least one.")
        problem = f"must be an integer from 1 to {MOST_WEIGHT:,}"
        check_integer(f"{where}: weight", view.weight, 1, MOST_WEIGHT, problem=problem, repair="Use 1.")
        cuts = {
            name: _canonical(f"{where}: {name!r}", domain, view.axes[name])
            for name, domain in zip(table.private, table.domains, strict=True)
            if name in view.axes
        }
        checked.append(GridView(cuts, view.weight))
    return tuple(checked)


def _canonical(where: str, domain: Private, cut: Any) -> Cut:
    """Even cuts as their number, others as lists; missing values with a cell of their own share it with no value."""
    checked = _checked_cut(where, domain, cut)
    apart = with_own_cell(checked, domain)
    if set(apart.places(domain.size)) != set(checked.places(domain.size)):
        problem = "joins missing values, which have a cell of their own, with others"
        raise InvalidParameter(where, problem, f"Begin a cell, or put a point, at {domain.size - 1:,} and before it.")
    return checked


def _checked_cut(where: str, domain: Private, cut: Any) -> Cut:
    size = domain.size
    if not isinstance(cut, (Cells, Points)):
        raise InvalidParameter(where, "is neither cells nor points", "Use a number of cells, Cells or Points.")
    if isinstance(cut, Points) and isinstance(domain, Categorical):
        raise InvalidParameter(where, "is categorical: nothing lies between its values", "Use Cells.")
    given = cut.starts if isinstance(cut, Cells) else cut.at
    least, kind = (1, "cells") if isinstance(cut, Cells) else (2, "points")
    if is_integer(given):
        if not least <= given <= size:
            raise InvalidParameter(where, f"must have {least} to {size:,} {kind}", f"Use {least} to {size:,}.")
        return cut
    if not isinstance(given, Sequence) or not all(map(is_integer, given)):
        raise InvalidParameter(where, f"must list positions in the domain for its {kind}", "Use a number, or a list.")
    positions = tuple(given)
    ends = positions[:1] == (0,) and (isinstance(cut, Cells) or positions[-1:] == (size - 1,))
    rises = all(low < high for low, high in pairwise(positions))
    if len(positions) < least or not ends or not rises or positions[-1] >= size:
        last = "" if isinstance(cut, Cells) else f", the last being {size - 1:,}"
        raise InvalidParameter(where, f"must list rising positions from 0 to below {size:,}{last}", "Correct the list.")
    kind_of_cut = type(cut)
    even = kind_of_cut(len(positions))
    return even if even.places(size) == positions else kind_of_cut(positions)


def _from_dict(where: str, entry: Any) -> GridView:
    rest = as_mapping(where, entry)
    axes = {}
    for name, cut in as_mapping(f"{where}: axes", rest.pop("axes", None)).items():
        fields = {"cells": cut} if isinstance(cut, int) else as_mapping(f"{where}: {shown(name)}", cut)
        if len(fields) != 1 or next(iter(fields)) not in ("cells", "points"):
            raise InvalidParameter(f"{where}: {shown(name)}", "is neither cells nor points", "Use { cells = 8 }.")
        axes[name] = Cells(fields["cells"]) if "cells" in fields else Points(fields["points"])
    weight = rest.pop("weight", 1)
    if rest:
        raise InvalidParameter(
            f"{where}: {shortened(min(map(str, rest)))}", "is not a field of a view", "Use weight and axes."
        )
    return GridView(axes, weight)


def _to_dict(view: GridView) -> dict[str, Any]:
    axes: dict[str, Any] = {}
    for name, cut in view.axes.items():
        kind, given = ("cells", cut.starts) if isinstance(cut, Cells) else ("points", cut.at)
        axes[name] = {kind: given if isinstance(given, int) else list(given)}
    return {"weight": view.weight, "axes": axes}
