"""Noise in residual form: least squares within half a unit, shift-equivariant exactly, recomputed from its address."""

from fractions import Fraction

import numpy as np
import pytest

from deniable.errors import InvalidParameter, RandomnessFault, SimulationOnly
from deniable.randomness import SecureSource, SeededSource
from deniable.streams.central import perturber
from deniable.streams.central.perturber import ChunkNoise, Perturber
from deniable.streams.structure import hierarchy
from deniable.streams.structure.hierarchy import Hierarchy

TREES = [(16, 2), (27, 3), (20, 3), (64, 4), (50, 16), (5, 7), (1000, 10)]


def least_squares(tree, noise):
    count, fanout = tree.padded, tree.fanout
    levels = [noise._level(level, 0, tree.nodes(level)) for level in range(tree.height)]
    sums = [np.kron(np.eye(count // fanout**level), np.ones((1, fanout**level))) for level in range(tree.height)]
    information = sum(a.T @ a for a in sums)
    return np.linalg.solve(information, sum(a.T @ z for a, z in zip(sums, levels, strict=True)))


@pytest.mark.parametrize("segment", [1 << 20, 16, 4])
@pytest.mark.parametrize(("leaves", "fanout"), TREES)
def test_every_prefix_is_the_least_squares_estimate_within_half_a_unit(leaves, fanout, segment, monkeypatch):
    monkeypatch.setattr(perturber, "GROUP_LEAVES", segment)
    tree = Hierarchy(leaves, fanout)
    noise = ChunkNoise(tree, Fraction(50), SeededSource(3))
    exact = np.cumsum(least_squares(tree, noise)[:leaves])
    published = noise.leaves(0, leaves)
    assert np.abs(np.cumsum(published) - exact).max() <= 0.5 + 1e-9
    pieces = [
        ChunkNoise(tree, Fraction(50), SeededSource(3)).leaves(a, min(a + 3, leaves)) for a in range(0, leaves, 3)
    ]
    assert np.array_equal(np.concatenate(pieces), published)


@pytest.mark.parametrize(("consistent", "most"), [(False, 1 << 24), (True, 8)])
@pytest.mark.parametrize(("leaves", "fanout"), [(27, 3), (30, 2), (60, 4), (16, 4)])
def test_noise_varies_as_the_closed_form_says(leaves, fanout, consistent, most, monkeypatch):
    for module in (hierarchy, perturber):
        monkeypatch.setattr(module, "GROUP_LEAVES", 16)
    monkeypatch.setattr(hierarchy, "CONSISTENT_LEAVES", most)
    settings = Perturber(epsilon=0.5, theta=10, horizon=leaves, fanout=fanout, consistent=consistent)
    runs = 400
    seen = np.array([settings.noise(SeededSource(5), run).leaves(0, leaves) for run in range(runs)])
    prefix = np.concatenate((np.zeros((runs, 1)), np.cumsum(seen, axis=1)), axis=1)
    i, j = (places.ravel() for places in np.meshgrid(np.arange(leaves + 1), np.arange(leaves + 1), indexing="ij"))
    expected = settings.tree.covariance(i, j) * settings.node_variance
    own = settings.tree.covariance(i, i) * settings.node_variance
    other = settings.tree.covariance(j, j) * settings.node_variance
    measured = (prefix.T @ prefix / runs).ravel()
    # Each product has a standard deviation of at most 3 times the product of deviations (kurtosis of Laplace sums).
    assert (np.abs(measured - expected) <= 5 * 3 * np.sqrt(own * other / runs) + 1e-9).all()
    assert np.abs(measured - expected).mean() < 0.1 * own.mean()


def test_two_streams_that_differ_in_one_value_differ_there_and_nowhere_else():
    values = np.random.default_rng(1).integers(0, 50, 1000)
    other = values.copy()
    other[417] += 13
    for settings in (Perturber(0.1, 100, 300), Perturber(0.1, 100, 300, fanout=2, consistent=False)):
        plain, changed = (settings.perturb(v, source=SeededSource(9), simulation=True) for v in (values, other))
        assert np.flatnonzero(changed - plain).tolist() == [417]
        assert changed[417] - plain[417] == 13


@pytest.mark.parametrize("horizon", [1000, 10**6 // 64])
def test_any_horizon_publishes_every_value(horizon):
    values = np.ones(2 * horizon + 7, dtype=np.int64)
    settings = Perturber(float("inf"), 5, horizon, block=3)
    sums = settings.perturb(values, simulation=True)
    assert sums.sum() == values.size
    assert sums.size == 2 * -(-horizon // 3) + 3


def test_chunks_and_keys_have_noise_of_their_own():
    settings = Perturber(0.1, 100, 1000)
    first, second = (settings.noise(SeededSource(1), chunk).leaves(0, 1000) for chunk in (0, 1))
    assert not np.array_equal(first, second)
    key = SecureSource.new_key()
    again = [settings.noise(SecureSource(key).recomputable(again=True), 0).leaves(0, 1000) for _ in range(2)]
    assert np.array_equal(*again)


def test_one_secure_source_adds_other_noise_at_every_use():
    settings, source = Perturber(0.1, 100, 1000), SecureSource()
    values = np.arange(1000) % 50
    first, second = (settings.perturb(values, source=source) for _ in range(2))
    assert np.mean(first == second) < 0.5
    settings.noise(source, 0).leaves(0, 10)
    with pytest.raises(RandomnessFault, match="drawn before"):
        settings.noise(source, 0)


def test_a_seeded_source_needs_the_word_simulation():
    with pytest.raises(SimulationOnly):
        Perturber(0.1, 100).perturb([1, 2], source=SeededSource(1))
    with pytest.raises(InvalidParameter, match="theta"):
        Perturber(0.1, 0)


def test_a_horizon_of_a_billion_starts_at_once_and_agrees_with_its_address():
    noise = Perturber(1.0, 10, 2**30).noise(SeededSource(1), 0)
    start = 999 * 2**20
    assert np.array_equal(noise.leaves(start + 5, start + 10), noise.leaves(start, start + 10)[5:])


@pytest.mark.parametrize(("horizon", "block"), [(50, 1), (50, 7), (50, 50), (64, 8)])
def test_one_value_at_a_time_or_in_pieces_gives_the_same_sums(horizon, block):
    values = np.random.default_rng(1).integers(-5, 200, 333)
    settings = Perturber(0.5, 100, horizon, block)
    whole = settings.perturb(values, source=SeededSource(4), simulation=True)
    clamped = np.clip(values, 0, 100)
    exact = [
        clamped[start : min(start + block, chunk + horizon)].sum()
        for chunk in range(0, 333, horizon)
        for start in range(chunk, min(chunk + horizon, 333), block)
    ]
    assert Perturber(float("inf"), 100, horizon, block).perturb(values, simulation=True).tolist() == exact
    single = settings.begin(source=SeededSource(4), simulation=True)
    outputs = [out for value in values if (out := single.push(int(value))) is not None]
    assert [*outputs, *single.flush()] == whole.tolist()
    pieces = settings.begin(source=SeededSource(4), simulation=True)
    parts = [pieces.push_many(values[start : start + 13]) for start in range(0, 333, 13)]
    assert [*np.concatenate(parts), *pieces.flush()] == whole.tolist()
    assert pieces.flush().size == 0
