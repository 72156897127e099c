"""The fields of reports in bytes, read by one compiled loop that also says whether a report can be of a collection."""

from __future__ import annotations

from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Booleans, Integers
from deniable.mechanisms._compiled import compiled
from deniable.tables.schema.report_format import COIN_MODES, FIELD_BYTES, REPORT_BYTES, REPORT_VERSION

_ENDS = tuple(accumulate(FIELD_BYTES.values()))
# Arrays, so that the loop below is compiled for any two numbers instead of once for each field.
(_VERSION, _), (_COINS, _), _SLOT, _ROUND, _TAG, _VIEW, _SEED, _Y = (
    np.array((end - size, end)) for end, size in zip(_ENDS, FIELD_BYTES.values(), strict=True)
)
GOOD, UNREADABLE, OTHER_KIND, OTHER_ORIGIN, NO_SUCH_ROUND = range(5)
"""What the first bytes of a report say about it; of several problems, the first."""


class HeadRules(NamedTuple):
    """What a report of a collection begins with."""

    tags: NDArray[np.uint64]
    """Of every table."""
    other_tags: NDArray[np.uint64]
    """Of a simulation, if this is none, and the other way round."""
    coins: int
    rounds: int
    """How many rounds there are; 0 without rounds."""


class WireHeads(NamedTuple):
    """Reports as columns of numbers."""

    verdicts: NDArray[np.uint8]
    tables: NDArray[np.uint16]
    """The number of the table; where there is none, as many as there are tables."""
    rounds: Integers
    columns: dict[str, Integers]
    """Slot, view, seed and y."""


def read_heads(rules: HeadRules, reports: bytes, readable: Booleans) -> WireHeads:
    """The fields of reports, which follow one another."""
    rows = np.frombuffer(reports, dtype=np.uint8).reshape(-1, REPORT_BYTES)
    verdicts, tables = np.empty(len(rows), dtype=np.uint8), np.empty(len(rows), dtype=np.uint16)
    fields = np.empty((5, len(rows)), dtype=np.int64)
    _read(rows, readable, *rules, verdicts, tables, fields)
    rounds, slots, views, seeds, ys = fields
    return WireHeads(verdicts, tables, rounds, {"slot": slots, "view": views, "seed": seeds, "y": ys})


@compiled
def _number(rows: Any, row: Any, span: Any) -> Any:
    number = np.uint64(0)
    for byte in range(span[0], span[1]):
        number = number << np.uint64(8) | np.uint64(rows[row, byte])
    return number


@compiled
def _read(
    rows: Any,
    readable: Any,
    tags: Any,
    other_tags: Any,
    coins: Any,
    rounds: Any,
    verdicts: Any,
    tables: Any,
    fields: Any,
) -> None:
    for row in range(verdicts.size):
        turn, tag = np.int64(_number(rows, row, _ROUND)), _number(rows, row, _TAG)
        fields[0, row], fields[1, row] = turn, np.int64(_number(rows, row, _SLOT))
        fields[2, row], fields[3, row] = np.int64(_number(rows, row, _VIEW)), np.int64(_number(rows, row, _SEED))
        fields[4, row] = np.int64(_number(rows, row, _Y))
        table = 0
        while table < tags.size and tags[table] != tag:
            table += 1
        other = False
        for number in range(other_tags.size):
            other |= other_tags[number] == tag
        verdict = GOOD
        if not readable[row] or rows[row, _VERSION] != REPORT_VERSION or rows[row, _COINS] >= len(COIN_MODES):
            verdict = UNREADABLE
        elif other:
            verdict = OTHER_KIND
        elif table == tags.size or rows[row, _COINS] != coins:
            verdict = OTHER_ORIGIN
        elif turn > rounds or (turn == 0) != (rounds == 0):
            verdict = NO_SUCH_ROUND
        verdicts[row], tables[row] = verdict, table
