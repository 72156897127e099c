"""Why a value has no place in a domain."""

from __future__ import annotations

from deniable.errors import InvalidData

OUTSIDE = "outside the domain"
OFF_GRID = "not on the grid"
MISSING = "missing"
WRONG_TYPE = "of the wrong type"

DROP, CLIP = "drop", "clip"
"""What the rule `outside` may say."""
OWN = "own"
"""What the rule `missing` says for a cell of its own, after all values."""


class Unplaceable(InvalidData):
    """A value outside its domain. The message does not repeat it."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"a value is {reason}", "Clean it before it is reported.")
        self.reason = reason
