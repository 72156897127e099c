"""How answers are shown and exported: one layout, pictures, spreadsheets."""

import math
import zipfile
from datetime import date
from xml.etree import ElementTree

import pytest

from deniable.errors import BadInput
from deniable.queries.answers.result import Estimate, Result

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
RESULT = Result(
    {"day": [date(2024, 2, 29), None], "kind": ["a<b", "c"]},
    {"n": (Estimate(1234.0, 20.0), Estimate(math.nan, math.nan, bounds=(0.0, 9.0)))},
    ("a note",),
)


def test_one_answer_and_many_have_one_layout():
    assert str(Result({}, {"n": (Estimate(1234.0, 20.0),)})).splitlines() == [
        "    n   95 % interval",
        "1,234  1,195 to 1,273",
    ]
    assert str(RESULT).splitlines() == [
        "       day  kind        n   95 % interval",
        "2024-02-29   a<b    1,234  1,195 to 1,273",
        "      NULL     c  unclear      0.0 to 9.0",
        "a note",
    ]
    assert "1,234 ± 20" in RESULT.to_text(stderr=True)


def test_years_have_no_thousands_separators():
    year = Estimate(1987.3, 0.4, year=True)
    assert str(year) == "1987.30 ± 0.40 (95%: 1986.52 to 1988.08)"
    assert "1987.30  1986.52 to 1988.08" in str(Result({}, {"y": (year,)}))


def test_a_spreadsheet_holds_the_columns_and_the_notes(tmp_path):
    RESULT.to_excel(tmp_path / "answer.xlsx")
    with zipfile.ZipFile(tmp_path / "answer.xlsx") as archive:
        assert archive.testzip() is None
        sheet = ElementTree.fromstring(archive.read("xl/worksheets/sheet1.xml"))  # noqa: S314 - our own
        for name in archive.namelist():
            ElementTree.fromstring(archive.read(name))  # noqa: S314 - our own
    rows = [
        {cell.get("r"): "".join(cell.itertext()) for cell in row.iter(f"{MAIN}c")} for row in sheet.iter(f"{MAIN}row")
    ]
    assert rows[0]["A1"] == "day"
    assert rows[0]["C1"] == "n"
    assert (rows[1]["A2"], rows[1]["B2"], float(rows[1]["C2"])) == ("45351", "a<b", 1234.0)
    assert "C3" not in rows[2]
    assert rows[-1] == {"A5": "a note"}
    with pytest.raises(BadInput, match=r"must end in \.xlsx"):
        RESULT.to_excel(tmp_path / "answer.csv")


def test_an_answer_is_a_picture(tmp_path):
    pytest.importorskip("matplotlib")
    figure = RESULT.plot(tmp_path / "answer.svg")
    assert [axis.get_ylabel() for axis in figure.axes] == ["n"]
    assert (tmp_path / "answer.svg").stat().st_size > 1000
    with pytest.raises(BadInput, match="no numbers"):
        Result({"name": ["users"]}, {}).plot()
