"""`deniable stream`: publish, query, plot and forecast private streams."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.terminal import show, table
from deniable.errors import InvalidData, InvalidParameter, QueryRefused
from deniable.queries.result import number

if TYPE_CHECKING:
    from deniable.engines.stream_files import Batch
    from deniable.streams import Publisher

METHODS = ("tops", "pak", "nme", "hc16", "flat")
SECONDS_BETWEEN_REPORTS = 1.0


@click.group()
def stream() -> None:
    """Publish a stream of numbers with differential privacy, and ask about windows of it."""


@stream.command()
@click.argument("source", metavar="INPUT")
@click.option("-o", "--output", default="-", show_default=True, help="A .parquet file, or - for one number per line.")
@click.option("--epsilon", type=float, required=True, help="Privacy of one value against another.")
@click.option("--bound", type=float, required=True, help="Public upper bound of values; above it they count as it.")
@click.option("--low", type=float, default=0, show_default=True, help="Public lower bound.")
@click.option("--resolution", type=float, default=1, show_default=True, help="Step of the grid of values.")
@click.option("--column", default="value", show_default=True, help="Column of the values.")
@click.option("--time-column", default=None, help="Column of timestamps, published as they are.")
@click.option("--warmup", type=int, default=1 << 16, show_default=True, help="Values that are never published.")
@click.option("--horizon", type=int, default=1 << 20, show_default=True, help="Values of a chunk: the longest windows.")
@click.option("--block", type=int, default=None, help="Values of a block; chosen by predicted error if left out.")
@click.option("--drift", type=float, default=None, help="How much a block's mean moves, share of θ; else 0.005.")
@click.option("--theta", type=float, default=None, help="A public threshold, instead of a private choice.")
@click.option("--method", type=click.Choice(METHODS), default="tops", show_default=True)
@click.option("--paper", is_flag=True, help="ToPS with the paper's threshold and blocks.")
@click.option("--state", type=click.Path(dir_okay=False), default=None, help="Private file to go on from and leave.")
@click.option("--json-lines", is_flag=True, help="A pipe brings JSON objects instead of numbers.")
@click.pass_context
def publish(context: click.Context, /, **_: Any) -> None:
    """Publish the numbers of INPUT: a .parquet, .csv or .jsonl file, text with a number per line, or - for a pipe.

    From a pipe every line is answered as soon as it has come, after the warm-up. With --state a stream goes on where
    the last run ended, with the same settings; without it, a file's last block is closed at the end.

    \b
    Example:
      deniable stream publish --epsilon 0.05 --bound 1638 in.csv -o out.parquet
    """
    _Run(context.params).go()


class _Run:
    """One run of `stream publish`."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.started = self.reported = time.monotonic()
        self.taken = self.published = 0
        self.newest: Any = None  # timestamp
        self.leaving = False  # a batch is on its way, and it is not certain that it arrived

    def go(self) -> None:
        from deniable.engines.stream_files import ParquetOutput
        from deniable.engines.stream_state import Journal, StateFile

        output = self.options["output"]
        if output != "-" and not output.endswith(".parquet"):
            raise InvalidParameter("--output", "must be a .parquet file or -", "Name it so.")
        state = self.options["state"]
        file = None if state is None else StateFile(state)
        self.publisher = self._publisher(None if file is None else file.record)
        self.first = self.publisher.published
        self.journal = None if file is None else Journal(file, self.publisher)
        self.parquet = None if output == "-" else ParquetOutput(output)
        if self.journal is not None and self.journal.replaying:
            click.echo(
                f"the last run was interrupted: its last {self.journal.replaying:,} values must come again", err=True
            )
        try:
            for batch in self._batches():
                self._publish(batch)
                self._report()
        except BrokenPipeError:
            with suppress(OSError):
                sys.stdout.close()
        finally:
            self._finish()

    def _publisher(self, record: dict[str, Any] | None) -> Publisher:
        from deniable.streams import Expectation, PublicThreshold, restore
        from deniable.streams.publishers import BY_KIND

        chosen = self.options
        settings: dict[str, Any] = {"warmup": chosen["warmup"], "horizon": chosen["horizon"]}
        settings |= {"low": _whole(chosen["low"]), "resolution": _whole(chosen["resolution"])}
        if chosen["block"] is not None:
            settings["block"] = chosen["block"]
        if chosen["theta"] is not None:
            settings["threshold"] = PublicThreshold(chosen["theta"])
        if chosen["paper"]:
            if chosen["method"] != "tops":
                raise InvalidParameter("--paper", "is a setting of ToPS", "Leave out --method.")
            settings["paper"] = True
        if chosen["drift"] is not None:
            if chosen["method"] != "tops" or chosen["paper"]:
                raise InvalidParameter("--drift", "is a setting of ToPS", "Leave out --method and --paper.")
            settings["expectation"] = Expectation(drift=chosen["drift"])
        kind: Any = BY_KIND[chosen["method"]]
        made: Publisher = kind(chosen["epsilon"], _whole(chosen["bound"]), **settings)
        # Sums of blocks tell the whole stream; single values would fill the memory of an endless run.
        if made.plan.block < 64:
            made.forget()
        if record is None:
            return made
        restored = restore(record["state"])
        if restored.settings != made.settings:
            raise InvalidParameter("the settings", "are not those of the state file", "Give the same, or a new file.")
        return restored

    def _batches(self) -> Iterator[Batch]:
        from deniable.engines.stream_files import read_batches, read_lines

        source, column, times = (self.options[name] for name in ("source", "column", "time_column"))
        if source != "-":
            return read_batches(source, column, times)
        named = column if self.options["json_lines"] else None
        return read_lines(sys.stdin.buffer, column=named, time_column=times if named else None)

    def _publish(self, batch: Batch) -> None:
        """One batch; if a value of it is refused, everything before that value, and then the refusal with its place."""
        good, reason = batch.values.size, ""
        try:
            self.publisher.check(batch.values)
        except InvalidData as refusal:
            good, reason = _first_refused(self.publisher, batch.values), str(refusal).split(". ")[0]
        if batch.timestamps is not None:
            ordered = _first_back(batch.timestamps, self.newest)
            if ordered < good:
                good, reason = ordered, "its timestamp goes back"
        self._emit(batch, good)
        if reason:
            name = "line" if self.options["source"] == "-" else "row"
            raise InvalidData(
                f"{name} {batch.first + good:,} was refused: {reason}",
                "All values before it were taken. Repair it and go on from there.",
            )
        if batch.timestamps is not None:
            self.newest = batch.timestamps[-1]

    def _emit(self, batch: Batch, count: int) -> None:
        values = batch.values[:count]
        if not count:
            return
        self.leaving = True
        released = (self.journal or self.publisher).push_many(values)
        self.taken += count
        self.published += released.size
        if self.parquet is not None:
            times = None if batch.timestamps is None else batch.timestamps[count - released.size : count]
            self.parquet.write(released, times)
        elif released.size:
            lines = "\n".join(map(_shown, released.tolist()))
            sys.stdout.write(lines + "\n")
            sys.stdout.flush()
        self.leaving = False

    def _finish(self) -> None:
        correction = 0.0
        if self.journal is not None and self.leaving:
            self.journal.abandon()
        elif self.journal is not None:
            self.journal.close()
        elif self.parquet is not None and not self.publisher.warming_up:
            correction = self.publisher.flush()
        if self.parquet is not None:
            self.parquet.close(self._metadata(), correction)
        self._report(last=True)

    def _metadata(self) -> dict[bytes, bytes]:
        import numpy as np

        if self.publisher.warming_up:
            return {}
        return self.publisher.release_of(np.zeros(0, dtype=np.int64), first=self.first).metadata()

    def _report(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if not last and now - self.reported < SECONDS_BETWEEN_REPORTS:
            return
        self.reported = now
        rate = self.taken / max(now - self.started, 1e-9)
        text = f"{self.taken:,} values taken, {self.published:,} published, {rate:,.0f} per second"
        learnt = self.publisher.learnt
        if learnt is None:
            left = self.publisher.settings.warmup - self.publisher.consumed
            text += f"; warming up, {left:,} more values are needed"
        elif last:
            text += (
                f"; ε = {self.publisher.settings.epsilon:g}, θ = {self.publisher.settings.grid.value(learnt.theta):g}"
            )
        click.echo(text, err=True)


def _first_refused(publisher: Publisher, values: Any) -> int:
    """How many values from the start on are fine, by halving."""
    good, bad = 0, len(values)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            publisher.check(values[good:middle].tolist())
            good = middle
        except InvalidData:
            bad = middle
    return good


def _first_back(timestamps: Any, newest: Any) -> int:
    """How many timestamps from the start on do not go back."""
    if newest is not None and timestamps[0] < newest:
        return 0
    back = (timestamps[1:] < timestamps[:-1]).nonzero()[0]
    return int(back[0]) + 1 if back.size else len(timestamps)


def _whole(number: float) -> float:
    return int(number) if number == int(number) else number


def _shown(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.12g}"


@stream.command()
@click.argument("path", type=click.Path(dir_okay=False))
@click.argument("windows", nargs=-1, required=True)
@click.option("--mean", "as_mean", is_flag=True, help="Means instead of sums.")
@click.option("--confidence", type=click.FloatRange(0.5, 0.9999), default=0.95, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object per window.")
def query(path: str, windows: tuple[str, ...], as_mean: bool, confidence: float, as_json: bool) -> None:
    """Sums (or means) over WINDOWS of a released stream: START:STOP by position, START..STOP by time.

    Stop is not part of a window; either end may be left out. *noise* is a standard error, and exact. *smoothing* is an
    estimate of how far predictions inside blocks are off; the interval counts both. *cut* is at most what cutting
    values at θ may have taken away, which the interval does not count. k, M, G: thousands, millions, billions.

    \b
    Example:
      deniable stream query private.parquet 1000:5000 0:1000000
    """
    from deniable.streams import Released

    released = Released.load(path)
    places = [_window(text, released) for text in windows]
    answers = [(released.mean if as_mean else released.sum)(*place, confidence=confidence) for place in places]
    if as_json:
        for (start, stop), answer in zip(places, answers, strict=True):
            low, high = answer.interval
            facts: dict[str, float | None] = {
                "start": start,
                "stop": stop,
                "mean" if as_mean else "sum": answer.value,
                "stderr": answer.stderr,
            }
            facts |= {"low": low, "high": high, "smoothing": answer.smoothing, "truncation": answer.truncation}
            click.echo(json.dumps(facts))
        return
    what = "mean" if as_mean else "sum"
    shown = ", ".join(f"{name} = {released.about[name]:g}" for name in ("epsilon", "theta") if name in released.about)
    title = f"{len(released):,} values: {shown}"
    made = table(title, "window", what, f"{confidence:.0%} interval", "noise", "smoothing", "cut")
    for text, answer in zip(windows, answers, strict=True):
        low, high = answer.interval
        error = math.hypot(answer.stderr, answer.smoothing)
        cut = "unknown" if answer.truncation is None else _short(answer.truncation)
        interval = f"{number(low, error)} to {number(high, error)}"
        made.add_row(text, number(answer.value, error), interval, _short(answer.stderr), _short(answer.smoothing), cut)
    show(made)


def _short(size: float) -> str:
    """The size of an error in at most six characters, below 10^12."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= 0.9995 * unit:
            return f"{size / unit:.3g}{letter}"
    return f"{size:.3g}"


def _window(text: str, released: Any) -> tuple[int, int]:
    refusal = QueryRefused(f"{text!r} is no window", "Use START:STOP by position, or START..STOP by time.")
    start, by_time, stop = text.partition("..")
    if by_time:
        if released.timestamps is None:
            raise QueryRefused("this stream has no timestamps", "Ask by position: START:STOP.")
        try:
            first, last = released.between(start or released.timestamps[0], stop or released.timestamps[-1])
        except ValueError:
            raise refusal from None
        return first, last if stop else len(released)
    start, colon, stop = text.partition(":")
    try:
        if not colon:
            raise refusal
        return int(start or 0), int(stop or len(released))
    except ValueError:
        raise refusal from None


@stream.command()
@click.argument("path", type=click.Path(dir_okay=False))
@click.option("-o", "--output", required=True, help="A .png, .svg or .pdf file.")
@click.option("--window", type=int, default=None, help="Values per point; whole blocks, about 200 points, if left out.")
@click.option("--truth", default=None, help="The file that was published, to compare: shows what privacy hides.")
@click.option("--column", default="value", show_default=True, help="Column of the truth.")
def plot(path: str, output: str, window: int | None, truth: str | None, column: str) -> None:
    """Draw the mean of consecutive windows of a released stream with its 95 % interval.

    \b
    Example:
      deniable stream plot private.parquet -o stream.png --window 1440
    """
    from deniable.engines.figures import check_ending, require_plotting
    from deniable.engines.stream_plot import draw, read_truth
    from deniable.streams import Released

    check_ending(output)
    require_plotting()
    draw(Released.load(path), output, window=window, truth=None if truth is None else read_truth(truth, column))
    click.echo(f"wrote {output}", err=True)


@stream.command()
@click.option("--epsilon", type=float, required=True)
@click.option("--bound", type=float, required=True, help="Public upper bound of values.")
@click.option("--horizon", type=int, default=1 << 20, show_default=True)
@click.option("--theta", type=float, default=None, help="Threshold to assume; the bound if left out.")
@click.option("--block", type=int, default=None, help="Values of a block; chosen by predicted error if left out.")
@click.option("--drift", type=float, default=0.005, show_default=True, help="Change of a block's mean, share of θ.")
@click.option("--spread", type=float, default=0.1, show_default=True, help="Deviation of single values, share of θ.")
def forecast(
    epsilon: float, bound: float, horizon: int, theta: float | None, block: int | None, drift: float, spread: float
) -> None:
    """The error to expect by window length, before anything is published. Reads no data and spends nothing.

    Errors are proportional to θ. Shown are standard errors of window sums, and what they are per value.

    \b
    Example:
      deniable stream forecast --epsilon 0.05 --bound 1638 --theta 60
    """
    from deniable.streams import Expectation, choose_plan
    from deniable.streams import forecast as predict

    expected = Expectation(drift, spread)
    plan = choose_plan(epsilon, horizon, expectation=expected, block=block)
    cut = bound if theta is None else theta
    lengths = [length for length in (1, 60, 1440, 65_536, horizon // 2, horizon) if length <= horizon]
    made = table(
        "Standard error of window sums",
        "window",
        "noise",
        "smoothing",
        "both",
        "per value",
        numbers_from=0,
    )
    for row in predict(plan, epsilon, cut, sorted(set(lengths)), expected):
        numbers = (row.noise, row.smoothing, row.total, row.total / row.length)
        made.add_row(f"{row.length:,}", *(f"{one:,.4g}" for one in numbers))
    show(made)
    click.echo(
        f"ε = {epsilon:g}, θ = {cut:g}, chunks of {plan.horizon:,}, blocks of {plan.block:,}, fan-out {plan.fanout}."
    )
