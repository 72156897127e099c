"""An answer as an Excel file, written with the standard library alone: one sheet of texts, numbers and dates."""

from __future__ import annotations

import math
import zipfile
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from deniable.disk_faults import writing
from deniable.errors import BadInput

_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_CONTENT_TYPES = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_DAY_ZERO = datetime(1899, 12, 30)
_DATE_STYLE, _TIME_STYLE = 1, 2
MOST_CELL_CHARACTERS = 32_767
_FIXED_PARTS = {
    "[Content_Types].xml": (
        f'<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        '<Default Extension="xml" ContentType="application/xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_CONTENT_TYPES}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{_CONTENT_TYPES}.styles+xml"/>'
        f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{_CONTENT_TYPES}.worksheet+xml"/></Types>'
    ),
    "_rels/.rels": (
        f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>'
    ),
    "xl/workbook.xml": (
        f'<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}">'
        '<sheets><sheet name="answer" sheetId="1" r:id="rId1"/></sheets></workbook>'
    ),
    "xl/_rels/workbook.xml.rels": (
        f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="rId1" Type="{_OFFICE}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="rId2" Type="{_OFFICE}/styles" Target="styles.xml"/></Relationships>'
    ),
    "xl/styles.xml": (
        f'<styleSheet xmlns="{_MAIN}"><fonts count="1"><font/></fonts><fills count="1"><fill/></fills>'
        '<borders count="1"><border/></borders><cellStyleXfs count="1"><xf/></cellStyleXfs>'
        '<cellXfs count="3"><xf/><xf numFmtId="14" applyNumberFormat="1"/><xf numFmtId="22" applyNumberFormat="1"/>'
        "</cellXfs></styleSheet>"
    ),
}


def write_spreadsheet(path: str | Path, header: list[str], rows: list[list[Any]], notes: list[str]) -> None:
    """Write a header, rows below it, and notes below an empty row; whole or not at all."""
    if Path(path).suffix.lower() != ".xlsx":
        raise BadInput("the name of a spreadsheet must end in .xlsx. Nothing was written. Name it answer.xlsx.")
    lines: list[list[Any]] = [header, *rows, *([[], *([note] for note in notes)] if notes else [])]
    body = "".join(_row(number, cells) for number, cells in enumerate(lines, 1))
    sheet = f'<worksheet xmlns="{_MAIN}"><sheetData>{body}</sheetData></worksheet>'
    with (
        writing(f"the spreadsheet {Path(path).name!r}", "Nothing was written"),
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, text in {**_FIXED_PARTS, "xl/worksheets/sheet1.xml": sheet}.items():
            archive.writestr(name, _HEAD + text)


def _row(number: int, cells: list[Any]) -> str:
    made = "".join(_cell(f"{_column(position)}{number}", value) for position, value in enumerate(cells))
    return f'<row r="{number}">{made}</row>'


def _column(position: int) -> str:
    """A column's letters: A to Z, AA, AB, …"""
    letters = ""
    position += 1
    while position:
        position, rest = divmod(position - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def _cell(reference: str, value: Any) -> str:
    where = f"<c r={quoteattr(reference)}"
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    if isinstance(value, bool):
        return f'{where} t="b"><v>{int(value)}</v></c>'
    if isinstance(value, (int, float, Decimal)):
        return f"{where}><v>{value!r}</v></c>" if not isinstance(value, Decimal) else f"{where}><v>{value}</v></c>"
    if isinstance(value, date):
        moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
        style = _TIME_STYLE if isinstance(value, datetime) else _DATE_STYLE
        days = (moment - _DAY_ZERO).total_seconds() / 86_400
        return f'{where} s="{style}"><v>{days:.10g}</v></c>'
    text = escape("".join(sign for sign in str(value) if sign in "\t\n" or ord(sign) >= 32))
    return f'{where} t="inlineStr"><is><t xml:space="preserve">{text[:MOST_CELL_CHARACTERS]}</t></is></c>'
