"""How often 95 % intervals of windows hold the real sum: on drawn streams of many shapes, and on real data.

Each window is asked in every repetition, so that not only the mean over windows is seen but also how the worst ones do:
those that begin or end where the stream changes. Windows of a few values have an error that is the data's, not the
noise's: it is the same in every repetition, so there the mean over windows is what counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.cli.demo.meters import SECONDS_OF_A_DAY, meter_readings
from deniable.randomness import SeededSource
from deniable.streams import ToPS
from deniable.streams.central.settings import LONGEST_WARMUP
from deniable_lab.benchmarks.stream_error import Row, figure, load
from deniable_lab.experiments import drawn_streams
from deniable_lab.experiments.data import Data
from deniable_lab.experiments.stream_reference import BOUNDS, HORIZON, OTHERS, WARMUP, Figure

BOUND = 20_000
LENGTHS = {"six hours": 21_600, "a day": SECONDS_OF_A_DAY, "a week": 7 * SECONDS_OF_A_DAY}
LEAST, MOST = 0.93, 0.98
DRAWN_HORIZON, DRAWN_WARMUP = 1 << 16, LONGEST_WARMUP
DRAWN_EPSILONS = (0.05, 0.5)
RARE_EPSILONS = (0.05, 0.1, 0.3)


def _heavy_tailed(count: int, rng: np.random.Generator) -> Floats:
    return 300 * rng.pareto(2.5, count)


def _bursty(count: int, rng: np.random.Generator) -> Floats:
    """A steady stream, and now and then some minutes of much more."""
    values = rng.gamma(2.0, 150, count)
    number = count // 6000
    starts, lengths = rng.integers(0, count, number), rng.integers(200, 1500, number)
    for start, length, height in zip(starts, lengths, rng.gamma(2.0, 800, number), strict=True):
        part = values[start : start + length]
        part += rng.gamma(4.0, height / 4, part.size)
    return values


def _stepwise(count: int, rng: np.random.Generator) -> Floats:
    """Another level every 10,000 values."""
    return rng.gamma(2.0, np.repeat(rng.choice([100, 300, 750], count // 10_000 + 1), 10_000)[:count])


SHAPES: dict[str, Callable[[int, np.random.Generator], Floats | Integers]] = {
    "meter readings": lambda count, rng: meter_readings(count, rng, BOUND),
    "heavy-tailed": _heavy_tailed,
    "bursty": _bursty,
    "stepwise": _stepwise,
}


_BODIES: dict[str, Callable[[int, np.random.Generator], Floats | Integers]] = {
    "lognormal": lambda count, rng: rng.lognormal(3, 0.6, count),
    "uniform": lambda count, rng: rng.uniform(0, 40, count),
    "gamma": lambda count, rng: rng.gamma(3.0, 30, count),
    "days": lambda count, rng: rng.poisson(30 * (1 + 0.6 * np.sin(np.arange(count) / 500))),
}
"""What rare large values are added to."""


def shares_inside(
    shape: str,
    lengths: Sequence[int],
    *,
    repetitions: int,
    days: float = 9,
    windows: int = 300,
    smoother: str = "recent",
    cut: bool = False,
) -> dict[int, Floats]:
    """By length: for each of some random windows, in which share of the repetitions its interval holds the truth."""
    whole, starts = _questions(shape, lengths, days, windows)
    plan: dict[str, Any] = {"horizon": 1 << 19, "smoother": smoother}
    measured = _measured(whole, BOUND, 0.2, starts, repetitions, cut=cut, **plan)
    return {length: covered.shares for length, covered in measured.items()}


def _questions(shape: str, lengths: Sequence[int], days: float, windows: int) -> tuple[Integers, dict[int, Integers]]:
    """A stream and where its windows begin."""
    rng = np.random.default_rng(2)
    values = SHAPES[shape](WARMUP + int(days * SECONDS_OF_A_DAY), rng)
    whole = np.clip(values, 0, BOUND).round().astype(np.int64)
    return whole, {length: rng.integers(0, values.size - WARMUP - length, windows) for length in lengths}


@dataclass(frozen=True, slots=True, eq=False)
class Covered:
    """Windows of one length: by window, in which share of releases its interval holds the truth, and is noted.

    `widths` are half the lengths of intervals over the root mean square error, for releases of one stream: 1.96 if
    errors are normal and the same everywhere. What notes add to intervals does not count.
    """

    shares: Floats
    noted: Floats
    widths: Floats

    @classmethod
    def together(cls, parts: Sequence[Covered]) -> Covered:
        """Of several streams."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in cls.__slots__))


def _measured(
    values: Integers,
    bound: float,
    epsilon: float,
    starts: dict[int, Integers],
    repetitions: int,
    *,
    cut: bool = False,
    **settings: Any,
) -> dict[int, Covered]:
    by_length: dict[int, list[Floats]] = {length: [] for length in starts}
    for seed in range(repetitions):
        tops = ToPS(epsilon, bound, **settings, source=SeededSource(seed), simulation=True)
        tops.push_many(values)
        for length, begin in starts.items():
            by_length[length].append(_asked(tops, values[tops.settings.warmup :], begin, length, cut=cut))
    result = {}
    for length, releases in by_length.items():
        inside, noted, errors, widths = np.stack(releases, axis=1)
        error = np.sqrt(np.mean(np.square(errors)))
        relative = np.median(widths) / error if error else np.inf
        result[length] = Covered(inside.mean(axis=0), noted.mean(axis=0), np.array([relative]))
    return result


def drawn(repetitions: int) -> Iterator[Row]:
    """Streams of several shapes at ε = 0.2, by length of the window; then the family, on seeds that chose nothing."""
    for shape in SHAPES:
        whole, starts = _questions(shape, list(LENGTHS.values()), 9, 300)
        measured = _measured(whole, BOUND, 0.2, starts, repetitions, horizon=1 << 19)
        for name, length in LENGTHS.items():
            yield _row(f"{shape}, {name}", measured[length])
    yield from family(max(repetitions // 10, 2))


def family(repetitions: int, draws: int = 4) -> Iterator[Row]:
    """Every shape of the family, over some draws of its parameters, by length of the window."""
    rng = np.random.default_rng(6)
    shapes = len(drawn_streams.SHAPES)
    lengths = (60, 1440, DRAWN_HORIZON // 4, 4 * DRAWN_HORIZON)
    for number, shape in enumerate(drawn_streams.SHAPES):
        for epsilon in DRAWN_EPSILONS:
            parts: dict[int, list[Covered]] = {length: [] for length in lengths}
            for draw in range(draws):
                seed = 2 * (number + shapes * draw) + 1
                stream = drawn_streams.drawn(seed, DRAWN_WARMUP + 4 * DRAWN_HORIZON)
                starts = {
                    n: rng.integers(0, 4 * DRAWN_HORIZON - n + 1, 200 if n < DRAWN_HORIZON else 1) for n in lengths
                }
                settings: dict[str, Any] = {"horizon": DRAWN_HORIZON}
                measured = _measured(stream.values, stream.bound, epsilon, starts, repetitions, **settings)
                for length in lengths:
                    parts[length].append(measured[length])
            for length in lengths:
                yield _row(f"{shape}, ε={epsilon:g}, length {length:,}", Covered.together(parts[length]))


def rare(repetitions: int) -> Iterator[Row]:
    """How often windows miss the real sum without a note, where 0.2 to 5 % of values are 30 to 1,000 times the others.

    Shares, sizes and bounds are drawn for each release. The bound is 1.2 to 10 times the largest value.
    """
    drawing, count = np.random.default_rng(77), DRAWN_WARMUP + 4 * DRAWN_HORIZON
    for body, values_of in _BODIES.items():
        for epsilon in RARE_EPSILONS:
            silent, noted = np.empty((2, repetitions))
            for seed in range(repetitions):
                ranges = np.log([(0.002, 0.05), (30, 1000), (1.2, 10)])
                share, times, loose = np.exp(drawing.uniform(*ranges.T))
                rng = np.random.default_rng([seed, 900])
                usual = np.rint(values_of(count, rng))
                large = int(times * usual.mean())
                values = np.where(rng.random(count) < share, large, usual).astype(np.int64)
                silent[seed], noted[seed] = _missed(values, large * loose, epsilon, seed)
            note = f"missed in more than a tenth of the windows {np.mean(silent > 0.1):.0%} of releases, "
            note += f"noted {noted.mean():.0%}"
            met = bool(silent.mean() <= 1 - LEAST)
            yield Row(f"rare large values, {body}, ε={epsilon:g}", figure(silent), None, met, note)


def _missed(values: Integers, bound: float, epsilon: float, seed: int) -> tuple[float, float]:
    """The share of windows that miss the truth and have no note, and of those that have one."""
    tops = ToPS(epsilon, int(bound), horizon=DRAWN_HORIZON, source=SeededSource(seed), simulation=True)
    tops.push_many(values)
    rng, published = np.random.default_rng(6), values[tops.settings.warmup :]
    parts = []
    for length in (60, 1440, DRAWN_HORIZON // 4):
        starts = rng.integers(0, published.size - length + 1, 100)
        parts.append(_asked(tops, published, starts, length, cut=False)[:2])
    inside, noted = np.concatenate(parts, axis=1).astype(bool)
    return float(np.mean(~inside & ~noted)), float(noted.mean())


def real(data: Data, repetitions: int) -> Iterator[Row]:
    """Every stream at hand at two ε, by length of the window."""
    rng = np.random.default_rng(8)
    for name in BOUNDS | OTHERS:
        stream = load(data, name)
        for epsilon in (0.05, 0.5):
            starts = {
                n: rng.integers(0, HORIZON - n + 1, 400 if n < HORIZON else 1) for n in (60, 1440, 65_536, HORIZON)
            }
            measured = _measured(stream.values, stream.bound, epsilon, starts, repetitions)
            for length, covered in measured.items():
                yield _row(f"{name} ε={epsilon:g} length {length:,}", covered)


def _row(what: str, covered: Covered) -> Row:
    shares, noted = covered.shares, covered.noted.mean()
    note = f"worst twentieth of the windows {np.quantile(shares, 0.05):.0%}, "
    note += f"noted {noted:.0%}, half a width over the error {np.median(covered.widths):.1f}"
    if shares.size == 1:
        return Row(what, Figure(float(shares[0]), 0.0), Figure(0.95, 0.0), None, note)
    return Row(what, figure(shares), Figure(0.95, 0.0), bool(LEAST <= shares.mean() <= MOST), note)


def _asked(tops: ToPS, values: Integers, starts: Integers, length: int, *, cut: bool) -> Floats:
    """Of each window: 1 if its 95 % interval holds the real sum, or with `cut` that of the cut values, and 1 if noted.

    Then its error, and half of the interval's length without what a note adds.
    """
    theta = tops.learnt.theta if tops.learnt and cut else np.iinfo(np.int64).max
    prefix = np.concatenate(([0], np.cumsum(np.minimum(values, theta))))
    answers = tops.released.sums(starts, starts + length, cut=cut)
    truth, (low, high) = prefix[starts + length] - prefix[starts], answers.intervals()
    inside, width = (low <= truth) & (truth <= high), (high - low - answers.beyond) / 2
    return np.stack((inside, answers.beyond > 0, answers.values - truth, width)).astype(np.float64)
