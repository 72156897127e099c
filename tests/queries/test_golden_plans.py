"""Plans of many queries, as they were when somebody last looked at them."""

from golden.regenerate import CASES, PATH, text


def test_plans_are_those_of_the_golden_file():
    # To accept a change: .venv/bin/python tests/golden/regenerate.py
    assert text() == PATH.read_text(encoding="utf-8")


def test_there_are_enough_different_queries():
    assert len({query for *_, query in CASES}) >= 60
    assert len({name for name, *_ in CASES}) >= 8
    assert {weights for _, weights, *_ in CASES} >= {"greedy", "rdc", "rdc(4)", "optimal"}
