"""Quantiles from prefix counts with known errors: exact without noise, and covered with it."""

import numpy as np
import pytest

import deniable as dn
from deniable.engines.local.local_engine import LocalEngine
from deniable.queries.answers.quantiles import PrefixCounts, quantile

VALUES = np.arange(60.0)
REPETITIONS = 400


def prefixes(values, counts, total, error):
    """Counts whose errors are independent and alike; the total is known."""
    crosses = np.zeros((len(values), 2, 2))
    crosses[:, 0, 0] = error**2
    return PrefixCounts(values, counts, total, crosses, np.zeros_like(crosses), 1e12, False)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.77, 1.0])
def test_without_noise_they_are_those_of_numpy(share):
    rows = np.random.default_rng(3).integers(0, 60, 501)
    counts = np.cumsum(np.bincount(rows, minlength=60)).astype(float)
    exact = [quantile(prefixes(VALUES, counts, 501.0, 0.0), share, kind, 0.95) for kind in ("cont", "disc")]
    assert exact[0].value == pytest.approx(np.quantile(rows, share))
    assert exact[1].value == np.quantile(rows, share, method="inverted_cdf")
    assert exact[1].interval == (exact[1].value, exact[1].value)


@pytest.mark.parametrize("shape", ["normal", "skewed", "spiky", "ties"])
def test_intervals_cover_with_noise(shape):
    random = np.random.default_rng(5)
    rows = {
        "normal": np.clip(random.normal(30, 9, 4_000).round(), 0, 59),
        "skewed": np.clip(random.exponential(8, 4_000).round(), 0, 59),
        "spiky": np.where(random.random(4_000) < 0.5, random.choice([6, 20, 30], 4_000), random.integers(0, 60, 4_000)),
        "ties": random.choice([12, 24, 36], 4_000),
    }[shape].astype(int)
    counts = np.cumsum(np.bincount(rows, minlength=60)).astype(float)
    covered = 0
    for _ in range(REPETITIONS):
        noisy = counts + random.normal(0, 80, 60)
        low, high = quantile(prefixes(VALUES, noisy, 4_000.0, 80.0), 0.4, "disc", 0.95).interval
        covered += low <= np.quantile(rows, 0.4, method="inverted_cdf") <= high
    # 95 % of 400 is 380, with a standard deviation of 4.4: below 354 once in 10^9 runs.
    assert covered >= 354


def test_counts_that_fall_are_made_monotone():
    noisy = np.array([0.0, 30.0, 20.0, 50.0, 40.0, 100.0])
    estimate = quantile(prefixes(np.arange(6.0), noisy, 100.0, 5.0), 0.24, "disc", 0.95)
    assert estimate.value == 1.0  # 30 and 20 are 25 and 25


@pytest.mark.parametrize("largest", [99, 999])
def test_a_thousand_quantiles_need_no_more_passes_than_one(monkeypatch, largest):
    """All prefix counts of an attribute come from one pass over the reports; another question counts all rows."""
    rows = np.arange(2_000)
    collection = dn.Collection(dn.Table("t", x=dn.Ordinal(0, largest)), epsilon=3.0)
    reports = collection.perturb(t={"uid": rows, "x": rows % 100}, source=dn.SeededSource(1), simulation=True)
    passes = []
    for name in ("moments", "cell_pairs"):  # a pass over reports, or one that counts pairs of cells once for all
        kept = getattr(LocalEngine, name)

        def counted(engine, *given, kept=kept, name=name):
            passes.append(name)
            return kept(engine, *given)

        monkeypatch.setattr(LocalEngine, name, counted)
    seen = []
    for count in (1, 1_000):
        items = ", ".join(f"QUANTILE_DISC(x, {(number + 0.5) / count}) AS q{number}" for number in range(count))
        assert len(dn.connect(reports).sql(f"SELECT {items} FROM t").answers) == count
        seen.append(list(passes))
        passes.clear()
    assert seen[0] == seen[1]
    assert len(seen[0]) == 2
