"""A process that ends at any call of the operating system leaves a stream that goes on: nothing differs or is lost."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("crashing.py")


@pytest.mark.parametrize("scenario", ["publisher", "publish", "server", "collect", "ledger"])
def test_a_run_that_ends_anywhere_can_be_continued(tmp_path, scenario):
    command = [sys.executable, SCRIPT, scenario, tmp_path / "stream"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 30
