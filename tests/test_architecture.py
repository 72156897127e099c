"""The page on architecture names every file of the rooms it describes, and none that is not there."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "deniable"
NAMED = set(re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")))
ROOMS = ("tables", "queries", "streams", "stores", "engines", "plotting")


def files(folder):
    return [file.relative_to(folder).as_posix() for file in sorted(folder.rglob("*.py"))]


def test_files_that_are_named_exist():
    known = {name for file in (*files(SOURCE), *files(ROOT)) for name in (file, file.rsplit("/", 1)[-1])}
    assert NAMED
    assert known >= NAMED


def test_every_file_of_a_room_is_named():
    mentioned = {name.rsplit("/", 1)[-1] for name in NAMED}
    for room in ROOMS:
        mine = [file for file in files(SOURCE / room) if not file.endswith("__init__.py") and "designs/" not in file]
        assert mine
        assert {file.rsplit("/", 1)[-1] for file in mine} <= mentioned, room
