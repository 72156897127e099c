"""Servers that survive their process: nobody is counted twice, and a threshold that was told holds."""

import json

import numpy as np
import pytest

from deniable.errors import Failure, InvalidData, InvalidParameter
from deniable.randomness import SeededSource
from deniable.stores import DurableServer, ReportBatch
from deniable.streams import ToPLServer, report_table
from deniable.streams.local.simulated_stream import first_codes, second_codes
from deniable.streams.local.stream_protocol import ToPLProtocol

PROTOCOL = ToPLProtocol(2.0, 500)
VALUES = np.random.default_rng(1).geometric(0.15, 900).astype(float)


def first(start, stop):
    codes = first_codes(PROTOCOL, VALUES[start:stop], SeededSource(start))
    return ReportBatch(report_table(PROTOCOL, codes, uid=np.arange(start, stop)))


def second(theta, start, stop):
    codes = second_codes(PROTOCOL, VALUES[start:stop], theta, SeededSource(start))
    return ReportBatch(report_table(PROTOCOL, codes, theta, np.arange(start, stop)))


def opened(path, **more):
    settings = {"first": 400, **more.pop("settings", {})}
    return DurableServer(path, ToPLServer(2.0, 500, keep=False, **settings), **more)


def ignore(_):
    """Drop estimates."""


def test_runs_are_one_stream(tmp_path):
    """Runs that end inside the first phase, after it, and inside a mean: the same as one run over everything."""
    path, parts = tmp_path / "state.json", []
    with opened(path) as durable:
        durable.publish(first(0, 150), ignore)
    with opened(path) as durable:
        durable.publish(first(0, 150), ignore)  # again
        durable.publish(first(150, 400), ignore)
        assert (durable.read, durable.refusals) == (550, "150 of a user who has answered")
        theta = durable.server.theta
    for start, stop in ((400, 499), (499, 900)):
        with opened(path) as durable:
            assert durable.server.theta == theta
            durable.publish(second(theta, start, stop), lambda some: parts.extend(durable.means(some, 70).tolist()))
    whole = opened(None)
    whole.publish(first(0, 150), ignore)
    whole.publish(first(150, 400), ignore)
    means = []
    for start, stop in ((400, 499), (499, 900)):
        whole.publish(second(theta, start, stop), lambda some: means.extend(whole.means(some, 70).tolist()))
    assert (parts, len(parts)) == (means, 7)
    assert durable.server.total == whole.server.total


def test_a_threshold_is_on_disk_before_anybody_hears_of_it(tmp_path):
    path, told = tmp_path / "state.json", []

    def announce(theta):
        told.append((theta, json.loads(path.read_text())["state"]["choice"]["theta"]))
        raise OSError("the disk is gone")

    durable = opened(path, tell=announce)
    with pytest.raises(OSError, match="the disk is gone"):
        durable.publish(first(0, 400), ignore)
    durable._file.close()  # killed
    ((theta, written),) = told
    assert theta == written
    again = []
    with opened(path, tell=again.append) as durable:
        durable.announce()
        durable.announce()
    assert again == [theta]


def test_a_threshold_that_could_not_be_saved_is_announced_as_soon_as_it_is(tmp_path, monkeypatch):
    path, told, published = tmp_path / "state.json", [], []
    with opened(path, tell=told.append) as durable:
        with monkeypatch.context() as full:

            def fail(*_, **__):
                raise OSError("the disk is full")

            full.setattr(durable._file, "write", fail)
            with pytest.raises(OSError, match="the disk is full"):
                durable.publish(first(0, 400), ignore)
            with pytest.raises(OSError, match="the disk is full"):
                durable.publish(second(durable.server.theta, 400, 500), published.append)
        assert (told, published) == ([], [])
        durable.announce()
        assert told == [durable.server.theta]
        assert json.loads(path.read_text())["state"]["choice"]["theta"] == durable.server.theta


def test_a_closed_server_takes_nothing_and_is_closed_once(tmp_path):
    path = tmp_path / "state.json"
    durable = opened(path)
    durable.close()
    with opened(path) as other:
        with pytest.raises(Failure, match="is closed"):
            durable.publish(first(0, 10), ignore)
        durable.close()
        other.publish(first(0, 10), ignore)
        assert other.read == 10


def test_devices_that_wait_hear_of_a_threshold_although_reports_were_refused(tmp_path):
    durable = opened(None, announcement=tmp_path / "theta")
    durable.publish(ReportBatch(first(0, 300).reports, malformed=100), ignore)
    assert float((tmp_path / "theta").read_text()) == durable.server.theta
    patient = opened(None)
    patient.publish(ReportBatch(first(0, 300).reports, malformed=100), ignore)
    assert patient.server.theta is None
    with pytest.raises(Failure, match="all 400 reports were refused: 400 malformed"):
        opened(None, announcement=tmp_path / "new").publish(
            ReportBatch(first(0, 1).reports.slice(0, 0), malformed=400), ignore
        )


def test_the_state_is_saved_every_minute(tmp_path):
    path, now = tmp_path / "state.json", [0.0]
    durable = opened(path, clock=lambda: now[0])
    durable.publish(first(0, 10), ignore)
    assert not path.exists()
    now[0] = 61.0
    durable.publish(first(10, 30), ignore)
    assert json.loads(path.read_text())["read"] == 30
    durable.publish(first(30, 40), ignore)
    assert json.loads(path.read_text())["read"] == 30
    durable.close()
    assert json.loads(path.read_text())["read"] == 40


def test_other_settings_are_refused_and_the_file_is_free_again(tmp_path):
    path = tmp_path / "state.json"
    opened(path).close()
    with pytest.raises(InvalidParameter, match="not those of the state file"):
        opened(path, settings={"first": 401})
    opened(path).close()


def test_a_threshold_that_another_stream_announced_is_refused_and_the_file_is_free_again(tmp_path):
    (tmp_path / "theta").write_text("3")
    for _ in range(2):
        with pytest.raises(InvalidData, match="devices may have read another threshold"):
            opened(tmp_path / "state.json", announcement=tmp_path / "theta")
    assert not (tmp_path / "state.json").exists()
