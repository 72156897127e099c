"""The client for one device: everything a device needs, with the standard library only."""

from deniable.local_streams import StreamReport, ToPLClient
from deniable.tables.collection import Collection
from deniable.tables.device import Client
from deniable.tables.report import Report

__all__ = ["Client", "Collection", "Report", "StreamReport", "ToPLClient"]
