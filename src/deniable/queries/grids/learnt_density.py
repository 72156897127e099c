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
SINGLED_OUT = 1.0
"""How likely a question that distinguishes parts of a piece knows why."""
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
        if not self.ordered:
            return self._independent(expected)
        learnt = believed(expected, self.smoothness, self._positions(known, shares))
        return replace(learnt, kernel=learnt.kernel + self._open(known, shares, functions))

    def _independent(self, known: Ground) -> Ground:
        """Every category strays on its own; the rows of a cell with several of them may be in any."""
        strays = sum(variance for _, variance in self.smoothness.variances) + self.smoothness.rough
        atoms = known.shares.size
        squares = np.bincount(known.atom_of, self.mass**2, minlength=atoms)
        piece = np.searchsorted(self.starts, np.arange(known.atom_of.size), side="right") - 1
        held = np.bincount(piece, self.mass)
        inside = np.bincount(piece * atoms + known.atom_of, self.mass, minlength=held.size * atoms).reshape(-1, atoms)
        strayed = np.diag(strays * squares)
        if self.unsure is not None:
            parts = inside / held[:, None]
            strayed = strayed + (parts * self.unsure[:, None]).T @ parts
        own = centred(known.atom_of, known.shares, strayed / np.outer(known.shares, known.shares), self.mass)
        spread = 2 * self.looseness
        kernel = np.diag(spread**2 * held @ inside) - (inside * (spread**2)[:, None]).T @ inside
        return replace(own, kernel=own.kernel + kernel)

    def _positions(self, known: Ground, shares: Floats) -> Floats:
        """Where atoms are: midway between their places in the domain and their places among the rows.

        On either scale alone, whatever is dense is misjudged. Where most rows lie in a few cells, values of these seem
        far apart on the scale of rows, and nothing is interpolated; if many rows share a small part of the domain,
        values there seem all alike on the scale of the domain. A value with a piece of its own next to a wide piece
        stands for itself.
        """
        widths = np.diff(np.append(self.starts, known.atom_of.size))
        alone = (np.minimum(widths[1:], widths[:-1]) == 1) & (np.maximum(widths[1:], widths[:-1]) >= WIDE_PIECE)
        steps = np.zeros(known.shares.size)
        steps[known.atom_of[self.starts[1:][alone]]] = STANDS_APART
        return np.asarray((midpoints(known.shares) + midpoints(shares)) / 2 + np.cumsum(steps))

    def _open(self, known: Ground, shares: Floats, functions: Floats) -> Floats:
        """Covariances of the masses of atoms that share a piece."""
        counts = np.bincount(known.atom_of, minlength=shares.size)
        firsts = np.cumsum(counts) - counts
        piece = np.searchsorted(self.starts, firsts, side="right") - 1
        changed = np.any(functions[:, firsts[1:]] != functions[:, firsts[1:] - 1], axis=0)
        new_piece = np.diff(piece) > 0
        part = np.concatenate(([0], np.cumsum(changed | new_piece)))
        first_part = np.concatenate(([True], changed | new_piece))
        parts = np.bincount(piece[first_part], minlength=self.starts.size)
        masses = np.bincount(piece, shares, minlength=self.starts.size)
        within = shares / np.maximum(masses[piece], 1e-300)
        of_part = np.bincount(part, within)
        alike = within / np.maximum(of_part[part], 1e-300) / parts[piece]
        singled = np.where(parts[piece] <= MOST_PARTS, SINGLED_OUT, 0.0)
        scale = 2 * self.looseness[piece] * masses[piece]
        together = piece[:, None] == piece[None, :]
        kernel = np.zeros((shares.size, shares.size))
        for chance, expected in ((singled, alike), (1 - singled, within)):
            weighed = np.sqrt(chance) * scale * expected
            kernel -= np.where(together, weighed[:, None] * weighed[None, :], 0.0)
            kernel[np.diag_indices_from(kernel)] += chance * scale**2 * expected
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
