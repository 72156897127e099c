"""What is assumed of data between the borders of cells: that it is smooth.

A grid shows how many rows lie in each cell, not where in it. Anything finer needs an assumption. It is stated here as a
prior of the data's density. Relative to evenly spread rows the density is 1 + ξ, where ξ is random with mean zero and,
for rows s and t, the covariance

    Cov(ξ(s), ξ(t)) = Π_j (1 + k_j(s_j, t_j)) − 1        over the attributes j.

The terms of this product are the attributes' own shapes, interactions of two, of three, and so on. For an ordinal
attribute k is a Matérn kernel of smoothness 3/2: neighbouring values are about equally frequent, values further apart
than a quarter of the domain hardly depend on each other, and densities of several times the average are common. A small
part of it is rough: single values may differ from their neighbours by a third or so. Categories have no neighbours:
their frequencies are independent, and a few of them may hold most rows. Kernels are centred, so that no attribute's
own shape changes the number of rows.

Everything needed of it is E[p(f)·p(g)] = Π_j (f̄_j·ḡ_j + f_j·k_j·g_j) for products f and g of functions of attributes,
where p(f) is the mean of f over the data's rows, f̄ the mean over evenly spread ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import scipy

from deniable.arrays import Floats, Integers
from deniable.tables.schema.attributes import Categorical, Private

CATEGORIES = 2.5
"""How far the frequency of a category strays from the average, relative to it: one standard deviation."""
FEW_CATEGORIES = 8.0
"""How many categories may hold most rows if there are many."""
HEAVY = 1 / 3
"""The variance of the share of users with many rows, relative to a half: any share is as likely as any other."""
MOST_ATOMS = 512
SPARSE = 4
"""Functions with at most so many entries per atom, all together, are multiplied as sparse ones."""
LEAST_SPREAD = 1e-10
"""What is added to variances, as a part of their average, so that rounding leaves them positive."""
SEPARATE = 64
"""Up to this many categories are always kept apart."""


@dataclass(frozen=True, slots=True)
class Smoothness:
    """How smooth the density of an ordinal attribute is assumed to be."""

    variances: tuple[tuple[float, float], ...]
    """(length, variance): how far apart values may be, as a part of the domain, and still be about equally frequent,
    and how far the density strays from evenness, relative to it."""
    rough: float
    """How far single values stray from their neighbours: a variance, too."""


ASSUMED_SMOOTHNESS = Smoothness(((0.25, 2.5**2),), 0.3**2)
"""The prior before there are any reports."""


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """An attribute's domain in atoms, pieces that no cut or function divides, and the prior over them."""

    atom_of: Integers
    """For every value of the domain its atom."""
    shares: Floats
    """The part of the domain that each atom is."""
    kernel: Floats
    """Covariances of the relative densities of atoms, times their shares."""
    mass: Floats | None = None
    """For every value the part of rows that is expected to have it; None where rows are spread evenly over an atom."""
    ranges: bool = False
    """Whether every atom is a range of values, in their order."""

    def weights(self) -> Floats:
        """For every value its part of its atom."""
        mass = np.ones(self.atom_of.size) if self.mass is None else self.mass
        return np.asarray(mass / np.bincount(self.atom_of, mass, minlength=self.shares.size)[self.atom_of])

    def firsts(self) -> Integers | None:
        """The first value of every atom, if atoms are ranges of values."""
        if not self.ranges:
            return None
        return np.searchsorted(self.atom_of, np.arange(self.shares.size))

    def middles(self, firsts: Integers) -> Floats:
        """The mean value of every atom that is a range."""
        if self.mass is None:
            return np.asarray(firsts + (np.diff(firsts, append=self.atom_of.size) - 1) / 2)
        values = self.weights() * np.arange(self.atom_of.size)
        return np.bincount(self.atom_of, values, minlength=self.shares.size).astype(np.float64)

    def averaged(self, functions: Floats) -> Floats:
        """Functions of values (one per row) as functions of atoms."""
        if self.shares.size == functions.shape[1]:
            return functions
        weights, atoms = self.weights(), self.shares.size
        sums = [np.bincount(self.atom_of, row * weights, minlength=atoms) for row in functions]
        return np.array(sums, dtype=np.float64).reshape(-1, atoms)

    def means(self, functions: Floats) -> Floats:
        """f̄ of functions of atoms."""
        return np.asarray(functions @ self.shares)

    def covered(self, functions: Floats) -> Floats:
        """f·k·g of all functions with each other."""
        return np.asarray(functions @ self.kernel @ functions.T)

    def second(self, left: Floats, right: Floats) -> Floats:
        """f̄·ḡ + f·k·g for all functions of the one side and all of the other."""
        if np.count_nonzero(left) > SPARSE * left.shape[1] < np.count_nonzero(right):
            return np.asarray(np.outer(self.means(left), self.means(right)) + left @ self.kernel @ right.T)
        if np.count_nonzero(left) > np.count_nonzero(right):
            return self.second(right, left).T
        # Cells and points divide atoms among them: nearly all entries are zero.
        return np.asarray(np.outer(self.means(left), self.means(right)) + (_few_entries(left) @ self.kernel) @ right.T)


def _few_entries(functions: Floats) -> scipy.sparse.csr_array:
    """Functions without their zeros, made from its parts: a fit needs thousands, and this takes a third of the time."""
    rows, columns = np.nonzero(functions)
    ends = np.searchsorted(rows, np.arange(functions.shape[0] + 1))
    return scipy.sparse.csr_array((functions[rows, columns], columns, ends), shape=functions.shape)


def ground(domain: Private, cuts: Iterable[Sequence[int]], functions: Floats) -> Ground:
    """The ground of an attribute whose atoms respect all the given cuts and functions."""
    if isinstance(domain, Categorical):
        return _categories(domain.size, cuts, functions)
    size = domain.size
    if size <= MOST_ATOMS:
        return _single_values(size)
    changes = np.flatnonzero(np.any(functions[:, 1:] != functions[:, :-1], axis=0)) + 1
    starts = [np.arange(MOST_ATOMS) * size // MOST_ATOMS, *(np.array(cut) for cut in cuts)]
    if changes.size <= MOST_ATOMS:
        starts.append(changes)
    return _from(np.unique(np.concatenate(starts)), size)


@lru_cache(maxsize=32)
def _single_values(size: int) -> Ground:
    """Every value is an atom. Plans and fits ask for it many times."""
    return _from(np.arange(size), size)


def _from(starts: Integers, size: int) -> Ground:
    """The ground whose atoms start at these values."""
    ends = np.append(starts[1:], size)
    atom_of = np.repeat(np.arange(starts.size), ends - starts)
    return believed(Ground(atom_of, (ends - starts) / size, np.zeros((0, 0)), ranges=True), ASSUMED_SMOOTHNESS)


def believed(known: Ground, smoothness: Smoothness, positions: Floats | None = None) -> Ground:
    """The same atoms of an ordinal attribute under another prior, relative to their shares.

    `positions` says where atoms are: atoms that are close to each other are alike. Without it, shares are widths.
    """
    kernel = smoothness.rough * rough_kernel(known)
    for length, variance in smoothness.variances:
        kernel = kernel + variance * smooth_kernel(known, length, positions)
    return replace(centred(known.atom_of, known.shares, kernel, known.mass), ranges=known.ranges)


def smooth_kernel(known: Ground, length: float, positions: Floats | None = None) -> Floats:
    """Covariances of the relative densities of atoms that are smooth over a length: Matérn's of smoothness 3/2."""
    middles = midpoints(known.shares) if positions is None else positions
    distances = np.abs(middles[:, None] - middles[None, :]) * (np.sqrt(3) / length)
    return np.asarray((1 + distances) * np.exp(-distances))


def midpoints(shares: Floats) -> Floats:
    """The middles of atoms that lie next to each other and are this wide."""
    return np.asarray(np.cumsum(shares) - shares / 2)


def rough_kernel(known: Ground) -> Floats:
    """Covariances where every value differs from its neighbours: they average out within an atom."""
    counts = np.bincount(known.atom_of)
    return np.diag(min(1.0, MOST_ATOMS / known.atom_of.size) / counts)


def _categories(size: int, cuts: Iterable[Sequence[int]], functions: Floats) -> Ground:
    """Categories that all functions and cuts treat alike are one atom; cells of single categories are grouped later."""
    distinguished = np.arange(size)[None, :] if size <= SEPARATE else functions
    if size > SEPARATE:
        shared = {tuple(cut) for cut in cuts if len(cut) < size}
        cells = [np.searchsorted(cut, np.arange(size), side="right") for cut in sorted(shared)]
        distinguished = np.concatenate((functions, *(cell[None, :].astype(np.float64) for cell in cells)))
    atom_of = np.unique(distinguished, axis=1, return_inverse=True)[1].reshape(-1)
    counts = np.bincount(atom_of)
    return centred(atom_of, counts / size, np.diag(category_variance(size) / counts))


def category_variance(size: int) -> float:
    """How far the frequency of one of so many categories strays from the average, relative to it: a variance."""
    return CATEGORIES**2 + size / FEW_CATEGORIES


def weight_ground(share: float = 0.5) -> Ground:
    """The ground of the two-valued weight of users with many rows; of so many reports it is expected to be one."""
    return centred(np.arange(2), np.array([1 - share, share]), 2 * HEAVY * np.eye(2))


def centred(atom_of: Integers, shares: Floats, kernel: Floats, mass: Floats | None = None) -> Ground:
    """A ground whose relative densities have these covariances, less what would change the number of rows."""
    means = kernel @ shares
    relative = kernel - means[:, None] - means[None, :] + shares @ means
    return Ground(atom_of, shares, shares[:, None] * relative * shares[None, :], mass)


def log_density(values: Floats, covariance: Floats) -> float:
    """The log density of a normal distribution with mean zero, up to a constant."""
    spread = covariance + LEAST_SPREAD * np.trace(covariance) / values.size * np.eye(values.size)
    factor = scipy.linalg.cho_factor(spread, lower=True)
    return float(-np.log(np.diag(factor[0])).sum() - values @ scipy.linalg.cho_solve(factor, values) / 2)
