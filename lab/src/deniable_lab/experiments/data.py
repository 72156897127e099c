"""Where the data of experiments come from, and the sentence that a result says about them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from deniable.errors import InvalidParameter
from deniable_lab.experiments import stream_data, table_data
from deniable_lab.experiments.beyond._about import ABOUT

GROUPS = ("streams", "tables", "beyond")
_OF_DATA = GROUPS[:2]


@dataclass(frozen=True, slots=True)
class Data:
    """A folder with `streams/*.parquet` and `tables/*.parquet`, or None: then everything is drawn from models.

    Names of data are those of results: `POS` is the real file, `POS stand-in` is what is drawn where it is missing.
    """

    folder: Path | None = None

    def __post_init__(self) -> None:
        if self.folder is not None and not any((self.folder / group).is_dir() for group in _OF_DATA):
            problem = "holds neither `streams` nor `tables`" if self.folder.is_dir() else "is not a folder"
            raise InvalidParameter("--data", problem, "Name the folder that holds both, or leave it out for stand-ins.")

    def file(self, group: str, name: str) -> Path | None:
        """A file of the folder, if it is there."""
        path = None if self.folder is None else self.folder / group / f"{name}.parquet"
        return path if path is not None and path.is_file() else None

    def required(self, group: str, name: str) -> Path:
        """A file of the folder that nothing can stand in for."""
        path = self.file(group, name)
        if path is None:
            raise InvalidParameter("--data", f"has no file {group}/{name}.parquet", "Name a folder that has it.")
        return path

    def streams(self, *names: str) -> list[str]:
        """The paper's streams by the names of results: their own if the file is there, otherwise those of stand-ins."""
        return [name if self.file("streams", stream_data.FILES[name]) else f"{name} stand-in" for name in names]

    def stream(self, name: str) -> stream_data.Stream:
        """A stream by one of these names."""
        return stream_data.stream(name, self.file("streams", stream_data.FILES.get(name, "")))

    def about(self, name: str) -> str:
        """What a result says about the data it used."""
        return (stream_data.ABOUT | table_data.ABOUT | ABOUT)[name]
