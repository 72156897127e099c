"""The audit confirms honest mechanisms and catches a broken one."""

import numpy as np
import pytest
from scipy.stats import binom

from deniable.audit import CASES, CONFIDENCE, Case, _lower_epsilon, audit, percentile_case, worst_ratio
from deniable.errors import InvalidParameter
from deniable.mechanisms import (
    CauchyNoise,
    DiscreteLaplace,
    GaussianNoise,
    LaplaceNoise,
    PAKThreshold,
    RandomizedResponse,
    SmoothPercentile,
)
from deniable.randomness import SeededSource


def broken_response(claimed, real):
    """Randomized response that claims one ε and uses another."""
    mechanism = RandomizedResponse(real, 4)

    def draw(world, runs, source):
        return mechanism.perturb(np.full(runs, world), source=source, simulation=True)

    return Case("broken", claimed, worst_ratio([(mechanism.law(0), mechanism.law(1))]), 4, draw)


def careless_laplace(epsilon):
    """Noise for sensitivity one, on values that may differ by two."""
    mechanism = DiscreteLaplace(epsilon)

    def draw(world, runs, source):
        return np.clip(mechanism.perturb(np.full(runs, 2 * world), source=source, simulation=True), -1, 3) + 1

    return Case("careless", epsilon, 0.0, 5, draw)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_honest_mechanisms_hold(name, epsilon):
    case = CASES[name](epsilon)
    slow = case.most_trials < 10**9 or name in ("noisy-max", "permute-and-flip")
    finding = audit(case, 1_000 if slow else 40_000, SeededSource(61))
    assert not finding.broken
    assert finding.bound <= case.exact + 1e-9 <= epsilon + 2e-9
    if not slow:
        assert finding.bound > 0.8 * epsilon  # the attack is a good one


class Quieter:
    """A percentile mechanism with a fraction of the noise it should have."""

    def __init__(self, mechanism, factor):
        self._mechanism, self._factor = mechanism, factor

    def __getattr__(self, name):
        return getattr(self._mechanism, name)

    def scale(self, values):
        return self._mechanism.scale(values) / self._factor

    def perturb(self, values, source, simulation):
        return self.centre(values) + self.noise.draw(self.scale(values), source.randbelow)


@pytest.mark.parametrize(
    "mechanism",
    [
        SmoothPercentile(1.0, 1000, 0.5, delta=1e-3, noise=LaplaceNoise(), cap=False),
        SmoothPercentile(1.0, 1000, 0.5, delta=1e-3, noise=GaussianNoise(), cap=False),
        SmoothPercentile(1.0, 1000, 0.5, delta=0.0, noise=CauchyNoise(), cap=False),
        PAKThreshold(1.0, 1000, 0.5, delta=1e-3, cap=False),
    ],
    ids=["laplace", "gaussian", "cauchy", "pak"],
)
def test_percentiles_with_too_little_noise_are_caught(mechanism):
    # The published constants leave a large reserve, so it takes a thirtieth of the noise to be sure.
    case = percentile_case("quiet", Quieter(mechanism, 30))
    assert case.exact > 3
    assert audit(case, 4_000, SeededSource(65)).broken


@pytest.mark.parametrize("case", [broken_response(1.0, 1.2), careless_laplace(1.0)], ids=["epsilon", "sensitivity"])
def test_a_broken_mechanism_is_caught(case):
    finding = audit(case, 40_000, SeededSource(62))
    assert finding.broken
    assert finding.bound > 1.05


def test_an_event_that_never_happens_in_one_world_is_no_excuse():
    def draw(world, runs, source):
        return source.below(2, runs) + world

    assert audit(Case("disjoint", 1.0, 1.0, 3, draw), 10_000, SeededSource(63)).bound > 5


def test_a_mechanism_that_ignores_its_input_shows_nothing():
    assert audit(Case("blind", 1.0, 0.0, 4, lambda w, n, s: s.below(4, n)), 10_000, SeededSource(64)).bound < 0.05


def test_the_bound_has_its_confidence():
    # Exactly, without sampling: the chance that the bound exceeds the true ε, over all pairs of counts.
    runs, p, q = 60, 0.6, 0.3
    likely, unlikely = binom.pmf(np.arange(runs + 1), runs, p), binom.pmf(np.arange(runs + 1), runs, q)
    wrong = sum(
        likely[a] * unlikely[b]
        for a in range(runs + 1)
        for b in range(runs + 1)
        if _lower_epsilon(a, b, runs, 0.0) > np.log(p / q)
    )
    assert 0 < wrong < 1 - CONFIDENCE


def test_delta_is_taken_off_before_ratios():
    assert _lower_epsilon(50, 0, 1000, 0.0) > _lower_epsilon(50, 0, 1000, 0.01) > 0
    assert _lower_epsilon(50, 0, 1000, 0.1) == 0
    leaky = [(0.5, 0.25, 0.25), (0.25, 0.5, 0.25)]
    assert worst_ratio([leaky]) == pytest.approx(np.log(2))
    assert worst_ratio([leaky], delta=0.25) == pytest.approx(0, abs=1e-9)
    assert worst_ratio([((1.0, 0.0), (0.5, 0.5))]) == np.inf


def test_few_trials_are_refused():
    with pytest.raises(InvalidParameter, match="trials"):
        audit(CASES["hybrid"](1.0), 10, SeededSource(1))
