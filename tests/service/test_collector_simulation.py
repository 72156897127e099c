"""Nothing is lost, nothing is twice, nothing refused is stored: see `collector_simulation.py`."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("collector_simulation.py")


def simulated(folder, *arguments):
    command = [sys.executable, str(SCRIPT), str(folder / "collected"), *map(str, arguments)]
    settings = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[1])}
    ended = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr[-3_000:]
    return ended.stdout


def ends_of(text):
    return int(re.search(r"(\d+) ends inside", text)[1])


@pytest.mark.parametrize("first", [0, 100])
def test_random_lists_of_operations(tmp_path, first):
    assert ends_of(simulated(tmp_path, "seeds", first, 100)) > 20


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200, 10_200, 500))
def test_many_random_lists_of_operations(tmp_path, first):
    assert ends_of(simulated(tmp_path, "seeds", first, 500)) > 100


def test_a_commit_and_a_seal_may_end_anywhere(tmp_path):
    assert ends_of(simulated(tmp_path, "ends")) > 10


def test_planted_bugs_are_found_and_shown_by_few_operations(tmp_path):
    shown = re.findall(r"(.*): (\d+) operations show it", simulated(tmp_path, "bugs"))
    assert {bug for bug, _ in shown} == {"answers early", "replaces", "forgets rounds"}
    assert all(1 <= int(count) <= 3 for _, count in shown)
