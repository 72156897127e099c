"""Private percentiles by smooth sensitivity: the bound is exact and smooth, and the outputs are (ε, δ)-close."""

from __future__ import annotations

import heapq
import math
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations_with_replacement, pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deniable.arrays import Floats
from deniable.errors import InvalidData, InvalidParameter, SimulationOnly
from deniable.exact import exp_between
from deniable.mechanisms.admissible_noise import AdmissibleNoise, CauchyNoise, GaussianNoise, LaplaceNoise
from deniable.mechanisms.pak_threshold import PAKThreshold
from deniable.mechanisms.smooth_sensitivity import SmoothPercentile, _rate, _weights
from deniable.randomness import SeededSource

Values = tuple[int, ...]
LAPLACE, GAUSSIAN, CAUCHY = LaplaceNoise(), GaussianNoise(), CauchyNoise()


def datasets(size: int, bound: int) -> list[Values]:
    """All datasets, up to order."""
    return list(combinations_with_replacement(range(bound + 1), size))


def neighbours(values: Values, bound: int) -> Iterator[Values]:
    """All datasets with one value replaced, up to order."""
    for index in range(len(values)):
        for value in range(bound + 1):
            yield tuple(sorted((*values[:index], value, *values[index + 1 :])))


def brute_force(values: Values, rank: int, bound: int, weights: list[Fraction], *, last_step: int = 1) -> Fraction:
    """The definition, term by term: max over k of e_k · max_{t = 0..k+last_step} [V(P+t) − V(P+t−k−1)]."""

    def value_at(index: int) -> int:
        return 0 if index < 1 else bound if index > len(values) else values[index - 1]

    return max(
        weight * (value_at(rank + t) - value_at(rank + t - k - 1))
        for k, weight in enumerate(weights)
        for t in range(k + last_step + 1)
    )


def exact_weights(mechanism: SmoothPercentile, count: int) -> list[Fraction]:
    """e_0, e_1, …, as the class describes them and not cut where they stop to matter."""
    rate = Fraction(_rate(mechanism.smoothing), 2**64)
    weights = [2**96]
    for _ in range(count):
        weights.append(math.ceil(weights[-1] * rate))
    return [Fraction(weight, 2**96) for weight in weights]


# The bound ------------------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(
    st.data(),
    st.integers(1, 40),
    st.sampled_from([1, 4, 30, 1000, 2**40]),
    st.sampled_from([0.01, 0.1, 1.0, 5.0]),
    st.sampled_from([0.01, 0.3, 0.5, 0.99575, 1.0]),
)
def test_branch_and_bound_is_the_definition(
    data: st.DataObject, size: int, bound: int, epsilon: float, percentile: float
) -> None:
    values = tuple(sorted(data.draw(st.lists(st.integers(0, bound), min_size=size, max_size=size))))
    mechanism = SmoothPercentile(epsilon, bound, percentile, delta=0.1)
    rank = mechanism.rank(size)
    expected = brute_force(values, rank, bound, exact_weights(mechanism, size + 2))
    assert mechanism.sensitivity(values) == max(expected, 1)
    approximate = [Fraction(math.exp(-float(mechanism.smoothing) * k)) for k in range(size + 3)]
    close = max(1.0, float(brute_force(values, rank, bound, approximate)))
    assert float(mechanism.sensitivity(values)) == pytest.approx(close, rel=1e-9)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.05, 1e-6), (1.0, 1e-3), (3.0, 0.1)])
@pytest.mark.parametrize("percentile", [0.3, 0.6, 1.0])
@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN, CAUCHY])
def test_the_bound_covers_every_move_and_is_smooth(
    noise: AdmissibleNoise, percentile: float, epsilon: float, delta: float
) -> None:
    bound, size = 5, 4
    mechanism = SmoothPercentile(epsilon, bound, percentile, 0.0 if noise == CAUCHY else delta, noise)
    rate = Fraction(_rate(mechanism.smoothing), 2**64)
    smooth_below, smooth_above = exp_between(mechanism.smoothing)
    assert 1 / rate <= smooth_below <= smooth_above
    bounds = {values: mechanism.sensitivity(values) for values in datasets(size, bound)}
    centres = {values: mechanism.centre(values) for values in bounds}
    for values, sensitivity in bounds.items():
        for other in set(neighbours(values, bound)):
            moved = abs(centres[values] - centres[other])
            assert moved <= min(sensitivity, bounds[other])
            assert sensitivity <= bounds[other] / rate
            assert sensitivity <= bounds[other] * smooth_above


@settings(max_examples=100, deadline=None)
@given(st.fractions(Fraction(1, 10**6), 20), st.integers(1, 2**53))
def test_weights_fall_by_at_most_e_to_the_b(smoothing: Fraction, bound: int) -> None:
    rate = _rate(smoothing)
    assert Fraction(rate, 2**64) >= exp_between(-smoothing)[0]
    weights = _weights(rate, bound, 300)
    for weight, following in pairwise(weights):
        assert following * 2**64 >= weight * rate


def test_one_step_less_is_no_bound() -> None:
    """With t up to k instead of k + 1, a public implementation misses that the largest value can grow."""
    mechanism = SmoothPercentile(1.0, bound=9, percentile=1.0, delta=1e-6)
    values, neighbour = (0, 0, 0), (0, 0, 9)
    weights = exact_weights(mechanism, 5)
    moved = abs(mechanism.centre(values) - mechanism.centre(neighbour))
    assert moved > brute_force(values, 3, 9, weights, last_step=0)
    assert moved <= mechanism.sensitivity(values)


def test_large_data_need_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    # Pairs of places number 4·10^9 here; the search looks at blocks of them, and this counts the blocks.
    steps = 0
    original = heapq.heappop

    def counted(queue: list[tuple[int, ...]]) -> tuple[int, ...]:
        nonlocal steps
        steps += 1
        return original(queue)

    monkeypatch.setattr("deniable.mechanisms.smooth_sensitivity.heapq.heappop", counted)
    size, bound = 65_536, 1638
    rng = np.random.default_rng(7)
    shapes = [np.minimum(rng.pareto(1.1, size) * 5, bound).astype(np.int64), rng.integers(0, bound + 1, size)]
    shapes += [np.full(size, 17), np.arange(size) * bound // size]
    for values in shapes:
        for epsilon in (0.01, 0.1, 1.0):
            steps = 0
            assert PAKThreshold(epsilon, bound).sensitivity(values) >= 1
            assert 0 < steps < 5_000


# Privacy --------------------------------------------------------------------------------------------------------------


def law_on(mechanism: SmoothPercentile, values: Values, outputs: Floats) -> Floats:
    """The law before clamping, as an array; `test_pmf_and_law` compares it with the mechanism's own."""
    scale = float(mechanism.scale(values))
    k = np.abs(outputs - mechanism.centre(values))
    law: Floats
    if isinstance(mechanism.noise, LaplaceNoise):
        law = np.exp(-k / scale) * math.tanh(0.5 / scale)
    elif isinstance(mechanism.noise, GaussianNoise):
        law = np.exp(-0.5 * (k / scale) ** 2) * mechanism.noise.pmf(0, mechanism.scale(values))
    else:
        law = math.tanh(math.pi * scale) / (math.pi * scale) / (1 + (k / scale) ** 2)
    return law


PRIVATE: list[SmoothPercentile] = [
    SmoothPercentile(0.2, 4, 0.5, 1e-6, LAPLACE),
    SmoothPercentile(1.0, 4, 1.0, 1e-6, LAPLACE),
    SmoothPercentile(1.0, 4, 0.6, 0.5, LAPLACE),
    SmoothPercentile(4.0, 4, 0.9, 1e-3, LAPLACE),
    SmoothPercentile(20.0, 4, 0.5, 1e-3, LAPLACE),
    SmoothPercentile(0.5, 4, 0.5, 1e-2, GAUSSIAN),
    SmoothPercentile(1.0, 4, 1.0, 1e-6, GAUSSIAN),
    SmoothPercentile(4.0, 4, 0.3, 0.5, GAUSSIAN),
    SmoothPercentile(20.0, 4, 0.5, 1e-3, GAUSSIAN),
    SmoothPercentile(0.2, 4, 0.5, 0.0, CAUCHY),
    SmoothPercentile(1.0, 4, 1.0, 0.0, CAUCHY),
    SmoothPercentile(6.0, 4, 0.3, 0.0, CAUCHY),
    PAKThreshold(0.2, 4, delta=1e-6),
    PAKThreshold(1.0, 4, 0.5, 1e-6, LAPLACE),
    PAKThreshold(4.0, 4, 0.5, 1e-6, LAPLACE, undershoot=0.1),
    PAKThreshold(1.0, 4, delta=1e-12, noise=GAUSSIAN),
    PAKThreshold(2.0, 4, 0.5, 1e-2, GAUSSIAN, undershoot=0.1),
    PAKThreshold(1.0, 4, 0.5, 0.0, CAUCHY, undershoot=0.3),
]


@pytest.mark.parametrize("mechanism", PRIVATE, ids=str)
def test_neighbours_are_indistinguishable(mechanism: SmoothPercentile) -> None:
    """All pairs of neighbours with three values in 0..4: Σ max(0, P − e^ε·Q) ≤ δ, and with Cauchy noise P ≤ e^ε·Q."""
    everything = datasets(3, mechanism.bound)
    half = int(40 * max(mechanism.scale(values) for values in everything)) + 50
    outputs = np.arange(-half, half + 1, dtype=np.float64)
    if mechanism.noise == CAUCHY:
        outputs = np.unique(np.concatenate([outputs, -np.geomspace(half, 1e12, 99), np.geomspace(half, 1e12, 99)]))
    laws = {values: law_on(mechanism, values, outputs) for values in everything}
    for values, law in laws.items():
        for other in set(neighbours(values, mechanism.bound)):
            if mechanism.noise == CAUCHY:
                assert np.all(law <= math.exp(mechanism.epsilon) * laws[other] * (1 + 1e-9))
                continue
            outside = 2 * mechanism.noise.tail(half - abs(mechanism.centre(values)), mechanism.scale(values))
            gained = np.maximum(0.0, law - math.exp(mechanism.epsilon) * laws[other]).sum()
            assert gained + outside <= mechanism.delta * (1 + 1e-9)


def test_the_privacy_test_has_teeth() -> None:
    """Noise that follows the local sensitivity itself is caught by the same sum."""
    mechanism = SmoothPercentile(1.0, 4, 0.5, 1e-6)
    outputs = np.arange(-2000.0, 2001.0)
    tight, wide = (np.tanh(0.5 / s) * np.exp(-np.abs(outputs) / s) for s in (2.0, 8.0))
    assert np.maximum(0.0, wide - math.exp(mechanism.epsilon) * tight).sum() > 1000 * mechanism.delta


@pytest.mark.parametrize("mechanism", PRIVATE, ids=str)
def test_pmf_and_law(mechanism: SmoothPercentile) -> None:
    for values in ((0, 0, 0), (0, 2, 4), (1, 1, 4), (4, 4, 4)):
        outputs = np.arange(-30.0, 31.0)
        own = [mechanism.pmf(values, int(output)) for output in outputs]
        np.testing.assert_allclose(own, law_on(mechanism, values, outputs), rtol=1e-10, atol=1e-300)
        law = mechanism.law(values)
        assert len(law) == mechanism.bound + 1
        assert math.fsum(law) == pytest.approx(1, abs=1e-10)
        assert law[1:-1] == tuple(own[31 : 30 + mechanism.bound])


# PAK ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [LAPLACE, GAUSSIAN])
@pytest.mark.parametrize("epsilon", [0.05, 1.0])
def test_pak_moves_by_no_more_than_its_noise_expects(noise: AdmissibleNoise, epsilon: float) -> None:
    mechanism = PAKThreshold(epsilon, 5, 0.6, 1e-12, noise)
    a, c, b = float(mechanism.stretch), float(mechanism.lift), float(mechanism.smoothing)
    assert float(mechanism.kappa) == pytest.approx(1 / (1 - math.expm1(b) * c / a), rel=1e-12)
    assert c == pytest.approx(noise.quantile(0.994), abs=1e-9)
    places = {values: (mechanism.centre(values), mechanism.scale(values)) for values in datasets(4, 5)}
    for values, (centre, scale) in places.items():
        lifted = sorted(values)[mechanism.rank(4) - 1] + float(mechanism.kappa * mechanism.sensitivity(values)) * c / a
        assert centre == pytest.approx(lifted, abs=1.000001)
        assert scale == (mechanism.kappa * mechanism.sensitivity(values) + 1) / mechanism.stretch
        for other in neighbours(values, 5):
            assert abs(centre - places[other][0]) <= mechanism.stretch * min(scale, places[other][1])
            assert scale <= places[other][1] * exp_between(mechanism.smoothing)[1]


def test_pak_seldom_falls_below_the_percentile() -> None:
    mechanism = PAKThreshold(1.0, 1000, cap=False)
    values = [value * value % 700 for value in range(1000)]
    percentile = SmoothPercentile(math.inf, 1000, mechanism.percentile).perturb_one(values, simulation=True)
    below = mechanism.noise.tail(mechanism.centre(values) - percentile + 1, mechanism.scale(values))
    assert below <= 1.5 * mechanism.undershoot  # rounding and the +1 in the scale are not part of PAK's promise


def test_pak_is_refused_where_it_cannot_be_private() -> None:
    with pytest.raises(InvalidParameter, match="undershoot is too small"):
        PAKThreshold(1.0, 100, delta=0, noise=CAUCHY)
    with pytest.raises(InvalidParameter, match="undershoot is too small"):
        PAKThreshold(1.0, 100, delta=1e-2, noise=LAPLACE, undershoot=1e-4)
    for undershoot in (0.0, 0.6, math.nan, -1.0, True, "0.1"):
        with pytest.raises(InvalidParameter, match="undershoot must be"):
            PAKThreshold(1.0, 100, undershoot=undershoot)  # type: ignore[arg-type]


# Use ------------------------------------------------------------------------------------------------------------------


def test_the_rank_is_that_of_the_decimal_that_was_written() -> None:
    assert SmoothPercentile(1.0, 9, 0.995).rank(1000) == 995
    assert SmoothPercentile(1.0, 9, 0.07).rank(100) == 7
    assert SmoothPercentile(1.0, 9, np.float64(0.07)).rank(100) == 7
    assert SmoothPercentile(1.0, 9, 1e-9).rank(5) == 1
    assert SmoothPercentile(1.0, 9, 1).rank(5) == 5
    assert SmoothPercentile(1.0, 9, 0.5).rank(4) == 2


@pytest.mark.parametrize("kind", [SmoothPercentile, PAKThreshold])
def test_infinite_epsilon_is_the_percentile(kind: type[SmoothPercentile]) -> None:
    mechanism = kind(math.inf, 10, 0.5)
    assert mechanism.perturb([9, 1, 4], simulation=True) == 4
    assert mechanism.perturb_one([9, 1, 4], simulation=True) == 4
    assert mechanism.law([9, 1, 4]) == tuple(float(output == 4) for output in range(11))
    assert mechanism.pmf([9, 1, 4], 4) == 1
    assert mechanism.pmf([9, 1, 4], 5) == 0
    assert mechanism.variance([9, 1, 4]) == 0
    assert mechanism.scale([9, 1, 4]) == 0
    assert mechanism.sensitivity([9, 1, 4]) == 5


def test_both_ways_of_drawing_are_one() -> None:
    mechanism = SmoothPercentile(1.0, 100, 0.5)
    values = [3, 50, 50, 51, 99]
    source, again = SeededSource(7), SeededSource(7)
    drawn = [mechanism.perturb(values, source=source, simulation=True) for _ in range(30)]
    assert drawn == [mechanism.perturb_one(values, randbelow=again.simulated_randbelow) for _ in range(30)]
    assert len(set(drawn)) > 2
    assert {type(value) for value in drawn} == {int}
    assert all(0 <= mechanism.perturb(values) <= 100 for _ in range(5))
    assert mechanism.estimate(17) == 17.0


def test_the_cap_only_clamps() -> None:
    values = [0, 1, 2, 4]
    capped, free = (SmoothPercentile(0.1, 4, 0.5, cap=cap) for cap in (True, False))
    first, second = SeededSource(1), SeededSource(1)
    outputs = [free.perturb_one(values, randbelow=first.simulated_randbelow) for _ in range(40)]
    assert min(outputs) < 0
    assert max(outputs) > 4
    clamped = [capped.perturb_one(values, randbelow=second.simulated_randbelow) for _ in range(40)]
    assert clamped == [min(max(output, 0), 4) for output in outputs]
    with pytest.raises(InvalidParameter, match="cap must be True"):
        free.law(values)


def test_a_seeded_source_is_for_simulation() -> None:
    with pytest.raises(SimulationOnly):
        SmoothPercentile(1.0, 9, 0.5).perturb([1], source=SeededSource(1))


@pytest.mark.parametrize(
    "values",
    [
        [3, 1, 2],
        (3, 1, 2),
        iter([3, 1, 2]),
        range(1, 4),
        [np.int64(3), 1, np.uint8(2)],
        np.array([3, 1, 2], np.uint8),
        np.array([3, 1, 2], np.int64),
        pa.array([3, 1, 2]),
        pa.chunked_array([[3], [1, 2]]),
    ],
    ids=lambda values: type(values).__name__,
)
def test_integers_of_every_kind_are_welcome(values: object) -> None:
    assert SmoothPercentile(math.inf, 9, 0.5).perturb_one(values, simulation=True) == 2


@pytest.mark.parametrize(
    "values",
    [
        [],
        np.array([], np.int64),
        [4711, 10**9],
        [-4711],
        np.array([4711]),
        [4711.0],
        [4711.5],
        np.array([4711.0]),
        [True],
        np.array([True]),
        ["4711"],
        "4711",
        b"4711",
        [math.nan],
        [None],
        pa.array([1, None]),
        pa.array([4711.0]),
        4711,
        None,
        np.array([[4711]]),
        np.array(4711),
        np.array([4711], "datetime64[ns]"),
        pa.array([4711], pa.timestamp("ns")),
        [Fraction(4711)],
        np.array(["4711"]),
        [np.bool_(True)],
        [[4711]],
    ],
    ids=lambda values: type(values).__name__,
)
def test_other_data_are_refused_without_being_shown(values: object) -> None:
    for mechanism in (SmoothPercentile(1.0, 100, 0.5), PAKThreshold(1.0, 100)):
        for use in (mechanism.perturb, mechanism.perturb_one, mechanism.sensitivity, mechanism.law):
            with pytest.raises(InvalidData) as refusal:
                use(values)
            assert "4711" not in str(refusal.value)
            assert "values" in str(refusal.value)
            assert refusal.value.__cause__ is None


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": 701.0}, "epsilon"),
        ({"bound": 0}, "bound"),
        ({"bound": 2.0}, "bound"),
        ({"bound": 2**54}, "bound"),
        ({"bound": True}, "bound"),
        ({"percentile": 0}, "percentile"),
        ({"percentile": 99.5}, "percentile"),
        ({"percentile": math.nan}, "percentile"),
        ({"percentile": True}, "percentile"),
        ({"percentile": "0.5"}, "percentile"),
        ({"delta": 0}, "delta"),
        ({"noise": CAUCHY}, "delta"),
        ({"noise": "laplace"}, "noise"),
        ({"noise": LaplaceNoise}, "noise"),
        ({"cap": 1}, "cap"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, object], name: str) -> None:
    arguments: dict[str, object] = {"epsilon": 1.0, "bound": 9, "percentile": 0.5} | settings
    with pytest.raises(InvalidParameter) as refusal:
        SmoothPercentile(**arguments)  # type: ignore[arg-type]
    assert refusal.value.name == name


def test_a_device_needs_the_standard_library_only() -> None:
    code = (
        "import sys\n"
        "from deniable.mechanisms.pak_threshold import PAKThreshold\n"
        "assert 0 <= PAKThreshold(1.0, 9).perturb_one([1, 2, 3]) <= 9\n"
        "assert not {'numpy', 'scipy', 'pyarrow', 'cryptography'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
