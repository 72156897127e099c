"""How values of an attribute may be spread, compared by how likely they make the frequencies of cells.

Smooth or rough, with rows that single pieces hold by themselves or without, and heaped at round numbers or not. See
`smoothness_evidence.py` for the likelihood.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np
import scipy

from deniable.arrays import Booleans, Floats, Integers
from deniable.queries.grids.heaps import HEAPS_GRANTED, Heaps
from deniable.queries.grids.smoothness import Ground, Smoothness, log_density, rough_kernel, smooth_kernel

KERNEL_LENGTHS = (0.25, 0.08, 0.025)
AMPLITUDES = (2.5, 5.0, 10.0)
ROUGHNESSES = (0.3, 1.0, 3.0)
SPIKES = (0.0, 0.03, 0.3)
"""The kinds that are compared; the first of each is the assumed one. Spikes are parts of all rows in single pieces."""
SPIKED = (1.0, 0.1, 0.03)
"""The prior probabilities of spikes, up to a factor."""
GRANTED = 0.9
"""The prior probability of the assumed kind. Others are proportional to √length / (amplitude · √roughness)."""
UNLIKELY = 0.02
"""What is less likely than this is not looked at."""


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """The frequencies of cells along one attribute, of all views that have it."""

    views: frozenset[int]
    """The numbers of these views."""
    known: Ground
    cells: Floats
    """cells × atoms: what part of an atom each counts."""
    noise: Floats
    """The covariances of their frequencies as estimated from one report."""
    starts: Integers
    """The first value of every piece that no border divides."""
    origin: int
    """Where a logarithmic scale begins: at zero, or at the least value."""
    heaps: tuple[Heaps, ...] = ()
    """How values may be heaped at round numbers."""
    of_cells: Booleans | None = None
    """Which of the frequencies are those of cells: all (None), or there are points besides."""


@dataclass(frozen=True, slots=True)
class ValueSpread:
    """How values are spread, as far as cells can show."""

    smoothness: Smoothness
    spikes: float
    """The variance of the part of all rows that a piece may hold by itself."""
    heaps: Heaps | None
    evidence: float
    """The log of how likely it makes the frequencies."""

    def moved(self, mass: Floats) -> Floats:
        """The part of rows at each value, given what it was before values were rounded."""
        return mass if self.heaps is None else self.heaps.moved(mass)


def compared_spreads(
    along: Along, inside: Floats, frequencies: Floats, noise: Floats
) -> list[tuple[float, ValueSpread]]:
    """Smooth or rough, spiky or not; without heaps and with the likeliest ones, and how likely each of both is."""
    heaps, chance = _heaped(along, inside, frequencies, noise) if along.heaps else (None, 0.0)
    chance = 0.0 if chance < UNLIKELY else 1.0 if chance > 1 - UNLIKELY else chance
    kinds = ((chance, heaps), (1 - chance, None))
    return [(each, _averaged(along, inside, frequencies, noise, kind)) for each, kind in kinds if each]


def _heaped(along: Along, inside: Floats, frequencies: Floats, noise: Floats) -> tuple[Heaps, float]:
    """The most likely heaps, and how likely it is that there are heaps.

    What single values with a piece of their own hold says nothing here: many rows at zero are not a heap.
    """
    counts = np.bincount(along.known.atom_of)
    alone = along.cells @ inside[inside @ counts == 1].T
    free = noise + max(SPIKES) ** 2 * alone @ alone.T
    plain, *heaped = (
        _averaged(along, inside, frequencies, free, heaps, AMPLITUDES[:1]) for heaps in (None, *along.heaps)
    )
    best = max(heaped, key=lambda kind: kind.evidence)
    assert best.heaps is not None  # noqa: S101 - these are those with heaps
    odds = best.evidence - plain.evidence + math.log(HEAPS_GRANTED / (1 - HEAPS_GRANTED) / len(heaped))
    return best.heaps, float(scipy.special.expit(odds))


def _averaged(
    along: Along,
    inside: Floats,
    frequencies: Floats,
    noise: Floats,
    heaps: Heaps | None,
    amplitudes: tuple[float, ...] = AMPLITUDES,
) -> ValueSpread:
    """The average over kinds of smoothness, weighted by how likely they make the observed frequencies."""
    known = along.known
    cells = along.cells if heaps is None else along.cells @ heaps.matrix(known)
    rest = frequencies - known.means(cells)
    shared = cells * known.shares
    centred = shared - np.outer(shared.sum(axis=1), known.shares)  # no shape changes the number of rows
    smooth = {length: centred @ smooth_kernel(known, length) @ centred.T for length in KERNEL_LENGTHS}
    rough = centred @ rough_kernel(known) @ centred.T
    spiked = shared @ (inside / (inside @ known.shares)[:, None]).T
    spiked = spiked @ spiked.T
    kinds = list(product(KERNEL_LENGTHS, amplitudes, ROUGHNESSES, SPIKES))
    before = np.array(
        [
            math.sqrt(length / roughness) / amplitude * SPIKED[SPIKES.index(spike)]
            for length, amplitude, roughness, spike in kinds
        ]
    )
    before[0] = before[1:].sum() * GRANTED / (1 - GRANTED)
    before /= before.sum()
    likelihoods = np.array(
        [
            log_density(rest, amplitude**2 * smooth[length] + roughness**2 * rough + spike**2 * spiked + noise)
            for length, amplitude, roughness, spike in kinds
        ]
    )
    chances = before * np.exp(likelihoods - likelihoods.max())
    evidence = float(likelihoods.max() + math.log(chances.sum()))
    chances /= chances.sum()
    variances = dict.fromkeys(KERNEL_LENGTHS, 0.0)
    for chance, (length, amplitude, _, _) in zip(chances.tolist(), kinds, strict=True):
        variances[length] += chance * amplitude**2
    squares, spikes = (np.array([kind[which] ** 2 for kind in kinds]) for which in (2, 3))
    smoothness = Smoothness(tuple(variances.items()), float(chances @ squares))
    return ValueSpread(smoothness, float(chances @ spikes), heaps, evidence)
