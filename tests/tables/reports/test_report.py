"""One report: its bytes and its line of JSON have one size and are read back; the facts of the format fit together."""

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.client import Report
from deniable.errors import InvalidData
from deniable.mechanisms.local_hashing import SEEDS
from deniable.tables.reports.report_table import nobody
from deniable.tables.schema import report_format
from deniable.tables.schema.report_format import (
    ANSWER_COLUMNS,
    COLUMN_TYPES,
    FIELD_BYTES,
    LAYOUT,
    REPORT_BYTES,
    REPORT_COLUMNS,
)

ORDERS = dn.Table("orders", many=10, tau=3, amount=dn.Ordinal(0, 500), kind=dn.Categorical("a", "b", "c"))
SHOP = dn.Collection(ORDERS, epsilon=2.0, design="ahio")


def test_bytes_and_json_have_one_size_and_are_read_back():
    client_sizes, json_sizes = set(), set()
    for amount in range(0, 501, 50):
        for report in SHOP.client().reports("orders", [{"amount": amount, "kind": "a"}] * (amount // 50)):
            client_sizes.add(len(report.to_bytes()))
            json_sizes.add(len(report.to_json("u1", "orders")))
            assert Report.from_bytes(report.to_bytes()) == report
            assert Report.from_json(report.to_json(17, "orders")) == (17, "orders", report)
    assert client_sizes == {REPORT_BYTES} == {32}
    assert len(json_sizes) == 1


def test_malformed_reports_are_refused():
    for data, message in (
        (b"short", "32 bytes"),
        (bytes([9]) + bytes(31), "version 9"),
        (bytes([2, 7]) + bytes(30), "unknown kind, 7"),
    ):
        with pytest.raises(InvalidData, match=message):
            Report.from_bytes(data)
    whole = '{"uid": true, "table": "t", "report": "' + "02" + "00" * 31 + '"}'
    for text in ("", "[]", '{"uid": 1}', '{"uid": 1, "table": "t", "report": "zz"}', whole):
        with pytest.raises(InvalidData, match="JSON"):
            Report.from_json(text)


def test_the_facts_of_the_format_fit_together():
    assert (LAYOUT.format, sum(FIELD_BYTES.values())) == (">BBHIQIIQ", REPORT_BYTES)
    assert (
        tuple(field for field in FIELD_BYTES if field in REPORT_COLUMNS) == REPORT_COLUMNS == ("slot", *ANSWER_COLUMNS)
    )
    assert tuple(COLUMN_TYPES) == REPORT_COLUMNS
    assert (report_format.SLOT_NUMBERS, report_format.VIEW_NUMBERS) == (2**16, 2**32)
    assert report_format.LARGEST_SEED == SEEDS - 1 == np.iinfo(np.uint32).max
    schema = nobody(SHOP, "orders").schema
    assert [schema.field(column).type for column in REPORT_COLUMNS] == [
        pa.uint16(),
        pa.uint32(),
        pa.uint32(),
        pa.int64(),
    ]
