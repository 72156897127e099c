"""How reports travel to a collector: the forms of a body, stated once. Standard library only, for devices.

application/vnd.deniable.reports   each report: length of the id (2 bytes, big-endian), the id in UTF-8, 32 bytes
application/vnd.deniable.stream-reports   the same with the 16 bytes of a stream's report
application/vnd.deniable.bundles   where ids are pseudonyms: 16 bytes of a name, and all reports of a user and round
application/x-ndjson               lines as `Report.to_json` or `Bundle.to_json` writes them
"""

from __future__ import annotations

from collections.abc import Iterable

BINARY_REPORTS = "application/vnd.deniable.reports"
BINARY_BUNDLES = "application/vnd.deniable.bundles"
STREAM_REPORTS = "application/vnd.deniable.stream-reports"
REPORT_LINES = "application/x-ndjson"
ID_LENGTH_BYTES = 2


def binary_body(reports: Iterable[tuple[str, bytes]]) -> bytes:
    """Reports with their users' ids, as a device sends them.

    >>> binary_body([("7", bytes(32))])[:3]
    b'\\x00\\x017'
    """
    named = ((uid.encode(), report) for uid, report in reports)
    return b"".join(len(name).to_bytes(ID_LENGTH_BYTES, "big") + name + report for name, report in named)
