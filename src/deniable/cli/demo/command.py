"""`deniable demo`."""

from __future__ import annotations

from pathlib import Path

import click

from deniable.cli.terminal import count


@click.command()
@click.option(
    "-o", "--out", default="demo", show_default=True, type=click.Path(file_okay=False), help="Folder to write to."
)
@click.option("--users", type=count, default=200_000, show_default=True, help="How many people: 20,000 to 2,000,000.")
@click.option("--seed", type=int, default=None, help="Repeat a run; a simulation, not a release.")
@click.option("--serve", is_flag=True, help="Open a console instead, with devices that report while you look.")
@click.option("--port", type=int, default=8710, show_default=True, help="With --serve: port; 0 takes a free one.")
def demo(out: str, users: int, seed: int | None, serve: bool, port: int) -> None:
    """Ask about 200,000 people without learning about any one.

    Randomises made-up rows on simulated devices, answers SQL from the reports, shows the truth next to every answer,
    mounts an attack, publishes a stream, and writes a page with pictures: report.html in the folder. With --serve,
    the same shop is collected from devices over HTTP, with a survey that you can answer and a live stream, and the
    console shows it in a browser.

    \b
    Example:
      deniable demo
      deniable demo --serve
    """
    if serve:
        from deniable.cli.demo.live_shop import serve_demo

        serve_demo(Path(out), port, users)
        return
    from deniable.cli.demo.story import run

    run(out, users, seed)
