"""`gather` where ids are pseudonyms: lines of bundles → reports, each bundle taken or refused as a whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from deniable.engines.collecting.bundles import bundled_lines, in_groups, unbundled
from deniable.engines.collecting.sent_columns import SentColumns
from deniable.engines.collecting.wire_reports import MALFORMED, ReportDoor
from deniable.tables.schema.report_format import REPORT_BYTES
from deniable.tables.specification.specification import Specification

OTHER_BUNDLE = "another one for a name that had one"


class GatheredReport(NamedTuple):
    """One report of a bundle that was taken."""

    table: str
    name: str
    slot: int
    report: bytes
    round: int


def gathered_bundles(
    collection: Specification,
    lines: Iterable[str | bytes],
    refused: Counter[str],
    *,
    simulation: bool,
    advance: Callable[[int], None],
) -> Iterator[GatheredReport]:
    """The reports of whole bundles, the first one under each name and round; `refused` counts bundles by reason."""
    door = ReportDoor(collection, simulation=simulation)
    if door.bundles is None:
        raise ValueError("reports of this collection travel by user id")
    size = door.bundles.reports
    taken: dict[tuple[str, int], bytes] = {}
    for group in in_groups(lines, advance):
        sent = SentColumns.of([unbundled(bundled_lines(group, size), size, len(group) * size)])
        judged, names = door.judge(sent), sent.uids.to_pylist()
        for bundle in range(len(group)):
            first = bundle * size
            if judged.codes[first]:
                refused[judged.reason(first) or MALFORMED] += 1
                continue
            reports = sent.reports[first * REPORT_BYTES : (first + size) * REPORT_BYTES]
            name, round_ = names[first], int(judged.rounds[first])
            kept = taken.setdefault((name, round_), reports)
            if kept is not reports:
                refused[OTHER_BUNDLE] += kept != reports
                continue
            for row in range(size):
                one_report = reports[row * REPORT_BYTES : (row + 1) * REPORT_BYTES]
                table = door.tables[judged.tables[first + row]]
                yield GatheredReport(table, name, int(judged.slots[first + row]), one_report, round_)
