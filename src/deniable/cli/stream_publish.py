"""`deniable stream publish`: numbers from a file or a pipe through a publisher, with a state to go on from."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.ledger import opened
from deniable.cli.stream_output import Interrupts, parquet_output, until_the_reader_leaves
from deniable.cli.stream_settings import one_stream, settings_options, stream_per_key
from deniable.errors import InvalidParameter
from deniable.simulation import NOTE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deniable.stores import Batch, BatchPublisher
    from deniable.streams import KeyedPublisher, PersonStream, Publisher

SECONDS_BETWEEN_REPORTS = 1.0


@click.command()
@click.argument("source", metavar="INPUT")
@click.option("-o", "--output", default=None, help="A .parquet file, or - for one number per line (default).")
@click.option(
    "--store", type=click.Path(file_okay=False), default=None, help="Folder of a stream that survives crashes."
)
@click.option("--column", default="value", show_default=True, help="Column of the values.")
@click.option("--time-column", default=None, help="Column of timestamps, published as they are.")
@click.option("--person-column", default=None, help="Column of people's ids: ε then protects people. Needs --most.")
@click.option("--most", type=click.IntRange(1), default=None, help="Values of each person that count per epoch.")
@click.option("--epoch", type=click.IntRange(1), default=None, help="Events of an epoch. Default: --horizon.")
@click.option("--window", type=click.IntRange(1), default=1, show_default=True, help="Epochs that one ε covers.")
@click.option("--key", default=None, help="Column of keys: one stream per key, in a --store. Needs --public-keys.")
@click.option("--position-column", default=None, help="Column of positions: replays are skipped, gaps refused.")
@click.option("--skip-published", is_flag=True, help="INPUT begins at the start of the stream: skip what --store has.")
@click.option("--json-lines", is_flag=True, help="Read JSON objects from a pipe instead of numbers.")
@settings_options
@click.pass_context
def publish(context: click.Context, /, **_: Any) -> None:
    """Publish the numbers of a file or a pipe, each as it arrives.

    INPUT is a .parquet, .csv or .jsonl file, text with one number per line, or - for a pipe. After the warm-up, every
    line of a pipe is answered as soon as it arrives.

    With --store, INPUT may be a topic of a broker, mqtt://HOST/TOPIC or kafka://HOST/TOPIC. A message is a number, or
    with --json-lines a JSON object; with --key topic its topic is its key.

    With --store, a stream lives in a folder: it goes on where the last run ended, whatever ended it, and `query`,
    `plot` and `follow` read the folder meanwhile. To go on, --store and INPUT are enough. Values are printed only with
    -o -. Without a store, the last block of a file is closed at the end.

    With --on-bad, a value that is missing, infinite or below --low does not end the stream: skip leaves it out, zero
    takes 0 for it, clip the nearest allowed value. That is decided before the first value, and published.

    With --key, every key has a stream of its own, and ε protects one value whatever its key. Which keys there are, and
    how many values each has, is seen by everybody, so --public-keys has to say that this is public. θ is --theta, or is
    learnt from the first --warmup values of all keys.

    With --person-column, ε protects everything a person does within --window epochs. Of each person, --most values
    count per epoch; others are replaced.

    \b
    Example:
      deniable stream publish --epsilon 0.05 --bound 1638 in.csv -o out.parquet
    """
    _publish(context.params)


def _publish(options: dict[str, Any]) -> None:
    """Publish everything that comes, and leave a file or a store."""
    from deniable.stores.sources.batch import Unreadable

    output = options["output"] or "-"
    if options["store"] is not None and output != "-":
        raise InvalidParameter("--output", "and --store exclude each other", "A store is read as it is.")
    with parquet_output(output) as parquet:
        run = _run(options)
        progress = Progress(run, writes_file=parquet is not None)
        interrupts = Interrupts()
        silent = options["store"] is not None and options["output"] is None
        deliver = _ignore if silent else _print if parquet is None else parquet.write
        try:
            with interrupts, until_the_reader_leaves():
                for batch in _batches(options, run):
                    with interrupts.held():
                        run.publish(batch, deliver)
                    progress.show()
        except Unreadable as refusal:
            raise run.advised(refusal) from None
        finally:
            correction = run.close()
            if parquet is not None and run.published:
                parquet.close(_metadata(run), correction)
            progress.show(last=True)


def _run(options: dict[str, Any]) -> BatchPublisher:
    """The publisher of this run: one that goes on with a store, if there is any."""
    from deniable.stores import BatchPublisher, DurablePublisher, StoredStream

    if (store := options["store"]) is None:
        if options["skip_published"]:
            raise InvalidParameter("--skip-published", "needs a store", "Give --store.")
        if options["key"] is not None:
            raise InvalidParameter("--key", "needs a store", "Give --store.")
        return BatchPublisher(one_stream(options), ledger=opened(options["ledger"]), on_bad=options["on_bad"] or "stop")
    goes_on = (Path(store) / "settings.json").exists()
    if goes_on and options["key"] is None and StoredStream(store).keyed:
        raise InvalidParameter("--key", "is missing, and the store has one stream per key", "Name the column of keys.")
    publisher: Publisher | PersonStream | KeyedPublisher | None = None
    if not goes_on or options["epsilon"] is not None or options["bound"] is not None:
        publisher = one_stream(options) if options["key"] is None else stream_per_key(options)
    run = DurablePublisher(store, publisher, ledger=opened(options["ledger"]), on_bad=options["on_bad"])
    if run.total:
        click.echo(f"the stream goes on at position {run.position:,}; {run.first:,} values are published", err=True)
    return run


def _batches(options: dict[str, Any], run: BatchPublisher) -> Iterator[Batch]:
    from deniable.stores import Columns, DurablePublisher, read_file
    from deniable.stores.broker_messages import is_broker
    from deniable.stores.brokers import read_broker
    from deniable.stores.sources.readers import read_pipe

    value, *others = (options[name] for name in ("column", "time_column", "person_column", "position_column"))
    columns = Columns(value, others[0], others[1], others[2], run.lenient, options["key"])
    if is_broker(options["source"]):
        if not isinstance(run, DurablePublisher) or options["skip_published"]:
            raise InvalidParameter("INPUT", "is a broker, which needs a store", "Give --store, no --skip-published.")
        json_lines = options["json_lines"]
        return read_broker(options["source"], columns, json_lines=json_lines, name=run.settings.name, mark=run.mark)
    if options["source"] != "-":
        batches = read_file(options["source"], columns)
    else:
        batches = read_pipe(sys.stdin.buffer, columns, json_lines=options["json_lines"])
    return _numbered(batches) if options["skip_published"] else batches


def _numbered(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Every value at the position at which it stands in the input."""
    import numpy as np

    start = 0
    for batch in batches:
        yield replace(batch, positions=np.arange(start, start + len(batch.values)))
        start += len(batch.values)


def _ignore(_values: NDArray[Any], _timestamps: NDArray[Any] | None) -> None:
    """The store has them."""


def _print(values: NDArray[Any], _timestamps: NDArray[Any] | None) -> None:
    if values.size:
        sys.stdout.write("\n".join(map(_shown, values.tolist())) + "\n")
        sys.stdout.flush()


def _metadata(run: BatchPublisher) -> dict[bytes, bytes]:
    import numpy as np

    from deniable.stores.keyed_stream import KeyedStream

    if run.publisher.warming_up or isinstance(run.publisher, KeyedStream):
        return {}
    return run.publisher.release_of(np.zeros(0, dtype=np.int64), first=run.first).metadata()


class Progress:
    """How far a run has come, on stderr: on a terminal about once a second, and at its end.

    A log, which is not a terminal, gets a line when a notice about the stream appears or changes, and the last one.
    """

    def __init__(self, run: BatchPublisher, *, writes_file: bool) -> None:
        self._run, self._writes_file = run, writes_file
        self._started = self._shown = time.monotonic()
        self._live = sys.stderr.isatty()
        self._notice: str | None = None

    def show(self, *, last: bool = False) -> None:
        """Show it, if it is time. A run that failed before its first value ends in silence."""
        now, run = time.monotonic(), self._run
        too_early = not last and now - self._shown < SECONDS_BETWEEN_REPORTS
        if too_early or (last and not run.taken and sys.exc_info()[0] is not None):
            return
        self._shown = now
        if not self._live and not last and run.publisher.notice in (None, self._notice):
            return
        self._notice = run.publisher.notice
        rate = run.taken / max(now - self._started, 1e-9)
        text = f"{run.taken:,} values taken, {run.published:,} published, {rate:,.0f} per second"
        if run.bad:
            text += f", {run.bad:,} bad"
        settings, learnt = run.publisher.settings, run.publisher.learnt
        if run.publisher.warming_up:
            left = settings.warmup - run.publisher.consumed
            text += f"; warming up, {left:,} more values are needed"
            text += "; no file was written" if last and self._writes_file else ""
        elif last:
            per = " per person and epoch" if run.publisher.kind == "person" else ""
            theta = "by key" if learnt is None else f"{settings.grid.value(learnt.theta):g}"
            text += f"; ε = {settings.epsilon:g}{per}, θ = {theta}"
        if notice := run.publisher.notice:
            text += f"; {notice}"
        click.echo(f"{text}; {NOTE}" if last and run.publisher.simulation else text, err=True)


def _shown(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.12g}"
