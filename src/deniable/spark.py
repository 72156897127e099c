"""Spark: sessions, and functions for users of its SQL. `connect` and `Collection.perturb` take engine=session."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deniable.collection import Collection

__all__ = ["register", "session"]


def session(master: str = "local[*]") -> Any:
    """A session at a master, for use here; on a cluster most have one already."""
    from deniable.engines.spark.session import open_session

    return open_session(master)


def register(
    spark: Any,
    collection: Collection,
    reports: str | Path | Mapping[str, Any] | None = None,
    *,
    dimensions: Mapping[str, Any] | None = None,
    simulation: bool = False,
) -> None:
    """Make a collection known to Spark SQL.

    `deniable_<table>(uid, attribute, …)` gives the reports of a user, an array of (slot, view, seed, y); private
    attributes stand in the order of the specification. For a table with many rows per user it is
    `deniable_<table>(uid, rows)` with an array of structs. Every call releases anew: write what it gives, once.

    `SELECT * FROM deniable_sql('SELECT …')` answers a question, with standard errors and intervals as columns. It
    looks for reports in `reports` (a path, or DataFrames and catalog names by table), else in the catalog's tables and
    views named `<table>_reports`. Answers from a simulation have a column `simulation`.

    An ε without noise needs `simulation`, as it does everywhere.
    """
    from deniable.engines.spark.session import checked_session

    checked_session(spark)
    from deniable.engines.spark.sql_functions import register as registered

    registered(spark, collection, reports, dimensions, simulation=simulation)
