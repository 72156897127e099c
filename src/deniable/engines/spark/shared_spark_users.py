"""Users in more than one group of reports, counted by Spark: their ids never leave the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import combinations
from typing import Any

from deniable.engines.spark.error_translation import spark_errors
from deniable.engines.spark.report_validation import SparkStore


def shared_spark_users(groups: Sequence[Mapping[str, SparkStore]]) -> int:
    """How many users have reports, in any table, in more than one group; 7 and "7" are the same user."""
    ids = [reduce(_union, (_ids(store) for store in stores.values())) for stores in groups if stores]
    if len(ids) < 2:
        return 0
    with spark_errors("looking for users in several groups"):
        shared = reduce(_union, (left.intersect(right) for left, right in combinations(ids, 2)))
        return int(shared.distinct().count())


def _ids(store: SparkStore) -> Any:
    return store.frame.selectExpr("CAST(uid AS STRING) AS uid")


def _union(left: Any, right: Any) -> Any:
    return left.union(right)
