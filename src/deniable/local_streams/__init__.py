"""Streams without trust, on the device: what devices and server agree on, the report, and the client.

Importing this package needs the standard library alone: a device does.
"""

from deniable.local_streams.device import ToPLClient
from deniable.local_streams.protocol import Protocol
from deniable.local_streams.report import StreamReport

__all__ = ["Protocol", "StreamReport", "ToPLClient"]
