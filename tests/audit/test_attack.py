"""The attack keeps its false-alarm rate, reaches most of ε on honest targets, and says what it would have noticed."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from deniable.audit import Output, Target, audit, events, noticed_factor, targets, worst_ratio
from deniable.audit.attack import expected_factor
from deniable.audit.events import lower_epsilon
from deniable.audit.mechanism_targets import percentile_target, value_target
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
from deniable.randomness import SecureSource, SeededSource
from effort import repetitions

EVERYTHING = targets()
QUICK = [name for name in EVERYTHING if EVERYTHING[name](2.0).most >= 10**6]
SAMPLES = {"device": 240, "warm-up": 120, "one value": 600, "bulk": 6_000, "published": 600, "singly": 600, "topl": 500}


def samples_of(name):
    return next(
        (few for part, few in SAMPLES.items() if part in name), repetitions(20_000, 40_000) if name in QUICK else 400
    )


@pytest.mark.parametrize("name", EVERYTHING)
def test_honest_targets_are_not_refuted(name):
    # False alarms: 16 events of 1e-9 for each target; seeded besides.
    finding = audit(EVERYTHING[name](2.0), samples_of(name), SeededSource(61).stream(name))
    assert not finding.refuted, str(finding)
    assert finding.bound <= 2.0
    assert "not refuted at ε ≥" in str(finding)
    assert "hold" not in str(finding)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_attack_reaches_most_of_epsilon(name, epsilon):
    finding = audit(EVERYTHING[name](epsilon), 100_000, SeededSource(62).stream(name))
    assert 0.65 * epsilon < finding.bound <= epsilon


def test_a_secure_source_will_do():
    for name in ("grid, device, lowest or highest", "topl, first report", "flat, published", "hybrid, one value"):
        assert not audit(EVERYTHING[name](2.0), 200, SecureSource().stream(name)).refuted


class Quieter:
    """A percentile mechanism with a fraction of the noise it should have."""

    def __init__(self, mechanism, factor):
        self._mechanism, self._factor = mechanism, factor

    def __getattr__(self, name):
        return getattr(self._mechanism, name)

    def perturb(self, values, source, simulation):
        return self.centre(values) + self.noise.draw(self.scale(values) / self._factor, source.randbelow)


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
    # The published constants leave a large reserve, so it takes a hundredth of the noise to be sure.
    assert audit(percentile_target("quiet", Quieter(mechanism, 100)), 600, SeededSource(65)).refuted


def spending(claimed, real):
    """Randomized response that claims one ε and uses another."""
    honest = value_target("spending", RandomizedResponse(real, 4), (0, 1))
    return Target("spending", claimed, honest.draw)


def test_a_small_overspend_is_caught_and_half_of_it_is_not():
    assert audit(spending(1.0, 1.2), 100_000, SeededSource(62)).bound > 1.0
    assert not audit(spending(1.0, 1.02), 100_000, SeededSource(62)).refuted


def test_noise_for_less_than_the_sensitivity_is_caught():
    assert audit(value_target("careless", DiscreteLaplace(1.0), (0, 2)), 20_000, SeededSource(62)).refuted


def test_power_is_what_a_stand_in_shows():
    def make(epsilon):
        return spending(epsilon, epsilon)

    def power(samples):
        finding = audit(make(1.0), samples, SeededSource(66))
        return noticed_factor(finding, make, samples, SeededSource(67))

    weak, strong = power(4_000), power(100_000)
    assert 1 < strong.noticed < 1.25 < weak.noticed < 2
    assert strong.noticed == pytest.approx(expected_factor(strong), rel=0.2)
    assert f"would have noticed {strong.noticed:.3g} ε" in str(strong)


def test_no_power_is_admitted():
    blind = Target("blind", 1.0, lambda worlds, source: Output({"y": source.below(4, worlds.size)}))
    finding = noticed_factor(audit(blind, 4_000, SeededSource(64)), lambda _: blind, 4_000, SeededSource(64))
    assert finding.bound < 0.05
    assert math.isinf(finding.noticed)
    assert "is not known" in str(finding)


def test_an_event_that_one_input_never_leads_to_is_seen():
    shifted = Target("shifted", 3.0, lambda worlds, source: Output({"y": source.below(2, worlds.size) + worlds}))
    assert audit(shifted, 10_000, SeededSource(63)).bound > 3


def test_facts_may_not_depend_on_data_at_all():
    def draw(worlds, source):
        biased = source.below(100, worlds.size) < 50 + 5 * worlds
        return Output({"y": np.zeros(worlds.size)}, {"view": biased.astype(int)})

    finding = audit(Target("biased", 1.0, draw), 40_000, SeededSource(63))
    assert finding.refuted  # although ε = 1 would allow far more of an answer
    assert "view" in str(finding)


def test_the_bound_has_its_false_alarm_rate(monkeypatch):
    # Exactly, without sampling: the chance that the bound exceeds the true ε, over all numbers of right guesses.
    monkeypatch.setattr(events, "FALSE_ALARM", 0.01)
    for total, epsilon in ((60, 1.0), (400, 0.3), (1000, 2.5)):
        right = np.arange(total + 1)
        chances = binom.pmf(right, total, 1 / (1 + math.exp(-epsilon)))
        wrong = chances[lower_epsilon(right, total - right, total) > epsilon].sum()
        assert 0 < wrong <= 0.01


def test_the_bound_has_its_false_alarm_rate_with_delta(monkeypatch):
    # Worst case: δ of the runs give their input away, the rest is at the limit, whichever input it has.
    monkeypatch.setattr(events, "FALSE_ALARM", 0.05)
    runs, delta, epsilon, rare = 2_000, 0.02, 1.0, 0.1
    random = np.random.default_rng(1)
    right = random.binomial(runs, math.exp(epsilon) * rare + delta, 20_000)
    wrong = random.binomial(runs - right, rare / (1 - math.exp(epsilon) * rare - delta))
    alarms = np.mean(lower_epsilon(right, wrong, runs, delta) > epsilon)
    assert alarms < 0.05


def test_delta_is_taken_off():
    assert lower_epsilon(500, 0, 10_000) > lower_epsilon(500, 0, 10_000, 0.01) > 0
    assert lower_epsilon(500, 0, 10_000, 0.1) == 0
    leaky = [(0.5, 0.25, 0.25), (0.25, 0.5, 0.25)]
    assert worst_ratio([leaky]) == pytest.approx(np.log(2))
    assert worst_ratio([leaky], delta=0.25) == pytest.approx(0, abs=1e-9)
    assert worst_ratio([((1.0, 0.0), (0.5, 0.5))]) == np.inf


def test_an_attack_stops_in_time():
    finding = audit(EVERYTHING["hybrid, one value"](1.0), 10**8, SeededSource(1), seconds=1e-6)
    assert finding.samples == EVERYTHING["hybrid, one value"](1.0).batch


def test_few_samples_are_refused():
    with pytest.raises(InvalidParameter, match="samples"):
        audit(EVERYTHING["hybrid"](1.0), 10, SeededSource(1))
