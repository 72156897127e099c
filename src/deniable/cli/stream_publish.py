"""`deniable stream publish`: numbers of a file or a pipe through a publisher, with a state to go on from."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.stream import check_theta
from deniable.cli.stream_output import Interrupts, parquet_output, until_the_reader_leaves
from deniable.cli.terminal import simulation_option
from deniable.errors import InvalidData, InvalidParameter
from deniable.simulation import NOTE
from deniable.wording import counted

if TYPE_CHECKING:
    from deniable.stores.stream_files import Batch
    from deniable.stores.stream_state import StateFile
    from deniable.streams import Publisher

METHODS = ("tops", "pak", "nme", "hc16", "flat")
SECONDS_BETWEEN_REPORTS = 1.0


@click.command()
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
@click.option(
    "--block", type=click.IntRange(1), default=None, help="Values of a block; chosen by predicted error if left out."
)
@click.option("--drift", type=float, default=None, help="How much a block's mean moves, share of θ; else 0.005.")
@click.option("--theta", type=float, default=None, help="A public threshold, instead of a private choice.")
@click.option("--method", type=click.Choice(METHODS), default="tops", show_default=True)
@click.option("--paper", is_flag=True, help="ToPS with the paper's threshold and blocks.")
@click.option("--state", type=click.Path(dir_okay=False), default=None, help="Private file to go on from and leave.")
@click.option("--json-lines", is_flag=True, help="A pipe brings JSON objects instead of numbers.")
@simulation_option
@click.pass_context
def publish(context: click.Context, /, **_: Any) -> None:
    """Publish the numbers of a file or a pipe, each as it comes.

    INPUT is a .parquet, .csv or .jsonl file, text with a number per line, or - for a pipe. From a pipe every line is
    answered as soon as it has come, after the warm-up. With --state a stream goes on where the last run ended, with the
    same settings; without it, a file's last block is closed at the end.

    \b
    Example:
      deniable stream publish --epsilon 0.05 --bound 1638 in.csv -o out.parquet
    """
    Publishing(context.params).go()


class Publishing:
    """One run of `stream publish`."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.options = options
        self.started = self.reported = time.monotonic()
        self.taken = self.published = 0
        self.newest: Any = None  # timestamp
        self.interrupts = Interrupts()
        self.leaving = False  # a batch is on its way, and it is not certain that it arrived

    def go(self) -> None:
        """Publish all that comes, and leave a file and a state to go on from."""
        from deniable.stores.stream_state import StateFile

        state = self.options["state"]
        if state is not None and not Path(state).absolute().parent.is_dir():
            raise InvalidParameter("--state", "is in a folder that does not exist", "Make the folder first.")
        with (
            parquet_output(self.options["output"]) as self.parquet,
            nullcontext() if state is None else StateFile(state) as file,
        ):
            self._run(file)

    def _run(self, file: StateFile | None) -> None:
        from deniable.stores.stream_files import Unreadable
        from deniable.stores.stream_state import Journal

        self.publisher = self._publisher(None if file is None else file.record)
        self.first = self.publisher.published
        self.journal = None if file is None else Journal(file, self.publisher)
        if self.journal is not None and self.journal.replaying:
            click.echo(
                f"the last run was interrupted: its last {counted(self.journal.replaying, 'value')} must come again",
                err=True,
            )
        try:
            with self.interrupts, until_the_reader_leaves():
                for batch in self._batches():
                    self._publish(batch)
                    self._report()
        except Unreadable as refusal:
            raise Unreadable(refusal.place, self._repair()) from None
        finally:
            self._finish()
            if self.taken or sys.exc_info()[0] is None:
                self._report(last=True)

    def _publisher(self, record: dict[str, Any] | None) -> Publisher:
        from deniable.streams import Expectation, PublicThreshold, restore
        from deniable.streams.central.named_publishers import BY_KIND

        chosen = self.options
        settings: dict[str, Any] = {name: chosen[name] for name in ("warmup", "horizon", "simulation")}
        settings |= {"low": _whole(chosen["low"]), "resolution": _whole(chosen["resolution"])}
        if chosen["block"] is not None:
            settings["block"] = chosen["block"]
        if chosen["theta"] is not None:
            check_theta(chosen["theta"], chosen["bound"], chosen["low"])
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
        restored = restore(record["state"], replay=record["announced"] is not None)
        if (restored.settings, restored.simulation) != (made.settings, made.simulation):
            raise InvalidParameter("the settings", "are not those of the state file", "Give the same, or a new file.")
        return restored

    def _batches(self) -> Iterator[Batch]:
        from deniable.stores.stream_files import read_batches, read_lines, refuse_times_of_text

        source, column, times = (self.options[name] for name in ("source", "column", "time_column"))
        if source != "-":
            return read_batches(source, column, times)
        if not self.options["json_lines"]:
            refuse_times_of_text(times)
        return read_lines(sys.stdin.buffer, column=column if self.options["json_lines"] else None, time_column=times)

    def _publish(self, batch: Batch) -> None:
        """One batch; if a value of it is refused, everything before that value, and then the refusal with its place."""
        good, reason = batch.values.size, ""
        try:
            self.publisher.check(batch.values)
        except InvalidData as refusal:
            good, reason = _first_refused(self.publisher, batch.values), str(refusal).split(". ")[0]
            reason = "it has no value" if batch.values[good] is None else reason
        if batch.timestamps is not None:
            ordered, wrong = _first_back(batch.timestamps, self.newest)
            if ordered < good:
                good, reason = ordered, wrong
        self._emit(batch, good)
        if reason:
            name = "line" if self.options["source"] == "-" else "row"
            cost = "Nothing of it was taken or published; the values before it were"
            raise InvalidData(f"{name} {batch.place(good):,} was refused: {reason}", self._repair(), cost=cost)
        if batch.timestamps is not None:
            self.newest = batch.timestamps[-1]

    def _repair(self) -> str:
        if self.options["state"] is not None:
            return "Repair it and go on from there."
        if self.published:
            return "Repair it, and go on with it in a new stream: to publish earlier values again would spend ε again."
        return "Repair it and begin again: nothing has been published."

    def _emit(self, batch: Batch, count: int) -> None:
        import numpy as np

        if not count:
            return
        values = batch.values[:count]
        if values.dtype == object:  # where a later one is missing, these are numbers nevertheless
            values = np.array(values.tolist())
        with self.interrupts.held():
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
        if self.parquet is not None and self.published:
            self.parquet.close(self._metadata(), correction)

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
        if last and self.journal is not None and self.journal.replaying:
            text += f"; not all of the {self.journal.replaying:,} values that must come again have come"
        elif learnt is None:
            left = self.publisher.settings.warmup - self.publisher.consumed
            text += f"; warming up, {left:,} more values are needed"
            text += "; no file was written" if last and self.parquet is not None else ""
        elif last:
            text += (
                f"; ε = {self.publisher.settings.epsilon:g}, θ = {self.publisher.settings.grid.value(learnt.theta):g}"
            )
        click.echo(f"{text}; {NOTE}" if last and self.publisher.simulation else text, err=True)


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


def _first_back(timestamps: Any, newest: Any) -> tuple[int, str]:
    """How many timestamps from the start on are there and do not go back, and what is wrong with the next."""
    import numpy as np

    if newest is not None and (timestamps.dtype.kind == "M") != (np.asarray(newest).dtype.kind == "M"):
        return 0, "its timestamp is of another type than those before it"
    missing = np.isnat(timestamps) if timestamps.dtype.kind == "M" else np.isnan(timestamps)
    there = int(missing.argmax()) if missing.any() else len(timestamps)
    back = (timestamps[1:] < timestamps[:-1]).nonzero()[0]
    ordered = int(back[0]) + 1 if back.size else len(timestamps)
    if newest is not None and timestamps[0] < newest:
        ordered = 0
    if there <= ordered:
        return there, "its timestamp is missing, or neither a number nor like 2024-01-31T12:00"
    return ordered, "its timestamp goes back"


def _whole(number: float) -> float:
    return int(number) if number.is_integer() else number


def _shown(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.12g}"
