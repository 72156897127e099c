"""`--data`, with one meaning in all commands: the folder that holds `streams` and `tables`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

if TYPE_CHECKING:
    from deniable_lab.experiments.data import Data

Command = TypeVar("Command", bound=Callable[..., None])


def data_option(without: str) -> Callable[[Command], Command]:
    """The option `--data`; `without` says what happens if it is left out."""
    return click.option(
        "--data",
        type=click.Path(path_type=Path),
        callback=lambda _context, _option, folder: _checked(folder),
        help=f"Folder that holds streams/*.parquet and tables/*.parquet. Without it, {without}.",
    )


def _checked(folder: Path | None) -> Data:
    from deniable_lab.experiments.data import Data

    return Data(folder)
