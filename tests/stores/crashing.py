"""Ends a process at the n-th call of the operating system, for every n, and reads what the runs before and after told.

`python crashing.py FOLDER SCENARIO,END,APART …` prints how many ends there are for each, or 0 after what went wrong. A
scenario is a stream in a folder, and runs in a copy of this process, so that imports are paid for once. It
reads where the last run ended, publishes the rest, and appends what it publishes to a file, by position. Whatever
call a run ends in, no position is ever published in two ways, and after one more run none is missing.

END says what a process leaves behind: "killed" what it wrote; "power cut" only what was fsynced, names and contents;
"names" all names, with the contents that were fsynced.
"""

import gc
import io
import json
import os
import shutil
import sys
import traceback
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from power_cuts import ForgetfulDisk

from deniable import Categorical, Collection, Ledger, Ordinal, Rounds, Table, addresses
from deniable.cli import main
from deniable.randomness import SeededSource
from deniable.stores import Batch, DurablePublisher, DurableServer, ReportBatch, StoredStream
from deniable.streams import KeyedPublisher, LocalPercentile, ToPLServer, ToPS, report_table
from deniable.streams.local.simulated_stream import first_codes, second_codes
from deniable.streams.local.stream_client import ToPLClient
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.tables.device.sent_reports import FileMemory, name_of_draw

CALLS = ("open", "write", "fsync", "replace", "close", "unlink", "truncate", "pwrite", "mkdir")
REAL = {name: getattr(os, name) for name in CALLS} | {"fsync": lambda _: None}  # the machine goes on running
ENDED = 9
OUTSIDE = ("told", "calls")  # what the world has heard is not on this disk
VALUES = np.arange(50) % 37
LIVE = VALUES[:40]
REGIONS = ["north", "south", "west"]
KEYS = [REGIONS[number * number % 3 if number > 9 else 0] for number in range(LIVE.size)]  # two of them appear later
PROTOCOL = ToPLProtocol(2.0, 500, grid=64)
RENEWED = ToPLProtocol(2.0, 500, grid=64, renewal=0.5)
SHOPS = [Collection(Table("users", age=Ordinal(1, 95)), epsilon=epsilon) for epsilon in (1.0, 2.0)]
KEPT = Rounds(2, mode="memoised", permanent=1.5, changes_are_public=True)
WEEKLY = Collection(Table("users", flag=Categorical("a", "b")), epsilon=0.5, name="weekly", rounds=KEPT)


def end_at(stop, folder, end):
    """Count calls, and end this process in call number `stop`; half of what it writes is written."""
    calls = [0]
    disk = None if end == "killed" else ForgetfulDisk(folder, OUTSIDE)

    def counted(name):
        def call(*arguments, **more):
            calls[0] += name != "mkdir"
            if stop and calls[0] == stop:
                if name == "write":
                    REAL["write"](arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
                for call in CALLS:
                    setattr(os, call, REAL[call])
                if disk is not None:
                    disk.cut(keep_names=end == "names")
                os._exit(ENDED)
            new = disk is not None and name in ("open", "mkdir") and not os.path.exists(arguments[0])  # noqa: PTH110
            result = REAL[name](*arguments, **more)
            if new and os.path.exists(arguments[0]):  # noqa: PTH110
                disk.made(arguments[0])
            if name == "fsync" and disk is not None:
                disk.synced(arguments[0])
            return result

        return call

    for name in CALLS:
        setattr(os, name, counted(name))
    return calls


def in_child(go_on, folder, stop=0, end="killed"):
    """How a run in a process of its own ended, and how many calls it made."""
    pid = os.fork()
    if pid == 0:
        calls = end_at(stop, folder, end)
        try:
            go_on(folder)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        (folder / "calls").write_text(str(calls[0]))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def tell(folder, position, texts):
    """Append whole lines; the last one may be cut by the end of the process."""
    lines = "".join(f"{position + offset} {text};\n" for offset, text in enumerate(texts))
    descriptor = os.open(folder / "told", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(descriptor, ("\n" + lines).encode())
    os.close(descriptor)


def told(folder):
    """Every text that was told for a position."""
    texts = {}
    path = folder / "told"
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.endswith(";"):
            position, _, text = line[:-1].partition(" ")
            texts.setdefault(int(position), set()).add(text)
    return texts


# Scenarios ------------------------------------------------------------------------------------------------------------


def settings(folder):
    """A publisher that every run could have made: its key is known, so that runs can be compared."""
    addresses.OF_GIVEN_KEYS.clear()
    return ToPS(1.0, 50, warmup=10, horizon=16, block=4, key=bytes(32), renew=False)


def keyed_settings(way):
    """One stream per key: under a public θ, learnt by all keys together, or by every key from its own values."""
    addresses.OF_GIVEN_KEYS.clear()
    return KeyedPublisher(1.0, 50, horizon=16, block=4, key=bytes(32), public_keys=True, **way)


def undisturbed(way=None):
    """What has to be published, whatever happens."""
    if way is None:
        return settings(None).push_many(LIVE).tolist()
    private = keyed_settings(way).push_many(KEYS, LIVE)
    return list(zip(private.key.tolist(), private.value.tolist(), strict=True))


def check_store(folder, way=None):
    """Whoever reads the store now sees a part of what has to be published, from the first value on."""
    if (folder / "store" / "settings.json").exists():
        stored = StoredStream(folder / "store").values(0)
        values = stored.values.tolist()
        keys = [] if stored.keys is None else stored.keys.tolist()  # none while nothing is published
        published = values if way is None else list(zip(keys, values, strict=True))
        assert published == undisturbed(way)[: len(values)], "other values"
        tell(folder, 0, values)


def publisher(folder, way=None):
    """Values through the class, with small segments and logs; sources begin again a little before where they were.

    With a `way` there is one stream per key, and some keys appear in the middle.
    """
    check_store(folder, way)
    ledger = Ledger(folder / "ledger.json", limit=8.0)
    size = 13 if (folder / "store").exists() else 17
    sizes = {"segment_values": 15, "log_bytes": 300}
    made = settings(folder) if way is None else keyed_settings(way)
    with DurablePublisher(folder / "store", made, ledger=ledger, **sizes) as durable:
        heard = max(told(folder), default=-1)
        assert durable.publisher.published > heard, "what was told is not known any more"
        start = max((durable.position or 0) - 5, 0)

        def deliver(values, timestamps):
            tell(folder, durable.publisher.published - values.size, values.tolist())

        for first in range(start, LIVE.size, size):
            values, keys = LIVE[first : first + size], None if way is None else KEYS[first : first + size]
            durable.publish(Batch(values, positions=np.arange(first, first + values.size), keys=keys), deliver)
    check_store(folder, way)
    assert len(ledger.entries) == 1, "the stream was charged twice"


def publish_command(folder):
    """The same values through the command and a pipe, from the beginning each time."""
    check_store(folder)
    text = "".join(f"{value}\n" for value in VALUES)
    given = ["--epsilon", "1", "--bound", "50", "--theta", "40", "--warmup", "2", "--block", "1", "--horizon", "64"]
    command(folder, 0, text, "publish", *given, "--skip-published", "--store", folder / "command", "-")
    tell(folder, 10**6, StoredStream(folder / "command").values(0).values.tolist())


def first_and_second(theta, run):
    """Reports of 40 users before a threshold is told, other ones in every run, and of 30 after."""
    early = first_codes(PROTOCOL, VALUES[:40].astype(float), SeededSource(run))
    late = (
        second_codes(PROTOCOL, VALUES[:30].astype(float), theta, SeededSource(2)) if theta else np.zeros(0, dtype=int)
    )
    for codes, announced, users in ((early, None, np.arange(40)), (late, theta, np.arange(100, 130))):
        for part in (slice(start, start + 20) for start in range(0, codes.size, 20)):
            yield report_table(PROTOCOL, codes[part], announced, users[part])


def server(folder):
    """Reports through the class, which saves after every batch; the threshold is told at position -1."""
    clock, run = iter(range(0, 10**6, 100)), len(list(folder.glob("run*")))
    (folder / f"run {run}").touch()
    made = ToPLServer(2.0, 500, first=40, grid=64, rule=LocalPercentile(0.9), keep=False)
    announce = lambda theta: tell(folder, -1, [theta])  # noqa: E731
    with DurableServer(folder / "state", made, tell=announce, clock=lambda: next(clock)) as durable:
        durable.announce()
        done = 0
        while True:
            batches = list(first_and_second(durable.server.theta, run))
            if done == len(batches):
                return
            batch, before = batches[done], sum(earlier.num_rows for earlier in batches[:done])
            done += 1
            if before < durable.read:
                continue  # an earlier run has read it, and saved that

            def deliver(estimates):
                tell(folder, durable.server.published - estimates.size, estimates.tolist())

            durable.publish(ReportBatch(batch), deliver)


def in_flight(folder):
    """Reports under each θ that this stream has announced so far, mixed, and between them first reports for the next.

    A device answers under any θ that it was told; each renewal is told at a negative position. Runs go on where the
    last one ended, so that reports under an earlier θ arrive after a crash, too.
    """
    clock = iter(range(0, 10**6, 100))
    made = ToPLServer(2.0, 500, theta=40.0, renewal=0.5, grid=64, rule=LocalPercentile(0.9), keep=False)
    with DurableServer(folder / "state", made, clock=lambda: next(clock)) as durable:
        announce(folder, durable)
        while durable.read < 90:
            if len(durable.server.thetas) <= durable.read // 30:
                durable.renew()
                announce(folder, durable)
            uids = np.arange(durable.read, durable.read + 15)
            thetas = np.array(durable.server.thetas)
            wire = np.zeros(
                15, dtype=[("version", ">u1"), ("phase", ">u1"), ("tag", ">u2"), ("y", ">u4"), ("theta", ">f8")]
            )
            second = uids % 3 > 0
            wire["version"], wire["phase"], wire["tag"] = 129, 1 + second, RENEWED.tag
            wire["y"], wire["theta"] = uids % 60, np.where(second, thetas[uids % thetas.size], 0.0)
            batch = pa.table({"uid": uids, "report": pa.array([row.tobytes() for row in wire], pa.binary(16))})

            def deliver(estimates):
                known = [durable.server.thetas[phase] for phase in durable.phases]
                texts = [f"{estimate} under {theta}" for estimate, theta in zip(estimates, known, strict=True)]
                tell(folder, durable.server.published - estimates.size, texts)

            durable.publish(ReportBatch(batch), deliver)
        assert durable.server.heard + durable.server.published == 90


def announce(folder, durable):
    """Tell every θ that is known, at positions of their own."""
    durable.announce()
    for position, theta in enumerate(durable.server.thetas):
        tell(folder, -1 - position, [theta])


def collect_command(folder):
    """Reports under a public threshold through the command and a pipe."""
    state = saved(folder)
    start = 0 if state is None else state["published"]
    settings = ["--epsilon", "2", "--bound", "500", "--theta", "40", "--state", folder / "state"]
    command(folder, start, "".join(SENT[start:]), "collect", *settings)


def charged_clients(folder):
    """Answers to two collections, a stream and two rounds. What was told is charged, once, whenever a run ended."""
    ledger, memory = Ledger(folder / "ledger.json", limit=8.0), folder / "memory.json"
    charged = {entry.charge.key for entry in ledger.entries}
    assert {key for keys in told(folder).values() for key in keys} <= charged, "an answer without its charge"
    for number, shop in enumerate(SHOPS):
        shop.client(memory, ledger=ledger).report("users", {"age": 31})
        tell(folder, number, [name_of_draw(FileMemory(memory), f"{shop.sha256}:users")])
    stream = ToPLClient(1.0, 500, memory, ledger=ledger)
    stream.report(7)
    tell(folder, 2, [name_of_draw(FileMemory(memory), f"topl:{stream.protocol.sha256}")])
    for number in (1, 2):
        WEEKLY.client(memory, ledger=ledger).report("users", {"flag": "a"}, number)
        tell(folder, 2 + number, [name_of_draw(FileMemory(memory), f"{WEEKLY.sha256}:users:{number}")])
    assert (ledger.spent, len(ledger.entries)) == (4 + WEEKLY.spends.epsilon, 5)


SENT = [ToPLClient(2.0, 500).report(value, 40.0).to_json(uid) + "\n" for uid, value in enumerate(VALUES.tolist())]


def saved(folder):
    """What the state file holds."""
    path = folder / "state"
    return json.loads(path.read_text())["state"] if path.exists() else None


class Pipe(io.BytesIO):
    """A part arrives at a time."""

    def read1(self, size=-1):
        return super().read1(min(size, -(-len(self.getbuffer()) // 3)))


class Told(io.TextIOBase):
    """What the command prints, as texts of positions."""

    def __init__(self, folder, position):
        self._folder, self._position = folder, position

    def write(self, text):
        if not isinstance(text, str):
            raise TypeError
        lines = [line for line in text.splitlines() if line and not line.startswith("theta")]
        tell(self._folder, self._position, lines)
        self._position += len(lines)
        return len(text)


def command(folder, position, text, *arguments):
    """`deniable stream …` in this process."""
    before, words = (sys.stdin, sys.stdout, sys.stderr), io.StringIO()
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(Pipe(text.encode())), Told(folder, position), words
    try:
        main.run(["stream", *map(str, arguments)])
    except SystemExit as stopped:
        if stopped.code:
            raise RuntimeError(words.getvalue()) from None
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


KEYED = {
    "keyed": {"theta": 40},
    "keyed, shared warm-up": {"warmup": 10},
    "keyed, own warm-ups": {"warmup": 6, "per_key": True},
}
SCENARIOS = {name: partial(publisher, way=way) for name, way in KEYED.items()}
SCENARIOS |= {"publisher": publisher, "publish": publish_command, "server": server, "collect": collect_command} | {
    "in flight": in_flight,
    "ledger": charged_clients,
}


def fresh(folder):
    """An empty folder, and no notes about earlier streams."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    os.environ["XDG_STATE_HOME"] = str(folder / "notes")
    return folder


def try_every_end(go_on, folder, end, apart):
    """Every end of a run, or some that are so many calls `apart`, a run after it, and what both told."""
    go_on(fresh(folder))  # what is imported and planned here need not be in every child
    gc.freeze()
    assert in_child(go_on, fresh(folder)) == 0
    expected = sorted(told(folder))
    calls = int((folder / "calls").read_text())
    assert calls > 30, calls
    for stop in range(1, calls + 1, apart):
        ended = in_child(go_on, fresh(folder), stop, end)
        assert ended == ENDED, (stop, ended)
        assert in_child(go_on, folder) == 0, stop
        texts = told(folder)
        assert all(len(ways) == 1 for ways in texts.values()), (stop, texts)
        assert sorted(texts) == expected, (stop, sorted(texts))
    return calls


def in_a_copy(folder, scenario, end, apart):
    """Print how many ends a scenario has, in a copy of this process that has run nothing yet."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            calls = try_every_end(SCENARIOS[scenario], folder, end, int(apart))
        except BaseException:
            traceback.print_exc()
            calls = 0
        print(calls, flush=True)
        os._exit(0)
    os.waitpid(pid, 0)


if __name__ == "__main__":
    for number, named in enumerate(sys.argv[2:]):
        in_a_copy(Path(sys.argv[1]) / str(number), *named.rsplit(",", 2))
