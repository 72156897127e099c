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

    Starts a collector on a port of this machine. Devices of made-up people report to it over HTTP for three weeks; in
    between it is killed and started again. Then SQL is answered from the reports, with the truth next to every
    answer, an attacker and a liar try their best, and a live stream notices a shift. Writes a page with pictures,
    report.html in the folder, and leaves nothing running. With --serve, a console stays open, with devices that report
    while you look, a survey that you can answer, and a live stream.

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
