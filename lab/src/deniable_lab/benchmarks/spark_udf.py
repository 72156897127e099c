"""The paper's way to answer a COUNT on Spark [XDW20, Section 7], for comparison only.

Released tables are first joined on the user id by Spark SQL. A function in Python then looks at every joined row: for
each combination of nodes of the decompositions that its reports say something about, it finds which of the 2^K states
of the K reports it is in, and adds what that state contributes, an entry of the inverse of the 2^K × 2^K matrix of
transition probabilities. Spark adds up what rows contribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from deniable.database import Database
from deniable.mechanisms.frequency_oracle import HashedCells
from deniable.mechanisms.hashing import bucket
from deniable.queries.planning.plan import Plan
from deniable.queries.weights.table_plan import PartPlan, ViewWeights

Node = tuple[int, float]
"""A cell and its weight."""


def paper_plan(database: Database, text: str) -> Plan:
    """The question with the decompositions of the paper: the fewest nodes."""
    return database.plan(text, weights="greedy")


def our_way(database: Database, text: str) -> float:
    """The same estimate by our engine: the same nodes, views divided by how many reports were to be expected."""
    plan = paper_plan(database, text)
    return float(database.engine.moments(plan, {}, counted=False).sums[0, 0])


def paper_way(spark: Any, database: Database, path: Path, text: str) -> float:
    """The answer to a COUNT by the states of every combination of nodes, row by row."""
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

    plan = paper_plan(database, text)
    frames = []
    for number, table in enumerate(plan.tables):
        columns = [F.col(name).alias(f"{name}{number}") for name in ("view", "seed", "y")]
        frames.append(spark.read.parquet(str(path / table.table)).select("uid", *columns))
    joined = reduce(lambda left, right: left.join(right, "uid"), frames)
    oracle = F.udf(joint_oracle([table.parts[0] for table in plan.tables]), "double", useArrow=False)
    arguments = [f"{name}{number}" for number in range(len(frames)) for name in ("view", "seed", "y")]
    return float(joined.agg(F.sum(oracle(*arguments))).first()[0])


def joint_oracle(parts: list[PartPlan]) -> Callable[..., float]:
    """What a joined row contributes: view, seed and y of its reports in each table → a number."""
    tables = [{view.view: (_buckets(view), list(_nodes(view))) for view in part.views} for part in parts]
    inverses = {
        tuple(view.view for view in views): _inverse([(view.p, view.q) for view in views])
        for views in product(*(part.views for part in parts))
    }

    def contribution(*report: int) -> float:
        views = report[::3]
        states = []
        for table, view, seed, y in zip(tables, views, report[1::3], report[2::3], strict=True):
            if view not in table:
                return 0.0  # it says nothing about any node
            buckets, nodes = table[view]
            states.append(
                [(int((bucket(seed, cell, buckets) if buckets else cell) == y), weight) for cell, weight in nodes]
            )
        entries, total = inverses[views], 0.0
        for combination in product(*states):
            index, weight = 0, 1.0
            for state, mine in combination:
                index, weight = 2 * index + state, weight * mine
            total += weight * entries[index]
        return total

    return contribution


def _nodes(view: Any) -> Iterator[Node]:
    cells, _, rows = view.by_cell()
    for index, cell in enumerate(cells.tolist()):
        yield cell, float(rows.values[rows.starts[index] : rows.starts[index + 1]].sum())


def _inverse(oracles: list[tuple[float, float]]) -> list[float]:
    """What each observed state says of the state in which all reports support their nodes."""
    matrix = np.ones((1, 1))
    for p, q in oracles:
        matrix = np.kron(matrix, np.array([[1 - q, 1 - p], [q, p]]))
    entries: list[float] = np.linalg.inv(matrix)[-1].tolist()
    return entries


def _buckets(view: ViewWeights) -> int:
    """How many buckets a view hashes into; 0 if its reports name their cells."""
    support = view.oracle.support
    return support.buckets if isinstance(support, HashedCells) else 0
