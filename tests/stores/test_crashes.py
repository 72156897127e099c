"""A process that ends at any call of the operating system leaves a stream that goes on: nothing differs or is lost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("crashing.py")


KILLED = [(scenario, "killed", apart) for scenario, apart in (("publisher", 5), ("publish", 3))]
OTHERS = [(scenario, "killed", apart) for scenario, apart in (("server", 1), ("collect", 1), ("ledger", 4))]
WITHOUT_POWER = [("publisher", "power cut", 7), ("publisher", "names", 9)]
KEYED = [("keyed", "killed", 11), ("keyed, own warm-ups", "power cut", 13)]
EVERY_KEYED = [
    (scenario, end, 1)
    for scenario in ("keyed", "keyed, shared warm-up", "keyed, own warm-ups")
    for end in ("killed", "power cut", "names")
]
EVERY_CALL = [(scenario, end, 1) for scenario, end, apart in (*KILLED, *OTHERS[2:], *WITHOUT_POWER)] + EVERY_KEYED


def check(tmp_path, scenario, end, apart):
    command = [sys.executable, SCRIPT, scenario, tmp_path / "stream", end, str(apart)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 30


@pytest.mark.parametrize(("scenario", "end", "apart"), [*KILLED, *OTHERS, *WITHOUT_POWER, *KEYED])
def test_a_run_that_ends_anywhere_can_be_continued(tmp_path, scenario, end, apart):
    check(tmp_path, scenario, end, apart)


@pytest.mark.slow
@pytest.mark.parametrize(("scenario", "end", "apart"), EVERY_CALL)
def test_a_store_survives_an_end_at_every_single_call(tmp_path, scenario, end, apart):
    check(tmp_path, scenario, end, apart)
