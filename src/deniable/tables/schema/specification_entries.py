"""Specifications as plain entries: the canonical form, or a parsed file. They hold what they must, and nothing else.

An unknown field is refused by name: it was meant to say something.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

from deniable.errors import InvalidParameter
from deniable.limits import MOST_ATTRIBUTES, MOST_TABLES
from deniable.tables.schema.attributes import OWNERSHIP, Attribute, Categorical, Ordinal, Public, Table, Text
from deniable.tables.schema.dates import Dates
from deniable.tables.schema.report_format import USER_COLUMN
from deniable.tables.schema.rounds import Rounds
from deniable.tables.schema.scalars import parsed
from deniable.wording import shortened, shown

SPECIFICATION_FORMAT = 2
"""The version of the canonical form, and with it of reports: those of another version are never read as ours."""
READABLE_FORMATS = (1, SPECIFICATION_FORMAT)
"""Files of version 1 say the same, with all defaults of version 2; their hash is another one."""

RUN_FIELD = "simulation"
"""The field that the `collection.json` of a simulation has in addition."""


KEY_FIELD = "key"
"""The field of a folder's `collection.json` that says what the column of user ids was called; not "uid"."""


def canonical_json(entries: Mapping[str, Any]) -> str:
    """Entries as the one text that is hashed: sorted, without spaces."""
    return json.dumps(entries, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def without_run(entries: Any) -> tuple[Any, bool]:
    """The entries of a specification alone, and whether they stood in the `collection.json` of a simulation."""
    if not isinstance(entries, Mapping) or not {RUN_FIELD, KEY_FIELD} & set(entries):
        return entries, False
    rest = dict(entries)
    if not isinstance(rest.pop(KEY_FIELD, USER_COLUMN), str):
        raise InvalidParameter(KEY_FIELD, "must be a name, or left out", "Restore collection.json as it was written.")
    if RUN_FIELD not in rest:
        return rest, False
    if rest.pop(RUN_FIELD) is not True:
        raise InvalidParameter(RUN_FIELD, "must be true, or left out", "Restore collection.json as it was written.")
    return rest, True


def as_mapping(where: str, entry: Any) -> dict[str, Any]:
    """The fields of an entry of a file."""
    if not isinstance(entry, Mapping):
        raise InvalidParameter(where, "must have named fields", "See the example in the documentation.")
    return dict(entry)


def read_specification(entries: Any) -> tuple[tuple[Table, ...], dict[str, Any]]:
    """The tables of a collection, and its settings by their names."""
    rest = as_mapping("the specification", entries)
    if rest.pop("deniable", SPECIFICATION_FORMAT) not in READABLE_FORMATS:
        raise InvalidParameter(
            "deniable", f"must be {SPECIFICATION_FORMAT}, the version of the format", "Upgrade deniable."
        )
    tables = rest.pop("tables", None)
    if not isinstance(tables, (list, Mapping)):
        raise InvalidParameter("tables", "are missing", "Add a table.")
    if len(tables) > MOST_TABLES:
        raise InvalidParameter("tables", f"are more than {MOST_TABLES:,}", "Divide them into collections.")
    listed = tables if isinstance(tables, list) else list(_named(tables, "table"))
    if rest.get("epsilon") == "inf":
        rest["epsilon"] = math.inf
    allowed = {"epsilon", "design", "fanout", "oracle", "shares", "grids", "name", "coins", "rounds", "owners", "ids"}
    if unknown := sorted(set(rest) - allowed):
        raise InvalidParameter(
            shortened(unknown[0]), "is not a field of a collection", f"Use {', '.join(sorted(allowed))}."
        )
    if isinstance(rest.get("owners"), Mapping):
        rest["owners"] = {name: math.inf if epsilon == "inf" else epsilon for name, epsilon in rest["owners"].items()}
    if rest.get("rounds") is not None:
        rest["rounds"] = Rounds.from_dict(rest["rounds"])
    if "epsilon" not in rest:
        raise InvalidParameter("epsilon", "is missing", "Say how much all of a user's reports may spend.")
    return tuple(_table(entry) for entry in listed), rest


def _named(entries: Mapping[str, Any], what: str) -> Iterator[dict[str, Any]]:
    """Entries of a file that are named by their key."""
    for name, entry in entries.items():
        fields = as_mapping(f"{what} {shown(name)}", entry)
        if "name" in fields:
            raise InvalidParameter(f"{what} {shown(name)}: name", "is given by the key already", "Remove that field.")
        yield {"name": name, **fields}


def _table(entry: Any) -> Table:
    rest = as_mapping("a table", entry)
    name = rest.pop("name", None)
    where = f"table {shown(name)}"
    attributes = rest.pop("attributes", None)
    if not isinstance(attributes, (list, Mapping)):
        raise InvalidParameter(where, "has no attributes", "Add one.")
    if len(attributes) > MOST_ATTRIBUTES:
        raise InvalidParameter(where, f"has more than {MOST_ATTRIBUTES:,} attributes", "Divide it into tables.")
    if isinstance(attributes, Mapping):
        attributes = list(_named(attributes, f"{where}: attribute"))
    if unknown := sorted(set(rest) - {"many", "tau", *OWNERSHIP}):
        repair = "Use many, tau, owner, key and attributes."
        raise InvalidParameter(f"{where}: {shortened(unknown[0])}", "is not a field of a table", repair)
    if any(not isinstance(rest[field], str) for field in OWNERSHIP if rest.get(field) is not None):
        raise InvalidParameter(where, "has an owner or a key that is not a text", "Write names.")
    made: dict[str, Any] = {}
    for listed_entry in attributes:
        fields = as_mapping(f"{where}: attribute", listed_entry)
        attribute = fields.pop("name", None)
        if not isinstance(attribute, str):
            raise InvalidParameter(f"{where}: attribute", "has no name", "Give it one, a text.")
        if attribute in made:
            raise InvalidParameter(f"{where}: attribute {shown(attribute)}", "is named twice", "Rename one of the two.")
        if attribute in ("many", "tau") or rest.get(attribute) is not None:
            raise InvalidParameter(f"{where}: attribute {shown(attribute)}", "is a field of tables", "Rename it.")
        made[attribute] = _attribute(f"{where}: attribute {shown(attribute)}", fields)
    return Table(name, **{key: value for key, value in rest.items() if value is not None}, **made)


def _attribute(where: str, fields: dict[str, Any]) -> Attribute:
    rest = dict(fields)
    kind = rest.pop("kind", None)
    allowed = {
        "dates": {"low", "high", "unit", "outside", "missing"},
        "ordinal": {"low", "high", "step", "summed", "outside", "round", "missing"},
        "categorical": {"values", "map", "other", "missing"},
        "text": {"max_length", "alphabet"},
        "public": set[str](),
    }
    if not isinstance(kind, str) or kind not in allowed:
        raise InvalidParameter(
            f"{where}: kind", "is unknown", 'Use "ordinal", "dates", "categorical", "text" or "public".'
        )
    if unknown := sorted(set(rest) - allowed[kind]):
        known = ", ".join(sorted(allowed[kind])) or "none"
        raise InvalidParameter(
            f"{where}: {shortened(unknown[0])}", f"is not a field of {kind} attributes", f"Its fields: {known}."
        )
    try:
        if kind == "dates":
            return Dates(**rest)
        if kind == "text":
            return Text(**rest)
        if kind == "ordinal":
            return Ordinal(**{field: parsed(value) for field, value in rest.items()})
        return Categorical(rest.pop("values"), **rest) if kind == "categorical" else Public()
    except (TypeError, KeyError):
        raise InvalidParameter(
            where, "lacks a field", "An ordinal or dates have low and high, a categorical values, a text max_length."
        ) from None
    except InvalidParameter as error:
        raise InvalidParameter(f"{where}: {error.name}", error.problem, error.repair) from None
