"""Specifications in files: TOML for people, JSON for programs."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from deniable.disk_faults import writing
from deniable.errors import InvalidParameter
from deniable.limits import LARGEST_JSON, LARGEST_TOML, LONGEST_KEY
from deniable.strict_json import BadJson, read_json
from deniable.tables.specification.collection import Collection
from deniable.tables.specification.runs import read_run

_PART = r"""(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+"""
_LONG_KEY = re.compile(rf"(?:^|[\[{{,])[ \t]*+(?:{_PART}){{{LONGEST_KEY}}}", re.MULTILINE)


def load(path: str | Path) -> Collection:
    """A collection from a TOML or JSON file."""
    return load_run(path)[0]


def load_run(path: str | Path) -> tuple[Collection, bool]:
    """A collection from a file, and whether the file is the `collection.json` of a simulation."""
    path = _named(path)
    try:
        text = _read(path)
    except UnicodeDecodeError:
        raise InvalidParameter(f"file {path.name!r}", "is not UTF-8 text", "Save it as UTF-8.") from None
    except (OSError, ValueError) as error:  # a path may hold what no file system takes
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise InvalidParameter(f"file {path.name!r}", f"cannot be read ({reason.lower()})", "Check the path.") from None
    try:
        return read_run(tomllib.loads(text) if path.suffix == ".toml" else read_json(text))
    except (tomllib.TOMLDecodeError, json.JSONDecodeError, BadJson) as error:
        raise InvalidParameter(f"file {path.name!r}", f"is not well-formed: {error}", "Mend that place.") from None
    except RecursionError:
        raise InvalidParameter(f"file {path.name!r}", "is nested too deeply", "Three levels are enough.") from None
    except ValueError:  # Python converts no number of over 4,300 digits
        raise InvalidParameter(f"file {path.name!r}", "has a number of too many digits", "Shorten it.") from None


def _read(path: Path) -> str:
    """A file's text, if it is of a size that a specification may have, and in a form that is parsed in linear time."""
    most = LARGEST_TOML if path.suffix == ".toml" else LARGEST_JSON
    with path.open("rb") as file:
        raw = file.read(most + 1)
    if len(raw) > most:
        repair = "Check the path: there is no data in a specification. Long lists of categories go into JSON."
        raise InvalidParameter(f"file {path.name!r}", f"is larger than {most // 2**20} MiB", repair)
    text = raw.decode("utf-8")
    if path.suffix == ".toml" and _LONG_KEY.search(text):
        raise InvalidParameter(f"file {path.name!r}", f"has a key of over {LONGEST_KEY} parts", "Three are enough.")
    return text


def save(collection: Collection, path: str | Path) -> None:
    """Write a specification as TOML or JSON, by the ending."""
    path = _named(path)
    text = to_toml(collection) if path.suffix == ".toml" else collection.to_json() + "\n"
    with writing(f"file {path.name!r}", "Nothing was drawn or spent"):
        path.write_text(text, encoding="utf-8")


def _named(path: str | Path) -> Path:
    path = Path(path)
    if path.suffix not in (".toml", ".json"):
        raise InvalidParameter(f"file {path.name!r}", "ends neither in .toml nor in .json", "Name it by its format.")
    return path


def to_toml(collection: Collection) -> str:
    """A specification as TOML, laid out to be read and edited."""
    entries = collection.to_dict()
    lines = [f"{name} = {_toml(entries[name])}" for name in ("deniable", "epsilon", "design", "fanout", "oracle")]
    if entries["shares"]:
        lines += ["", "[shares]", *(f"{name} = {_toml(share)}" for name, share in entries["shares"].items())]
    for table in entries["tables"]:
        lines += ["", f"[tables.{table['name']}]"]
        if table["many"] is not None:
            lines += [f"many = {table['many']}", f"tau = {table['tau']}"]
        for attribute in table["attributes"]:
            fields = ", ".join(f"{name} = {_toml(value)}" for name, value in attribute.items() if name != "name")
            lines.append(f"attributes.{attribute['name']} = {{ {fields} }}")
    for name, views in entries.get("grids", {}).items():
        for view in views:
            lines += ["", f"[[grids.{name}]]", f"weight = {view['weight']}"]
            for attribute, ((kind, places),) in ((one, cut.items()) for one, cut in view["axes"].items()):
                lines.append(f"axes.{attribute} = {{ {kind} = {_toml(places)} }}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """Integers, floats, truth values, texts and lists are written alike in JSON and TOML."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
