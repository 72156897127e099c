"""`deniable stream query`: sums and means over windows of a file or a store, each with its own answer or refusal."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.terminal import confidence_option, short, show, table
from deniable.errors import DeniableError, QueryRefused
from deniable.queries.answers.answer_layout import number
from deniable.simulation import NOTE
from deniable.wording import counted, percent

if TYPE_CHECKING:
    from deniable.streams import KeyedReleased, Released, WindowEstimate


@click.command()
@click.argument("path")
@click.argument("windows", nargs=-1, required=True)
@click.option("--mean", "as_mean", is_flag=True, help="Show means instead of sums.")
@confidence_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per window.")
@click.option("--cut", is_flag=True, help="Of the stream cut at θ: add nothing back.")
@click.option("--key", default=None, help="The stream of this key, in a store with keys.")
@click.option("--all-keys", is_flag=True, help="Sums over the streams of all keys, in a store with keys.")
def query(
    path: str,
    windows: tuple[str, ...],
    as_mean: bool,
    confidence: float,
    as_json: bool,
    cut: bool,
    key: str | None,
    all_keys: bool,
) -> None:
    """Sums (or means) over WINDOWS of a released stream.

    The stream is a file, or a store that may be live.
    A window is START:STOP by position, or START..STOP by time. STOP is not part of the window, and either end may be
    left out. *noise* is an exact standard error. *smoothing* estimates how far values inside blocks are off. Answers
    are for the stream as it was: what cutting at θ takes away is estimated and added back, and *cut* is the standard
    error of that, or "unknown". The interval covers all three. With --cut, answers are for the cut stream. k, M, G:
    thousands, millions, billions.

    A window that cannot be answered does not end the others; the exit code is then 2.

    \b
    Example:
      deniable stream query private.parquet 1000:5000 0:1000000
    """
    from deniable.stores import StoredStream, read_release

    if all_keys:
        _over_keys(StoredStream(path).by_key(), windows, confidence, as_json=as_json)
        return
    released = read_release(path) if key is None else StoredStream(path).by_key([key])[key]
    answers = [_answer(released, text, confidence, as_mean=as_mean, cut=cut) for text in windows]
    what = "mean" if as_mean else "sum"
    (_print_lines if as_json else _print_table)(released, windows, answers, what, confidence)
    refused = [answer for answer in answers if isinstance(answer, DeniableError)]
    if refused and len(answers) == 1:
        raise refused[0]
    if refused:
        raise click.exceptions.Exit(refused[0].exit_code)


def _over_keys(streams: KeyedReleased, windows: tuple[str, ...], confidence: float, *, as_json: bool) -> None:
    """Sums over all keys: by position the same window of each, by time whatever each has there."""
    from deniable.streams.released.window_names import window_of

    keys = counted(len(streams.keys), "key")
    made = table(f"sums over {keys}", "window", "sum", f"{percent(confidence)} interval", "noise", folding=0)
    for text in windows:
        own = {}
        for key in streams.keys:
            own[key] = window_of(text, streams[key], clipped=True)[:2]
        answer = streams.sum_of(own, confidence=confidence)
        cells = window_cells(answer)
        made.add_row(text, *cells[:3])
        if as_json:
            low, high = answer.interval
            facts = {"window": text, "keys": len(own), "sum": answer.value, "stderr": answer.stderr}
            click.echo(json.dumps(facts | {"low": low, "high": high}))
    if not as_json:
        show(made)


Answer = tuple[int, int, "WindowEstimate"] | DeniableError
"""A window and its answer, or why there is none."""


def _answer(released: Released, text: str, confidence: float, *, as_mean: bool, cut: bool) -> Answer:
    from deniable.streams.released.window_names import window_of

    try:
        start, stop, note = window_of(text, released)
        if note:
            click.echo(note, err=True)
        ask = released.mean if as_mean else released.sum
        return start, stop, ask(start, stop, confidence=confidence, cut=cut)
    except QueryRefused as refusal:
        return refusal


def window_facts(start: int, stop: int, answer: WindowEstimate, what: str) -> dict[str, Any]:
    """A window and its answer, as JSON."""
    low, high = answer.interval
    facts: dict[str, Any] = {"start": start, "stop": stop, what: answer.value, "stderr": answer.stderr}
    facts |= {"low": low, "high": high, "smoothing": answer.smoothing, "excess": answer.excess}
    return facts | {"cut": answer.cut, "truncation": answer.truncation}


def _print_lines(
    released: Released, windows: tuple[str, ...], answers: list[Answer], what: str, _confidence: float
) -> None:
    for text, answer in zip(windows, answers, strict=True):
        if isinstance(answer, DeniableError):
            if len(answers) > 1:
                click.echo(json.dumps({"window": text, "error": str(answer)}))
            continue
        start, stop, estimate = answer
        if estimate.note:
            click.echo(f"{start}:{stop}: {estimate.note}.", err=True)
        click.echo(json.dumps(window_facts(start, stop, estimate, what)))
    if released.simulation:
        click.echo(NOTE, err=True)


def _print_table(
    released: Released, windows: tuple[str, ...], answers: list[Answer], what: str, confidence: float
) -> None:
    shown = ", ".join(f"{name} = {released.about[name]:g}" for name in ("epsilon", "theta") if name in released.about)
    title = f"{counted(len(released), 'value')}: {shown}"
    made = table(title, "window", what, f"{percent(confidence)} interval", "noise", "smoothing", "cut", folding=0)
    notes = []
    for text, answer in zip(windows, answers, strict=True):
        if isinstance(answer, DeniableError):
            made.add_row(text, *["refused"] * 5)
            notes.append(f"{text}: {answer}")
        else:
            made.add_row(text, *window_cells(answer[2]))
            notes += [f"{text}: {answer[2].note}."] if answer[2].note else []
    if any(not isinstance(answer, DeniableError) for answer in answers) or len(answers) > 1:
        show(made)
        for note in notes:
            click.echo(textwrap.fill(note, 80))
        if released.simulation:
            click.echo(NOTE)


def window_cells(answer: WindowEstimate) -> tuple[str, ...]:
    """The answer, its interval and its errors, as they are shown."""
    low, high = answer.interval
    error = answer.error
    lost = "unknown" if answer.truncation is None else short(answer.cut or answer.truncation)
    interval = f"{number(low, error)} to {number(high, error)}"
    return number(answer.value, error), interval, short(answer.stderr), short(answer.smoothing), lost
