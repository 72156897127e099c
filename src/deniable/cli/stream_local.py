"""`deniable stream report` and `collect`: a stream without trust, as two filters that a pipe can join."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from deniable.cli.ledger import ledger_option, opened
from deniable.cli.stream_output import Interrupts, parquet_output, until_the_reader_leaves
from deniable.cli.terminal import simulation_option
from deniable.errors import InvalidParameter
from deniable.simulation import NOTE

if TYPE_CHECKING:
    from deniable.arrays import Floats
    from deniable.stores import DurableServer, ReportBatch
    from deniable.stores.parquet_output import ParquetOutput


def _agreed(command: Callable[..., Any]) -> Callable[..., Any]:
    """Options that must be the same for devices and server."""
    for option in (
        simulation_option,
        click.option("--name", default="", help="Name of the stream, if users take part in several."),
        click.option(
            "--renewal", type=float, default=0.0, show_default=True, help="Share that keeps to first reports."
        ),
        click.option("--bound", type=float, required=True, help="Public upper bound. Larger values count as it."),
        click.option("--epsilon", type=float, required=True, help="Privacy of a user's value, against everybody."),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("source", metavar="[INPUT]", default="-")
@_agreed
@click.option("--column", default="value", show_default=True, help="Column of the values in a table.")
@click.option("--theta", type=float, default=None, help="The announced threshold. Without it, first reports are sent.")
@click.option("--theta-from", type=click.Path(), default=None, help="File or named pipe to read the threshold from.")
@click.option("--first", type=int, default=1 << 16, show_default=True, help="First reports to send, with --theta-from.")
@click.option("--wait", type=float, default=600.0, show_default=True, help="Seconds to wait for the threshold.")
@click.option("--uid", default=None, help="The user's id. Without it every line is a user, numbered from --first-uid.")
@click.option("--first-uid", type=int, default=0, show_default=True, help="Number of the first user, without --uid.")
@click.option("--memory", type=click.Path(dir_okay=False), default=None, help="What this user has sent. Needs --uid.")
@ledger_option
def report(
    source: str, epsilon: float, bound: float, name: str, renewal: float, simulation: bool, **options: Any
) -> None:
    """Randomise values as devices do: one line of JSON for each.

    Without --uid every line is a different user, to try things out. On a device there is one user, with --uid and
    --memory. Asked again, it sends the same answer, and a line of text that is not a number counts as missing.

    \b
    Example:
      deniable stream report --epsilon 1 --bound 500 --theta 40 values.txt > sent
    """
    from deniable.stores.threshold_announcement import wait_for_theta
    from deniable.streams.local.stream_client import ToPLClient

    theta, waits, uid = options["theta"], options["theta_from"], options["uid"]
    if theta is not None and waits is not None:
        raise InvalidParameter("--theta-from", "is given in addition to --theta", "Give one of them.")
    if (options["memory"] is None) != (uid is None):
        raise InvalidParameter(
            "--memory", "and --uid belong together", "Give both on a device, or neither to try things out."
        )
    if options["ledger"] is not None and uid is None:
        raise InvalidParameter("--ledger", "is one person's", "Give --uid and --memory too.")
    ledger = opened(options["ledger"])
    settings: dict[str, Any] = {"name": name, "renewal": renewal, "simulation": simulation, "ledger": ledger}
    client = ToPLClient(epsilon, bound, memory=options["memory"], **settings)
    sent = 0
    with until_the_reader_leaves():
        for values in _device_values(source, options["column"], one_user=uid is not None):
            for value in values:
                if waits is not None and theta is None and sent >= options["first"]:
                    sys.stdout.flush()
                    theta = wait_for_theta(waits, options["wait"])
                answer = client.fresh(value, theta) if uid is None else client.report(value, theta)
                sys.stdout.write(answer.to_json(options["first_uid"] + sent if uid is None else uid) + "\n")
                sent += 1
            sys.stdout.flush()


def _device_values(source: str, column: str, *, one_user: bool) -> Iterable[list[Any]]:
    """Values of many users; of one user, line by line, with None for a line that is not a number."""
    from deniable.stores import Columns, read_file
    from deniable.stores.sources.line_source import read_device_values, read_lines
    from deniable.stores.sources.readers import is_plain_text

    if one_user and (source == "-" or is_plain_text(source)):
        return ([value] for value in read_device_values(source))
    batches = read_lines(sys.stdin.buffer, None) if source == "-" else read_file(source, Columns(column))
    return (batch.values.tolist() for batch in batches)


@click.command()
@click.argument("source", metavar="[INPUT]", default="-")
@_agreed
@click.option("--first", type=int, default=1 << 16, show_default=True, help="First reports that choose the threshold.")
@click.option("--horizon", type=int, default=1 << 20, show_default=True, help="The longest windows that matter.")
@click.option("--theta", type=float, default=None, help="A public threshold, instead of a first phase.")
@click.option("--announce", type=click.Path(), default=None, help="File or named pipe to write the threshold to.")
@click.option("--state", type=click.Path(dir_okay=False), default=None, help="Private file to continue from.")
@click.option("--renew", is_flag=True, help="Choose a new threshold first, for users who have not answered.")
@click.option(
    "--renewals",
    type=click.Choice(["auto", "asked"]),
    default="auto",
    show_default=True,
    help="With --renewal: new thresholds when they are worth it, or with --renew only.",
)
@click.option("-o", "--output", default="-", show_default=True, help="A .parquet file, or - for lines.")
@click.option("--every", type=click.IntRange(1), default=1, show_default=True, help="Print means of this many.")
def collect(
    source: str, epsilon: float, bound: float, name: str, renewal: float, simulation: bool, **options: Any
) -> None:
    """Collect reports of devices: the threshold, then estimates.

    INPUT is a Parquet file with columns `uid` and `report`, JSON lines, or - for a pipe. Refused reports are counted
    by reason, on stderr. A single estimate is almost all noise: ask for windows of an -o file (`deniable stream
    query`), or for means with --every. With --state a collection continues where the last run ended, with the
    same settings. Reports under any threshold that it has announced count, and nobody is counted twice.

    \b
    Example:
      deniable stream collect --epsilon 1 --bound 500 --every 1000 < reports.jsonl
    """
    from deniable.stores import DurableServer
    from deniable.streams import ToPLServer

    settings = {key: options[key] for key in ("first", "horizon", "theta")}
    if options["renew"] and options["state"] is None:
        raise InvalidParameter("--renew", "needs the first reports of earlier runs", "Give --state.")
    settings |= {"renewal": renewal, "renew": options["renewals"]}
    made = ToPLServer(epsilon, bound, name=name, simulation=simulation, keep=False, **settings)
    interrupts = Interrupts()
    with parquet_output(options["output"]) as parquet:
        durable = DurableServer(options["state"], made, tell=_print_threshold, announcement=options["announce"])
        write: Callable[[Floats], None] = partial(_print_estimates, durable, every=options["every"])
        if parquet is not None:
            write = partial(_write_estimates, durable, parquet)
        try:
            with interrupts, until_the_reader_leaves():
                if options["renew"]:
                    durable.renew()
                durable.announce()
                for batch in _report_batches(source):
                    with interrupts.held():
                        durable.publish(batch, write)
        finally:
            durable.close()
            if parquet is not None and durable.server.published > durable.first:
                parquet.close(_metadata(durable))
            _summarize(durable)


def _report_batches(source: str) -> Iterator[ReportBatch]:
    from deniable.stores.report_batches import read_report_file, read_report_lines

    return read_report_lines(sys.stdin.buffer) if source == "-" else read_report_file(source)


def _print_threshold(theta: float) -> None:
    click.echo(f"theta {theta:g}")


def _print_estimates(durable: DurableServer, estimates: Floats, *, every: int) -> None:
    if every == 1:
        lines = [f"{estimate:.6g}" for estimate in estimates.tolist()]
    else:
        means, stderrs = durable.means_with_errors(estimates, every, durable.server.noise_of(durable.phases))
        lines = [f"{mean:.6g} {stderr:.3g}" for mean, stderr in zip(means.tolist(), stderrs.tolist(), strict=True)]
    sys.stdout.write("".join(line + "\n" for line in lines))
    sys.stdout.flush()


def _write_estimates(durable: DurableServer, parquet: ParquetOutput, estimates: Floats) -> None:
    parquet.write(estimates, phases=durable.phases if durable.server.protocol.renewal else None)


def _metadata(durable: DurableServer) -> dict[bytes, bytes]:
    import numpy as np

    server = durable.server
    phases = np.zeros(0, dtype=np.uint8) if server.protocol.renewal else None
    return {} if server.theta is None else server.release_of(np.zeros(0), durable.first, phases).metadata()


def _summarize(durable: DurableServer) -> None:
    server = durable.server
    refused = f"; refused: {durable.refusals}" if server.refused else ""
    click.echo(f"{durable.read:,} reports: {server.heard:,} first, {server.published:,} second{refused}", err=True)
    if server.theta is None:
        missing = server.first - server.heard
        click.echo(f"no threshold yet: {missing:,} more first reports are needed", err=True)
    elif server.published:
        total = server.total
        mean, stderr = total.value / server.published, total.stderr / server.published
        click.echo(f"sum {total.value:,.6g} ± {total.stderr:,.3g}, mean {mean:.4g} ± {stderr:.2g}", err=True)
    if server.simulation:
        click.echo(NOTE, err=True)
