"""How many rows each category holds, as reports say.

Categories are not alike because they are neighbours, so nothing is smoothed. Frequencies of cells come with noise. How
much they differ from each other more than noise explains says how far they are believed, the rest is spread evenly
(empirical Bayes, as James and Stein shrink). Of a cell with several categories, all rows may be in one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.mechanisms.frequency_oracle import second_moments
from deniable.queries.grids.learnt_density import LearntDensity
from deniable.tables.designs.views import Axis, View

ANY_CATEGORY = 0.5
"""The looseness of a cell with several categories."""
SEEN = 0.5
"""A category counts as holding at least this many standard errors of what it holds, or an even part if that is less."""


@dataclass(frozen=True, slots=True, eq=False)
class Categories:
    """The views that divide a categorical attribute most finely, all at the same borders."""

    views: tuple[View, ...]
    starts: Integers
    """The first category of every cell."""
    size: int

    @classmethod
    def of(cls, views: Sequence[View], attribute: int, size: int) -> Categories:
        """Of all views that have the attribute."""
        finest = max((_axis(view, attribute).places for view in views), key=lambda places: (len(places), places))
        mine = tuple(view for view in views if _axis(view, attribute).places == finest)
        return cls(mine, np.array(finest), size)

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of the views."""
        return frozenset(view.number for view in self.views)

    def learnt(self, frequencies: Floats, reports: Floats) -> LearntDensity:
        """What the parts of rows in cells, view after view, say, from so many reports of each view."""
        cells = self.starts.size
        widths = np.diff(np.append(self.starts, self.size))
        even = widths / self.size
        variances = np.array([self._variance(view, float(reports[view.number])) for view in self.views])
        precisions = 1 / np.maximum(variances, 1e-300)
        seen = precisions @ frequencies.reshape(len(self.views), cells) / precisions.sum()
        noise = 1 / float(precisions.sum())
        differing = float(np.sum((seen - even) ** 2))
        believed = max(0.0, 1 - cells * noise / differing) if differing > 0 else 0.0
        held = believed * _possible(seen) + (1 - believed) * even
        held = np.maximum(held, np.minimum(SEEN * np.sqrt(noise), even))
        mass = np.repeat(held / held.sum() / widths, widths)
        looseness = np.where(widths > 1, ANY_CATEGORY, 0.0)
        return LearntDensity(mass, self.starts, looseness, ordered=False)

    def _variance(self, view: View, reports: float) -> float:
        """Of the part of rows in one cell along the attribute, all others of the view being added up."""
        others = view.cells / self.starts.size
        moments = second_moments(view.oracle)
        return (others * moments.every + moments.own / self.starts.size) / max(reports, 1.0)


def _axis(view: View, attribute: int) -> Axis:
    return next(axis for axis in view.group.axes if axis.attribute == attribute)


def _possible(frequencies: Floats) -> Floats:
    """The nearest frequencies that are not negative and add up to one."""
    descending = np.sort(frequencies)[::-1]
    excess = (np.cumsum(descending) - 1) / np.arange(1, descending.size + 1)
    kept = int(np.flatnonzero(descending > excess)[-1])
    return np.asarray(np.maximum(frequencies - excess[kept], 0.0))
