"""A checked question: which tables, which functions of their attributes, which aggregates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Mask = NDArray[np.bool_]
Place = tuple[str, str]
"""(table, attribute)."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """COUNT(*), SUM(attribute) or AVG(attribute)."""

    kind: str
    name: str
    """What the answer's column is called."""
    attribute: Place | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """What a query asks, after every part of it has been recognised."""

    tables: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    groups: tuple[Place, ...]
    where: Mapping[Place, Mask]
    """For each private attribute that a predicate speaks of, the places of its domain that satisfy it."""
    public: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each table, conditions on its public attributes that all must hold, as checked SQL."""
