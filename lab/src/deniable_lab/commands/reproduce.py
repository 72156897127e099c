"""`deniable reproduce`: the papers' tables and figures."""

from __future__ import annotations

import os
from pathlib import Path

import click

from deniable.cli.terminal import progress, show, table
from deniable.disk_faults import writing

FINISHED = ".finished"


@click.command()
@click.argument("name", required=False)
@click.option("--quick", is_flag=True, help="Fewer settings and repetitions: all within ten minutes on two cores.")
@click.option("-o", "--output", default="results", show_default=True, help="Folder for tables and pictures.")
@click.option("--data", type=click.Path(file_okay=False), help="Folder of real data; without it stand-ins are drawn.")
@click.option("--processes", type=click.IntRange(1), help="At a time; as many as there are cores if left out.")
def reproduce(name: str | None, quick: bool, output: str, data: str | None, processes: int | None) -> None:
    """Make tables and figures of both papers anew.

    Without NAME, list the experiments. NAME is one of them, a folder of them (streams, tables) or `all`. Each writes
    a CSV of every number, a picture, and a page that states the setting, the data and what was found.

    An interrupted command goes on where it was when it is repeated: finished runs are kept in the output folder.

    \b
    Example:
      deniable reproduce streams/overall --quick
    """
    from deniable_lab.experiments.harness import Data, experiments, named
    from deniable_lab.experiments.running import run, tasks, workers
    from deniable_lab.experiments.writing import write

    if name is None:
        made = table("Experiments", "name", "figure", "shows", numbers_from=3)
        for one, experiment in experiments().items():
            made.add_row(one, experiment.figure, experiment.title)
        show(made)
        return
    chosen, source, folder = named(name), Data(Path(data) if data else None), Path(output)
    with (
        workers(processes or os.cpu_count() or 1) as pool,
        writing(f"the folder {folder.name!r}", "Finished runs are kept"),
    ):
        for one, experiment in chosen.items():
            runs = experiment.runs_of or one
            kept = folder / FINISHED / f"{runs}.jsonl"
            with progress(one, len(tasks(experiment, source, quick))) as advance:
                rows = run(runs, experiment, source, quick=quick, kept=kept, pool=pool, advance=advance)
            for path in write(one, experiment, rows, source, folder, quick=quick):
                click.echo(path)
