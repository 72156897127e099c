"""Names and texts of a specification, and how far off its grid a float may lie."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from deniable.errors import InvalidParameter
from deniable.limits import LONGEST_NAME
from deniable.wording import shown

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def grid_slack(spacing: float, step: float) -> float:
    """How far off its grid point a float may lie, in steps: a millionth, or what its own precision costs."""
    return min(max(1e-6, 2 * spacing / step), 0.25)


def is_text(value: str) -> bool:
    """Whether a text has no unpaired surrogate."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def repeated(names: Iterable[str]) -> set[str]:
    """The names that occur more than once if case does not count."""
    listed = list(names)
    counts = Counter(name.casefold() for name in listed)
    return {name for name in listed if counts[name.casefold()] > 1}


def check_name(what: str, name: str) -> None:
    """Refuse a name that is not an identifier of plain letters."""
    if isinstance(name, str) and len(name) > LONGEST_NAME:
        raise InvalidParameter(f"{what} name {shown(name)}", f"is longer than {LONGEST_NAME} characters", "Shorten it.")
    if not isinstance(name, str) or not _NAME.match(name):
        raise InvalidParameter(
            f"{what} name {shown(name)}", "must be letters, digits and _, and must not start with a digit", "Rename it."
        )
