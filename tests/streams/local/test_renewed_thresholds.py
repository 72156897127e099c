"""θ renewed by later phases: who may answer, what windows over several θ say, and what is kept."""

import numpy as np
import pyarrow as pa
import pytest

from command_line import run
from deniable.client import ToPLClient
from deniable.errors import InvalidData, InvalidParameter, QueryRefused
from deniable.randomness import SeededSource
from deniable.stores import DurableServer, ReportBatch
from deniable.streams import ToPL, ToPLServer, report_table
from deniable.streams.local.simulated_stream import first_codes, second_codes
from deniable.streams.local.stream_protocol import ToPLProtocol

RENEWAL = 0.25


def shifted(seed=1, size=20_000, factor=10):
    """A stream whose values are ten times as large in its second half, with a θ for each half."""
    rng = np.random.default_rng(seed)
    first, second = rng.geometric(0.2, size), factor * rng.geometric(0.2, size)
    settings = {"first": 5_000, "renewal": RENEWAL, "renew": "asked"}
    topl = ToPL(2.0, 2000, **settings, source=SeededSource(seed), simulation=True)
    topl.publish(rng.geometric(0.2, 5_000))
    topl.publish(first)
    before = topl.server.published
    late = topl.publish(second[: size // 2])
    topl.renew()
    topl.publish(second[size // 2 :])
    return topl, first, second, before, before + late.size


def test_a_renewed_threshold_follows_the_stream_and_windows_over_both_are_right():
    apart = []
    for seed in range(3):
        topl, first, second, before, changed = shifted(seed)
        server = topl.server
        assert server.theta > 3 * server._phases._all[0].choice.theta
        assert server.heard + server.published == 5_000 + first.size + second.size
        whole = server.window(changed - 2_000, server.published)  # mostly under the new θ
        share = (server.published - changed + 2_000) * second.mean()
        apart.append((whole.value - share) / whole.error)
        assert whole.interval[0] < whole.value < whole.interval[1]
        old = server.window(0, before)
        assert abs(old.value - before * first.mean()) < 5 * old.error
        both, parts = server.window(0, server.published), [old, server.window(before, server.published)]
        assert both.value == pytest.approx(sum(part.value for part in parts))
        assert both.stderr == pytest.approx(np.hypot(parts[0].stderr, parts[1].stderr))
    assert np.abs(apart).max() < 6


def test_the_cut_stream_can_be_asked_for_and_the_excess_is_what_is_added():
    topl, *_ = shifted()
    server = topl.server
    phases = server._phases._all
    cut, real = (server.window(0, server.published, cut=flag) for flag in (True, False))
    added = sum(phase.number * phase.choice.excess for phase in phases)
    assert real.value - cut.value == pytest.approx(added)
    assert (cut.cut, cut.stderr) == (0.0, real.stderr)
    assert real.excess == pytest.approx(added)
    assert np.hypot(*spreads(phases)) <= real.cut <= sum(spreads(phases))  # doubts of phases have something in common
    assert cut.value == pytest.approx(server.total.value)
    released = server.released
    assert (len(released), released.first) == (server.published, 0)


def spreads(phases):
    """Standard errors of what is added back in each phase."""
    return [
        np.hypot(phase.number * phase.choice.excess_stderr, np.sqrt(phase.number * phase.choice.excess_square))
        for phase in phases
    ]


def test_first_reports_are_taken_after_a_threshold_and_thresholds_that_nobody_announced_are_refused():
    server = ToPLServer(1.0, 10, theta=5.0, renewal=RENEWAL)
    client = ToPLClient(1.0, 10, renewal=RENEWAL)
    kinds = [server.push(client.fresh(4, theta=5.0), uid=number) is None for number in range(60)]
    assert server.heard == sum(kinds) > 0
    assert server.published == 60 - sum(kinds) > 0
    old = client.protocol
    server.renew()
    assert server.push_many(_second(old, 4.0, [100])).size == 0
    assert dict(server.refused) == {"made for another θ": 1}
    assert server.push_many(_second(old, server.theta, [101])).size == 1
    with pytest.raises(QueryRefused, match="since the last"):
        server.renew()
    plain = ToPLServer(1.0, 10, theta=5.0)
    with pytest.raises(InvalidParameter, match="renewal"):
        plain.renew()
    plain.push(ToPLClient(1.0, 10).report(4), uid=1)
    assert dict(plain.refused) == {"first-phase, after θ was announced": 1}


def _second(protocol, theta, uid):
    codes = second_codes(protocol, np.full(len(uid), 4.0), theta, SeededSource(1))
    return report_table(protocol, codes, theta, uid)


def test_both_kinds_in_one_batch_are_told_apart():
    protocol = ToPLProtocol(1.0, 10, renewal=RENEWAL)
    server = ToPLServer(1.0, 10, theta=5.0, renewal=RENEWAL)
    firsts = report_table(protocol, first_codes(protocol, np.full(3, 4.0), SeededSource(1)), uid=[1, 2, 3])
    assert server.push_many(pa.concat_tables([firsts, _second(protocol, 5.0, [4, 5]), firsts])).size == 2
    assert (server.heard, server.published, server.refused.total()) == (3, 2, 3)


def test_a_state_holds_all_phases():
    topl, *_ = shifted()
    server = topl.server
    again = ToPLServer.restore(server.state())
    assert again.settings == server.settings
    assert (again.theta, again.heard, again.published) == (server.theta, server.heard, server.published)
    assert again.window(100, server.published - 100) == server.window(100, server.published - 100)
    assert again.total == server.total
    old = {key: value for key, value in ToPLServer(1.0, 10).state().items() if key not in ("past", "before")}
    assert set(ToPLServer(1.0, 10).state()) - set(old) == {"past", "before"}


def test_a_renewed_threshold_is_saved_then_announced(tmp_path):
    state, announcement = tmp_path / "state", tmp_path / "theta"

    def opened():
        server = ToPLServer(1.0, 10, theta=5.0, renewal=RENEWAL, keep=False)
        return DurableServer(state, server, announcement=announcement)

    protocol = ToPLProtocol(1.0, 10, renewal=RENEWAL)
    firsts = report_table(protocol, first_codes(protocol, np.full(300, 9.0), SeededSource(1)), uid=np.arange(300))
    with opened() as durable:
        durable.publish(ReportBatch(firsts), lambda estimates: None)
        assert float(announcement.read_text()) == 5.0
    with opened() as durable:  # the file still holds the earlier θ of this collection
        theta = durable.renew()
        assert float(announcement.read_text()) == theta != 5.0
    with opened() as durable:
        assert (durable.server.theta, durable.server.thetas) == (theta, (5.0, theta))
    announcement.write_text("7.5")
    with pytest.raises(InvalidData, match="another threshold"):
        opened()


def test_the_commands_renew(tmp_path):
    values, agreed = tmp_path / "values.txt", ("--epsilon", 2, "--bound", 100, "--renewal", 0.3)
    values.write_text("".join(f"{number % 20}\n" for number in range(200)))
    state = ("--state", tmp_path / "state", "--every", 20)
    sent = run("stream", "report", *agreed, "--theta", 30, values).stdout
    first = run("stream", "collect", *agreed, "--theta", 30, *state, text=sent)
    assert (first.returncode, first.stdout.split()[:2]) == (0, ["theta", "30"]), first.stderr
    second = run("stream", "collect", *agreed, "--theta", 30, *state, "--renew")
    assert second.returncode == 0, second.stderr
    assert float(second.stdout.split()[1]) != 30
    alone = run("stream", "collect", *agreed, "--renew")
    assert (alone.returncode, "--state" in alone.stderr) == (2, True)


def test_windows_and_shares_out_of_range_are_refused():
    server = ToPLServer(1.0, 10, theta=5.0)
    with pytest.raises(QueryRefused, match="0 published values"):
        server.window(0, 1)
    for renewal in (-0.1, 0.6, float("nan")):
        with pytest.raises(InvalidParameter, match="renewal"):
            ToPLProtocol(1.0, 10, renewal=renewal)
    assert ToPLProtocol(1.0, 10).sha256 != ToPLProtocol(1.0, 10, renewal=0.1).sha256
