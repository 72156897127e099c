"""Bodies become columns as a plain loop would cut them, whatever is in them."""

import random

import pytest

from deniable.engines.collecting.sent_columns import (
    EndsInside,
    FramedBody,
    SentColumns,
    SentReport,
    TooManyReports,
    framed,
)
from deniable.limits import LONGEST_TEXT
from deniable.tables.reports.upload_format import binary_body


def plainly(body, most):
    """(id, report) of every report, or the refusal."""
    cut, at = [], 0
    while at < len(body):
        last = at + 2 + int.from_bytes(body[at : at + 2], "big")
        if last + 32 > len(body):
            return EndsInside
        if len(cut) == most:
            return TooManyReports
        cut.append((body[at + 2 : last], body[last : last + 32]))
        at = last + 32
    return cut


def framed_or_refusal(body, most):
    try:
        counted = framed(body, most)
    except (EndsInside, TooManyReports) as problem:
        return type(problem)
    cut = counted.cut()
    assert counted.has_one_user == (len({uid for uid, _ in cut}) == 1)
    sent = SentColumns.of([counted])
    reports = [sent.reports[first : first + 32] for first in range(0, len(sent.reports), 32)]
    readable = [is_text(uid) for uid, _ in cut]
    assert sent.readable.tolist() == readable
    assert sent.uids.to_pylist() == [uid.decode() if good else "" for (uid, _), good in zip(cut, readable, strict=True)]
    assert reports == [report for _, report in cut]
    return cut


def is_text(uid):
    try:
        uid.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_bodies_are_cut_as_a_plain_loop_cuts_them():
    source, seen = random.Random(5), set()  # noqa: S311 - a test
    for _ in range(400):
        ids = [
            source.choice([b"ann", source.randbytes(source.choice([0, 1, 3, 40]))]) for _ in range(source.randint(0, 6))
        ]
        body = b"".join(len(uid).to_bytes(2, "big") + uid + source.randbytes(32) for uid in ids)
        if source.random() < 0.4:
            at = source.randrange(len(body) + 1)
            body = source.choice([body[:at], body[:at] + b"\0" + body[at:]])
        expected = plainly(body, 4)
        assert framed_or_refusal(body, 4) == expected
        seen.add(expected if isinstance(expected, type) else list)
    assert seen == {EndsInside, TooManyReports, list}


@pytest.mark.parametrize(
    ("ids", "readable"),
    [
        ([b"ann", "é".encode(), b""], [True, True, True]),
        ([b"ann", b"\xc3", b"\xa9", b"bob"], [True, False, False, True]),  # together they would be one letter
        ([b"\xed\xa0\x80", b"x" * LONGEST_TEXT, b"x" * (LONGEST_TEXT + 1)], [False, True, False]),
    ],
)
def test_ids_that_no_column_can_hold_are_told_from_others(ids, readable):
    body = b"".join(len(uid).to_bytes(2, "big") + uid + bytes([number] * 32) for number, uid in enumerate(ids))
    sent = SentColumns.of([framed(body, 10)])
    assert sent.readable.tolist() == readable
    assert sent.uids.to_pylist() == [uid.decode() if good else "" for uid, good in zip(ids, readable, strict=True)]
    assert [report[0] for report in sent.wire.view("V32").tolist()] == list(range(len(ids)))


def test_requests_of_both_forms_stand_side_by_side():
    line = SentReport("zoë", bytes([2] * 32), "users", {"city": "Rome"})
    requests = [
        framed(binary_body([("ann", bytes([1] * 32))]), 9),
        [line, SentReport("", b"")],
        framed(b"", 9),
        framed(binary_body([("bob", bytes([3] * 32))] * 2), 9),
    ]
    sent = SentColumns.of(requests)
    assert sent.uids.to_pylist() == ["ann", "zoë", "", "bob", "bob"]
    assert sent.readable.tolist() == [True, True, False, True, True]
    assert sent.lines == {1: line}
    assert sent.reports == bytes([1] * 32 + [2] * 32 + [0] * 32 + [3] * 64)
    assert [body.only_user for body in requests if isinstance(body, FramedBody)] == ["ann", None, "bob"]
    assert framed(binary_body([("ann", bytes(32)), ("bob", bytes(32))]), 9).only_user is None
    assert SentColumns.of([]).uids.to_pylist() == []
