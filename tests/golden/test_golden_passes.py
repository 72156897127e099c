"""What each pass of parsing adds, as it was when somebody last looked at it."""

from deniable.queries.parsing.draft import Draft
from deniable.queries.parsing.sql import PASSES, parse
from golden.regenerate import COLLECTIONS, PASS_CASES, PASSES_PATH, passes, passes_text

GROUPED = PASS_CASES[6]


def test_passes_are_those_of_the_golden_file():
    # To accept a change: .venv/bin/python tests/golden/regenerate.py
    assert passes_text() == PASSES_PATH.read_text(encoding="utf-8")


def test_every_pass_adds_something_to_some_query():
    written = "".join(steps for _, steps in passes())
    for step in PASSES:
        assert f"{step.__name__}:\n  " in written, step.__name__


def test_a_pass_leaves_what_it_was_given_as_it_was():
    draft = Draft(GROUPED, COLLECTIONS["hio"], {})
    for step in PASSES:
        before = str(draft)
        following = step(draft)
        assert str(draft) == before
        assert str(step(draft)) == str(following)
        draft = following
    assert draft.question().outputs == parse(GROUPED, COLLECTIONS["hio"]).outputs
