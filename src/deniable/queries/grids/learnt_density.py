"""Where rows of an attribute are, as their reports say, and what cells leave open between borders.

The borders of all views cut an attribute's domain into pieces. Reports show how many rows each piece holds; where in it
they are stays open. Plans that are made after reports are in (`revised_plan.py`) take what was learnt as their base:
relative to evenly spread rows the density of incomes strays by factors of a hundred, relative to what reports show
hardly at all. The kernel of `smoothness.py` then says how far the density strays from this base, together with other
attributes. Distances are taken midway between the scale of values and the scale of rows.

What pieces leave open comes in addition. A piece with the part m of all rows, of which f asks for the part w, has

    Var[p(f)] = 4·s²·m²·w·(1 − w) ,

where s is the looseness of the piece: a half says that all its rows may share a single value, anything below that they
are spread. Where a question distinguishes parts of a piece, such as a single value from its neighbours, it may know
why: all of these parts count alike, however many values they have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.queries.grids.learnt_interactions import LearntInteractions
from deniable.queries.grids.smoothness import Ground, Smoothness, believed, centred, midpoints, weight_ground

LEARNT_SMOOTHNESS = Smoothness(((0.25, 1.5**2),), 0.3**2)
"""How far densities stray from what was learnt: less than from evenness, and still as much as attributes that depend on
each other need."""
WIDE_PIECE = 8
"""Values from which a piece is wide."""
STANDS_APART = 0.5
"""How far a value with a piece of its own is from its neighbours, as a part of the rows."""
SINGLED_OUT = 0.3
"""How likely somebody who asks about some categories of a cell knows that they hold many of its rows."""
MOST_PARTS = 8
"""A question that cuts a piece into more parts does not single out any of them."""


@dataclass(frozen=True, slots=True, eq=False)
class LearntDensity:
    """What is known of an attribute once there are reports."""

    mass: Floats
    """For every value the part of rows that is expected to have it; inside a piece a guess."""
    starts: Integers
    """The first value of every piece."""
    looseness: Floats
    """How far the rows of each piece may be from where they are expected: from 0 to a half."""
    smoothness: Smoothness = LEARNT_SMOOTHNESS
    """How far densities stray from this one."""
    ordered: bool = True
    """Whether neighbours are alike; categories have none."""
    unsure: Floats | None = None
    """The variance of the part of rows in each piece, as far as noise leaves it open; None if that is negligible."""

    def ground(self, known: Ground, functions: Floats) -> Ground:
        """The same atoms with rows where they are expected, and with what pieces leave open for these functions."""
        shares = np.bincount(known.atom_of, self.mass, minlength=known.shares.size).astype(np.float64)
        expected = replace(known, shares=shares, mass=self.mass)
        inside = self._inside(known)
        if self.ordered:
            learnt = believed(expected, self.smoothness, self._positions(known, shares))
        else:
            learnt = self._independent(expected, inside)
        return replace(learnt, kernel=learnt.kernel + self._open(known, inside, functions))

    def _inside(self, known: Ground) -> Floats:
        """pieces × atoms: the part of all rows."""
        atoms, piece = known.shares.size, np.repeat(np.arange(self.starts.size), self._widths(known))
        held = np.bincount(piece * atoms + known.atom_of, self.mass, minlength=self.starts.size * atoms)
        return np.asarray(held.reshape(-1, atoms), dtype=np.float64)

    def _widths(self, known: Ground) -> Integers:
        return np.diff(np.append(self.starts, known.atom_of.size))

    def _independent(self, known: Ground, inside: Floats) -> Ground:
        """Every category strays on its own."""
        strays = sum(variance for _, variance in self.smoothness.variances) + self.smoothness.rough
        squares = np.bincount(known.atom_of, self.mass**2, minlength=known.shares.size)
        strayed = np.diag(strays * squares)
        if self.unsure is not None:
            parts = inside / inside.sum(axis=1, keepdims=True)
            strayed = strayed + (parts * self.unsure[:, None]).T @ parts
        return centred(known.atom_of, known.shares, strayed / np.outer(known.shares, known.shares), self.mass)

    def _positions(self, known: Ground, shares: Floats) -> Floats:
        """Where atoms are: midway between their places in the domain and their places among the rows.

        On either scale alone, whatever is dense is misjudged. Where most rows lie in a few cells, values of these seem
        far apart on the scale of rows, and nothing is interpolated; if many rows share a small part of the domain,
        values there seem all alike on the scale of the domain. A value with a piece of its own next to a wide piece
        stands for itself.
        """
        widths = self._widths(known)
        alone = (np.minimum(widths[1:], widths[:-1]) == 1) & (np.maximum(widths[1:], widths[:-1]) >= WIDE_PIECE)
        steps = np.zeros(known.shares.size)
        steps[known.atom_of[self.starts[1:][alone]]] = STANDS_APART
        return np.asarray((midpoints(known.shares) + midpoints(shares)) / 2 + np.cumsum(steps))

    def _open(self, known: Ground, inside: Floats, functions: Floats) -> Floats:
        """Covariances of the masses of atoms that share a piece: rows as expected, or in parts that are asked about."""
        held = inside.sum(axis=1)
        within = inside / held[:, None]
        firsts = np.unique(known.atom_of, return_index=True)[1]
        if self.ordered:
            changed = np.any(functions[:, firsts[1:]] != functions[:, firsts[1:] - 1], axis=0)
            part = np.concatenate(([0], np.cumsum(changed)))
        else:
            part = np.unique(functions[:, firsts], axis=1, return_inverse=True)[1].reshape(-1)
        in_part = np.zeros((part.size, int(part.max()) + 1))
        in_part[np.arange(part.size), part] = 1.0
        of_part = within @ in_part
        parts = np.count_nonzero(of_part, axis=1)
        alike = within / np.maximum(of_part, 1e-300)[:, part] / parts[:, None]
        singled = np.where(parts <= MOST_PARTS, 1.0 if self.ordered else SINGLED_OUT, 0.0)
        squares = (2 * self.looseness * held) ** 2
        kernel = np.zeros((part.size, part.size))
        for chance, expected in ((singled, alike), (1 - singled, within)):
            kernel -= expected.T @ (expected * (chance * squares)[:, None])
            kernel[np.diag_indices_from(kernel)] += (chance * squares) @ expected
        return kernel


@dataclass(frozen=True, slots=True)
class LearntWeight:
    """What is known of the two-valued weight of a table with many rows per user."""

    share: float
    """The part of reports that stand for rows."""

    def ground(self, known: Ground, functions: Floats) -> Ground:
        """Both weights as often as they are seen."""
        del known, functions
        return weight_ground(self.share)


INTERACTIONS = -1
"""The number under which a table has what was learnt of its attributes together."""
Learnt = Mapping[int, LearntDensity | LearntWeight | LearntInteractions]
"""What was learnt of some attributes of a table, by their numbers, of the weight, whose number follows them, and of
`INTERACTIONS`."""
