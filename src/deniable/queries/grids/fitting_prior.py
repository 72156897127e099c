"""What a fit assumes of data: as an answer does, and that every value or range asked about may hold many rows.

The prior of `smoothness.py` spreads rows evenly over a domain. That would mislead a fit: of an attribute from 0 to
99,999 it would expect one row in a hundred thousand to be 0, and see no reason to cut between 0 and 1 for a question
about `> 0`. But someone who asks about a value expects it to matter. So a fit gives half of the rows to the domain,
evenly, and the other half to the ranges between the constants of all conditions, the same part to each. Everything else
is the prior as it is: densities stray from this by the same factors, over the same part of the rows.

After a first look (`forecasts/first_look.py`) rows are expected where the look saw them, up to some doubt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from deniable.arrays import Floats
from deniable.queries.grids.grid_cells import Asked
from deniable.queries.grids.smoothness import ASSUMED_SMOOTHNESS, Ground, believed
from deniable.tables.schema.attributes import Categorical, Table

ASKED_SHARE = 0.5
"""The part of the rows that is divided over the ranges between constants."""


LOOK_DOUBT = 0.1
"""The part of the rows that a first look is not trusted with."""


def where_asked(
    table: Table, asked: Asked, borders: Mapping[str, tuple[int, ...]], seen: Mapping[str, Floats]
) -> Asked:
    """Columns under the prior of a fit, given where conditions on each attribute change, and where rows were seen."""
    grounds, means = list(asked.grounds), list(asked.means)
    for number, (name, domain) in enumerate(zip(table.private, table.domains, strict=True)):
        if isinstance(domain, Categorical) or not (borders.get(name) or name in seen):
            continue
        grounds[number] = _expecting(grounds[number], borders.get(name, ()), seen.get(name))
        constant = np.all(asked.given[number] == asked.given[number][:, :1], axis=1)
        means[number] = np.where(constant, asked.given[number][:, 0], grounds[number].means(asked.functions[number]))
    return replace(asked, grounds=tuple(grounds), means=tuple(means))


def expected_density(size: int, borders: tuple[int, ...], seen: Floats | None) -> Floats:
    """The part of the rows that a fit expects at each value."""
    starts = np.array([0, *borders])
    ranges = np.diff([*starts, size])
    inside = np.searchsorted(starts, np.arange(size), side="right") - 1
    asked: Floats = 1 / (ranges.size * ranges[inside])
    if seen is None:
        return (1 - ASKED_SHARE) / size + ASKED_SHARE * asked
    return (1 - LOOK_DOUBT) * seen + LOOK_DOUBT * asked


def _expecting(known: Ground, borders: tuple[int, ...], seen: Floats | None) -> Ground:
    """An attribute's ground with rows where questions look, or where they were seen."""
    per_value = expected_density(known.atom_of.size, borders, seen)
    shares = np.bincount(known.atom_of, per_value, minlength=known.shares.size).astype(np.float64)
    return believed(replace(known, shares=shares), ASSUMED_SMOOTHNESS)
