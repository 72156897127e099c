"""A line that is recognised as a whole says what reading it as JSON says."""

import random

import deniable as dn
from deniable.engines.collecting import sent_lines
from deniable.engines.collecting.sent_lines import LONGEST_LINE, sent_line
from fuzzing.mutations import mutated_bytes

SHOP = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), dn.Table("orders_2", n=dn.Ordinal(0, 3)), epsilon=2.0)
REPORTS = [(table, SHOP.client().report(table, {})) for table in ("users", "orders_2")]
IDS = ["7", 7, 0, -7, 10**17, 10**18, -(2**63), 2**63, "", "a b~!#", 'q"', "back\\", "é", "\t", "\x7f", "x" * 70_000]
LINES = [report.to_json(uid, table).encode() for uid in IDS for table, report in REPORTS]


def read_as_json(line):
    return sent_line(line.decode())  # only bytes are recognised


def test_lines_as_devices_write_them():
    usual = [line for line in LINES if sent_lines._USUAL_LINE.fullmatch(line)]
    assert len(usual) >= 16  # short ids without escapes, and numbers of up to 18 digits
    for line in LINES:
        assert sent_line(line) == read_as_json(line)
        assert (sent_line(line).report == b"") == (len(line) > LONGEST_LINE or f":{2**63}," in line.decode())


def test_odd_lines_are_read_alike():
    report = REPORTS[0][1].to_json("7", "users")
    changes = [
        *(("02", "01"), ("0200", "0202"), ("0200", "02FF"), ('"}', 'AB"}'), ('0"', 'A"')),
        *(('"7"', uid) for uid in ("-0", "07", "7.0", "true", "-7", "null", '"\\u0037"', '"7""')),
        *((',"t', ', "t'), ("}", "} "), ("}", "}\r"), ("{", "{{"), ('"users"', "7")),
        *(("}", ',"public":{}}'), ("}", ',"uid":"8"}')),
    ]
    lines = [report.replace(old, new, 1).encode() for old, new in changes]
    chance = random.Random(5)  # noqa: S311 - no secret
    short = [line for line in LINES if len(line) < 1000]
    lines += [mutated_bytes(chance, chance.choice(short)) for _ in range(3_000)]
    compared = 0
    for line in lines:
        try:
            expected = read_as_json(line)
        except UnicodeDecodeError:
            continue
        compared += 1
        assert sent_line(line) == expected, line
    assert compared > 2_000
