"""Subset selection: its law in rationals, its draws against the law, and where it is the best oracle."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import deniable as dn
from deniable.errors import InvalidParameter
from deniable.exact import exp_below, exp_between
from deniable.mechanisms import LocalHashing, RandomizedResponse, SubsetSelection
from deniable.mechanisms._subset_draws import _plain, _unrank, binomials
from deniable.mechanisms.frequency_oracle import FrequencyOracle, MaskedCells
from deniable.mechanisms.oracles import ORACLES, WITH_SUBSETS, best_oracle
from deniable.mechanisms.subset_selection import MOST_MASKED_CELLS, best_size, mean_spread, spread, unranked

EPSILONS = st.floats(min_value=0.01, max_value=20)


@given(EPSILONS, st.integers(2, 7), st.data())
@settings(deadline=None, max_examples=40)
def test_the_law_keeps_its_promise_and_estimates_are_unbiased(epsilon, k, data):
    mechanism = SubsetSelection(epsilon, k, data.draw(st.none() | st.integers(1, k - 1)))
    assert isinstance(mechanism, FrequencyOracle)
    laws = [mechanism.law(value) for value in range(k)]
    low, high = exp_between(Fraction(epsilon))
    assert all(sum(law) == 1 for law in laws)
    worst = max(max(column) / min(column) for column in zip(*laws, strict=True) if any(column))
    assert high * (1 - Fraction(1, 10**9)) <= worst <= low
    p, q = mechanism.p, mechanism.q
    for value, cell in itertools.product(range(k), repeat=2):
        mean = sum(chance * ((y >> cell & 1) - q) / (p - q) for y, chance in enumerate(laws[value]))
        assert mean == (value == cell)


@pytest.mark.parametrize(("k", "size"), [(4, 2), (5, 2), (6, 3), (7, 1)])
def test_chances_of_supports_follow_from_the_law(k, size):
    oracle = SubsetSelection(1.0, k, size)
    law = oracle.law(0)

    def chance(*cells: int) -> Fraction:
        return sum((law[y] for y in range(2**k) if all(y >> cell & 1 for cell in cells)), Fraction(0))

    assert (chance(0), chance(1), chance(0, 1), chance(1, 2)) == (oracle.p, oracle.q, *oracle.pairs)
    assert oracle.support == MaskedCells(size)
    assert oracle.supports(np.arange(k), 0, 5).tolist() == [bool(5 >> cell & 1) for cell in range(k)]


class Script:
    """A source whose every draw is one of all possible ones, and what it was asked for."""

    def __init__(self, answers):
        self.answers, self.bounds = iter(answers), []

    def __call__(self, bound: int) -> int:
        self.bounds.append(bound)
        return next(self.answers)


@pytest.mark.parametrize(("k", "size"), [(4, 2), (5, 2), (6, 3), (5, 4)])
def test_a_device_draws_the_law_and_asks_for_the_same_draws_whatever_it_holds(k, size):
    oracle = SubsetSelection(1.0, k, size)
    with_it, without = math.comb(k - 1, size - 1), math.comb(k - 1, size)
    threshold = math.floor(oracle.p * 2**64)
    asked = set()
    for cell in range(k):
        counted = Counter()
        for coin, first, second in itertools.product((threshold - 1, threshold + 1), range(with_it), range(without)):
            script = Script([coin, first, second])
            seed, y = oracle.draw_report(cell, script)
            assert seed == 0
            asked.add(tuple(script.bounds))
            weight = oracle.p if coin < threshold else 1 - oracle.p
            counted[y] += weight / (with_it * without)
        assert [counted[y] for y in range(2**k)] == list(oracle.law(cell))
    assert asked == {(2**64, with_it, without)}


def test_ranks_number_all_sets_in_order():
    for cells, size in [(1, 0), (1, 1), (5, 0), (5, 2), (6, 6), (8, 3)]:
        sets = [unranked(rank, size, cells) for rank in range(math.comb(cells, size))]
        assert sets == sorted(sum(1 << c for c in chosen) for chosen in itertools.combinations(range(cells), size))


def test_bulk_ranks_are_those_of_a_device():
    rng = np.random.default_rng(4)
    cells = rng.integers(1, MOST_MASKED_CELLS, 300)
    sizes = rng.integers(0, cells // 2 + 1)
    last = [math.comb(int(n), int(i)) - 1 for n, i in zip(cells, sizes, strict=True)]
    ranks = np.array([rng.choice([0, top, int(rng.integers(0, top + 1))]) for top in last], dtype=np.int64)
    expected = [unranked(int(r), int(i), int(n)) for r, i, n in zip(ranks, sizes, cells, strict=True)]
    assert _plain(ranks, sizes, cells, int(cells.max())).tolist() == expected
    compiled = np.empty_like(ranks)
    _unrank(ranks, sizes, cells, binomials(), compiled)
    assert compiled.tolist() == expected
    assert binomials()[62, 31] == math.comb(62, 31) < 2**63  # the most sets of any report


def agrees(mechanism: SubsetSelection, law: tuple[Fraction, ...], cell: int) -> bool:
    from scipy.stats import binom

    count = 500_000
    drawn = mechanism.perturb(np.full(count, cell), source=dn.SeededSource(3), simulation=True)
    counts = np.bincount(drawn, minlength=len(law))
    chances = np.array([float(chance) for chance in law])
    tail = 1e-9 / (2 * len(law))  # a correct sampler fails with probability ≤ 1e-9
    low, high = binom.ppf(tail, count, chances), binom.isf(tail, count, chances)
    return bool(np.all((low <= counts) & (counts <= high)))


def test_bulk_draws_follow_the_law_and_the_test_has_teeth():
    law = SubsetSelection(2.0, 6, 2).law(4)
    assert agrees(SubsetSelection(2.0, 6, 2), law, 4)
    for wrong in (1.9, 2.1):
        assert not agrees(SubsetSelection(wrong, 6, 2), law, 4)


@pytest.mark.parametrize("k", [7, 25, MOST_MASKED_CELLS])
def test_estimates_are_near_the_truth_up_to_the_largest_domain(k):
    mechanism, count = SubsetSelection(1.0, k), 20_000
    values = np.arange(count) % k
    reports = mechanism.perturb(values, source=dn.SeededSource(5), simulation=True)
    assert (np.bitwise_count(reports) == mechanism.omega).all()
    assert (reports >= 0).all()
    truth = np.bincount(values, minlength=k)
    errors = (mechanism.estimate(reports) - truth) / np.sqrt(mechanism.variance(count, truth))
    assert np.abs(errors).max() < 5
    one = SubsetSelection(1.0, k).perturb_one(k - 1)
    assert one.bit_count() == mechanism.omega


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.5, 1.0, 1.7, 2.0, 3.0])
def test_the_size_has_the_lowest_mean_variance_of_all(epsilon):
    power = exp_below(epsilon)
    for k in (2, 3, 4, 6, 7, 10, 25, 40, MOST_MASKED_CELLS):
        size, exact = best_size(epsilon, k), SubsetSelection(epsilon, k)
        p, q, signal = exact.p, exact.q, exact.p - exact.q
        assert q * (1 - q) / signal**2 == spread(power, k, size) / (power - 1) ** 2
        mean = (p * (1 - p) + (k - 1) * q * (1 - q)) / k / signal**2
        assert mean == mean_spread(power, k, size) * Fraction(k - 1, k) ** 2 / (power - 1) ** 2 - Fraction(k - 1, k * k)
        if size > 1:
            assert mean_spread(power, k, size) == min(mean_spread(power, k, other) for other in range(1, k))
            assert spread(power, k, size) < spread(power, k, 1)


def variance_form(oracle: FrequencyOracle, true: int) -> np.ndarray:
    """The covariance of the estimates of all cells by one report."""
    p, q, (tied, apart) = float(oracle.p), float(oracle.q), map(float, oracle.pairs)
    joint = np.full((oracle.k, oracle.k), apart)
    joint[true, :] = joint[:, true] = tied
    np.fill_diagonal(joint, q)
    joint[true, true] = p
    mean = np.where(np.arange(oracle.k) == true, p, q)
    return (joint - np.outer(mean, mean)) / (p - q) ** 2


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 1.5, 2.0, 2.7])
def test_where_it_is_chosen_questions_get_better(epsilon):
    """Whatever weights cells have: an empty cell, and any question where all cells are held alike.

    A cell that everybody holds has up to a tenth more variance, where ε is 1.5 to 2.7 and the view hashed before.
    """
    ratios = []
    for k in range(2, MOST_MASKED_CELLS + 1, 1 if epsilon < 1 else 3):
        before, now = best_oracle(ORACLES, epsilon, k), best_oracle(WITH_SUBSETS, epsilon, k)
        if now == before:
            assert best_size(epsilon, k) == 1
            continue
        assert now.label == "subset"
        old, new = ([variance_form(oracle, true) for true in range(k)] for oracle in (before, now))
        mean_old, mean_new = sum(old) / k, sum(new) / k
        assert np.linalg.eigvalsh(mean_old - mean_new).min() > -1e-9 * np.trace(mean_old)
        assert new[0][1, 1] < old[0][1, 1]
        assert new[0][0, 0] < 1.11 * old[0][0, 0]
        ratios.append(new[0][1, 1] / old[0][1, 1])
    assert min(ratios) < 0.9


def test_the_choice_never_hangs_on_a_rounded_number():
    """Hashing is far enough away, and randomized response is told apart in exact numbers."""
    for epsilon in (0.01, 0.2, 0.5, 1.0, 1.5, 2.0, 3.0, 3.3):
        for k in range(2, MOST_MASKED_CELLS + 1):
            cells = SubsetSelection.response_cells(epsilon, k)
            if best_size(epsilon, k) > 1:
                assert cells < k
                assert cells < 0.98 * LocalHashing.response_cells(epsilon, k)
            else:
                assert cells == math.inf
    assert SubsetSelection.response_cells(1.0, MOST_MASKED_CELLS + 1) == math.inf
    assert SubsetSelection.response_cells(1.0, 1) == math.inf


def test_one_cell_is_randomized_response():
    for epsilon, k in ((1.0, 5), (3.0, 20), (math.inf, 30)):
        mine, other = SubsetSelection(epsilon, k), RandomizedResponse(epsilon, k)
        assert mine.omega == 1
        assert (mine.p, mine.q, mine.pairs) == (other.p, other.q, other.pairs)
    assert SubsetSelection(math.inf, 3).law(1) == (0, 0, 1, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(("k", "size"), [(1, None), (64, None), (5, 0), (5, 5), (5, 2.0)])
def test_impossible_settings_are_refused(k, size):
    with pytest.raises(InvalidParameter):
        SubsetSelection(1.0, k, size)
