"""Windows answered together: exact covariances, bands that hold everywhere at once, profiles that recur."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest

from deniable.errors import InvalidParameter, QueryRefused
from deniable.randomness import SeededSource
from deniable.streams import IndependentNoise, PublicThreshold, Released, ToPS
from deniable.streams.released import joint_windows, trend
from deniable.streams.structure.value_grid import Grid

HORIZON, BOUND = 4096, 100


def released(values, seed, **more):
    facts = {"warmup": 0, "threshold": PublicThreshold(BOUND), "horizon": HORIZON, "block": 32, "epsilon": 0.5, **more}
    publisher = ToPS(facts.pop("epsilon"), BOUND, source=SeededSource(seed), simulation=True, **facts)
    publisher.push_many(values)
    return publisher.released


@pytest.mark.parametrize("hierarchy", ["tree", "tent"])
def test_covariances_are_those_of_single_windows_and_of_their_unions(hierarchy):
    stream = released(np.full(3 * HORIZON, 5), 1, hierarchy=hierarchy)
    starts, stops = np.array([0, 1000, 1000, 4000, 0]), np.array([1000, 2000, 9000, 4100, 2000])
    joint = stream.sums(starts, stops, covariance=True)
    assert np.allclose(np.diag(joint.noise), joint.stderrs**2)
    assert np.allclose(joint.noise, joint.noise.T)
    # The first two windows make up the last.
    whole = joint.combine([1, 1, 0, 0, 0])
    assert whole.stderr == pytest.approx(joint.stderrs[4])
    assert joint.combine([1, 1, 0, 0, -1]).stderr == pytest.approx(0, abs=1e-3)
    assert np.linalg.eigvalsh(joint.covariance).min() > -1e-6 * joint.covariance.max()
    assert np.array_equal(joint.values, stream.sums(starts, stops).values)


def test_independent_noise_has_the_covariance_of_the_overlap():
    stream = Released(np.zeros(100), IndependentNoise(2.0), Grid(10), {"epsilon": 1.0})
    joint = stream.sums([0, 20, 60], [50, 70, 100], covariance=True)
    assert np.allclose(joint.noise, 2 * np.array([[50, 30, 0], [30, 50, 10], [0, 10, 40]]))
    assert np.allclose(joint.covariance, joint.noise)


def test_measured_differences_vary_as_their_covariance_says():
    """A mean square of 100 independent near-normal numbers lies in 1 ± 0.8 but for a chance below 10^-5."""
    scores = []
    for seed in range(100):
        stream = released(np.full(HORIZON, 5), seed)
        joint = stream.sums([0, 512], [512, 1024], covariance=True)
        change = joint.combine([-1, 1])
        scores.append((change.value / change.stderr) ** 2)
    assert abs(np.mean(scores) - 1) < 0.8
    naive = float(np.sum(joint.stderrs**2)) / change.stderr**2
    assert naive != pytest.approx(1, rel=0.05)  # adding up squares would be wrong


def streams():
    t, rng = np.arange(2 * HORIZON), np.random.default_rng(3)
    return {
        "constant": np.full(t.size, 30),
        "days": np.rint(50 + 40 * np.sin(2 * np.pi * t / 1024)).astype(np.int64),
        "steps": np.where(t // 1500 % 2, 80, 10),
        "bursts": np.where(rng.random(t.size) < 0.005, 100, rng.geometric(0.3, t.size)),
    }


@pytest.mark.parametrize("name", ["days", "bursts"])
def test_bands_hold_the_smoothed_stream_at_all_cells_at_once(name):
    """30 releases at 95 %: fewer than 23 hits have a chance below 10^-4 if the band is right."""
    values = streams()[name]
    prefix = np.concatenate(([0], np.cumsum(values)))
    hits, narrow = 0, 0
    for seed in range(30):
        curve = released(values, seed, block=64).trend(cell=256)
        means = (prefix[curve.stops] - prefix[curve.starts]) / (curve.stops - curve.starts)
        off = np.abs(curve.values - curve.weights @ means) / curve.stderrs
        hits += bool((off <= curve.reach).all())
        narrow += bool((off <= 1.96).all())
    assert hits >= 23
    assert narrow < 23 or name == "bursts"  # a band for each cell alone does not hold at all of them


def test_a_steady_stream_is_smoothed_and_a_changing_one_is_followed():
    steady, steps = (released(streams()[name], 1, epsilon=1.0).trend() for name in ("constant", "steps"))
    assert steady.bandwidth > 3 * max(steps.bandwidth, 32)
    assert (
        np.abs(steady.values - 30).mean()
        < np.abs(released(streams()["constant"], 1).trend(bandwidth=0).values - 30).mean()
    )
    forced = released(streams()["steps"], 1, epsilon=1.0).trend(bandwidth=2000)
    assert forced.smoothing.mean() > 5 * steady.smoothing.mean()  # cells lie far from a curve that is too smooth


def test_profiles_hold_the_means_of_phases_and_their_differences():
    """15 releases with blocks of half a phase: recurring errors do not average out over periods."""
    values = streams()["days"]
    truth = np.array([values[np.arange(values.size) % 1024 // 256 == phase].mean() for phase in range(4)])
    inside = together = 0
    for seed in range(15):
        profile = released(values, seed, block=128).profile(1024, phases=4)
        means = [
            mean.interval[0] <= value <= mean.interval[1] for mean, value in zip(profile.means, truth, strict=True)
        ]
        change = profile.difference(0, 2)
        inside += sum(means)
        together += change.interval[0] <= truth[0] - truth[2] <= change.interval[1]
    assert inside >= 48  # of 60, which four phases of a release share
    assert together >= 11


def test_phases_by_the_clock():
    values = np.tile([10, 20], HORIZON // 2)
    hours = np.datetime64("2024-01-03T12") + np.arange(values.size)  # a Wednesday, at noon
    stream = released(values, 1, block=1).with_timestamps(hours)
    week = stream.profile("week")
    assert week.labels == ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
    days = (hours.astype("datetime64[D]").astype(int) - 4) % 7
    assert week.counts.tolist() == np.bincount(days).tolist()
    published = np.array([stream.array()[days == day].mean() for day in range(7)])
    assert np.allclose(week.values, published)
    assert stream.profile("day", phases=4).labels == (0, 1, 2, 3)
    table = week.to_arrow()
    assert table.column_names == ["phase", "mean", "low", "high", "stderr", "smoothing", "count"]
    assert isinstance(week.to_pandas(), pd.DataFrame)
    assert isinstance(stream.trend().to_polars(), pl.DataFrame)
    assert table.schema.metadata == {b"deniable.simulation": b"true"}
    assert "timestamp" in stream.trend().to_arrow().column_names


def test_what_cannot_be_asked_is_refused(monkeypatch):
    stream = released(np.full(HORIZON, 5), 1)
    with pytest.raises(QueryRefused, match="no points in time"):
        stream.profile("week")
    with pytest.raises(InvalidParameter, match="period is unknown"):
        stream.profile("fortnight")
    with pytest.raises(InvalidParameter, match="phases"):
        stream.profile(100, phases=101)
    with pytest.raises(QueryRefused, match="4 phases"):
        stream.profile(100, phases=4).contrast([1, -1])
    with pytest.raises(QueryRefused, match="9 is not a phase"):
        stream.profile(100, phases=4).difference(0, 9)
    with pytest.raises(QueryRefused, match="2 windows"):
        stream.sums([0, 1], [5, 6], covariance=True).combine([1])
    with pytest.raises(QueryRefused, match="cells of 4,096 values"):
        stream.trend(cell=HORIZON)
    with pytest.raises(InvalidParameter, match="bandwidth"):
        stream.trend(bandwidth=-1.0)
    monkeypatch.setattr(joint_windows, "MOST_BORDERS", 3)
    with pytest.raises(QueryRefused, match="start and end at 4 positions"):
        stream.sums([0, 10], [5, 20], covariance=True)


def test_bands_have_the_tails_of_the_noise():
    """The largest of 100 independent Laplace variables: 1 − (1 − e^(−√2·x))^100 = 0.05 at x = 5.37."""
    once = [np.eye(100)]
    assert trend._reach(np.eye(100), once, 0.95, 1) == pytest.approx(-math.log(1 - 0.95**0.01) / math.sqrt(2), rel=0.06)
    assert trend._reach(np.eye(100), once, 0.95, 64) == pytest.approx(3.47, rel=0.03)
