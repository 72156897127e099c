"""Nothing is lost, nothing is twice, nothing refused is stored: see `collector_simulation.py`."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from postgresql_server import new_database

SCRIPT = Path(__file__).with_name("collector_simulation.py")


@pytest.fixture
def folder():
    """In memory where there is such a folder: a process that is killed loses nothing there either."""
    memory = Path("/dev/shm")  # noqa: S108
    made = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
    yield made
    shutil.rmtree(made)


def simulated(folder, *arguments):
    command = [sys.executable, str(SCRIPT), str(folder / "collected"), *map(str, arguments)]
    settings = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[1])}
    ended = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr[-3_000:]
    return ended.stdout


def ends_of(text, part):
    return int(re.search(rf"{part}: (\d+) ends inside", text)[1])


def test_nothing_is_lost_nothing_is_twice_and_planted_bugs_are_found(folder):
    """200 lists, most with simulated crashes, the first 8 with processes that are killed; then servers under load."""
    text = simulated(folder, "killed,0,8", "here,8,192", "servers,0,6", "ends", "bugs")
    assert ends_of(text, "killed") >= 3
    assert ends_of(text, "here") > 40
    assert ends_of(text, "servers") > 6
    assert ends_of(text, "ends") > 10
    assert ends_of(text, "crashes") >= 7  # three of a commit, four of a seal
    shown = re.findall(r"(.*): (\d+) operations show it", text)
    assert {bug for bug, _ in shown} == {"answers early", "replaces", "forgets rounds"}
    assert all(1 <= int(count) <= 3 for _, count in shown)


def test_two_servers_on_one_database(folder):
    assert ends_of(simulated(folder, f"postgresql,0,8,{new_database()}"), "postgresql") >= 1


@pytest.mark.slow
@pytest.mark.parametrize("first", range(200, 10_200, 1000))
def test_many_random_lists_of_operations(folder, first):
    """A tenth with real processes, most in one, a few on PostgreSQL."""
    text = simulated(
        folder,
        f"killed,{first},100",
        f"here,{first + 100},850",
        f"postgresql,{first + 950},50,{new_database()}",
        f"servers,{first},40",
    )
    assert (ends_of(text, "killed") > 20, ends_of(text, "here") > 150, ends_of(text, "postgresql") >= 5) == (True,) * 3
    assert ends_of(text, "servers") > 40
