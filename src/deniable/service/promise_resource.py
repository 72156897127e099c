"""GET /v1/promise: what the collection and its streams promise, in words, as numbers, and as a page to sign."""

from __future__ import annotations

import math
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from deniable.collection import Collection
from deniable.promise import PromiseNumbers, facts, page
from deniable.service.answers import answered
from deniable.service.authorisation import require_scope
from deniable.service.collector import Collector
from deniable.stream_promise import device_stream_promise, published_stream_promise


async def get_promise(request: Request) -> Response:
    """The promise, and what one person spends over a lifetime on everything that this collector takes."""
    collector: Collector = request.app.state.collector
    require_scope(collector, request, "ask")
    collection = Collection.of(collector.folder.collection)
    numbers = PromiseNumbers.of(collection)
    charges = [(f"collection {collector.name}", numbers.one_round, numbers.lifetime)]
    if (streams := collector.streams) is not None:
        for name in streams.names:
            epsilon = float(streams.state(name).settings["epsilon"])
            charges.append((f"stream {name}", epsilon, epsilon))
    return answered(
        {
            "promise": facts(collection),
            "streams": await run_in_threadpool(_stream_promises, collector),
            "charges": [
                {"what": what, "one_round": _number(once), "lifetime": _number(lifetime)}
                for what, once, lifetime in charges
            ],
            "total": _number(math.fsum(lifetime for _, _, lifetime in charges)),
            "page": page(collection),
        }
    )


def _stream_promises(collector: Collector) -> list[dict[str, Any]]:
    """What every stream promises, in words: those of devices, and those of stores."""
    log, live = collector.streams, collector.live
    promised = []
    for name in [] if log is None else log.names:
        settings = log.state(name).settings  # type: ignore[union-attr]
        promised.append((name, device_stream_promise(float(settings["epsilon"]), float(settings["bound"]))))
    stores = [stream for stream in map(live.get, live.names) if stream is not None]
    promised += [(stream.name, published_stream_promise(stream.about)) for stream in stores]
    return [{"name": name, "promise": words} for name, words in promised]


def _number(epsilon: float) -> float | str:
    return "inf" if math.isinf(epsilon) else epsilon
