"""Numbers and names as text, for everything that prints."""

from __future__ import annotations

from collections.abc import Iterable


def counted(number: int, what: str) -> str:
    """A count with its noun.

    >>> counted(1, "report"), counted(2_000, "report"), counted(0, "uneven cell")
    ('1 report', '2,000 reports', '0 uneven cells')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def percent(share: float) -> str:
    """A share with all its digits: 99.9 % does not become 100 %.

    >>> percent(0.95), percent(0.999)
    ('95%', '99.9%')
    """
    return f"{100 * share:.10g}%"


def shortened(name: object, length: int = 80) -> str:
    """A name for a message; a long one is cut.

    >>> shortened("fanout"), shortened("x" * 1_000_000, 10)
    ('fanout', 'xxxxxxxxxx…')
    """
    text = str(name)
    return text if len(text) <= length else f"{text[:length]}…"


def shown(name: object, length: int = 80) -> str:
    """A name in quotes, for a message; a long one is cut.

    >>> shown("users.csv"), shown("x" * 1_000_000, 10)
    ("'users.csv'", "'xxxxxxxxxx…'")
    """
    return repr(shortened(name, length))


def listed(names: Iterable[str], most: int = 10) -> str:
    """Names that may be used instead; of many, the first ones.

    >>> listed(["age", "sex"]), listed(map(str, range(1_000)), 3)
    ('age, sex', '0, 1, 2, … (1,000 in all)')
    """
    known = list(names)
    return ", ".join(known) if len(known) <= most else f"{', '.join(known[:most])}, … ({len(known):,} in all)"
