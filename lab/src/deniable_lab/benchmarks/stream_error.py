"""Errors of published streams next to those of the authors' code, on the same data and the same 200 ranges.

Everything is seeded by the repetition's number, so a run can be repeated; no figure is compared with itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.randomness import SeededSource
from deniable.streams import (
    NME,
    PAK,
    Expectation,
    FixedPercentile,
    Hc16,
    PAKPercentile,
    PaperScore,
    Perturber,
    PublicThreshold,
    Publisher,
    ToPS,
    choose_plan,
)
from deniable.streams.central.threshold import Situation
from deniable.streams.structure.smoother import smoother_of
from deniable_lab.experiments import stream_reference as reference
from deniable_lab.experiments.data import Data
from deniable_lab.experiments.ratios import geometric_mean, ratio
from deniable_lab.experiments.stream_data import Stream, read
from deniable_lab.experiments.stream_reference import BOUNDS, EPSILONS, HORIZON, OTHERS, WARMUP, Figure
from deniable_lab.experiments.streams.smoothers import smoothed

SHORT = {"pos_length": "POS", "dns_google_rps": "DNS"}
SIGMAS = 3.0
LARGEST_CELL, LARGEST_MEAN = 0.75, 0.4
LARGEST_TENT_VARIANCE = 960.0
LARGEST_NEXT_TO_PAPER, NEXT_TO_PAPER = 1.1, (0.01, 0.05, 0.1, 0.5)


@dataclass(frozen=True, slots=True)
class Row:
    """One cell: what, our figure, the reference's if there is one, and whether a target was met (None: none is set)."""

    what: str
    ours: Figure
    theirs: Figure | None = None
    met: bool | None = None
    note: str = ""

    @property
    def ratio(self) -> float:
        """Ours to theirs."""
        return math.nan if self.theirs is None else self.ours.mean / self.theirs.mean


def load(data: Data, name: str) -> Stream:
    """A stream of the data folder by the name of its file."""
    return read(name, data.required("streams", name), (BOUNDS | OTHERS)[name])


def repeated(
    stream: Stream, make: Callable[[int], Publisher], repetitions: int, theta: float = math.inf
) -> tuple[Floats, Any]:
    """MSE of each repetition, and the thresholds."""
    errors, thetas = np.empty(repetitions), []
    for repetition in range(repetitions):
        publisher = make(repetition)
        errors[repetition] = answered(publisher, stream, theta)
        thetas.append(publisher.learnt.theta if publisher.learnt else 0)
    return errors, np.array(thetas)


def answered(publisher: Publisher, stream: Stream, theta: float = math.inf) -> float:
    """MSE of one run: of answers for windows if they are ours, of sums of published values as in the paper."""
    private = publisher.push_many(stream.values)
    if not publisher.settings.measure_start:
        return stream.errors(private, theta).mse
    early = WARMUP - publisher.settings.warmup  # what a shorter warm-up publishes before the ranges begin
    answers = publisher.released.sums(stream.starts + early, stream.stops + early, cut=math.isfinite(theta))
    return stream.apart(answers.values, theta).mse


def figure(errors: Floats) -> Figure:
    """Mean and standard error of repetitions."""
    return Figure(float(errors.mean()), float(errors.std(ddof=1) / math.sqrt(errors.size)))


def agrees(ours: Figure, theirs: Figure) -> bool:
    """Within three combined standard errors."""
    return abs(ours.mean - theirs.mean) <= SIGMAS * math.hypot(ours.stderr, theirs.stderr)


def _simulated(kind: Any, *facts: Any, seed: int, **settings: Any) -> Publisher:
    made: Publisher = kind(*facts, source=SeededSource(seed), simulation=True, **settings)
    return made


def defaults(data: Data, repetitions: int) -> Iterator[Row]:
    """ToPS as it comes against the authors' ToPS: the ratio of errors, and its geometric mean."""
    ratios = []
    for name, bound in BOUNDS.items():
        stream = load(data, name)
        for epsilon in EPSILONS:
            made = _maker(ToPS, epsilon, bound)
            errors, thetas = repeated(stream, made, repetitions)
            ours, theirs = figure(errors), reference.TOPS[name][epsilon]
            ratios.append(ours.mean / theirs.mean)
            either = reference.EITHER_BLOCK.get((name, epsilon))
            met = ratios[-1] <= LARGEST_CELL and (either is None or ours.mean <= either.mean)
            note = f"θ {np.median(thetas):g}, blocks {made(0).plan.block:,}"
            yield Row(f"{SHORT[name]} ε={epsilon:g}", ours, theirs, met, note)
    mean = math.exp(float(np.mean(np.log(ratios))))
    yield Row("geometric mean", Figure(mean, 0.0), Figure(1.0, 0.0), mean <= LARGEST_MEAN, f"target {LARGEST_MEAN:g}")


def _maker(kind: Any, epsilon: float, bound: float, **settings: Any) -> Callable[[int], Publisher]:
    return lambda seed: _simulated(kind, epsilon, bound, seed=seed, **settings)


def paper(data: Data, repetitions: int) -> Iterator[Row]:
    """The paper's settings, as the authors' code has them (six levels in the score, its block sizes)."""
    score = PaperScore(levels=6)
    raised = PAKPercentile(0.995, cap=False)
    for name, bound in BOUNDS.items():
        stream = load(data, name)
        for epsilon in EPSILONS:
            block = reference.BLOCKS[epsilon]
            cells: list[tuple[str, Any, dict[float, Figure], dict[str, Any], bool]] = [
                ("ToPS", ToPS, reference.TOPS[name], {"paper": True, "threshold": score, "block": block}, True),
                ("NM-E", NME, reference.NME[name], {"threshold": score}, True),
                ("Ĥc16 uncapped", Hc16, reference.HC16[name], {"threshold": raised, "block": block}, True),
                ("Ĥc16 capped", Hc16, reference.HC16[name], {"block": block}, False),
                ("PAK uncapped", PAK, reference.PAK[name], {"threshold": raised}, True),
                ("PAK capped", PAK, reference.PAK[name], {}, False),
            ]
            for what, kind, theirs, settings, same in cells:
                errors, thetas = repeated(stream, _maker(kind, epsilon, bound, **settings), repetitions)
                ours = figure(errors)
                note = f"θ {np.median(thetas):,.4g}"
                met = agrees(ours, theirs[epsilon]) if same else None
                yield Row(f"{SHORT[name]} ε={epsilon:g} {what}", ours, theirs[epsilon], met, note)


def hierarchies(data: Data, repetitions: int) -> Iterator[Row]:
    """Trees alone, θ given, against the truncated stream."""
    for name, cells in reference.HIERARCHIES.items():
        stream, theta = load(data, name), reference.PERCENTILE[name]
        for (fanout, consistent, block), theirs in cells.items():
            made = _maker(
                ToPS,
                0.05,
                BOUNDS[name],
                threshold=PublicThreshold(theta),
                paper=True,
                fanout=fanout,
                consistent=consistent,
                block=block,
            )
            ours = figure(repeated(stream, made, repetitions, theta)[0])
            what = f"{SHORT[name]} b={fanout}{', consistent' if consistent else ''}{f', blocks {block}' * (block > 1)}"
            yield Row(what, ours, theirs, agrees(ours, theirs))


def smoothers(data: Data, repetitions: int) -> Iterator[Row]:
    """Smoothers of the same noisy blocks, θ given, against the truncated stream. The reference has 10 repetitions."""
    names = ("recent", "mean", "median", "moving", "exponential")
    for (name, epsilon, block), cells in reference.SMOOTHERS.items():
        stream, theta = load(data, name), reference.PERCENTILE[name]
        truth, errors = stream.truth(theta), {smoother: np.empty(repetitions) for smoother in names}
        settings = {"threshold": PublicThreshold(theta), "paper": True, "block": block}
        for repetition in range(repetitions):
            publisher = _simulated(ToPS, epsilon, BOUNDS[name], seed=repetition, **settings)
            totals = publisher.push_many(stream.values).reshape(-1, block).sum(axis=1)
            for smoother in names:
                published = smoothed(smoother_of(smoother), totals, block, theta / 2)
                errors[smoother][repetition] = np.mean((stream.answers(published) - truth) ** 2)
        for smoother, mean in zip(names, cells, strict=True):
            ours = figure(errors[smoother])
            theirs = Figure(mean, mean * ours.stderr / ours.mean * math.sqrt(repetitions / 10))
            yield Row(f"{SHORT[name]} ε={epsilon:g} blocks {block} {smoother}", ours, theirs, agrees(ours, theirs))


def thresholds(data: Data, draws: int = 200) -> Iterator[Row]:
    """The median θ by noisy max on Eq. (6), with the authors' six levels; their 5 % to 95 % is the scale."""
    for (name, epsilon), (median, low, high) in reference.THRESHOLDS.items():
        values = load(data, name).values[:WARMUP]
        situation = Situation(BOUNDS[name], WARMUP, HORIZON, epsilon, 1.0, 0.25)
        score = PaperScore(levels=6)
        chosen = np.array([score.choose(values, situation, epsilon, SeededSource(seed)) for seed in range(draws)])
        deviation = (high - low) / 3.29 * 1.2533 / math.sqrt(200)  # of the median of 200 normal draws
        ours, theirs = Figure(float(np.median(chosen)), deviation), Figure(median, deviation)
        ends = np.quantile(chosen, (0.05, 0.95))
        note = f"5 % to 95 %: {ends[0]:g} to {ends[1]:g}, theirs {low} to {high}"
        # Medians are integers: half a unit does not count.
        met = abs(ours.mean - median) <= SIGMAS * math.hypot(deviation, deviation) + 0.5
        yield Row(f"{SHORT[name]} ε={epsilon:g} median θ", ours, theirs, met, note)


def other_streams(data: Data, repetitions: int) -> Iterator[Row]:
    """The defaults against the paper's settings on every stream at hand, where drift punishes large blocks."""
    for name in BOUNDS | OTHERS:
        yield from _next_to_paper(load(data, name), repetitions, NEXT_TO_PAPER, LARGEST_NEXT_TO_PAPER)


def drift(data: Data, repetitions: int) -> Iterator[Row]:
    """A stream with nights and days, where a larger `drift` than the default's leads to smaller blocks."""
    yield from _next_to_paper(load(data, "nasa_http_rps"), repetitions, expectation=Expectation(drift=0.05))


def bursts(repetitions: int) -> Iterator[Row]:
    """The defaults on the drawn stream whose bursts lie far above what the warm-up shows."""
    yield from _next_to_paper(Data().stream("DNS stand-in"), repetitions)


def _next_to_paper(
    stream: Stream,
    repetitions: int,
    epsilons: Sequence[float] = EPSILONS,
    largest: float | None = None,
    **settings: Any,
) -> Iterator[Row]:
    """ToPS with these settings; theirs: ours with the paper's settings. Last, the geometric mean of the ratios."""
    quotients = []
    for epsilon in epsilons:
        (errors, thetas), (paper_errors, paper_thetas) = (
            repeated(stream, _maker(ToPS, epsilon, stream.bound, **chosen), repetitions)
            for chosen in (settings, {"paper": True})
        )
        ours, theirs = figure(errors), figure(paper_errors)
        quotients.append(ratio(ours, theirs))
        note = f"{quotients[-1]} times; θ {np.median(thetas):g}, `paper=True`: {np.median(paper_thetas):g}"
        met = None if largest is None else ours.mean <= largest * theirs.mean
        yield Row(f"{stream.name} ε={epsilon:g}", ours, theirs, met, note)
    mean = geometric_mean(quotients)
    yield Row(f"{stream.name} geometric mean", Figure(mean.mean, mean.stderr), Figure(1.0, 0.0), None, f"{mean} times")


def variances(repetitions: int) -> Iterator[Row]:
    """V·ε² of the tree and of tents over 2^20 leaves, θ = 1, ε = 0.05: random ranges and prefixes, and the formula."""
    for hierarchy, fanout, stated in (("tree", 16, (1196.4, 852.0)), ("tent", 16, (925.8, 732.0))):
        settings = Perturber(epsilon=0.05, theta=1, horizon=HORIZON, fanout=fanout, hierarchy=hierarchy)
        rng = np.random.default_rng(7)
        ranges, prefixes = np.empty(repetitions), np.empty(repetitions)
        for repetition in range(repetitions):
            noise = settings.noise(SeededSource(repetition), 0).leaves(0, HORIZON)
            prefix = np.concatenate(([0], np.cumsum(noise)))
            pairs = np.sort(rng.integers(0, HORIZON, (1 << 16, 2)), axis=1)
            ranges[repetition] = np.mean((prefix[pairs[:, 1]] - prefix[pairs[:, 0]]) ** 2.0) * 0.05**2
            prefixes[repetition] = np.mean(prefix[rng.integers(0, HORIZON, 1 << 16)] ** 2.0) * 0.05**2
        for what, measured, expected in zip(
            ("random ranges", "random prefixes"), (ranges, prefixes), stated, strict=True
        ):
            ours = figure(measured)
            close = abs(ours.mean / expected - 1) <= 0.03
            met = close if hierarchy == "tree" or what == "random ranges" else None  # single prefixes vary most
            yield Row(f"{hierarchy} V·ε², {what}", ours, Figure(expected, 0.0), met)
        predicted = 2 * settings.tree.height**2 * settings.tree.mean_variance()
        close = abs(predicted / stated[0] - 1) <= 0.03
        yield Row(f"{hierarchy} V·ε², predicted", Figure(predicted, 0.0), Figure(stated[0], 0.0), close)
    for leaves in (64, 128, 1 << 10, 1 << 15, HORIZON):
        tree, tents = (_least_variance(kind, leaves) for kind in ("tree", "tent"))
        met = tents.mean <= LARGEST_TENT_VARIANCE if leaves == HORIZON else None
        note = f"{tents.mean / tree.mean:.2f} times; theirs: the best tree"
        yield Row(f"V·ε² of the best tents, {leaves:,} leaves", tents, tree, met, note)


def _least_variance(hierarchy: str, leaves: int) -> Figure:
    """Predicted V·ε² of the fan-out that a publisher would choose."""
    plan = choose_plan(1.0, leaves, expectation=Expectation(), block=1, hierarchy=hierarchy)
    return Figure(2 * plan.tree.height**2 * plan.tree.mean_variance(), 0.0)


def calibration(repetitions: int) -> Iterator[Row]:
    """Noise over its standard error, squared, by window length, on a constant stream: 1 if errors are right."""
    rng = np.random.default_rng(9)
    for block in (1, 4096):
        # A chunk to begin with, because the first block of all is filled with θ/2, which is right here.
        settings = {"warmup": 0, "threshold": PublicThreshold(10), "block": block, "fanout": 16}
        publisher = _simulated(ToPS, 1.0, 10, seed=1, **settings)
        publisher.push_many(np.full(HORIZON, 5))
        lengths = (1, 60, 1440, 65_536, 1 << 19)
        scores = {length: np.empty(repetitions) for length in lengths}
        for repetition in range(repetitions):
            steps = publisher.push_many(np.full(HORIZON, 5)) - 5
            released = publisher.release_of(steps, first=publisher.published - HORIZON)
            for length in lengths:
                starts = rng.integers(0, HORIZON - length, 4096)
                windows = released.sums(starts, starts + length)
                scores[length][repetition] = np.mean((windows.values / windows.stderrs) ** 2)
            publisher.forget()
        for length in lengths:
            ours = figure(scores[length])
            close = abs(ours.mean - 1) <= SIGMAS * ours.stderr + 0.01
            yield Row(f"blocks of {block:,}, length {length:,}", ours, Figure(1.0, 0.0), close)


def percentiles(data: Data, repetitions: int) -> Iterator[Row]:
    """Thresholds at fixed percentiles, not private, next to the private default: none is right everywhere."""
    for name, bound in BOUNDS.items():
        stream = load(data, name)
        for epsilon in (0.01, 0.1):
            best = figure(repeated(stream, _maker(ToPS, epsilon, bound), repetitions)[0])
            for percentile in (0.95, 0.99, 0.999, 0.9999, 1.0):
                made = _maker(ToPS, epsilon, bound, threshold=FixedPercentile(percentile))
                errors, thetas = repeated(stream, made, repetitions)
                note = f"θ {np.median(thetas):g}; theirs: the private default"
                yield Row(f"{SHORT[name]} ε={epsilon:g} percentile {percentile:g}", figure(errors), best, None, note)
