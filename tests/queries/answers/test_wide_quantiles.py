"""Quantiles of more values than can be counted one by one: the same as by single values, up to short steps."""

import math

import numpy as np
import pytest

import deniable as dn
from deniable.queries.answers.quantiles import PrefixCounts, quantile
from deniable.queries.answers.wide_quantiles import FEWEST_BORDERS, MOST_BORDERS, borders_at_once, narrowed
from deniable.queries.parsing.quantile_questions import CONTINUOUS, AskedQuantile

VALUES = np.arange(0, 60_000, 3)


def noisy_counts(error, seed):
    """Rows at most each value: half are 0, the others far out, with errors that change slowly, as those of trees."""
    exact = 500 + 500 * np.minimum(VALUES / VALUES[-1], 1.0) ** 0.3
    errors = np.random.default_rng(seed).standard_normal(30)
    return exact + error * np.interp(VALUES, np.linspace(0, VALUES[-1], 30), errors) * (VALUES[-1] > VALUES)


def prefix_of(values, counts, error):
    """Errors of single counts are known, and nothing else is noisy."""
    crosses = np.zeros((len(values), 2, 2))
    crosses[:, 0, 0] = error**2
    made = PrefixCounts(values.astype(float), counts, 1_000.0, crosses, np.zeros_like(crosses), 1e12, False)
    crosses[:, 1, 1] = 1_000.0
    return made


def asked(share):
    return AskedQuantile("q", CONTINUOUS, None, share, None)


@pytest.mark.parametrize("shares", [(0.75,), (0.2,), (0.6, 0.9, 0.99)])
@pytest.mark.parametrize("error", [0.0, 5.0])
def test_intervals_are_those_of_single_values_up_to_their_last_steps(shares, error):
    calls = []

    def counted(borders):
        at = np.searchsorted(VALUES, borders)
        calls.append(len(at))
        return {(): prefix_of(VALUES[at], counts[at], error)}

    def of(prefix, wanted):
        return quantile(prefix, wanted.share, wanted.kind, 0.95)

    counts = noisy_counts(error, seed=1)
    whole = prefix_of(VALUES, counts, error)
    known = narrowed(VALUES.tolist(), MOST_BORDERS, counted, [asked(share) for share in shares], of)[()]
    assert len(calls) < 8
    assert len(calls) > 1 or shares == (0.2,)  # which is the first value of all
    assert max(calls) <= 5 * MOST_BORDERS
    for share in shares:
        (low, high), (least, most) = of(known, asked(share)).interval, of(whole, asked(share)).interval
        assert low <= least
        assert high >= most
        assert high - low <= 1.125 * (most - least) + 6


def test_values_that_are_few_are_counted_one_by_one_and_too_many_groups_are_refused_as_before():
    assert borders_at_once(1_000, 10) == 0
    assert borders_at_once(20_000, 1) == MOST_BORDERS
    assert FEWEST_BORDERS <= borders_at_once(20_000, 30) <= MOST_BORDERS
    assert borders_at_once(20_000, 10_000) == 0


def test_an_attribute_of_more_values_than_groups_are_allowed_has_quantiles():
    paid, kind = np.arange(3_000) ** 2 % 1_999, np.arange(3_000) % 6
    table = dn.Table("orders", paid=dn.Ordinal(0, 999.5, step=0.5), kind=dn.Ordinal(0, 5))
    collection = dn.Collection(table, epsilon=math.inf, design="mg")
    frame = {"uid": np.arange(3_000), "paid": paid / 2, "kind": kind}
    db = dn.connect(collection.perturb(orders=frame, source=dn.SeededSource(1), simulation=True))
    found = db.sql("SELECT kind, MEDIAN(paid) AS b, QUANTILE_DISC(paid, 0.9) AS c FROM orders GROUP BY kind")
    for name, share, method in (("b", 0.5, "linear"), ("c", 0.9, "inverted_cdf")):
        values = [found.answers[name][number].value for number in range(6)]
        assert values == [np.quantile(paid[kind == number] / 2, share, method=method) for number in range(6)]
