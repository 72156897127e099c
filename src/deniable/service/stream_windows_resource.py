"""GET /v1/streams, GET /v1/streams/{name}/series and POST /v1/streams/{name}/window: what streams have published."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from deniable.errors import BadInput, QueryRefused
from deniable.service.answers import Refused, answered
from deniable.service.authorisation import require_scope
from deniable.service.collector import Collector
from deniable.service.live_streams import LiveStream
from deniable.service.live_windows_resource import plain_estimate
from deniable.service.request_bodies import json_entries
from deniable.stores.collector.stream_log import StreamLog
from deniable.streams.central.threshold import PublicThreshold
from deniable.streams.released.keyed_release import KeyedReleased
from deniable.streams.released.released_stream import Released
from deniable.streams.released.windows import WindowEstimate
from deniable.wording import counted

LEAST_BINS, MOST_BINS = 12, 120
CLOSE_TO_THETA = 0.75
"""A mean above this share of a public θ is noticed."""
NOTICED_KEYS, _SHOWN_KEYS = 50, 3
"""How many keys of a stream are looked at whenever it has grown, and how many are named."""


async def get_streams(request: Request) -> Response:
    """Every stream: its settings, its phase, θ, and how much it has published."""
    collector: Collector = request.app.state.collector
    require_scope(collector, request, "ask")
    log, live = collector.streams, collector.live
    local = [] if log is None else [_described(log, name) for name in log.names]
    stores = [stream for stream in map(live.get, live.names) if stream is not None]
    return answered({"streams": local + [await run_in_threadpool(described_live, stream) for stream in stores]})


def described_live(stream: LiveStream) -> dict[str, Any]:
    """What is public about a stream in a store."""
    published, grid = stream.published, stream.about.publisher.grid
    theta, notice, keys = stream.theta, None, None
    if published and stream.keyed:
        keys = list(stream.by_key().keys)
        notice = stream.once("notice", published, lambda: _notices_of_keys(stream.by_key(), public_theta(stream)))
    elif published:
        notice = stream.once("notice", published, lambda: _notices(stream.released(), public_theta(stream)))
    return {
        "name": stream.name,
        "live": True,
        "keyed": stream.keyed,
        "keys": keys,
        "protects": "value" if stream.about.person is None else "person",
        "epsilon": stream.about.epsilon,
        "bound": grid.high,
        "theta": None if theta is None else grid.value(theta),
        "published": published,
        "notice": notice,
    }


def _described(log: StreamLog, name: str) -> dict[str, Any]:
    state, published = log.state(name), log.server(name).published
    return {
        "name": name,
        "live": False,
        "epsilon": state.settings["epsilon"],
        "bound": state.settings["bound"],
        "theta": state.theta,
        "first_reports": state.first_reports,
        "published": published,
        "notice": _notice(log, name) if published else None,
    }


def _notice(log: StreamLog, name: str) -> str | None:
    """Whether the newest tenth differs from everything before, beyond its error: then θ may not fit any more."""
    return _notices(log.server(name).released)


def _notices(released: Released, public: float | None = None) -> str | None:
    """What the newest tenth says: that sums press against θ, or that the stream has moved. `public`: a θ not learnt."""
    window = len(released) - max(1, len(released) // 10), len(released)
    said = [released.sum(*window).note, _close(released.mean(*window), public), _moved(released)]
    return "; ".join(words for words in said if words) or None


def public_theta(stream: LiveStream) -> float | None:
    """The θ of a stream, if it was given and not learnt: nobody knows what the stream was like then."""
    threshold = stream.about.publisher.threshold
    return threshold.theta if isinstance(threshold, PublicThreshold) else None


def _close(mean: WindowEstimate, theta: float | None) -> str | None:
    if theta is None or mean.value - 3 * mean.stderr <= CLOSE_TO_THETA * theta:
        return None
    return f"saturation: the newest mean is {mean.value:.4g}, close to θ = {theta:.4g}; whatever lies above θ is cut"


def _notices_of_keys(released: KeyedReleased, public: float | None) -> str | None:
    """The same of every key, for the keys with the most values; series show it for each key."""
    largest = sorted(released.keys, key=lambda key: -len(released[key]))[:NOTICED_KEYS]
    noticed = {key: words for key in largest if (words := _notices(released[key], public))}
    if not noticed:
        return None
    shown = "; ".join(f"{key}: {words}" for key, words in list(noticed.items())[:_SHOWN_KEYS])
    more = f"; and {counted(len(noticed) - _SHOWN_KEYS, 'more key')}" if len(noticed) > _SHOWN_KEYS else ""
    return shown + more


def _moved(released: Released) -> str | None:
    if len(released) < 200:
        return None
    cut = len(released) - len(released) // 10
    before, lately = released.mean(0, cut), released.mean(cut, len(released))
    apart = abs(lately.value - before.value)
    if apart <= 4 * float(np.hypot(lately.stderr, before.stderr)):
        return None
    return f"drift: the newest tenth has the mean {lately.value:.4g}, everything before {before.value:.4g}"


async def get_series(request: Request) -> Response:
    """Means of 12 to 120 equal stretches, each with its interval: of 100 values or more, so that it says something."""
    released = await _released(request)
    live = request.app.state.collector.live.get(request.path_params["stream"])
    public = None if live is None else public_theta(live)
    edges = np.unique(
        np.linspace(
            0, len(released), min(len(released), min(max(len(released) // 100, LEAST_BINS), MOST_BINS)) + 1
        ).astype(np.int64)
    )
    bins = [
        {"start": int(start), "stop": int(stop), **plain_estimate(released.mean(int(start), int(stop)))}
        for start, stop in pairwise(edges)
    ]
    return answered({"bins": bins, "notice": await run_in_threadpool(_notices, released, public)})


async def post_window(request: Request) -> Response:
    """Sum and mean of a window: {"start": 0, "stop": 1000}."""
    collector: Collector = request.app.state.collector
    released = await _released(request)
    entries = await json_entries(request, collector.settings, {"start", "stop"})
    start, stop = entries.get("start"), entries.get("stop")
    if type(start) is not int or type(stop) is not int:
        raise Refused(400, "window", "A window has two whole numbers, start and stop.")
    try:
        return answered(
            {"sum": plain_estimate(released.sum(start, stop)), "mean": plain_estimate(released.mean(start, stop))}
        )
    except BadInput as problem:
        raise Refused(400, "window", str(problem)) from None


async def _released(request: Request) -> Released:
    collector: Collector = request.app.state.collector
    require_scope(collector, request, "ask")
    log, name = collector.streams, request.path_params["stream"]
    if (stream := collector.live.get(name)) is not None:
        released: Released = await run_in_threadpool(_released_live, stream, request.query_params.get("key"))
        return released
    if log is None or name not in log.names:
        raise Refused(404, "stream", "There is no stream of that name.")
    server = log.server(name)
    if not server.published:
        raise Refused(409, "phase", "Nothing is published yet: the first reports choose the threshold.")
    return server.released


def _released_live(stream: LiveStream, key: str | None) -> Released:
    if stream.keyed and key is None:
        raise Refused(400, "key", "This stream has keys. Ask with key=….")
    try:
        return stream.released() if key is None else stream.by_key()[key]
    except QueryRefused as problem:
        raise Refused(409, "phase", str(problem)) from None
