"""How often 95 % intervals of quantiles, correlations, regressions and averages of few people hold the truth.

Every release has people of its own. What is covered is the truth about these people, as plain SQL would answer it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import deniable as dn
from deniable.arrays import Floats, Integers
from deniable_lab.experiments.drawn_values import LARGEST, SHAPES

EPSILON = 2.0
USERS = 4_000
PAIR_USERS, PAIR_EPSILON = 20_000, 4.0
"""Of correlations and regressions, which are unclear with fewer."""
SHARES = (0.1, 0.5, 0.9)
CORRELATIONS = (0.0, 0.5, 0.9)
AWAY = (1, 2, 4)
"""How many standard errors the number of people in an average is from zero."""
_AMOUNTS = dn.Table("t", x=dn.Ordinal(0, LARGEST))
_PAIRS = dn.Table("t", x=dn.Ordinal(0, 39), z=dn.Ordinal(0, 39))
_GROUPS = dn.Table("t", g=dn.Ordinal(0, 9), z=dn.Ordinal(0, 39))
_FEW = "SELECT AVG(z) FROM t WHERE g < 3"
_LINES = {
    "CORR": (-1.0, 1.0),
    "COVAR_POP": (-(19.5**2), 19.5**2),
    "REGR_SLOPE": (-2.0, 2.0),
    "REGR_INTERCEPT": (-39.0, 39.0),
    "REGR_R2": (0.0, 1.0),
}
"""Functions of two attributes. Lengths are shares of these ranges, which slopes and intercepts may leave."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """One kind of answer over many releases."""

    kind: str
    data: str
    asked: str
    releases: int
    covered: float
    """The share of 95 % intervals that hold the truth."""
    width: float
    """The mean length of the intervals, as a share of what is possible."""


def measure(releases: int, seed: int, advance: Callable[[int], None] = lambda _: None) -> Iterator[Coverage]:
    """Coverage of all kinds of answers. `advance` is told of each release."""
    for name, draw in SHAPES.items():
        yield from _quantiles(name, draw, releases, seed, advance)
    for correlation in CORRELATIONS:
        yield from _lines(correlation, releases, seed, advance)
    for away in AWAY:
        yield _average(away, releases, seed, advance)


def as_csv(rows: Iterable[Coverage]) -> str:
    """All rows as comma-separated values, shares with four digits."""
    lines = ["answer,data,asked,releases,covered,length"]
    lines += [f'{row.kind},"{row.data}",{row.asked},{row.releases},{row.covered:.4f},{row.width:.4f}' for row in rows]
    return "\n".join(lines) + "\n"


def parts() -> int:
    """How many times releases are made."""
    return len(SHAPES) + len(CORRELATIONS) + len(AWAY)


def _database(collection: dn.Collection, seed: int, **columns: Any) -> dn.Database:
    frame = {"uid": np.arange(len(next(iter(columns.values())))), **columns}
    return dn.connect(collection.perturb(t=frame, source=dn.SeededSource(seed), simulation=True))


def _quantiles(
    name: str, draw: Callable[..., Integers], releases: int, seed: int, advance: Callable[[int], None]
) -> Iterator[Coverage]:
    collection = dn.Collection(_AMOUNTS, epsilon=EPSILON)
    items = ", ".join(f"QUANTILE_CONT(x, {share}) AS q{number}" for number, share in enumerate(SHARES))
    hits, lengths = np.zeros(len(SHARES)), np.zeros(len(SHARES))
    for release in range(releases):
        rng = np.random.default_rng([seed, release])
        x = draw(rng, USERS)
        answers = _database(collection, seed * 10**6 + release, x=x).sql(f"SELECT {items} FROM t").answers  # noqa: S608 - ours
        for number, share in enumerate(SHARES):
            (estimate,) = answers[f"q{number}"]
            low, high = estimate.interval
            hits[number] += low <= np.quantile(x, share) <= high
            lengths[number] += (high - low) / LARGEST
        advance(1)
    for number, share in enumerate(SHARES):
        yield Coverage("quantile", name, f"{share:g}", releases, hits[number] / releases, lengths[number] / releases)


def _lines(correlation: float, releases: int, seed: int, advance: Callable[[int], None]) -> Iterator[Coverage]:
    collection = dn.Collection(_PAIRS, epsilon=PAIR_EPSILON)
    items = ", ".join(f"{function}(z, x) AS {function}" for function in _LINES)
    hits, lengths = dict.fromkeys(_LINES, 0), dict.fromkeys(_LINES, 0.0)
    for release in range(releases):
        rng = np.random.default_rng([seed, release])
        first, second = rng.normal(size=(2, PAIR_USERS))
        x, z = _cut(first), _cut(correlation * first + np.sqrt(1 - correlation**2) * second)
        answers = _database(collection, seed * 10**6 + release, x=x, z=z).sql(f"SELECT {items} FROM t").answers  # noqa: S608 - ours
        for function, truth in _line(x, z).items():
            (estimate,) = answers[function]
            (low, high), (least, most) = estimate.interval, _LINES[function]
            hits[function] += low <= truth <= high
            lengths[function] += (min(high, most) - max(low, least)) / (most - least)
        advance(1)
    for function in _LINES:
        covered, length = hits[function] / releases, lengths[function] / releases
        yield Coverage(function, "normal", f"{correlation:g}", releases, covered, length)


def _line(x: Integers, z: Integers) -> dict[str, float]:
    """What plain SQL says of the line through the points, z over x."""
    (spread, both), (_, other) = np.cov(x, z, bias=True)
    slope = both / spread
    correlation = both / np.sqrt(spread * other)
    return {
        "CORR": correlation,
        "COVAR_POP": both,
        "REGR_SLOPE": slope,
        "REGR_INTERCEPT": z.mean() - slope * x.mean(),
        "REGR_R2": correlation**2,
    }


def _cut(values: Floats) -> Integers:
    """Normal values on the domain of 40."""
    return np.clip(np.rint(20 + 6 * values), 0, 39).astype(np.int64)


def _average(away: int, releases: int, seed: int, advance: Callable[[int], None]) -> Coverage:
    collection, hits, length = dn.Collection(_GROUPS, epsilon=EPSILON), 0, 0.0
    (forecast,) = collection.forecast("SELECT COUNT(*) FROM t WHERE g < 3", users=USERS).predictions
    members = round(away * forecast.stderr)
    for release in range(releases):
        rng = np.random.default_rng([seed, release])
        g = np.where(np.arange(USERS) < members, rng.integers(0, 3, USERS), rng.integers(3, 10, USERS))
        z = np.clip(np.rint(rng.normal(25, 5, USERS)), 0, 39).astype(np.int64)
        low, high = _interval(_database(collection, seed * 10**6 + release, g=g, z=z), _FEW)
        hits += low <= z[g < 3].mean() <= high
        length += (high - low) / 39
        advance(1)
    asked = f"{away} standard error{'s' if away > 1 else ''}"
    return Coverage("AVG", f"{members:,} people", asked, releases, hits / releases, length / releases)


def _interval(database: dn.Database, text: str) -> tuple[float, float]:
    return database.sql(text).scalar().interval
