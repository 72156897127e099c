"""`deniable reproduce`: the papers' tables and figures."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deniable.cli.terminal import progress, show, table
from deniable.disk_faults import writing
from deniable_lab.commands.data_option import data_option

if TYPE_CHECKING:
    from deniable_lab.experiments.data import Data

FINISHED = ".finished"


@click.command()
@click.argument("name", required=False)
@click.option("--quick", is_flag=True, help="Fewer settings and repetitions: all within ten minutes on two cores.")
@click.option(
    "--repetitions",
    type=click.IntRange(1),
    default=1,
    help="At least so many of every setting: smaller standard errors.",
)
@click.option("-o", "--output", default="results", show_default=True, help="Folder for tables and pictures.")
@data_option(without="stand-ins are drawn")
@click.option("--processes", type=click.IntRange(1), help="How many at a time; by default one per core.")
def reproduce(name: str | None, quick: bool, repetitions: int, output: str, data: Data, processes: int | None) -> None:
    """Reproduce the papers' tables and figures, and more.

    Without NAME, list the experiments. NAME is one of them, a folder of them (streams, tables, beyond) or `all`. Each
    writes a CSV of every number, a picture, and a page that states the setting, the data and the result.

    Repeat an interrupted command, and it continues where it stopped: finished runs are kept in the output folder.

    \b
    Example:
      deniable reproduce streams/overall --quick
    """
    from deniable_lab.experiments.harness import experiments, named
    from deniable_lab.experiments.running import run, tasks, workers
    from deniable_lab.experiments.writing import write

    if name is None:
        listed = table("Experiments", "name", "figure", "shows", numbers_from=3)
        for known, experiment in experiments().items():
            listed.add_row(known, experiment.figure, experiment.title)
        show(listed)
        return
    chosen, folder = named(name), Path(output)
    options = " --quick" * quick + f" --repetitions {repetitions}" * (repetitions > 1)
    options += " --data DIR" * (data.folder is not None)
    with (
        workers(processes or os.cpu_count() or 1) as pool,
        writing(f"the folder {folder.name!r}", "Finished runs are kept"),
    ):
        for chosen_name, experiment in chosen.items():
            runs = experiment.runs_of or chosen_name
            kept = folder / FINISHED / f"{runs}.jsonl"
            with progress(chosen_name, len(tasks(experiment, data, quick, repetitions))) as advance:
                rows = run(
                    runs,
                    experiment,
                    data,
                    quick=quick,
                    kept=kept,
                    least=repetitions,
                    pool=pool,
                    advance=advance,
                )
            for path in write(chosen_name, experiment, rows, data, folder, options=options):
                click.echo(path)
