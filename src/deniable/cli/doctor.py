"""`deniable doctor`: whether a collector's folder is in order."""

from __future__ import annotations

from pathlib import Path

import click

from deniable.cli.serve import check_folder_of, folder_argument
from deniable.errors import Failure
from deniable.wording import counted


@click.command()
@folder_argument
@click.option("--repair", is_flag=True, help="Correct what follows from the reports. Stop the server first.")
def doctor(folder: str, repair: bool) -> None:
    """Check what a collector has stored.

    Looks at permissions, the store's file, counts, sealed files, and at every report: format, specification, view,
    seed and outcome. Users who have sent only some of their reports are counted. Reports of streams without trust are
    taken again in their order, and θ is compared with what was announced. Of streams in stores every segment and the
    state are read. It may run while the collector does. With --repair, counts
    are corrected, leftovers removed, permissions set and damaged sealed files written again. Exits 1 if something is
    wrong and stays so.

    \b
    Example:
      deniable doctor collected/
    """
    from deniable.engines.collecting.store_doctor import examine
    from deniable.engines.collecting.store_doctor import repair as repair_folder

    opened = check_folder_of(Path(folder), keys=False)
    seen = examine(opened)
    for (table, number), rows in sorted(seen.counts.items()):
        gaps = seen.incomplete[table, number]
        missing = f", {counted(gaps, 'user')} incomplete" if gaps else ""
        click.echo(f"{table}, round {number}: {counted(rows, 'report')}{missing}")
    for stream, rows in sorted(seen.streams.items()):
        click.echo(f"stream {stream}: {counted(rows, 'report')}")
    for stream in seen.live:
        click.echo(f"stream {stream}: a store was read")
    for finding in seen.findings:
        click.echo(f"{'can be repaired' if finding.repairable else 'damage'}: {finding.words}")
    left = len(seen.findings)
    if repair:
        done = repair_folder(opened, seen)
        left -= done
        click.echo(f"repaired: {done}")
    if left:
        raise Failure(f"{counted(left, 'problem')} left. Nothing more was changed. See above.")
    click.echo("everything is in order")
