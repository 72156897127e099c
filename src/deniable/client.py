"""The client for one device: everything a device needs, with the standard library only."""

from deniable.collection import Collection
from deniable.ledger import Ledger
from deniable.streams.local.stream_client import ToPLClient
from deniable.streams.local.stream_report import StreamReport
from deniable.tables.device.client import Client
from deniable.tables.device.uploader import Uploader
from deniable.tables.reports.bundle import Bundle
from deniable.tables.reports.report import Report

__all__ = ["Bundle", "Client", "Collection", "Ledger", "Report", "StreamReport", "ToPLClient", "Uploader"]
