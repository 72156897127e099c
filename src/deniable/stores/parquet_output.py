"""The Parquet file that a run of a stream leaves: values are appended as they are released."""

from __future__ import annotations

from contextlib import suppress
from os import PathLike
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from deniable.disk_faults import writing
from deniable.errors import Failure, InvalidParameter
from deniable.files import Lock


class ParquetOutput:
    """Released values, written as they come. The metadata follow at the end, when all of them are known.

    Values gather in a hidden file next to `path`, which is renamed to `path` once it is complete. Until then nobody
    else can write there.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self._lock = Lock(path, "the output", cost="Nothing was read or published")
        self._path = self._lock.path
        self._partial = self._path.with_name(f".{self._path.name}.partial")
        if self._path.exists():
            self._lock.close()
            raise InvalidParameter(
                "--output",
                f"{self._path.name!r} exists already, and what was released once must not be lost",
                "Name another file, or move that one away.",
            )
        self._partial.unlink(missing_ok=True)  # left by a killed run
        self._writer: Any = None
        self._held: pa.Table | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._writer is not None and self._writer.is_open:
            with suppress(OSError):
                self._writer.close()
            self._partial.unlink(missing_ok=True)
        self._lock.close()

    @writing("the output", "It was not finished, and nothing of it left")
    def write(
        self, values: NDArray[Any], timestamps: NDArray[Any] | None = None, phases: NDArray[Any] | None = None
    ) -> None:
        """Append values. The newest batch is held back, because the end of the stream may correct its last value."""
        if values.size == 0:
            return
        columns = {} if timestamps is None else {"timestamp": timestamps}
        columns |= {} if phases is None else {"phase": phases}
        self._release()
        self._held = pa.table({**columns, "value": values})

    @writing("the output", "It was not finished, and nothing of it left")
    def close(self, metadata: dict[bytes, bytes], correction: float = 0.0) -> None:
        """Correct the last value and finish the file."""
        if self._held is None:
            self._held = pa.table({"value": pa.array([], pa.float64())})
        elif correction:
            values = self._held["value"].to_numpy().copy()
            values[-1] += correction
            column = self._held.column_names.index("value")
            self._held = self._held.set_column(column, "value", pa.array(values))
        self._release()
        self._writer.add_key_value_metadata(metadata)
        self._writer.close()
        if self._path.exists():
            raise Failure(
                f"somebody made a file {self._path.name!r} meanwhile, which is not overwritten. "
                f"What was released is in {self._partial.name!r}. Give it another name."
            )
        self._partial.rename(self._path)

    def _release(self) -> None:
        if self._held is None:
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._partial, self._held.schema, compression="zstd")
        self._writer.write_table(self._held)
        self._held = None
