"""What an audit attacks: everything by default, or the clients of one specification."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from deniable.audit.attack import Target
from deniable.audit.client_targets import bulk_target, device_target
from deniable.audit.mechanism_targets import Make, mechanism_targets
from deniable.audit.people import PAIRS
from deniable.audit.stream_targets import PUBLISHERS, THETA, client_target, published_target, warmup_target
from deniable.collection import Collection
from deniable.streams import ToPS
from deniable.tables.schema.attributes import Categorical, Ordinal, Table

_SAMPLE_USERS = Table("users", age=Ordinal(1, 95), marital=Categorical("married", "single", "widowed"))
_SAMPLE_ORDERS = Table("orders", many=5, tau=2, amount=Ordinal(0, 20))
SAMPLES: dict[str, tuple[Table, ...]] = {
    "hio": (_SAMPLE_USERS, _SAMPLE_ORDERS),
    "ahio": (_SAMPLE_ORDERS,),
    "sc": (_SAMPLE_USERS, _SAMPLE_ORDERS),
}
"""The designs whose clients are attacked by default, and the tables they are attacked with."""
_SAMPLE_GRID = {"orders": [{"axes": {"amount": {"cells": [0, 5, 10]}}}]}


def targets() -> dict[str, Make]:
    """Everything: all mechanisms, clients of several designs, clients and publishers of streams."""
    made: dict[str, Make] = mechanism_targets()
    for design, tables in SAMPLES.items():
        made |= collection_targets(Collection(*tables, epsilon=1.0, design=design), f"{design}, ")
    made |= collection_targets(Collection(_SAMPLE_ORDERS, epsilon=1.0, design="grid", grids=_SAMPLE_GRID), "grid, ")
    for report, theta in (("first report", None), ("second report", THETA)):
        made |= _named(f"topl, {report}", client_target, theta)
    for kind, publisher in PUBLISHERS.items():
        made |= _named(f"{kind}, published", published_target, publisher)
        made |= _named(f"{kind}, warm-up", warmup_target, publisher)
    return made | _named("tops, pushed singly", published_target, ToPS, True)


def collection_targets(collection: Collection, prefix: str = "") -> dict[str, Make]:
    """The clients of a specification, at any ε: from a device and in bulk, for several pairs of users."""
    made: dict[str, Make] = {}
    for path, target in (("device", device_target), ("bulk", bulk_target)):
        for pair in PAIRS:
            made |= _named(f"{prefix}{path}, {pair[0]} or {pair[1]}", _of_collection, target, collection, pair)
    return made


def _named(name: str, target: Callable[..., Target], *facts: Any) -> dict[str, Make]:
    return {name: lambda epsilon: target(name, epsilon, *facts)}


def _of_collection(
    name: str, epsilon: float, target: Callable[..., Target], collection: Collection, pair: Any
) -> Target:
    return target(name, Collection.from_dict({**collection.to_dict(), "epsilon": epsilon}), pair)
