"""Sets of cells through a collector: uploaded as 64-bit masks, stored, sealed, and asked with the same answers."""

import json

import pytest

import deniable as dn
from asgi import Served
from deniable.engines.collecting.stored_reports import collector_folder, seal
from deniable.tables.reports.upload_format import REPORT_LINES, binary_body

LARGEST = dn.Table("people", answer=dn.Ordinal(0, 62))
SURVEY = dn.Collection(LARGEST, epsilon=1.0, design="mg", oracle="subset", coins="assigned", name="shop")
QUESTIONS = [
    "SELECT COUNT(*) AS x FROM people WHERE answer BETWEEN 5 AND 40",
    "SELECT SUM(answer) AS x FROM people",
]


@pytest.fixture(scope="module")
def sent():
    return {f"user {n}": SURVEY.client(user=f"user {n}").report("people", {"answer": n % 63}) for n in range(80)}


def test_masks_come_back_as_they_were_sent_and_answers_are_the_same_everywhere(tmp_path, sent):
    assert any(report.y >= 2**32 for report in sent.values())  # 64 bits are needed
    served = Served(tmp_path / "collected", SURVEY)
    pairs = [(uid, report.to_bytes()) for uid, report in sent.items()]
    assert served.send(*pairs[:40]).json["accepted"] == 40
    lines = "\n".join(report.to_json(uid, "people") for uid, report in list(sent.items())[40:]).encode()
    assert served.post(lines, media_type=REPORT_LINES).json["accepted"] == 40
    assert served.send(*pairs).json["repeated"] == 80
    opened = collector_folder(served.folder)
    seal(opened, served.collector.store, tmp_path / "sealed")
    live = [served.collector.questions.ask(lambda db, q=q: db.sql(q).scalar()).result(300) for q in QUESTIONS]
    served.close()
    gathered = SURVEY.gather([report.to_json(uid, "people") for uid, report in sent.items()])
    kept = dict(zip(*(gathered.tables["people"][name].to_pylist() for name in ("uid", "y")), strict=True))
    assert kept == {uid: report.y for uid, report in sent.items()}
    for database in (dn.connect(gathered), dn.connect(tmp_path / "collected"), dn.connect(tmp_path / "sealed")):
        assert not any(database.refused["people"].values())
        for question, expected in zip(QUESTIONS, live, strict=True):
            answer = database.sql(question).scalar()
            assert (answer.value, answer.stderr) == pytest.approx((expected.value, expected.stderr))


def test_masks_with_other_numbers_of_cells_are_refused_at_the_door(tmp_path, sent):
    served = Served(tmp_path / "collected", SURVEY)
    report = sent["user 0"].to_bytes()
    masks = [0, 2**62, 2**63 - 1, 2**63, sent["user 0"].y ^ 1, sent["user 0"].y | 2**63]
    bad = [report[:24] + mask.to_bytes(8, "big") for mask in masks]
    answer = json.loads(served.post(binary_body([("user 0", each) for each in bad])).body)
    assert answer["refused"] == {"outcome": len(bad)}
    assert served.collector.store.summary().counts == {}
    served.close()
