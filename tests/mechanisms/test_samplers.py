"""Samplers against laws: each agrees with its own law and is rejected by that of an ε that is off.

By 5 % in `make test-all`; 10 % are noticed with a quarter of the draws.
"""

import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from agreement import agrees
from deniable.mechanisms import (
    DiscreteLaplace,
    Hybrid,
    LocalHashing,
    NoisyMax,
    PermuteAndFlip,
    Piecewise,
    RandomizedResponse,
    SquareWave,
    StochasticRounding,
)
from deniable.mechanisms.hashing import bucket_array
from deniable.randomness import SeededSource
from effort import NOTICED, repetitions

MANY, SOME, CHOICES = repetitions(150_000, 600_000), repetitions(40_000, 150_000), repetitions(7_500, 30_000)
# Single draws are slow: where there are more than two outcomes, a wrong share of a larger ε shows in fewer of them.
FEW = {"randomized response", "local hashing", "piecewise", "hybrid", "square wave", "discrete laplace"}


def relative(mechanism, seeds, buckets, value):
    """Where each bucket lies from the true one: 0 is the true bucket, whatever the seed."""
    return (buckets - bucket_array(seeds, np.full(seeds.size, value), mechanism.g)) % mechanism.g


def hashed_many(mechanism, value, source):
    reports = mechanism.perturb(np.full(MANY, value), source=source, simulation=True)
    return relative(mechanism, reports.seeds, reports.buckets, value)


def quick(source):
    """A seeded `randbelow` for millions of single draws: what is tested is what becomes of them."""
    return random.Random(source.randbelow(2**64)).randrange  # noqa: S311 - nobody is protected by it


def draws(mechanism):
    return SOME // 3 if mechanism.epsilon > 1 else SOME


def hashed_one(mechanism, value, source):
    randbelow = quick(source)
    drawn = [mechanism.perturb_one(value, randbelow=randbelow) for _ in range(draws(mechanism))]
    seeds, buckets = np.array(drawn).T
    return relative(mechanism, seeds.astype(np.uint32), buckets, value)


def many(mechanism, value, source):
    return mechanism.perturb(np.full(MANY, value), source=source, simulation=True)


def singly(mechanism, value, source):
    randbelow = quick(source)
    return np.array([mechanism.perturb_one(value, randbelow=randbelow) for _ in range(draws(mechanism))])


def clamp(draw):
    return lambda mechanism, value, source: np.clip(draw(mechanism, value, source), -6, 6) + 6


def repeated(mechanism, scores, source):
    return np.array([mechanism.perturb(scores, source=source, simulation=True) for _ in range(CHOICES)])


def repeated_one(mechanism, scores, source):
    randbelow = quick(source)
    return np.array([mechanism.perturb_one(scores, randbelow=randbelow) for _ in range(CHOICES)])


def plain_law(mechanism, value):
    return mechanism.law(value)


def hashed_law(mechanism, value):
    return mechanism.response.law(0)


def clamped_law(mechanism, value):
    return mechanism.law(value, -6, 6)


CASES = {
    "randomized response": (RandomizedResponse(1.0, 5), 3, plain_law, many, singly),
    "local hashing": (LocalHashing(1.0, 40, buckets=4), 17, hashed_law, hashed_many, hashed_one),
    "binary hashing": (LocalHashing.binary(1.0, 40), 17, hashed_law, hashed_many, hashed_one),
    "stochastic rounding": (StochasticRounding(1.0), 1.0, plain_law, many, singly),
    "piecewise": (Piecewise(1.0, steps=8), 0.9, plain_law, many, singly),
    "hybrid": (Hybrid(1.0, steps=8), 0.9, plain_law, many, singly),
    "square wave": (SquareWave(1.0, cells=8), 0.3, plain_law, many, singly),
    "discrete laplace": (DiscreteLaplace(1.0), 0, clamped_law, clamp(many), clamp(singly)),
    "noisy max": (NoisyMax(1.0), [0, 0, 0, 0, 6], plain_law, repeated, repeated_one),
    "permute and flip": (PermuteAndFlip(1.0), [0, 0, 0, 0, 6], plain_law, repeated, repeated_one),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("path", ["arrays", "one value"])
def test_reports_follow_the_law_and_the_test_has_teeth(name, path):
    mechanism, value, law, arrays, single = CASES[name]
    if path == "one value" and name in FEW:
        mechanism = replace(mechanism, epsilon=3.0)
    outcomes = (arrays if path == "arrays" else single)(mechanism, value, SeededSource(21))
    assert agrees(outcomes, law(mechanism, value))
    for wrong in (1 + NOTICED, 1 - NOTICED):
        assert not agrees(outcomes, law(replace(mechanism, epsilon=wrong * mechanism.epsilon), value))


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
@pytest.mark.parametrize("kind", [partial(Piecewise, steps=8), partial(SquareWave, cells=8)])
def test_the_grids_above_do_not_change_with_an_epsilon_that_is_slightly_off(kind, epsilon):
    # Otherwise the law would be rejected for its shape, and the ratio would go untested.
    width_changes = kind(epsilon)
    for wrong in (1 + NOTICED, 1 - NOTICED):
        assert replace(width_changes, epsilon=wrong * epsilon).window.width == width_changes.window.width


LOCAL = {
    "randomized response": (RandomizedResponse(1.0, 5), [1, 2, 3, 4, 0] * 20, 4),
    "local hashing": (LocalHashing(1.0, 40), list(range(40)) * 2, 39),
    "stochastic rounding": (StochasticRounding(1.0), np.linspace(-1, 1, 100), 0.77),
    "piecewise": (Piecewise(1.0), np.linspace(-1, 1, 100), 0.77),
    "hybrid": (Hybrid(2.0), np.linspace(-1, 1, 100), 0.77),
    "square wave": (SquareWave(1.0), np.linspace(0, 1, 100), 0.77),
    "discrete laplace": (DiscreteLaplace(1.0), list(range(100)), 1_000),
}


def columns(reports):
    """The reports as a table with one row per user."""
    if hasattr(reports, "seeds"):
        return np.column_stack((reports.seeds.astype(np.int64), reports.buckets))
    return reports.reshape(-1, 1)


@pytest.mark.parametrize("name", LOCAL)
def test_one_users_report_never_depends_on_anothers_value(name):
    mechanism, values, other = LOCAL[name]
    changed_any = False
    for user in (0, 7, 60):
        changed = np.array(values)
        changed[user] = other
        for seed in range(12):
            before = columns(mechanism.perturb(np.array(values), source=SeededSource(seed), simulation=True))
            after = columns(mechanism.perturb(changed, source=SeededSource(seed), simulation=True))
            different = (before != after).any(axis=1)
            assert not np.delete(different, user).any()
            changed_any |= bool(different[user])
    assert changed_any  # the user's own report does depend on her value
