"""`deniable gather`: lines from devices → a folder of reports."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from deniable.cli.collect import show_summaries
from deniable.cli.terminal import progress, simulation_option
from deniable.collection import Collection
from deniable.errors import BadInput
from deniable.simulation import NOTE


@click.command()
@click.argument("specification", type=click.Path(dir_okay=False))
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("-o", "--out", required=True, type=click.Path(), help="Folder for the reports; must not exist.")
@simulation_option
def gather(specification: str, files: tuple[str, ...], out: str, simulation: bool) -> None:
    """Gather the lines that devices sent into reports.

    FILE is a file of lines, or - for stdin. A report that arrives several times counts once. Of different reports for
    the same user, table and slot, the first counts. Lines that cannot be used are counted by reason.

    \b
    Example:
      deniable gather shop.toml monday.jsonl tuesday.jsonl -o reports/
    """
    from deniable.engines.collecting.folder_writing import check_folder
    from deniable.engines.collecting.gathering import gather as gather_lines

    collection = Collection.load(specification)
    check_folder(collection, Path(out), [], simulation=simulation)
    for name in files:
        if name != "-" and not Path(name).is_file():
            raise BadInput(f"there is no file {name!r}. Nothing was read or written. Name files of lines, or -.")
    with progress("gathering", sum(Path(name).stat().st_size for name in files if name != "-")) as advance:
        reports = gather_lines(collection, _lines(files), simulation=simulation, advance=advance)
    if not any(summary.reports for summary in reports.summaries.values()):
        show_summaries(reports.summaries, "line")
        raise BadInput("none of the reports can be used. Nothing was written. Check the files and the specification.")
    show_summaries(reports.save(out).summaries, "line")
    if simulation:
        click.echo(NOTE)


def _lines(files: tuple[str, ...]) -> Iterator[bytes]:
    for name in files:
        if name == "-":
            yield from sys.stdin.buffer
        else:
            with Path(name).open("rb") as lines:
                yield from lines
