"""What a benchmark does about targets that were missed."""

from __future__ import annotations

from deniable.errors import Failure


def fail_where_missed(missed: list[str]) -> None:
    """Exit with 1 where a target was missed; the figures have been printed."""
    if missed:
        raise Failure(f"targets missed: {'; '.join(missed)}. The figures are above.")
