"""GET /v1/collections/{name}: everything that a device has to know before it reports."""

from __future__ import annotations

import hashlib
import json

from starlette.requests import Request
from starlette.responses import Response

from deniable.service.answers import Refused
from deniable.service.collector import Collector
from deniable.stores.collector.stream_log import StreamLog
from deniable.tables.reports.upload_format import BINARY_REPORTS, REPORT_LINES

CACHE_SECONDS = 60


async def no_such_collection(_: Request) -> Response:
    """Reports for a collection that this collector does not have."""
    raise Refused(404, "collection", "There is no collection of that name.")


async def get_collection(request: Request) -> Response:
    """The specification, open rounds and limits, with an ETag."""
    collector: Collector = request.app.state.collector
    if request.path_params["name"] != collector.name:
        raise Refused(404, "collection", "There is no collection of that name.")
    text = json.dumps(_description(collector), ensure_ascii=False, separators=(",", ":")).encode()
    tag = f'"{hashlib.sha256(text).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": f"max-age={CACHE_SECONDS}"}
    if tag in (part.strip() for part in request.headers.get("if-none-match", "").split(",")):
        return Response(status_code=304, headers=headers)
    return Response(text, media_type="application/json", headers=headers)


def _description(collector: Collector) -> dict[str, object]:
    folder, settings = collector.folder, collector.settings
    return {
        "name": collector.name,
        "sha256": folder.collection.sha256,
        "simulation": folder.simulation,
        "specification": folder.collection.to_dict(),
        "open_rounds": sorted(number for number, is_open in collector.store.summary().rounds.items() if is_open),
        "limits": {
            "body_bytes": settings.body_bytes,
            "unpacked_bytes": settings.unpacked_bytes,
            "reports_per_request": settings.reports_per_request,
        },
        "media_types": [BINARY_REPORTS, REPORT_LINES],
        "streams": {} if collector.streams is None else _streams(collector.streams),
    }


def _streams(log: StreamLog) -> dict[str, object]:
    """What devices have to know about streams: settings, phase and, once it is announced, θ."""
    return {
        name: {**state.settings, "sha256": state.sha256, "phase": 1 if state.theta is None else 2, "theta": state.theta}
        for name, state in ((name, log.state(name)) for name in log.names)
    }
