"""Numbers as words have them, for everything that prints."""

from __future__ import annotations


def counted(number: int, what: str) -> str:
    """So many of something.

    >>> counted(1, "report"), counted(2_000, "report"), counted(0, "uneven cell")
    ('1 report', '2,000 reports', '0 uneven cells')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """A share with all its digits: 99.9 % is not 100 %.

    >>> percent(0.95), percent(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * share:.10g}%"
