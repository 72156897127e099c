"""Locked files: one holder at a time whatever name they use, and old or new content after a crash, never neither."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import deniable
from deniable.errors import Failure
from deniable.files import InUse, Lock, LockedFile

HOLDING = """
import os, sys, time
from deniable.files import LockedFile
held = LockedFile(sys.argv[1])
child = os.fork()
if child:
    print(child, flush=True)
time.sleep(600)
"""


def test_a_lock_dies_with_its_process(tmp_path):
    path = tmp_path / "state.json"
    process = subprocess.Popen([sys.executable, "-c", HOLDING, str(path)], stdout=subprocess.PIPE)
    child = int(process.stdout.readline())
    try:
        with pytest.raises(InUse, match=r"'state\.json' is in use .* Nothing was read or written\. Wait"):
            LockedFile(path)
        process.kill()
        process.wait()
        assert (tmp_path / "state.json.lock").exists()
        with LockedFile(path, wait_s=60.0) as file:  # the fork lets go, perhaps a moment later
            file.write(b"new")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        os.kill(child, signal.SIGKILL)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["state.json"]


def test_links_lead_to_one_lock_and_one_file(tmp_path):
    (tmp_path / "real").mkdir()
    real, link, folder = tmp_path / "real" / "state.json", tmp_path / "link.json", tmp_path / "folder"
    link.symlink_to(real)
    folder.symlink_to(real.parent)
    names = (real, link, folder / "state.json", tmp_path / "real" / ".." / "link.json")
    for number, name in enumerate(names):
        with LockedFile(name) as file:
            assert file.read() == (str(number - 1).encode() if number else None)
            for other in names:
                with pytest.raises(InUse):
                    LockedFile(other)
            file.write(str(number).encode())
        assert link.is_symlink()
        assert real.read_text() == str(number)


def test_a_link_to_itself_is_refused(tmp_path):
    (tmp_path / "state.json").symlink_to("state.json")
    with pytest.raises(Failure, match=r"the file 'state\.json' is a link to itself\. Nothing was read or written"):
        LockedFile(tmp_path / "state.json")


def test_what_has_a_second_name_or_is_not_a_file_is_refused(tmp_path):
    (tmp_path / "one").write_text("old")
    os.link(tmp_path / "one", tmp_path / "two")
    with LockedFile(tmp_path / "one", "the memory", cost="Nothing was sent") as file:
        with pytest.raises(Failure, match=r"the memory 'one' has 2 names .* Nothing was sent\. Remove the others"):
            file.read()
        (tmp_path / "two").unlink()
        assert file.read() == b"old"
    with LockedFile(tmp_path) as file, pytest.raises(Failure, match="not a regular file"):
        file.read()


def test_one_thread_at_a_time_and_a_second_one_waits(tmp_path):
    path, inside, most = tmp_path / "count", [], []

    def add():
        for _ in range(20):
            with LockedFile(path, wait_s=60.0) as file:
                inside.append(1)
                most.append(len(inside))
                file.write(str(int(file.read() or 0) + 1).encode(), durable=False)
                inside.pop()

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (path.read_text(), max(most)) == ("80", 1)


def test_nothing_is_written_without_the_lock(tmp_path):
    with LockedFile(tmp_path / "state") as file:
        file.write(b"old")
        (tmp_path / "state.lock").unlink()
        with pytest.raises(Failure, match=r"the lock 'state\.lock' was removed"):
            file.write(b"new")
        with LockedFile(tmp_path / "state") as other:
            assert other.read() == b"old"
    file.close()
    with pytest.raises(Failure, match="was removed"):
        file.write(b"new")


def test_a_lock_needs_a_folder_and_a_file_is_private(tmp_path):
    with pytest.raises(Failure, match=r"the folder 'out' cannot be written \(no such file or directory\)"):
        Lock(tmp_path / "nowhere" / "out", "the folder")
    with LockedFile(tmp_path / "state") as file:
        file.write(b"secret")
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o600


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with LockedFile(tmp_path / "state") as file:
        file.write(b"old")
        monkeypatch.setattr("deniable.files.os.write", full)
        with pytest.raises(Failure, match="no space left"):
            file.write(b"new")
        monkeypatch.undo()
        assert file.read() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["state"]


# Every call of the operating system is counted in a first run; then one run for each ends in the middle of it.
CRASHING = """
import os, sys
import deniable.files
from deniable.files import LockedFile

path, wait = sys.argv[1], None
NAMES = ("open", "write", "fsync", "replace", "close", "unlink")
real = {name: getattr(os, name) for name in NAMES}

def replacing(stop):
    calls = [0]
    def counted(name):
        def call(*arguments, **more):
            calls[0] += 1
            if calls[0] == stop:
                if name == "write":
                    real["write"](arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                os._exit(9)
            return real[name](*arguments, **more)
        return call
    for name in NAMES:
        setattr(os, name, counted(name))
    with LockedFile(path) as file:
        file.write(b"N" * 1000)
    return calls[0]

def child(stop):
    pid = os.fork()
    if pid == 0:
        calls = replacing(stop)
        os._exit(calls)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def begin():
    with LockedFile(path) as file:
        file.write(b"O" * 1000)

begin()
calls = child(0)
assert calls >= 9, calls
seen = []
for stop in range(1, calls + 1):
    begin()
    assert child(stop) == 9
    with LockedFile(path) as file:
        content = file.read()
        assert content in (b"O" * 1000, b"N" * 1000), (stop, content)
        seen.append(content[:1].decode())
        file.write(b"next")
        assert file.read() == b"next"
print("".join(seen))
"""


def test_a_crash_at_any_call_leaves_the_old_or_the_new_content(tmp_path):
    source = str(Path(deniable.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", CRASHING, str(tmp_path / "state")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert done.stderr == ""
    seen = done.stdout.strip()
    assert set(seen) == {"O", "N"}
    assert seen == "".join(sorted(seen, reverse=True))  # old up to some call, new from there on
