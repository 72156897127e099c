"""`deniable serve`, `deniable seal`, `deniable key` and `deniable token`: the collector from the command line."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from deniable.collection import Collection
from deniable.errors import BadInput, MissingExtra
from deniable.tables.schema.pseudonyms import PSEUDONYM
from deniable.tables.specification.specification_files import read_file
from deniable.wording import counted

_DAY_S = 86_400
_SERVER_PACKAGES = ("starlette", "uvicorn", "httptools", "prometheus_client", "mysql_mimic")
folder_argument = click.argument("folder", type=click.Path(file_okay=False))


@click.command()
@folder_argument
@click.option("--init", "specification", type=click.Path(dir_okay=False), help="Make the folder for this file.")
@click.option("--config", type=click.Path(dir_okay=False), help="Settings in a TOML or JSON file.")
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=int, help="Port; 0 takes a free one.  [default: 8710]")
@click.option("--mysql", "mysql_port", type=int, metavar="PORT", help="Port for tools that speak MySQL.")
@click.option("--open", "open_", is_flag=True, default=None, help="Take uploads without a token, on any address.")
@click.option(
    "--allow-origin", "origins", multiple=True, help="Let pages of this origin report, as https://shop.example."
)
@click.option("--check", is_flag=True, help="Check folder, settings, TLS files and streams, and start nothing.")
@click.option("--simulation", is_flag=True, help="With --init: for reports that protect nobody.")
@click.option("--store", help="With --init: a database for several collectors, postgresql://….")
@click.option("--streams", type=click.Path(dir_okay=False), help="With --init: streams without trust, in this file.")
def serve(
    folder: str,
    specification: str | None,
    config: str | None,
    host: str | None,
    port: int | None,
    mysql_port: int | None,
    open_: bool | None,
    origins: tuple[str, ...],
    check: bool,
    simulation: bool,
    store: str | None,
    streams: str | None,
) -> None:
    """Collect reports over HTTP into a folder.

    The folder can be asked meanwhile. An upload is answered after it is on the disk. Settings come from --config,
    then from variables such as DENIABLE_SERVE_PORT, then from options. On a loopback address uploads need no token;
    elsewhere they do. SIGTERM ends requests that are under way, commits them, and stops.

    \b
    Example:
      deniable serve --init shop.toml collected/
      deniable serve collected/ --port 8710
    """
    require_server()
    path = Path(folder)
    if specification is not None:
        from deniable.service.collector import init_folder
        from deniable.stores.collector.stream_log import check_streams

        chosen = None if streams is None else read_file(streams, check_streams)
        init_folder(Collection.load(specification), path, simulation=simulation, database=store, streams=chosen)
        click.echo(f"made {path.name}: start it with deniable serve {folder}", err=True)
        return
    if simulation or store is not None or streams is not None:
        option = "--simulation" if simulation else "--streams" if store is None else "--store"
        raise BadInput(f"{option} belongs to --init. Nothing was started. The folder says what it is.")
    from deniable.service.settings import load_settings

    flags = {"host": host, "port": port, "mysql_port": mysql_port, "open": open_, "origins": origins or None}
    settings = load_settings(config, flags)
    if check:
        from deniable.service.serve_check import check_serving

        check_serving(check_folder_of(path), settings)
        words = "need a token" if settings.needs_token else "are open"
        click.echo(f"settings and folder are fine: {settings.host}:{settings.port}, uploads {words}")
        return
    from deniable.service.serving import serve as serve_folder

    check_folder_of(path)
    serve_folder(path, settings, lambda address: click.echo(f"listening on {address}", err=True))


def require_server() -> None:
    """Refuse if the collector's extra is not installed, before anything is read or written."""
    for package in _SERVER_PACKAGES:
        if find_spec(package) is None:
            raise MissingExtra(package, "serve")


def check_folder_of(path: Path, *, keys: bool = True) -> Any:
    """A collector's folder; refused if it has no store, or one of another specification, or (with `keys`) no keys."""
    from deniable.engines.collecting.stored_reports import collector_folder, is_collector_folder
    from deniable.service.keys import KeyFile

    if not is_collector_folder(path):
        raise BadInput(
            f"{path.name!r} is not a folder of a collector. Nothing was started. "
            f"Make one: deniable serve --init shop.toml {path.name}"
        )
    folder = collector_folder(path)
    if keys:
        folder.open_store().close()
        KeyFile(path).keys()
    return folder


@click.command()
@folder_argument
@click.option("-o", "--out", type=click.Path(file_okay=False), help="Another folder for the files.")
def seal(folder: str, out: str | None) -> None:
    """Write what a collector has stored as Parquet.

    Rows are sorted by user id, for Spark and other readers.

    It may run meanwhile. The files replace those of an earlier seal. Where reports travel under pseudonyms, a
    collection is closed before it is sealed, and of one with rounds only closed rounds are: what is sealed twice, with
    few new reports in between, would show these.

    \b
    Example:
      deniable seal collected/
    """
    from deniable.engines.collecting.stored_reports import seal as seal_folder

    opened = check_folder_of(Path(folder))
    store = opened.open_store()
    try:
        sealed = seal_folder(opened, store, None if out is None else Path(out))
    finally:
        store.close()
    for (table, number), rows in sealed.items():
        click.echo(f"{table}, round {number}: {counted(rows, 'report')}")
    streams = dict(_sealed_streams(opened, Path(folder if out is None else out)))
    for stream, estimates in streams.items():
        click.echo(f"stream {stream}: {counted(estimates, 'estimate')}")
    if not sealed and not streams:
        click.echo("There are no reports yet. Nothing was written.", err=True)


def _sealed_streams(folder: Any, out: Path) -> Iterator[tuple[str, int]]:
    """Write what every stream has published, for `deniable stream query`; streams in their first phase have nothing."""
    from deniable.stores.collector.stream_log import StreamLog, has_streams

    if not has_streams(folder.path):
        return
    log = StreamLog(folder.path, simulation=folder.simulation)
    try:
        for name in log.names:
            server = log.server(name)
            if server.published:
                server.released.save(out / f"stream-{name}.parquet")
            yield name, server.published
    finally:
        log.close()


@click.group("round")
def round_() -> None:
    """Open and close rounds of a collection that has them. A server that runs sees changes at once."""


@round_.command("open")
@folder_argument
@click.argument("number", type=int)
def round_open(folder: str, number: int) -> None:
    """Take reports of a round from now on.

    \b
    Example:
      deniable round open collected/ 1
    """
    _set_round(folder, number, is_open=True)


@round_.command("close")
@folder_argument
@click.argument("number", type=int)
def round_close(folder: str, number: int) -> None:
    """Take no new reports of a round. Reports that are sent again are still known.

    \b
    Example:
      deniable round close collected/ 1
    """
    _set_round(folder, number, is_open=False)


def _set_round(folder: str, number: int, *, is_open: bool) -> None:
    opened = check_folder_of(Path(folder))
    if opened.collection.rounds is None:
        raise BadInput("the collection has no rounds. Nothing was changed. It takes reports as long as it is served.")
    opened.collection.rounds.check(number)
    from deniable.engines.collecting.stored_reports import check_may_open

    store = opened.open_store()
    try:
        if is_open:
            check_may_open(opened, store, number)
        store.set_round(number, is_open=is_open)
        now_open = sorted(number for number, takes_reports in store.summary().rounds.items() if takes_reports)
    finally:
        store.close()
    click.echo(f"Open rounds: {', '.join(map(str, now_open)) or 'none'}.", err=True)


@click.group()
def key() -> None:
    """Keys of analysts and operators, and the secrets of tokens. A server that runs sees changes at once."""


@key.command("add")
@folder_argument
@click.argument("name")
@click.option("--scope", type=click.Choice(["ask", "operate", "publish"]), required=True, help="What the key is for.")
@click.option("--days", type=click.IntRange(1, 3660), help="How long it is valid; without it, until it is revoked.")
def key_add(folder: str, name: str, scope: str, days: int | None) -> None:
    """Make a key and print it: it is shown once.

    \b
    Example:
      deniable key add collected/ dashboard --scope ask --days 90
    """
    from deniable.service.keys import Keys

    made: list[str] = []

    def add(keys: Keys) -> Keys:
        expires = None if days is None else int(time.time()) + days * _DAY_S
        changed, text = keys.with_key(name, scope, expires)
        made.append(text)
        return changed

    _key_file(folder).change(add)
    click.echo(made[0])


@key.command("list")
@folder_argument
def key_list(folder: str) -> None:
    """List keys with their scopes, and secrets of tokens by number.

    \b
    Example:
      deniable key list collected/
    """
    keys = _key_file(folder).keys()
    for named in keys.keys:
        until = "" if named.expires is None else f"  until {time.strftime('%Y-%m-%d', time.gmtime(named.expires))}"
        click.echo(f"{named.name}  {named.scope}{until}")
    for number in keys.token_secrets:
        click.echo(f"tokens-{number}  tokens")


@key.command("revoke")
@folder_argument
@click.argument("name")
def key_revoke(folder: str, name: str) -> None:
    """Revoke a key, or all tokens that were made with one secret.

    \b
    Example:
      deniable key revoke collected/ tokens-1
    """
    _key_file(folder).change(lambda keys: keys.without(name))


@key.command("rotate")
@folder_argument
def key_rotate(folder: str) -> None:
    """Make new tokens with a new secret. Older tokens stay valid until their secret is revoked.

    \b
    Example:
      deniable key rotate collected/
    """
    keys = _key_file(folder).change(lambda keys: keys.with_new_secret())
    click.echo(f"new tokens are made with tokens-{max(map(int, keys.token_secrets))}", err=True)


@click.command()
@folder_argument
@click.argument("users", nargs=-1, metavar="[USER]...")
@click.option("--days", type=click.IntRange(1, 3660), default=30, show_default=True, help="How long tokens are valid.")
def token(folder: str, users: tuple[str, ...], days: int) -> None:
    """Print a token for each user id.

    Without ids, print one for each line of stdin.

    \b
    Example:
      deniable token collected/ 7 8 --days 90
    """
    from deniable.service.tokens import make_token

    secrets, collection = _key_file(folder).keys().token_secrets, check_folder_of(Path(folder)).collection
    if collection.ids == PSEUDONYM:
        raise BadInput(
            "reports travel under pseudonyms here, and a token would say whose they are. Nothing was made. "
            "List the mixer's address in proxies, or serve with --open."
        )
    expires = int(time.time()) + days * _DAY_S
    for uid in users or (line.rstrip("\r\n") for line in sys.stdin):
        click.echo(make_token(secrets, uid, expires, collection.sha256))


def _key_file(folder: str) -> Any:
    from deniable.service.keys import KeyFile

    check_folder_of(Path(folder))
    return KeyFile(Path(folder))
