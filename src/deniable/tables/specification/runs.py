"""A run under a specification: whether it is a simulation. That is not part of the specification or of its hash.

A folder's `collection.json` holds the specification; that of a simulation has the additional field
`"simulation": true`. Standard library only, for devices.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deniable.ledger import Ledger
from deniable.simulation import has_noise, is_marked
from deniable.tables.schema.report_format import FIELD_BYTES
from deniable.tables.schema.specification_entries import RUN_FIELD, canonical_json, without_run
from deniable.tables.specification.specification import Specification
from deniable.tables.specification.specification_files import read_file

SPECIFICATION_FILE = "collection.json"
_OTHER_TAG = 2 ** (8 * FIELD_BYTES["tag"]) - 1


def largest_epsilon(specification: Specification) -> float:
    """The largest ε of any report. If it is infinite or huge, the truth gets out."""
    return max(specification.epsilon_per_report(table.name) for table in specification.tables)


def is_simulation(specification: Specification, metadata: Mapping[Any, Any] | None) -> bool:
    """Whether reports with these metadata are a simulation's: they are marked, or have no noise at all."""
    return is_marked(metadata) or not has_noise(largest_epsilon(specification))


def run_text(specification: Specification, *, simulation: bool) -> str:
    """The content of `collection.json`."""
    entries = specification.to_dict() | ({RUN_FIELD: True} if simulation else {})
    return canonical_json(entries) + "\n"


def load_run(path: str | Path) -> tuple[Specification, bool]:
    """A specification from a file, and whether the file is the `collection.json` of a simulation."""
    return read_file(path, read_run)


def read_run(entries: Any) -> tuple[Specification, bool]:
    """A specification from parsed entries, and whether its run is a simulation. Reports without noise always are."""
    rest, simulation = without_run(entries)
    specification = Specification.from_dict(rest)
    return specification, simulation or not has_noise(largest_epsilon(specification))


def run_tag(specification: Specification, name: str, *, simulation: bool) -> int:
    """The tag that reports carry: `Specification.tag` in a release, its complement in a simulation."""
    return specification.tag(name) ^ _OTHER_TAG if simulation else specification.tag(name)


def charge_run(ledger: Ledger | None, specification: Specification, *tables: str) -> None:
    """Charge a run over many people with what each of them spends on these tables. A second run costs as much again."""
    if ledger is None:
        return
    for name in tables:
        ledger.charge(
            specification.spent_on(name),
            what=f"perturb, collection {specification.sha256[:8]}, table {name!r}",
            specification=specification.sha256,
            lifetime=specification.spends,
        )
