"""`deniable demo`."""

from __future__ import annotations

import click

from deniable.cli.terminal import count


@click.command()
@click.option(
    "-o", "--out", default="demo", show_default=True, type=click.Path(file_okay=False), help="Folder to write to."
)
@click.option("--users", type=count, default=200_000, show_default=True, help="How many people: 20,000 to 2,000,000.")
@click.option("--seed", type=int, default=None, help="Repeat a run; a simulation, not a release.")
def demo(out: str, users: int, seed: int | None) -> None:
    """Ask about 200,000 people without learning about any one.

    Randomises made-up rows on simulated devices, answers SQL from the reports, shows the truth next to every answer,
    mounts an attack, publishes a stream, and writes a page with pictures: report.html in the folder.

    \b
    Example:
      deniable demo
    """
    from deniable.cli.demo.story import run

    run(out, users, seed)
