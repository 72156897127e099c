"""Streams without trust: errors next to the authors' code on the same data and ranges, alternatives, coverage, speed.

The authors' figures are of dp-cont (see `experiments.stream_reference`), five repetitions each. Where its piecewise
mechanism, with a defect that biases it, is used (ε = 2), the column with that defect removed is the smaller one and is
taken.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.mechanisms import Hybrid
from deniable.randomness import SeededSource
from deniable.streams import CutTail, LocalPercentile, NoThreshold, Reconstructed, ToPL, ToPLServer
from deniable.streams.local.simulated_stream import first_codes
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.streams.local.threshold_choice import candidates, predicted_error
from deniable_lab.benchmarks.stream_error import SHORT, Row, figure, load
from deniable_lab.benchmarks.stream_speed import Row as SpeedRow
from deniable_lab.benchmarks.stream_speed import best_seconds
from deniable_lab.experiments import stream_data
from deniable_lab.experiments.data import Data
from deniable_lab.experiments.drawn_distributions import SHAPES, Drawn, drawn, of_values
from deniable_lab.experiments.stream_data import Stream
from deniable_lab.experiments.stream_reference import BOUNDS, HORIZON, LOCAL, LOCAL_MMSE, WARMUP, Figure
from deniable_lab.experiments.streams._local import EPSILONS, expected

SIGMAS = 2.0
STRICT = {0.2: 0.4, 1.0: 0.4}
"""The largest multiple of the reference's error, where it is not 1 within two standard errors."""
CEILINGS = {("pos_length", 2.0): 8e8}
REFERENCE = {  # MSE and its relative standard error, MMSE
    name: {e: (cell.mean, cell.stderr / cell.mean, LOCAL_MMSE[name][e]) for e, cell in cells.items()}
    for name, cells in LOCAL.items()
}
MOST_REGRET = 2.0
"""How many times the least error of any θ the error may be."""
_BEST = Figure(1.0, 0.0)
_AT_HAND = (
    ("Kosarak", "kosarak_prefix_length", 42_178),
    ("POS", "pos_length", 1638),
    ("DNS", "dns_google_rps", 500),
    ("NASA", "nasa_http_rps", 100),
    ("fares", "nyc_green_taxi_fare_cents", 30_000),
    ("retail", "retail_length", 500),
    ("web sessions", "webview2_length", 1000),
    ("electricity", "vic_elec_demand_mw", 20_000),
)
LENGTHS = (60, 1440, 65_536, 1 << 19)
ALTERNATIVES: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "rounding only": {"mechanism": "rounding"},
    "piecewise only": {"mechanism": "piecewise"},
    "square wave for all": {"mechanism": "wave"},
    "no threshold": {"rule": NoThreshold()},
    "percentile 0.95": {"rule": LocalPercentile(0.95)},
    "percentile 0.995": {"rule": LocalPercentile(0.995)},
    "EMS": {"rule": Reconstructed()},
    "EMS, tail cut": {"rule": CutTail()},
    "EMS, linear scale": {"rule": Reconstructed(), "scale": "linear"},
    "EMS, tail cut, linear scale": {"rule": CutTail(), "scale": "linear"},
}


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of all repetitions of one cell."""

    squares: Floats
    mean_squares: Floats
    thetas: Floats


def measure(stream: Stream, epsilon: float, repetitions: int, **settings: Any) -> Errors:
    """MSE, MMSE and θ of each repetition, against the stream as it is, not cut."""
    truth, lengths = stream.truth(), stream.stops - stream.starts
    squares, mean_squares, thetas = (np.empty(repetitions) for _ in range(3))
    for repetition in range(repetitions):
        topl = _simulated(stream.name, epsilon, repetition, **settings)
        off = stream.answers(topl.publish(stream.values)) - truth
        squares[repetition], mean_squares[repetition] = np.mean(off**2), np.mean((off / lengths) ** 2)
        thetas[repetition] = topl.theta
    return Errors(squares, mean_squares, thetas)


def _simulated(name: str, epsilon: float, seed: int, **settings: Any) -> ToPL:
    return ToPL(epsilon, BOUNDS[name], keep=False, source=SeededSource(seed), simulation=True, **settings)


def errors(data: Data, repetitions: int) -> Iterator[Row]:
    """ToPL as it comes next to the authors' code: MSE and MMSE."""
    for name, cells in REFERENCE.items():
        stream = load(data, name)
        for epsilon, (square, relative, mean_square) in cells.items():
            measured = measure(stream, epsilon, repetitions)
            for what, ours, theirs in (
                ("MSE", figure(measured.squares), Figure(square, square * relative)),
                ("MMSE", figure(measured.mean_squares), Figure(mean_square, mean_square * relative)),
            ):
                if epsilon in STRICT:
                    met = ours.mean <= STRICT[epsilon] * theirs.mean
                else:
                    met = ours.mean <= theirs.mean + SIGMAS * math.hypot(ours.stderr, theirs.stderr)
                ceiling = CEILINGS.get((name, epsilon)) if what == "MSE" else None
                met = met and (ceiling is None or ours.mean <= ceiling)
                note = (
                    f"θ {np.median(measured.thetas):.3g} ({measured.thetas.min():.3g} to {measured.thetas.max():.3g})"
                )
                yield Row(f"{SHORT[name]} ε={epsilon:g} {what}", ours, theirs, met, note)


def alternatives(data: Data, repetitions: int) -> Iterator[Row]:
    """Other mechanisms, other rules and the linear scale; theirs: the best θ for the hybrid mechanism.

    Each θ is chosen from first reports; what error it leads to is then computed, not sampled.
    """
    for name in REFERENCE:
        stream = load(data, name)
        for epsilon in EPSILONS:
            plain = ToPLProtocol(epsilon, BOUNDS[name])
            best = Figure(min(expected(stream, plain, theta) for theta in candidates(plain)[::4]), 0.0)
            for what, settings in ALTERNATIVES.items():
                squares, thetas = np.empty(repetitions), np.empty(repetitions)
                for repetition in range(repetitions):
                    topl = _simulated(name, epsilon, repetition, **settings)
                    topl.publish(stream.values[:WARMUP])
                    thetas[repetition] = topl.theta
                    squares[repetition] = expected(stream, topl.protocol, thetas[repetition])
                note = f"θ {np.median(thetas):.3g} ({thetas.min():.3g} to {thetas.max():.3g})"
                yield Row(f"{SHORT[name]} ε={epsilon:g} {what}", figure(squares), best, None, note)


def streams_at_hand(data: Data) -> list[Stream]:
    """Streams that took part in no choice, and the made-up one of the docs."""
    files = [(name, data.file("streams", file), bound) for name, file, bound in _AT_HAND]
    streams = [stream_data.read(name, file, bound) for name, file, bound in files if file is not None]
    kosarak = next((stream for stream in streams if stream.name == "Kosarak"), None)
    if kosarak is not None:
        streams.append(replace(kosarak, bound=5000))
    return [*streams, Stream("baskets", np.random.default_rng(1).geometric(0.15, 300_000), 1000)]


def tails(data: Data, repetitions: int) -> Iterator[Row]:
    """All streams at hand, none of which took part in a choice; theirs: the least error of any θ. Target: twice it."""
    for stream in streams_at_hand(data):
        whole = of_values(f"{stream.name} B={stream.bound:,}", stream.values, stream.bound)
        for epsilon in (0.5, 1.0, 2.0):
            yield next_to_best(whole, epsilon, repetitions, stream.values[:WARMUP])


def drawn_tails(repetitions: int) -> Iterator[Row]:
    """Distributions of many shapes, with the odd seeds: those that chose nothing. The mean over each shape's draws."""
    draws = max(repetitions // 5, 2)
    for epsilon in (0.5, 1.0, 2.0):
        everything: list[float] = []
        for number, shape in enumerate(SHAPES):
            seeds = [2 * (number + len(SHAPES) * turn) + 1 for turn in range(draws)]
            regrets = [next_to_best(drawn(seed), epsilon, 1).ours.mean for seed in seeds]
            everything += regrets
            note = f"worst {max(regrets):.1f}"
            yield Row(f"{shape} ε={epsilon:g}", _figure(regrets), _BEST, None, note)
        logs = np.log(everything)
        note = f"geometric mean {np.exp(logs.mean()):.2f}, {np.mean(logs <= np.log(2)):.0%} at most 2, "
        note += f"nine in ten at most {np.quantile(everything, 0.9):.1f}, worst {max(everything):.1f}"
        yield Row(f"all shapes ε={epsilon:g}", _figure(everything), _BEST, None, note)


def _figure(numbers: list[float]) -> Figure:
    return figure(np.array(numbers))


def next_to_best(stream: Drawn, epsilon: float, repetitions: int, values: Any = None) -> Row:
    """The error of θ from first reports, as a multiple of the least error of any θ.

    Errors are predicted, for a random window of at most 2^20 values. First reports are of the given values, or drawn.
    The note has the same for answers to which the estimate of what cutting takes away is added back.
    """
    protocol = ToPLProtocol(epsilon, stream.bound)

    def errors(thetas: Floats) -> Floats:
        return predicted_error(protocol, HORIZON, thetas, stream.excess(thetas))

    chosen, added = np.empty(repetitions), np.empty(repetitions)
    for repetition in range(repetitions):
        rng = np.random.default_rng(repetition)
        mine = rng.choice(stream.values, WARMUP, p=stream.shares) if values is None else values
        topl = ToPL(epsilon, stream.bound, keep=False, source=SeededSource(repetition), simulation=True)
        topl.publish(mine)
        assert topl.server.choice is not None  # noqa: S101 - for the type checker
        chosen[repetition], added[repetition] = topl.server.choice.theta, topl.server.choice.excess
    thetas = candidates(protocol)
    every = errors(thetas)
    back = predicted_error(protocol, HORIZON, chosen, stream.excess(chosen) - added) / every.min()
    best = float(thetas[every.argmin()])
    regrets = errors(chosen) / every.min()
    ours = figure(regrets) if repetitions > 1 else Figure(float(regrets[0]), 0.0)
    note = f"θ {np.median(chosen) / best:.2f} times the best, {best:.3g}; {back.mean():.2f} with what is added back"
    if values is not None:  # a stream may change after the first reports
        first = predicted_error(protocol, HORIZON, thetas, of_values(stream.shape, values, stream.bound).excess(thetas))
        note += f"; best for the first values: {every[first.argmin()] / every.min():.2f}"
    return Row(f"{stream.shape} ε={epsilon:g}", ours, _BEST, ours.mean <= MOST_REGRET, note)


def coverage(data: Data, repetitions: int) -> Iterator[Row]:
    """How often 95 % intervals hold the truth of the truncated stream, and how far sums are off on average."""
    rng = np.random.default_rng(8)
    for name in REFERENCE:
        stream = load(data, name)
        for epsilon in (0.2, 0.5, 2.0):
            inside, off = np.empty((repetitions, len(LENGTHS))), np.empty(repetitions)
            for repetition in range(repetitions):
                topl = _simulated(name, epsilon, repetition)
                released = topl.server.release_of(topl.publish(stream.values))
                cut = np.minimum(stream.values[WARMUP:], topl.theta or math.inf)
                prefix = np.concatenate(([0.0], np.cumsum(cut)))
                for column, length in enumerate(LENGTHS):
                    starts = rng.integers(0, HORIZON - length, 2000)
                    windows = released.sums(starts, starts + length, cut=True)
                    apart = np.abs(windows.values - prefix[starts + length] + prefix[starts])
                    inside[repetition, column] = np.mean(apart <= 1.959964 * windows.stderrs)
                total = released.sum(0, HORIZON, cut=True)
                off[repetition] = (total.value - prefix[-1]) / total.stderr
            what = f"{SHORT[name]} ε={epsilon:g}"
            ours = Figure(float(inside.mean()), float(inside.mean(axis=1).std(ddof=1) / math.sqrt(repetitions)))
            by_length = ", ".join(f"{share:.3f}" for share in inside.mean(axis=0))
            met = abs(ours.mean - 0.95) <= max(0.02, SIGMAS * ours.stderr)
            yield Row(f"{what} coverage", ours, Figure(0.95, 0.0), met, by_length)
            bias = figure(off)
            yield Row(f"{what} bias / σ", bias, None, abs(bias.mean) <= 3 / math.sqrt(repetitions))


def speed() -> Iterator[SpeedRow]:
    """The devices of a simulation, the threshold, and the aggregation of ten million reports in another process."""
    values = np.random.default_rng(1).geometric(0.13, 1_000_000).astype(np.float64)
    plain = best_seconds(lambda: np.random.default_rng(2).laplace(size=values.size))
    yield SpeedRow("numpy Generator.laplace, 10^6", plain, "s")
    for epsilon in (0.5, 1.0):
        hybrid = Hybrid(epsilon, 0.0, 40.0)
        cut = np.minimum(values, 40.0)
        seconds = best_seconds(lambda hybrid=hybrid, cut=cut: hybrid.perturb(cut))  # type: ignore[misc]
        yield SpeedRow(f"10^6 hybrid reports, secure, ε={epsilon:g}", seconds, "s", 0.2)
        yield SpeedRow("… to numpy Generator.laplace", seconds / plain, "times")
    for epsilon in (0.2, 1.0, 2.0):
        server = ToPLServer(epsilon, 1638)
        codes = first_codes(server.protocol, values[: server.first], SeededSource(3))
        server._take_first(codes)
        seconds = best_seconds(lambda epsilon=epsilon, codes=codes: ToPLServer(epsilon, 1638)._take_first(codes))  # type: ignore[misc]
        yield SpeedRow(f"θ from 65,536 reports, ε={epsilon:g}", seconds, "s", 0.4)
        yield SpeedRow(f"… EMS of the same reports, ε={epsilon:g}", best_seconds(server.distribution), "s")
    for kind in ("without ids", "integer ids"):
        seconds, growth = _aggregation(kind)
        yield SpeedRow(f"10^7 reports in Arrow, {kind}", seconds, "s")
        yield SpeedRow(f"… memory beyond one of its batches, {kind}", growth, "MiB")


_CHILD = """
import resource, sys, time
import numpy as np
from deniable.randomness import SeededSource
from deniable.streams import ToPLServer, report_table
from deniable.streams.local.simulated_stream import second_codes
server = ToPLServer(1.0, 1638, theta=40.0, keep=False)
batch = 1 << 18
codes = second_codes(server.protocol, np.full(batch, 7.0), 40.0, SeededSource(1))
ids = sys.argv[1] != "without ids"
def table(number):
    uid = np.arange(number * batch, (number + 1) * batch) * 2654435761 % 2**40 if ids else None
    return report_table(server.protocol, codes, 40.0, uid)
server.push_many(table(0))
before, seconds = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, 0.0
for number in range(1, 39):
    reports = table(number)
    start = time.perf_counter()
    server.push_many(reports)
    seconds += time.perf_counter() - start
assert server.published == 39 * batch and not server.refused, server
print(seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def _aggregation(kind: str) -> tuple[float, float]:
    """Seconds for 10^7 reports in 39 batches, and how much the peak memory grew after the first of them."""
    done = subprocess.run([sys.executable, "-c", _CHILD, kind], check=True, capture_output=True, text=True)  # noqa: S603
    seconds, growth = map(float, done.stdout.split())
    return seconds, growth
