"""How much attributes of a table have to do with each other, as reports say.

The prior of `smoothness.py` expects what two attributes do together to stray as far as what each does by itself. Where
attributes are independent, that is far too much: noise of views with two attributes is then read as if it said
something. Views of two attributes show it. With base frequencies m_a and m_b of their cells along the two axes, the
contrasts

    (I − m_a·1ᵀ)·Y·(I − m_b·1ᵀ)ᵀ

of a view's frequencies Y are free of both attributes' own shapes (up to products of two errors of the base), and have
the covariance c·K_a⊗K_b plus noise, K being the kernels of the cells. Several factors c are compared by how likely they
make the contrasts of all such views; the average over them, weighted by that, is what answers use. Own shapes stay as
they are. In terms of the prior's products over attributes j this is

    Cov = (Π_j (M_j + c·K_j) − Π_j M_j)/c ,

M_j being products of means: what one attribute does counts once, what two do together c times, what three do c² times.

A factor below one is used only for what was looked at: pairs of attributes of which some view shows both. For more than
two attributes at once, and for pairs that no view has, nothing speaks against the prior.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Floats
from deniable.queries.grids.smoothness import log_density

FACTORS = (1 / 64, 1 / 16, 1 / 4, 1.0, 4.0)
"""The factors that are compared."""
EXPECTED = (0.1, 0.1, 0.1, 0.6, 0.1)
"""How likely they are before there are reports."""
MOST_CONTRASTS = 400
"""Larger views take long, and have too few reports per cell to say much."""


@dataclass(frozen=True, slots=True)
class LearntInteractions:
    """What is known of how attributes of a table go together."""

    factor: float
    """How much of the prior's interactions of two attributes there is."""
    pairs: frozenset[frozenset[int]]
    """The pairs of attributes of which views were compared."""

    def among(self, combined: Iterable[frozenset[int]]) -> float:
        """The factor for a question that combines these sets of attributes."""
        seen = all(len(attributes) < 2 or attributes in self.pairs for attributes in combined)
        return self.factor if seen else max(self.factor, 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class PairOfAxes:
    """A view of two attributes, ready to be compared with what its attributes do by themselves."""

    frequencies: Floats
    """Cells of the one axis × cells of the other."""
    bases: tuple[Floats, Floats]
    """The parts of rows that are expected in the cells of each axis."""
    kernels: tuple[Floats, Floats]
    """Their covariances under the prior."""
    noise: Floats
    """Covariances of the frequencies of all cells."""

    def likelihoods(self) -> Floats:
        """The log density of the contrasts under each factor, up to a constant."""
        removed = [np.eye(base.size) - np.outer(base, np.ones(base.size)) for base in self.bases]
        left, right = (matrix[:-1] for matrix in removed)  # the last cell follows from the others
        values = (left @ self.frequencies @ right.T).ravel()
        both = np.kron(left, right)
        noise = both @ self.noise @ both.T
        shapes = [matrix @ kernel @ matrix.T for matrix, kernel in zip((left, right), self.kernels, strict=True)]
        spread = np.asarray(np.kron(*shapes), dtype=np.float64)
        return np.array([log_density(values, factor * spread + noise) for factor in FACTORS])


def learnt_interactions(views: Sequence[PairOfAxes], pairs: Iterable[frozenset[int]]) -> LearntInteractions:
    """The average factor, weighted by how likely each makes what the views show."""
    total = np.log(EXPECTED)
    for view in views:
        if min(view.frequencies.shape) > 1 and view.frequencies.size <= MOST_CONTRASTS:
            total = total + view.likelihoods()
    chances = np.exp(total - total.max())
    return LearntInteractions(float(chances @ FACTORS / chances.sum()), frozenset(pairs))
