"""What users call: a collection, which is a specification that can also be used, and `fit`, which chooses a grid.

Each verb opens its room when it is first called, so that a device can import this file with nothing installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from deniable.errors import InvalidParameter
from deniable.tables.designs import GRID
from deniable.tables.schema.attributes import Table
from deniable.tables.specification.specification import Specification

if TYPE_CHECKING:
    from pathlib import Path

    from deniable.engines.collecting.collected_reports import Collected, Reports
    from deniable.engines.collecting.inspecting import Inspection
    from deniable.ledger import Ledger
    from deniable.queries.forecasts.assumed_rows import MatchingGiven, RowsGiven
    from deniable.queries.forecasts.fit import Fit
    from deniable.queries.forecasts.forecast import Forecast
    from deniable.queries.forecasts.proposal import Proposal
    from deniable.randomness import Source
    from deniable.tables.device.client import Client

FIT_SETTINGS = frozenset({"fanout", "oracle", "shares", "name", "coins"})
"""Settings of a collection that `fit` neither chooses nor takes as arguments of its own."""


class Collection(Specification):
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
    Collection(users (1 per user), orders (1 per user); epsilon=2, design='hio', 4b1d9251)

    The examples of its methods use a smaller one:

    >>> shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    """

    __slots__ = ()

    @classmethod
    def of(cls, specification: Specification) -> Collection:
        """The collection with this specification.

        >>> dn.Collection.of(shop) is shop
        True
        """
        if isinstance(specification, cls):
            return specification
        return cls._like(specification)

    def client(
        self,
        memory: MutableMapping[str, str] | str | Path | None = None,
        *,
        user: str | int | None = None,
        simulation: bool = False,
        ledger: Ledger | None = None,
    ) -> Client:
        """What runs on one device. `memory`, a file or a mapping, makes sure that it repeats its first answer.

        With assigned coins, `user` is the id under which the reports will be sent: it decides their views and seeds.
        With `simulation` an infinite ε is allowed, and reports are marked so that a release refuses them. A `ledger` is
        charged before anything is sent.

        >>> len(shop.client().report("users", {"age": 31}).to_bytes())
        32
        """
        from deniable.tables.device.client import Client

        return Client(self, memory, user=user, simulation=simulation, ledger=ledger)

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
        ledger: Ledger | None = None,
        round: int | None = None,
        memory: str | Path | None = None,
        max_rejected: float = 0.01,
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
        ledger: Ledger | None = None,
        round: int | None = None,
        memory: str | Path | None = None,
        max_rejected: float = 0.01,
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
        ledger: Ledger | None = None,
        round: int | None = None,  # noqa: A002 - as in SQL
        memory: str | Path | None = None,
        max_rejected: float = 0.01,
        **tables: Any,
    ) -> Reports | Collected:
        """The reports of many users at once: a simulation, or a batch at somebody the users trust.

        Tables are frames (Arrow, pandas, Polars) or paths of Parquet and CSV files, given by name; one is enough.
        `key` names the column of user ids. With `out` the reports are written to a folder, one Parquet dataset per
        table next to `collection.json`; otherwise they are returned. For a table with many rows per user, `everyone`
        (a frame or path with the ids) or a one-row table lists who sends reports, including users without rows.

        Rows outside the specification's domains are counted by reason. In a table with many rows they are left out; in
        others a random row replaces them, because a missing report would reveal that something was odd. All rows are
        checked first: where more than the share `max_rejected` of a table's rows would be rejected, nothing is drawn or
        charged, and the error says which rule of the specification would mend it. `inspect` counts without drawing. On
        Spark rows are not checked first.

        A seeded `source` and an ε without noise (infinite, or above 64 per report) need `simulation`. Reports then
        carry a mark, answers from them say *simulation*, and they do not mix with those of a release.

        Rows that do not fit into memory are spilled to a private folder inside `spill`, by default next to `out`, or
        else in the system's temporary folder. It is removed afterwards; after a kill, by the next run there.

        With `engine`, a SparkSession, tables are its DataFrames or names in its catalog, and the reports are written to
        `out` on any path that Spark can write.

        A `ledger` of whoever runs this is charged with each table's share of ε before anything is drawn.

        In a collection with rounds, `round` is one of them, and a folder `out` takes one round after the other.
        Memoised rounds, and rotating ones with drawn coins, need a `memory`: a private file, the same in every round.

        >>> shop.perturb(users={"uid": [1, 2, 3], "age": [31, 40, 52]})
        Reports(users: 3 reports)
        """
        if engine is not None:
            from deniable.engines.spark.spark_perturbing import perturb_spark

            given: dict[str, Any] = {"key": key, "out": out, "everyone": everyone, "source": source, "ledger": ledger}
            return perturb_spark(self, tables, engine, simulation=simulation, number=round, memory=memory, **given)
        from deniable.engines.collecting.perturbing import perturb

        options: dict[str, Any] = {"source": source, "simulation": simulation, "spill": spill, "ledger": ledger}
        options |= {"number": round, "memory": memory, "max_rejected": max_rejected}
        return perturb(self, tables, key=key, out=out, everyone=everyone, **options)

    def inspect(self, *, key: str = "uid", everyone: Any = None, **tables: Any) -> dict[str, Inspection]:
        """What would become of the rows of each table, before anything is drawn or spent.

        Arguments are those of `perturb`. Counts are exact, for whoever runs the collection; they are not private.

        >>> shop.inspect(users={"uid": [1, 2, 3], "age": [31, 40, 520]})["users"].problems
        {('age', 'outside the domain'): 1}
        """
        from deniable.engines.collecting.perturbing import inspect_rows

        return inspect_rows(self, tables, key=key, everyone=everyone)

    def forecast(
        self,
        sql: str,
        users: int,
        *,
        weights: str = "optimal",
        sums: str = "direct",
        rows: RowsGiven = None,
        matching: float | tuple[float, float] | None = None,
    ) -> Forecast:
        """The standard errors that a question's answers would have with `users` users, before anything is collected.

        Prints with the causes of each error; `.scalar().stderr` is the number.

        `rows` says how many rows a user has on average, those without any included: a number, a range as (low, high),
        or either by table. In a table of one row each it is the share of users who have it. `matching` is the share of
        rows that meet the question's conditions, on which averages depend. Without them, half of the rows that a table
        allows are assumed, spread evenly, and where that matters the forecast is a range, with its reasons.

        >>> print(shop.forecast("SELECT COUNT(*) AS n FROM users WHERE age < 30", users=1_000_000))
        1,000,000 users, ε = 2, design hio, optimal weights
           stderr  of users  truncation  rounding  view sampling  randomiser
        n   2,269    0.227%          0%        0%             8%         92%
        >>> average = "SELECT AVG(age) AS age FROM users WHERE age < 30"
        >>> shop.forecast(average, users=1_000_000, matching=0.2).scalar().stderr > 0
        True
        """
        from deniable.queries.forecasts.forecast import forecast

        return forecast(self, sql, users, weights=weights, sums=sums, rows=rows, matching=matching)

    def gather(self, lines: Iterable[str], *, simulation: bool = False) -> Reports:
        """The reports that devices sent, from lines of JSON (`Report.to_json`); `dn.connect` opens the result.

        A release refuses what simulated devices sent; with `simulation` everything else is refused.

        >>> line = shop.client().report("users", {"age": 31}).to_json(uid=7, table="users")
        >>> shop.gather([line])
        Reports(users: 1 report)
        """
        from deniable.engines.collecting.gathering import gather

        return gather(self, lines, simulation=simulation)


def fit(
    tables: Collection | Table | Sequence[Table],
    *,
    epsilon: float | None = None,
    users: int,
    workload: Sequence[str] | None = None,
    compared: bool = True,
    only_workload: bool = False,
    others: float | None = None,
    rows: RowsGiven = None,
    matching: MatchingGiven = None,
    **settings: Any,
) -> Fit[Collection]:
    """Choose the views of a grid for the questions of a workload, before anything is collected.

    `tables` are dn.Table values with their ε, or a collection whose design is to be replaced. Without a workload, all
    ranges of one and of two attributes count alike. Nothing but these public facts is looked at, and the same facts
    give the same fit. With `compared`, other designs are forecast too.

    `others` is the factor by which errors of the workload may rise, so that questions outside of it can be answered,
    too: 1.25 unless it is given, and 1.08 for tables that the workload joins. Such questions get no more reports than
    `hio` would give them. With `only_workload` they get none, as with 1.

    `rows` are those that users are expected to
    have, as in `Collection.forecast`, and `matching` is the share of them that meets the conditions: a number, a range,
    or a list with one of these per question. Further settings are the collection's `fanout`, `oracle`, `shares`, `name`
    and `coins`.

    >>> import deniable as dn
    >>> people = dn.Table("people", age=dn.Ordinal(0, 99), sex=dn.Categorical("f", "m"))
    >>> fitted = dn.fit(people, epsilon=1.0, users=100_000, workload=["SELECT COUNT(*) FROM people WHERE age < 18"])
    >>> fitted.collection.grids["people"][0]
    GridView(axes={'age': Cells(starts=(0, 18))}, weight=400)
    """
    from deniable.queries.forecasts.fit import fit_grids

    start = _with_grids(tables, epsilon, settings)
    return fit_grids(
        start,
        users,
        workload,
        compared=compared,
        only_workload=only_workload,
        others=others,
        rows=rows,
        matching=matching,
    )


def plan(
    tables: Collection | Table | Sequence[Table],
    workload: Sequence[str] | None,
    *,
    users: int,
    epsilon: float | None = None,
    only_workload: bool = False,
    others: float | None = None,
    rows: RowsGiven = None,
    matching: MatchingGiven = None,
    after: Any = None,
    alike: bool = False,
    advance: Callable[[float], None] | None = None,
    **settings: Any,
) -> Proposal[Collection]:
    """Propose a specification for the questions of a workload: where to begin.

    Fits a grid to them, compares it with other designs, and predicts the error of every question, before anything is
    collected. Arguments are those of `fit`. With `after`, the database of a first group of users, the design is for the
    rest: cells, views and their probabilities follow what the first group's reports say about where rows are. Nobody
    may report in both groups; `connect([first, second])` answers over both, and `.looks` are the errors to expect of
    that. Say `alike` here and there if chance decides who is in the first group, such as a hash of the user id: then
    each group says something about all users, and errors are smaller.

    `advance` is called with the part of the work that was done since it was last called. Sets of cells
    (`oracle="subset"`) are proposed where these questions are forecast to get smaller errors with them.

    >>> import deniable as dn
    >>> people = dn.Table("people", age=dn.Ordinal(0, 99), sex=dn.Categorical("f", "m"))
    >>> questions = ["SELECT COUNT(*) FROM people WHERE age < 18"]
    >>> print(dn.plan(people, questions, epsilon=1.0, users=100_000))
    100,000 users, ε = 1; errors of COUNT and SUM per user
        grid       hio      ahio      ehio  question
     0.00384    0.0205    0.0238    0.0324  SELECT COUNT(*) FROM people WHERE age < 18
    table people: 5 views
       64.1%  age 2 uneven cells
        9.0%  age 32 uneven cells
        9.0%  age 100 cells
        9.0%  sex 2 cells
        9.0%  age 5 cells, sex 2 cells
    a range that is not in the workload:
      0.0267  people: age
      0.0106  people: sex
      0.0419  people: age and sex
    Proposed: design = "grid", oracle = "subset".
    """
    from deniable.queries.forecasts.fit import fit_grids, ignored
    from deniable.queries.forecasts.oracle_choice import with_best_oracle
    from deniable.queries.forecasts.proposal import propose, propose_after

    start = _with_grids(tables, epsilon, settings)
    expected: dict[str, Any] = {"rows": rows, "matching": matching}
    options: dict[str, Any] = {"only_workload": only_workload, "others": others, **expected}
    told = advance or ignored
    if after is None:
        if alike:
            raise InvalidParameter("alike", "is about groups of users, and there is one", "Give after=, too.")
        fitted = fit_grids(start, users, workload, **options, advance=lambda part: told(0.8 * part))
        return with_best_oracle(propose(start, fitted), **expected, advance=lambda part: told(0.2 * part))
    if after.collection.tables != start.tables:
        raise InvalidParameter("after", "is about other tables", "Plan the rest for the tables of the first look.")
    return propose_after(after, start, users, workload, **options, alike=alike, advance=told)


def _with_grids(tables: Any, epsilon: float | None, settings: Mapping[str, Any]) -> Collection:
    """The collection whose grids are to be chosen."""
    if unknown := sorted(set(settings) - FIT_SETTINGS):
        known = ", ".join(sorted(FIT_SETTINGS))
        raise InvalidParameter(unknown[0], "is not a setting of fit", f"Use {known}; the design is always a grid.")
    if isinstance(tables, Specification):
        changes = dict(settings) if epsilon is None else {"epsilon": epsilon, **settings}
        return Collection.of(tables).with_settings(design=GRID, **changes)
    if epsilon is None:
        raise InvalidParameter("epsilon", "is missing", "Say how much all of a user's reports may spend.")
    listed = tuple(tables) if isinstance(tables, Iterable) else (tables,)
    return Collection(*listed, epsilon=epsilon, design=GRID, **settings)
