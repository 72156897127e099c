"""A specification: the tables of all services, one promise over all of them, and its identity."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from deniable.accounting import Neighbours, Spending, Unit, in_sequence, share_below
from deniable.checks import check_integer, check_number
from deniable.errors import InvalidParameter
from deniable.exact import check_epsilon
from deniable.limits import MOST_TABLES
from deniable.notebook import html_table
from deniable.tables.designs import DESIGNS, GRID, PRODUCTS, Parts
from deniable.tables.designs.grid import grid
from deniable.tables.designs.views import Design
from deniable.tables.schema.attributes import Table, check_name, repeated
from deniable.tables.schema.grid_views import GridView, checked_grids, listed_grids
from deniable.tables.schema.report_format import COIN_MODES, DRAWN, FIELD_BYTES, SLOT_NUMBERS, VIEW_NUMBERS
from deniable.tables.schema.specification_entries import (
    SPECIFICATION_FORMAT,
    canonical_json,
    read_specification,
    without_run,
)
from deniable.tables.specification.specification_files import read_file, write_file
from deniable.wording import listed, shown

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self

ORACLE_CHOICES = ("auto", "olh")
LARGEST_DESIGN_FANOUT = 2**16
LARGEST_SHARE = 1e300


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Specification:
    """Everything that a device, a design, a query or an engine needs to know about a collection.

    A frozen value that says what each user sends and spends. Nothing here draws, reads data or answers;
    `deniable.collection.Collection`, which users call, adds that.

    >>> import deniable as dn
    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    >>> shop.epsilon
    2.0
    """

    tables: tuple[Table, ...]
    epsilon: float
    design: str
    fanout: int
    oracle: str
    shares: Mapping[str, float] | None
    grids: Mapping[str, tuple[GridView, ...]] | None
    name: str | None
    coins: str
    """Who decides views and hash seeds: "drawn" by devices, or "assigned" by a public function of the user id."""
    sha256: str
    """The identity of the specification: reports made under another one are refused."""
    _by_name: Mapping[str, Table]
    _reports: Mapping[str, int]

    def __init__(
        self,
        *tables: Table,
        epsilon: float,
        design: str = "hio",
        fanout: int = 5,
        oracle: str = "auto",
        shares: Mapping[str, float] | None = None,
        grids: Mapping[str, Any] | None = None,
        name: str | None = None,
        coins: str = DRAWN,
    ) -> None:
        check_epsilon(epsilon)
        names = _checked_names(tables)
        _check_settings(design, fanout, oracle, coins)
        if name is not None:
            check_name("collection", name)
        self._set(
            tables=tables,
            epsilon=float(epsilon),
            design=design,
            fanout=fanout,
            oracle=oracle,
            shares=_checked_shares(shares, names),
            grids=_chosen_grids(tables, design, grids),
            name=name,
            coins=coins,
            _by_name=dict(zip(names, tables, strict=True)),
        )
        for table in tables:
            _check_attributes(table, design)
        parts = {table.name: self._parts(table.name) for table in tables}
        self._set(_reports={table.name: table.tau * len(parts[table.name]) for table in tables})
        for table in tables:
            self._check_reports(table.name, parts[table.name])
        self._set(sha256=hashlib.sha256(self.to_json().encode()).hexdigest())

    def _set(self, **fields: Any) -> None:
        """Fill fields while the frozen value is being made."""
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def _check_reports(self, name: str, parts: Parts) -> None:
        """Refuse a table whose views or reports cannot be numbered, or whose ε per report is too small."""
        if Design(parts, 1.0).views > VIEW_NUMBERS:
            raise _too_many_views(name, self.design)
        if self.reports_per_user(name) > SLOT_NUMBERS:
            raise InvalidParameter(
                f"table {name!r}: tau", f"gives over {SLOT_NUMBERS:,} reports per user", "Lower tau."
            )
        try:
            check_epsilon(self.epsilon_per_report(name))
        except InvalidParameter:
            where = f"epsilon per report of table {name!r}"
            raise InvalidParameter(where, "is too small", "Raise epsilon or its share, or lower tau.") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Specification) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        tables = ", ".join(f"{table.name} ({self.reports_per_user(table.name)} per user)" for table in self.tables)
        coins = f", coins={self.coins!r}" if self.coins != DRAWN else ""
        settings = f"epsilon={self.epsilon:g}, design={self.design!r}{coins}, {self.sha256[:8]}"
        return f"{type(self).__name__}({tables}; {settings})"

    def _repr_html_(self) -> str:
        """What each user sends, for notebooks."""
        rows = (
            (
                table.name,
                "1" if table.many is None else f"0 to {table.many}",
                ", ".join(table.private),
                ", ".join(table.public),
                self.reports_per_user(table.name),
                f"{self.epsilon_per_report(table.name):.4g}",
            )
            for table in self.tables
        )
        return html_table(
            ("table", "rows per user", "private", "public", "reports per user", "ε per report"),
            rows,
            title=f"Collection, ε = {self.epsilon:g} per user, design {self.design}",
            notes=[f"specification {self.sha256[:16]}…"],
        )

    def __getitem__(self, name: str) -> Table:
        if name in self._by_name:
            return self._by_name[name]
        raise InvalidParameter(f"table {shown(name)}", "is not in this collection", f"It has {listed(self._by_name)}.")

    @property
    def settings(self) -> dict[str, Any]:
        """Everything but the tables, as the constructor takes it.

        >>> shop.settings["design"]
        'hio'
        """
        return {
            "epsilon": self.epsilon,
            "design": self.design,
            "fanout": self.fanout,
            "oracle": self.oracle,
            "shares": self.shares,
            "grids": self.grids,
            "name": self.name,
            "coins": self.coins,
        }

    def with_settings(self, **changes: Any) -> Self:
        """The same tables under other settings. A change of design drops the grids.

        >>> shop.with_settings(epsilon=1.0, design="mg")
        Collection(users (1 per user); epsilon=1, design='mg', 63c12d0c)
        """
        kept = self.settings
        if changes.get("design", self.design) != self.design:
            kept["grids"] = None
        return type(self)(*self.tables, **{**kept, **changes})

    def views(self, name: str) -> int:
        """How many views a table's design has.

        >>> shop.views("users")
        4
        """
        return Design(self._parts(name), 1.0).views

    def _parts(self, name: str) -> Parts:
        if self.grids is not None:
            return grid(self[name], self.grids[name])
        return DESIGNS[self.design](self[name], self.fanout)

    def reports_per_user(self, name: str) -> int:
        """How many reports each user sends for a table.

        >>> orders = dn.Table("orders", many=10, tau=2, amount=dn.Ordinal(0, 500))
        >>> dn.Collection(orders, epsilon=2.0).reports_per_user("orders")
        2
        """
        return self._reports[self[name].name]

    def epsilon_per_report(self, name: str) -> float:
        """What one report of a table spends: its share of ε, rounded down so that the sum stays within ε.

        >>> orders = dn.Table("orders", many=10, tau=2, amount=dn.Ordinal(0, 500))
        >>> dn.Collection(orders, epsilon=2.0).epsilon_per_report("orders")
        1.0
        """
        if self.shares is None:
            return share_below(self.epsilon, Fraction(1, sum(self._reports.values())))
        total = sum(Fraction(share) for share in self.shares.values())
        return share_below(self.epsilon, Fraction(self.shares[name]) / total / self.reports_per_user(name))

    @property
    def spends(self) -> Spending:
        """What all reports of a user in all tables cost together: at most ε, for any two users.

        >>> shop.spends.epsilon
        Fraction(2, 1)
        """
        return in_sequence(self.spent_on(table.name) for table in self.tables)

    def spent_on(self, name: str) -> Spending:
        """What all reports of a user for one table cost.

        >>> shop.spent_on("users").epsilon
        Fraction(2, 1)
        """
        return Spending(Unit.USER, Neighbours.ANY, self.epsilon_per_report(name)).times(self.reports_per_user(name))

    def design_of(self, name: str) -> Design:
        """The views of a table.

        >>> shop.design_of("users").view(1).cells
        4
        """
        return _design(self, name)

    # Identity -----------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The canonical form: everything a client or a server needs to know, and nothing else.

        >>> shop.to_dict()["tables"][0]["attributes"]
        [{'name': 'age', 'kind': 'ordinal', 'low': 1, 'high': 95, 'step': 1}]
        """
        grids = {} if self.grids is None else {"grids": listed_grids(self.grids)}
        return {
            "deniable": SPECIFICATION_FORMAT,
            "name": self.name,
            "epsilon": "inf" if math.isinf(self.epsilon) else self.epsilon,
            "design": self.design,
            "fanout": self.fanout,
            "oracle": self.oracle,
            "coins": self.coins,
            "shares": None if self.shares is None else dict(self.shares),
            "tables": [table.to_dict() for table in self.tables],
            **grids,
        }

    def to_json(self) -> str:
        """The canonical form as text.

        >>> shop.to_json()[:40]
        '{"coins":"drawn","deniable":2,"design":"'
        """
        return canonical_json(self.to_dict())

    def digest(self, name: str) -> bytes:
        """The identity of a table: the SHA-256 of this specification's, in hexadecimal, a colon and the table's name.

        >>> shop.digest("users").hex()[:16]
        '15ab88e22a4d5f5e'
        """
        return hashlib.sha256(f"{self.sha256}:{name}".encode()).digest()

    def tag(self, name: str) -> int:
        """What reports of this specification and table carry: the first 64 bits of the table's digest.

        >>> f"{shop.tag('users'):016x}"
        '15ab88e22a4d5f5e'
        """
        return int.from_bytes(self.digest(name)[: FIELD_BYTES["tag"]], "big")

    @classmethod
    def from_dict(cls, entries: Any) -> Self:
        """A collection from its canonical form or from a parsed file.

        >>> dn.Collection.from_dict(shop.to_dict()) == shop
        True
        """
        tables, settings = read_specification(entries)
        return cls(*tables, **settings)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """A collection from a TOML or JSON file.

        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "shop.toml")
        >>> shop.save(path)
        >>> dn.Collection.load(path) == shop
        True
        """
        return read_file(path, lambda entries: cls.from_dict(without_run(entries)[0]))

    def save(self, path: str | Path) -> None:
        """Write the specification as TOML or JSON, by the file's ending.

        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "shop.toml")
        >>> shop.save(path)
        >>> print(path.read_text().splitlines()[0])
        deniable = 2
        """
        write_file(path, self.to_dict())


@lru_cache(maxsize=256)
def _design(specification: Specification, name: str) -> Design:
    parts = specification._parts(name)
    return Design(parts, specification.epsilon_per_report(name), adaptive=specification.oracle == "auto")


def _checked_names(tables: tuple[Any, ...]) -> list[str]:
    """The names of the tables, each once."""
    if not tables or not all(isinstance(table, Table) for table in tables):
        raise InvalidParameter("tables", "must be one Table or more", "Pass dn.Table(...) values.")
    if len(tables) > MOST_TABLES:
        raise InvalidParameter("tables", f"are more than {MOST_TABLES:,}", "Divide them into collections.")
    names = [table.name for table in tables]
    if twice := repeated(names):
        repair = "Rename one of the two; case does not count."
        raise InvalidParameter(f"table {min(twice, key=names.index)!r}", "is named twice", repair)
    return names


def _check_settings(design: Any, fanout: Any, oracle: Any, coins: Any) -> None:
    if not isinstance(design, str) or design not in (*DESIGNS, GRID):
        raise InvalidParameter("design", "is unknown", f"Use one of {', '.join(sorted((*DESIGNS, GRID)))}.")
    problem = f"must be an integer from 2 to {LARGEST_DESIGN_FANOUT}"
    check_integer("fanout", fanout, 2, LARGEST_DESIGN_FANOUT, problem=problem, repair="Use 5.")
    if oracle not in ORACLE_CHOICES:
        raise InvalidParameter("oracle", "is unknown", f"Use one of {', '.join(ORACLE_CHOICES)}.")
    if coins not in COIN_MODES:
        raise InvalidParameter("coins", "are of an unknown kind", f"Use one of {', '.join(COIN_MODES)}.")


def _checked_shares(shares: Any, names: list[str]) -> dict[str, float] | None:
    """The share of ε that each table gets, in the order of the tables; None if all reports get the same."""
    if shares is None:
        return None
    if not isinstance(shares, Mapping) or set(shares) != set(names):
        raise InvalidParameter("shares", "must name every table once", f"Name {listed(names)}.")
    for name, share in shares.items():
        problem, repair = "must be a positive number", "Use 1 for an even share."
        check_number(f"shares of {name!r}", share, problem, repair, above=0, largest=LARGEST_SHARE)
    return {name: float(shares[name]) for name in names}


def _chosen_grids(tables: tuple[Table, ...], design: str, grids: Any) -> dict[str, tuple[GridView, ...]] | None:
    """The views of each table in the design "grid"; None in other designs."""
    if design == GRID:
        return checked_grids(tables, grids)
    if grids is not None:
        raise InvalidParameter("grids", "are for the design grid", 'Use design="grid", or leave them out.')
    return None


def _check_attributes(table: Table, design: str) -> None:
    """Refuse more attributes than the design can combine, before their views are counted: each has two levels."""
    if design in PRODUCTS and len(table.private) >= VIEW_NUMBERS.bit_length():
        raise _too_many_views(table.name, design)


def _too_many_views(name: str, design: str) -> InvalidParameter:
    problem = f"has over 2^32 views in design {design!r}, more than 32 bits can number"
    repair = "Use fewer attributes, a larger fanout, or the designs sc or mg."
    return InvalidParameter(f"table {name!r}", problem, repair)
