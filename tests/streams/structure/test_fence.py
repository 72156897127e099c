"""A state is continued once: of several copies on one machine, whichever comes first publishes, and no other."""

import json
import signal
import subprocess
import sys

import numpy as np
import pytest

from deniable.errors import Failure, InvalidData, RandomnessFault
from deniable.randomness import SeededSource
from deniable.streams import Flat, KeyedPublisher, PersonStream, ToPS, restore
from deniable.streams.central.person_stream import stream_to_repeat
from deniable.streams.structure.state_values import seal

VALUES = np.arange(1000) % 37
CONTINUED = r"continued from here already.* Nothing was published\. Go on from the newest state"


def make(kind=ToPS, **more):
    return kind(1.0, 50, **{"warmup": 100, "horizon": 256, **more})


def test_the_first_of_two_copies_to_go_on_is_the_only_one():
    for kind in (ToPS, Flat):
        for first_goes_on in (True, False):
            first = make(kind)
            first.push_many(VALUES[:300])
            state = first.state()
            second = restore(state)
            winner, loser = (first, second) if first_goes_on else (second, first)
            assert winner.push_many(VALUES[300:310]).size == 10
            for push in (lambda loser=loser: loser.push(3), lambda loser=loser: loser.push_many([1, 2]), loser.flush):
                with pytest.raises(RandomnessFault, match=CONTINUED):
                    push()
            assert loser.published == 200
            with pytest.raises(RandomnessFault, match=CONTINUED):
                restore(state)


def test_a_state_of_which_nothing_was_continued_is_good_any_number_of_times():
    publisher = make()
    publisher.push_many(VALUES[:300])
    state = publisher.state()
    for _ in range(3):
        again = restore(json.loads(json.dumps(state)))
        again.check([1, 2])
        assert again.push_many(VALUES[:0]).size == 0
        with pytest.raises(InvalidData):
            again.push(-5)
        with pytest.raises(InvalidData):
            again.push_many([3, float("nan")])
        assert again.state() == state
    whole = publisher.push_many(VALUES[300:])
    assert whole.size == 700


def test_older_states_are_refused_after_newer_ones():
    publisher, states = make(), []
    for start in range(0, 500, 100):
        publisher.push_many(VALUES[start : start + 100])
        states.append(publisher.state())
    for state in states[:-1]:
        with pytest.raises(RandomnessFault, match=CONTINUED):
            restore(state)
        if state is not states[-2]:
            with pytest.raises(RandomnessFault, match=CONTINUED):
                stream_to_repeat(state)
    del publisher  # whether it lives makes no difference
    assert restore(states[-1]).push(5) is not None


def test_a_store_repeats_the_newest_state_and_one_run_at_a_time_does():
    publisher = make()
    publisher.push_many(VALUES[:300])
    state = publisher.state()
    released = publisher.push_many(VALUES[300:400])
    del publisher
    winner, loser = stream_to_repeat(state), stream_to_repeat(state)
    assert winner.push_many(VALUES[300:400]).tolist() == released.tolist()
    with pytest.raises(RandomnessFault, match=CONTINUED):
        loser.push(5)
    del winner  # interrupted again
    again = stream_to_repeat(state)
    assert again.push_many(VALUES[300:400]).tolist() == released.tolist()
    newer = again.state()
    again.push(5)
    with pytest.raises(RandomnessFault, match=CONTINUED):
        stream_to_repeat(state)
    assert stream_to_repeat(newer).published == 300


def test_nobody_goes_on_from_a_copy_of_an_interrupted_run():
    """Under the same noise, other values behind those that were repeated would show their difference."""
    for kind in (ToPS, Flat):
        publisher = make(kind)
        publisher.push_many(VALUES[:300])
        state = publisher.state()
        publisher.push_many(VALUES[300:400])
        del publisher  # interrupted: there is no newer state
        for opened in (restore, kind.restore):
            with pytest.raises(RandomnessFault, match=CONTINUED):
                opened(json.loads(json.dumps(state)))
            with pytest.raises(TypeError, match="replay"):
                opened(state, replay=True)
    persons = PersonStream(1.0, 50, most=4, warmup=100, horizon=256)
    state = persons.state()
    persons.push_many([1, 2], ["a", "b"])
    keyed = KeyedPublisher(1.0, 50, theta=40, horizon=64, block=4, public_keys=True)
    keyed_state = keyed.state()
    keyed.push_many(["north"], [5])
    for opened, interrupted in ((PersonStream.restore, state), (KeyedPublisher.restore, keyed_state)):
        with pytest.raises(RandomnessFault, match=CONTINUED):
            opened(interrupted)


def test_an_ended_stream_is_not_gone_on_with():
    publisher = make(block=8)
    publisher.push_many(VALUES[:303])
    state = publisher.state()
    assert publisher.flush() != 0
    with pytest.raises(RandomnessFault, match=CONTINUED):
        restore(state)
    assert restore(publisher.state()).flush() == 0


def test_simulations_go_on_from_wherever_they_like():
    source = {"source": SeededSource(1), "simulation": True}
    publisher = make(**source)
    publisher.push_many(VALUES[:300])
    state = publisher.state()
    outputs = [restore(state, source=SeededSource(1)).push_many(VALUES[300:]).tolist() for _ in range(2)]
    assert outputs == [publisher.push_many(VALUES[300:]).tolist()] * 2


ELSEWHERE = """
import json, os, signal, sys
from deniable.errors import RandomnessFault
from deniable.streams import restore
for state in json.load(sys.stdin):
    try:
        publisher = restore(state)
        print(publisher.push_many([1, 2, 3]).size, flush=True)
    except RandomnessFault as refusal:
        print("refused", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_other_processes_are_noticed_whichever_comes_first_and_however_they_end():
    first, second = make(), make()
    states = [publisher.state() for publisher in (first, second)]
    second.push(5)
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE], input=json.dumps(states), capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("0\nrefused\n", "")
    assert done.returncode == -signal.SIGKILL
    with pytest.raises(RandomnessFault, match=CONTINUED):
        first.push(5)
    assert second.push(5) is None


def test_two_machines_that_went_on_do_not_pass_for_each_other(tmp_path, monkeypatch):
    publisher = make()
    publisher.push_many(VALUES[:300])
    state = publisher.state()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    moved = restore(state)
    moved.push(5)
    returning = moved.state()
    monkeypatch.undo()
    assert restore(returning).published == 201  # nobody went on here meanwhile
    publisher.push(5)
    with pytest.raises(RandomnessFault, match=CONTINUED):
        restore(returning)


def test_without_a_home_notes_are_among_temporary_files_and_without_any_folder_nothing_goes_out(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr("deniable.private_folders.tempfile.gettempdir", lambda: str(tmp_path / "temporary"))
    publisher = make()
    state = publisher.state()
    publisher.push(5)
    (folder,) = (tmp_path / "temporary").iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    with pytest.raises(RandomnessFault, match=CONTINUED):
        restore(state)
    folder.chmod(0o777)  # anybody may write there
    with pytest.raises(Failure, match="Set XDG_STATE_HOME"):
        restore(state)


def test_a_damaged_note_stops_the_stream_and_its_name_cannot_lead_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    publisher = make()
    state = publisher.state()
    publisher.push(5)
    (note,) = (tmp_path / "deniable" / "streams").iterdir()
    assert note.name == state["generation"]["stream"]
    note.write_text("nonsense")
    with pytest.raises(Failure, match="is damaged, so who has gone on with this stream is not known"):
        restore(state)
    del state["seal"]
    for generation in (
        None,
        {},
        {"stream": "../x", "number": 0, "mark": ""},
        {**state["generation"], "number": "0"},
        [1],
    ):
        if generation != {}:
            with pytest.raises(InvalidData, match="damaged"):
                restore(seal({**state, "generation": generation}))
