"""How many rows each category holds, as reports say.

Categories are not alike because they are neighbours, so nothing is smoothed. Frequencies of cells come with noise. How
much they differ from each other more than noise explains says how far they are believed: several variances of what
cells hold, from the prior's down to nearly none, are compared by how likely they make the frequencies (empirical
Bayes). Where noise hides everything, frequencies stay even and all variances stay possible, which the model error then
says. Of a cell with several categories, all rows may be in one of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.mechanisms.frequency_oracle import second_moments
from deniable.queries.grids.learnt_density import LearntDensity
from deniable.queries.grids.smoothness import category_variance
from deniable.tables.designs.views import Axis, View

ANY_CATEGORY = 0.5
"""The looseness of a cell with several categories."""
PARTS_OF_PRIOR = 4.0 ** -np.arange(9)
"""The variances of what cells hold that are compared, relative to the prior's."""
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
        widths = np.diff(np.append(self.starts, self.size))
        even = widths / self.size
        noises = np.array([self._variance(view, float(reports[view.number])) for view in self.views])
        precisions = 1 / np.maximum(noises, 1e-300)
        seen = precisions @ frequencies.reshape(len(self.views), -1) / precisions.sum()
        noise = 1 / float(precisions.sum())
        variances = np.outer(PARTS_OF_PRIOR, category_variance(self.size) * widths / self.size**2)
        likelihoods = -np.sum(np.log(variances + noise) + (seen - even) ** 2 / (variances + noise), axis=1) / 2
        chances = np.exp(likelihoods - likelihoods.max())
        chances /= chances.sum()
        believed = chances @ (variances / (variances + noise))
        held = believed * _possible(seen) + (1 - believed) * even
        held = np.maximum(held, np.minimum(SEEN * np.sqrt(noise), even))
        unsure = chances @ (variances * noise / (variances + noise))
        mass = np.repeat(held / held.sum() / widths, widths)
        looseness = np.where(widths > 1, ANY_CATEGORY, 0.0)
        return LearntDensity(mass, self.starts, looseness, ordered=False, unsure=unsure)

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
