"""Streams that survive their process: they go on exactly, are never used twice, and replay only the same values."""

import json
import os
import shutil
import stat

import numpy as np
import pytest

from deniable.errors import Failure, InvalidData, InvalidParameter, RandomnessFault
from deniable.randomness import SeededSource
from deniable.stores import Batch, BatchPublisher, DurablePublisher
from deniable.stores.state_file import StateFile
from deniable.streams import ToPLServer, ToPS, restore
from hammering import hammered
from same_noise import forget_what_was_drawn

VALUES = np.arange(1000) % 37


def make(**more):
    forget_what_was_drawn()
    return ToPS(1.0, 50, **{"warmup": 100, "horizon": 256, "block": 8, "key": bytes(32), **more})


def opened(path, **more):
    return DurablePublisher(path, make(**more))


def kill(durable):
    """End it as a killed process does: its lock goes, and nothing more is written."""
    durable._file.close()


def test_a_state_file_is_private_and_goes_on_exactly(tmp_path):
    whole = make().push_many(VALUES)
    path, parts = tmp_path / "state.json", []
    for start in range(0, 1000, 77):
        with opened(path) as durable:
            assert durable.first == sum(part.size for part in parts)
            parts.append(durable.push_many(VALUES[start : start + 50]))
            parts.append(durable.push_many(VALUES[start + 50 : start + 77]))
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert np.concatenate(parts).tolist() == whole.tolist()


def interrupted(path, upto, batch):
    """A run that published `batch` values after `upto` and died before it could say so."""
    durable = opened(path)
    durable.push_many(VALUES[:upto])
    released = durable.push_many(VALUES[upto : upto + batch])
    kill(durable)
    return released


def test_an_interrupted_run_goes_on_with_the_same_values_and_no_others(tmp_path):
    path = tmp_path / "state.json"
    released = interrupted(path, 500, 100)
    other = VALUES[500:600].copy()
    other[3] += 1
    with opened(path) as durable:
        assert durable.replaying == 100
        with pytest.raises(InvalidData, match="other values"):
            durable.push_many(other)
        assert durable.publisher.consumed == 500
        assert durable.push_many(VALUES[500:540]).size == 0
        again = durable.push_many(VALUES[540:700])
        assert durable.replaying == 0
    assert again[:100].tolist() == released.tolist()
    assert again.tolist() == make().push_many(VALUES[:700])[400:].tolist()
    with StateFile(path) as file:
        assert file.record["announced"] is None
        assert restore(file.record["state"]).consumed == 700


def test_values_that_leave_together_are_announced_together(tmp_path):
    """A second crash, after more values than were announced came at once: nothing is lost, nothing differs."""
    path = tmp_path / "state.json"
    released = interrupted(path, 500, 100)
    durable = opened(path)
    again = durable.push_many(VALUES[500:650])
    kill(durable)
    with opened(path) as durable:
        assert (durable.replaying, durable.publisher.consumed) == (150, 500)
        third = durable.push_many(VALUES[500:650])
    assert released.tolist() == again[:100].tolist()
    assert again.tolist() == third.tolist()


def test_a_state_that_was_never_used_again_keeps_its_announcement(tmp_path):
    path = tmp_path / "state.json"
    interrupted(path, 500, 100)
    with opened(path) as durable:
        durable.push_many(VALUES[500:510])
    with StateFile(path) as file:
        assert file.record["announced"]["count"] == 100


def test_what_could_not_be_delivered_comes_again(tmp_path):
    path, seen = tmp_path / "state.json", []

    def deliver(values, timestamps):
        seen.append(values.tolist())
        raise BrokenPipeError

    with opened(path) as durable:
        durable.publish(Batch(VALUES[:200]), lambda values, timestamps: None)
        with pytest.raises(BrokenPipeError):
            durable.publish(Batch(VALUES[200:300]), deliver)
        with pytest.raises(Failure, match="not certain that they were delivered"):
            durable.push_many(VALUES[300:400])
    with opened(path) as durable:
        assert durable.replaying == 100
        durable.publish(Batch(VALUES[200:300]), lambda values, timestamps: seen.append(values.tolist()))
    assert seen[0] == seen[1]


def test_an_exception_before_values_were_used_makes_them_come_again(tmp_path):
    path = tmp_path / "state.json"

    def fails_after_publishing():
        with opened(path) as durable:
            durable.push_many(VALUES[:200])
            durable.push_many(VALUES[200:210])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails_after_publishing()
    with opened(path) as durable:
        assert (durable.replaying, durable.publisher.consumed) == (10, 200)


def interrupt(*_):
    """What Ctrl-C does inside a call."""
    raise KeyboardInterrupt


def test_a_replay_that_is_interrupted_takes_no_other_values(tmp_path):
    """A caller may catch the exception and go on. What was announced must still come first, here and in later runs."""
    path = tmp_path / "state.json"
    released = interrupted(path, 500, 100)
    durable = opened(path)
    push_many, durable.publisher.push_many = durable.publisher.push_many, interrupt
    with pytest.raises(KeyboardInterrupt):
        durable.push_many(VALUES[500:600])
    durable.publisher.push_many = push_many
    with pytest.raises(Failure, match="not certain that they were delivered"):
        durable.push_many(VALUES[500:600] + 1)
    durable.close()
    with opened(path) as durable:
        assert durable.replaying == 100
        assert durable.push_many(VALUES[500:600]).tolist() == released.tolist()


def test_a_replay_whose_announcement_cannot_be_written_is_repeated(tmp_path, monkeypatch):
    path = tmp_path / "state.json"
    released = interrupted(path, 500, 100)
    with opened(path) as durable:
        durable.push_many(VALUES[500:540])
        with monkeypatch.context() as full:
            full.setattr(durable, "_announce", interrupt)
            with pytest.raises(KeyboardInterrupt):
                durable.push_many(VALUES[540:700])
        assert durable.push_many(VALUES[540:700])[:100].tolist() == released.tolist()


def test_an_array_may_be_reused_between_the_pieces_of_a_replay(tmp_path):
    path = tmp_path / "state.json"
    released = interrupted(path, 500, 100)
    buffer = np.empty(50, dtype=np.int64)
    with opened(path) as durable:
        for start in (500, 550):
            buffer[:] = VALUES[start : start + 50]
            again = durable.push_many(buffer)
    assert again.tolist() == released.tolist()


def test_a_closed_publisher_publishes_nothing_and_is_closed_once(tmp_path):
    path = tmp_path / "state.json"
    interrupted(path, 500, 100)
    durable = opened(path)
    durable.close()
    with opened(path) as other:
        with pytest.raises(Failure, match="is closed"):
            durable.push_many(VALUES[500:600])
        durable.close()
        assert other.push_many(VALUES[500:600]).size == 100


def test_values_that_were_not_taken_come_again_with_their_timestamps(tmp_path, monkeypatch):
    path, stamps, taken = tmp_path / "state.json", np.arange(1000), []

    def batch(start, stop, more=0):
        return Batch(VALUES[start:stop] + more, stamps[start:stop])

    def deliver(_, timestamps):
        taken.extend(timestamps.tolist())

    interrupted(path, 500, 100)
    with opened(path) as durable:
        durable.publish(batch(500, 550), deliver)
        with pytest.raises(InvalidData, match="other values"):
            durable.publish(batch(550, 600, more=1), deliver)
        durable.publish(batch(500, 550), deliver)
        durable.publish(batch(550, 600), deliver)
        with monkeypatch.context() as full:
            full.setattr(durable, "_announce", interrupt)
            with pytest.raises(KeyboardInterrupt):
                durable.publish(batch(600, 700), deliver)
        durable.publish(batch(600, 700), deliver)
    assert taken == stamps[500:700].tolist()


def test_timestamps_come_with_their_values_also_in_a_replay(tmp_path):
    path, pairs = tmp_path / "state.json", []
    durable = opened(path)
    durable.publish(Batch(VALUES[:200], np.arange(200)), lambda *_: None)
    durable.push_many(VALUES[200:300])
    kill(durable)
    with opened(path) as durable:
        for start, stop in ((200, 240), (240, 310), (310, 330)):
            batch = Batch(VALUES[start:stop], np.arange(start, stop))
            durable.publish(batch, lambda values, stamps: pairs.extend(zip(stamps.tolist(), values, strict=True)))
        assert (durable.taken, durable.published) == (130, 130)
    assert [stamp for stamp, _ in pairs] == list(range(200, 330))
    assert [value for _, value in pairs] == make().push_many(VALUES[:330])[100:].tolist()


@pytest.mark.parametrize("durable", [True, False])
def test_a_batch_is_published_up_to_the_value_that_is_refused(tmp_path, durable):
    run = opened(tmp_path / "state.json") if durable else BatchPublisher(make())
    published, values = [], VALUES.astype(object)
    values[150] = None
    with run, pytest.raises(InvalidData, match="row 151 was refused: it has no value"):
        run.publish(Batch(values), lambda values, _: published.extend(values))
    assert (run.taken, run.published, len(published)) == (150, 50, 50)


@pytest.mark.parametrize(
    ("stamps", "reason"),
    [
        ([1, 2, 1], "row 3 was refused: its timestamp goes back"),
        ([3, np.nan, 4], "row 2 was refused: its timestamp is missing"),
        ([0, 1, 2], "row 1 was refused: its timestamp goes back"),
    ],
)
def test_timestamps_do_not_go_back(stamps, reason):
    run = BatchPublisher(make())
    run.publish(Batch(VALUES[:1], np.array([1])), lambda *_: None)
    with pytest.raises(InvalidData, match=reason):
        run.publish(Batch(VALUES[:3], np.array(stamps)), lambda *_: None)
    with pytest.raises(InvalidData, match="of another type than those before it"):
        run.publish(Batch(VALUES[:1], np.array(["2024-01-01"], dtype="datetime64[us]")), lambda *_: None)


def test_a_state_file_is_one_whatever_name_it_is_reached_by(tmp_path):
    real, link = tmp_path / "state.json", tmp_path / "link.json"
    link.symlink_to(real)
    publish(link, VALUES[:200])
    assert link.is_symlink()
    with StateFile(real) as file:
        assert restore(file.record["state"]).consumed == 200
        with pytest.raises(Failure, match="in use"):
            StateFile(link)
    publish(link, VALUES[200:300])
    with StateFile(real) as file:
        assert restore(file.record["state"]).consumed == 300
    os.link(real, tmp_path / "second name.json")
    with pytest.raises(Failure, match=r"has 2 names .* Nothing was published"):
        StateFile(real)


def publish(path, values):
    with opened(path) as durable:
        durable.push_many(values)


def test_an_older_copy_of_a_state_file_is_refused(tmp_path):
    path = tmp_path / "state.json"
    publish(path, VALUES[:200])
    older = path.read_bytes()
    publish(path, VALUES[200:300])
    path.write_bytes(older)
    with pytest.raises(RandomnessFault, match="continued from here already"):
        publish(path, VALUES[300:400])


def test_a_copy_that_was_refused_is_refused_again(tmp_path):
    """It had announced its values before it was refused. They are not an interrupted run's."""
    path, copy = tmp_path / "state.json", tmp_path / "copy.json"
    with opened(path) as durable:
        durable.push_many(VALUES[:500])
    shutil.copy(path, copy)
    with opened(copy) as late, opened(path) as durable:
        assert durable.push_many(VALUES[500:600]).size == 100
        with pytest.raises(RandomnessFault, match="continued from here already"):
            late.push_many(VALUES[500:600] + 1)
    with pytest.raises(RandomnessFault, match="continued from here already"):
        opened(copy)


def test_a_replay_that_crashes_at_any_step_can_be_repeated(tmp_path):
    path = tmp_path / "state.json"
    released = interrupted(path, 500, 100)
    durable = opened(path)
    durable.publisher.push_many = interrupt
    with pytest.raises(KeyboardInterrupt):
        durable.push_many(VALUES[500:700])  # announced together, and not begun
    kill(durable)
    for _ in range(2):
        durable = opened(path)
        assert durable.replaying == 200
        assert durable.push_many(VALUES[500:700])[:100].tolist() == released.tolist()
        kill(durable)


def test_a_run_without_values_leaves_a_state_to_go_on_from(tmp_path):
    path = tmp_path / "state.json"
    publish(path, VALUES[:200])
    durable = opened(path)
    assert durable.push_many(VALUES[:0]).size == 0
    kill(durable)
    publish(path, VALUES[200:300])


@pytest.mark.parametrize("low", [2**60, -(2**60)])
def test_large_values_are_not_mistaken_for_their_neighbours(tmp_path, low):
    path, values = tmp_path / "state.json", low + VALUES[:200]

    def stream():
        return DurablePublisher(path, ToPS(1.0, low + 50, low=low, warmup=20, horizon=256, block=8))

    durable = stream()
    durable.push_many(values[:100])
    released = durable.push_many(values[100:])
    kill(durable)
    other = values[100:].copy()
    other[3] += 1
    assert other.astype(float).tolist() == values[100:].astype(float).tolist()
    with stream() as durable:
        with pytest.raises(InvalidData, match="other values"):
            durable.push_many(other)
        with pytest.raises(InvalidData, match="below the public lower bound"):
            durable.push_many(np.array([low - 1]))
        assert durable.push_many(values[100:150]).size == 0
        assert durable.push_many(values[150:]).tolist() == released.tolist()


def test_refused_values_are_not_announced(tmp_path):
    with opened(tmp_path / "state.json") as durable:
        durable.push_many(VALUES[:200])
        with pytest.raises(InvalidData):
            durable.push_many(np.array([1.0, np.nan]))
        assert durable.push_many(VALUES[200:300]).tolist() == make().push_many(VALUES[:300])[100:].tolist()


def test_a_full_disk_announces_nothing_and_loses_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    path = tmp_path / "state.json"
    with opened(path) as durable:
        durable.publish(Batch(VALUES[:200]), lambda *_: None)
        with monkeypatch.context() as patch:
            patch.setattr("deniable.files.os.write", full)
            with pytest.raises(Failure, match="no space left"):
                durable.publish(Batch(VALUES[200:300]), lambda *_: None)
    with opened(path) as durable:
        assert (durable.replaying, durable.publisher.consumed) == (0, 200)


def test_a_state_file_is_used_by_one_process_at_a_time_and_read_by_nobody_else(tmp_path):
    path = tmp_path / "state.json"
    with opened(path), pytest.raises(Failure, match="another process"):
        StateFile(path)
    os.chmod(path, 0o644)  # noqa: PTH101
    with pytest.raises(InvalidData, match="read by others"):
        StateFile(path)
    os.chmod(path, 0o600)  # noqa: PTH101
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "version": 99}))
    with pytest.raises(InvalidData, match="version"):
        StateFile(path)
    path.write_text("{")
    with pytest.raises(InvalidData, match="damaged"):
        StateFile(path)


def test_other_settings_and_other_states_are_refused_and_the_file_is_free_again(tmp_path):
    path = tmp_path / "state.json"
    publish(path, VALUES[:200])
    with pytest.raises(InvalidParameter, match="not those of the state file"):
        opened(path, warmup=101)
    publish(path, VALUES[200:300])
    with StateFile(tmp_path / "server.json") as file:
        file.write(ToPLServer(1.0, 50).state(), read=0, waiting=[])
    with pytest.raises(InvalidParameter, match="of a kind this version does not know"):
        opened(tmp_path / "server.json")


def test_a_simulation_has_no_state_file(tmp_path):
    simulated = make(key=None, source=SeededSource(1), simulation=True)
    with pytest.raises(InvalidParameter, match="simulation"):
        DurablePublisher(tmp_path / "state.json", simulated)


def test_threads_take_turns(tmp_path):
    path = tmp_path / "state.json"
    with opened(path) as durable:
        durable.push_many(VALUES[:100])
        released = hammered(lambda number: durable.push_many(np.full(10, number)).size)
    assert released == [10] * 8
    with StateFile(path) as file:
        assert restore(file.record["state"]).consumed == 180
