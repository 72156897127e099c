"""Reports that are on their way when a new θ is announced: each counts once, for the θ that it was made under."""

import json
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest

from deniable import Ledger
from deniable.client import ToPLClient
from deniable.errors import BudgetExceeded, InvalidData, QueryRefused
from deniable.randomness import SeededSource
from deniable.streams import LocalPercentile, Released, ToPLServer, report_table
from deniable.streams.local.phases import MOST_THETAS
from deniable.streams.local.simulated_stream import second_codes
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.streams.local.stream_report import FIRST, SECOND, StreamReport
from effort import repetitions

PROTOCOL = ToPLProtocol(1.0, 100, renewal=0.3)


def new_server(**settings):
    return ToPLServer(1.0, 100, **{"theta": 50.0, "renewal": 0.3, "rule": LocalPercentile(0.9), **settings})


def decoded(report):
    """What one report stands for, from a server of its own."""
    return new_server(theta=report.theta).push(report)


@dataclass
class Model:
    """What a server has to do, in the fewest words."""

    thetas: list = field(default_factory=lambda: [50.0])
    answered: set = field(default_factory=set)
    published: list = field(default_factory=list)
    """The phase of each report that was taken, and what it stands for."""
    waiting: int = 0
    """First reports since the last θ."""

    def take(self, uid, report):
        known = report.theta in self.thetas if report.phase == SECOND else report.theta == 0
        if not known or uid in self.answered:
            return None
        self.answered.add(uid)
        if report.phase == FIRST:
            self.waiting += 1
            return None
        latest = max(phase for phase, theta in enumerate(self.thetas) if theta == report.theta)
        self.published.append((latest, decoded(report)))
        return self.published[-1][1]

    def renewed(self, theta):
        self.thetas.append(theta)
        self.waiting = 0

    def copy(self):
        return Model(list(self.thetas), set(self.answered), list(self.published), self.waiting)


def arbitrary(rng, number, thetas):
    """The report of a device that has heard of some θ or of none; second reports of different users differ."""
    if rng.random() < 0.3:
        return StreamReport(FIRST, int(rng.integers(1000)), 0.0 if rng.random() < 0.9 else 50.0, PROTOCOL.tag)
    theta = thetas[rng.integers(len(thetas))] * (1.0 if rng.random() < 0.9 else 1.01)  # nobody announced that one
    return StreamReport(SECOND, 2 + number, theta, PROTOCOL.tag)


def delivered(rng, waiting):
    """Some of the reports that are on their way, in any order; some of them will arrive again."""
    rng.shuffle(waiting)
    arrived = [waiting.pop() for _ in range(min(len(waiting), int(rng.integers(1, 30))))]
    waiting += [sent for sent in arrived if rng.random() < 0.2]
    return arrived


def in_bulk(arrived):
    return pa.table(
        {
            "uid": pa.array([uid for uid, _ in arrived], pa.int64()),
            "report": pa.array([report.to_bytes() for _, report in arrived], pa.binary(16)),
        }
    )


def compare(server, model):
    """Sums of what reports stand for, each with the noise and the excess of its own θ."""
    assert list(server.thetas) == model.thetas
    assert server.published == len(model.published)
    if model.published:
        np.testing.assert_allclose(server.released.values, [value for _, value in model.published])
    choices = [phase.choice for phase in server._phases._all]
    noise = [phase.variance for phase in server._phases._all]
    third = len(model.published) // 3
    for start, stop in ((0, len(model.published)), (third, 2 * third)):
        window, inside = server.window(start, stop), model.published[start:stop]
        real = sum(value + choices[phase].excess for phase, value in inside)
        assert window.value == pytest.approx(real)
        assert window.stderr == pytest.approx(np.sqrt(sum(noise[phase] for phase, _ in inside)))


@pytest.mark.parametrize("seed", range(repetitions(6, 60)))
def test_a_server_takes_what_the_model_takes_through_renewals_restarts_and_crashes(seed):
    """Devices answer under what they have heard; reports arrive late, twice, in any order; unsaved states are lost."""
    rng = np.random.default_rng(seed)
    server, model, waiting, number = new_server(), Model(), [], 0
    saved, before, since = server.state(), model.copy(), []
    for _ in range(60):
        step = rng.random()
        if step < 0.55:
            for _ in range(int(rng.integers(1, 25))):
                waiting.append((number, arbitrary(rng, number, model.thetas)))
                number += 1
            arrived = delivered(rng, waiting)
            since += arrived
            expected = [model.take(uid, report) for uid, report in arrived]
            if rng.random() < 0.5:
                got = server.take_many(in_bulk(arrived))
                np.testing.assert_allclose(got.values, [value for value in expected if value is not None])
                assert got.phases.tolist() == [phase for phase, _ in model.published][-got.values.size or 10**9 :]
            else:
                assert [server.push(report, uid) for uid, report in arrived] == [
                    None if value is None else pytest.approx(value) for value in expected
                ]
        elif step < 0.7 and model.waiting:
            model.renewed(server.renew())
        elif step < 0.7:
            with pytest.raises(QueryRefused, match="since the last"):
                server.renew()
        elif len(model.thetas) > len(before.thetas) or step < 0.85:  # a θ is saved before anybody hears of it
            saved, before, since = json.loads(json.dumps(server.state())), model.copy(), []
        else:
            server, model = ToPLServer.restore(saved), before.copy()
            waiting += since  # devices that heard no answer send again
            since = []
        compare(server, model)
    assert len(model.thetas) > 2
    assert len({phase for phase, _ in model.published}) > 1
    assert min(phase for phase, _ in model.published[-len(model.published) // 2 :]) < len(model.thetas) - 1


def interleaved(seed, size=30_000, **settings):
    """A server that has two θ, reports under either in random order, and the values behind them."""
    rng = np.random.default_rng(seed)
    server = new_server(theta=None, first=4_000, rule=LocalPercentile(0.5), **settings)
    values = rng.geometric(0.2, 4_000).astype(float)
    first = lambda values: server.protocol.wave.draw(  # noqa: E731
        np.array([server.protocol.position(value) for value in values]), SeededSource(seed)
    )
    server.push_many(report_table(server.protocol, first(values)))
    server.push_many(report_table(server.protocol, first(20 * values[:1_000])))
    server.renew()
    assert server.thetas[1] > 2 * server.thetas[0]
    values, marks = rng.geometric(0.2, size).astype(float), rng.integers(0, 2, size)
    tables = [
        report_table(
            server.protocol,
            second_codes(server.protocol, values[marks == mark], theta, SeededSource(seed + mark)),
            theta,
        )
        for mark, theta in enumerate(server.thetas)
    ]
    order = np.argsort(np.concatenate([np.flatnonzero(marks == mark) for mark in (0, 1)]))
    server.push_many(pa.concat_tables(tables).take(order))
    return server, np.minimum(values, np.array(server.thetas)[marks]), marks


def test_windows_that_mix_two_thresholds_have_the_errors_of_both():
    """Standard errors are those of the reports inside, and the errors that occur are as large."""
    off = []
    for seed in range(repetitions(3, 12)):
        server, cut, marks = interleaved(seed)
        released, starts = server.released, np.arange(0, 30_000, 60)
        windows = released.sums(starts, starts + 60, cut=True)
        variances = server.noise_of(np.array([0, 1], dtype=np.uint8))
        np.testing.assert_allclose(windows.stderrs**2, variances[marks].reshape(-1, 60).sum(axis=1))
        off.append((windows.values - cut.reshape(-1, 60).sum(axis=1)) / windows.stderrs)
    off = np.concatenate(off)
    assert abs(off.mean()) < 5 / np.sqrt(off.size)
    assert abs(np.mean(off**2) - 1) < 5 * np.sqrt(2 / off.size)
    wrong = off * windows.stderrs[0] / np.sqrt(60 * variances[1])  # as if all were under the later θ
    assert abs(np.mean(wrong**2) - 1) > 5 * np.sqrt(2 / off.size)


def test_each_value_gets_back_what_its_own_threshold_took():
    server, _, marks = interleaved(1)
    released = server.released
    real, cut = (released.sums([100], [900], cut=flag) for flag in (False, True))
    each = np.array([phase.choice.excess for phase in server._phases._all])
    assert real.values[0] - cut.values[0] == pytest.approx(each[marks[100:900]].sum())
    assert each[0] != pytest.approx(each[1], rel=0.5)


def test_windows_that_mix_thresholds_go_together():
    """The covariance of windows that overlap is the variance of what they share."""
    server, _, marks = interleaved(2)
    joint = server.released.sums([0, 500], [1_000, 1_500], covariance=True, cut=True)
    variances = server.noise_of(marks.astype(np.uint8))
    assert joint.noise[0, 1] == pytest.approx(variances[500:1_000].sum())
    apart = joint.combine([-1, 1])
    assert apart.stderr == pytest.approx(np.sqrt(variances[:500].sum() + variances[1_000:1_500].sum()))


def test_a_file_holds_the_phase_of_each_value(tmp_path):
    server, _, marks = interleaved(3)
    server.released.save(tmp_path / "out.parquet")
    again = Released.load(tmp_path / "out.parquet")
    assert again.phases.tolist() == marks.tolist()
    for window in ((0, 30_000), (77, 1_234)):
        assert again.sum(*window) == server.released.sum(*window)
    table = server.released.to_arrow()
    odd = table.set_column(table.column_names.index("phase"), "phase", pa.array(marks + 7))
    with pytest.raises(InvalidData, match="damaged"):
        Released.from_arrow(odd)


def test_states_of_a_phase_each_go_on():
    """As they were written before reports of several phases could stand between each other."""
    server, _, marks = interleaved(4)
    state, codes = server.state(), server._phases._codes.array()
    parts = [json.loads(json.dumps(part)) for part in (*state["past"], state)]
    old = {**state, "past": parts[:-1]}
    from deniable.streams.structure.state_values import packed, seal

    for mark, part in enumerate((*old["past"], old)):
        part["codes"] = packed(codes[marks == mark])
    del old["phases"], old["seal"]
    again = ToPLServer.restore(seal(old))
    assert again.total == server.total
    assert again.released.phases.tolist() == sorted(marks.tolist())


def test_the_number_of_thresholds_is_limited():
    server = new_server()
    for uid in range(MOST_THETAS - 1):
        server.push(StreamReport(FIRST, uid, 0.0, PROTOCOL.tag), uid)
        server.renew()
    server.push(StreamReport(FIRST, 7, 0.0, PROTOCOL.tag), "last")
    before = server.state()
    with pytest.raises(QueryRefused, match="256 thresholds, the most"):
        server.renew()
    assert server.state() == before
    for theta in set(server.thetas):
        server.push(StreamReport(SECOND, 3, theta, PROTOCOL.tag), f"under {theta}")
    assert (server.published, len(server.thetas)) == (len(set(server.thetas)), MOST_THETAS)


def test_a_client_never_answers_under_two_thresholds(tmp_path):
    """In a process, after a restart, and from an older copy of its memory: a ledger admits no second answer."""
    memory, ledger = tmp_path / "memory.json", Ledger(tmp_path / "ledger.json", limit=1.0)
    client = ToPLClient(1.0, 100, memory, renewal=0.3)
    sent = client.report(7, theta=50.0)
    assert client.report(7, theta=20.0) == ToPLClient(1.0, 100, memory, renewal=0.3).report(90, theta=20.0) == sent
    charged = ToPLClient(1.0, 100, tmp_path / "other.json", renewal=0.3, ledger=ledger)
    first = charged.report(7, theta=50.0)
    (tmp_path / "other.json").unlink()  # as after a copy of the device from before its answer
    back = ToPLClient(1.0, 100, tmp_path / "other.json", renewal=0.3, ledger=ledger)
    with pytest.raises(BudgetExceeded):
        back.report(7, theta=20.0)
    server = new_server()
    server.push(first, "ann")
    assert server.push(sent, "ann") is None  # and a server counts one of them
