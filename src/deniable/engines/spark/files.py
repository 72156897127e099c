"""Folders of reports on any path that Spark can read: what is there, and under which specification it was made."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from deniable.engines.marks import SPARK_SCHEMA, Origin, origin_of, spark_marks
from deniable.engines.spark.faults import RESTORE
from deniable.errors import InvalidData
from deniable.simulation import MARK
from deniable.tables.reports import SPECIFICATION, TABLE


@dataclass(frozen=True, slots=True)
class Folder:
    """A folder of some file system that Hadoop knows."""

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

    def read_text(self) -> str:
        """A small file's text."""
        rows = self.spark.read.text(self.path, wholetext=True).collect()
        return str(rows[0][0]) if rows else ""

    def write_text(self, text: str) -> None:
        """Write a small file, which must not exist."""
        stream = self._system.create(self._path, False)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def move(self, to: Folder) -> None:
        """Give it another name: one step on most file systems."""
        if not self._system.rename(self._path, to._path):
            raise InvalidData(f"{to.name!r} could not be put in its place", "Check the rights on the folder.")

    def make(self) -> None:
        """Make it, and those above."""
        self._system.mkdirs(self._path)

    def remove(self) -> None:
        """Delete it with all that it holds."""
        self._system.delete(self._path, True)

    def parquet_files(self) -> list[Any]:
        """Paths of the Parquet files below it."""
        found, listed = [], self._system.listFiles(self._path, True)
        while listed.hasNext():
            path = listed.next().getPath()
            if path.getName().endswith(".parquet") and not path.getName().startswith(("_", ".")):
                found.append(path)
        return sorted(found, key=lambda path: str(path.toString()))

    def mark(self) -> Origin:
        """Where all of its files say that they come from; every footer is read."""
        files = self.parquet_files()
        if not files:
            raise InvalidData(f"table {self.name!r} has no files", RESTORE)
        marks = {self._footer_mark(path) for path in files}
        if len(marks) > 1:
            raise InvalidData(
                f"files of table {self.name!r} are of different specifications or kinds", "Keep them apart."
            )
        return marks.pop()

    def _footer_mark(self, path: Any) -> Origin:
        from py4j.protocol import Py4JError

        parquet = self.spark._jvm.org.apache.parquet.hadoop
        try:
            reader = parquet.ParquetFileReader.open(parquet.util.HadoopInputFile.fromPath(path, self._settings))
            try:
                entries = reader.getFooter().getFileMetaData().getKeyValueMetaData()
                names = (SPECIFICATION.decode(), TABLE.decode(), MARK.decode(), SPARK_SCHEMA)
                told = {name: text for name in names if (text := entries.get(name))}
            finally:
                reader.close()
        except Py4JError:
            raise InvalidData(f"file {path.getName()!r} of {self.name!r} is damaged", RESTORE) from None
        if SPARK_SCHEMA in told and SPECIFICATION.decode() not in told:
            return spark_marks(json.loads(told[SPARK_SCHEMA]))
        return origin_of(told)
