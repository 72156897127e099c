"""Windows as people write them, and windows that follow one another: by position, or by time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from deniable.errors import InvalidParameter, QueryRefused
from deniable.streams.released.released_stream import Released

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


class NamedWindow(NamedTuple):
    """The first position of a window, the first behind it, and what has to be said about it."""

    start: int
    stop: int
    note: str = ""


def window_of(text: str, released: Released, *, clipped: bool = False) -> NamedWindow:
    """The positions of a window: START:STOP by position, START..STOP by time. Either end may be left out.

    `clipped`: whatever of the window is there, also if that is nothing.

    >>> import deniable as dn
    >>> tops = dn.streams.ToPS(1.0, 100, warmup=2, horizon=64)
    >>> private = tops.push_many(range(40))
    >>> window_of("10:30", tops.released)[:2], window_of(":", tops.released)[:2]
    ((10, 30), (0, 38))
    """
    start, by_time, stop = (part.strip() for part in text.partition(".."))
    if by_time:
        return _by_time(text, start, stop, released, clipped=clipped)
    start, colon, stop = text.partition(":")
    try:
        if not colon:
            raise ValueError
        first, last = int(start or 0), int(stop or len(released))
    except ValueError:
        raise _not_a_window(text) from None
    if clipped:
        first, last = min(first, len(released)), min(last, len(released))
    return NamedWindow(first, last)


def _not_a_window(text: str) -> QueryRefused:
    return QueryRefused(f"{text!r} is not a window", "Use START:STOP by position, or START..STOP by time.")


def _by_time(text: str, start: str, stop: str, released: Released, *, clipped: bool) -> NamedWindow:
    if released.timestamps is None:
        raise QueryRefused("this stream has no timestamps", "Ask by position: START:STOP.")
    oldest, newest = released.timestamps[0], released.timestamps[-1]
    try:
        first, last = released.between(start or oldest, stop or newest)
    except QueryRefused:
        raise _not_a_window(text) from None
    last = last if stop else len(released)
    if clipped:
        return NamedWindow(first, last)
    if first == len(released) or last == 0:
        raise QueryRefused(f"{text!r} holds no published value", f"There are values from {oldest} to {newest}.")
    early = bool(start) and bool(np.asarray(start).astype(released.timestamps.dtype) < oldest)
    note = f"{text} begins before the first value ({oldest}): earlier values are not in it" if early else ""
    return NamedWindow(first, last, note)


class WindowLength(NamedTuple):
    """How long windows are: so many values, or seconds."""

    size: int
    by_time: bool

    @classmethod
    def parse(cls, text: str) -> WindowLength:
        """A number of values, or a time.

        >>> WindowLength.parse("1000"), WindowLength.parse("5m")
        (WindowLength(size=1000, by_time=False), WindowLength(size=300, by_time=True))
        """
        match = re.fullmatch(r"([0-9]{1,18})([smhd]?)", text.strip())
        if match is None or int(match[1]) < 1:
            repair = "Write 1000, 30s, 5m, 1h or 1d."
            raise InvalidParameter("--every", "is neither a number of values nor a time", repair)
        return cls(int(match[1]) * _SECONDS.get(match[2], 1), bool(match[2]))


def complete_windows(released: Released, start: int, length: WindowLength) -> Iterator[tuple[int, int, str]]:
    """Complete windows from a position on: where they begin and end, and their name if they are by time.

    By time they begin at multiples of their length, and one is complete when a later value was published.
    """
    if not length.by_time:
        for first in range(start, len(released) - length.size + 1, length.size):
            yield first, first + length.size, ""
        return
    stamps = released.timestamps
    if stamps is None:
        raise InvalidParameter("--every", "is a time, and this stream has no timestamps", "Give a number of values.")
    seconds = stamps.astype("datetime64[us]").astype(np.int64) // 1_000_000 if stamps.dtype.kind == "M" else stamps
    number = np.asarray(seconds // length.size, dtype=np.int64)
    while start < len(released):
        stop = int(np.searchsorted(number, number[start], side="right"))
        if stop == len(released):
            return  # more may come
        begin = number[start] * length.size
        yield start, stop, str(np.datetime64(int(begin), "s")) if stamps.dtype.kind == "M" else str(begin)
        start = stop
