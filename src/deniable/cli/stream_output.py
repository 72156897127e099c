"""Where stream commands write: a Parquet file, or a pipe whose reader may leave; and how signals end them."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from deniable.errors import InvalidParameter

if TYPE_CHECKING:
    from deniable.stores.parquet_output import ParquetOutput


def parquet_output(output: str) -> AbstractContextManager[ParquetOutput | None]:
    """The file that `--output` names, locked for this run; None for stdout."""
    from deniable.stores.parquet_output import ParquetOutput

    if output == "-":
        return nullcontext()
    if not output.endswith(".parquet"):
        raise InvalidParameter("--output", "must be a .parquet file or -", "Give the file that ending.")
    if not Path(output).absolute().parent.is_dir():
        raise InvalidParameter("--output", "is in a folder that does not exist", "Make the folder first.")
    return ParquetOutput(output)


class Interrupts:
    """Ctrl-C, and the SIGTERM of a service manager, end a run between two batches, with its files in order.

    So it is certain what has left. A second signal ends the run at once, even if a batch is stuck.
    """

    def __init__(self) -> None:
        self._held = False
        self._asked = 0  # the number of the signal
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # only there may a program say what signals do
            self._before = {name: signal.signal(name, self._interrupt) for name in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for name, handler in self._before.items():
            signal.signal(name, handler)

    def _interrupt(self, number: int, _: object) -> None:
        if self._asked or not self._held:
            raise KeyboardInterrupt(number)
        self._asked = number

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold signals back: this part must not be done by halves."""
        self._held = True
        try:
            yield
        finally:
            self._held = False
        if self._asked:
            raise KeyboardInterrupt(self._asked)


@contextmanager
def until_the_reader_leaves() -> Iterator[None]:
    """Write to stdout. If nobody reads it any more, stop without an error."""
    try:
        yield
    except BrokenPipeError:
        with suppress(OSError):
            sys.stdout.close()
