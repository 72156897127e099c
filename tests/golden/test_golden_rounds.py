"""Rounds are answered as the test vectors say: turns, coins of a round, covers, and what is kept for life."""

import json

import deniable as dn
from deniable.tables.reports.report import Report
from golden.round_vectors import FILE, vectors


def test_devices_repeat_the_vectors():
    written = json.loads(FILE.read_text(encoding="utf-8"))
    assert len(written) == 18
    assert json.loads(json.dumps(vectors())) == written  # else run round_vectors.py, if that is meant


def test_the_vectors_show_every_mode():
    written = json.loads(FILE.read_text(encoding="utf-8"))
    modes = {(vector["specification"]["rounds"]["mode"], vector["specification"]["coins"]) for vector in written}
    assert len(modes) == 6
    for vector in written:
        rounds = dn.Collection.from_dict(vector["specification"]).rounds
        sent = [[Report.from_bytes(bytes.fromhex(text)) for text in reports] for reports in vector["reports"]]
        answered = [bool(reports) and reports[0].y != 2**64 - 1 for reports in sent]
        assert sum(answered) == rounds.answered
        assert all(report.round == number for number, reports in enumerate(sent, 1) for report in reports)
        if rounds.mode == "memoised":  # views and seeds for life
            assert len({tuple((report.view, report.seed) for report in reports) for reports in sent}) == 1
