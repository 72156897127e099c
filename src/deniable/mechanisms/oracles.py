"""The frequency oracles that tables may use, and the choice among them."""

from __future__ import annotations

from deniable.mechanisms.frequency_oracle import FrequencyOracle
from deniable.mechanisms.local_hashing import LocalHashing
from deniable.mechanisms.randomized_response import RandomizedResponse
from deniable.mechanisms.single_cell import SingleCell
from deniable.mechanisms.subset_selection import SubsetSelection

ORACLES: list[type[FrequencyOracle]] = [
    SingleCell,
    RandomizedResponse,
    LocalHashing,
]
"""Every view takes the one with the lowest variance, and the first of several that are equal."""

WITH_SUBSETS: list[type[FrequencyOracle]] = [*ORACLES, SubsetSelection]
"""The same, and subset selection: the best one from about 1.7·(e^ε + 1) to 63 cells."""

HASHING_ONLY: list[type[FrequencyOracle]] = [SingleCell, LocalHashing]
"""What the paper uses on every view of more than one cell."""

AUTO, SUBSET, HASHED = "auto", "subset", "olh"
ORACLE_CHOICES: dict[str, list[type[FrequencyOracle]]] = {AUTO: ORACLES, SUBSET: WITH_SUBSETS, HASHED: HASHING_ONLY}
"""What a specification may say, and the oracles that its views choose from then. A name never gets another list: which
oracle made a report follows from its specification."""


def best_oracle(oracles: list[type[FrequencyOracle]], epsilon: float, cells: int) -> FrequencyOracle:
    """The oracle of lowest variance for so many cells.

    >>> best_oracle(ORACLES, 1.0, 10).label, best_oracle(ORACLES, 1.0, 11).label
    ('response', 'hashing')
    >>> [best_oracle(WITH_SUBSETS, 1.0, cells).label for cells in (6, 7, 63, 64)]
    ['response', 'subset', 'subset', 'hashing']
    """
    best = min(oracles, key=lambda oracle: oracle.response_cells(epsilon, cells))
    return best(epsilon, cells)
