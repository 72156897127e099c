"""The page on architecture names every file of the rooms, and none that is not there; names mean one thing each."""

import ast
import re
from collections import Counter, defaultdict
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "deniable"
NAMED = set(re.findall(r"`([\w/]+\.py)`", (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")))
ROOMS = ("tables", "queries", "streams", "stores", "engines", "plotting", "service")


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


def _top_level(tree):
    """Upper-case names that a module assigns, with what they are assigned."""
    for node in tree.body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        for target in targets:
            if isinstance(target, ast.Name) and target.id.strip("_").isupper() and node.value is not None:
                yield target.id.strip("_"), ast.unparse(node.value)


def test_a_name_means_one_thing():
    """Two constants with one name have one value; classes have names of their own."""
    values, classes = defaultdict(set), Counter()
    for path in (ROOT / "src").rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        classes.update(node.name for node in tree.body if isinstance(node, ast.ClassDef))
        for name, value in _top_level(tree):
            values[name].add(value)
    shared = {name for name, different in values.items() if len(different) > 1}
    # One registry of lazy names per package; type variables, which are local by their nature; DB-API's names.
    assert shared - {"LAZY", "F", "BINARY", "NUMBER"} == set()
    assert [name for name, count in classes.items() if count > 1] == []


def test_variables_say_what_they_hold():
    """Names that only say that there is something: `one`, `found`, `place`."""
    vague = {"one", "found", "place"}
    for folder in ("src", "lab/src"):
        for path in (ROOT / folder).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            used = {getattr(node, kind, None) for node in ast.walk(tree) for kind in ("id", "arg")}
            assert not used & vague, f"{path.name}: {used & vague}"


def test_files_are_short():
    for folder in ("src", "lab/src"):
        for path in (ROOT / folder).rglob("*.py"):
            assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, path.name
