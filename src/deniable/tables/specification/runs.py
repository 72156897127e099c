"""A run under a specification: whether it is a simulation. That is no part of the specification nor of its hash.

A folder's `collection.json` is the specification; a simulation's has `"simulation": true` beside its fields. Standard
library only, for devices.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deniable.errors import InvalidParameter
from deniable.simulation import has_noise, is_marked
from deniable.tables.specification.collection import Collection

FIELD = "simulation"
_OTHER_TAG = 0xFF


def largest_epsilon(collection: Collection) -> float:
    """What the most telling report spends: infinite or huge, it lets the truth out."""
    return max(collection.epsilon_per_report(table.name) for table in collection.tables)


def is_simulation(collection: Collection, metadata: Mapping[Any, Any] | None) -> bool:
    """Whether reports with these metadata are a simulation's: they are marked, or have no noise at all."""
    return is_marked(metadata) or not has_noise(largest_epsilon(collection))


def run_text(collection: Collection, *, simulation: bool) -> str:
    """What stands in `collection.json`."""
    if not simulation:
        return collection.to_json() + "\n"
    entries = {**collection.to_dict(), FIELD: True}
    return json.dumps(entries, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"


def read_run(entries: Any) -> tuple[Collection, bool]:
    """A specification from parsed entries, and whether its run is a simulation. Reports without noise always are."""
    simulation = False
    if isinstance(entries, Mapping) and FIELD in entries:
        entries = dict(entries)
        simulation = entries.pop(FIELD)
        if simulation is not True:
            raise InvalidParameter(FIELD, "must be true, or left out", "Restore collection.json as it was written.")
    collection = Collection.from_dict(entries)
    return collection, simulation or not has_noise(largest_epsilon(collection))


def run_tag(collection: Collection, name: str, *, simulation: bool) -> int:
    """The byte that reports carry: `Collection.tag` in a release, and never that one in a simulation."""
    return collection.tag(name) ^ _OTHER_TAG if simulation else collection.tag(name)
