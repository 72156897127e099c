"""Specifications in files: TOML for people, JSON for programs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from deniable.disk_faults import writing
from deniable.errors import InvalidParameter
from deniable.limits import LARGEST_JSON, LARGEST_TOML, LONGEST_KEY
from deniable.strict_json import BadJson, read_json
from deniable.tables.schema.attributes import OWNERSHIP
from deniable.tables.schema.scalars import named_span
from deniable.tables.schema.specification_entries import canonical_json

Made = TypeVar("Made")
UNDECIDED = "DECIDE"
"""What a value begins with that `deniable init` leaves to a person."""
_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_LONG_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*+(?:{_PART}){{{LONGEST_KEY}}}", re.MULTILINE)


def read_file(path: str | Path, build: Callable[[Any], Made]) -> Made:
    """What `build` makes of the entries of a TOML or JSON file."""
    import tomllib  # here, because most programs that import this package never read TOML

    path = _named(path)
    try:
        text = _read(path)
    except UnicodeDecodeError:
        raise InvalidParameter(f"file {path.name!r}", "is not UTF-8 text", "Save it as UTF-8.") from None
    except (OSError, ValueError) as error:  # a path may hold characters that no file system accepts
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise InvalidParameter(f"file {path.name!r}", f"cannot be read ({reason.lower()})", "Check the path.") from None
    try:
        return _built(build, tomllib.loads(text) if path.suffix == ".toml" else read_json(text))
    except (tomllib.TOMLDecodeError, json.JSONDecodeError, BadJson) as error:
        raise InvalidParameter(f"file {path.name!r}", f"is not well-formed: {error}", "Correct it there.") from None
    except RecursionError:
        raise InvalidParameter(f"file {path.name!r}", "is nested too deeply", "Three levels are enough.") from None
    except ValueError:  # Python refuses to convert numbers of over 4,300 digits
        raise InvalidParameter(f"file {path.name!r}", "has a number of too many digits", "Shorten it.") from None


def _built(build: Callable[[Any], Made], entries: Any) -> Made:
    """What `build` makes of entries; of a proposal that nobody has decided on, say what is left to decide."""
    try:
        return build(entries)
    except InvalidParameter:
        for setting in _undecided(entries, ""):
            raise InvalidParameter(setting, "is still to be decided", f"Replace every {UNDECIDED}.") from None
        raise


def _undecided(entries: Any, path: str) -> Iterator[str]:
    """Where `deniable init` has left a decision to a person."""
    if isinstance(entries, dict):
        for name, value in entries.items():
            yield from _undecided(value, f"{path}.{name}" if path else str(name))
    elif isinstance(entries, str) and entries.startswith(UNDECIDED):
        yield path


def _read(path: Path) -> str:
    """The text of a file, if it has the size of a specification and can be parsed in linear time."""
    most = LARGEST_TOML if path.suffix == ".toml" else LARGEST_JSON
    with path.open("rb") as file:
        raw = file.read(most + 1)
    if len(raw) > most:
        repair = "Check the path: a specification holds no data. Put long lists of categories into JSON."
        raise InvalidParameter(f"file {path.name!r}", f"is larger than {most // 2**20} MiB", repair)
    text = raw.decode("utf-8")
    if path.suffix == ".toml" and _LONG_KEY.search(text):
        raise InvalidParameter(f"file {path.name!r}", f"has a key of over {LONGEST_KEY} parts", "Three are enough.")
    return text


def write_file(path: str | Path, entries: Mapping[str, Any]) -> None:
    """Write the entries of a specification as TOML or JSON, by the file's ending."""
    path = _named(path)
    text = to_toml(entries) if path.suffix == ".toml" else canonical_json(entries) + "\n"
    with writing(f"file {path.name!r}", "Nothing was drawn or spent"):
        path.write_text(text, encoding="utf-8")


def _named(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix not in (".toml", ".json"):
        raise InvalidParameter(f"file {path.name!r}", "ends neither in .toml nor in .json", "Name it by its format.")
    return path


SCALARS = ("deniable", "name", "epsilon", "design", "fanout", "oracle", "coins", "ids")


def to_toml(entries: Mapping[str, Any]) -> str:
    """The entries of a specification as TOML, laid out to be read and edited."""
    lines = [f"{name} = {_toml(entries[name])}" for name in SCALARS if entries.get(name) is not None]
    if entries["shares"]:
        lines += ["", "[shares]", *(f"{name} = {_toml(share)}" for name, share in entries["shares"].items())]
    if entries.get("owners"):
        lines += ["", "[owners]", *(f"{name} = {_toml(epsilon)}" for name, epsilon in entries["owners"].items())]
    if entries.get("rounds"):
        lines += ["", "[rounds]", *(f"{name} = {_toml(setting)}" for name, setting in entries["rounds"].items())]
    for table in entries["tables"]:
        lines += ["", f"[tables.{table['name']}]"]
        lines += [f"{field} = {_toml(table[field])}" for field in OWNERSHIP if field in table]
        if table["many"] is not None:
            lines += [f"many = {table['many']}", f"tau = {table['tau']}"]
        for attribute in table["attributes"]:
            values = {**attribute, "step": named_span(attribute["step"])} if "step" in attribute else attribute
            fields = ", ".join(f"{name} = {_toml(value)}" for name, value in values.items() if name != "name")
            lines.append(f"attributes.{attribute['name']} = {{ {fields} }}")
    for name, views in entries.get("grids", {}).items():
        for view in views:
            lines += ["", f"[[grids.{name}]]", f"weight = {view['weight']}"]
            for attribute, cut in view["axes"].items():
                ((kind, positions),) = cut.items()
                lines.append(f"axes.{attribute} = {{ {kind} = {_toml(positions)} }}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A value as TOML: integers, floats, truth values, texts and lists are written as in JSON."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_toml(name)} = {_toml(each)}" for name, each in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
