"""The comparison with peers: jobs answer what is asked, and missing peers are no obstacle."""

import numpy as np
import pytest

from deniable_lab.benchmarks import peers


def test_our_side_of_every_job_is_right():
    for job in peers.jobs():
        answers = np.array([job.ours() for _ in range(4)], dtype=float)
        assert answers.shape[1:] == np.shape(job.truth), job.name
        noise = answers.std(axis=0) + 1e-9
        if "percentile" in job.name:
            assert ("smooth" in job.name) or np.max(np.abs(answers - job.truth)) <= 2  # between two values
        else:
            assert np.mean(np.abs(answers.mean(axis=0) - job.truth) < 6 * noise) > 0.8, job.name
        assert job.peers


def test_clipping_is_what_the_peer_does():
    clipped = peers._clipped(10, (2, 3), np.array([5.0, -5.0, 2.0, 2.0, -1.0]))
    assert clipped.tolist() == [10, 0, 5, 5, 0]


def test_peers_that_are_missing_are_left_out(monkeypatch):
    monkeypatch.setattr(peers, "PEERS", {**peers.PEERS, "ghost": "no_such_module_at_all"})
    assert peers.missing()["ghost"] == "no module 'no_such_module_at_all'"
    assert list(peers.measure(dict.fromkeys(peers.PEERS, "away"), 2)) == []


def test_opendp_does_the_same_job_at_the_same_epsilon():
    pytest.importorskip("opendp.prelude")
    away = dict.fromkeys(set(peers.PEERS) - {"OpenDP"}, "away")
    rows = {row.job: row for row in peers.measure(away, 3)}
    assert rows["noise on counts"].error == pytest.approx(1.0, abs=0.05)
    assert 0.7 < rows["range sums, b = 2"].error < 1.6  # it has a root, and so one level more
    assert all(row.seconds > 0 and row.time == row.peer_seconds / row.seconds for row in rows.values())


def test_googles_library_does_the_same_job_at_the_same_epsilon():
    pytest.importorskip("pydp")
    away = dict.fromkeys(set(peers.PEERS) - {"PyDP"}, "away")
    rows = {row.job: row for row in peers.measure(away, 3)}
    assert rows["noise on counts"].error == pytest.approx(1.0, abs=0.05)
    assert rows["percentile, noisy max"].error > 0


def test_runs_of_the_same_comparison_stand_together():
    first, second = ([peers.Row("noise", peer, 1.0, 0.1, 2.0, time) for peer in "ab"] for time in (4.0, 6.0))
    assert [[row.time for row in same] for same in peers.by_comparison(first + second)] == [[2.0, 3.0]] * 2
