"""GET /v1/key, GET /v1/status and POST /v1/rounds: what a key is for, what has arrived, and which rounds are open."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from deniable.engines.collecting.stored_reports import check_may_open
from deniable.errors import BadInput
from deniable.service.answers import Refused, answered
from deniable.service.authorisation import bearer, refuse_expired, require_scope
from deniable.service.collector import Collector
from deniable.service.keys import SCOPES
from deniable.service.logs import log
from deniable.service.request_bodies import json_entries
from deniable.stores.collector.upload import StoreSummary
from deniable.tables.schema.rounds import Rounds


async def get_key(request: Request) -> Response:
    """The scope of the key that a request shows."""
    collector: Collector = request.app.state.collector
    presented, keys = bearer(request.headers), collector.keys.keys()
    if presented is not None:
        refuse_expired(keys, presented, collector.now())
    for scope in SCOPES:
        if presented is not None and keys.allows(presented, scope, collector.now()):
            return answered({"scope": scope, "collection": collector.name})
    raise Refused(401 if presented is None else 403, "key", "The key is not known here, or was revoked.")


async def get_status(request: Request) -> Response:
    """What has arrived, what was refused and why, rounds, and health; with a key of the scope operate."""
    collector: Collector = request.app.state.collector
    require_scope(collector, request, "operate")
    metrics, summary = collector.metrics, collector.store.summary()
    outcomes = {word: int(metrics.reports.labels(word)._value.get()) for word in ("accepted", "repeated")}
    refused = {
        sample.labels["reason"]: int(sample.value)
        for metric in metrics.refused.collect()
        for sample in metric.samples
        if sample.name.endswith("_total")
    }
    return answered(
        {
            "name": collector.name,
            "ready": collector.is_ready,
            "queued": collector.writer.queued,
            "free_bytes": collector.free_bytes(),
            **outcomes,
            "refused": refused,
            "reports": _reports(collector, summary),
            "rounds": _rounds(collector.folder.collection.rounds, summary),
        }
    )


def _reports(collector: Collector, summary: StoreSummary) -> list[dict[str, Any]]:
    """Reports by table and round; as everybody sends the same number of them, also how many people there are."""
    collection = collector.folder.collection
    return [
        {"table": table, "round": number, "reports": rows, "users": rows // collection.reports_per_user(table)}
        for (table, number), rows in sorted(summary.counts.items())
    ]


def _rounds(rounds: Rounds | None, summary: StoreSummary) -> dict[str, Any] | None:
    if rounds is None:
        return None
    states = [{"round": number, "open": summary.rounds.get(number)} for number in range(1, rounds.count + 1)]
    return {"mode": rounds.mode, "count": rounds.count, "states": states}


async def post_round(request: Request) -> Response:
    """Open or close a round: {"round": 7, "open": true}."""
    collector: Collector = request.app.state.collector
    require_scope(collector, request, "operate")
    entries = await json_entries(request, collector.settings, {"round", "open"})
    number, is_open, rounds = entries.get("round"), entries.get("open"), collector.folder.collection.rounds
    if rounds is None:
        raise Refused(400, "rounds", "The collection has no rounds. Nothing was changed.")
    if not isinstance(is_open, bool):
        raise Refused(400, "rounds", "Say whether the round is open: true or false. Nothing was changed.")
    try:
        rounds.check(number)
        if is_open:
            check_may_open(collector.folder, collector.store, int(number or 0))
    except BadInput as problem:
        raise Refused(400, "rounds", str(problem)) from None
    assert isinstance(number, int)  # noqa: S101 - `check` has seen to it
    collector.store.set_round(number, is_open=is_open)
    log("round opened" if is_open else "round closed", round=number)
    return answered({"round": number, "open": is_open})
