"""Every public class that holds something, under eight threads that switch as often as possible.

Publishers get the same value from all threads: then the order of calls does not matter, and together they must publish
exactly what one thread publishes. A noise that was used twice, or left out, shows.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable import client, mechanisms, spark, stores, streams
from deniable.client import Client, ToPLClient
from deniable.errors import RandomnessFault
from deniable.randomness import SecureSource, SeededSource
from deniable.streams import NME, PAK, Flat, Hc16, Perturber, PublicThreshold, SmoothHc16, ToPL, ToPLServer, ToPS
from effort import repetitions
from hammering import THREADS, hammered

WARMUP, EACH, VALUE = 100, repetitions(100, 300), 7
SETTINGS = {"warmup": WARMUP, "horizon": 512, "source": SeededSource(1), "simulation": True}
PUBLISHERS = {
    "tops": lambda: ToPS(1.0, 50, **SETTINGS),
    "tops, blocks of 7": lambda: ToPS(1.0, 50, block=7, **SETTINGS),
    "tops, no smoother": lambda: ToPS(1.0, 50, block=1, **SETTINGS),
    "cents": lambda: ToPS(1.0, 50, block=3, resolution=0.01, **SETTINGS),
    "public": lambda: ToPS(1.0, 50, block=5, threshold=PublicThreshold(30), **SETTINGS),
    "pak": lambda: PAK(1.0, 50, **SETTINGS),
    "nme": lambda: NME(1.0, 50, **SETTINGS),
    "hc16": lambda: Hc16(1.0, 50, **SETTINGS),
    "smooth-hc16": lambda: SmoothHc16(1.0, 50, **SETTINGS),
    "flat": lambda: Flat(1.0, 50, **SETTINGS),
}


@pytest.fixture(params=PUBLISHERS)
def publisher(request):
    return PUBLISHERS[request.param]


def together(parts):
    return [value for part in parts for value in part]


def published_alone(make):
    alone = make()
    values = alone.push_many(np.full(THREADS * EACH, VALUE))
    return alone, sorted(values.tolist())


def test_threads_that_push_publish_what_one_thread_does(publisher):
    shared, (alone, expected) = publisher(), published_alone(publisher)
    answers = together(hammered(lambda _: [shared.push(VALUE) for _ in range(EACH)]))
    assert answers.count(None) == WARMUP
    assert sorted(answer for answer in answers if answer is not None) == pytest.approx(expected, rel=1e-12)
    assert (shared.published, shared.consumed) == (alone.published, alone.consumed)
    assert shared.released.array() == pytest.approx(alone.released.array(), rel=1e-12)


def test_threads_that_push_many_publish_what_one_thread_does(publisher):
    shared, (alone, expected) = publisher(), published_alone(publisher)
    pieces = hammered(
        lambda _: np.concatenate([shared.push_many(np.full(size, VALUE)) for size in (1, 50, 9, EACH - 60)])
    )
    assert sorted(np.concatenate(pieces).tolist()) == pytest.approx(expected, rel=1e-12)
    assert shared.released.array() == pytest.approx(alone.released.array(), rel=1e-12)


@pytest.mark.parametrize("name", ["tops, blocks of 7", "cents", "flat"])
def test_all_methods_of_a_publisher_at_once(name):
    publisher = PUBLISHERS[name]
    shared, (alone, expected) = publisher(), published_alone(publisher)

    def work(_):
        answers = []
        for turn in range(EACH // 4):
            answers += [shared.push(VALUE), *shared.push_many([VALUE] * 3)]
            state = shared.state()
            shared.check([VALUE])
            if turn % 5 == 0 and state["learnt"] is not None:
                released = shared.released
                assert len(released) <= shared.published <= shared.consumed - WARMUP
                assert len(shared.release_of(released.values)) == len(released)
                assert repr(shared).endswith(" published; simulation)")
            if turn % 25 == 0:  # a state is whole, whenever it is taken
                again = streams.restore(state, source=SeededSource(1))
                consumed = again.consumed
                again.push_many([VALUE] * WARMUP)
                assert again.published == consumed
        return answers

    answers = [answer for answers in hammered(work) for answer in answers if answer is not None]
    assert sorted(answers) == pytest.approx(expected, rel=1e-12)
    ends = hammered(lambda _: shared.flush())
    assert sum(end != 0 for end in ends) <= 1
    assert sum(ends) == pytest.approx(alone.flush())
    assert shared.released.array() == pytest.approx(alone.released.array(), rel=1e-12)


def test_sums_of_blocks():
    settings = Perturber(1.0, 50, horizon=97, block=4)
    shared, alone = (settings.begin(source=SeededSource(1), simulation=True) for _ in range(2))
    sums = hammered(
        lambda _: [shared.push(VALUE) for _ in range(EACH)] + shared.push_many([VALUE] * EACH).tolist(),
    )
    expected = alone.push_many(np.full(2 * THREADS * EACH, VALUE))
    assert sorted(value for part in sums for value in part if value is not None) == sorted(expected.tolist())
    assert shared.flush().tolist() == alone.flush().tolist()


@pytest.mark.parametrize("make", [lambda: SeededSource(1), SecureSource])
def test_no_two_threads_draw_the_same_bits(make):
    source = make()

    def work(_):
        words = together(source.words(3).tolist() for _ in range(EACH))
        source.discrete_laplace(50.0, 100)
        source.below(1000, 10)
        source.bernoulli(0.3, 10)
        return words + [source.randbelow(2**64) for _ in range(EACH)]

    words = together(hammered(work))
    assert len(set(words)) == len(words)  # two of at most 9,600 words of 64 bits are equal with a chance of 3e-12
    if source.simulation:
        fresh = make()
        known = {*fresh.words(source.counter * 2).tolist()}
        assert set(words) <= known


def test_of_many_threads_that_want_one_stream_one_gets_it():
    key = SecureSource.new_key()
    for number in range(50):

        def draw(_, number=number):
            try:
                return SecureSource(key).stream("a", number).words(1).size
            except RandomnessFault:
                return 0

        assert sum(hammered(draw, 4)) == 1


def test_a_server_takes_every_user_once():
    server = ToPLServer(1.0, 100, first=500)
    asking = ToPLClient(1.0, 100)
    first = [asking.fresh(30) for _ in range(THREADS * 50)]
    hammered(lambda number: [server.push(report, uid=uid) for uid, report in enumerate(first[number * 50 :][:50])])
    hammered(lambda _: [server.push(report, uid=uid) for uid, report in enumerate(first)])
    assert server.heard == THREADS * 50
    assert sum(server.refused.values()) == THREADS * 50 + THREADS * len(first) - server.heard
    tables = [streams.report_table(server.protocol, np.zeros(200, dtype=np.int64), None, None)] * THREADS
    hammered(lambda number: server.push_many(tables[number]))
    assert server.heard == server.first
    theta = server.theta
    second = [asking.fresh(30, theta=theta) for _ in range(EACH)]

    def work(_):
        estimates = [server.push(report, uid=f"u{uid}") for uid, report in enumerate(second)]
        assert server.state()["published"] >= len(server.released) - EACH
        assert server.total.stderr > 0
        return [estimate for estimate in estimates if estimate is not None]

    taken = together(hammered(work))
    assert len(taken) == server.published == len(server.released) == EACH
    assert server.total.value == pytest.approx(sum(taken))
    assert ToPLServer.restore(server.state()).total == server.total


def test_a_simulation_of_both_sides_answers_every_value():
    topl = ToPL(1.0, 100, first=1000, source=SeededSource(1), simulation=True)
    sizes = hammered(lambda _: sum(topl.publish(np.full(100, 30)).size for _ in range(5)))
    assert sum(sizes) == topl.server.published == THREADS * 500 - 1000
    assert topl.server.heard == 1000


SHOP = dn.Collection(
    dn.Table("users", age=dn.Ordinal(1, 95)), dn.Table("orders", many=4, tau=2, amount=dn.Ordinal(0, 50)), epsilon=2.0
)


@pytest.mark.parametrize("shared", [True, False])
def test_clients_of_one_memory_send_the_same_bytes(shared, tmp_path):
    for number in range(10):
        memory = {} if shared else None
        clients = [SHOP.client(memory)] if memory is None else [SHOP.client(memory) for _ in range(THREADS)]

        def ask(thread, clients=clients):
            mine = clients[thread % len(clients)]
            reports = (mine.report("users", {"age": 31}), *mine.reports("orders", [{"amount": None}] * 2))
            return b"".join(report.to_bytes() for report in reports)

        assert len(set(hammered(ask))) == 1
        assert sum(mine.rejected["missing"] for mine in clients) == 2
        memory = tmp_path / f"memory-{number}.json" if number < 2 else {}
        local = [ToPLClient(1.0, 100, memory) for _ in range(THREADS)]
        assert len(set(hammered(lambda thread, local=local: local[thread].report(31).to_bytes()))) == 1


def test_a_memory_is_not_taken_for_another_one():
    memories = [{} for _ in range(100)]
    assert len({Client(SHOP, memory).report("users", {"age": 31}).to_bytes() for memory in memories}) > 1
    for _ in range(100):  # identities are used again
        assert len(Client(SHOP, memory := {}).reports("orders", [])) == 2
        assert len(memory) == 1


def test_odd_values_are_counted_once_each():
    mine = ToPLClient(1.0, 100)
    hammered(lambda _: [mine.fresh(value) for value in (None, 200, -1) * 200])
    assert mine.clipped == {"not a number": 1600, "above the bound": 1600, "below zero": 1600}


@pytest.mark.parametrize("memory_limit", [2**30, 0])
def test_a_database_answers_as_it_does_alone(memory_limit, tmp_path, monkeypatch):
    monkeypatch.setattr("deniable.queries.planning.kept_plans.MOST_KEPT", 2)
    collection = dn.Collection(
        dn.Table("users", age=dn.Ordinal(1, 20), city=dn.Public()),
        dn.Table("jobs", many=2, tau=1, hours=dn.Ordinal(0, 9)),
        epsilon=4.0,
        design="grid" if memory_limit else "hio",
    )
    ids = np.arange(600)
    users = pa.table({"uid": ids, "age": 1 + ids % 20, "city": pa.array(["Rome", "Oslo"] * 300)})
    jobs = pa.table({"uid": ids, "hours": ids % 10})
    collection.perturb(users=users, jobs=jobs, out=tmp_path / "r", source=SeededSource(1), simulation=True)
    questions = [
        "SELECT COUNT(*) AS n FROM users WHERE age < 7",
        "SELECT city, AVG(age) AS a FROM users WHERE city <> 'Paris' GROUP BY city ORDER BY city",
        "SELECT SUM(hours) AS h FROM users JOIN jobs USING (uid) WHERE age > 12",
        "SELECT FLOOR(age / 5) AS bin, COUNT(*) AS n FROM users GROUP BY bin",
    ]
    cities = pa.table({"city": ["Rome", "Oslo"], "north": [False, True]})
    questions.append("SELECT COUNT(*) AS n FROM users JOIN cities USING (city) WHERE north AND age > 9")

    def opened():
        return dn.connect(tmp_path / "r", memory_limit=memory_limit, dimensions={"cities": cities})

    def answers(database, question):
        rows = database.sql(question).to_arrow().to_pylist()
        return [value for row in rows for value in row.values() if isinstance(value, (int, float))]

    alone, shared = opened(), opened()
    expected = [answers(alone, question) for question in questions]

    def work(number):
        order = np.roll(np.arange(len(questions)), number)
        return {int(index): answers(shared, questions[index]) for index in order}

    for answered in hammered(work):
        for index, numbers in answered.items():
            assert numbers == pytest.approx(expected[index], rel=1e-9, nan_ok=True)


def test_a_plan_that_another_thread_throws_away_is_still_answered():
    class Emptied(dict):
        def __setitem__(self, key, value):
            """As if another thread made room for its own plan at once."""

    database = dn.connect(SHOP.perturb(users={"uid": [1, 2, 3], "age": [31, 40, 52]}))
    database._plans._made = Emptied()
    assert database.sql("SELECT COUNT(*) AS n FROM users").scalar().value == 3


def test_collections_randomise_apart_and_releases_answer_alike():
    source, ids = SecureSource(), np.arange(2000)
    frame = {"uid": ids, "age": 1 + ids % 95}
    runs = hammered(lambda _: SHOP.perturb(users=frame, source=source)["users"]["seed"].to_numpy().tobytes())
    assert len(set(runs)) == THREADS
    alone, _ = published_alone(PUBLISHERS["tops, blocks of 7"])
    released = alone.released
    sums = hammered(lambda _: [released.sum(start, start + 50).value for start in range(100)])
    assert all(part == sums[0] for part in sums)


# What the pages say --------------------------------------------------------------------------------------------------


def test_the_contract_of_every_public_class_is_stated():
    text = (Path(__file__).parents[1] / "docs" / "reference" / "threads.md").read_text()
    for module in (dn, client, streams, stores, spark, mechanisms):
        missing = [name for name in module.__all__ if name[0] != "_" and f"`{name}`" not in text]
        assert not missing, (module.__name__, missing)


# Forks and signals ---------------------------------------------------------------------------------------------------


def run(script):
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="there are no forks")
def test_what_another_thread_was_using_refuses_in_a_fork_instead_of_hanging():
    run("""
import os, signal, sys, threading, time
import deniable as dn
from deniable.client import ToPLClient
from deniable.errors import Failure
from deniable.streams import Perturber, PublicThreshold, ToPLServer, ToPS

public = {"warmup": 0, "threshold": PublicThreshold(9)}
for settings in ({}, {"source": dn.SeededSource(1), "simulation": True}):
    tops = ToPS(1.0, 100, **public, block=4, **settings)
    server = ToPLServer(1.0, 100, theta=10.0)
    sums = Perturber(1.0, 100).begin(**settings)
    memory = {}
    used = (tops, server, sums)
    shop = dn.Collection(dn.Table("users", age=dn.Ordinal(1, 95)), epsilon=2.0)
    clients = ToPLClient(1.0, 100, memory), shop.client(memory)
    seeded, idle = dn.SeededSource(2), ToPS(1.0, 100, **public, block=100, **settings)
    idle.push(3)
    for turn in (*(publisher._turn for publisher in used), clients[0]._alone.__self__):
        turn.free.pop()  # as if another thread stood in the middle of a method
    seeded._lock.acquire()
    child = os.fork()
    if child == 0:
        attempts = (
            lambda: tops.push(3), lambda: tops.push(3.5), lambda: tops.push_many([3]), lambda: tops.flush(),
            lambda: tops.state(), lambda: tops.released, lambda: tops.published, lambda: server.heard,
            lambda: server.push(b""), lambda: sums.push(3), lambda: clients[0].report(3),
            lambda: clients[1].report("users", {"age": 31}),
        )
        try:
            for number, attempt in enumerate(attempts):
                try:
                    attempt()
                except Failure as problem:
                    assert "was forked" in str(problem), problem
                else:
                    raise AssertionError(number)
            if settings:
                seeded.words(1)
                idle.push(3)
            else:
                for attempt in (lambda: idle.push(3), lambda: idle.push_many([3])):  # inside a block
                    try:
                        attempt()
                    except Failure as problem:
                        assert "another process" in str(problem), problem
                    else:
                        raise AssertionError("idle")
            assert idle.published >= 1
            other = {}
            dn.client.Client(shop, other).report("users", {"age": 31})
            ToPS(1.0, 100, **public).push(3)
        except BaseException as problem:
            print(repr(problem), file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    for _ in range(6000):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            break
        time.sleep(0.01)
    else:
        os.kill(child, signal.SIGKILL)
        sys.exit("the child hangs")
    assert os.waitstatus_to_exitcode(status) == 0
""")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no interval timers")
def test_ctrl_c_in_the_middle_of_anything_leaves_one_token():
    run("""
import signal
from deniable.streams import Flat, PublicThreshold

flat = Flat(1.0, 100, warmup=0, threshold=PublicThreshold(9), keep=False)
signal.signal(signal.SIGALRM, signal.default_int_handler)
for number in range(200):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005 + number * 1e-6)
        while True:
            if number % 2:
                flat.push(3)
            else:
                flat.push_many([3])
                flat.published
    except KeyboardInterrupt:
        pass
    assert len(flat._turn.free) == 1, number
""")
