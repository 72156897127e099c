"""JSON that has one meaning: read strictly, or not at all. Standard library only."""

from __future__ import annotations

import json
from typing import Any, NoReturn


class BadJson(ValueError):
    """A text that Python would read as JSON and other readers would refuse or read differently."""


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text. A ValueError says what is wrong with it, and repeats at most the name of a key.

    A key that occurs twice in an object is refused: some readers take the first, some the last. NaN and Infinity, which
    JSON does not have, numbers too long to convert, and texts nested too deeply are refused as well.

    >>> read_json('{"epsilon": 1, "epsilon": 600}')
    Traceback (most recent call last):
    deniable.strict_json.BadJson: the key 'epsilon' occurs twice
    """
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError:
        raise BadJson("it is nested too deeply") from None
    except (json.JSONDecodeError, UnicodeDecodeError, BadJson):
        raise
    except ValueError:  # Python refuses to convert numbers of over 4,300 digits
        raise BadJson("it has a number of too many digits") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise BadJson(f"the key {name[:40]!r} occurs twice")
            seen.add(name)
    return entries


def _no_constant(name: str) -> NoReturn:
    raise BadJson(f"{name} is not a number in JSON")
