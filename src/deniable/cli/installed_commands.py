"""Commands that other installed packages add, under the entry-point group `deniable.commands`.

The package deniable-lab adds `bench` and `reproduce` this way. Nothing in this package imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from deniable.errors import Failure

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

GROUP = "deniable.commands"
LAB_COMMANDS = ("bench", "reproduce")


def entry_points(name: str | None = None) -> EntryPoints:
    """What installed packages add. Imported here, because most commands are own ones and need no list."""
    from importlib import metadata

    return metadata.entry_points(group=GROUP) if name is None else metadata.entry_points(group=GROUP, name=name)


def names() -> set[str]:
    """The names of all such commands; none of them is imported."""
    return set(entry_points().names)


def load(name: str) -> click.Command | None:
    """The command of this name, or None where no installed package has it."""
    for entry in entry_points(name):
        return _loaded(entry)
    if name in LAB_COMMANDS:
        raise Failure(
            f"`deniable {name}` is part of the package deniable-lab, which is not installed: "
            "run `pip install ./lab` in a checkout of deniable."
        )
    return None


def _loaded(entry: EntryPoint) -> click.Command:
    try:
        command = entry.load()
    except (ImportError, AttributeError):
        command = None
    if isinstance(command, click.Command):
        return command
    raise Failure(
        f"the command {entry.name!r} cannot be loaded from {entry.value!r}. Nothing was done. "
        "Install the package that adds it again, in the version that belongs to this one."
    )
