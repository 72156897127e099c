"""Heaps at round numbers: part of the rows have the nearest multiple of 5, 10, 100 or 1,000 instead of their value.

People round what they say, and prices and wages are round. No question has to name such numbers for them to matter: a
range to 29 holds far fewer rows than one to 30. The borders of cells lie anywhere among round numbers, so that the
frequencies of cells show heaps: with the density f of values before they are rounded and H the rounding of a share θ of
them, frequencies are those of H·f. Several steps and shares are compared with none by how likely they make the
frequencies (`smoothness_evidence.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np

from deniable.arrays import Floats
from deniable.queries.grids.smoothness import MOST_ATOMS, Ground
from deniable.tables.schema.ordinal import Ordinal

HEAP_STEPS = (5, 10, 100, 1000)
HEAP_SHARES = (0.3, 0.6, 0.9)
FEWEST_HEAPS = 4
"""A domain with fewer multiples of a step has no heaps."""
HEAPS_GRANTED = 0.1
"""The prior probability of heaps of any kind."""


@dataclass(frozen=True, slots=True)
class Heaps:
    """What part of the rows have a round number instead of their value."""

    step: int
    share: float
    first: int
    """The position of the first round number."""

    def moved(self, mass: Floats) -> Floats:
        """The part of rows at each value, given what it was before values were rounded."""
        nearest = np.rint((np.arange(mass.size) - self.first) / self.step).astype(np.int64)
        last = (mass.size - 1 - self.first) // self.step
        target = self.first + self.step * np.clip(nearest, 0, last)
        rounded = np.bincount(target, mass, minlength=mass.size)
        return np.asarray((1 - self.share) * mass + self.share * rounded)

    def matrix(self, known: Ground) -> Floats:
        """atoms × atoms: what part of an atom's rows are moved to each, rows being spread evenly over an atom."""
        atoms = known.shares.size
        nearest = np.rint((np.arange(known.atom_of.size) - self.first) / self.step).astype(np.int64)
        last = (known.atom_of.size - 1 - self.first) // self.step
        target = known.atom_of[self.first + self.step * np.clip(nearest, 0, last)]
        counts = np.bincount(target * atoms + known.atom_of, minlength=atoms * atoms).reshape(atoms, atoms)
        sizes = np.bincount(known.atom_of, minlength=atoms)
        return np.asarray((1 - self.share) * np.eye(atoms) + self.share * counts / sizes)


def possible_heaps(domain: Ordinal) -> tuple[Heaps, ...]:
    """The heaps that a domain may have: whole numbers, one by one, with several round ones among them."""
    return tuple(_possible(domain))


def _possible(domain: Ordinal) -> Iterator[Heaps]:
    if domain.kind != "number" or Fraction(domain.step) != 1 or Fraction(domain.low).denominator != 1:
        return
    for step, share in product(HEAP_STEPS, HEAP_SHARES):
        if domain.size <= step * MOST_ATOMS and step * FEWEST_HEAPS <= domain.size:  # atoms are not wider than a step
            yield Heaps(step, share, -int(domain.low) % step)
