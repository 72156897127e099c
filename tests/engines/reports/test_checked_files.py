"""Files that were checked once are not checked again; any change of them is noticed."""

import os
import tempfile

import numpy as np
import pyarrow.parquet as pq
import pytest

import deniable as dn
from deniable.engines.local import opening
from deniable.engines.reports import checked_files, report_folders

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


def test_files_that_are_not_in_the_order_of_users_answer_as_before(folder, checks):
    expected = dn.connect(folder).sql(ASKED).scalar()
    path = report_file(folder)
    table = pq.read_table(path)
    mixed = table.take(np.random.default_rng(1).permutation(table.num_rows))
    path.unlink()
    for number, part in enumerate((mixed.slice(0, 1_000), mixed.slice(1_000))):
        pq.write_table(part, path.with_name(f"part{number}.parquet"))
    answers = [dn.connect(folder).sql(ASKED).scalar() for _ in range(2)]
    assert [answer.value for answer in answers] == pytest.approx([expected.value] * 2)
    assert len(checks) == 2  # the original, and the two files once


def test_a_file_that_is_replaced_after_it_was_judged_is_checked(folder, checks, monkeypatch):
    """Its footer said one thing when files were listed; the bytes that are read say another."""
    dn.connect(folder)
    path, listed = report_file(folder), report_folders.report_files

    def replaced(*given):
        judged = listed(*given)
        table = pq.read_table(path)
        pq.write_table(table.replace_schema_metadata(dict.fromkeys(table.schema.metadata, b"another")), path)
        return judged

    monkeypatch.setattr(report_folders, "report_files", replaced)
    dn.connect(folder)
    assert len(checks) == 2


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="there are no users")
def test_a_folder_of_notes_that_others_may_write_to_is_not_used(folder, checks, tmp_path, monkeypatch):
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path / "temporary"))
    dn.connect(folder)
    (tmp_path / "notes" / "deniable" / "checked").chmod(0o777)  # somebody may have planted a note
    dn.connect(folder)
    assert len(checks) == 2


def test_a_link_to_other_reports_is_noticed(folder, checks, tmp_path):
    dn.connect(folder)
    path = report_file(folder)
    about, other = path.stat(), tmp_path / "other.parquet"
    path.rename(other)
    rewritten(other, lambda columns: columns["view"].__setitem__(3, 200))
    path.symlink_to(other)
    os.utime(other, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert sum(sum(counts.values()) for counts in dn.connect(folder).refused.values()) == 1
    assert len(checks) == 2
