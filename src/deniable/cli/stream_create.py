"""`deniable stream create`: an empty store, for a server or for a later run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from deniable.cli.ledger import opened
from deniable.cli.stream_settings import one_stream, settings_options, stream_per_key
from deniable.errors import BadInput


@click.command()
@click.argument("store", type=click.Path(file_okay=False))
@settings_options
@click.pass_context
def create(context: click.Context, /, **_: Any) -> None:
    """Make an empty STORE, and take no value.

    In the folder live/ of a folder that is served, the store is a stream of that server: values arrive by POST at
    /v1/streams/NAME, also if the server was started before. With --public-keys every value has a key, and every key a
    stream of its own. --ledger is charged now.

    \b
    Example:
      deniable stream create live/meter --epsilon 0.5 --bound 20000
      deniable stream create live/sales --epsilon 0.5 --bound 500 --public-keys
    """
    from deniable.stores.durable_publisher import DurablePublisher, charge_stream
    from deniable.stores.live.folder_files import StoreFolder

    options: dict[str, Any] = {**context.params, "most": None, "person_column": None}
    folder = StoreFolder(Path(options["store"]))
    if folder.exists:
        raise BadInput(f"{folder.path.name!r} is a store already. Nothing was written. Choose another name.")
    publisher: Any = stream_per_key(options) if options["public_keys"] else one_stream(options)
    if (ledger := opened(options["ledger"])) is not None:
        charge_stream(ledger, publisher)
    DurablePublisher(folder.path, publisher, on_bad=options["on_bad"]).close()
    click.echo(f"made {folder.path.name}: it takes values", err=True)
