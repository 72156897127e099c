"""How far a lying user can move an answer: from a plan alone, before or after anything is collected.

A report contributes w(view, seed, y). With drawn coins a liar chooses all three; with assigned coins only y, so that

    max_y w(view, seed, y) − min_y w(view, seed, y)

is how far he moves a sum, at the view and seed that are his. Over several reports these add up, and over joined tables
the contributions multiply: the extremes of a product of intervals are at their ends.

Where a view hashes, w depends on which cells share a bucket. The bound counts every cell with a positive weight and
none with a negative one; a liar reaches it if one of the 2^32 seeds separates them. With drawn coins seeds are tried
until that happens: a million of them or, if it has to be exact, all. With assigned coins the views and seeds of the
people who have reported are known, and each of them is tried. What was tried is what a liar reaches; where that is
everything he could do, it is exact, and otherwise the bound is stated next to it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from deniable.arrays import Floats, Integers, Words32
from deniable.mechanisms.frequency_oracle import HashedCells, MaskedCells, NamedCell
from deniable.mechanisms.hashing import cell_keys
from deniable.queries.answers.estimation import Moments
from deniable.queries.planning.plan import Plan
from deniable.queries.question.formula import gradient_at
from deniable.queries.weights.table_plan import PartPlan, TablePlan, ViewWeights
from deniable.randomness import SeededSource
from deniable.tables.schema.report_format import ASSIGNED
from deniable.tables.schema.rounds import stands_for

TRIED_USERS = 2_000
"""Coins of so many users are tried, always the same ones."""
TRIED_SEEDS = 4_096
ALL_SEEDS = 2**32
MOST_HASHED = 2**22
"""Cells × seeds that are hashed for a view, unless an exact answer is asked for."""
ReportedCoins = Mapping[str, tuple[Integers, Integers]]
"""For each table the views and seeds of its reports, all of a user's in the order of slots."""


@dataclass(frozen=True, slots=True)
class Influence:
    """How far one user who lies in all her reports moves an answer, in the answer's own unit.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0, coins="assigned")
    >>> db = dn.connect(shop.perturb(users={"uid": range(1_000), "age": [20, 30] * 500}))
    >>> liar, = db.influence("SELECT COUNT(*) AS young FROM users WHERE age < 25")
    >>> liar.typical < liar.reached <= liar.most
    True
    """

    name: str
    coins: str
    """Whether liars choose their views and seeds ("drawn") or not ("assigned")."""
    most: float
    """What nobody exceeds: with drawn coins over all views, seeds and y; with assigned ones at the worst coins."""
    reached: float
    """What a liar reached, with the views and seeds that were tried; the same as `most` if that is exact."""
    typical: float
    """The mean over users: how far a liar moves an answer whose coins are like everybody's."""
    users: int
    exact: bool
    """Whether `most` is reached; otherwise it is a bound."""

    def of_share(self, liars: float) -> float:
        """How far a share of lying users moves the answer together, if all lie alike.

        >>> liar.of_share(0.01) == 0.01 * 1_000 * liar.typical
        True
        """
        return liars * self.users * (self.typical if self.coins == ASSIGNED else self.reached)

    def __str__(self) -> str:
        bound = "" if self.exact else f" (at most {self.most:,.4g})"
        together = f"1% of liars: {self.of_share(0.01):,.4g}"
        if self.coins == ASSIGNED:
            moves = f"{self.typical:,.4g} on average, {self.reached:,.4g} at worst{bound}"
            return f"one liar moves {self.name} by {moves}; {together}"
        return f"one liar moves {self.name} by {self.reached:,.4g}{bound}; {together}"


@dataclass(frozen=True, slots=True, eq=False)
class _Reach:
    """What a user's contribution to one column can be: without limits on coins, and for each user that was tried."""

    bound: tuple[float, float]
    reached: tuple[float, float]
    least: Floats
    most: Floats
    everybody: bool
    """Whether all users were tried, with the coins that they have."""

    def __add__(self, other: _Reach) -> _Reach:
        bound = (self.bound[0] + other.bound[0], self.bound[1] + other.bound[1])
        reached = (self.reached[0] + other.reached[0], self.reached[1] + other.reached[1])
        everybody = self.everybody and other.everybody
        return _Reach(bound, reached, self.least + other.least, self.most + other.most, everybody)

    def times(self, other: _Reach) -> _Reach:
        """The product of the contributions to two tables."""
        ends = [a * b for a, b in product((self.least, self.most), (other.least, other.most))]
        return _Reach(
            _product(self.bound, other.bound),
            _product(self.reached, other.reached),
            np.minimum.reduce(ends),
            np.maximum.reduce(ends),
            self.everybody and other.everybody,
        )


def _product(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    ends = [a * b for a, b in product(first, second)]
    return min(ends), max(ends)


def influences(
    plan: Plan,
    moments: Moments,
    users: int,
    *,
    coins: ReportedCoins | None = None,
    exact: bool = False,
    weights: Floats | None = None,
) -> tuple[Influence, ...]:
    """For every output, in the first private group: ratios are moved as their derivative at its moments says.

    `weights` are what moments of these users are multiplied by, rows × moments: the largest ones count.
    `coins` are those of the users of a single table, where they are assigned. Where rounds rotate, whoever answers
    stands for several people, also if he lies.
    """
    mine = moments.private == 0
    factors = None if weights is None or not mine.any() else weights[mine].max(axis=0)
    return influences_at(plan, moments.sums[mine].sum(axis=0), users, coins=coins, exact=exact, factors=factors)


def influences_at(
    plan: Plan,
    sums: Floats,
    users: int,
    *,
    coins: ReportedCoins | None = None,
    exact: bool = False,
    factors: Floats | None = None,
) -> tuple[Influence, ...]:
    """`influences` for sums that are known, or do not matter because every output is one of them."""
    listed, scale = [], stands_for(plan.collection.rounds)
    known = coins if coins is not None and len(plan.tables) == 1 else {}
    for output in plan.question.outputs:
        slopes = gradient_at(output.formula, sums[None, :])[0] * (1.0 if factors is None else factors)
        reaches = _reaches(plan, slopes * scale, known, exact=exact)
        bound, tried, mean, worst = (sum(amount[index] for amount in map(_ranges, reaches)) for index in range(4))
        assigned = plan.collection.coins == ASSIGNED
        most, achieved = (bound, worst) if assigned else (bound, tried)
        if assigned and len(plan.tables) == 1:
            everybody = all(reach.everybody for reach in reaches) and all(map(_is_known, _views(plan)))
            most = worst if everybody else max(_assigned_bound(plan, slopes * scale), worst)
        is_exact = len(reaches) <= 1 and bool(np.isclose(most, achieved, rtol=1e-9))
        if (
            exact and len(plan.tables) == 1 and not assigned and all(map(_is_known, _views(plan)))
        ):  # every seed was tried
            most, is_exact = achieved, True
        listed.append(Influence(output.name, plan.collection.coins, most, achieved, mean, users, is_exact))
    return tuple(listed)


def _views(plan: Plan) -> list[ViewWeights]:
    return [view for table in plan.tables for part in table.parts for view in part.views]


def _is_known(view: ViewWeights) -> bool:
    """Whether a report names its cells or hashes: of other oracles only the bound is known."""
    return isinstance(view.oracle.support, (NamedCell, MaskedCells, HashedCells))


def over_groups(groups: Sequence[tuple[Influence, ...]]) -> tuple[Influence, ...]:
    """Of several groups of users, a liar may be in any: the worst of them, and the mean over all users."""
    joined = []
    for outputs in zip(*groups, strict=True):
        users = sum(each.users for each in outputs)
        worst = max(outputs, key=lambda each: each.reached)
        drawn = [each.coins for each in outputs if each.coins != ASSIGNED]
        joined.append(
            replace(
                worst,
                coins=drawn[0] if drawn else worst.coins,
                most=max(each.most for each in outputs),
                typical=sum(each.typical * each.users for each in outputs) / max(users, 1),
                users=users,
                exact=worst.exact and worst.most == max(each.most for each in outputs),
            )
        )
    return tuple(joined)


def _ranges(reach: _Reach) -> tuple[float, float, float, float]:
    apart = reach.most - reach.least
    return (
        reach.bound[1] - reach.bound[0],
        reach.reached[1] - reach.reached[0],
        float(apart.mean()),
        float(apart.max()),
    )


def _reaches(plan: Plan, slopes: Floats, coins: ReportedCoins, *, exact: bool) -> list[_Reach]:
    """What can be contributed: of one table a single combination of its columns, of joins a product for every term."""
    terms = [
        (float(slope) * term.coefficient, term.columns)
        for moment, slope in enumerate(slopes)
        if slope
        for term in plan.terms(0, moment)
    ]
    if len(plan.tables) == 1:
        weights = np.zeros(plan.tables[0].columns)
        for coefficient, (column,) in terms:
            weights[column] += coefficient
        return [_reach(plan, plan.tables[0], weights, coins.get(plan.tables[0].table), exact=exact)]
    reaches = []
    for coefficient, columns in terms:
        whole = _reach(plan, plan.tables[0], _unit(plan.tables[0], columns[0]))
        for table, column in zip(plan.tables[1:], columns[1:], strict=True):
            whole = whole.times(_reach(plan, table, _unit(table, column)))
        scale, scales = (coefficient, coefficient), np.full(TRIED_USERS, coefficient)
        reaches.append(whole.times(_Reach(scale, scale, scales, scales, False)))
    return reaches


def _unit(table: TablePlan, column: int) -> Floats:
    weights = np.zeros(table.columns)
    weights[column] = 1.0
    return weights


def _assigned_bound(plan: Plan, slopes: Floats) -> float:
    """The largest range at any view and any seed of a single table."""
    weights = np.zeros(plan.tables[0].columns)
    for moment, slope in enumerate(slopes):
        for term in plan.terms(0, moment) if slope else ():
            weights[term.columns[0]] += float(slope) * term.coefficient
    tau = plan.collection[plan.tables[0].table].tau
    total = 0.0
    for part in plan.tables[0].parts:
        bounds = [_bounds(view, weights) for view in part.views]
        total += tau * max((high - low for low, high in bounds), default=0.0)
    return total


def _reach(
    plan: Plan,
    table: TablePlan,
    weights: Floats,
    coins: tuple[Integers, Integers] | None = None,
    *,
    exact: bool = False,
) -> _Reach:
    """What a user's reports of a table can contribute to a combination of its columns, added up over them."""
    tau, parts = plan.collection[table.table].tau, len(table.parts)
    searched = [_searched(part, weights, exact=exact and coins is None) for part in table.parts]
    total: _Reach | None = None
    for row in range(tau):
        for number, part in enumerate(table.parts):
            slot = row * parts + number
            mine = None if coins is None else (coins[0][slot :: tau * parts], coins[1][slot :: tau * parts])
            reach = _part_reach(part, weights, slot, mine, searched[number])
            total = reach if total is None else total + reach
    assert total is not None  # noqa: S101 - a design has parts
    return total


def _part_reach(
    part: PartPlan,
    weights: Floats,
    seed: int,
    coins: tuple[Integers, Integers] | None,
    searched: tuple[float, float] | None,
) -> _Reach:
    source = SeededSource(seed)
    constant = float(part.constants @ weights)
    bound = [(constant, constant)] if part.share < 1 - 1e-12 else []
    if coins is None:
        chosen = source.below(2**32, TRIED_USERS) / 2.0**32
        edges = np.cumsum([view.probability for view in part.views])
        which = np.searchsorted(edges, chosen, side="right")  # the last number stands for all views without weight
    else:
        numbers = np.array([view.view for view in part.views], dtype=np.int64)
        which = np.full(coins[0].size, numbers.size)
        for number, view_number in enumerate(numbers):
            which[coins[0] == view_number] = number
    least, most = np.full(which.size, constant), np.full(which.size, constant)
    reached = list(bound)
    for number, view in enumerate(part.views):
        base = constant + _base(view, weights)
        low, high = _bounds(view, weights)
        bound.append((base + low, base + high))
        mine = np.flatnonzero(which == number)
        seeds = source.seeds(min(mine.size, TRIED_SEEDS)) if coins is None else coins[1][mine]
        tried_low, tried_high = ranges(view, weights, seeds.astype(np.uint32))
        again = np.arange(mine.size) % max(tried_low.size, 1)
        least[mine], most[mine] = base + tried_low[again], base + tried_high[again]
    return _Reach(_hull(bound), _hull([*reached, *([searched] if searched else [])]), least, most, coins is not None)


def _hull(ends: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return min(low for low, _ in ends), max(high for _, high in ends)


def _signals(view: ViewWeights, weights: Floats) -> tuple[Integers, Floats]:
    """The cells that count, and what each adds to a report that supports it."""
    cells, _, rows = view.by_cell()
    values = np.add.reduceat(
        np.append(rows.values * weights[rows.columns], 0.0), np.minimum(rows.starts[:-1], rows.values.size)
    )
    values[rows.counts == 0] = 0.0
    return cells, values / (view.p - view.q)


def _base(view: ViewWeights, weights: Floats) -> float:
    """What every report of a view adds, whatever cells it supports."""
    return -view.q * float(_signals(view, weights)[1].sum())


def _bounds(view: ViewWeights, weights: Floats) -> tuple[float, float]:
    """The least and the most that supported cells can add: exact where a report names its cells."""
    cells, values = _signals(view, weights)
    if isinstance(view.oracle.support, NamedCell):
        others = [] if cells.size == view.cell_count else [0.0]
        return min([*others, float(values.min())]), max([*others, float(values.max())])
    if isinstance(view.oracle.support, MaskedCells):
        size = view.oracle.support.size
        every = np.sort(np.append(values, np.zeros(view.cell_count - cells.size)))
        return float(every[:size].sum()), float(every[-size:].sum())
    return float(np.minimum(values, 0.0).sum()), float(np.maximum(values, 0.0).sum())


def ranges(view: ViewWeights, weights: Floats, seeds: Words32) -> tuple[Floats, Floats]:
    """For each of some seeds, the least and the most that supported cells add, over all y."""
    if not isinstance(view.oracle.support, HashedCells):
        low, high = _bounds(view, weights)
        return np.full(seeds.size, low), np.full(seeds.size, high)
    from deniable.mechanisms._support import extreme_sums  # compiled, which takes a while to import

    cells, values = _signals(view, weights)
    return extreme_sums(np.ascontiguousarray(seeds), *cell_keys(cells), values, view.oracle.support.buckets)


def _searched(part: PartPlan, weights: Floats, *, exact: bool) -> tuple[float, float] | None:
    """The least and the most that a liar finds at any view by trying some seeds, or `exact` all of them.

    A view is not searched where its bounds cannot exceed what was found at others.
    """
    least, most = np.inf, -np.inf
    hashed: list[tuple[float, float, float, int, ViewWeights]] = []
    for view in part.views:
        base = float(part.constants @ weights) + _base(view, weights)
        low, high = _bounds(view, weights)
        support = view.oracle.support
        if isinstance(support, HashedCells):
            hashed.append((base + low, base + high, base, support.buckets, view))
        else:
            least, most = min(least, base + low), max(most, base + high)
    hashed.sort(key=lambda entry: entry[0] - entry[1])
    for all_seeds in (False, True) if exact else (False,):
        for low, high, base, buckets, view in hashed:
            slack = 1e-12 * (high - low)
            if least <= low + slack and most >= high - slack:
                continue
            from deniable.mechanisms._seed_search import search_seeds  # compiled, which takes a while to import

            cells, values = _signals(view, weights)
            count = ALL_SEEDS if all_seeds else max(min(MOST_HASHED // max(cells.size, 1), ALL_SEEDS), 16)
            extremes = search_seeds(cells, values, buckets, count, (least - base, most - base), slack=slack)
            least, most = min(least, extremes[0] + base), max(most, extremes[1] + base)
    return (least, most) if part.views else None
