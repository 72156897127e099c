"""`deniable stream publish`: numbers from a file or a pipe through a publisher, with a state to go on from."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.ledger import ledger_option, opened
from deniable.cli.stream import HIERARCHY, check_theta
from deniable.cli.stream_output import Interrupts, parquet_output, until_the_reader_leaves
from deniable.cli.terminal import simulation_option
from deniable.errors import InvalidParameter
from deniable.simulation import NOTE
from deniable.wording import counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from deniable.stores import Batch, BatchPublisher
    from deniable.streams import PersonStream, Publisher

METHODS = ("tops", "pak", "nme", "hc16", "smooth-hc16", "flat")
SECONDS_BETWEEN_REPORTS = 1.0


@click.command()
@click.argument("source", metavar="INPUT")
@click.option("-o", "--output", default="-", show_default=True, help="A .parquet file, or - for one number per line.")
@click.option("--epsilon", type=float, required=True, help="Privacy of one value against another.")
@click.option("--bound", type=float, required=True, help="Public upper bound. Larger values count as it.")
@click.option("--low", type=float, default=0, show_default=True, help="Public lower bound. Smaller values are refused.")
@click.option("--resolution", type=float, default=1, show_default=True, help="Step of the grid of values.")
@click.option("--column", default="value", show_default=True, help="Column of the values.")
@click.option("--time-column", default=None, help="Column of timestamps, published as they are.")
@click.option("--person-column", default=None, help="Column of persons' ids: ε then protects persons. Needs --most.")
@click.option("--most", type=click.IntRange(1), default=None, help="Values of each person that count per epoch.")
@click.option("--epoch", type=click.IntRange(1), default=None, help="Events of an epoch. Default: --horizon.")
@click.option("--window", type=click.IntRange(1), default=1, show_default=True, help="Epochs that one ε covers.")
@click.option(
    "--warmup", type=int, default=None, help="Values that are never published. Default: 256 to 4096, by --epsilon."
)
@click.option("--horizon", type=int, default=1 << 20, show_default=True, help="Values of a chunk: the longest windows.")
@click.option(
    "--block", type=click.IntRange(1), default=None, help="Values of a block. Default: chosen by predicted error."
)
@click.option("--drift", type=float, default=None, help="Change of the mean, share of θ. Default: 0.04.")
@HIERARCHY
@click.option("--theta", type=float, default=None, help="A public threshold, instead of a private choice.")
@click.option("--method", type=click.Choice(METHODS), default="tops", show_default=True)
@click.option("--paper", is_flag=True, help="Use ToPS with the paper's threshold and blocks.")
@click.option("--state", type=click.Path(dir_okay=False), default=None, help="Private file to continue from.")
@ledger_option
@click.option("--json-lines", is_flag=True, help="Read JSON objects from a pipe instead of numbers.")
@simulation_option
@click.pass_context
def publish(context: click.Context, /, **_: Any) -> None:
    """Publish the numbers of a file or a pipe, each as it arrives.

    INPUT is a .parquet, .csv or .jsonl file, text with one number per line, or - for a pipe. After the warm-up, every
    line of a pipe is answered as soon as it arrives. With --state a stream continues where the last run ended, with the
    same settings. Without it, the last block of a file is closed at the end.

    With --person-column, ε protects everything a person does within --window epochs. Of each person, --most values
    count per epoch; others are replaced.

    \b
    Example:
      deniable stream publish --epsilon 0.05 --bound 1638 in.csv -o out.parquet
    """
    _publish(context.params)


def _publish(options: dict[str, Any]) -> None:
    """Publish everything that comes, and leave a file and a state to go on from."""
    from deniable.stores.sources.batch import Unreadable

    with parquet_output(options["output"]) as parquet:
        run = _run(options)
        progress = Progress(run, writes_file=parquet is not None)
        interrupts = Interrupts()
        try:
            with interrupts, until_the_reader_leaves():
                for batch in _batches(options):
                    with interrupts.held():
                        run.publish(batch, _print if parquet is None else parquet.write)
                    progress.show()
        except Unreadable as refusal:
            raise run.advised(refusal) from None
        finally:
            correction = run.close()
            if parquet is not None and run.published:
                parquet.close(_metadata(run), correction)
            progress.show(last=True)


def _run(options: dict[str, Any]) -> BatchPublisher:
    """The publisher of this run: one that continues from the state file, if there is any."""
    from deniable.stores import BatchPublisher, DurablePublisher

    if (state := options["state"]) is None:
        return BatchPublisher(_publisher(options), ledger=opened(options["ledger"]))
    if not Path(state).absolute().parent.is_dir():
        raise InvalidParameter("--state", "is in a folder that does not exist", "Make the folder first.")
    run = DurablePublisher(state, _publisher(options), ledger=opened(options["ledger"]))
    if run.replaying:
        values = counted(run.replaying, "value")
        click.echo(f"the last run was interrupted: its last {values} must come again", err=True)
    return run


def _publisher(options: dict[str, Any]) -> Publisher | PersonStream:
    from deniable.streams import Expectation, PersonStream, PublicThreshold
    from deniable.streams.central.named_publishers import BY_KIND

    settings: dict[str, Any] = {name: options[name] for name in ("horizon", "simulation")}
    if options["warmup"] is not None:
        settings["warmup"] = options["warmup"]
    settings |= {"low": _whole(options["low"]), "resolution": _whole(options["resolution"])}
    if options["block"] is not None:
        settings["block"] = options["block"]
    if options["theta"] is not None:
        check_theta(options["theta"], options["bound"], options["low"])
        settings["threshold"] = PublicThreshold(options["theta"])
    if options["paper"]:
        if options["method"] != "tops":
            raise InvalidParameter("--paper", "is a setting of ToPS", "Leave out --method.")
        settings["paper"] = True
    if options["drift"] is not None:
        if options["method"] != "tops" or options["paper"]:
            raise InvalidParameter("--drift", "is a setting of ToPS", "Leave out --method and --paper.")
        settings["expectation"] = Expectation(drift=options["drift"])
    if options["hierarchy"] != "auto":
        if options["method"] != "tops":
            raise InvalidParameter("--hierarchy", "is a setting of ToPS", "Leave out --method.")
        settings["hierarchy"] = options["hierarchy"]
    kind: Any = BY_KIND[options["method"]]
    if (options["person_column"] is None) != (options["most"] is None):
        raise InvalidParameter("--most", "and --person-column belong together", "Give both, or neither.")
    made: Publisher | PersonStream
    if options["most"] is None:
        made = kind(options["epsilon"], _whole(options["bound"]), **settings)
    else:
        settings |= {name: options[name] for name in ("most", "epoch", "window")}
        made = PersonStream(options["epsilon"], _whole(options["bound"]), method=kind, **settings)
    # Sums of blocks describe the whole stream; single values would fill the memory of an endless run.
    if made.plan.block < 64:
        made.forget()
    return made


def _batches(options: dict[str, Any]) -> Iterator[Batch]:
    from deniable.stores import Columns, read_file
    from deniable.stores.sources.readers import read_pipe

    columns = Columns(options["column"], options["time_column"], options["person_column"])
    if options["source"] != "-":
        return read_file(options["source"], columns)
    return read_pipe(sys.stdin.buffer, columns, json_lines=options["json_lines"])


def _print(values: NDArray[Any], _timestamps: NDArray[Any] | None) -> None:
    if values.size:
        sys.stdout.write("\n".join(map(_shown, values.tolist())) + "\n")
        sys.stdout.flush()


def _metadata(run: BatchPublisher) -> dict[bytes, bytes]:
    import numpy as np

    if run.publisher.warming_up:
        return {}
    return run.publisher.release_of(np.zeros(0, dtype=np.int64), first=run.first).metadata()


class Progress:
    """How far a run has come, on stderr: about once a second, and at its end."""

    def __init__(self, run: BatchPublisher, *, writes_file: bool) -> None:
        self._run, self._writes_file = run, writes_file
        self._started = self._shown = time.monotonic()

    def show(self, *, last: bool = False) -> None:
        """Show it, if it is time. A run that failed before its first value ends in silence."""
        now, run = time.monotonic(), self._run
        too_early = not last and now - self._shown < SECONDS_BETWEEN_REPORTS
        if too_early or (last and not run.taken and sys.exc_info()[0] is not None):
            return
        self._shown = now
        rate = run.taken / max(now - self._started, 1e-9)
        text = f"{run.taken:,} values taken, {run.published:,} published, {rate:,.0f} per second"
        settings, learnt = run.publisher.settings, run.publisher.learnt
        if last and run.replaying:
            text += f"; not all of the {run.replaying:,} values that must come again have come"
        elif learnt is None:
            left = settings.warmup - run.publisher.consumed
            text += f"; warming up, {left:,} more values are needed"
            text += "; no file was written" if last and self._writes_file else ""
        elif notice := run.publisher.notice:
            text += f"; {notice}"
        elif last:
            per = " per person and epoch" if run.publisher.kind == "person" else ""
            text += f"; ε = {settings.epsilon:g}{per}, θ = {settings.grid.value(learnt.theta):g}"
        click.echo(f"{text}; {NOTE}" if last and run.publisher.simulation else text, err=True)


def _whole(number: float) -> float:
    return int(number) if number.is_integer() else number


def _shown(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.12g}"
