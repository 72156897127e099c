"""GET /v1/streams, GET /v1/streams/{name}/series and POST /v1/streams/{name}/window: what streams have published."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from starlette.requests import Request
from starlette.responses import Response

from deniable.errors import BadInput
from deniable.service.answers import Refused, answered
from deniable.service.authorisation import require_scope
from deniable.service.collector import Collector
from deniable.service.request_bodies import json_entries
from deniable.stores.collector.stream_log import StreamLog
from deniable.streams.released.released_stream import Released
from deniable.streams.released.windows import WindowEstimate

MOST_BINS = 120


async def get_streams(request: Request) -> Response:
    """Every stream: its settings, its phase, θ, and how much it has published."""
    collector: Collector = request.app.state.collector
    require_scope(collector, request, "ask")
    log = collector.streams
    return answered({"streams": [] if log is None else [_described(log, name) for name in log.names]})


def _described(log: StreamLog, name: str) -> dict[str, Any]:
    state, published = log.state(name), log.server(name).published
    return {
        "name": name,
        "epsilon": state.settings["epsilon"],
        "bound": state.settings["bound"],
        "theta": state.theta,
        "first_reports": state.first_reports,
        "published": published,
        "notice": _notice(log, name) if published else None,
    }


def _notice(log: StreamLog, name: str) -> str | None:
    """Whether the newest tenth differs from everything before, beyond its error: then θ may not fit any more."""
    released = log.server(name).released
    if len(released) < 200:
        return None
    cut = len(released) - len(released) // 10
    before, lately = released.mean(0, cut), released.mean(cut, len(released))
    apart = abs(lately.value - before.value)
    if apart <= 4 * float(np.hypot(lately.stderr, before.stderr)):
        return None
    return f"drift: the newest tenth has the mean {lately.value:.4g}, everything before {before.value:.4g}"


async def get_series(request: Request) -> Response:
    """Means of up to 120 equal stretches, each with its interval."""
    released = _released(request)
    edges = np.unique(np.linspace(0, len(released), min(MOST_BINS, len(released)) + 1).astype(np.int64))
    bins = [
        {"start": int(start), "stop": int(stop), **_plain(released.mean(int(start), int(stop)))}
        for start, stop in pairwise(edges)
    ]
    return answered({"bins": bins})


async def post_window(request: Request) -> Response:
    """Sum and mean of a window: {"start": 0, "stop": 1000}."""
    collector: Collector = request.app.state.collector
    released = _released(request)
    entries = await json_entries(request, collector.settings, {"start", "stop"})
    start, stop = entries.get("start"), entries.get("stop")
    if type(start) is not int or type(stop) is not int:
        raise Refused(400, "window", "A window has two whole numbers, start and stop.")
    try:
        return answered({"sum": _plain(released.sum(start, stop)), "mean": _plain(released.mean(start, stop))})
    except BadInput as problem:
        raise Refused(400, "window", str(problem)) from None


def _released(request: Request) -> Released:
    collector: Collector = request.app.state.collector
    require_scope(collector, request, "ask")
    log, name = collector.streams, request.path_params["stream"]
    if log is None or name not in log.names:
        raise Refused(404, "stream", "There is no stream of that name.")
    server = log.server(name)
    if not server.published:
        raise Refused(409, "phase", "Nothing is published yet: the first reports choose the threshold.")
    return server.released


def _plain(window: WindowEstimate) -> dict[str, Any]:
    low, high = window.interval
    note = {} if window.note is None else {"note": window.note}
    return {**note, "value": window.value, "error": window.error, "low": low, "high": high}
