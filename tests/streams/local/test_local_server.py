"""The server of a stream without trust: phases, refusals, estimates and what it knows of its noise."""

import json

import numpy as np
import pyarrow as pa
import pytest

from deniable.client import ToPLClient
from deniable.errors import InvalidData, InvalidParameter, QueryRefused
from deniable.randomness import SeededSource
from deniable.streams import (
    CutTail,
    NoThreshold,
    Reconstructed,
    Released,
    ToPL,
    ToPLServer,
    ToPS,
    report_table,
    restore,
)
from deniable.streams.local.answered_ids import AnsweredIds
from deniable.streams.local.simulated_stream import first_codes, second_codes
from deniable.streams.local.stream_protocol import ToPLProtocol
from effort import repetitions
from remembered_tails import _remembered_tails  # noqa: F401 - for all tests of this module

VALUES = np.random.default_rng(1).geometric(0.1, 200_000)


def simulated(epsilon=1.0, bound=500, seed=1, **settings):
    return ToPL(epsilon, bound, source=SeededSource(seed), simulation=True, **settings)


def make_publisher():
    return ToPS(1.0, 50, warmup=10, horizon=100)


def wire(protocol, values, theta=None, uid=None, seed=1):
    source = SeededSource(seed)
    values = np.asarray(values, dtype=float)
    codes = first_codes(protocol, values, source) if theta is None else second_codes(protocol, values, theta, source)
    return report_table(protocol, codes, theta, uid)


def changed(table, byte, value):
    """The reports with one byte replaced."""
    data = [report[:byte] + bytes([value]) + report[byte + 1 :] for report in table["report"].to_pylist()]
    return table.set_column(table.column_names.index("report"), "report", pa.array(data, pa.binary(16)))


def mixed_batch(server, **settings):
    """Reports of both phases and with every fault, the end of the first phase in their middle; and what is refused."""
    protocol = server.protocol
    first = [
        wire(protocol, VALUES[:30], uid=np.arange(30)),
        wire(protocol, VALUES[30:50], uid=np.arange(30, 50), seed=2),
    ]
    ahead = ToPLServer(1.0, 500, **{"first": 50, **settings})
    ahead.push_many(pa.concat_tables([first[0], first[1]]))
    second = ahead.theta
    parts = [
        first[0],
        wire(protocol, VALUES[:5], uid=np.arange(5), seed=9),  # duplicates
        wire(protocol, VALUES[:4], theta=second, uid=np.arange(900, 904)),  # too early
        changed(wire(protocol, VALUES[:3], uid=np.arange(910, 913)), 0, 1),  # another version
        wire(ToPLProtocol(2.0, 500), VALUES[:2], uid=np.arange(920, 922)),  # another ε
    ]
    parts += [
        first[1],
        wire(protocol, VALUES[:7], uid=np.arange(100, 107)),  # late
        wire(protocol, VALUES[:40], theta=second, uid=np.arange(200, 240)),
        wire(protocol, VALUES[:6], theta=second, uid=np.arange(235, 241), seed=8),  # five known, one new
        wire(protocol, VALUES[:2], theta=second / 2, uid=np.arange(300, 302)),
        changed(wire(protocol, VALUES[:3], theta=second, uid=np.arange(310, 313)), 4, 255),  # no such y
        wire(protocol, VALUES[:1], theta=second, uid=np.arange(1)),  # answered in the first phase
    ]
    return pa.concat_tables(parts).combine_chunks()


REFUSED = {
    "of a user who has answered": 11,
    "made for another θ": 6,
    "malformed": 3,
    "made under other settings": 2,
    "first-phase, after θ was announced": 7,
    "out of range": 3,
}


def test_one_by_one_and_in_bulk_the_same_is_taken_and_refused():
    bulk, single, pieces = (ToPLServer(1.0, 500, first=50) for _ in range(3))
    batch = mixed_batch(bulk)
    estimates = bulk.push_many(batch)
    answers = [
        single.push(report, uid)
        for uid, report in zip(batch["uid"].to_pylist(), batch["report"].to_pylist(), strict=True)
    ]
    for start in range(0, batch.num_rows, 7):
        pieces.push_many(batch.slice(start, 7))
    assert bulk.refused == single.refused == pieces.refused == REFUSED
    assert bulk.theta == single.theta == pieces.theta
    assert bulk.heard == 50
    assert estimates.size == bulk.published == single.published == 41
    assert [answer for answer in answers if answer is not None] == estimates.tolist()
    for server in (bulk, single, pieces):
        np.testing.assert_array_equal(server.released.values, estimates)
        assert server.total.value == pytest.approx(estimates.sum())
    assert bulk.push(b"short") is None
    assert bulk.refused["malformed"] == 4


def test_reports_of_devices_are_taken():
    server = ToPLServer(2.0, 500, first=20)
    for user in range(20):
        assert server.push(ToPLClient(2.0, 500).report(user), f"user {user}") is None
    assert server.theta is not None
    client = ToPLClient(2.0, 500)
    assert server.push(client.report(3, server.theta), "new") is not None
    assert server.push(client.report(3, server.theta), "new") is None
    assert server.push(ToPLClient(2.0, 500).report(3, server.theta), "user 3") is None
    late = ToPLClient(2.0, 500)
    late.report(5)
    assert server.push(late.report(5, server.theta), "late") is None  # it repeats its first report
    assert server.refused == {"of a user who has answered": 2, "first-phase, after θ was announced": 1}
    assert repr(server) == f"ToPLServer(ε = 2, θ = {server.theta:g}, 1 estimates)"


def test_without_ids_nobody_is_a_duplicate():
    server = ToPLServer(1.0, 500, theta=20.0)
    table = wire(server.protocol, VALUES[:100], theta=20.0)
    assert server.push_many(table).size == server.push_many(table).size == 100
    assert not server.refused


def test_wrong_columns_are_refused_as_a_whole():
    server = ToPLServer(1.0, 500, theta=20.0)
    good = wire(server.protocol, VALUES[:3], theta=20.0)
    short = pa.table({"report": pa.array([b"x", b"y"])})
    missing = pa.table({"report": pa.array([None, bytes(16)], pa.binary(16))})
    for table in (good.rename_columns(["sent"]), short, missing, [b"x"]):
        with pytest.raises(InvalidData, match="report"):
            server.push_many(table)
    for ids in (pa.array([1, None, 2]), pa.array([0.5, 1.5, 2.5])):
        with pytest.raises(InvalidData, match="user id"):
            server.push_many(good.append_column("uid", ids))
    assert server.push_many(good.slice(0, 0)).size == 0
    assert server.published == 0


def test_a_threshold_can_be_asked_for_early_but_not_from_nothing():
    server = ToPLServer(1.0, 500)
    with pytest.raises(QueryRefused, match="no first reports"):
        server.announce()
    with pytest.raises(QueryRefused, match="no first reports"):
        server.distribution()
    with pytest.raises(QueryRefused, match="no threshold"):
        _ = server.variance
    server.push_many(wire(server.protocol, VALUES[:500]))
    assert server.theta is None
    assert server.announce() == server.announce() == server.theta
    assert server.distribution().distribution.sum() == pytest.approx(1)


@pytest.mark.parametrize("mechanism", ["hybrid", "rounding", "piecewise", "wave"])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_estimates_are_unbiased_and_their_variance_is_known(mechanism, epsilon):
    server = ToPLServer(epsilon, 10, theta=4.0, mechanism=mechanism, grid=16)
    randomiser = server.protocol.second(4.0)
    for value in (0.125, 1.375, 3.125, 3.875):  # middles of the square wave's cells, which is what it estimates
        law = np.array([float(chance) for chance in randomiser.law(value)])
        decoded = server._estimates.decoded(np.arange(law.size))
        assert law @ decoded == pytest.approx(value)
        assert law @ (decoded - value) ** 2 == pytest.approx(randomiser.variance(value))
    fine = ToPLServer(epsilon, 10, theta=4.0, mechanism=mechanism)
    worst = max(fine.protocol.second(4.0).variance(value) for value in np.linspace(0, 4, 33))
    assert fine.variance == pytest.approx(worst, rel=1e-3)  # nothing is known of the values


@pytest.mark.parametrize("mechanism", ["hybrid", "rounding", "piecewise", "wave"])
def test_the_variance_is_the_mean_over_the_values(mechanism):
    topl = simulated(0.6, 100, first=30_000, mechanism=mechanism, rule=NoThreshold())
    topl.publish(np.full(30_000, 80.0))
    expected = topl.protocol.second(100.0).variance(80.0)
    assert topl.server.variance == pytest.approx(expected, rel=0.03)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_intervals_cover_the_truncated_truth(epsilon):
    inside, off = [], []
    for seed in range(repetitions(4, 8)):
        topl = simulated(epsilon, seed=seed, first=20_000, horizon=1 << 16)
        topl.publish(VALUES[: 20_000 + 2**16])
        cut = np.minimum(VALUES[20_000 : 20_000 + 2**16], topl.theta)
        windows = topl.released.sums(np.arange(0, 2**16, 128), np.arange(128, 2**16 + 1, 128), cut=True)
        apart = windows.values - cut.reshape(-1, 128).sum(axis=1)
        inside.append(np.abs(apart) <= 1.959964 * windows.stderrs)
        off.append(apart / windows.stderrs)
    off = np.concatenate(off)
    assert 0.93 <= np.mean(inside) <= 0.97  # 2,048 windows: a standard error of 0.48 %; thoroughly, 4,096
    assert abs(off.mean()) < 5 / np.sqrt(off.size)


def test_running_sums_need_no_memory_and_agree():
    kept, lean = simulated(seed=3, first=5_000), simulated(seed=3, first=5_000, keep=False)
    for start in range(0, 60_000, 20_000):
        np.testing.assert_array_equal(
            kept.publish(VALUES[start : start + 20_000]), lean.publish(VALUES[start : start + 20_000])
        )
    total = lean.server.total
    whole = kept.released.sum(0, 55_000, cut=True)
    assert (total.value, total.stderr) == (pytest.approx(whole.value), pytest.approx(whole.stderr))
    assert total.truncation == kept.server.total.truncation > 0
    assert len(lean.server._phases._codes) == 0
    with pytest.raises(InvalidParameter, match="keep"):
        _ = lean.released


def test_a_released_stream_survives_its_file(tmp_path):
    topl = simulated(first=5_000)
    topl.publish(VALUES[:20_000])
    topl.released.save(tmp_path / "out.parquet")
    again = Released.load(tmp_path / "out.parquet")
    assert again.sum(100, 9_000) == topl.released.sum(100, 9_000)
    assert again.mean(100, 9_000).excess > 0
    assert again.about["theta"] == topl.theta
    assert again.about["method"] == "topl"


def test_without_noise_the_values_come_back():
    topl = simulated(float("inf"), 100, first=1_000)
    estimates = topl.publish(VALUES[:3_000])
    cut = np.minimum(VALUES[1_000:3_000], topl.theta)
    np.testing.assert_allclose(estimates, cut, atol=100 / 2**15)
    assert topl.released.sum(0, 2_000, cut=True).value == pytest.approx(cut.sum(), rel=1e-3)


def test_a_simulation_takes_what_devices_take():
    topl = simulated(theta=50.0)
    assert topl.publish([np.nan, -5.0, 1e9, 3.0]).size == 4
    with pytest.raises(InvalidData, match="numbers"):
        topl.publish(["987654"])
    assert simulated(first=10).publish(VALUES[:5]).size == 0


def test_ids_are_remembered_like_in_a_set():
    rng = np.random.default_rng(5)
    answered, known = AnsweredIds(), set()
    for batch in range(60):
        ids = rng.integers(-50, 3_000, rng.integers(1, 200))
        column = ids if batch % 2 else np.array([f"user {uid}" for uid in ids])
        keys = answered.keys(pa.array(column))
        fresh = answered.fresh(keys)
        expected = []
        for uid in column.tolist():
            expected.append(uid not in known)
            known.add(uid)
        assert fresh.tolist() == expected
        if batch % 3:
            answered.add(keys[fresh])
        else:
            for key in keys[fresh].tolist():
                assert answered.is_fresh(key)
                answered.add_one(key)
                assert not answered.is_fresh(key)
    assert len(answered) == len(known)
    assert [answered.key("user 7"), answered.key(-7)] == [
        *answered.keys(["user 7"]).tolist(),
        *answered.keys([-7]).tolist(),
    ]
    assert answered.keys(pa.chunked_array([["", "é"], ["user 7"]]))[2] == answered.key("user 7")
    assert sum(run.size for run in answered._runs) < 2 * answered._runs[0].size + 1


SETTINGS = {
    "default": {},
    "forgetful": {"keep": False, "rule": Reconstructed()},
    "another rule": {"rule": CutTail(2.0), "scale": "linear", "horizon": 1 << 16},
    "another mechanism": {"mechanism": "rounding", "name": "another", "rule": Reconstructed()},
    "public": {"theta": 20.0},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_restarted_anywhere_it_takes_refuses_and_releases_the_same(name):
    settings = {"first": 50, **SETTINGS[name]}
    batch = mixed_batch(ToPLServer(1.0, 500, **settings), **settings)
    whole = ToPLServer(1.0, 500, **settings)
    expected = whole.push_many(batch)
    assert expected.size >= 41
    texts = pa.array([f"user {uid}" for uid in batch["uid"].to_pylist()])
    # Nothing yet, inside the first phase, at its end, inside the second; ids of both kinds.
    for cut, ids in (
        (0, texts),
        (20, batch["uid"]),
        (20, texts),
        (64, texts),
        (90, batch["uid"]),
        (batch.num_rows, texts),
    ):
        reports = batch.set_column(batch.column_names.index("uid"), "uid", ids)
        before = ToPLServer(1.0, 500, **settings)
        early = before.push_many(reports.slice(0, cut))
        state = json.dumps(before.state())
        after = ToPLServer.restore(json.loads(state))
        assert json.dumps(after.state()) == state
        late = after.push_many(reports.slice(cut))
        np.testing.assert_array_equal(np.concatenate((early, late)), expected)
        assert (after.choice, after.refused, after.settings) == (whole.choice, whole.refused, whole.settings)
        assert (after.heard, after.published, after.about()) == (whole.heard, whole.published, whole.about())
        assert after.total.value == pytest.approx(whole.total.value)
        assert after.total.stderr == whole.total.stderr
        if settings.get("keep", True):
            np.testing.assert_array_equal(after.released.values, whole.released.values)
            assert after.released.metadata() == whole.released.metadata()


def test_one_by_one_with_a_restart_after_every_report():
    whole, server = (ToPLServer(1.0, 500, first=50) for _ in range(2))
    batch = mixed_batch(whole)
    whole.push_many(batch)
    for number, (uid, report) in enumerate(zip(batch["uid"].to_pylist(), batch["report"].to_pylist(), strict=True)):
        server.push(report, uid)
        if number % 3 == 0:
            server = ToPLServer.restore(server.state())
    assert server.refused == whole.refused == REFUSED
    np.testing.assert_array_equal(server.released.values, whole.released.values)


def test_states_of_others_are_refused():
    state = ToPLServer(1.0, 500).state()
    with pytest.raises(InvalidData, match="another version"):
        ToPLServer.restore({**state, "version": 99})
    with pytest.raises(InvalidParameter, match="not that of a ToPLServer"):
        ToPLServer.restore(make_publisher().state())
    with pytest.raises(InvalidParameter, match="kind"):
        restore(state)

    class Own(NoThreshold):
        kind = "my own"

    with pytest.raises(InvalidParameter, match="not one of this package"):
        ToPLServer(1.0, 500, rule=Own()).state()
