"""`deniable stream profile`, and the curve of `deniable stream plot`."""

import json

import numpy as np

import deniable as dn
from command_line import run


def test_profiles_and_trends_of_a_release(tmp_path):
    tops = dn.streams.ToPS(1.0, 100, warmup=100, horizon=512, block=16, source=dn.SeededSource(1), simulation=True)
    tops.push_many(np.tile([5, 6, 7, 8], 512))
    path = tmp_path / "private.parquet"
    tops.released.save(path)
    done = run("stream", "profile", path, "--period", "512", "--phases", "2", "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, [row["phase"] for row in rows]) == (0, [0, 1])
    assert [row["mean"] for row in rows] == [mean.value for mean in tops.released.profile(512, phases=2).means]
    shown = run("stream", "profile", path, "--period", "512", "--phases", "2")
    assert "95% interval" in shown.stdout
    refused = run("stream", "profile", path, "--period", "week")
    assert refused.returncode != 0
    assert "no points in time" in refused.stderr
    picture = tmp_path / "trend.png"
    assert run("stream", "plot", path, "-o", picture, "--trend").returncode == 0
    assert picture.stat().st_size > 1000
