"""Errors while a file is written (a full disk, a missing permission) as a `Failure`. Standard library only."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from deniable.errors import Failure


@contextmanager
def writing(what: str, cost: str = "Nothing more was done") -> Iterator[None]:
    """Write `what`. If the disk is full, the path unusable or a permission missing, say so, and what it cost.

    >>> try:
    ...     with writing("the report 'a'", "No report was written"):
    ...         open("/nowhere/a", "w")
    ... except Failure as problem:
    ...     print(str(problem).split(". Check")[0])
    the report 'a' cannot be written (no such file or directory). No report was written
    """
    try:
        yield
    except OSError as problem:
        if problem.errno is None:  # Arrow raises this for what it cannot read
            raise
        raise unwritable(what, problem, cost) from None


def unwritable(what: str, problem: OSError, cost: str) -> Failure:
    """The failure of a file that cannot be written."""
    reason = "unknown" if problem.errno is None else os.strerror(problem.errno).lower()
    return Failure(
        f"{what} cannot be written ({reason}). {cost}. Check that its folder exists, has room, and may be written to."
    )
