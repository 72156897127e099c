"""A specification: the tables of all services, one promise over all of them, and its identity."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from deniable.accounting import Neighbours, Spending, Unit, in_sequence, share_below
from deniable.errors import InvalidParameter
from deniable.exact import check_epsilon
from deniable.tables.designs import DESIGNS, Parts
from deniable.tables.designs.grid import grid
from deniable.tables.designs.views import Design
from deniable.tables.designs.words import has_words, words
from deniable.tables.schema.attributes import Public, Table, check_name
from deniable.tables.schema.grid_views import GridView, listed_grids
from deniable.tables.schema.pseudonyms import USER_IDS, checked_ids
from deniable.tables.schema.report_format import DRAWN, FIELD_BYTES
from deniable.tables.schema.rounds import MEMOISED, ROUND_COLUMN, Rounds
from deniable.tables.schema.specification_entries import (
    SPECIFICATION_FORMAT,
    canonical_json,
    read_specification,
    without_run,
)
from deniable.tables.specification.lifetime_promises import check_changes, memoised_promises
from deniable.tables.specification.populations import checked_owners, members_of
from deniable.tables.specification.setting_checks import (
    check_attributes,
    check_reports,
    check_settings,
    checked_names,
    checked_rounds,
    checked_shares,
    chosen_grids,
)
from deniable.tables.specification.specification_files import read_file, write_file
from deniable.tables.specification.specification_page import specification_page
from deniable.wording import listed, shown

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Self


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
    rounds: Rounds | None
    """How often people are asked; None if once."""
    owners: Mapping[str, float] | None
    """The ε of each population other than the users, by the owner of its tables; None without any."""
    ids: str
    """Under which ids reports travel: those of users, or random names that devices draw ("pseudonym")."""
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
        rounds: Rounds | None = None,
        owners: Mapping[str, float] | None = None,
        ids: str = USER_IDS,
    ) -> None:
        check_epsilon(epsilon)
        names = checked_names(tables)
        check_settings(design, fanout, oracle, coins)
        if name is not None:
            check_name("collection", name)
        self._set(
            tables=tables,
            epsilon=float(epsilon),
            design=design,
            fanout=fanout,
            oracle=oracle,
            shares=checked_shares(shares, names),
            grids=chosen_grids(tables, design, grids),
            name=name,
            coins=coins,
            rounds=checked_rounds(rounds, name, tables),
            owners=checked_owners(owners, tables, rounds),
            ids=checked_ids(ids, coins, tables, rounds),
            _by_name=dict(zip(names, tables, strict=True)),
        )
        for table in tables:
            check_attributes(table, design)
        parts = {table.name: self._parts(table.name) for table in tables}
        self._set(_reports={table.name: table.tau * len(parts[table.name]) for table in tables})
        for table in tables:
            check_reports(self, table.name, Design(parts[table.name], 1.0).views)
        self._set(sha256=hashlib.sha256(self.to_json().encode()).hexdigest())
        check_changes(self)

    def _set(self, **fields: Any) -> None:
        """Fill fields while the frozen value is being made."""
        for field, value in fields.items():
            object.__setattr__(self, field, value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Specification) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        tables = ", ".join(f"{t.name} ({self.reports_per_user(t.name)} per {t.key or 'user'})" for t in self.tables)
        coins = f", coins={self.coins!r}" if self.coins != DRAWN else ""
        ids = f", ids={self.ids!r}" if self.ids != USER_IDS else ""
        rounds = f", {self.rounds.count} {self.rounds.mode} rounds" if self.rounds is not None else ""
        settings = f"epsilon={self.epsilon:g}, design={self.design!r}{coins}{ids}{rounds}, {self.sha256[:8]}"
        return f"{type(self).__name__}({tables}; {settings})"

    def _repr_html_(self) -> str:
        """What each user sends, for notebooks."""
        return specification_page(self)

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
            "rounds": self.rounds,
            "owners": self.owners,
            "ids": self.ids,
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

    @property
    def asked(self) -> Self:
        """The specification as questions and tables of reports see it: every table has the public column `round`.

        >>> shop.asked is shop
        True
        """
        if self.rounds is None or any(ROUND_COLUMN in table.attributes for table in self.tables):
            return self
        tables = tuple(
            Table(table.name, table.many, table.tau, **table.attributes, **{ROUND_COLUMN: Public()})
            for table in self.tables
        )
        return type(self)._like(self, tables=tables, _by_name={table.name: table for table in tables})

    @classmethod
    def _like(cls, other: Specification, **changes: Any) -> Self:
        """The same specification as another class of value, with other fields."""
        made = object.__new__(cls)
        made._set(**{**{field.name: getattr(other, field.name) for field in fields(Specification)}, **changes})
        return made

    def views(self, name: str) -> int:
        """How many views a table's design has.

        >>> shop.views("users")
        4
        """
        return Design(self._parts(name), 1.0).views

    def _parts(self, name: str) -> Parts:
        if has_words(table := self[name]):
            return words(table)
        return DESIGNS[self.design](table, self.fanout) if self.grids is None else grid(table, self.grids[name])

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
        return share_below(self.epsilon_of(self[name].owner), self._share(name))

    def epsilon_of(self, owner: str | None = None) -> float:
        """The ε of a population, by the owner of its tables: for all reports about one id. None means the users.

        >>> shop.epsilon_of()
        2.0
        """
        return self.epsilon if owner is None or self.owners is None else self.owners[owner]

    def permanent_per_report(self, name: str) -> float:
        """The ε∞ of one report of a table in memoised rounds: its share, as of ε.

        >>> kept = dn.Rounds(12, mode="memoised", permanent=4.0, changes_are_public=True)
        >>> shop.with_settings(name="shop", rounds=kept).permanent_per_report("users")
        4.0
        """
        permanent = None if self.rounds is None else self.rounds.permanent
        if permanent is None:
            raise InvalidParameter("rounds", "have no permanent answers", "These are for the mode memoised.")
        return share_below(permanent, self._share(name))

    def _share(self, name: str) -> Fraction:
        """The share of ε that one report of a table spends in one round."""
        answers = 1 if self.rounds is None else self.rounds.answers
        members = members_of(self.tables, self[name].owner)
        if self.shares is None:
            return Fraction(1, sum(self._reports[member] for member in members) * answers)
        total = sum(Fraction(self.shares[member]) for member in members)
        return Fraction(self.shares[name]) / total / (self.reports_per_user(name) * answers)

    @property
    def spends(self) -> Spending:
        """What all reports of a user in all tables of users and in all rounds cost together, for any two users.

        Without rounds and with rotating ones this is at most ε; see `Rounds` for others.

        >>> shop.spends.epsilon
        Fraction(2, 1)
        """
        return self.spends_of()

    def spends_of(self, owner: str | None = None) -> Spending:
        """The same of another population, by the owner of its tables: what all reports about one id cost together.

        >>> shop.spends_of() == shop.spends
        True
        """
        answered = 1 if self.rounds is None else self.rounds.answered
        return in_sequence(self.spent_on(member, answered) for member in members_of(self.tables, owner))

    def spent_on(self, name: str, answered: int = 1) -> Spending:
        """What all reports of a user for one table cost, over so many rounds that she answers.

        >>> shop.spent_on("users").epsilon
        Fraction(2, 1)
        """
        if self.rounds is not None and self.rounds.mode == MEMOISED:
            worst = memoised_promises(self, name, answered).any_lifetimes
            return Spending(Unit.USER, Neighbours.ANY, worst).times(self.reports_per_user(name))
        each = Spending(Unit.USER, Neighbours.ANY, self.epsilon_per_report(name))
        return each.times(self.reports_per_user(name) * answered)

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
        rounds = {} if self.rounds is None else {"rounds": self.rounds.to_dict()}
        owners = {name: "inf" if math.isinf(epsilon) else epsilon for name, epsilon in (self.owners or {}).items()}
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
            **rounds,
            **({"owners": owners} if owners else {}),
            **({"ids": self.ids} if self.ids != USER_IDS else {}),
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
    rounds, epsilon = specification.rounds, specification.epsilon_per_report(name)
    memoised, buckets = (False, None) if rounds is None else (rounds.mode == MEMOISED, rounds.buckets)
    return Design(specification._parts(name), epsilon, specification.oracle, memoised, buckets)
