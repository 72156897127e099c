"""Whether the views and seeds that devices say they drew look drawn: a chi-square test of each table.

A device that draws its coins may also choose them: reports of the views and seeds that move an answer most. Chosen ones
are not spread as drawn ones are. The test says so if that is less likely than one in a million by chance; a few
forged reports among many stay unnoticed. With assigned coins there is nothing to test.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy  # its parts are loaded on first use

from deniable.arrays import Booleans, Floats, Integers
from deniable.engines.engine import Engine
from deniable.queries.planning.plan import Plan
from deniable.tables.schema.report_format import DRAWN, SEED_BITS

COIN_FALSE_ALARM = 1e-6
"""For each table: half of it for views, half for seeds."""
MOST_TESTED_VIEWS = 2**12
FEWEST_EXPECTED = 20.0
"""Views with fewer expected reports are counted together."""
_SEED_BINS_BITS = 6
MOST_TRIED_REPORTS = 2**18
"""Coins of more reports are looked at only when it has to be exact."""


class DrawnCoins:
    """Notes about tables whose coins do not look drawn; each table is tested once. Threads may share it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._notes: dict[str, str | None] = {}

    def notes(self, tables: Iterable[str]) -> tuple[str, ...]:
        """What has to be said below an answer from some tables."""
        if self._engine.collection.coins != DRAWN:
            return ()
        for name in tables:
            if name not in self._notes and name in self._engine.stores:
                self._notes[name] = self._tested(name)
        return tuple(note for name in tables if (note := self._notes.get(name)) is not None)

    def _tested(self, name: str) -> str | None:
        odd = [what for what, chance in self._chances(name).items() if chance < COIN_FALSE_ALARM / 2]
        if not odd:
            return None
        return (
            f"coins: {' and '.join(odd)} of table {name!r} are not spread as drawn ones are (by chance in fewer than 1 "
            "of 1,000,000 collections): somebody may have chosen them"
        )

    def _chances(self, name: str) -> dict[str, float]:
        """How likely so uneven numbers are by chance: of the reports of each view, and of each range of seeds."""
        store, design = self._engine.stores[name], self._engine.collection.design_of(name)
        if design.views > MOST_TESTED_VIEWS or not store.rows:
            return {}
        views = list(design)
        counts = store.view_counts(design.views)
        reports = store.rows / len(design.parts)
        squares, freedom = 0.0, 0
        for part in range(len(design.parts)):
            mine = [view.number for view in views if view.part == part]
            expected = np.array([float(views[number].probability) for number in mine]) * reports
            more, free = chi_square(counts[mine].astype(np.float64), expected)
            squares, freedom = squares + more, freedom + free
        chances = {"views": _chance(squares, freedom)}
        hashed = np.array([view.oracle.seeds == 1 << SEED_BITS for view in views])
        if hashed.any() and (seeds := _seed_ranges(store, hashed)) is not None:
            while seeds.size > 1 and seeds.sum() < seeds.size * FEWEST_EXPECTED:
                seeds = seeds.reshape(-1, 2).sum(axis=1)
            squares, freedom = chi_square(seeds.astype(np.float64), np.full(seeds.size, seeds.sum() / seeds.size))
            chances["seeds"] = _chance(squares, freedom)
        return chances


def _chance(squares: float, freedom: int) -> float:
    """How likely such a sum of squares or a larger one is; 1 where it is too ordinary for an alarm."""
    # The law is skewed to the right: beyond three standard deviations there is more than a thousandth of it.
    if squares <= freedom + 3.0 * math.sqrt(2.0 * freedom):
        return 1.0
    return float(scipy.special.chdtrc(freedom, squares))


def _seed_ranges(store: Any, hashed: Booleans) -> Integers | None:
    """How many reports of hashed views have a seed in each range; None if an engine can neither read nor count them."""
    if hasattr(store, "seed_ranges"):
        counted: Integers = store.seed_ranges(hashed, _SEED_BINS_BITS)
        return counted
    if not hasattr(store, "read"):
        return None
    seeds: Integers = np.zeros(1 << _SEED_BINS_BITS, dtype=np.int64)
    for block in store.read(("view", "seed")):
        mine = np.asarray(block.reports["seed"])[hashed[np.asarray(block.reports["view"])]]
        seeds += np.bincount(mine >> (SEED_BITS - _SEED_BINS_BITS), minlength=seeds.size)
    return seeds


def reported_coins(engine: Engine, plan: Plan, *, exact: bool) -> dict[str, tuple[Integers, Integers]]:
    """The views and seeds of the reports of a question's only table, where they are assigned; of many if `exact`."""
    if engine.collection.coins == DRAWN or len(plan.tables) != 1:
        return {}
    name = plan.tables[0].table
    store: Any = engine.stores[name]
    if not hasattr(store, "read") or not store.rows or (store.rows > MOST_TRIED_REPORTS and not exact):
        return {}
    blocks = [block.reports for block in store.read(("view", "seed"))]
    view, seed = (np.concatenate([np.asarray(block[column]) for block in blocks]) for column in ("view", "seed"))
    return {name: (view.astype(np.int64), seed.astype(np.int64))}


def chi_square(counts: Floats, expected: Floats) -> tuple[float, int]:
    """Σ (counted − expected)²/expected and its degrees of freedom; what is rarely expected is counted together."""
    rare = expected < FEWEST_EXPECTED
    if rare.any():
        counts = np.append(counts[~rare], counts[rare].sum())
        expected = np.append(expected[~rare], expected[rare].sum())
        if expected[-1] < FEWEST_EXPECTED and expected.size > 1:
            counts[-2], expected[-2] = counts[-2] + counts[-1], expected[-2] + expected[-1]
            counts, expected = counts[:-1], expected[:-1]
    if expected.size < 2:
        return 0.0, 0
    return float((np.square(counts - expected) / expected).sum()), expected.size - 1
