"""A third oracle is a class and a line in the list: everything else follows from its interface."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import deniable as dn
from deniable.accounting import Neighbours, Spending, Unit
from deniable.arrays import Integers
from deniable.engines.kernel.cell_pairs import by_view, counted_pairs
from deniable.exact import exp_below, fraction_coin
from deniable.mechanisms._counting import unbiased_counts
from deniable.mechanisms.frequency_oracle import ComputedCells, FrequencyOracle, second_moments
from deniable.mechanisms.local_hashing import LocalHashing
from deniable.mechanisms.oracles import ORACLES
from deniable.mechanisms.randomized_response import RandomizedResponse

CELLS = 12


def draw_pairs(oracles, which, cells, source):
    """Reports of `PairSelection`, one oracle after the other."""
    y = np.empty(cells.size, dtype=np.int64)
    for number in np.unique(which):
        rows = np.flatnonzero(which == number)
        y[rows] = [oracles[number].draw_report(int(cell), source.randbelow)[1] for cell in cells[rows]]
    return np.zeros(cells.size, dtype=np.uint32), y


@dataclass(frozen=True, slots=True)
class PairSelection:
    """Subset selection with two cells: report a pair that holds the true cell with probability p  [WHW16; YB18]."""

    epsilon: float
    k: int
    label = "pairs"
    seeds = 1
    support = ComputedCells()
    draw_reports = staticmethod(draw_pairs)

    @property
    def p(self) -> Fraction:
        power = exp_below(self.epsilon)
        return 2 * power / (2 * power + self.k - 2)

    @property
    def q(self) -> Fraction:
        return self.p / (self.k - 1) + (1 - self.p) * 2 / (self.k - 1)

    @property
    def pairs(self) -> tuple[Fraction, Fraction]:
        return self.p / (self.k - 1), (1 - self.p) / math.comb(self.k - 1, 2)

    @property
    def outcomes(self) -> int:
        return math.comb(self.k, 2)

    @property
    def spends(self) -> Spending:
        return Spending(Unit.REPORT, Neighbours.ANY, self.epsilon)

    @classmethod
    def response_cells(cls, epsilon: float, cells: int) -> float:
        return 0.5 if cells == CELLS else math.inf

    @classmethod
    def most_outcomes(cls, epsilon: float) -> int:
        return math.comb(CELLS, 2)

    def law(self, value: int, seed: int = 0) -> tuple[Fraction, ...]:
        inside, outside = self.p / (self.k - 1), (1 - self.p) / math.comb(self.k - 1, 2)
        return tuple(inside if value in pair else outside for pair in combinations(range(self.k), 2))

    def draw_report(self, cell: int, randbelow) -> tuple[int, int]:
        inside = fraction_coin(self.p, randbelow)
        chosen = [number for number, pair in enumerate(combinations(range(self.k), 2)) if (cell in pair) == inside]
        return 0, chosen[randbelow(len(chosen))]

    def supports(self, cells, seeds, y):
        first, second = np.array(list(combinations(range(self.k), 2))).T
        return (first[y] == cells) | (second[y] == cells)

    def estimate_cells(self, seeds, y: Integers):
        supports = self.supports(np.arange(self.k)[None, :], None, y[:, None]).sum(axis=0)
        return unbiased_counts(supports, y.size, self.p, self.q)


@pytest.fixture
def registered():
    ORACLES.append(PairSelection)
    yield
    ORACLES.remove(PairSelection)


def people(count: int) -> pa.Table:
    return pa.table({"uid": np.arange(count), "age": np.arange(count) % CELLS})


def collection(epsilon: float = 2.0) -> dn.Collection:
    return dn.Collection(dn.Table("people", age=dn.Ordinal(0, CELLS - 1)), epsilon=epsilon, design="hio", fanout=CELLS)


def test_a_third_oracle_needs_a_line_in_the_list_and_nothing_else(registered):
    survey, count = collection(), 12_000
    assert [view.oracle.label for view in survey.design_of("people")] == ["none", "pairs"]
    reports = survey.perturb(people=people(count), source=dn.SeededSource(1), simulation=True)
    database = dn.connect(reports)
    question = "SELECT COUNT(*) AS young FROM people WHERE age < 4"
    answer = database.sql(question).scalar()
    assert abs(answer.value - count / 3) < 5 * answer.stderr
    assert survey.forecast(question, users=count).scalar().stderr == pytest.approx(answer.stderr, rel=0.05)
    every = database.sql("SELECT age, COUNT(*) AS users FROM people GROUP BY age ORDER BY age")
    columns = [np.asarray(reports["people"][name]) for name in ("view", "seed", "y")]
    (_, finest), mine = survey.design_of("people"), columns[0] == 1
    expected = finest.oracle.estimate_cells(columns[1][mine], columns[2][mine]) * (count / mine.sum())
    np.testing.assert_allclose(np.asarray(every.to_arrow()["users"]), expected)


def test_cells_that_its_reports_support_together_are_counted(registered):
    survey = collection()
    reports = survey.perturb(people=people(500), source=dn.SeededSource(2), simulation=True)
    columns = [np.asarray(reports["people"][name]) for name in ("view", "seed", "y")]
    pairs = by_view(survey.design_of("people"), counted_pairs(survey.design_of("people"), *columns))
    supported = Counter(columns[2][columns[0] == 1].tolist())
    for y, pair in enumerate(combinations(range(CELLS), 2)):
        assert pairs[1][pair] == supported[y]
    assert pairs[0].tolist() == [[int((columns[0] == 0).sum())]]


def test_its_reports_leave_devices_and_are_checked(registered):
    survey = collection()
    (view,) = [view for view in survey.design_of("people") if view.cells > 1]
    sent = Counter()
    for _ in range(200):
        report = survey.client().report("people", {"age": 3})
        sent[report.view] += 1
        assert report.seed == 0
        assert report.y < (view.outcomes if report.view == view.number else 1)
    assert set(sent) == {0, view.number}


@pytest.mark.parametrize("oracle", [RandomizedResponse(1.0, 5), LocalHashing(1.0, 5), PairSelection(1.0, 5)])
def test_second_moments_follow_from_the_law(oracle):
    assert isinstance(oracle, FrequencyOracle)
    rng = np.random.default_rng(2)
    alpha, beta = rng.normal(size=(2, oracle.k))
    p, q, (tied, apart) = float(oracle.p), float(oracle.q), map(float, oracle.pairs)
    for true in range(oracle.k):
        joint = np.full((oracle.k, oracle.k), apart)
        joint[true, :] = joint[:, true] = tied
        np.fill_diagonal(joint, q)
        joint[true, true] = p
        mean = np.where(np.arange(oracle.k) == true, p, q)
        product = (joint - q * mean[:, None] - q * mean[None, :] + q * q) / (p - q) ** 2
        moment = second_moments(oracle).of(
            alpha @ beta,
            alpha[true] * beta[true],
            (alpha.sum(), beta.sum()),
            (alpha[true], beta[true]),
            lambda left, right: left[0] * right[1],
        )
        assert moment == pytest.approx(alpha @ product @ beta)


@pytest.mark.parametrize("oracle", [RandomizedResponse(1.0, 5), PairSelection(1.0, 5)])
def test_chances_of_supports_follow_from_the_law(oracle):
    law = oracle.law(0)
    assert sum(law) == 1
    supports = [oracle.supports(cell, 0, np.arange(oracle.outcomes)).tolist() for cell in (0, 1, 2)]

    def chance(*cells: int) -> Fraction:
        return sum((law[y] for y in range(oracle.outcomes) if all(supports[cell][y] for cell in cells)), Fraction(0))

    assert (chance(0), chance(1), chance(0, 1), chance(1, 2)) == (oracle.p, oracle.q, *oracle.pairs)
