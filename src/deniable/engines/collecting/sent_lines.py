"""A line of JSON, as a device sends a report to a collector → what arrived.

Nearly all lines are written alike, by `Report.to_json` and its like in other languages, without spaces or escapes.
Such a line is recognised as a whole; any other is read as JSON. Both say the same about every line.
"""

from __future__ import annotations

import re

from deniable.engines.collecting.sent_columns import SentReport
from deniable.errors import InvalidData
from deniable.tables.reports.report import parse
from deniable.tables.schema.report_format import COIN_MODES, REPORT_BYTES, REPORT_VERSION

LONGEST_LINE = 1 << 16
_UNREADABLE = SentReport("", b"")
_PLAIN_TEXT = r"[ !#-\[\]-~]*"
"""Characters that JSON writes as they are: ASCII that can be printed, without quotes and backslashes."""
_REPORT_HEAD = f"{REPORT_VERSION:02x}(?:{'|'.join(f'{mode:02x}' for mode in range(len(COIN_MODES)))})"
_USUAL_LINE = re.compile(
    rf'\{{"uid":(?:"({_PLAIN_TEXT})"|(0|-?[1-9][0-9]{{0,17}})),"table":"({_PLAIN_TEXT})",'
    rf'"report":"({_REPORT_HEAD}[0-9a-f]{{{2 * REPORT_BYTES - 4}}})"\}}'.encode()
)


def sent_line(line: str | bytes) -> SentReport:
    """What arrived in a line of JSON. If it cannot be read it is empty, and refused with all others at the door.

    >>> sent_line(b"{}")
    SentReport(uid='', report=b'', table=None, public=None)
    """
    if len(line) > LONGEST_LINE:
        return _UNREADABLE
    if isinstance(line, bytes) and (usual := _USUAL_LINE.fullmatch(line)) is not None:
        text, number, table, report = usual.groups()
        return SentReport((number or text).decode(), bytes.fromhex(report.decode()), table.decode(), {})
    try:
        uid, table, report, public = parse(line)
    except InvalidData:
        return _UNREADABLE
    return SentReport(str(uid), report.to_bytes(), table, public)
