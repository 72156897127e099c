"""A run under a specification: whether it is a simulation. That is not part of the specification or of its hash.

A folder's `collection.json` holds the specification; that of a simulation has the additional field
`"simulation": true`. Standard library only, for devices.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from deniable.ledger import Account, Ledger, key_of
from deniable.ledger_entries import Charge
from deniable.simulation import has_noise, is_marked
from deniable.tables.schema.report_format import FIELD_BYTES, USER_COLUMN
from deniable.tables.schema.rounds import ROTATING
from deniable.tables.schema.specification_entries import KEY_FIELD, RUN_FIELD, canonical_json, without_run
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


def run_text(specification: Specification, *, simulation: bool, key: str = USER_COLUMN) -> str:
    """The content of `collection.json`; `key` is what the column of user ids was called."""
    entries = specification.to_dict() | ({RUN_FIELD: True} if simulation else {})
    entries |= {} if key == USER_COLUMN else {KEY_FIELD: key}
    return canonical_json(entries) + "\n"


def load_run(path: str | Path) -> tuple[Specification, bool]:
    """A specification from a file, and whether the file is the `collection.json` of a simulation."""
    return read_file(path, read_run)


def read_key(path: str | Path) -> str:
    """What the column of user ids was called in a run, by its `collection.json`."""
    return str(read_file(path, lambda entries: entries.get(KEY_FIELD, USER_COLUMN)))


def read_run(entries: Any) -> tuple[Specification, bool]:
    """A specification from parsed entries, and whether its run is a simulation. Reports without noise always are."""
    rest, simulation = without_run(entries)
    specification = Specification.from_dict(rest)
    return specification, simulation or not has_noise(largest_epsilon(specification))


def run_tag(specification: Specification, name: str, *, simulation: bool) -> int:
    """The tag that reports carry: `Specification.tag` in a release, its complement in a simulation."""
    return specification.tag(name) ^ _OTHER_TAG if simulation else specification.tag(name)


def charge_of(account: Account, specification: Specification, name: str, what: str, group: str) -> Charge:
    """What the next answer about a table costs. Answers of one group cost together what so many rounds cost."""
    known = account.answers(group) if group else 0
    rounds, answered = specification.rounds, known + 1
    if rounds is not None and rounds.mode == ROTATING:  # nobody answers in more rounds than her own
        known, answered = min(known, rounds.answers), min(answered, rounds.answers)
    spent, before = specification.spent_on(name, answered), Fraction(0)
    if known:
        before = Fraction(specification.spent_on(name, known).epsilon)
    left = replace(spent, epsilon=spent.epsilon - before)
    whole = specification.spends_of(specification[name].owner)
    return Charge(f"{what}, table {name!r}", left, "", specification.sha256, group, whole)


def charge_run(
    ledger: Ledger | None, specification: Specification, *tables: str, group: str = "", number: int | None = None
) -> None:
    """Charge a run over many people with what each of them spends on these tables. A second run costs as much again.

    Rounds of one `group` share turns and permanent answers: where rounds rotate, nobody answers in more of them than
    her own, so that later ones cost nothing more. A round that is run again costs as much as the first time.
    """
    if ledger is None:
        return
    for name in tables:
        mine = key_of(f"{specification.sha256}:{name}:{group}", b"") if group else ""
        key = key_of(f"{mine}:{number}", b"") if mine else secrets.token_hex(16)
        with ledger.account() as account:
            account.check_pinned(specification.sha256)
            if account.is_charged(key):
                rotating = specification.rounds is not None and specification.rounds.mode == ROTATING
                mine, key = "" if rotating else mine, secrets.token_hex(16)
            what = f"perturb, collection {specification.sha256[:8]}"
            charge = replace(charge_of(account, specification, name, what, mine), key=key)
            account.admit(charge)
            account.charge(charge)
