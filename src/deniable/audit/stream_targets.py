"""Streams under attack: clients without trust in both phases, and publishers before and after their warm-up.

Inputs of a publisher differ in one value, from one end of its range to the other.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from deniable.arrays import Integers
from deniable.audit.attack import Target
from deniable.audit.mechanism_targets import device_draws
from deniable.audit.output import Column, Output
from deniable.randomness import Source
from deniable.streams import NME, PAK, Flat, Hc16, PublicThreshold, ToPS
from deniable.streams.central.publisher import Publisher
from deniable.streams.local.stream_client import ToPLClient

_CLIENT_MOST, _CLIENT_BATCH = 10_000, 500
_BOUND, THETA = 500.0, 40.0
_TOP, _HORIZON, _WARMUP = 4, 4, 2
_STREAM_MOST, _WARMUP_MOST, _PUBLISHER_BATCH = 10_000, 1_500, 1_000
_LEARNT = ("theta", "mean", "spread", "above")

PUBLISHERS: dict[str, Callable[..., Publisher]] = {"tops": ToPS, "flat": Flat, "pak": PAK, "nme": NME, "hc16": Hc16}


def client_target(name: str, epsilon: float, theta: float | None) -> Target:
    """The report of one device about 0 or the bound, and what it sends when it is asked again under another θ."""

    def draw(worlds: Integers, source: Source) -> Output:
        first, again = [], []
        for world in worlds:
            client = _client(epsilon, source)
            first.append(client.report(world * _BOUND, theta))
            again.append(client.report(world * _BOUND, THETA / 2))
        output = _reports(first, "report")
        return output if again == first else output | _reports(again, "again")

    return Target(name, epsilon, draw, most=_CLIENT_MOST, batch=_CLIENT_BATCH)


def _client(epsilon: float, source: Source) -> ToPLClient:
    if source.simulation:
        return ToPLClient(epsilon, _BOUND, randbelow=device_draws(source))
    return ToPLClient(epsilon, _BOUND)


def _reports(reports: list[Any], title: str) -> Output:
    facts = {field: np.array([getattr(report, field) for report in reports]) for field in ("phase", "theta", "tag")}
    facts["size"] = np.array([len(report.to_bytes()) for report in reports])
    answers = {f"{title}.y": np.array([report.y for report in reports])}
    return Output(answers, {f"{title}.{field}": column for field, column in facts.items()})


# Publishers ----------------------------------------------------------------------------------------------------------


def published_target(name: str, epsilon: float, kind: Callable[..., Publisher], singly: bool = False) -> Target:
    """One value of four in a chunk differs. Every chunk has noise of its own, so one long stream holds many runs."""

    def draw(worlds: Integers, source: Source) -> Output:
        # What follows the warm-up does not depend on how θ was chosen.
        known = PublicThreshold(_TOP)
        publisher = kind(
            epsilon, _TOP, warmup=0, threshold=known, horizon=_HORIZON, source=source, simulation=source.simulation
        )
        values = np.zeros((worlds.size, _HORIZON), dtype=np.int64)
        values[:, 1] = _TOP * worlds
        flat = values.ravel()
        sent = [publisher.push(value) for value in flat.tolist()] if singly else publisher.push_many(flat)
        table = np.asarray(sent).reshape(-1, _HORIZON)
        prefixes = np.cumsum(table, axis=1)
        return Output(
            {f"value[{time}].y": table[:, time] for time in range(_HORIZON)}
            | {f"sum[{time}].y": prefixes[:, time] for time in range(1, _HORIZON)}
        )

    return Target(name, epsilon, draw, most=_STREAM_MOST, batch=_PUBLISHER_BATCH)


def warmup_target(name: str, epsilon: float, kind: Callable[..., Publisher]) -> Target:
    """One value of the warm-up differs. All that the publisher learnt from it is seen, and one chunk after it."""
    delta = kind(epsilon, _TOP, warmup=_WARMUP, horizon=_HORIZON).settings.delta

    def draw(worlds: Integers, source: Source) -> Output:
        seen: list[tuple[float, ...]] = []
        for run, world in enumerate(worlds):
            stream = source.stream("run", run)
            publisher = kind(
                epsilon, _TOP, warmup=_WARMUP, horizon=_HORIZON, source=stream, simulation=source.simulation
            )
            values = [0] * (_WARMUP - 1) + [_TOP * int(world)] + [_TOP] * _HORIZON
            sent = publisher.push_many(values)
            learnt = [getattr(publisher.learnt, field) for field in _LEARNT]
            seen.append((*(-1.0 if fact is None else fact for fact in learnt), *map(float, sent)))
        columns: list[Column] = list(np.array(seen).T)
        names = (*(f"learnt.{field}" for field in _LEARNT), *(f"value[{time}].y" for time in range(_HORIZON)))
        return Output(dict(zip(names, columns, strict=True)))

    return Target(name, epsilon, draw, delta, most=_WARMUP_MOST, batch=100)
