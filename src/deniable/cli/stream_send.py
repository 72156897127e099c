"""`deniable stream send`: what a store publishes, to a topic of a broker."""

from __future__ import annotations

import time
from pathlib import Path

import click


@click.command()
@click.argument("store")
@click.argument("address")
@click.option("--poll", type=click.FloatRange(0.01), default=0.5, show_default=True, help="Seconds between two looks.")
@click.option("--stop", "stops", is_flag=True, help="Stop where nothing more is published by now.")
def send(store: str, address: str, poll: float, stops: bool) -> None:
    """Send what a live STORE publishes to a broker.

    ADDRESS is mqtt://HOST/TOPIC or kafka://HOST/TOPIC. Every value is one JSON object with its position. After a stop
    or a crash, the same command goes on where it ended.

    \b
    Example:
      deniable stream send meter/ mqtt://localhost/private/meter
    """
    from deniable.stores.brokers import send_published

    before, begun = -1, None
    for sent in send_published(Path(store), address):
        begun = sent if begun is None else begun
        if sent == before:
            if stops:
                break
            time.sleep(poll)
        before = sent
    if begun is not None:
        click.echo(f"{before - begun:,} values sent; the next one is {before:,}", err=True)
