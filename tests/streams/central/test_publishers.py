"""One suite for every publisher: one value at a time or many, restored or not, the stream is the same."""

import json
import math
from functools import cache

import numpy as np
import pytest

from deniable.errors import InvalidData, InvalidParameter, QueryRefused, SimulationOnly
from deniable.randomness import SeededSource
from deniable.streams.central.named_publishers import NME, PAK, Flat, Hc16, SmoothHc16, ToPS, restore
from deniable.streams.central.threshold import (
    FixedPercentile,
    PAKPercentile,
    PredictedError,
    PublicThreshold,
    SmoothThreshold,
)
from deniable.streams.released.covariance import TreeNoise
from deniable.streams.structure.smoother import Exponential, MovingAverage
from deniable.streams.structure.state_values import seal
from effort import repetitions
from same_noise import forget_what_was_drawn

KEY = bytes(range(32))
WARMUP, HORIZON = 300, 1000


def make(kind=ToPS, **more):
    forget_what_was_drawn()
    return kind(1.0, 50, **{"warmup": WARMUP, "horizon": HORIZON, "key": KEY, **more})


MAKERS = {
    "tops": lambda: make(),
    "paper": lambda: make(paper=True),
    "not renewed": lambda: make(renew=False),
    "growing epochs": lambda: make(warmup=3, horizon=4096),
    "start": lambda: make(start=30),
    "tops, blocks of 7": lambda: make(block=7),
    "tops, one leaf": lambda: make(block=HORIZON),
    "mean": lambda: make(block=16, smoother="mean"),
    "median": lambda: make(block=16, smoother="median"),
    "moving": lambda: make(block=16, smoother=MovingAverage(3)),
    "exponential": lambda: make(block=16, smoother=Exponential(0.4)),
    "no smoother": lambda: make(smoother="none"),
    "cents": lambda: make(low=-1.0, resolution=0.01, block=8),
    "public": lambda: make(threshold=PublicThreshold(30), warmup=0, block=8),
    "smooth": lambda: make(threshold=SmoothThreshold()),
    "pak": lambda: make(PAK),
    "uncapped pak": lambda: make(PAK, threshold=PAKPercentile(cap=False)),
    "nme": lambda: make(NME),
    "hc16": lambda: make(Hc16),
    "uncapped hc16": lambda: make(Hc16, threshold=PAKPercentile(cap=False)),
    "smooth-hc16": lambda: make(SmoothHc16),
    "flat": lambda: make(Flat),
}


@cache
def stream(count=2777):
    values = np.random.default_rng(3).geometric(0.1, count)
    values.setflags(write=False)
    return values


@pytest.fixture(params=MAKERS, scope="module")
def maker(request):
    return MAKERS[request.param]


CUTS = (0, 5, WARMUP, WARMUP + 1, WARMUP + HORIZON - 1, WARMUP + HORIZON, 1999)


@pytest.fixture
def cuts(request):
    """Where a publisher is stopped: two or three places, other ones for the next publisher; thoroughly, all of them."""
    apart = repetitions(3, 1)
    return CUTS[list(MAKERS.values()).index(request.getfixturevalue("maker")) % apart :: apart]


@pytest.fixture(scope="module")
def whole(maker):
    return maker().push_many(stream())


def test_one_at_a_time_or_in_pieces_is_the_same_stream(maker, whole):
    single = maker()
    outputs = [single.push(int(value)) for value in stream()]
    assert [out for out in outputs if out is not None] == whole.tolist()
    pieces, publisher, start = [], maker(), 0
    for size in np.random.default_rng(4).integers(0, 90, 1000):
        pieces.append(publisher.push_many(stream()[start : start + size]))
        start += size
        if start % 3 == 0 and start < stream().size:
            out = publisher.push(int(stream()[start]))
            pieces.append(np.array([] if out is None else [out]))
            start += 1
    assert np.concatenate(pieces).tolist() == whole.tolist()
    assert publisher.released.array().tolist() == single.released.array().tolist() == whole.tolist()


def test_restored_in_the_middle_of_anything_it_goes_on_exactly(maker, whole, cuts):
    expected = maker_released(maker, whole).sum(3, 900)
    for cut in cuts:
        first = maker()
        before = first.push_many(stream()[:cut]) if cut else np.zeros(0)
        second = restore(json.loads(json.dumps(first.state())))
        after = second.push_many(stream()[cut:])
        assert np.concatenate((before, after)).tolist() == whole.tolist()
        assert type(second) is type(first)
        assert second.released.array().tolist() == whole.tolist()
        assert second.released.sum(3, 900) == expected


def maker_released(maker, whole):
    publisher = maker()
    assert publisher.push_many(stream()).tolist() == whole.tolist()
    return publisher.released


def test_counters_and_refusals(maker):
    publisher = maker()
    warmup = publisher.settings.warmup
    assert publisher.warming_up == (warmup > 0)
    if warmup:
        with pytest.raises(QueryRefused, match="warm-up"):
            publisher.released  # noqa: B018
    publisher.push_many(stream()[: warmup + 10])
    assert (publisher.consumed, publisher.published, publisher.warming_up) == (warmup + 10, 10, False)
    assert len(publisher.released) == 10


BAD = [float("nan"), float("inf"), "7", None, True, -2, 1 + 2j, [1]]


def test_refused_values_touch_nothing(maker, whole):
    publisher = maker()
    outputs = []
    for count, value in enumerate(stream()[:1500]):
        if count % 100 == 7:
            before = json.dumps(publisher.state())
            for bad in BAD:
                with pytest.raises(InvalidData) as refusal:
                    publisher.push(bad)
                assert "-2" not in str(refusal.value)
            for many in ([1, float("nan")], ["a"], [1, -2], [[1]], [True], [None]):
                with pytest.raises(InvalidData):
                    publisher.push_many(many)
            assert json.dumps(publisher.state()) == before
        outputs.append(publisher.push(int(value)))
    published = [out for out in outputs if out is not None]
    assert published == whole.tolist()[: len(published)]


def test_flush_makes_a_short_last_block_add_up():
    publisher = make(block=16, renew=False)
    published = publisher.push_many(stream()[: WARMUP + 1234])
    missing = publisher.flush()
    assert publisher.flush() == 0
    values = publisher.released.array()
    assert values[:-1].tolist() == published[:-1].tolist()
    assert values[-1] == published[-1] + missing
    assert publisher.released.covariance.layout.end == 1234
    edge = 1232
    assert publisher.released.smoothing.variance(np.array([0]), np.array([1234]))[0] == 0
    assert values[edge:].sum() != published[edge:].sum()
    with pytest.raises(InvalidParameter, match="ended"):
        publisher.push(1)
    with pytest.raises(InvalidParameter, match="ended"):
        publisher.push_many([1])
    assert make().flush() == 0


def test_two_streams_that_differ_in_one_value_differ_there_and_nowhere_else():
    values, other = stream(), stream().copy()
    other[1500] = 0 if other[1500] else 1
    plain, replaced = (make(block=1).push_many(v) for v in (values, other))
    assert np.flatnonzero(replaced - plain).tolist() == [1500 - WARMUP]
    assert replaced[1200] - plain[1200] == other[1500] - min(values[1500], make_theta(values))
    # With blocks the difference shows first at the end of the value's block, and nowhere before.
    plain, replaced = (make(block=16).push_many(v) for v in (values, other))
    changed = np.flatnonzero(replaced - plain)
    end = 1000 + (1200 - 1000) // 16 * 16 + 15
    assert changed[0] == end
    assert replaced[end] - plain[end] == other[1500] - min(values[1500], make_theta(values, block=16))


def make_theta(values, **more):
    publisher = make(**{"block": 1, **more})
    publisher.push_many(values[:WARMUP])
    return publisher.learnt.theta


@pytest.mark.parametrize("smoother", ["recent", "mean", MovingAverage(3), Exponential(0.4)])
@pytest.mark.parametrize("flush", [False, True])
def test_the_standard_error_knows_how_the_smoother_spreads_noise(smoother, flush):
    """At ε = ∞ what is published is linear in the block sums: the response to each must be what the taps say."""
    horizon, block, count = 23, 4, 60
    values = np.zeros(count, dtype=np.int64)

    def published(values, initial=0.0):
        publisher = ToPS(
            math.inf,
            10**9,
            warmup=1,
            threshold=PublicThreshold(10**9),
            horizon=horizon,
            block=block,
            fanout=2,
            smoother=smoother,
            simulation=True,
        )
        publisher.push_many(np.concatenate(([int(initial)], values)))
        if flush:
            publisher.flush()
        released = publisher.released
        return np.concatenate(([0], np.cumsum(released.values))), released.covariance

    big = 10**9
    _, model = published(values)
    blocks = [position for position in range(count) if position % horizon % block == 0]
    responses = []
    for position in blocks:
        values[:] = 0
        values[position] = big
        responses.append(published(values, initial=big)[0] / big)
    start = published(values * 0, initial=big)[0] / big
    responses = np.array(responses) - start  # prefix at every position per unit of noise of every block
    # Chunk by chunk, blocks have the tree's covariance.
    covariance = np.zeros((len(blocks), len(blocks)))
    for i, early in enumerate(blocks):
        for j, late in enumerate(blocks):
            if early // horizon == late // horizon:
                a, b = early % horizon // block, late % horizon // block
                corners = [(a + 1, b + 1, 1), (a, b, 1), (a + 1, b, -1), (a, b + 1, -1)]
                covariance[i, j] = sum(
                    sign * model.tree.covariance(np.array([x]), np.array([y]))[0] for x, y, sign in corners
                )
    model = TreeNoise(model.layout, model.fanout, model.consistent, 2.0, 0.5, model.smoother)
    i, j = np.triu_indices(count + 1)
    weights = responses[:, j] - responses[:, i]
    expected = 2.0 * np.einsum("an,ab,bn->n", weights, covariance, weights) + 0.5 * (start[j] - start[i]) ** 2
    assert np.allclose(model.variance(i, j), expected, atol=1e-5)


@pytest.mark.parametrize(
    ("block", "hierarchy"),
    [(1, "tree"), (1, "tent"), (4096, "tree"), pytest.param(4096, "tent", marks=pytest.mark.slow)],
)
def test_standard_errors_are_calibrated_at_every_window_length(hierarchy, block):
    """Noise of chunks on a constant stream, in units of its standard error: mean square 1 at each length.

    Chunks are independent with the smoother `recent`, so their spread is an honest tolerance. `mean` remembers all.
    """
    horizon = 2**20
    source = SeededSource(11)
    settings = {"block": block, "fanout": 16, "hierarchy": hierarchy}
    publisher = ToPS(
        1.0, 10, warmup=0, threshold=PublicThreshold(10), horizon=horizon, source=source, simulation=True, **settings
    )
    rng = np.random.default_rng(5)
    chunks = 5 if block == 1 else 60
    lengths = (1, 60, 1440, 65536, 2**19)
    scores = {length: [] for length in lengths}
    publisher.push_many(np.full(horizon, 5))  # the very first block is filled with θ/2 and has no noise inside
    for _ in range(chunks):
        out = publisher.push_many(np.full(horizon, 5)) - 5
        prefix = np.concatenate(([0], np.cumsum(out)))
        base = publisher.published - horizon
        for length in lengths:
            starts = rng.integers(0, horizon - length, 2000 if length < 2000 else 20 * horizon // length)
            model = publisher.release_of(out).covariance
            errors = prefix[starts + length] - prefix[starts]
            scores[length].append(errors**2 / model.variance(starts + base, starts + length + base))
    for length in lengths:
        # Windows overlap and share nodes; what matters is that no length is off by more than chance.
        per_chunk = [chunk.mean() for chunk in scores[length]]
        tolerance = 5 * np.std(per_chunk) / math.sqrt(chunks) + 0.02
        assert abs(np.mean(per_chunk) - 1) < min(tolerance, 0.35), length


def test_values_above_the_bound_count_as_the_bound_and_a_lower_end_shifts():
    publisher = ToPS(math.inf, 10, low=-5, warmup=4, horizon=8, block=1, simulation=True)
    assert publisher.push_many([10, 10, 10, 10]).size == 0
    assert publisher.push_many([-5, 0, 7, 99]).tolist() == [-5, 0, 7, 10]
    with pytest.raises(InvalidData, match="lower bound -5"):
        publisher.push(-6)
    fine = ToPS(math.inf, 1.0, resolution=0.25, warmup=4, horizon=8, block=1, simulation=True)
    fine.push_many([1.0] * 4)
    assert fine.push_many(np.array([0.1, 0.2, 0.6, 2.0])).tolist() == [0.0, 0.25, 0.5, 1.0]
    assert fine.released.sum(0, 4).value == 1.75


def test_every_publisher_draws_a_key_of_its_own():
    first, second = (ToPS(1.0, 50, warmup=WARMUP, horizon=HORIZON) for _ in range(2))
    assert first.push_many(stream()).tolist() != second.push_many(stream()).tolist()
    with pytest.raises(SimulationOnly):
        ToPS(1.0, 50, source=SeededSource(1))
    with pytest.raises(InvalidParameter, match="not private"):
        make(threshold=FixedPercentile(0.99))
    with pytest.raises(InvalidParameter, match="exclude"):
        make(source=SeededSource(1), simulation=True)


def test_a_forgetful_publisher_keeps_nothing_and_publishes_the_same():
    forgetful = make(keep=False)
    assert forgetful.push_many(stream()).tolist() == make().push_many(stream()).tolist()
    with pytest.raises(QueryRefused, match="forgets"):
        forgetful.released  # noqa: B018
    assert forgetful.state()["totals"] is None


def changed(state, **more):
    """A state that somebody else sealed."""
    return seal({name: value for name, value in {**state, **more}.items() if name != "seal"})


def test_states_of_other_versions_and_of_simulations():
    state = make().state()
    with pytest.raises(InvalidData, match="another version"):
        restore({**state, "version": 99})
    with pytest.raises(InvalidParameter, match="kind"):
        restore(changed(state, kind="unheard of"))
    with pytest.raises(InvalidParameter, match="planned by another version"):
        restore(changed(state, plan=[1, 2]))
    simulated = ToPS(1.0, 50, warmup=WARMUP, horizon=HORIZON, source=SeededSource(1), simulation=True)
    with pytest.raises(SimulationOnly):
        restore(simulated.state())
    again = restore(simulated.state(), source=SeededSource(1))
    assert again.push_many(stream()).tolist() == simulated.push_many(stream()).tolist()


def test_unknown_parts_are_refused_by_name():
    with pytest.raises(InvalidParameter, match="one of recent, mean, moving, exponential, median"):
        make(smoother="psychic")
    with pytest.raises(InvalidParameter, match="threshold"):
        make(threshold="guess")
    with pytest.raises(InvalidParameter, match="paper is not a setting here"):
        make(PAK, paper=True)


@pytest.mark.parametrize(
    "settings",
    [
        {"epsilon": 0},
        {"bound": 0},
        {"warmup": 0},
        {"block": 2**21},
        {"resolution": 0},
        {"low": 60},
        {"horizon": 0},
        {"epsilon": 1e-8},
        {"epsilon": 699.0, "simulation": True},
        {"bound": 2**39, "horizon": 2**30},
    ],
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(InvalidParameter):
        ToPS(**{"epsilon": 1.0, "bound": 50, **settings})


def test_without_noise_and_with_bounds_too_wide_to_bite_sums_are_exact():
    values = stream()
    theta = PublicThreshold(10**6)
    publisher = ToPS(math.inf, 10**6, warmup=WARMUP, horizon=HORIZON, threshold=theta, block=16, simulation=True)
    publisher.push_many(values)
    published, rest = publisher.released, values[WARMUP:]
    for start, stop in ((0, 992), (160, 1000), (0, 2000 + 160)):
        assert published.sum(start, stop).value == rest[start:stop].sum()
        assert published.sum(start, stop).stderr == 0


def test_the_default_threshold_is_private_and_its_cost_is_told():
    assert isinstance(make().settings.threshold, PredictedError)
    assert make().settings.delta == 0
    assert make(PAK).settings.delta > 0


@pytest.mark.parametrize("cap", [True, False])
def test_hc16_differs_from_pak_in_the_tree_only(cap):
    # [WCZ21, appendix F] pairs the two; the plain smooth-sensitivity baseline has another threshold.
    rule = {} if cap else {"threshold": PAKPercentile(cap=False)}
    pak, hc16, smooth = (make(kind, **rule) for kind in (PAK, Hc16, SmoothHc16))
    facts, others = pak.settings.describe(), hc16.settings.describe()
    assert {name for name in facts if facts[name] != others[name]} == {"method", "block", "fanout", "consistent"}
    assert (smooth.settings.threshold == hc16.settings.threshold) is not cap
