"""Numbers as words have them: one helper for everything that prints."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "report"), counted(2_000, "report"), counted(0, "uneven cell")
    ('1 report', '2,000 reports', '0 uneven cells')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"
