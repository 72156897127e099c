"""Streams with keys on the command line: a threshold per key, windows of one key as they complete."""

import json

import numpy as np

from command_line import run
from deniable.stores import StoredStream

VALUES = np.random.default_rng(1).integers(0, 80, 900)
PUBLISH = (
    "stream",
    "publish",
    "--epsilon",
    "2",
    "--bound",
    "100",
    "--horizon",
    "512",
    "--block",
    "8",
    "--key",
    "region",
)


def test_every_key_learns_its_own_threshold_and_is_followed_by_itself(tmp_path):
    source, store = tmp_path / "in.csv", tmp_path / "store"
    rows = "".join(f"{'north' if index % 3 else 'south'},{value}\n" for index, value in enumerate(VALUES))
    source.write_text("region,value\n" + rows)
    own = ("--warmup", "50", "--theta-per-key", "--public-keys", "--store", store)
    for odd in (("--theta", "50"), ("--method", "flat"), ("--drift", "0.1")):
        refused = run(*PUBLISH, *own, *odd, source)
        assert (refused.returncode, store.exists()) == (2, False)
    done = run(*PUBLISH, *own, source)
    assert "900 values taken, 800 published" in done.stderr
    assert "θ = by key" in done.stderr
    assert {epoch.key for epoch in StoredStream(store).epochs} == {"north", "south"}
    lines = run("stream", "follow", store, "--key", "north", "--every", "200", "--stop", "--json").stdout.splitlines()
    windows = [json.loads(line) for line in lines]
    assert [(window["start"], window["stop"]) for window in windows] == [(0, 200), (200, 400)]
    assert windows[1]["sum"] == StoredStream(store).by_key()["north"].sum(200, 400).value
    assert run("stream", "follow", store, "--key", "nobody", "--stop").stdout == ""
    assert run("stream", "follow", store, "--values", "--stop").stdout.startswith("0 north ")
    assert run("stream", "follow", store, "--stop").returncode == 2
    assert "not published yet" not in run("stream", "doctor", store).stdout
