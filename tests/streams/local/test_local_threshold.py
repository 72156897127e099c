"""Where to cut: the corrected prediction, beliefs about the distribution, and rules that noise must not decide."""

import math

import numpy as np
import pytest

from deniable.errors import InvalidParameter
from deniable.mechanisms.reconstruction import Blur
from deniable.randomness import SeededSource
from deniable.streams import CutTail, LocalPercentile, NoThreshold, Reconstructed, SmoothTail, ToPL, ToPLServer
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.streams.local.tail_belief import smooth_tail
from deniable.streams.local.tail_family import SHAPES, ReportLikelihood, TailFit, _all_bumps, _bumps
from deniable.streams.local.threshold_choice import candidates, least_regret, predicted_error
from deniable.streams.local.value_distribution import DistributionBelief, transition

VALUES = np.random.default_rng(1).geometric(0.13, 65_536)
HORIZON = 1 << 20


def server(epsilon, rule=None, values=VALUES, seed=1, **settings):
    topl = ToPL(epsilon, 1638, rule=rule, source=SeededSource(seed), simulation=True, **settings)
    topl.publish(values)
    return topl.server


def true_error(protocol, theta):
    """The prediction with the true distribution."""
    excess = np.array([np.maximum(VALUES - cut, 0).mean() for cut in np.atleast_1d(theta)])
    return predicted_error(protocol, HORIZON, np.atleast_1d(theta), excess)


def test_random_ranges_have_the_lengths_that_the_prediction_counts_on():
    r = 200
    starts, stops = np.meshgrid(np.arange(r), np.arange(r))
    lengths = np.abs(starts - stops)
    assert lengths.mean() == pytest.approx(r / 3, rel=0.01)
    assert (lengths**2).mean() == pytest.approx(r**2 / 6, rel=0.01)


@pytest.mark.parametrize("epsilon", [0.2, 0.61, 0.7, 2.0])
def test_the_noise_is_that_of_the_hybrid_mechanism_on_a_range_of_length_theta(epsilon):
    e, half = math.exp(epsilon), math.exp(epsilon / 2)
    variance = ((e + 1) / (e - 1)) ** 2
    if epsilon > 0.61:
        variance = (variance + (half + 3) / (3 * (half - 1))) / half  # [WCZ21, Eq. (14)]
    predicted = predicted_error(ToPLProtocol(epsilon, 1638), 300, np.array([40.0]), np.array([0.0]))
    assert predicted[0] == pytest.approx(300 / 3 * 20**2 * variance, rel=1e-3)


def test_the_prediction_is_what_a_simulation_measures():
    """The constants r/3, (θ/2)² and r²/6; those of the authors' code are 4 and 1/4 times that."""
    theta, r, rng = 12.0, 4096, np.random.default_rng(2)
    protocol = ToPLProtocol(1.0, 1638)
    predicted = predicted_error(protocol, r, np.array([theta]), np.maximum(VALUES - theta, 0).mean(keepdims=True))[0]
    errors = []
    for seed in range(40):
        values = rng.permutation(VALUES)[:r]
        topl = ToPL(1.0, 1638, theta=theta, source=SeededSource(seed), simulation=True)
        prefix = np.concatenate(([0], np.cumsum(topl.publish(values) - values)))
        pairs = np.sort(rng.integers(0, r, (500, 2)), axis=1)
        errors.append(np.mean((prefix[pairs[:, 1]] - prefix[pairs[:, 0]]) ** 2))
    assert np.mean(errors) == pytest.approx(predicted, rel=0.15)


def test_excess_and_shares_above_by_hand():
    belief = DistributionBelief(
        np.array([1.0, 5.0, 10.0]), np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]]), np.array([0.75, 0.25])
    )
    np.testing.assert_allclose(belief.excess(np.array([0.0, 5.0, 7.0, 10.0])), [[4, 1, 0.6, 0], [1, 0, 0, 0]])
    np.testing.assert_allclose(belief.above(5.0), [0.2, 0.0])
    assert belief.mean(np.ones(3)) == pytest.approx(1)
    np.testing.assert_allclose(belief.distribution, [0.625, 0.225, 0.15])


def test_for_one_distribution_the_threshold_of_least_predicted_error_is_taken():
    values, shares = np.unique(VALUES, return_counts=True)
    belief = DistributionBelief(values.astype(float), shares[None, :] / VALUES.size, np.ones(1))
    for epsilon in (0.2, 2.0):
        protocol = ToPLProtocol(epsilon, 1638)
        chosen = least_regret(belief, protocol, HORIZON)
        assert true_error(protocol, chosen)[0] <= 1.001 * true_error(protocol, candidates(protocol)).min()


@pytest.mark.parametrize(("epsilon", "most"), [(0.2, 5.0), (0.5, 3.0), (1.0, 2.0), (2.0, 3.0)])
def test_the_default_rule_is_near_the_best_threshold_at_every_epsilon(epsilon, most):
    thetas = np.array([server(epsilon, seed=seed).theta for seed in range(4)])
    protocol = ToPLProtocol(epsilon, 1638)
    best = true_error(protocol, candidates(protocol)).min()
    assert true_error(protocol, thetas).mean() <= most * best


@pytest.mark.parametrize(("settings", "least"), [({}, 4), ({"scale": "linear"}, 40)])
def test_noise_in_the_reconstructed_tail_decides_where_nothing_stops_it(settings, least):
    """Why the default is not EMS as it is: on either scale its tail is noise, and θ many times too large."""
    plain = server(0.5, Reconstructed(), **settings)
    protocol = ToPLProtocol(0.5, 1638)
    assert true_error(protocol, plain.theta)[0] > least * true_error(protocol, server(0.5).theta)[0]


@pytest.mark.parametrize("rule", [Reconstructed, CutTail, LocalPercentile])
def test_rules_take_the_estimate_of_em_or_of_ems(rule):
    plain, smooth = server(1.0, rule(smooth=False)), server(1.0, rule())
    np.testing.assert_array_equal(plain.first_reports.counts, smooth.first_reports.counts)
    assert plain.theta != smooth.theta
    again = ToPLServer.restore(plain.state())
    assert (again.rule, again.theta) == (rule(smooth=False), plain.theta)
    with pytest.raises(InvalidParameter, match="smooth"):
        rule(smooth="no")


def test_em_explains_the_reports_better_and_is_rougher_than_ems():
    heard = server(1.0)
    reports, blur = heard.first_reports, Blur.of(heard.protocol.wave.window, 1024)
    plain, smooth = (heard.distribution(smooth=flag).shares[0] for flag in (False, True))
    likelihoods = [float(reports.counts @ np.log(blur.forward(shares))) for shares in (plain, smooth)]
    assert likelihoods[0] > likelihoods[1]
    assert np.abs(np.diff(plain)).sum() > 2 * np.abs(np.diff(smooth)).sum()


def test_rules_for_comparison():
    none, high, low = (server(1.0, rule) for rule in (NoThreshold(), LocalPercentile(1.0), LocalPercentile(0.5)))
    assert none.theta == 1638
    assert low.theta < 15 < high.theta
    assert none.choice.above == pytest.approx(0)
    cut, plain = server(1.0, CutTail()), server(1.0, Reconstructed())
    assert cut.theta < plain.theta
    with pytest.raises(InvalidParameter, match="percentile"):
        LocalPercentile(0.0)


@pytest.mark.parametrize(
    ("rule", "theta"),
    [
        (SmoothTail(), 48.85),
        (Reconstructed(), 72.96),
        (CutTail(), 18.43),
        (LocalPercentile(0.95), 17.26),
        (NoThreshold(), 1000.0),
    ],
)
def test_what_each_rule_makes_of_the_same_reports(rule, theta):
    baskets = np.random.default_rng(1).geometric(0.15, 12_000)
    topl = ToPL(2.0, 1000, first=9_999, rule=rule, source=SeededSource(1), simulation=True)
    assert (topl.publish(baskets).size, topl.theta) == (2_001, theta)


def test_what_is_said_about_the_cut_is_true():
    choice = server(2.0).choice
    assert choice.above == pytest.approx(np.mean(choice.theta < VALUES), abs=0.002)
    assert choice.excess == pytest.approx(np.maximum(VALUES - choice.theta, 0).mean(), abs=0.05)
    assert choice.mean == pytest.approx(np.minimum(VALUES, choice.theta).mean(), rel=0.1)
    assert choice.square == pytest.approx((np.minimum(VALUES, choice.theta) ** 2.0).mean(), rel=0.35)


def test_a_belief_is_made_of_distributions():
    belief = smooth_tail(server(0.5).first_reports)
    assert belief.weights.sum() == pytest.approx(1)
    np.testing.assert_allclose(belief.shares.sum(axis=1), 1)
    assert (belief.shares >= 0).all()
    assert belief.weights.size > 10


@pytest.mark.parametrize("grid", [12, 1000])
@pytest.mark.parametrize("rule", [SmoothTail(), CutTail(), Reconstructed()])
def test_coarse_grids_and_few_reports_work(grid, rule):
    chosen = server(1.0, rule, VALUES[:50], first=50, grid=grid)
    assert 0 < chosen.theta <= 1638


@pytest.mark.parametrize("values", [np.zeros(5000), np.full(5000, 1638), np.repeat([0, 1638], 2500)])
def test_extreme_streams_work(values):
    chosen = server(1.0, values=values, first=5000)
    assert 0 < chosen.theta <= 1638
    assert chosen.variance > 0


def test_bumps_of_a_grid_are_those_of_each_combination():
    axes = [np.linspace(0, 1, 5), np.linspace(-4, -1, 3), np.linspace(-4, 0, 4)]
    grid = [part.ravel() for part in np.meshgrid(*axes, SHAPES, indexing="ij")]
    np.testing.assert_allclose(_all_bumps(axes, 32), _bumps(*grid, 32), rtol=1e-12)
    log_share = np.array([-2.0, -1.0])
    weights = np.ones((5, 3, 4, SHAPES.size, 2))
    shares, believed = TailFit(np.full(32, 1 / 32), [*axes, log_share], weights, 0.0, 0.0, grid[0], 0.5).members()
    bumps, share = np.repeat(_bumps(*grid, 32), 2, axis=0), np.tile(np.exp(log_share), grid[0].size)[:, None]
    np.testing.assert_allclose(shares, share * bumps + (1 - share) / 32, rtol=1e-12)
    np.testing.assert_allclose(believed, 1 / weights.size)


def test_the_infinite_shape_is_the_tail_of_exponential_values():
    """On a logarithmic scale they have the density e^(x − e^x) around the typical one, for x = 0."""
    away = (np.arange(256) + 0.5) / 256 - 0.25
    bump = _bumps(np.array([0.25]), np.log([0.1]), np.log([0.1]), np.array([math.inf]), 256)[0]
    right = away > 0
    expected = np.exp(away / 0.1 - np.exp(away / 0.1))
    ratios = bump[right][:60] / expected[right][:60]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-9)
    assert bump[-1] < 1e-200


def test_lumps_are_noise_of_the_reports_with_a_known_covariance():
    """Reports of whole numbers on the scale scatter around those of a smooth curve as the likelihood expects."""
    bins, number, reach = 64, 1 << 20, 1 / 32
    matrix = transition(ToPLProtocol(2.0, 1000).wave.window, bins)
    smooth = np.exp(-np.square((np.arange(bins) - 30) / 8) / 2)
    smooth /= smooth.sum()
    rng = np.random.default_rng(1)
    squares, plain = [], []
    for _ in range(300):
        across = rng.standard_normal(bins - 1) * (smooth[1:] + smooth[:-1]) / 2 * bins * reach
        lumpy = smooth + np.diff(np.concatenate(([0.0], across, [0.0])))
        expected = matrix @ lumpy
        counts = number * expected + np.sqrt(number * (matrix @ smooth)) * rng.standard_normal(expected.size)
        likelihood = ReportLikelihood.of(counts, matrix, smooth)
        squares.append(np.mean((likelihood.reports - likelihood.matrix @ smooth) ** 2))
        plain.append(np.mean((counts - number * matrix @ smooth) ** 2 / (number * matrix @ smooth)))
    assert np.mean(squares) == pytest.approx(1, rel=0.05)
    assert np.mean(plain) > 3


def test_whole_numbers_do_not_make_a_tail():
    """Small whole numbers are lumps on the scale. A curve through them must not make up for that far above them."""
    numbers = 1 + np.random.default_rng(1).poisson(6, 65_536)
    thetas = [server(2.0, values=numbers, seed=seed).theta for seed in range(3)]
    assert max(thetas) <= 2 * numbers.max()


def test_what_is_added_back_has_least_mean_regret():
    reports = server(0.5).first_reports
    belief, choice = smooth_tail(reports), SmoothTail().choose(reports)
    every = predicted_error(
        reports.protocol, HORIZON, candidates(reports.protocol), belief.excess(candidates(reports.protocol))
    )
    excesses = belief.excess(np.array([choice.theta]))[:, 0]

    def mean_regret(added):
        errors = predicted_error(reports.protocol, HORIZON, np.array([choice.theta]), excesses[:, None] - added)[:, 0]
        return belief.weights @ (errors / every.min(axis=1))

    assert mean_regret(choice.excess) < min(mean_regret(0.98 * choice.excess), mean_regret(1.02 * choice.excess))
    assert choice.excess < belief.weights @ excesses
    loss = choice.truncation(1638).loss(np.array([1000.0]))[0]
    assert loss == pytest.approx(1000 * (choice.excess + 2 * choice.excess_stderr), rel=1e-6)


def test_regrets_of_many_distributions_are_added_up():
    protocol = ToPLProtocol(1.0, 1000)
    shares = np.random.default_rng(1).dirichlet(np.ones(20), 1200)
    weights = np.random.default_rng(2).dirichlet(np.ones(1200))
    belief = DistributionBelief(np.linspace(10, 1000, 20), shares, weights)
    errors = predicted_error(protocol, HORIZON, candidates(protocol), belief.excess(candidates(protocol)))
    expected = candidates(protocol)[np.argmin(weights @ (errors / errors.min(axis=1, keepdims=True)))]
    assert least_regret(belief, protocol, HORIZON) == pytest.approx(expected, rel=1e-3)


def test_the_same_first_reports_give_the_same_belief():
    topl = ToPL(1.0, 500, first=60, source=SeededSource(1), simulation=True)
    topl.publish(np.arange(50) % 40)
    one, two = (smooth_tail(topl.server.first_reports) for _ in range(2))
    for name in ("values", "shares", "weights"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
