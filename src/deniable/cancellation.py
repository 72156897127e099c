"""Ends a computation that nobody waits for any more: between two blocks of reports it looks whether it should."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from deniable.errors import Failure

_should_end: ContextVar[Callable[[], bool] | None] = ContextVar("should_end", default=None)


class Ended(Failure):
    """A computation was ended from outside. Nothing was answered."""

    def __init__(self) -> None:
        super().__init__("the question was ended before it was answered. Nothing was computed. Ask again.")


@contextmanager
def ends_when(should_end: Callable[[], bool]) -> Iterator[None]:
    """Computations inside end at the next block once `should_end` says so.

    >>> with ends_when(lambda: True):
    ...     checkpoint()
    Traceback (most recent call last):
        ...
    deniable.cancellation.Ended: the question was ended before it was answered. Nothing was computed. Ask again.
    """
    token = _should_end.set(should_end)
    try:
        yield
    finally:
        _should_end.reset(token)


def checkpoint() -> None:
    """Raise `Ended` if the computation that calls this should end."""
    should_end = _should_end.get()
    if should_end is not None and should_end():
        raise Ended
