"""`deniable stream follow` and `doctor`: a store while it is live, and whether all of it is there."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from deniable.cli.stream_output import until_the_reader_leaves
from deniable.cli.stream_query import window_cells, window_facts
from deniable.errors import InvalidData, InvalidParameter, QueryRefused
from deniable.simulation import NOTE

if TYPE_CHECKING:
    from deniable.stores import StoredStream

_VALUES_AT_ONCE = 1 << 16


@click.command()
@click.argument("store")
@click.option("--every", default="1000", show_default=True, help="Values of a window, or a time: 30s, 5m, 1h, 1d.")
@click.option("--from", "start", type=click.IntRange(0), default=None, help="First position. Default: what comes next.")
@click.option("--key", default=None, help="The stream of this key, in a store with keys.")
@click.option("--mean", "as_mean", is_flag=True, help="Show means instead of sums.")
@click.option("--values", is_flag=True, help="Print every published value instead of windows.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per window.")
@click.option("--poll", type=click.FloatRange(0.01), default=0.5, show_default=True, help="Seconds between two looks.")
@click.option("--stop", "stops", is_flag=True, help="Stop where nothing more is published by now.")
def follow(
    store: str,
    every: str,
    start: int | None,
    key: str | None,
    as_mean: bool,
    values: bool,
    as_json: bool,
    poll: float,
    stops: bool,
) -> None:
    """Print the windows of a live STORE as they complete.

    Windows follow one another without gaps. By time they begin at multiples of --every, and a window is complete when a
    later value was published. A note appears as soon as published numbers say that values press against θ, and
    wherever θ was learnt again and is another.

    \b
    Example:
      deniable stream follow meter/ --every 1h --mean
    """
    from deniable.stores import StoredStream

    stream = StoredStream(store)
    if values and key is not None:
        raise InvalidParameter("--values", "prints the values of all keys", "Leave out --key.")
    published = len(stream) if key is None else _published_of(stream, key)
    position = start if start is not None else 0 if stops else published
    if values:
        rows = _values(stream, position)
    else:
        rows = _windows(stream, position, every, key=key, as_mean=as_mean, as_json=as_json)
    with until_the_reader_leaves():
        for text in rows:
            if text is None:
                sys.stdout.flush()
                if stops:
                    break
                time.sleep(poll)
            else:
                sys.stdout.write(text + "\n")
        sys.stdout.flush()
    if stream.settings.simulation:
        click.echo(NOTE, err=True)


def _values(stream: StoredStream, position: int) -> Iterator[str | None]:
    """Every value with its position; None where nothing more is published by now."""
    while True:
        while stream.refresh() > position:
            published = stream.values(position, _VALUES_AT_ONCE)
            for offset, value in enumerate(published.values.tolist()):
                stamp = "" if published.timestamps is None else f" {published.timestamps[offset]}"
                named = "" if published.keys is None else f" {published.keys[offset]}"
                yield f"{published.first + offset}{named}{stamp} {value:.12g}"
            position = published.first + published.values.size
        yield None


def _published_of(stream: StoredStream, key: str) -> int:
    """How many values a key has published by now."""
    try:
        return len(stream.by_key([key])[key])
    except QueryRefused:
        if not stream.keyed:
            raise
        return 0  # it may come


def _theta(stream: StoredStream, position: int) -> float:
    """θ of the epoch that a value lies in."""
    begun = [epoch for epoch in stream.epochs if epoch.begin <= position]
    return float(stream.settings.publisher.grid.value(begun[-1].learnt.theta))


def _windows(
    stream: StoredStream, position: int, every: str, *, key: str | None, as_mean: bool, as_json: bool
) -> Iterator[str | None]:
    """Every window that is complete; None where there is none by now."""
    from deniable.streams.released.window_names import WindowLength, complete_windows

    what = "mean" if as_mean else "sum"
    length = WindowLength.parse(every)
    noted: str | None = None
    theta: float | None = None
    while True:
        stream.refresh()
        if (len(stream) if key is None else _published_of(stream, key)) <= position:
            yield None
            continue
        base = stream.needed_from(position) if key is None else 0
        released = stream.released(position) if key is None else stream.by_key([key])[key]
        for start, stop, name in complete_windows(released, position - base, length):
            answer = (released.mean if as_mean else released.sum)(start, stop)
            before, theta = theta, None if stream.keyed else _theta(stream, start + base)
            if as_json:
                facts = window_facts(start + base, stop + base, answer, what)
                yield json.dumps(
                    facts
                    | ({"from": name} if name else {})
                    | ({} if theta is None else {"theta": theta})
                    | ({"note": answer.note} if answer.note else {})
                )
            else:
                if None not in (before, theta) and before != theta:
                    yield f"  note: θ was learnt again: {theta:g} instead of {before:g}"
                cells = window_cells(answer)
                yield f"{name or f'{start + base}:{stop + base}'}  {what} {cells[0]}  ({cells[1]})"
                if answer.note and answer.note != noted:
                    yield f"  note: {answer.note}"
            noted = answer.note
            position = stop + base
        yield None


@click.command()
@click.argument("store")
def doctor(store: str) -> None:
    """Check a STORE, and change nothing.

    Looks at its settings, every segment, who can read its private part, and its log.

    \b
    Example:
      deniable stream doctor meter/
    """
    from deniable.stores import check_store

    ill = 0
    for finding in check_store(store):
        click.echo(f"{'ok  ' if finding.well else 'BAD '} {finding.piece}: {finding.text}")
        ill += not finding.well
    if ill:
        raise InvalidData("the store is not well", "Restore what is damaged from a copy.", cost="Nothing was written")
