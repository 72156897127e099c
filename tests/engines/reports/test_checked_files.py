"""Files that were checked once are not checked again; any change of them is noticed."""

import os

import numpy as np
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.engines.local import opening
from deniable.engines.reports import checked_files

PEOPLE = 3_000
ASKED = "SELECT COUNT(*) FROM users WHERE age < 12"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "notes"))
    monkeypatch.setattr(checked_files, "LEAST_REPORTS", 1_000)
    collection = dn.Collection(dn.Table("users", age=dn.Ordinal(0, 24)), epsilon=3.0)
    collection.perturb(users={"uid": np.arange(PEOPLE), "age": np.arange(PEOPLE) % 25}, out=tmp_path / "r")
    return tmp_path / "r"


@pytest.fixture
def checks(monkeypatch):
    """How often reports were checked."""
    made, validate = [], opening.validate

    def noted(*given):
        made.append(given[1])
        return validate(*given)

    monkeypatch.setattr(opening, "validate", noted)
    return made


def report_file(folder):
    (path,) = (folder / "users").glob("*.parquet")
    return path


def rewritten(path, change):
    """Change one report, in a file of the same time."""
    about, table = path.stat(), pq.read_table(path)
    columns = {name: table[name].to_numpy().copy() for name in table.column_names}
    change(columns)
    pq.write_table(type(table).from_pydict(columns, schema=table.schema), path)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def test_unchanged_files_are_checked_once(folder, checks):
    first = dn.connect(folder).sql(ASKED).scalar()
    again = dn.connect(folder)
    assert (again.sql(ASKED).scalar(), sum(map(sum, map(dict.values, again.refused.values())))) == (first, 0)
    assert checks == ["users"]


def test_a_changed_report_is_noticed_whatever_time_the_file_has(folder, checks):
    dn.connect(folder)
    rewritten(report_file(folder), lambda columns: columns["view"].__setitem__(7, 200))
    assert sum(sum(counts.values()) for counts in dn.connect(folder).refused.values()) == 1
    assert len(checks) == 2
    dn.connect(folder)  # files with reports that are refused are checked every time
    assert len(checks) == 3


def test_a_digest_decides_when_size_and_time_are_the_same(folder, checks):
    dn.connect(folder)
    path = report_file(folder)
    about, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    try:
        dn.connect(folder)
    except dn.DeniableError:
        return  # Parquet noticed
    assert len(checks) == 2


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b'[["x"]]', b"\xff"])
def test_a_damaged_note_means_that_everything_is_checked(folder, checks, tmp_path, content):
    dn.connect(folder)
    (note,) = (tmp_path / "notes" / "deniable" / "checked").iterdir()
    note.write_bytes(content)
    dn.connect(folder)
    assert len(checks) == 2


def test_without_a_private_folder_there_are_no_notes(folder, checks, monkeypatch):
    def refused(*_):
        raise dn.errors.Failure("no home")

    monkeypatch.setattr(checked_files, "private_folder", refused)
    for _ in range(2):
        dn.connect(folder)
    assert len(checks) == 2


def test_few_notes_are_kept(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(checked_files, "MOST_NOTES", 1)
    for number in range(3):
        folder.rename(tmp_path / f"moved{number}")
        folder = tmp_path / f"moved{number}"
        dn.connect(folder)
    assert len(list((tmp_path / "notes" / "deniable" / "checked").iterdir())) == 1
