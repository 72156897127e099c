"""GET /v1/promise: what the collection and its streams promise, in words, as numbers, and as a page to sign."""

from __future__ import annotations

import math

from starlette.requests import Request
from starlette.responses import Response

from deniable.collection import Collection
from deniable.promise import PromiseNumbers, facts, page
from deniable.service.answers import answered
from deniable.service.authorisation import require_scope
from deniable.service.collector import Collector


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
            "charges": [
                {"what": what, "one_round": _number(once), "lifetime": _number(lifetime)}
                for what, once, lifetime in charges
            ],
            "total": _number(math.fsum(lifetime for _, _, lifetime in charges)),
            "page": page(collection),
        }
    )


def _number(epsilon: float) -> float | str:
    return "inf" if math.isinf(epsilon) else epsilon
