"""JSON that means one thing: read strictly, or not at all. Standard library only."""

from __future__ import annotations

import json
from typing import Any, NoReturn


class BadJson(ValueError):
    """A text that Python would read as JSON, and others would not, or not alike."""


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text. A ValueError says what is wrong with it, and repeats no more than the name of a key.

    A key that stands twice in one object is refused: other readers take the first one, or the last. So are NaN and
    Infinity, which JSON does not have, numbers too long to convert, and texts that are nested too deeply.

    >>> read_json('{"epsilon": 1, "epsilon": 600}')
    Traceback (most recent call last):
    deniable.strict_json.BadJson: the key 'epsilon' stands twice
    """
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError:
        raise BadJson("it is nested too deeply") from None
    except (json.JSONDecodeError, UnicodeDecodeError, BadJson):
        raise
    except ValueError:  # Python converts no number of over 4,300 digits
        raise BadJson("it has a number of too many digits") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise BadJson(f"the key {name[:40]!r} stands twice")
            seen.add(name)
    return entries


def _no_constant(name: str) -> NoReturn:
    raise BadJson(f"{name} is not a number of JSON")
