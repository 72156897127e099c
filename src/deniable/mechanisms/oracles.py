"""The frequency oracles that tables may use, and the choice among them."""

from __future__ import annotations

from deniable.mechanisms.frequency_oracle import FrequencyOracle
from deniable.mechanisms.local_hashing import LocalHashing
from deniable.mechanisms.randomized_response import RandomizedResponse
from deniable.mechanisms.single_cell import SingleCell

ORACLES: list[type[FrequencyOracle]] = [
    SingleCell,
    RandomizedResponse,
    LocalHashing,
]
"""Every view takes the one with the lowest variance, and the first of several that are equal."""

HASHING_ONLY: list[type[FrequencyOracle]] = [SingleCell, LocalHashing]
"""What the paper uses on every view of more than one cell."""


def best_oracle(oracles: list[type[FrequencyOracle]], epsilon: float, cells: int) -> FrequencyOracle:
    """The oracle of lowest variance for so many cells.

    >>> best_oracle(ORACLES, 1.0, 10).label, best_oracle(ORACLES, 1.0, 11).label
    ('response', 'hashing')
    """
    best = min(oracles, key=lambda oracle: oracle.response_cells(epsilon, cells))
    return best(epsilon, cells)
