"""Noise for smooth sensitivity: the laws, the samplers, and the inequality that makes them admissible."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, cauchy, laplace, norm

from agreement import agrees as follows
from deniable.arrays import Floats
from deniable.errors import InvalidParameter
from deniable.exact import exp_between
from deniable.mechanisms.admissible_noise import AdmissibleNoise, CauchyNoise, GaussianNoise, LaplaceNoise
from effort import NOTICED, repetitions

LAPLACE, GAUSSIAN, CAUCHY = LaplaceNoise(), GaussianNoise(), CauchyNoise()
NOISES: list[AdmissibleNoise] = [LAPLACE, GAUSSIAN, CAUCHY]
SCALES = [Fraction(1, 350), Fraction(1, 7), Fraction(2, 3), Fraction(1), Fraction(5, 2), Fraction(317, 10)]


def log_law(noise: AdmissibleNoise, k: Floats, scale: float) -> Floats:
    """Logarithm of the law, written down a second time, for whole arrays and without underflow."""
    if isinstance(noise, LaplaceNoise):
        return math.log(math.tanh(0.5 / scale)) - np.abs(k) / scale
    if isinstance(noise, GaussianNoise):
        n = np.arange(1, 60 + int(12 * min(scale, 100.0)))
        total = 1 + 2 * np.exp(-0.5 * (n / scale) ** 2).sum() if scale < 100 else scale * math.sqrt(2 * math.pi)
        return -0.5 * (k / scale) ** 2 - math.log(total)
    return math.log(math.tanh(math.pi * scale) / (math.pi * scale)) - np.log1p((k / scale) ** 2)


def leak(noise: AdmissibleNoise, epsilon: float, shift: int, scale: float, other_scale: float) -> float:
    """The least δ at which X_scale and shift + X_other are (ε, δ)-close, one way, with the cut-off tail on top.

    For Cauchy noise, by how much the loss exceeds ε.
    """
    if isinstance(noise, CauchyNoise):
        steps = np.unique(np.round(np.geomspace(1, 1e4, 4000) * max(scale, other_scale, 1.0)))
        near = np.arange(-2000.0, 2001.0)
        k = np.concatenate([-steps, near, steps, near + shift, steps + shift])
        loss = log_law(noise, k, scale) - log_law(noise, k - shift, other_scale)
        return float(loss.max()) - epsilon
    half = int(45 * scale) + 10
    k = np.arange(-half, half + 1, dtype=np.float64)
    first, second = log_law(noise, k, scale), log_law(noise, k - shift, other_scale)
    inside = np.sum(np.exp(first) * -np.expm1(np.minimum(0.0, epsilon + second - first)))
    return float(inside) + 2 * noise.tail(half + 1, Fraction(scale))


def worst_leak(noise: AdmissibleNoise, epsilon: float, a: float, b: float, smaller: float) -> float:
    """The worst over both directions, dilations up to e^b and shifts up to a·(the smaller scale)."""
    largest = math.floor(a * smaller * (1 + 1e-12))
    worst = -math.inf
    for shift in {0, 1, largest // 2, largest - 1, largest}:
        if 0 <= shift <= largest:
            for part in (0.0, 0.5, 1.0):
                wider = smaller * math.exp(b * part)
                worst = max(worst, leak(noise, epsilon, shift, smaller, wider))
                worst = max(worst, leak(noise, epsilon, shift, wider, smaller))
    return worst


# Laws -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("noise", NOISES)
def test_a_law_sums_to_one_and_is_the_formula(noise: AdmissibleNoise, scale: Fraction) -> None:
    half = 60 + int(40 * scale)
    middle = [noise.pmf(k, scale) for k in range(-half, half + 1)]
    assert math.fsum(middle) + 2 * noise.tail(half + 1, scale) == pytest.approx(1, abs=1e-12)
    formula = np.exp(log_law(noise, np.arange(-half, half + 1, dtype=np.float64), float(scale)))
    np.testing.assert_allclose(middle, formula, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("scale", [*SCALES, Fraction(64), Fraction(999), Fraction(1001), Fraction(123456)])
@pytest.mark.parametrize("noise", NOISES)
def test_a_tail_drops_by_the_law_and_mirrors(noise: AdmissibleNoise, scale: Fraction) -> None:
    for k in {1, 2, 5, 63, 64, 65, int(scale), int(3 * scale) + 1, int(8 * scale) + 1}:
        step = noise.tail(k, scale) - noise.tail(k + 1, scale)
        assert step == pytest.approx(noise.pmf(k, scale), rel=1e-6, abs=1e-15)
        assert noise.tail(1 - k, scale) + noise.tail(k, scale) == pytest.approx(1, abs=1e-12)
    assert noise.tail(0, scale) - noise.tail(1, scale) == pytest.approx(noise.pmf(0, scale), rel=1e-9)


@pytest.mark.parametrize("noise", NOISES)
def test_far_away_nothing_overflows(noise: AdmissibleNoise) -> None:
    for scale in (Fraction(1, 350), Fraction(10**9)):
        assert noise.pmf(10**400, scale) < 1e-250
        assert 0 <= noise.tail(10**400, scale) < 1e-100
        assert noise.tail(-(10**400), scale) == pytest.approx(1)


def test_variances() -> None:
    for scale in SCALES:
        for noise in (LAPLACE, GAUSSIAN):
            half = 60 + int(45 * scale)
            direct = math.fsum(k * k * noise.pmf(k, scale) for k in range(-half, half + 1))
            assert noise.variance(scale) == pytest.approx(direct, rel=1e-9, abs=1e-300)
        assert GAUSSIAN.variance(scale) <= float(scale) ** 2 * (1 + 1e-12)
        assert CAUCHY.variance(scale) == math.inf


@given(st.floats(1e-6, 1 - 1e-6))
def test_quantiles_invert_the_continuous_laws(probability: float) -> None:
    for noise, law in ((LAPLACE, laplace), (GAUSSIAN, norm), (CAUCHY, cauchy)):
        assert law.cdf(noise.quantile(probability)) == pytest.approx(probability, rel=1e-6)


# Samplers -------------------------------------------------------------------------------------------------------------


def quick(seed: int) -> Callable[[int], int]:
    """A seeded `randbelow` for many single draws: what is tested is what becomes of them."""
    return random.Random(seed).randrange  # noqa: S311 - nobody is protected by it


def agrees(counts: Counter[int], noise: AdmissibleNoise, scale: Fraction) -> bool:
    """Whether every count is plausible; of a correct sampler it fails with probability ≤ 1e-9, whatever the seed."""
    n, width = counts.total(), max(1, int(scale) // 2)
    # Cells of half a scale, as far out as the tails expect 20 draws, and the two tails.
    edge = next(k for k in range(width, 10**5, width) if noise.tail(k, scale) * n < 20)
    starts = range(-edge, edge, width)
    cells = [sum(counts[k] for k in range(start, start + width)) for start in starts]
    law = [math.fsum(noise.pmf(k, scale) for k in range(start, start + width)) for start in starts]
    cells += [sum(counts[k] for k in counts if k < -edge), sum(counts[k] for k in counts if k >= edge)]
    law += [noise.tail(edge + 1, scale), noise.tail(edge, scale)]
    tail, seen = 1e-9 / (2 * len(law)), np.array(cells)
    return bool(np.all((binom.ppf(tail, n, law) <= seen) & (seen <= binom.isf(tail, n, law))))


@pytest.mark.parametrize(
    ("noise", "scale"),
    [
        (LAPLACE, Fraction(7, 3)),
        (GAUSSIAN, Fraction(1, 2)),
        (GAUSSIAN, Fraction(101, 10)),
        (CAUCHY, Fraction(1, 2)),
        (CAUCHY, Fraction(7, 3)),
        (CAUCHY, Fraction(101, 10)),
    ],
)
def test_draws_follow_the_law_and_the_test_has_teeth(noise: AdmissibleNoise, scale: Fraction) -> None:
    randbelow = quick(7)
    counts = Counter(noise.draw(scale, randbelow) for _ in range(repetitions(10_000, 20_000)))
    assert agrees(counts, noise, scale)
    # A scale that is wrong by a quarter is noticed; so is zero counted twice, which is the likely slip.
    assert not agrees(counts, noise, scale * Fraction(5, 4))
    assert not agrees(counts, noise, scale * Fraction(4, 5))
    if scale < 3:
        counts[0] *= 2
        assert not agrees(counts, noise, scale)


@pytest.mark.parametrize(("noise", "draws"), [(LAPLACE, 80_000), (GAUSSIAN, 60_000), (CAUCHY, 250_000)])
def test_an_epsilon_that_is_off_is_noticed(noise: AdmissibleNoise, draws: int) -> None:
    # The scale is inversely proportional to ε, so a wrong ε shows as a wrong scale.
    scale, reach, randbelow = Fraction(2), 8, quick(8)
    drawn = np.array([noise.draw(scale, randbelow) for _ in range(repetitions(draws // 4, draws))])
    outcomes = np.clip(drawn, -reach, reach) + reach

    def law(width: Fraction) -> list[float]:
        end = noise.tail(reach, width)
        return [end, *(noise.pmf(k, width) for k in range(-reach + 1, reach)), end]

    assert follows(outcomes, law(scale))
    wrong = 1 + Fraction(NOTICED).limit_denominator(20)
    assert not follows(outcomes, law(scale * wrong))
    assert not follows(outcomes, law(scale / wrong))


# Constants ------------------------------------------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(st.floats(1e-6, 1.0), st.floats(1e-30, 0.5))
def test_up_to_one_the_constants_are_those_of_nrs07_rounded_down(epsilon: float, delta: float) -> None:
    log = math.log(2 / delta)
    expected = [
        (LAPLACE.stretch(epsilon, delta), epsilon / 2),
        (LAPLACE.smoothing(epsilon, delta), epsilon / (2 * log)),
        (GAUSSIAN.stretch(epsilon, delta), epsilon / (5 * math.sqrt(2 * log))),
        (GAUSSIAN.smoothing(epsilon, delta), epsilon / (4 * (1 + log))),
        (CAUCHY.stretch(epsilon, 0), epsilon / 6),
        (CAUCHY.smoothing(epsilon, 0), epsilon / 6),
    ]
    for constant, formula in expected:
        assert float(constant) == pytest.approx(formula, rel=1e-12)
    # e^(ε/2b) ≥ 2/δ says without a logarithm that b was not rounded up.
    assert exp_between(Fraction(epsilon) / (2 * LAPLACE.smoothing(epsilon, delta)))[1] >= 2 / Fraction(delta)
    root = Fraction(epsilon) / (5 * GAUSSIAN.stretch(epsilon, delta))
    assert exp_between(root**2 / 2)[1] >= 2 / Fraction(delta)
    assert exp_between(Fraction(epsilon) / (4 * GAUSSIAN.smoothing(epsilon, delta)) - 1)[1] >= 2 / Fraction(delta)


@pytest.mark.parametrize("noise", NOISES)
def test_more_epsilon_never_means_smaller_constants(noise: AdmissibleNoise) -> None:
    for delta in [0] if noise == CAUCHY else [0.5, 1e-3, 1e-12]:
        for constant in (noise.stretch, noise.smoothing):
            grown = [constant(epsilon, delta) for epsilon in (1e-9, 0.1, 0.99, 1, 1.01, 2, 10, 100, 700)]
            assert grown == sorted(grown)
            assert grown[0] > 0


@pytest.mark.parametrize("epsilon", [0.05, 0.5, 1.0, 1.7, 2.5, 5.0, 20.0])
@pytest.mark.parametrize(
    ("noise", "delta"), [(n, d) for n in (LAPLACE, GAUSSIAN) for d in (0.5, 1e-3, 1e-9)] + [(CAUCHY, 0.0)]
)
def test_the_constants_are_admissible_on_the_integers(noise: AdmissibleNoise, delta: float, epsilon: float) -> None:
    a, b = float(noise.stretch(epsilon, delta)), float(noise.smoothing(epsilon, delta))
    for sensitivity in (1.0, 1.37, 2.0, 10.0, 100.0):
        if sensitivity / a <= 2_000:
            assert worst_leak(noise, epsilon, a, b, sensitivity / a) <= delta * (1 + 1e-9)


def test_cauchy_needs_no_smallest_scale() -> None:
    for epsilon in (0.5, 2.0, 10.0):
        for smaller in (1e-3, 0.05, 0.3):
            assert worst_leak(CAUCHY, epsilon, epsilon / 6, epsilon / 6, smaller) <= 0


Constants = Callable[[float, float], tuple[float, float]]


def nrs07_laplace(epsilon: float, delta: float) -> tuple[float, float]:
    return epsilon / 2, epsilon / (2 * math.log(2 / delta))


def nrs07_gaussian(epsilon: float, delta: float) -> tuple[float, float]:
    log = math.log(2 / delta)
    return epsilon / (5 * math.sqrt(2 * log)), epsilon / (4 * (1 + log))


def wcz21_gaussian(epsilon: float, delta: float) -> tuple[float, float]:
    return epsilon / math.sqrt(-math.log(delta)), epsilon / (-2 * math.log(delta))


@pytest.mark.parametrize(
    ("noise", "constants", "epsilon", "delta", "factor"),
    [
        (GAUSSIAN, wcz21_gaussian, 0.1, 1e-6, 10),
        (GAUSSIAN, wcz21_gaussian, 1.0, 1e-6, 100),
        (LAPLACE, nrs07_laplace, 20.0, 1e-6, 5),
        (LAPLACE, nrs07_laplace, 50.0, 1e-6, 1000),
        (GAUSSIAN, nrs07_gaussian, 50.0, 1e-6, 20),
    ],
    ids=["printed-small", "printed-one", "nrs07-laplace-20", "nrs07-laplace-50", "nrs07-gaussian-50"],
)
def test_printed_constants_that_leak_more_than_delta(
    noise: AdmissibleNoise, constants: Constants, epsilon: float, delta: float, factor: float
) -> None:
    """[WCZ21]'s at every ε, [NRS07]'s beyond the ε < 1 that it speaks of; ours hold at the same place."""
    a, b = constants(epsilon, delta)
    assert worst_leak(noise, epsilon, a, b, 20 / a) > factor * delta
    ours = float(noise.stretch(epsilon, delta)), float(noise.smoothing(epsilon, delta))
    assert worst_leak(noise, epsilon, *ours, 20 / ours[0]) <= delta


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("delta", [-0.1, 0.6, 1, math.nan, True, "0.1", None])
def test_an_impossible_delta_is_refused(noise: AdmissibleNoise, delta: object) -> None:
    with pytest.raises(InvalidParameter, match="delta must be"):
        noise.check_delta(delta)  # type: ignore[arg-type]


def test_each_noise_has_its_own_kind_of_delta() -> None:
    with pytest.raises(InvalidParameter, match="delta must be above 0"):
        LAPLACE.stretch(1.0, 0)
    with pytest.raises(InvalidParameter, match="delta must be above 0"):
        GAUSSIAN.smoothing(1.0, 0)
    with pytest.raises(InvalidParameter, match="delta must be 0"):
        CAUCHY.stretch(1.0, 1e-9)


@pytest.mark.parametrize("noise", NOISES)
def test_other_impossible_settings_are_refused(noise: AdmissibleNoise) -> None:
    delta = 0.0 if noise == CAUCHY else 1e-6
    for epsilon in (0.0, -1.0, math.nan, math.inf, True):
        with pytest.raises(InvalidParameter, match="epsilon"):
            noise.stretch(epsilon, delta)
        with pytest.raises(InvalidParameter, match="epsilon"):
            noise.smoothing(epsilon, delta)
    for probability in (0.0, 1.0, math.nan):
        with pytest.raises(InvalidParameter, match="probability"):
            noise.quantile(probability)
