"""A collection: the tables of all services, one promise over all of them, and its identity."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, overload

from deniable.checks import check_integer, check_number
from deniable.errors import InvalidParameter
from deniable.exact import check_epsilon
from deniable.limits import MOST_TABLES
from deniable.notebook import html_table
from deniable.tables.designs import DESIGNS, GRID, PRODUCTS
from deniable.tables.designs.grid import grid
from deniable.tables.designs.views import Design
from deniable.tables.schema.attributes import Table, repeated
from deniable.tables.schema.grid_views import GridView, checked_grids, listed_grids
from deniable.tables.schema.specification_entries import FORMAT, read_specification
from deniable.wording import listed, shown

if TYPE_CHECKING:
    from pathlib import Path

    from deniable.engines.collecting.perturbing import Collected
    from deniable.queries.forecasts.forecast import Forecast
    from deniable.randomness import Source
    from deniable.tables.device.client import Client
    from deniable.tables.reports.report_table import Reports

ORACLES = ("auto", "olh")
MOST_VIEWS = 2**32
MOST_REPORTS = 2**16
LARGEST_FANOUT = 2**16
LARGEST_SHARE = 1e300


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class Collection:
    """Tables of several services whose users send randomised reports, with one ε for all that a user sends.

    ε-uLDP [XDW20, Definition 3]: whatever a user's rows are in all tables, and however many, the joint distribution of
    all her reports, their number and order included, changes by at most e^ε. Not protected: that she takes part, her
    id, public attributes, and a second collection of the same data.

    `design` is one of "hio", "ahio", "ehio", "sr-hio", "sc", "mg", "amg", "grid". `oracle="olh"` hashes in every view,
    as the paper does; "auto" takes randomized response where that is better. `shares` divides ε unevenly among tables.
    `grids` lists the views of each table in the design "grid" (`dn.fit` chooses them).

    >>> import deniable as dn
    >>> users = dn.Table("users", age=dn.Ordinal(1, 95), city=dn.Public())
    >>> orders = dn.Table("orders", many=10, amount=dn.Ordinal(0, 500))
    >>> dn.Collection(users, orders, epsilon=2.0)
    Collection(users (1 per user), orders (1 per user); epsilon=2, design='hio', 90f25183)
    """

    tables: tuple[Table, ...]
    epsilon: float
    design: str
    fanout: int
    oracle: str
    shares: Mapping[str, float] | None
    grids: Mapping[str, tuple[GridView, ...]] | None
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
    ) -> None:
        check_epsilon(epsilon)
        if not tables or not all(isinstance(table, Table) for table in tables):
            raise InvalidParameter("tables", "must be one Table or more", "Pass dn.Table(...) values.")
        if len(tables) > MOST_TABLES:
            raise InvalidParameter("tables", f"are more than {MOST_TABLES:,}", "Divide them into collections.")
        names = [table.name for table in tables]
        if twice := repeated(names):
            repair = "Rename one of the two; case does not count."
            raise InvalidParameter(f"table {min(twice, key=names.index)!r}", "is named twice", repair)
        if not isinstance(design, str) or design not in (*DESIGNS, GRID):
            raise InvalidParameter("design", "is unknown", f"Use one of {', '.join(sorted((*DESIGNS, GRID)))}.")
        problem = f"must be an integer from 2 to {LARGEST_FANOUT}"
        check_integer("fanout", fanout, 2, LARGEST_FANOUT, problem=problem, repair="Use 5.")
        if oracle not in ORACLES:
            raise InvalidParameter("oracle", "is unknown", f"Use one of {', '.join(ORACLES)}.")
        if shares is not None:
            _check_shares(shares, names)
        if grids is not None and design != GRID:
            raise InvalidParameter("grids", "are for the design grid", 'Use design="grid", or leave them out.')
        for field, value in (
            ("tables", tables),
            ("epsilon", float(epsilon)),
            ("design", design),
            ("fanout", fanout),
            ("oracle", oracle),
            ("shares", None if shares is None else {name: float(shares[name]) for name in names}),
            ("grids", checked_grids(tables, grids) if design == GRID else None),
            ("_by_name", {table.name: table for table in tables}),
        ):
            object.__setattr__(self, field, value)
        for table in tables:
            if design in PRODUCTS and len(table.private) >= MOST_VIEWS.bit_length():  # of two levels each
                raise _too_many_views(table.name, design)
        parts = {name: self._parts(name) for name in names}
        object.__setattr__(self, "_reports", {name: self[name].tau * len(parts[name]) for name in names})
        for table in tables:
            if Design(parts[table.name], 1.0).views > MOST_VIEWS:
                raise _too_many_views(table.name, design)
            if self.reports_per_user(table.name) > MOST_REPORTS:
                raise InvalidParameter(f"table {table.name!r}: tau", "gives over 65,536 reports per user", "Lower tau.")
            try:
                check_epsilon(self.epsilon_per_report(table.name))
            except InvalidParameter:
                where = f"epsilon per report of table {table.name!r}"
                raise InvalidParameter(where, "is too small", "Raise epsilon or its share, or lower tau.") from None
        object.__setattr__(self, "sha256", hashlib.sha256(self.to_json().encode()).hexdigest())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Collection) and self.sha256 == other.sha256

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        tables = ", ".join(f"{one.name} ({self.reports_per_user(one.name)} per user)" for one in self.tables)
        return f"Collection({tables}; epsilon={self.epsilon:g}, design={self.design!r}, {self.sha256[:8]})"

    def _repr_html_(self) -> str:
        """What each user sends, for notebooks."""
        rows = (
            (
                one.name,
                "1" if one.many is None else f"0 to {one.many}",
                ", ".join(one.private),
                ", ".join(one.public),
                self.reports_per_user(one.name),
                f"{self.epsilon_per_report(one.name):.4g}",
            )
            for one in self.tables
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

    def views(self, name: str) -> int:
        """How many views a table's design has.

        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
        >>> shop.views("users")
        4
        """
        return Design(self._parts(name), 1.0).views

    def _parts(self, name: str) -> Any:
        if self.grids is not None:
            return grid(self[name], self.grids[name])
        return DESIGNS[self.design](self[name], self.fanout)

    def reports_per_user(self, name: str) -> int:
        """How many reports every user sends for a table.

        >>> import deniable as dn
        >>> orders = dn.Table("orders", many=10, tau=2, amount=dn.Ordinal(0, 500))
        >>> dn.Collection(orders, epsilon=2.0).reports_per_user("orders")
        2
        """
        return self._reports[self[name].name]

    def epsilon_per_report(self, name: str) -> float:
        """What one report of a table spends: its share of ε, rounded down so that the sum never exceeds ε.

        >>> import deniable as dn
        >>> orders = dn.Table("orders", many=10, tau=2, amount=dn.Ordinal(0, 500))
        >>> dn.Collection(orders, epsilon=2.0).epsilon_per_report("orders")
        1.0
        """
        if math.isinf(self.epsilon):
            return math.inf
        if self.shares is None:
            share = Fraction(1, sum(self._reports.values()))
        else:
            total = sum(Fraction(part) for part in self.shares.values())
            share = Fraction(self.shares[name]) / total / self.reports_per_user(name)
        exact = Fraction(self.epsilon) * share
        rounded = float(exact)
        return rounded if Fraction(rounded) <= exact else math.nextafter(rounded, 0.0)

    def design_of(self, name: str) -> Design:
        """The views of a table.

        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
        >>> shop.design_of("users").view(1).cells
        4
        """
        return _design(self, name)

    # Identity -----------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """The canonical form: everything a client or a server needs to know, and nothing else.

        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
        >>> shop.to_dict()["tables"][0]["attributes"]
        [{'name': 'age', 'kind': 'ordinal', 'low': 1, 'high': 95, 'step': 1}]
        """
        grids = {} if self.grids is None else {"grids": listed_grids(self.grids)}
        return {
            "deniable": FORMAT,
            "epsilon": "inf" if math.isinf(self.epsilon) else self.epsilon,
            "design": self.design,
            "fanout": self.fanout,
            "oracle": self.oracle,
            "shares": None if self.shares is None else dict(self.shares),
            "tables": [table.to_dict() for table in self.tables],
            **grids,
        }

    def to_json(self) -> str:
        """The canonical form as text.

        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
        >>> shop.to_json()[:40]
        '{"deniable":1,"design":"hio","epsilon":2'
        """
        return json.dumps(self.to_dict(), ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    def tag(self, name: str) -> int:
        """One byte that a report of this specification and table carries.

        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
        >>> shop.tag("users")
        169
        """
        return hashlib.sha256(f"{self.sha256}:{name}".encode()).digest()[0]

    @classmethod
    def from_dict(cls, entries: Any) -> Collection:
        """A collection from its canonical form or from a parsed file.

        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
        >>> dn.Collection.from_dict(shop.to_dict()) == shop
        True
        """
        tables, settings = read_specification(entries)
        return cls(*tables, **settings)

    @classmethod
    def load(cls, path: str | Path) -> Collection:
        """A collection from a TOML or JSON file.

        >>> import pathlib, tempfile
        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
        >>> path = pathlib.Path(tempfile.mkdtemp(), "shop.toml")
        >>> shop.save(path)
        >>> dn.Collection.load(path) == shop
        True
        """
        from deniable.tables.specification.specification_files import load

        return load(path)

    def save(self, path: str | Path) -> None:
        """Write the specification as TOML or JSON, by the file's ending.

        >>> import pathlib, tempfile
        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
        >>> path = pathlib.Path(tempfile.mkdtemp(), "shop.toml")
        >>> shop.save(path)
        >>> print(path.read_text().splitlines()[0])
        deniable = 1
        """
        from deniable.tables.specification.specification_files import save

        save(self, path)

    # Use ----------------------------------------------------------------------------------------------------------

    def client(
        self, memory: MutableMapping[str, str] | str | Path | None = None, *, simulation: bool = False
    ) -> Client:
        """What runs on one device; `memory` (a file or a mapping) keeps it from answering twice in different words.

        With `simulation` an infinite ε is allowed, and reports are marked: a release does not take them.

        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
        >>> len(shop.client().report("users", {"age": 31}).to_bytes())
        16
        """
        from deniable.tables.device.client import Client

        return Client(self, memory, simulation=simulation)

    @overload
    def perturb(
        self,
        *,
        key: str = "uid",
        out: None = None,
        everyone: Any = None,
        source: Source | None = None,
        simulation: bool = False,
        engine: Any = None,
        spill: str | Path | None = None,
        **tables: Any,
    ) -> Reports: ...

    @overload
    def perturb(
        self,
        *,
        key: str = "uid",
        out: str | Path,
        everyone: Any = None,
        source: Source | None = None,
        simulation: bool = False,
        engine: Any = None,
        spill: str | Path | None = None,
        **tables: Any,
    ) -> Collected: ...

    def perturb(
        self,
        *,
        key: str = "uid",
        out: str | Path | None = None,
        everyone: Any = None,
        source: Source | None = None,
        simulation: bool = False,
        engine: Any = None,
        spill: str | Path | None = None,
        **tables: Any,
    ) -> Reports | Collected:
        """The reports of many users at once: a simulation, or a batch at somebody the users trust.

        Tables are frames (Arrow, pandas, Polars) or paths of Parquet and CSV files, given by name; one is enough.
        `key` names the column of user ids. With `out` the reports are written to a folder, one Parquet dataset per
        table beside `collection.json`; otherwise they are returned. For a table with many rows per user, `everyone`
        (a frame or path with the ids) or a one-row table says who sends reports: also those without rows do.

        Rows that the specification has no place for are counted by reason. In a table with many rows they do not
        count; in others a random row takes their place, because a missing report would tell.

        A seeded `source` and an ε without noise (infinite, or above 64 per report) need `simulation`. Reports then
        carry a mark, answers from them say *simulation*, and they do not mix with those of a release.

        Rows that do not fit into memory are spilled to a private folder inside `spill`, by default where `out` will
        be, or else in the system's folder for temporary files. It is removed; after a kill, by the next run there.

        With `engine`, a SparkSession, tables are its DataFrames or names in its catalog, and the reports are written to
        `out` on any path that Spark can write.

        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
        >>> shop.perturb(users={"uid": [1, 2, 3], "age": [31, 40, 52]})
        Reports(users: 3 reports)
        """
        if engine is not None:
            from deniable.engines.spark.spark_perturbing import perturb_spark

            return perturb_spark(
                self, tables, engine, key=key, out=out, everyone=everyone, source=source, simulation=simulation
            )
        from deniable.engines.collecting.perturbing import perturb

        options: dict[str, Any] = {"source": source, "simulation": simulation, "spill": spill}
        return perturb(self, tables, key=key, out=out, everyone=everyone, **options)

    def forecast(self, sql: str, users: int, *, weights: str = "optimal", sums: str = "direct") -> Forecast:
        """The standard errors of a question's answers if so many users report, before anything is collected.

        Prints with the causes of each error; `.scalar().stderr` is the number.

        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
        >>> print(shop.forecast("SELECT COUNT(*) AS n FROM users WHERE age < 30", users=1_000_000))
        1,000,000 users, ε = 2, design hio, optimal weights
           stderr  of users  truncation  rounding  view sampling  randomiser
        n   2,269    0.227%          0%        0%             8%         92%
        """
        from deniable.queries.forecasts.forecast import forecast

        return forecast(self, sql, users, weights=weights, sums=sums)

    def gather(self, lines: Iterable[str], *, simulation: bool = False) -> Reports:
        """The reports that devices sent, from lines of JSON (`Report.to_json`); `dn.connect` takes the result.

        A release does not take what simulated devices sent; with `simulation` nothing else is taken.

        >>> import deniable as dn
        >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
        >>> line = shop.client().report("users", {"age": 31}).to_json(uid=7, table="users")
        >>> shop.gather([line])
        Reports(users: 1 report)
        """
        from deniable.engines.collecting.gathering import gather

        return gather(self, lines, simulation=simulation)


@lru_cache(maxsize=256)
def _design(collection: Collection, name: str) -> Design:
    parts = collection._parts(name)
    return Design(parts, collection.epsilon_per_report(name), adaptive=collection.oracle == "auto")


def _too_many_views(name: str, design: str) -> InvalidParameter:
    problem = f"has over 2^32 views in design {design!r}, more than 32 bits can number"
    repair = "Use fewer attributes, a larger fanout, or the designs sc or mg."
    return InvalidParameter(f"table {name!r}", problem, repair)


def _check_shares(shares: Any, names: list[str]) -> None:
    if not isinstance(shares, Mapping) or set(shares) != set(names):
        raise InvalidParameter("shares", "must name every table once", f"Name {listed(names)}.")
    for name, share in shares.items():
        problem, repair = "must be a positive number", "Use 1 for an even share."
        check_number(f"shares of {name!r}", share, problem, repair, above=0, largest=LARGEST_SHARE)
