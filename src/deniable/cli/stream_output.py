"""Where the commands of streams write: to a Parquet file, or to a pipe whose reader may leave."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from deniable.errors import InvalidParameter

if TYPE_CHECKING:
    from deniable.engines.stream_files import ParquetOutput


def parquet_output(output: str) -> ParquetOutput | None:
    """The file that `--output` names; None for stdout."""
    from deniable.engines.stream_files import ParquetOutput

    if output == "-":
        return None
    if not output.endswith(".parquet"):
        raise InvalidParameter("--output", "must be a .parquet file or -", "Name it so.")
    if Path(output).exists():
        raise InvalidParameter(
            "--output",
            f"{Path(output).name!r} exists already, and what was released once must not be lost",
            "Name another file, or move that one away.",
        )
    if not Path(output).absolute().parent.is_dir():
        raise InvalidParameter("--output", "is in a folder that does not exist", "Make the folder first.")
    return ParquetOutput(output)


@contextmanager
def until_the_reader_leaves() -> Iterator[None]:
    """Write to stdout; if nobody reads it any more, stop without an error."""
    try:
        yield
    except BrokenPipeError:
        with suppress(OSError):
            sys.stdout.close()
