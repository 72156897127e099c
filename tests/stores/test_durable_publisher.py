"""Streams that live in a folder: they go on exactly, never publish in two ways, and can be read while they run."""

import json
import os
import shutil
import stat
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from deniable.errors import Failure, InvalidData, InvalidParameter, QueryRefused, RandomnessFault
from deniable.ledger import Ledger
from deniable.randomness import SeededSource
from deniable.stores import Batch, BatchPublisher, DurablePublisher, StoredStream, check_store, read_release
from deniable.stores.live.frames import Chain
from deniable.stores.live.value_log import ValueLog
from deniable.streams import KeyedPublisher, PersonStream, ToPS
from deniable.streams.central import epochs
from deniable.streams.central.warmup import learn
from hammering import hammered
from same_noise import forget_what_was_drawn

VALUES = np.arange(1000) % 37
SMALL = {"segment_values": 150, "log_bytes": 1500}


def make(**more):
    forget_what_was_drawn()
    return ToPS(1.0, 50, **{"warmup": 100, "horizon": 256, "block": 8, "key": bytes(32), **more})


def opened(path, **more):
    return DurablePublisher(path, make(**more), **SMALL)


def kill(durable):
    """End it as a killed process does: its locks go, and nothing more is written."""
    durable._let_go()


def ignore(*_):
    """Nobody listens."""


def test_a_store_goes_on_exactly_after_kills_and_closes(tmp_path):
    whole, parts, random = make().push_many(VALUES), [], np.random.default_rng(1)
    start = 0
    while start < VALUES.size:
        durable = opened(tmp_path / "store") if start < 500 else DurablePublisher(tmp_path / "store", **SMALL)
        assert (durable.position, durable.total, durable.first) == (start, start, sum(part.size for part in parts))
        for _ in range(3):
            size = int(random.integers(1, 60))
            parts.append(durable.push_many(VALUES[start : start + size]))
            start = min(start + size, VALUES.size)
        kill(durable) if random.random() < 0.5 else durable.close()
    assert np.concatenate(parts).tolist() == whole.tolist()
    stored = StoredStream(tmp_path / "store")
    assert stored.values(0).values.tolist() == whole.tolist()
    assert len(list((tmp_path / "store" / "published").glob("*.parquet"))) >= 4


@pytest.mark.parametrize("settings", [{}, {"renew": False}, {"block": 1}, {"resolution": 0.5, "low": -3}])
def test_a_reader_of_a_live_store_answers_as_the_publisher_would(tmp_path, settings):
    kept = make(**settings)
    kept.push_many(VALUES)
    durable = opened(tmp_path / "store", **settings)
    for start in range(0, 1000, 90):
        durable.push_many(VALUES[start : start + 90])
    released, stored = read_release(tmp_path / "store"), StoredStream(tmp_path / "store")
    assert released.about == kept.released.about
    for window in ((0, 900), (3, 77), (256, 512), (700, 900)):
        answer, expected = released.sum(*window), kept.released.sum(*window)
        assert (answer.value, answer.stderr) == pytest.approx((expected.value, expected.stderr))
        assert answer.interval == pytest.approx(expected.interval)
    base = stored.needed_from(700)
    assert (base > 0) == (settings != {"renew": False})
    part = stored.released(700).sum(700 - base, 900 - base)
    assert part.interval == pytest.approx(kept.released.sum(700, 900).interval)
    durable.close()


def test_a_store_in_its_warm_up_has_nothing_to_read_yet(tmp_path):
    with opened(tmp_path / "store") as durable:
        durable.push_many(VALUES[:50])
        with pytest.raises(QueryRefused, match="nothing is published yet"):
            read_release(tmp_path / "store")
    with pytest.raises(InvalidData, match="is not a store"):
        StoredStream(tmp_path)


def test_only_the_private_part_is_private(tmp_path):
    with opened(tmp_path / "store") as durable:
        durable.push_many(VALUES[:500])
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "store" / "private").iterdir()}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "store" / "private").stat().st_mode) == 0o700
    secret = json.loads((tmp_path / "store" / "private" / "state.json").read_text())["state"]["key"]
    public = [tmp_path / "store" / "settings.json", *(tmp_path / "store" / "published").iterdir()]
    assert all(secret.encode() not in path.read_bytes() for path in public)


def test_a_value_is_on_the_disk_before_its_noise_is_used(tmp_path, monkeypatch):
    durable, events = opened(tmp_path / "store"), []
    durable.push_many(VALUES[:200])
    fsync, push_many = os.fsync, durable.publisher.push_many
    log = durable._log.path.stat().st_ino
    monkeypatch.setattr(os, "fsync", lambda file: (events.append(os.fstat(file).st_ino == log), fsync(file)))
    durable.publisher.push_many = lambda values: (events.append("noise"), push_many(values))[1]
    durable.push_many(VALUES[200:210])
    assert events == [True, "noise"]
    durable.close()


def test_replays_are_skipped_and_gaps_are_refused(tmp_path):
    heard = []
    run = opened(tmp_path / "store")
    where = np.arange(7000, 8000)

    def send(start, stop):
        run.publish(Batch(VALUES[start:stop], positions=where[start:stop]), lambda values, _: heard.extend(values))

    send(0, 300)
    send(250, 400)
    send(0, 100)
    run.close()
    run = DurablePublisher(tmp_path / "store", **SMALL)
    assert run.position == 7400
    send(380, 500)
    with pytest.raises(InvalidData, match=r"row 1 was refused: positions before it are missing\. .*Send what"):
        send(501, 600)
    mixed = np.concatenate((where[490:510], where[:5], where[520:530]))
    with pytest.raises(InvalidData, match="row 26 was refused: positions before it are missing"):
        run.publish(Batch(VALUES[mixed - 7000], positions=mixed), lambda values, _: heard.extend(values))
    assert run.position == 7510
    with pytest.raises(InvalidData, match="row 2 was refused: its position is missing"):
        run.publish(
            Batch(VALUES[510:512], positions=np.array([7510, -(1 << 63)])), lambda values, _: heard.extend(values)
        )
    send(400, 1000)
    run.close()
    assert heard == make().push_many(VALUES).tolist()


@pytest.mark.parametrize(
    ("rule", "expected"),
    [("skip", [5, 60]), ("zero", [5, 0, 60, 0, 0, 0, 0]), ("clip", [5, -10, 60, 50, 0, 0, 0])],
)
def test_bad_values_become_what_was_decided_before(tmp_path, rule, expected):
    bad = np.array([5, -99, 60, np.inf, np.nan, None, "x"], dtype=object)
    run = DurablePublisher(tmp_path / "store", make(low=-10, block=1, renew=False), on_bad=rule, **SMALL)
    run.publish(Batch(bad), ignore)
    assert (run.taken, run.bad, run.position) == (len(expected), 5, 7)
    kill(run)
    with DurablePublisher(tmp_path / "store", **SMALL) as run:
        assert (run.bad, run.position, run.lenient) == (5, 7, True)
        again = ValueLog(run._log.path, run._log_number, run._key)
        logged = list(again.read())[-1].units.tolist()
        assert logged == [min(value, 50) + 10 for value in expected]
    with pytest.raises(InvalidParameter, match=f"on_bad is '{rule}' in the store"):
        DurablePublisher(tmp_path / "store", on_bad="stop")
    assert StoredStream(tmp_path / "store").settings.on_bad == rule


def test_skipping_leaves_out_everything_of_a_value_and_replacing_keeps_times_in_order():
    batch = Batch(np.array([1.0, np.nan, 3.0]), np.array([5.0, np.nan, 4.0]), persons=["a", "b", "c"])
    heard = []
    skipping = BatchPublisher(ToPS(1.0, 50, warmup=1, horizon=64, block=1), on_bad="skip")
    skipping.publish(batch, lambda values, stamps: heard.append((values.size, stamps.tolist())))
    assert (heard, skipping.bad, skipping.taken) == ([(0, [])], 2, 1)
    zero = BatchPublisher(ToPS(1.0, 50, warmup=1, horizon=64, block=1), on_bad="zero")
    zero.publish(batch, lambda values, stamps: heard.append((values.size, stamps.tolist())))
    assert (heard[1:], zero.bad, zero.taken) == ([(2, [5.0, 5.0])], 2, 3)
    with pytest.raises(InvalidParameter, match="must be one of stop, skip, clip, zero"):
        BatchPublisher(ToPS(1.0, 50, warmup=1, horizon=64), on_bad="ignore")


def test_a_batch_whose_delivery_fails_is_in_the_store_all_the_same(tmp_path):
    def fails(*_):
        raise BrokenPipeError

    durable = opened(tmp_path / "store")
    with pytest.raises(BrokenPipeError):
        durable.publish(Batch(VALUES[:300]), fails)
    assert (durable.position, len(StoredStream(tmp_path / "store"))) == (300, 200)
    durable.push_many(VALUES[300:400])
    durable.close()
    assert StoredStream(tmp_path / "store").values(0).values.tolist() == make().push_many(VALUES[:400]).tolist()


@pytest.mark.parametrize("where", ["_publish_logged", "_seal", "_checkpoint"])
def test_an_interrupted_call_is_finished_by_the_next_run(tmp_path, monkeypatch, where):
    def interrupt(*_):
        raise KeyboardInterrupt

    durable = opened(tmp_path / "store")
    durable.push_many(VALUES[:200])
    with monkeypatch.context() as patch:
        patch.setattr(durable, where, interrupt)
        with pytest.raises(KeyboardInterrupt):
            durable.push_many(VALUES[200:400])
    with pytest.raises(Failure, match=r"not certain that they were published.*Open the store again"):
        durable.push_many(VALUES[200:400] + 1)
    durable.close()
    with pytest.raises(Failure, match="is closed"):
        durable.push_many(VALUES[400:500])
    with opened(tmp_path / "store") as durable:
        assert durable.position == 400
        durable.push_many(VALUES[400:])
    assert StoredStream(tmp_path / "store").values(0).values.tolist() == make().push_many(VALUES).tolist()


def test_a_full_disk_publishes_nothing_and_loses_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with opened(tmp_path / "store") as durable:
        durable.push_many(VALUES[:200])
        with monkeypatch.context() as patch:
            patch.setattr("deniable.stores.live.frames.os.write", full)
            with pytest.raises(Failure, match="no space left"):
                durable.push_many(VALUES[200:300])
    with opened(tmp_path / "store") as durable:
        assert durable.position == 200
        durable.push_many(VALUES[200:300])


def test_refused_values_are_not_logged(tmp_path):
    with opened(tmp_path / "store") as durable:
        durable.push_many(VALUES[:200])
        with pytest.raises(InvalidData):
            durable.push_many(np.array([1.0, np.nan]))
        assert durable.push_many(VALUES[200:300]).tolist() == make().push_many(VALUES[:300])[100:].tolist()


def test_of_all_copies_on_a_machine_only_the_newest_goes_on(tmp_path):
    with opened(tmp_path / "store") as durable:
        durable.push_many(VALUES[:300])
        shutil.copytree(tmp_path / "store", tmp_path / "copy", ignore=shutil.ignore_patterns("*.lock"))
        with pytest.raises(Failure, match="is in use by another process"):
            DurablePublisher(tmp_path / "store")
        with pytest.raises(Failure, match="is in use by another process"):
            DurablePublisher(tmp_path / "copy")  # under another name
        durable.push_many(VALUES[300:301])
    with pytest.raises(RandomnessFault, match=r"old copy of the store.*Nothing was published"):
        DurablePublisher(tmp_path / "copy")
    shutil.move(tmp_path / "store", tmp_path / "moved")
    with DurablePublisher(tmp_path / "moved") as durable:
        durable.push_many(VALUES[301:310])


@pytest.mark.parametrize("kind", ["plain", "keyed"])
def test_a_copy_of_an_interrupted_store_does_not_go_on_after_the_original_has(tmp_path, kind):
    """The original repeats its log and takes Y behind it. The copy would repeat the same log, and take Z."""
    keyed = kind == "keyed"
    made = KeyedPublisher(1.0, 50, theta=40, horizon=64, block=4, public_keys=True) if keyed else make()
    keys = ["north"] * 300 if keyed else None
    durable = DurablePublisher(tmp_path / "store", made)
    durable.push_many(VALUES[:300], keys=keys)
    kill(durable)  # the values are in its log
    for name in ("copy", "second copy"):
        shutil.copytree(tmp_path / "store", tmp_path / name, ignore=shutil.ignore_patterns("*.lock"))
    durable = DurablePublisher(tmp_path / "store")
    assert durable.total == 300
    with pytest.raises(Failure, match="is in use by another process"):
        DurablePublisher(tmp_path / "copy")
    durable.push_many(VALUES[300:310], keys=keys and keys[:10])
    kill(durable)
    for name in ("copy", "second copy"):
        with pytest.raises(RandomnessFault, match=r"old copy of the store.*Nothing was published"):
            DurablePublisher(tmp_path / name)
    with DurablePublisher(tmp_path / "store") as durable:
        assert durable.total == 310


def test_a_store_whose_last_epoch_another_version_learnt_says_where_to_go_on(tmp_path, monkeypatch):
    """It was killed behind the epoch's first values, and before its state was written: they are computed again."""
    values = np.random.default_rng(1).poisson(30, 3_000)

    def learn_otherwise(*given):
        learnt = learn(*given)
        return replace(learnt, theta=learnt.theta + 1)

    def killed(durable):
        if durable.publisher.epoch_facts()[1:]:
            raise KeyboardInterrupt
        write(durable)

    write = DurablePublisher._checkpoint_and_begin_log
    durable = DurablePublisher(tmp_path / "store", ToPS(1.0, 100, warmup=256, horizon=1024))
    with monkeypatch.context() as another_version:
        another_version.setattr(epochs, "learn", learn_otherwise)
        another_version.setattr(DurablePublisher, "_checkpoint_and_begin_log", killed)
        with suppress(KeyboardInterrupt):
            for start in range(0, values.size, 100):
                durable.push_many(values[start : start + 100])
        assert durable._failed
        kill(durable)
    before = durable._open.path.read_bytes()
    with pytest.raises(InvalidData, match="open it there once, close it, and go on here"):
        DurablePublisher(tmp_path / "store")
    assert durable._open.path.read_bytes() == before
    with monkeypatch.context() as another_version:
        another_version.setattr(epochs, "learn", learn_otherwise)
        DurablePublisher(tmp_path / "store").close()
    with DurablePublisher(tmp_path / "store") as again:
        rest = values[again.position :]
        assert again.push_many(rest).size == rest.size > 0


def test_a_log_that_was_cut_or_changed_is_not_gone_on_with(tmp_path):
    durable = DurablePublisher(tmp_path / "store", make())
    for start in range(0, 160, 20):
        durable.push_many(VALUES[start : start + 20])
    log, segment = durable._log.path, durable._open.path
    kill(durable)
    whole, published = log.read_bytes(), segment.read_bytes()
    for content in (whole[:-30], whole[:40], b"", whole[:-1] + b"?"):
        log.write_bytes(content)
        with pytest.raises((RandomnessFault, InvalidData), match=r"log was cut|damaged"):
            opened(tmp_path / "store")
    log.unlink()
    with pytest.raises(InvalidData, match="damaged"):
        opened(tmp_path / "store")
    log.write_bytes(whole)
    frame = Chain("segment 0").frame(b"V", b"{}")
    segment.write_bytes(frame)  # a whole frame that the log knows nothing of
    with pytest.raises(InvalidData, match="open segment of the store is damaged"):
        opened(tmp_path / "store")
    segment.write_bytes(published[:-7])  # what a crash leaves
    with opened(tmp_path / "store") as durable:
        assert durable.position == 160
    assert StoredStream(tmp_path / "store").values(0).values.tolist() == make().push_many(VALUES[:160]).tolist()


def test_a_store_without_its_private_part_is_not_begun_anew(tmp_path):
    with opened(tmp_path / "store") as durable:
        durable.push_many(VALUES[:300])
    shutil.rmtree(tmp_path / "store" / "private")
    with pytest.raises(InvalidData, match="its private state is missing"):
        opened(tmp_path / "store")
    with pytest.raises(InvalidParameter, match="there is no store yet"):
        DurablePublisher(tmp_path / "none")


def test_other_settings_are_refused_and_the_store_is_free_again(tmp_path):
    with opened(tmp_path / "store") as durable:
        durable.push_many(VALUES[:200])
    with pytest.raises(InvalidParameter, match="not those of the store"):
        opened(tmp_path / "store", warmup=101)
    with opened(tmp_path / "store") as durable:
        durable.push_many(VALUES[200:300])
    simulated = make(key=None, source=SeededSource(1), simulation=True)
    with pytest.raises(InvalidParameter, match="simulation"):
        DurablePublisher(tmp_path / "simulated", simulated)


def test_a_fork_publishes_nothing(tmp_path):
    durable = opened(tmp_path / "store")
    durable.push_many(VALUES[:200])
    pid = os.fork()
    if pid == 0:
        try:
            durable.push_many(VALUES[200:300])
        except RandomnessFault:
            durable.close()
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert durable.push_many(VALUES[200:300]).tolist() == make().push_many(VALUES[:300])[100:].tolist()
    durable.close()


def test_streams_of_persons_and_their_charges(tmp_path):
    ledger = Ledger(tmp_path / "ledger.json", limit=10.0)

    def run(number):
        stream = PersonStream(1.0, 50, most=2, epoch=100, warmup=20, horizon=128)
        with DurablePublisher(tmp_path / "store", stream, ledger=ledger, **SMALL) as durable:
            persons = [f"p{person % 30}" for person in range(60)]
            batch = Batch(VALUES[:60], np.arange(60) + 60 * number, persons=persons)
            durable.publish(batch, ignore)
            if number == 1:
                kill(durable)
                durable._failed = True
            return durable.publisher.epochs

    assert [run(number) for number in range(4)] == [1, 2, 2, 3]
    assert [entry.charge.what for entry in ledger.entries] == [f"stream of persons, epoch {n}" for n in (1, 2, 3)]
    assert StoredStream(tmp_path / "store").values(0).timestamps.tolist() == list(range(20, 240))


@pytest.mark.parametrize("durable", [True, False])
def test_a_batch_is_published_up_to_the_value_that_is_refused(tmp_path, durable):
    run = opened(tmp_path / "store") if durable else BatchPublisher(make())
    published, values = [], VALUES.astype(object)
    values[150] = None
    with run, pytest.raises(InvalidData, match="row 151 was refused: it has no value"):
        run.publish(Batch(values), lambda values, _: published.extend(values))
    assert (run.taken, run.published, len(published), run.position) == (150, 50, 50, 150)


@pytest.mark.parametrize(
    ("stamps", "reason"),
    [
        ([1, 2, 1], "row 3 was refused: its timestamp goes back"),
        ([3, np.nan, 4], "row 2 was refused: its timestamp is missing"),
        ([0, 1, 2], "row 1 was refused: its timestamp goes back"),
    ],
)
def test_timestamps_do_not_go_back(tmp_path, stamps, reason):
    with opened(tmp_path / "store") as run:
        run.publish(Batch(VALUES[:1], np.array([1])), ignore)
    with opened(tmp_path / "store") as run:
        with pytest.raises(InvalidData, match=reason):
            run.publish(Batch(VALUES[:3], np.array(stamps)), ignore)
        with pytest.raises(InvalidData, match="of another type than those before it"):
            run.publish(Batch(VALUES[:1], np.array(["2024-01-01"], dtype="datetime64[us]")), ignore)


def test_threads_take_turns(tmp_path):
    with opened(tmp_path / "store") as durable:
        durable.push_many(VALUES[:100])
        released = hammered(lambda number: durable.push_many(np.full(10, number)).size)
        assert (released, durable.total) == ([10] * 8, 180)


def test_a_doctor_finds_what_is_wrong(tmp_path):
    store = tmp_path / "store"
    with opened(store) as durable:
        for start in range(0, 500, 50):
            durable.push_many(VALUES[start : start + 50])
        assert all(finding.well for finding in check_store(store))
        assert "500 values taken, 0 bad; the next position is 500" in list(check_store(store))[-1].text
    for path, piece in (
        (store / "private" / "state.json", "state"),
        (max((store / "published").iterdir()), "open segment"),
    ):
        whole = path.read_bytes()
        for index in (len(whole) // 3, len(whole) // 2):  # one bit of it
            path.write_bytes(whole[:index] + bytes([whole[index] ^ 16]) + whole[index + 1 :])
            assert [finding.piece for finding in check_store(store) if not finding.well] == [piece]
        path.write_bytes(whole)
    os.chmod(store / "private" / "state.json", 0o644)  # noqa: PTH101
    assert [finding.piece for finding in check_store(store) if not finding.well] == ["permissions"]
    next((store / "private").glob("*.log")).unlink()
    assert [finding.piece for finding in check_store(store) if not finding.well] == ["permissions", "log"]
    (store / "private" / "state.json").write_text("{")
    assert [finding.piece for finding in check_store(store) if not finding.well] == ["permissions", "state"]
    shutil.rmtree(store / "private")
    assert [finding.piece for finding in check_store(store) if not finding.well] == ["private part"]
    (store / "published" / "00000001.parquet").unlink()
    assert "a segment of the stream is missing" in next(iter(check_store(store))).text
    (store / "published" / "00000000.parquet").write_bytes(b"PAR1")
    assert "is damaged" in next(iter(check_store(store))).text
    (store / "settings.json").write_text("{}")
    assert "is not a store" in next(iter(check_store(store))).text
