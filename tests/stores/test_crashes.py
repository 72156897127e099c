"""A process that ends at any call of the operating system leaves a stream that goes on: nothing differs or is lost.

By default at every few calls, the first one included; the slow test ends at every single one.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("crashing.py")

SOME_CALLS = [
    ("publisher", "killed", 19),
    ("publish", "killed", 17),
    ("server", "killed", 7),
    ("collect", "killed", 7),
    ("in flight", "killed", 7),
    ("ledger", "killed", 17),
    ("publisher", "power cut", 23),
    ("publisher", "names", 29),
    ("keyed", "killed", 37),
    ("keyed, own warm-ups", "power cut", 41),
]
EVERY_CALL = [(scenario, end, 1) for scenario, end, _ in SOME_CALLS if "keyed" not in scenario] + [
    (scenario, end, 1)
    for scenario in ("keyed", "keyed, shared warm-up", "keyed, own warm-ups")
    for end in ("killed", "power cut", "names")
]


def ends(folder, *runs):
    """How many calls each run could end in, in one process that copies itself for each."""
    command = [sys.executable, SCRIPT, folder, *(",".join(map(str, run)) for run in runs)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return [int(line) for line in done.stdout.split()]


def test_a_run_that_ends_anywhere_can_be_continued(tmp_path):
    calls = dict(zip(SOME_CALLS, ends(tmp_path, *SOME_CALLS), strict=True))
    assert min(calls.values()) > 30, calls


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "end", "apart"), EVERY_CALL)
def test_a_store_survives_an_end_at_every_single_call(tmp_path, scenario, end, apart):
    assert ends(tmp_path, (scenario, end, apart))[0] > 30
