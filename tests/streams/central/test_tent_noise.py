"""Noise of tents in residual form: least squares within half a unit, shifted exactly by data, one law for every run."""

import math
from collections import defaultdict
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import chi2
from scripted_source import ScriptedSource

from deniable.errors import InvalidParameter, RandomnessFault
from deniable.mechanisms import DiscreteLaplace
from deniable.randomness import SecureSource, SeededSource
from deniable.streams.central.named_publishers import ToPS, restore
from deniable.streams.central.perturber import Perturber
from deniable.streams.central.publisher import Publisher
from deniable.streams.central.settings import Settings
from deniable.streams.central.stream_forecast import Expectation, choose_plan
from deniable.streams.central.tent_noise import TentNoise
from deniable.streams.central.threshold import PublicThreshold
from deniable.streams.released.released_stream import Released
from deniable.streams.structure.tents import Tents
from deniable.streams.structure.value_grid import Grid
from effort import THOROUGH, repetitions


@pytest.mark.parametrize(("leaves", "fanout"), [(108, 3), (500, 4), (100, 10), (4, 2), (30, 5), (700, 9), (17, 16)])
def test_every_prefix_is_the_least_squares_estimate_within_half_a_unit(leaves, fanout):
    tents, scale = Tents(leaves, fanout), Fraction(500)
    noise = TentNoise(tents, scale, SeededSource(3))
    nodes = [noise._level(level, tents.nodes(level), scale * tents.weight(level)) for level in range(tents.height)]
    information, told = np.eye(tents.padded), nodes[0].astype(float)
    for level in range(1, tents.height):
        centres = (np.arange(tents.padded) + 0.5) / fanout**level
        hats = np.maximum(0, 1 - np.abs(centres - np.arange(tents.nodes(level))[:, None]))
        information += hats.T @ hats
        told += hats.T @ (nodes[level] / tents.weight(level))
    exact = np.cumsum(np.linalg.solve(information, told))[:leaves]
    published = noise.leaves(0, leaves)
    assert np.abs(np.cumsum(published) - exact).max() <= 0.5 + 1e-9
    again = [TentNoise(tents, scale, SeededSource(3)).leaves(a, min(a + 3, leaves)) for a in range(0, leaves, 3)]
    assert np.array_equal(np.concatenate(again), published)


def test_two_streams_that_differ_in_one_value_differ_there_and_nowhere_else():
    values = np.random.default_rng(1).integers(0, 50, 1000)
    other = values.copy()
    other[417] += 13
    settings = Perturber(0.1, 100, 300, fanout=7, hierarchy="tent")
    plain, changed = (settings.perturb(v, source=SeededSource(9), simulation=True) for v in (values, other))
    assert np.flatnonzero(changed - plain).tolist() == [417]
    assert changed[417] - plain[417] == 13


@pytest.mark.parametrize(("size", "large"), [(1, False), (2**52, True)])
def test_residuals_do_not_move_when_values_and_nodes_do_even_beyond_64_bits(size, large):
    """Shift a leaf's noise by −1 and the nodes above by −w: the leaf's output moves by −1 alone."""
    horizon, fanout, leaf = 100, 4, 37
    tents = Tents(horizon, fanout)
    seen = []

    def leaves(change):
        def script(name, _, draw):
            level, noise = name[1], draw() * size
            seen.append(int(np.abs(noise.astype(object)).max()) * tents.weight(level))
            if not change:
                return noise
            if level == 0:
                noise[leaf] -= change
                return noise
            knot, over = divmod(leaf, fanout**level)
            noise[knot] -= (tents.weight(level) - 2 * over - 1) * change
            noise[knot + 1] -= (2 * over + 1) * change
            return noise

        return TentNoise(tents, Fraction(100), ScriptedSource(1, script).stream("chunk", 0)).leaves(0, horizon)

    difference = leaves(0) - leaves(1)
    assert np.flatnonzero(difference).tolist() == [leaf]
    assert difference[leaf] == 1
    assert (max(seen) > 2**63) == large


def measured_ratio(settings, chunks):
    """Mean square noise of random windows over what the formula says, chunk by chunk."""
    leaves = settings.tree.leaves
    rng = np.random.default_rng(2)
    ratios = []
    for chunk in range(chunks):
        prefix = np.concatenate(([0], np.cumsum(settings.noise(SeededSource(5), chunk).leaves(0, leaves))))
        i, j = rng.integers(0, leaves + 1, (2, 500))
        ratios.append(np.square(prefix[j] - prefix[i]).mean())
    return np.array(ratios) / (settings.tree.mean_variance() * settings.node_variance)


def test_measured_variance_of_random_windows_agrees_with_the_formula():
    """Within 3 % in thorough runs, else within 5 %; with an ε that is 5 % or 10 % off it would be twice that."""
    tolerance = 0.03 if THOROUGH else 0.05
    ratios = measured_ratio(Perturber(0.05, 1, 1024, fanout=11, hierarchy="tent"), repetitions(1500, 4000))
    assert np.std(ratios) / math.sqrt(ratios.size) < tolerance / 4  # a false alarm in 16,000 seeds
    assert abs(ratios.mean() - 1) < tolerance


def test_prefixes_vary_as_the_closed_form_says_and_not_as_another():
    """Means of 300 independent squares, near χ² with heavier tails: within 1 ± 0.5 but for a chance below 10^-6."""
    settings = Perturber(0.5, 10, 60, fanout=4, hierarchy="tent")
    runs = 300
    seen = np.array([settings.noise(SeededSource(5), run).leaves(0, 60) for run in range(runs)])
    prefix = np.cumsum(seen, axis=1)
    at = np.arange(1, 61)
    ratio = np.square(prefix).mean(0) / (settings.tree.covariance(at, at) * settings.node_variance)
    assert chi2.sf(1.5 * runs, runs) < 1e-7
    assert np.abs(ratio - 1).max() < 0.5
    assert np.abs(ratio * (1 / 2.5) - 1).max() > 0.5  # ε off by a factor 1.6


def test_the_output_law_of_a_tiny_chunk_of_tents():
    """r = 4, b = 2, values 0 and 1: outputs of noise in a box, with their exact probabilities.

    A neighbour's noise is moved by (1; 1, 3) at the three nodes above the value, so the outputs of noise within a box
    are outputs of the neighbour's noise within a box that is larger at these nodes. Nothing is cut off.
    """
    epsilon = 2.0
    facts = {"block": 1, "fanout": 2, "measure_start": False, "hierarchy": "tent"}
    chosen = Settings("test", epsilon, Grid(1), warmup=0, horizon=4, threshold=PublicThreshold(1), **facts)
    tents = chosen.plan.tree
    assert (tents.height, [tents.nodes(level) for level in range(2)], tents.weight(1)) == (2, [4, 3], 4)
    laws = [DiscreteLaplace(epsilon / 2), DiscreteLaplace(epsilon / 2, 4)]

    def output_law(values, boxes):
        draws = list(product(*(range(low, high + 1) for low, high in boxes)))
        chances = [[float(laws[node >= 4].probability(noise)) for noise in range(-8, 9)] for node in range(7)]

        def script(name, *_):
            return np.array(draws[name[1]][:4] if name[3] == 0 else draws[name[1]][4:])

        publisher = Publisher(chosen, source=ScriptedSource(0, script), simulation=True)
        outputs = publisher.push_many(np.tile(values, len(draws))).reshape(-1, 4).tolist()
        result = defaultdict(float)
        for draw, output in zip(draws, outputs, strict=True):
            result[tuple(output)] += math.prod(chances[node][noise + 8] for node, noise in enumerate(draw))
        return result

    narrow = [(0, 1), (0, 1), (0, 1), (0, 0), (-1, 1), (-1, 1), (0, 0)]
    reach = {1: 1, 4: 1, 5: 3}  # leaf 1 counts once at the left knot of its cell and three times at the right one
    wide = [(low - reach.get(node, 0), high + reach.get(node, 0)) for node, (low, high) in enumerate(narrow)]
    used = 0.0
    for stream, neighbour in permutations([np.array([0, 1, 1, 0]), np.array([0, 0, 1, 0])]):
        mine, theirs = output_law(stream, narrow), output_law(neighbour, wide)
        assert all(chance <= math.exp(epsilon) * theirs[output] * (1 + 1e-12) for output, chance in mine.items())
        used = max(used, *(math.log(chance / theirs[output]) for output, chance in mine.items()))
    assert used > epsilon / 2  # with twice the ε the noise stands for, the test would fail


def test_a_state_goes_on_with_the_same_noise(tmp_path):
    facts = {"warmup": 100, "horizon": 1000, "block": 1, "source": SeededSource(4), "simulation": True}
    values = np.arange(2500) % 7
    whole = ToPS(0.5, 10, **facts)
    assert whole.plan.hierarchy == "tent"
    expected = whole.push_many(values)
    first = ToPS(0.5, 10, **facts)
    begun = first.push_many(values[:777])
    second = restore(first.state(), source=SeededSource(4))
    assert second.plan == whole.plan
    assert np.array_equal(np.concatenate((begun, second.push_many(values[777:]))), expected)
    path = tmp_path / "private.parquet"
    whole.released.save(path)
    again = Released.load(path)
    assert again.sum(100, 1234) == whole.released.sum(100, 1234)
    assert again.covariance == whole.released.covariance


def test_chunks_and_keys_have_noise_of_their_own():
    settings = Perturber(0.1, 100, 1000, hierarchy="tent")
    first, second = (settings.noise(SeededSource(1), chunk).leaves(0, 1000) for chunk in (0, 1))
    assert not np.array_equal(first, second)
    source = SecureSource()
    settings.noise(source, 0).leaves(0, 10)
    with pytest.raises(RandomnessFault, match="drawn before"):
        settings.noise(source, 0)


def test_publishers_use_tents_where_they_are_predicted_to_be_better():
    def kind(epsilon, horizon, **more):
        return choose_plan(epsilon, horizon, expectation=Expectation(), hierarchy="auto", **more).hierarchy

    assert kind(0.05, 2**20, block=1) == kind(1.0, 2**20) == "tent"
    assert kind(0.05, 2**20, block=2**16) == "tree"  # 16 blocks: one flat level
    assert kind(0.05, 2**20, block=1, bound=2**38) == "tree"  # noise of the top level would be too large
    assert kind(0.05, 2**24, block=1) == "tree"  # more leaves than fit in memory
    assert kind(0.05, 2**20, block=1, consistent=False) == "tree"
    assert ToPS(0.1, 10, paper=True).plan.hierarchy == "tree"
    with pytest.raises(InvalidParameter, match="theta is too large"):
        Perturber(0.01, 2**30, hierarchy="tent")
    with pytest.raises(InvalidParameter, match="hierarchy is unknown"):
        ToPS(0.1, 10, hierarchy="forest")
