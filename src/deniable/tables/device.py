"""The client on one device: truncate, round, encode, randomise. Standard library only.

    rows ── truncation ──▶ tau rows with a weight ── per part ──▶ view ── rounding ──▶ cell ── oracle ──▶ report

Everything before the oracle may look at the data as it likes: the view and the hash seed are drawn without looking, and
the oracle alone decides what they let out. Number, size and order of the reports follow from the specification.
"""

from __future__ import annotations

import secrets
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, MutableMapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from deniable.errors import InvalidData, InvalidParameter
from deniable.exact import RandBelow, check_randbelow, fraction_coin
from deniable.mechanisms import LocalHashing
from deniable.simulation import SimulatedDraws, is_simulated
from deniable.tables.collection import Collection
from deniable.tables.memory import FileMemory, ProcessMemory, alone_with
from deniable.tables.report import SIZE, Report
from deniable.tables.runs import largest_epsilon, run_tag
from deniable.tables.schema import Table, Unplaceable
from deniable.tables.views import Axis, Design, chances

Memory = MutableMapping[str, str]
Row = Mapping[str, Any]


class Client:
    """Reports of one user. Asked again it sends the same bytes, so that ε is spent once.

    `memory` remembers what was sent: a path, or any mutable mapping from texts to texts. Without it the client
    remembers as long as it lives. An infinite ε, with which rows would leave as they are, needs `simulation`; reports
    of a simulation carry another tag, so that a release does not take them. Threads
    may share a client, or a memory between several clients.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> client = shop.client()
    >>> client.report("users", {"age": 31}) == client.report("users", {"age": 90})
    True
    """

    def __init__(
        self,
        collection: Collection,
        memory: Memory | str | Path | None = None,
        randbelow: RandBelow = secrets.randbelow,
        *,
        simulation: bool = False,
    ) -> None:
        check_randbelow(randbelow, largest_epsilon(collection), simulation=simulation)
        self.simulation = simulation or is_simulated(randbelow)
        self._collection = collection
        self._randbelow = SimulatedDraws(randbelow) if self.simulation else randbelow
        self._memory: Memory = (
            FileMemory(memory) if isinstance(memory, (str, Path)) else ProcessMemory() if memory is None else memory
        )
        self._alone = alone_with(self._memory)
        self.rejected: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"Client(collection {self._collection.sha256[:8]}{'; simulation' * self.simulation})"

    def report(self, table: str, row: Row) -> Report:
        """The report of the one row of a table that takes one report per user.

        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
        >>> shop.client().report("users", {"age": 31}).slot
        0
        """
        if self._collection.reports_per_user(table) != 1:
            raise InvalidParameter(f"table {table!r}", "takes several reports per user", "Use client.reports.")
        return self.reports(table, [row])[0]

    def reports(self, table: str, rows: Sequence[Row]) -> list[Report]:
        """All reports of a user for a table: always the same number, whatever the rows are.

        Rows that the specification has no place for do not count (in a table with one row a random one takes their
        place): a missing report would tell that something was odd. `rejected` counts them, on the device only.

        >>> import deniable as dn
        >>> orders = dn.Table("orders", many=10, tau=2, amount=dn.Ordinal(0, 500))
        >>> client = dn.Collection(orders, epsilon=2.0).client()
        >>> len(client.reports("orders", []))
        2
        """
        known = self._collection[table]
        if known.many is None and len(rows) != 1:
            raise InvalidData(f"table {table!r} takes exactly one row per user", "Pass that row.")
        key = f"{self._collection.sha256}:{table}" + ":simulation" * self.simulation
        with self._alone():
            if key not in self._memory:
                encoded = [self._encoded(known, row) for row in rows]
                codes = [row for row in encoded if row is not None]
                reports = randomise(known, self._collection.design_of(table), codes, self._randbelow)
                tag = run_tag(self._collection, table, simulation=self.simulation)
                sent = [Report(slot, *fields, tag) for slot, fields in enumerate(reports)]
                self._memory[key] = b"".join(one.to_bytes() for one in sent).hex()
            remembered = bytes.fromhex(self._memory[key])
        return [Report.from_bytes(remembered[i : i + SIZE]) for i in range(0, len(remembered), SIZE)]

    def _encoded(self, table: Table, row: Row) -> tuple[int, ...] | None:
        """The row as places in the domains of the private attributes; None if it has none."""
        if not isinstance(row, Mapping):
            raise InvalidData(
                f"a row of table {table.name!r} is no mapping", f"Give {', '.join(table.private)} by name."
            )
        if lacking := [name for name in table.private if name not in row]:
            raise InvalidData(
                f"a row of table {table.name!r} lacks {lacking[0]!r}", f"Give {', '.join(table.private)} by name."
            )
        if set(row) - set(table.attributes):
            raise InvalidData(
                f"a row of table {table.name!r} has an unknown attribute", f"It has {', '.join(table.attributes)}."
            )
        codes = []
        for name, domain in zip(table.private, table.domains, strict=True):
            try:
                codes.append(domain.encode(row[name]))
            except Unplaceable as problem:
                self.rejected[problem.reason] += 1
                return None
        return tuple(codes)


def truncate(table: Table, rows: Sequence[tuple[int, ...]], randbelow: RandBelow) -> tuple[list[tuple[int, ...]], int]:
    """`tau` rows, drawn with replacement from at most `many`, and how many that were.  [XDW20, Section 5.2]

    A user without rows sends random ones of the domain, with weight zero. Of more than `many` rows, a random `many`
    count.
    """
    if table.many is None:
        return list(rows) or [tuple(randbelow(domain.size) for domain in table.domains)], 1
    pool = list(rows)
    while len(pool) > table.many:
        pool.pop(randbelow(len(pool)))
    if not pool:
        return [tuple(randbelow(domain.size) for domain in table.domains) for _ in range(table.tau)], 0
    return [pool[randbelow(len(pool))] for _ in range(table.tau)], len(pool)


def randomise(
    table: Table, design: Design, rows: Sequence[tuple[int, ...]], randbelow: RandBelow
) -> list[tuple[int, int, int]]:
    """(view, seed, y) of every report, in the order of their slots."""
    chosen, count = truncate(table, rows, randbelow)
    many = table.many or 1
    return [
        _report(design, part, table, row, Fraction(count, many), randbelow)
        for row in chosen
        for part in range(len(design.parts))
    ]


def _report(
    design: Design, part: int, table: Table, row: tuple[int, ...], weight: Fraction, randbelow: RandBelow
) -> tuple[int, int, int]:
    groups = design.parts[part]
    reach = chances(groups)
    place = bisect_right(reach, randbelow(reach[-1]))
    group = groups[place]
    local = randbelow(group.views)
    levels = group.choice(local)
    coordinates = tuple(_coordinate(axis, table, row, weight, randbelow) for axis in group.axes)
    oracle = design.oracle(group.cells(levels))
    number = group.number(levels, coordinates)
    view = design.offset(part, place) + local
    if oracle is None:
        return view, 0, 0
    if isinstance(oracle, LocalHashing):
        return view, *oracle.perturb_one(number, randbelow=randbelow)
    return view, 0, oracle.perturb_one(number, randbelow=randbelow)


def _coordinate(axis: Axis, table: Table, row: tuple[int, ...], weight: Fraction, randbelow: RandBelow) -> int:
    """Where the row lies on an axis; tosses the coins that the axis rounds by."""
    value, chance = (
        axis.located(row[axis.attribute], table.domains[axis.attribute].size) if axis.attribute >= 0 else (0, 0)
    )
    up = axis.rounds_value and fraction_coin(Fraction(chance), randbelow)
    heavy = axis.rounds_weight and fraction_coin(weight, randbelow)
    return int(axis.coordinate(value, up, heavy))
