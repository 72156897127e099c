"""The compiled reading of reports, against the stated layout read field by field."""

import random

import numpy as np

import deniable as dn
from deniable.engines.collecting.sent_columns import SentReport
from deniable.engines.collecting.wire_heads import (
    GOOD,
    NO_SUCH_ROUND,
    OTHER_KIND,
    OTHER_ORIGIN,
    UNREADABLE,
    HeadRules,
    read_heads,
)
from deniable.engines.collecting.wire_reports import ReportDoor
from deniable.tables.schema.report_format import COIN_MODES, FIELD_BYTES, LAYOUT, REPORT_VERSION

TAGS, OTHERS = (3, 2**63 + 5, 11), (4, 12)


def plainly(report, readable, coins, rounds):
    """What the rules say about one report."""
    fields = dict(zip(FIELD_BYTES, LAYOUT.unpack(report), strict=True))
    if not readable or fields["version"] != REPORT_VERSION or fields["coins"] >= len(COIN_MODES):
        return UNREADABLE, fields
    if fields["tag"] in OTHERS:
        return OTHER_KIND, fields
    if fields["tag"] not in TAGS or fields["coins"] != coins:
        return OTHER_ORIGIN, fields
    is_round = 1 <= fields["round"] <= rounds if rounds else fields["round"] == 0
    return GOOD if is_round else NO_SUCH_ROUND, fields


def test_fields_and_verdicts():
    source = random.Random(1)  # noqa: S311 - no secret
    seen = set()
    for rounds in (0, 3):
        for coins in range(len(COIN_MODES)):
            made = [
                LAYOUT.pack(
                    source.choice([REPORT_VERSION, REPORT_VERSION, REPORT_VERSION, 0, 255]),
                    source.choice([coins, coins, 0, 1, 2, 255]),
                    source.choice([0, 1, 2**16 - 1]),
                    source.choice([0, 0, 1, 3, 4, 2**32 - 1]),
                    source.choice([*TAGS, *TAGS, *OTHERS, 0, 2**64 - 1]),
                    source.choice([0, 2**32 - 1, source.getrandbits(32)]),
                    source.getrandbits(32),
                    source.choice([0, 2**64 - 1, source.getrandbits(64)]),
                )
                for _ in range(500)
            ]
            readable = np.array([source.random() < 0.9 for _ in made])
            rules = HeadRules(np.array(TAGS, dtype=np.uint64), np.array(OTHERS, dtype=np.uint64), coins, rounds)
            heads = read_heads(rules, b"".join(made), readable)
            for row, report in enumerate(made):
                verdict, fields = plainly(report, readable[row], coins, rounds)
                seen.add(verdict)
                assert heads.verdicts[row] == verdict
                assert heads.rounds[row] == fields["round"]
                assert heads.tables[row] == (TAGS.index(fields["tag"]) if fields["tag"] in TAGS else len(TAGS))
                for column, values in heads.columns.items():
                    assert int(values[row]) % 2**64 == fields[column]
    assert seen == {GOOD, UNREADABLE, OTHER_KIND, OTHER_ORIGIN, NO_SUCH_ROUND}


def test_a_collection_of_many_tables():
    """More than one byte can number."""
    tables = [dn.Table(f"t{number}", age=dn.Ordinal(1, 5)) for number in range(300)]
    shop = dn.Collection(*tables, epsilon=300.0)
    report = shop.client().report("t299", {"age": 3}).to_bytes()
    (good, bad) = ReportDoor(shop).check([SentReport("7", report), SentReport("7", bytes(32))])
    assert (good.refusal, good.table, bad.refusal) == (None, "t299", "malformed")
