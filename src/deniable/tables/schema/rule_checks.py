"""Rules of a specification for values without a place, checked as they are written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from deniable.errors import BadInput, InvalidParameter
from deniable.limits import LONGEST_CATEGORY, MOST_CATEGORIES
from deniable.tables.schema.names import is_text
from deniable.tables.schema.placing import OWN
from deniable.tables.schema.scalars import as_scalar


class _Domain(Protocol):
    @property
    def low(self) -> Any: ...
    @property
    def high(self) -> Any: ...
    def encode(self, value: Any) -> int: ...
    def decode(self, code: int) -> Any: ...


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a rule that is none of some words."""
    if value not in choices:
        words = " or ".join(f'"{choice}"' for choice in choices)
        raise InvalidParameter(name, "is unknown", f"Use {words}.")


def checked_replacement(domain: _Domain, missing: Any) -> Any:
    """The value that stands for what is missing; one without a place of its own is refused."""
    value = as_scalar("missing", missing)
    try:
        inside = domain.low <= value <= domain.high and domain.decode(domain.encode(value)) == value
    except (BadInput, TypeError):
        inside = False
    if not inside:
        raise InvalidParameter("missing", "is not in the domain", 'Use a value of the domain, or "own".')
    return value


def checked_category_rules(values: Sequence[Any], rules: Mapping[str, Any]) -> dict[str, Any]:
    """The rules of a list of values: map, other and missing, each with its default."""
    if unknown := sorted(set(rules) - {"map", "other", "missing"}):
        raise InvalidParameter(unknown[0], "is not a rule of a list", "Use map, other or missing.")
    _check_map(values, rules.get("map") or {})
    for name in ("other", "missing"):
        value = rules.get(name)
        if name == "missing" and value == OWN:
            continue
        if value is not None and (type(value) is not type(values[0]) or value not in values):
            raise InvalidParameter(name, "is not in the list of values", "Add it to the list.")
    return {"map": dict(rules.get("map") or {}), "other": rules.get("other"), "missing": rules.get("missing")}


def _check_map(values: Sequence[Any], mapping: Any) -> None:
    """Refuse a map that does not lead from texts to values of a list of texts."""
    if not isinstance(mapping, Mapping) or len(mapping) > MOST_CATEGORIES:
        raise InvalidParameter("map", "must name texts and their values", 'Write map = { "M" = "male" }.')
    if mapping and not isinstance(values[0], str):
        raise InvalidParameter("map", "is for lists of texts", "Leave it out.")
    for text, value in mapping.items():
        if not isinstance(text, str) or len(text) > LONGEST_CATEGORY or not is_text(text):
            raise InvalidParameter("map", "must name texts", 'Write map = { "M" = "male" }.')
        if value not in values or text in values:
            raise InvalidParameter("map", "must lead from other texts to values of the list", "Correct it.")
