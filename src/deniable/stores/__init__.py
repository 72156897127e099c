"""Streams that last: values in from files and pipes, private values out, and states that survive a crash.

In: paths, pipes and publishers. Out: released values and state files. Commands and services call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from deniable.lazy_names import lazy_names

if TYPE_CHECKING:
    from deniable.stores.batch_publisher import BatchPublisher
    from deniable.stores.durable_publisher import DurablePublisher
    from deniable.stores.durable_server import DurableServer
    from deniable.stores.live.store_check import check_store
    from deniable.stores.live.stored_stream import StoredStream, read_release
    from deniable.stores.report_batches import ReportBatch
    from deniable.stores.sources.batch import Batch, Columns
    from deniable.stores.sources.readers import read_file

__all__ = [
    "Batch",
    "BatchPublisher",
    "Columns",
    "DurablePublisher",
    "DurableServer",
    "ReportBatch",
    "StoredStream",
    "check_store",
    "read_file",
    "read_release",
]

_LAZY = {
    "Batch": "deniable.stores.sources.batch",
    "BatchPublisher": "deniable.stores.batch_publisher",
    "Columns": "deniable.stores.sources.batch",
    "DurablePublisher": "deniable.stores.durable_publisher",
    "DurableServer": "deniable.stores.durable_server",
    "ReportBatch": "deniable.stores.report_batches",
    "StoredStream": "deniable.stores.live.stored_stream",
    "check_store": "deniable.stores.live.store_check",
    "read_file": "deniable.stores.sources.readers",
    "read_release": "deniable.stores.live.stored_stream",
}

__getattr__, __dir__ = lazy_names(__name__, _LAZY)
