"""`deniable demo --serve`: a collector with its console, made-up devices, a survey, and a live stream.

Devices run in a thread and speak HTTP, as real ones do. Their rows are made up, their reports are randomised for real.
"""

from __future__ import annotations

import http.client
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import numpy as np

from deniable.cli.demo import meters, shop, survey
from deniable.cli.demo.collector_requests import asked
from deniable.cli.demo.console_keys import made_keys
from deniable.cli.serve import require_server
from deniable.client import ToPLClient
from deniable.collection import Collection
from deniable.errors import BadInput, DeniableError
from deniable.tables import Categorical, Ordinal, Public, Table
from deniable.tables.reports.upload_format import REPORT_LINES
from deniable.tables.specification.runs import SPECIFICATION_FILE

STREAM, STREAM_SETTINGS = "watts", {"epsilon": 2.0, "bound": 5_000, "first": 500}
AT_ONCE, FIRST_PEOPLE = 50, 2_000
BATCH_PAUSE_S = 1.0
"""Between two batches of devices, after the first people."""


def serve_demo(folder: Path, port: int, people: int) -> None:
    """Make a collector in the folder, start devices, and serve until Ctrl-C."""
    require_server()
    from deniable.service.collector import init_folder
    from deniable.service.logs import LOGGER
    from deniable.service.serving import serve
    from deniable.service.settings import ServeSettings

    collected = folder / "open-shop"
    collection = specification()
    make_room(collected, collection)
    init_folder(collection, collected, streams={STREAM: STREAM_SETTINGS})
    keys = made_keys(collected)
    page = survey.SurveyPage(collection)

    def started(address: str) -> None:
        click.echo(f"\nThe console: {address}/")
        for scope, key in keys.items():
            click.echo(f"  key to {scope}: {key}")
        click.echo(f"A survey to answer yourself, which reports into it: {page.reporting_to(address)}")
        click.echo("Devices report while it runs. Ctrl-C ends it.")
        LOGGER.setLevel(logging.WARNING)  # a line for each request would carry the keys away
        devices = threading.Thread(target=report_for_ever, args=(address, collection, people), daemon=True)
        devices.start()

    try:
        serve(collected, ServeSettings(port=port, origins=(page.origin,)), started)
    finally:
        page.close()


def specification() -> Collection:
    """The tables of the shop and of the survey, and the one ε over all three."""
    users = Table("users", age=Ordinal(1, 95), marital=Categorical(*shop.MARITAL), city=Public())
    tables = (users, shop.specification()["orders"], survey.table())
    return Collection(*tables, epsilon=shop.EPSILON_PER_PERSON, name="shop", coins="assigned")


def make_room(folder: Path, collection: Collection) -> None:
    """Remove what an earlier run collected; refuse a folder with anything else in it."""
    if not folder.exists():
        return
    try:
        ours = Collection.load(folder / SPECIFICATION_FILE) == collection
    except DeniableError:
        ours = False
    if not ours:
        raise BadInput(
            f"{str(folder)!r} exists and was not written by this demonstration. Nothing was drawn or written. "
            "Name another folder with --out."
        )
    shutil.rmtree(folder)


def report_for_ever(
    address: str, collection: Collection, people: int, sleep: Callable[[float], None] = time.sleep
) -> int:
    """Send reports of made-up people, the first at once, then a batch a second. Returns how many people reported."""
    reported = 0
    theta: float | None = None
    watts = meters.meter_readings(people, np.random.default_rng(3), int(STREAM_SETTINGS["bound"]))
    for batch in _batches(people):
        lines = [line for person in batch for line in _lines(collection, person)]
        values = watts[reported : reported + len(batch)].tolist()
        client = ToPLClient(STREAM_SETTINGS["epsilon"], STREAM_SETTINGS["bound"], name=STREAM)
        readings = [
            client.fresh(value, theta).to_json(str(person["uid"])) for person, value in zip(batch, values, strict=True)
        ]
        try:
            _send(address, f"/v1/collections/{collection.name}/reports", lines)
            _send(address, f"/v1/collections/{collection.name}/streams/{STREAM}/reports", readings)
            theta = asked(address, f"/v1/collections/{collection.name}")["streams"][STREAM]["theta"]
        except (OSError, http.client.HTTPException, ValueError, KeyError):
            return reported  # the server has ended
        reported += len(batch)
        if reported >= FIRST_PEOPLE:
            sleep(BATCH_PAUSE_S)
    return reported


def _batches(people: int) -> Iterator[list[dict[str, Any]]]:
    """Made-up people with their orders and answers, some at a time."""
    made = shop.made_up(people)
    orders: dict[str, list[dict[str, Any]]] = {}
    for row in made.orders.drop_columns(["number"]).to_pylist():
        orders.setdefault(row.pop("uid"), []).append(row)
    answers = survey.made_up_answers(people)
    users = [{**user, "answers": answer} for user, answer in zip(made.users.to_pylist(), answers, strict=True)]
    for start in range(0, people, AT_ONCE):
        yield [{**user, "orders": orders.get(user["uid"], [])} for user in users[start : start + AT_ONCE]]


def _lines(collection: Collection, person: dict[str, Any]) -> Iterator[str]:
    """What one device sends about tables."""
    uid = str(person["uid"])
    client = collection.client(user=uid)
    own = {name: person[name] for name in ("age", "marital")}
    for report in client.reports("users", [own]):
        yield report.to_json(uid, "users", {"city": person["city"]})
    for report in client.reports("orders", person["orders"]):
        yield report.to_json(uid, "orders")
    for report in client.reports("answers", [person["answers"]]):
        yield report.to_json(uid, "answers")


def _send(address: str, path: str, lines: list[str]) -> None:
    asked(address, path, "\n".join(lines).encode(), content_type=REPORT_LINES)
