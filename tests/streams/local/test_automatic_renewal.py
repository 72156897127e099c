"""θ looked at again by itself: when, from which first reports, and what is then known of earlier estimates."""

import json

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from deniable.errors import InvalidParameter
from deniable.randomness import SeededSource
from deniable.stores.collector.stream_log import StreamLog, StreamUpload, check_streams, create_stream_log
from deniable.streams import LocalPercentile, ToPL, ToPLServer, report_table
from deniable.streams.local.renewal import reports_until_next, weight_of_earlier
from deniable.streams.local.simulated_stream import first_codes, second_codes
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.streams.structure.state_values import seal

AGAIN = reports_until_next(20)
SETTINGS = {"first": 20, "rule": LocalPercentile(0.9), "renewal": 0.5}


def first_batch(number, value, seed, protocol=None):
    protocol = ToPLProtocol(2.0, 100, renewal=0.5) if protocol is None else protocol
    codes = first_codes(protocol, np.full(number, float(value)), SeededSource(seed))
    return report_table(protocol, codes, uid=np.arange(seed * 10**6, seed * 10**6 + number))


def second_batch(server, theta, number, seed):
    codes = second_codes(server.protocol, np.full(number, 4.0), theta, SeededSource(seed))
    return report_table(server.protocol, codes, theta, uid=np.arange(seed * 10**6, seed * 10**6 + number))


def mixed():
    """First reports for three looks at θ, second reports under every θ before, and at last both in any order."""
    server = ToPLServer(2.0, 100, **SETTINGS)
    parts = [first_batch(20, 3, 1)]
    server.push_many(parts[0])
    for seed, value in ((2, 30), (3, 3)):
        parts += [second_batch(server, server.theta, 150, 10 + seed), first_batch(AGAIN, value, seed)]
        server.push_many(pa.concat_tables(parts[-2:]))
    parts += [second_batch(server, theta, 80, 20 + number) for number, theta in enumerate(server.thetas)]
    order = np.random.default_rng(1).permutation(sum(part.num_rows for part in parts[5:]))
    return pa.concat_tables([*parts[:5], pa.concat_tables(parts[5:]).take(order)]).combine_chunks()


def test_one_by_one_in_bulk_and_after_restarts_the_same_thresholds_are_announced():
    batch = mixed()
    bulk, single, pieces = (ToPLServer(2.0, 100, **SETTINGS) for _ in range(3))
    taken = bulk.take_many(batch)
    for uid, report in zip(batch["uid"].to_pylist(), batch["report"].to_pylist(), strict=True):
        single.push(report, uid)
    for start in range(0, batch.num_rows, 97):
        pieces = ToPLServer.restore(json.loads(json.dumps(pieces.state())))
        pieces.push_many(batch.slice(start, 97))
    assert len(bulk.thetas) == 3
    assert len(np.unique(taken.phases)) == 3
    for other in (single, pieces):
        assert (other.thetas, other.refused, other.choice) == (bulk.thetas, bulk.refused, bulk.choice)
        np.testing.assert_allclose(other.released.values, taken.values)
        assert other.released.phases.tolist() == taken.phases.tolist()
        assert other.window(50, 400).value == pytest.approx(bulk.window(50, 400).value)


def test_theta_follows_a_stream_by_itself_and_only_if_that_is_wanted():
    rng = np.random.default_rng(1)
    values = np.concatenate((rng.geometric(0.2, 30_000), 20 * rng.geometric(0.2, 30_000)))
    for renew, followed in (("auto", True), ("asked", False)):
        settings = {"first": 8_000, "renewal": 0.2, "renew": renew}
        topl = ToPL(2.0, 2_000, **settings, source=SeededSource(1), simulation=True)
        assert topl.publish(values).size == topl.server.published
        assert (topl.theta > 5 * topl.server.thetas[0], len(topl.server.thetas) > 1) == (followed, followed)
        assert topl.server.heard + topl.server.published == values.size
    with pytest.raises(InvalidParameter, match="renew"):
        ToPLServer(1.0, 10, renew="never")


def test_what_is_worth_nothing_is_not_announced():
    rng = np.random.default_rng(1)
    topl = ToPL(2.0, 500, first=20_000, renewal=0.2, source=SeededSource(1), simulation=True)
    topl.publish(rng.geometric(0.1, 20_000 + 60_000))
    assert topl.server.heard > 20_000 + 5 * reports_until_next(20_000)
    assert len(topl.server.thetas) <= 2
    assert topl.server.first_reports.number > 0.99 * topl.server.heard  # all of them count


def test_earlier_reports_count_unless_the_stream_has_changed():
    """False alarms are as rare as said, and a change is noticed and outweighs the reports from before it."""
    rng = np.random.default_rng(3)
    shares = rng.dirichlet(np.full(64, 5.0))
    alarms = sum(
        weight_of_earlier(rng.multinomial(20_000, shares).astype(float), rng.multinomial(2_000, shares).astype(float))
        < 1
        for _ in range(2_000)
    )
    assert alarms <= binom.isf(1e-9, 2_000, 0.002)
    before, after = (rng.multinomial(number, part) for number, part in ((20_000, shares), (2_000, np.roll(shares, 8))))
    assert 20_000 * weight_of_earlier(before.astype(float), after.astype(float)) < 2_000


def test_what_a_threshold_took_is_known_better_after_the_next_look():
    """Values grew after θ was announced: what is added back to those since then grows, and says how sure it is."""
    rng = np.random.default_rng(1)
    topl = ToPL(2.0, 2_000, first=8_000, renewal=0.2, renew="asked", source=SeededSource(1), simulation=True)
    grown = 5 * rng.geometric(0.2, 20_000)
    topl.publish(np.concatenate((rng.geometric(0.2, 8_000), grown)))
    server, truth = topl.server, grown.mean()
    before = server.window(0, server.published)
    server.renew()
    after = server.window(0, server.published)
    number = server.published
    assert abs(after.value / number - truth) < abs(before.value / number - truth) / 3
    assert abs(after.value / number - truth) < 4 * after.error / number


def test_settings_of_before_renew_when_asked():
    state = ToPLServer(1.0, 10, renewal=0.1).state()
    assert state["settings"]["renew"] == "auto"
    del state["settings"]["renew"], state["seal"]
    assert ToPLServer.restore(seal(state)).renewals == "asked"
    assert "renew" not in ToPLServer(1.0, 10).settings


def test_a_collector_announces_by_itself_in_the_commit_that_completes_the_reports(tmp_path):
    streams = check_streams({"streams": {"meters": {"epsilon": 2.0, "bound": 100, "first": 20, "renewal": 0.5}}})
    assert streams["meters"]["renew"] == "auto"
    create_stream_log(tmp_path, streams, simulation=False)
    protocol = ToPLProtocol(2.0, 100, name="meters", renewal=0.5)

    def uploads(table):
        rows = zip(table["uid"].to_pylist(), table["report"].to_pylist(), strict=True)
        return [StreamUpload(str(uid), report) for uid, report in rows]

    log = StreamLog(tmp_path)
    log.add("meters", uploads(first_batch(20, 1, 1, protocol)))
    theta = log.state("meters").theta
    log.add("meters", uploads(first_batch(AGAIN - 1, 90, 2, protocol)))
    assert log.state("meters").theta == theta
    log.add("meters", uploads(first_batch(1, 90, 3, protocol)))
    assert log.state("meters").theta > 1.5 * theta
    late = report_table(protocol, second_codes(protocol, np.full(3, 1.0), theta, SeededSource(1)), theta, uid=[1, 2, 3])
    assert log.add("meters", uploads(late)) == ["accepted"] * 3
    thetas, total = log.server("meters").thetas, log.server("meters").total
    log.close()
    again = StreamLog(tmp_path)
    assert (again.server("meters").thetas, again.server("meters").total) == (thetas, total)
    again.close()
