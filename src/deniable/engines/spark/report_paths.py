"""Folders of reports on any path that Spark can read: their files, and the specification they were made under."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.engines.collecting.folder_writing import ROUND_FOLDER
from deniable.engines.reports.report_files import RESTORE, listed_files
from deniable.engines.reports.report_origin import SPARK_SCHEMA, ReportOrigin
from deniable.errors import InvalidData
from deniable.simulation import MARK, one_kind
from deniable.tables.reports.report_table import SPECIFICATION, TABLE, check_names
from deniable.tables.specification.specification import Specification
from deniable.wording import shown


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder or file in a file system that Hadoop knows."""

    spark: Any
    path: str

    def below(self, name: str) -> Folder:
        """A folder or file in it."""
        return Folder(self.spark, f"{self.path.rstrip('/')}/{name}")

    @property
    def name(self) -> str:
        """Its last part."""
        return self.path.rstrip("/").rsplit("/", 1)[-1]

    @property
    def _path(self) -> Any:
        return self.spark._jvm.org.apache.hadoop.fs.Path(self.path)

    @property
    def _settings(self) -> Any:
        return self.spark._jsparkSession.sessionState().newHadoopConf()

    @property
    def _system(self) -> Any:
        return self._path.getFileSystem(self._settings)

    def exists(self) -> bool:
        """Whether there is one."""
        return bool(self._system.exists(self._path))

    def names(self) -> list[str]:
        """The names of what is in it; none if it does not exist."""
        listed = self._system.listStatus(self._path) if self.exists() else ()
        return [str(status.getPath().getName()) for status in listed]

    def read_text(self) -> str:
        """A small file's text."""
        stream = self._system.open(self._path)
        try:
            return bytes(self.spark._jvm.org.apache.commons.io.IOUtils.toByteArray(stream)).decode()
        except UnicodeDecodeError:
            raise InvalidData(f"file {shown(self.name)} is not UTF-8 text", RESTORE) from None
        finally:
            stream.close()

    def read_parquet(self, collection: Specification) -> Any:
        """Its own Parquet files, and no others, as a DataFrame. A round may be a file, or a folder of files."""
        if collection.rounds is None:
            paths = [literal_path(self.path)]
        else:
            paths = [literal_path(str(path.toString())) for path in self.parquet_files(rounds=True)]
        return self.spark.read.parquet(*paths, pathGlobFilter="*.parquet", recursiveFileLookup=False)

    def write_text(self, text: str) -> None:
        """Write a small file, which must not exist."""
        stream = self._system.create(self._path, False)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def move(self, to: Folder) -> None:
        """Rename it: one step on most file systems."""
        if not self._system.rename(self._path, to._path):
            raise InvalidData(f"{to.name!r} could not be moved into place", "Check the rights on the folder.")

    def make(self) -> None:
        """Make it, and those above."""
        self._system.mkdirs(self._path)

    def remove(self) -> None:
        """Delete it with all its contents."""
        self._system.delete(self._path, True)

    def parquet_files(self, *, rounds: bool = False) -> list[Any]:
        """Paths of its Parquet files. Folders in it are refused, as by the local engine, except those of rounds."""
        if self._system.getUri().getScheme() == "file":
            folder = Path(self._system.makeQualified(self._path).toUri().getPath())
            files = listed_files(folder, self.name, rounds=rounds)
            return [self.below(str(path.relative_to(folder)))._path for path in files]
        paths = []
        for status in self._system.listStatus(self._path):
            path = status.getPath()
            if path.getName().startswith((".", "_")):
                continue
            if status.isDirectory() and rounds and ROUND_FOLDER.fullmatch(str(path.getName())):
                paths += self.below(str(path.getName())).parquet_files()
                continue
            if status.isDirectory():
                raise InvalidData(
                    f"{shown(path.getName())} is a folder in the reports of table {self.name!r}", "Remove it."
                )
            if path.getName().endswith(".parquet"):
                paths.append(path)
        if not paths:
            raise InvalidData(f"table {self.name!r} has no files", RESTORE)
        return sorted(paths, key=lambda path: str(path.toString()))

    def origin(self, collection: Specification) -> ReportOrigin:
        """The origin that all of its files declare; every footer is read and judged."""
        declared: dict[str, list[tuple[str, str]]] = {}
        files = self.parquet_files(rounds=collection.rounds is not None)
        origins = {str(path.toString()): self._footer(path, declared) for path in files}
        named = {(origin.specification, origin.table) for origin in origins.values()}
        if len(named) > 1:
            raise InvalidData(f"files of table {self.name!r} are of different specifications", "Keep them apart.")
        one_kind({name.rsplit("/", 1)[-1]: origin.simulation for name, origin in origins.items()})
        if named == {(collection.sha256, self.name)}:
            kinds = set()
            for columns in declared.values():
                names = check_names(collection, self.name, [name for name, _ in columns])
                kinds.add(tuple(dict(columns)[name] for name in names))
            if len(kinds) > 1:
                raise InvalidData(f"files of table {self.name!r} have columns of different types", "Keep them apart.")
        return next(iter(origins.values()))

    def _footer(self, path: Any, declared: dict[str, list[tuple[str, str]]]) -> ReportOrigin:
        from py4j.protocol import Py4JError

        parquet = self.spark._jvm.org.apache.parquet.hadoop
        names = (SPECIFICATION.decode(), TABLE.decode(), MARK.decode(), SPARK_SCHEMA)
        try:
            reader = parquet.ParquetFileReader.open(parquet.util.HadoopInputFile.fromPath(path, self._settings))
            try:
                footer = reader.getFooter().getFileMetaData()
                entries = footer.getKeyValueMetaData()
                metadata = {name: text for name in names if (text := entries.get(name))}
                _declare(footer.getSchema(), declared)
            finally:
                reader.close()
            if SPARK_SCHEMA in metadata and SPECIFICATION.decode() not in metadata:
                return ReportOrigin.of_spark_schema(metadata[SPARK_SCHEMA])
        except (Py4JError, ValueError, AttributeError, TypeError):
            raise InvalidData(f"file {path.getName()!r} of {self.name!r} is damaged", RESTORE) from None
        return ReportOrigin.of(metadata)


def _declare(schema: Any, declared: dict[str, list[tuple[str, str]]]) -> None:
    """Note the columns of a file, names and types, once for all files that declare the same."""
    text = str(schema.toString())
    if text not in declared:
        declared[text] = [(str(field.getName()), str(field.toString())) for field in schema.getFields()]


def literal_path(path: str) -> str:
    """A path with { } [ ] * ? escaped, which Spark would take for patterns.

    >>> literal_path("hdfs:///data/r[1]")
    'hdfs:///data/r\\\\[1\\\\]'
    """
    return "".join(f"\\{letter}" if letter in "{}[]*?\\" else letter for letter in path)
