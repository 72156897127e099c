"""What releases say they spend is what their laws spend, and sums of it are exact."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import deniable as dn
from deniable.accounting import Neighbours, Spending, Unit, in_parallel, in_sequence, share_below
from deniable.audit.laws import worst_ratio
from deniable.errors import InvalidParameter
from deniable.mechanisms import (
    CauchyNoise,
    DiscreteLaplace,
    Hybrid,
    LocalHashing,
    NoisyMax,
    PAKThreshold,
    PermuteAndFlip,
    Piecewise,
    RandomizedResponse,
    SmoothPercentile,
    SquareWave,
    StochasticRounding,
)
from deniable.streams.central.perturber import Perturber
from deniable.streams.central.settings import Settings
from deniable.streams.central.threshold import FixedPercentile, PAKPercentile, PublicThreshold
from deniable.streams.structure.value_grid import Grid

EPSILONS = st.floats(min_value=0.01, max_value=10)
FRACTIONS = st.fractions(min_value=0, max_value=1, max_denominator=10**6)


def report(epsilon, delta=0.0):
    return Spending(Unit.REPORT, Neighbours.ANY, epsilon, delta)


def pairs(laws):
    return list(itertools.permutations(laws, 2))


LOCAL = {
    RandomizedResponse: lambda epsilon: pairs([RandomizedResponse(epsilon, 3).law(value) for value in range(3)]),
    LocalHashing: lambda epsilon: pairs([LocalHashing(epsilon, 9).law(value, 7) for value in range(9)]),
    StochasticRounding: lambda epsilon: pairs([StochasticRounding(epsilon).law(end) for end in (-1, 1)]),
    Piecewise: lambda epsilon: pairs([Piecewise(epsilon, steps=6).law(end) for end in (-1, 1)]),
    Hybrid: lambda epsilon: pairs([Hybrid(epsilon, steps=6).law(end) for end in (-1, 1)]),
    SquareWave: lambda epsilon: pairs([SquareWave(epsilon, cells=6).law(end) for end in (0, 1)]),
}


@pytest.mark.parametrize("kind", LOCAL)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_a_local_mechanism_spends_what_its_law_does(kind, epsilon):
    mechanism = kind(epsilon, 9) if kind in (RandomizedResponse, LocalHashing) else kind(epsilon)
    assert mechanism.spends == report(epsilon)
    assert worst_ratio(LOCAL[kind](epsilon)) == pytest.approx(float(mechanism.spends.epsilon), rel=1e-9)


def test_discrete_laplace_spends_what_its_law_does():
    mechanism = DiscreteLaplace(0.7, 3)
    assert mechanism.spends == Spending(Unit.STEP, Neighbours.DISTANCE, 0.7)
    laws = [(mechanism.law(0, -9, 9), mechanism.law(step, -9, 9)) for step in (1, 2, 3)]
    assert worst_ratio(laws) == pytest.approx(0.7, rel=1e-9)
    assert worst_ratio([(mechanism.law(0, -9, 9), mechanism.law(4, -9, 9))]) > 0.7  # beyond what it promises for


@pytest.mark.parametrize("kind", [NoisyMax, PermuteAndFlip])
@pytest.mark.parametrize("monotone", [True, False])
def test_a_choice_spends_at_most_what_it_says(kind, monotone):
    mechanism = kind(0.8, monotone=monotone)
    neighbours = Neighbours.SCORES_ALIKE if monotone else Neighbours.SCORES
    assert mechanism.spends == Spending(Unit.STEP, neighbours, 0.8)
    moves = (0, 1) if monotone else (-1, 0, 1)
    scores = [(0, gap, gap) for gap in range(9)]
    stepped = [(law, move) for law in scores for move in itertools.product(moves, repeat=3)]
    laws = [
        (mechanism.law(list(before)), mechanism.law([a + b for a, b in zip(before, move, strict=True)]))
        for before, move in stepped
    ]
    worst = worst_ratio(laws)
    assert 0.7 < worst <= 0.8 * (1 + 1e-9)


def test_percentiles_spend_delta_too():
    smooth = SmoothPercentile(1.0, bound=10, percentile=0.5, delta=2.0**-20)
    assert smooth.spends == Spending(Unit.VALUE, Neighbours.REPLACED, 1.0, 2.0**-20)
    assert PAKThreshold(1.0, bound=10).spends.delta == Fraction(PAKThreshold(1.0, bound=10).delta)
    pure = SmoothPercentile(1.0, bound=10, percentile=0.5, delta=0.0, noise=CauchyNoise())
    assert pure.spends.delta == 0
    values, replaced = [2, 5, 7], [2, 5, 1]
    assert worst_ratio([(smooth.law(values), smooth.law(replaced))], delta=smooth.delta) <= 1 + 1e-9


ORDERS = dn.Table("orders", many=10, tau=3, amount=dn.Ordinal(0, 500), kind=dn.Categorical("a", "b"))
USERS = dn.Table("users", age=dn.Ordinal(1, 95))


@given(EPSILONS, st.none() | st.tuples(EPSILONS, EPSILONS), st.sampled_from(["hio", "sc", "grid"]))
def test_a_collection_never_spends_more_than_its_epsilon(epsilon, shares, design):
    named = None if shares is None else dict(zip(("users", "orders"), shares, strict=True))
    spends = dn.Collection(USERS, ORDERS, epsilon=epsilon, shares=named, design=design).spends
    assert (spends.unit, spends.neighbours, spends.delta) == (Unit.USER, Neighbours.ANY, 0)
    assert Fraction(epsilon) * (1 - Fraction(1, 10**14)) < spends.epsilon <= Fraction(epsilon)


def test_a_collection_spends_what_its_reports_do():
    shop = dn.Collection(USERS, ORDERS, epsilon=1.0, shares={"users": 1, "orders": 2}, design="sc")
    reports = {"users": 1, "orders": 3 * 3}  # tau times amount, kind and weight
    parts = [Fraction(shop.epsilon_per_report(name)) * count for name, count in reports.items()]
    assert shop.spends.epsilon == sum(parts)
    for name in reports:
        views = [shop.design_of(name).view(number) for number in range(shop.views(name))]
        epsilon = shop.epsilon_per_report(name)
        assert all(view.oracle.spends == report(epsilon if view.cells > 1 else 0) for view in views)
        assert in_parallel(view.oracle.spends for view in views) == report(epsilon)  # views are drawn without looking


def test_a_simulation_without_noise_spends_everything():
    assert dn.Collection(USERS, ORDERS, epsilon=math.inf).spends.epsilon == math.inf


STREAM = Settings("tops", 0.3, Grid(1000), warmup=1000, horizon=4096)


def test_a_published_stream_spends_its_epsilon_once():
    assert STREAM.spends == Spending(Unit.VALUE, Neighbours.REPLACED, 0.3)
    assert sum(map(Fraction, STREAM.costs(STREAM.epsilon, STREAM.warmup).values())) <= STREAM.spends.epsilon
    assert Perturber(0.3, theta=10).spends == STREAM.spends
    assert dn.streams.ToPS(0.3, 1000, warmup=1000, horizon=4096).spends == STREAM.spends


def test_a_stream_spends_what_its_threshold_does():
    common = {"warmup": 1000, "horizon": 4096}
    rough = Settings("pak", 0.3, Grid(1000), threshold=PAKPercentile(), **common)
    assert rough.spends == Spending(Unit.VALUE, Neighbours.REPLACED, 0.3, rough.delta)
    assert rough.delta > 0
    public = Settings(
        "flat", 0.3, Grid(1000), threshold=PublicThreshold(40), warmup=0, horizon=4096, measure_start=False
    )
    assert public.spends.epsilon == Fraction(0.3)
    unsafe = Settings("flat", 0.3, Grid(1000), threshold=FixedPercentile(0.9), **common)
    assert unsafe.spends.epsilon == math.inf


@pytest.mark.parametrize("mechanism", ["hybrid", "piecewise", "rounding", "wave"])
def test_a_user_of_a_local_stream_spends_epsilon(mechanism):
    server = dn.streams.ToPLServer(epsilon=0.5, bound=10, mechanism=mechanism)
    assert server.protocol.spends == Spending(Unit.USER, Neighbours.ANY, 0.5)


@given(st.lists(EPSILONS, min_size=1, max_size=5), st.lists(FRACTIONS, min_size=5, max_size=5))
def test_sums_and_maxima_are_exact(epsilons, deltas):
    parts = [report(epsilon, delta) for epsilon, delta in zip(epsilons, deltas, strict=False)]
    used = [part.delta for part in parts]
    assert in_sequence(parts) == report(sum(map(Fraction, epsilons)), min(sum(used), 1))
    assert in_parallel(parts) == report(max(epsilons), max(used))
    assert in_sequence([parts[0]] * 3) == parts[0].times(3)


def test_infinity_stays_infinity():
    assert in_sequence([report(1.0), report(math.inf)]).epsilon == math.inf
    assert report(math.inf).times(2).epsilon == math.inf


@given(EPSILONS, FRACTIONS)
def test_a_share_is_the_largest_float_below_it(epsilon, share):
    rounded = share_below(epsilon, share)
    assert Fraction(rounded) <= share * Fraction(epsilon) < Fraction(math.nextafter(rounded, math.inf))
    assert share_below(math.inf, share) == math.inf


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([], "must protect one unit"),
        ([report(1.0), Spending(Unit.USER, Neighbours.ANY, 1.0)], "must protect one unit"),
        ([report(1.0), Spending(Unit.REPORT, Neighbours.REPLACED, 1.0)], "must protect one unit"),
    ],
)
def test_what_does_not_add_up_is_refused(parts, said):
    for combine in (in_sequence, in_parallel):
        with pytest.raises(InvalidParameter, match=said):
            combine(parts)


@pytest.mark.parametrize(("epsilon", "delta"), [(-1.0, 0.0), (math.nan, 0.0), (1.0, -0.1), (1.0, 1.5), (1.0, math.nan)])
def test_impossible_spending_is_refused(epsilon, delta):
    with pytest.raises(InvalidParameter, match="must"):
        report(epsilon, delta)


def test_nothing_happens_a_whole_number_of_times():
    with pytest.raises(InvalidParameter, match="count"):
        report(1.0).times(0)
