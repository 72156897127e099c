"""`deniable stream report` and `collect`: streams without trust, as two filters joined by a pipe."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.stream_output import Interrupts, parquet_output, until_the_reader_leaves
from deniable.cli.terminal import simulation_option
from deniable.errors import Failure, InvalidData, InvalidParameter
from deniable.simulation import NOTE

if TYPE_CHECKING:
    from deniable.arrays import Floats
    from deniable.stores.local_stream_files import ReportBatch
    from deniable.streams import ToPLServer

SECONDS_BETWEEN_SAVES = 60.0


def _agreed(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that devices and server must agree on."""
    for option in (
        simulation_option,
        click.option("--name", default="", help="Name of the stream, if a user takes part in several."),
        click.option("--bound", type=float, required=True, help="Public upper bound; values above count as it."),
        click.option("--epsilon", type=float, required=True, help="Privacy of a user's value, against everybody."),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("source", metavar="[INPUT]", default="-")
@_agreed
@click.option("--column", default="value", show_default=True, help="Column of the values, in a table.")
@click.option("--theta", type=float, default=None, help="The announced threshold; without it, first reports are sent.")
@click.option("--theta-from", type=click.Path(), default=None, help="File or named pipe that will tell the threshold.")
@click.option("--first", type=int, default=1 << 16, show_default=True, help="First reports, with --theta-from.")
@click.option("--wait", type=float, default=600.0, show_default=True, help="Seconds to wait for the threshold.")
@click.option("--uid", default=None, help="The user's id; without it every line is a user, numbered from --first-uid.")
@click.option("--first-uid", type=int, default=0, show_default=True)
@click.option("--memory", type=click.Path(dir_okay=False), default=None, help="What this user has sent; needs --uid.")
def report(source: str, epsilon: float, bound: float, name: str, simulation: bool, **options: Any) -> None:
    """Randomise values on the device side: a line of JSON for each.

    Without --uid every line is a user of its own, for trying things out. On a device there is one user, with --uid and
    --memory: asked again, the same answer is sent, and a line of text that is no number counts as missing.

    \b
    Example:
      deniable stream report --epsilon 1 --bound 500 --theta 40 values.txt > sent
    """
    from deniable.stores.local_stream_files import wait_for_theta
    from deniable.stores.stream_files import is_plain_text, read_batches, read_lines, read_values
    from deniable.streams.local.stream_client import ToPLClient

    theta, waits = options["theta"], options["theta_from"]
    if theta is not None and waits is not None:
        raise InvalidParameter("--theta-from", "is given beside --theta", "Give one of them.")
    if (options["memory"] is None) != (options["uid"] is None):
        raise InvalidParameter(
            "--memory", "and --uid belong together", "Give both on a device, none to try things out."
        )
    agreed: dict[str, Any] = {"epsilon": epsilon, "bound": bound, "name": name, "simulation": simulation}
    one = None if options["uid"] is None else ToPLClient(memory=options["memory"], **agreed)
    values: Iterable[list[Any]]
    if one is not None and (source == "-" or is_plain_text(source)):
        values = ([value] for value in read_values(source))
    elif source != "-":
        values = (batch.values.tolist() for batch in read_batches(source, options["column"], None))
    else:
        values = (batch.values.tolist() for batch in read_lines(sys.stdin.buffer, column=None, time_column=None))
    sent, draws = 0, ToPLClient(**agreed)
    with until_the_reader_leaves():
        for some in values:
            for value in some:
                if waits is not None and theta is None and sent >= options["first"]:
                    sys.stdout.flush()
                    theta = wait_for_theta(waits, options["wait"])
                uid = options["first_uid"] + sent if one is None else options["uid"]
                answer = draws.fresh(value, theta) if one is None else one.report(value, theta)
                sys.stdout.write(answer.to_json(uid) + "\n")
                sent += 1
            sys.stdout.flush()


@click.command()
@click.argument("source", metavar="[INPUT]", default="-")
@_agreed
@click.option("--first", type=int, default=1 << 16, show_default=True, help="First reports to choose the threshold by.")
@click.option("--horizon", type=int, default=1 << 20, show_default=True, help="The longest windows that matter.")
@click.option("--theta", type=float, default=None, help="A public threshold, instead of a first phase.")
@click.option("--announce", type=click.Path(), default=None, help="File or named pipe to tell the threshold to.")
@click.option("--state", type=click.Path(dir_okay=False), default=None, help="Private file to go on from and leave.")
@click.option("-o", "--output", default="-", show_default=True, help="A .parquet file, or - for lines.")
@click.option("--every", type=click.IntRange(1), default=1, show_default=True, help="Mean and ± of so many estimates.")
def collect(source: str, epsilon: float, bound: float, name: str, simulation: bool, **options: Any) -> None:
    """Collect reports of devices: the threshold, then estimates.

    INPUT is a Parquet file with columns `uid` and `report`, JSON lines, or - for a pipe. Refused reports are counted
    by reason, on stderr. A single estimate is almost all noise: ask for windows of an -o file (`deniable stream
    query`), or for means with --every. With --state a collection goes on where the last run ended, with the same
    settings: its threshold holds, and nobody is counted twice.

    \b
    Example:
      deniable stream collect --epsilon 1 --bound 500 --every 1000 < reports.jsonl
    """
    agreed = {"epsilon": epsilon, "bound": bound, "name": name, "simulation": simulation}
    _Collecting(source, agreed, options).go()


class _Collecting:
    """One run of `stream collect`."""

    def __init__(self, source: str, agreed: dict[str, Any], options: dict[str, Any]) -> None:
        self.source, self.agreed, self.options = source, agreed, options
        self.announced = False
        self.saved = time.monotonic()
        self.interrupts = Interrupts()

    def go(self) -> None:
        """Take all reports that come, and leave a file and a state to go on from."""
        from deniable.stores.stream_state import StateFile

        state = self.options["state"]
        with (
            parquet_output(self.options["output"]) as self.parquet,
            nullcontext() if state is None else StateFile(state, holds="who has answered") as self.file,
        ):
            record = (self.file and self.file.record) or {}
            self.server = self._server(record.get("state"))
            self.first = self.server.published
            self.read: int = record.get("read", 0)  # reports, of all runs
            self.waiting: list[float] = record.get("waiting", [])  # estimates, fewer than --every
            self._check_announcement()
            self._collect()

    def _server(self, state: dict[str, Any] | None) -> ToPLServer:
        from deniable.streams import ToPLServer

        chosen = {key: self.options[key] for key in ("first", "horizon", "theta")}
        made = ToPLServer(**self.agreed, **chosen, keep=False)
        if state is None:
            return made
        restored = ToPLServer.restore(state)
        if restored.settings != made.settings:
            raise InvalidParameter("the settings", "are not those of the state file", "Give the same, or a new file.")
        return restored

    def _collect(self) -> None:
        try:
            with self.interrupts, until_the_reader_leaves():
                if self.server.theta is not None:
                    self._announce()
                for batch in self._batches():
                    with self.interrupts.held():
                        self._take(batch)
        finally:
            self._save()
            if self.parquet is not None and self.server.published > self.first:
                self.parquet.close(self._metadata())
            self._summary()

    def _save(self) -> None:
        if self.file is not None:
            self.file.write(self.server.state(), read=self.read, waiting=self.waiting)
            self.saved = time.monotonic()

    def _check_announcement(self) -> None:
        from deniable.stores.local_stream_files import announced_theta

        told = None if self.options["announce"] is None else announced_theta(self.options["announce"])
        if told is not None and told != self.server.theta:
            name = Path(self.options["announce"]).name
            raise InvalidData(f"{name!r} exists already: devices may have read another threshold", "Remove it.")

    def _batches(self) -> Iterator[ReportBatch]:
        from deniable.stores.local_stream_files import read_report_file, read_report_lines

        return read_report_lines(sys.stdin.buffer) if self.source == "-" else read_report_file(self.source)

    def _take(self, batch: ReportBatch) -> None:
        from deniable.streams.local.report_arrays import MALFORMED

        if batch.malformed:
            self.server.refused[MALFORMED] += batch.malformed
        self.read += batch.malformed + batch.reports.num_rows
        estimates = self.server.push_many(batch.reports)
        if self.server.theta is None and self.options["announce"] is not None and self.read >= self.server.first:
            # Devices wait for an answer; some reports were refused, so the number that was hoped for may never come.
            if not self.server.heard:
                raise Failure(f"all {self.read:,} reports were refused: {self._reasons()}. No threshold was announced.")
            self.server.announce()
        if not self.announced and self.server.theta is not None:
            self._save()  # what devices were told must hold in every later run
            self._announce()
        if estimates.size:
            self._emit(estimates)
        if time.monotonic() - self.saved > SECONDS_BETWEEN_SAVES:
            self._save()

    def _announce(self) -> None:
        from deniable.stores.local_stream_files import announce_theta

        assert self.server.theta is not None  # noqa: S101 - for the type checker
        self.announced = True
        click.echo(f"theta {self.server.theta:g}")
        if self.options["announce"] is not None:
            announce_theta(self.options["announce"], self.server.theta)

    def _emit(self, estimates: Floats) -> None:
        import numpy as np

        if self.parquet is not None:
            self.parquet.write(estimates, None)
            return
        every = self.options["every"]
        if every == 1:
            lines = [f"{estimate:.6g}" for estimate in estimates.tolist()]
        else:
            pending = np.concatenate((self.waiting, estimates))
            whole = pending.size // every * every
            self.waiting = pending[whole:].tolist()
            stderr = math.sqrt(self.server.variance / every)
            lines = [f"{mean:.6g} {stderr:.3g}" for mean in pending[:whole].reshape(-1, every).mean(axis=1).tolist()]
        sys.stdout.write("".join(line + "\n" for line in lines))
        sys.stdout.flush()

    def _metadata(self) -> dict[bytes, bytes]:
        import numpy as np

        return {} if self.server.theta is None else self.server.release_of(np.zeros(0), self.first).metadata()

    def _reasons(self) -> str:
        return ", ".join(f"{count:,} {reason}" for reason, count in sorted(self.server.refused.items()))

    def _summary(self) -> None:
        server = self.server
        refused = f"; refused: {self._reasons()}" if server.refused else ""
        click.echo(f"{self.read:,} reports: {server.heard:,} first, {server.published:,} second{refused}", err=True)
        if server.theta is None:
            missing = server.first - server.heard
            click.echo(f"no threshold yet: {missing:,} more first reports are needed", err=True)
        elif server.published:
            total = server.total
            mean, stderr = total.value / server.published, total.stderr / server.published
            click.echo(f"sum {total.value:,.6g} ± {total.stderr:,.3g}, mean {mean:.4g} ± {stderr:.2g}", err=True)
        if server.simulation:
            click.echo(NOTE, err=True)
