"""From a user's rows to what her reports say: truncation, views, rounding, and the oracle. Standard library only."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from deniable.exact import RandBelow, secret_below, secret_coin
from deniable.mechanisms.frequency_oracle import FrequencyOracle
from deniable.tables.coins.assigned_coins import Coins, scaled
from deniable.tables.designs.views import Axis, Design, Group, chances
from deniable.tables.device.lifetimes import Lifetime
from deniable.tables.schema.attributes import Table, Text


def truncate(table: Table, rows: Sequence[tuple[int, ...]], randbelow: RandBelow) -> tuple[list[tuple[int, ...]], int]:
    """`tau` rows, drawn with replacement from at most `many`, and how many those were.  [XDW20, Section 5.2]

    A user without rows sends random rows of the domain, with weight zero. Of more than `many` rows, a random `many`
    count: the rows behind the numbers 0, …, `many` − 1, each drawn from those that are left when its number first comes
    up. Every draw is made whether it is needed or not.
    """
    if table.many is None:
        dummy = _random_row(table, randbelow)
        return [rows[0] if rows else dummy], 1
    used, left = min(len(rows), table.many), list(rows)
    numbered: dict[int, tuple[int, ...]] = {}
    chosen = []
    for _ in range(table.tau):
        dummy = _random_row(table, randbelow)
        number, index = secret_below(max(used, 1), randbelow), secret_below(max(len(left), 1), randbelow)
        if used and number not in numbered:
            numbered[number] = left.pop(index)
        chosen.append(numbered[number] if used else dummy)
    return chosen, used


def _random_row(table: Table, randbelow: RandBelow) -> tuple[int, ...]:
    """Any values; of a text, what stands for no word."""
    return tuple(domain.no_word if isinstance(domain, Text) else randbelow(domain.size) for domain in table.domains)


def randomise(
    table: Table,
    design: Design,
    rows: Sequence[tuple[int, ...]],
    randbelow: RandBelow,
    coins: Sequence[Coins] | None = None,
    life: Lifetime | None = None,
) -> list[tuple[int, int, int]]:
    """(view, seed, y) of every report, in the order of their slots. `coins` are assigned ones, unless they are drawn.

    In memoised rounds, `life` is what stays the same in all of them.
    """
    if life is not None:  # the same rows in another order are chosen alike
        rows = sorted(rows)
    chosen, count = truncate(table, rows, randbelow if life is None else life.of("rows"))
    weight, parts = Fraction(count, table.many or 1), len(design.parts)
    return [
        _report(design, slot, table, chosen[slot // parts], weight, randbelow, coins[slot] if coins else None, life)
        for slot in range(len(chosen) * parts)
    ]


class DrawnView(NamedTuple):
    """A view that a report is about, and what randomises its cell."""

    view: int
    group: Group
    levels: tuple[int, ...]
    oracle: FrequencyOracle


def drawn_view(design: Design, part: int, randbelow: RandBelow, coins: Coins | None) -> DrawnView:
    """The view of a report, by its assigned coins or by two draws."""
    groups = design.parts[part]
    reach = chances(groups)
    index = bisect_right(reach, _public(reach[-1], randbelow, coins and coins.group))
    group = groups[index]
    local = _public(group.views, randbelow, coins and coins.view)
    levels = group.choice(local)
    return DrawnView(design.offset(part, index) + local, group, levels, design.oracle(group.cells(levels)))


def _public(bound: int, randbelow: RandBelow, word: int | None) -> int:
    return randbelow(bound) if word is None else scaled(word, bound)


def _report(
    design: Design,
    slot: int,
    table: Table,
    row: tuple[int, ...],
    weight: Fraction,
    randbelow: RandBelow,
    coins: Coins | None,
    life: Lifetime | None,
) -> tuple[int, int, int]:
    before = randbelow if life is None else life.of(f"{slot}")
    drawn = drawn_view(design, slot % len(design.parts), before, coins)
    coordinates = tuple(_coordinate(axis, table, row, weight, before) for axis in drawn.group.axes)
    number = drawn.group.number(drawn.levels, coordinates)
    if life is not None:
        seed = _public(drawn.oracle.seeds, life.of(f"{slot}:seed"), coins and coins.seed)
        return drawn.view, *life.answer(slot, drawn.oracle, number, seed, randbelow)
    if coins is None:
        return drawn.view, *drawn.oracle.draw_report(number, randbelow)
    return drawn.view, *drawn.oracle.draw_report(number, randbelow, scaled(coins.seed, drawn.oracle.seeds))


def _coordinate(axis: Axis, table: Table, row: tuple[int, ...], weight: Fraction, randbelow: RandBelow) -> int:
    """Where the row lies on an axis; tosses the coins that the axis rounds by."""
    value, chance = (
        axis.located(row[axis.attribute], table.domains[axis.attribute].size) if axis.attribute >= 0 else (0, 0)
    )
    up = axis.rounds_value and secret_coin(Fraction(chance), randbelow)
    heavy = axis.rounds_weight and secret_coin(weight, randbelow)
    return int(axis.coordinate(value, up, heavy))
