"""Where the data of experiments come from, and the sentence that a result says about them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from deniable.errors import InvalidParameter
from deniable_lab.experiments import stream_data, table_data


@dataclass(frozen=True, slots=True)
class Data:
    """A folder with `streams/*.parquet` and `tables/*.parquet`, or None: then everything is drawn from models.

    Names of data are those of results: `POS` is the real file, `POS stand-in` is what is drawn where it is missing.
    """

    folder: Path | None = None

    def __post_init__(self) -> None:
        if self.folder is not None and not self.folder.is_dir():
            raise InvalidParameter("--data", "is not a folder", "Leave it out for stand-ins that work everywhere.")

    def file(self, group: str, name: str) -> Path | None:
        """A file of the folder, if it is there."""
        path = None if self.folder is None else self.folder / group / f"{name}.parquet"
        return path if path is not None and path.is_file() else None

    def streams(self, *names: str) -> list[str]:
        """The names under which streams of the paper are at hand: themselves, or their stand-ins."""
        return [name if self.file("streams", stream_data.FILES[name]) else f"{name} stand-in" for name in names]

    def stream(self, name: str) -> stream_data.Stream:
        """A stream by one of these names."""
        return stream_data.stream(name, self.file("streams", stream_data.FILES.get(name, "")))

    def about(self, name: str) -> str:
        """What a result says about the data it used."""
        return (stream_data.ABOUT | table_data.ABOUT)[name]
