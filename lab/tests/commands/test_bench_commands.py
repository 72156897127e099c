"""`deniable bench`: what it needs, and what it refuses."""

import re
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from command_line import run
from deniable_lab.benchmarks.spark_cluster import CORES_EACH, EXECUTORS, compared
from deniable_lab.benchmarks.straggling import Stage, lost_share, scheduled_seconds


def test_the_benchmark_says_which_extra_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "pure_ldp", None)
    monkeypatch.setitem(sys.modules, "multi_freq_ldpy", None)
    done = run("bench", "mechanisms")
    assert done.returncode == 1
    assert "pip install './lab[peers]'" in done.stderr


@pytest.mark.parametrize("option", ["--runs", "--rows"])
def test_nothing_is_measured_in_no_run(option):
    done = run("bench", "accuracy", option, "0")
    assert (done.returncode, "0 is not in the range x>=1" in done.stderr) == (2, True)


def test_parts_of_a_benchmark_that_do_not_exist_are_refused():
    for command in (["accuracy", "--grids"], ["streams"], ["streams", "--local"]):
        done = run("bench", *command, "--part", "ranged")
        assert (done.returncode, "ranged" in done.stderr) == (2, True)


@pytest.mark.slow
def test_unit_costs_are_measured_and_multiplied():
    done = run("bench", "scale", "--people", "3000")
    assert done.returncode == 0
    for words in ("draw reports in bulk", "take all reports over HTTP", "kept on the disk", "parts per core"):
        assert words in done.stdout


def test_small_parts_and_second_attempts_help_against_stragglers():
    large, small = Stage(100, 100, 60.0, 0.5, 0.05, 5.0), Stage(1_600, 100, 60 / 16, 0.5, 0.05, 5.0)
    assert lost_share(small, speculative=False) < lost_share(large, speculative=False)
    assert lost_share(small, speculative=True) < lost_share(small, speculative=False)


def test_a_copy_of_a_task_counts_where_it_ends_first():
    work, factors = np.ones(4), np.array([10.0, 1.0, 1.0])
    (alone,) = {scheduled_seconds(work, factors, (0, 1, 2), speculative=False, seed=seed) for seed in range(9)}
    assert alone == 10
    ends = {scheduled_seconds(work, factors, (0, 1, 2), speculative=True, seed=seed) for seed in range(9)}
    assert ends == {2.5}  # noticed after 1.5 medians, one second later
    together = scheduled_seconds(work, factors, (0, 0, 0), speculative=True)
    assert together == 10  # a copy runs on another machine


@pytest.mark.slow
def test_copies_of_slow_tasks_start_on_a_cluster_too():
    pytest.importorskip("pyspark")
    work = np.full(CORES_EACH * EXECUTORS, 1.0)
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        (result,) = process.submit(compared, [work], speculative=True).result()
    assert min(result.spark_s, result.simulated_s[0]) >= work.max()
    assert result.copies > 0


@pytest.mark.slow
def test_the_collector_is_measured_next_to_a_bare_application():
    done = run("bench", "serve", "--requests", "300", "--reports", "4000", "--parts", "2")
    assert "one by one:" in done.stdout
    assert " 0 lost; sent again, " in done.stdout
    (stored, offered) = re.search(r"([0-9,]+) of ([0-9,]+) are stored", done.stdout).groups()
    assert stored == offered
    assert done.returncode == 0 or "targets missed" in done.stderr
