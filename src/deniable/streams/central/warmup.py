"""What is learnt from values before others are published with it: private answers, one after another.

The warm-up's values are never published, so all of ε is theirs. Where θ is renewed, a share of ε of an epoch's values
pays for the same questions, and the answers serve the next epoch.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np

from deniable.mechanisms import DiscreteLaplace
from deniable.randomness import Source
from deniable.streams.central.evidence import EXCESS_REACH, SQUARE_STEPS, Evidence, run_lengths
from deniable.streams.central.far_tail import power_excess
from deniable.streams.central.published_roughness import Knot
from deniable.streams.central.settings import Settings
from deniable.streams.central.stream_forecast import StreamPlan, choose_plan
from deniable.streams.central.threshold import PredictedError, PublicThreshold, Situation, memory
from deniable.streams.released.roughness import Roughness

_USUAL_SHARE, _SHARE_DOUBT = 0.25, 0.6
_USUAL_EXCESS, _EXCESS_DOUBT, _FAR_DOUBT = 0.3, 0.45, 0.5
"""Of drawn streams: the share of values above θ and how much it differs, of what the choice of θ leaves open. And of
what a power law says of how much such values exceed θ: which part is there, how far it is off if as many values lie
above θ as its choice leaves open, and which part of what may lie farther away than is measured is in doubt.

Most tails are lighter than that law: half of the drawn ones have less than a fifth of what it says. With this doubt,
windows of an epoch are covered on heavy tails in 96 % of the releases, even seeds. Values beyond a gap have a note.
"""

NOT_NOISE = 6.0
"""Standard errors that Laplace noise exceeds upwards about once in 10,000 answers."""
_STALE = 2.0
_AGEING = 1 / 16
"""The variance by which what lies above θ changes from one epoch to the next, as a share of its square."""
_CERTAINLY = 1.6
"""Standard errors of noise above which a measured distance lies once in twenty times."""


@dataclass(frozen=True, slots=True)
class Learnt:
    """Private answers, in steps of the grid. Those that were not measured are None.

    `above` is the share of values above θ, `excess` the mean of (v − θ)+; `far` is the measured share of values far
    above θ, which noise aside is rather too large than too small; `uncounted` is the share of events that stand-ins
    replace, in streams of persons; `spread` is the variance of single values around their neighbours. `squares` are Δ
    at `lengths`: mean squares of the difference between the sums of two neighbouring runs of so many values, as
    measured; `doubts` are the variances of the noise of their roots. `tail` has the excess as it was measured, before
    what is usual was weighed in (`MeasuredExcess`).

    >>> import deniable as dn
    >>> tops = dn.streams.ToPS(1.0, 100, warmup=1000, horizon=1000, source=dn.SeededSource(1), simulation=True)
    >>> private = tops.push_many([5, 6, 7, 8] * 1000)
    >>> tops.learnt.theta
    8
    """

    theta: int
    mean: float | None = None
    mean_variance: float = 0.0
    spread: float | None = None
    above: float | None = None
    above_stderr: float = 0.0
    excess: float | None = None
    excess_variance: float = 0.0
    far: float | None = None
    far_variance: float = 0.0
    uncounted: float = 0.0
    lengths: tuple[float, ...] = ()
    squares: tuple[float, ...] = ()
    doubts: tuple[float, ...] = ()
    tail: tuple[float, ...] = ()

    @classmethod
    def read(cls, facts: dict[str, Any]) -> Learnt:
        """What `asdict` wrote, after JSON."""
        arrays = {name: tuple(facts.get(name, ())) for name in ("lengths", "squares", "doubts", "tail")}
        return cls(**{**facts, **arrays})


@dataclass(frozen=True, slots=True)
class Before:
    """The epoch that the evidence is of: what it was published with, and what it published, which costs nothing more.

    `mean` is the noisy mean of the evidence's values, cut at the epoch's θ, and `variance` that of its noise. `knots`
    tell how much neighbouring blocks of the epoch differ. `still`: the stream is as it was when the epoch's θ was
    learnt; from how many times as much information, or 0.
    """

    learnt: Learnt
    mean: float
    variance: float
    knots: tuple[Knot, ...] = ()
    still: float = 0.0


def learn(
    evidence: Evidence, settings: Settings, epsilon: float, source: Source, epoch: Before | None = None
) -> Learnt:
    """Private answers, whose shares of ε add up to `epsilon`, for publishing with these settings.

    `epoch` is the one that the evidence is of, if it was published.
    """
    before = None if epoch is None else epoch.learnt
    count, plan = max(evidence.count, 1), settings.plan
    costs = settings.costs(epsilon, evidence.count)
    error = 0.0 if math.isinf(settings.epsilon) else plan.noise(settings.epsilon)
    error = max(error + plan.smoothing(settings.expectation.knots), 1e-12)
    tail, cost = settings.expectation.tail, costs["threshold"]
    situation = Situation(settings.grid.top, count, settings.horizon, settings.epsilon, error, tail, cost)
    if isinstance(settings.threshold, PublicThreshold):
        theta = max(settings.grid.unit(settings.threshold.theta), 1)
    else:
        draws = source.stream("threshold")  # the publisher has checked source and ε
        earlier = (epoch.learnt.theta, epoch.still) if epoch is not None and epoch.still else None
        # What was known before counts: noise of this choice alone must not decide how many values above θ matter.
        together = situation if earlier is None else replace(situation, cost=cost * (1 + earlier[1]))
        theta = evidence.choose(settings.threshold, together, cost, draws, earlier)
    aim = settings.threshold.aim(situation) if isinstance(settings.threshold, PredictedError) else None
    if not settings.measure_start:
        return Learnt(theta) if aim is None else Learnt(theta, above=aim, above_stderr=aim)
    lengths = run_lengths(evidence.count)
    totals: dict[str, float] = {}
    variances: dict[str, float] = {}
    questions = evidence.questions(theta)
    reach = next(question.sensitivity for question in questions if question.name == "excess")
    for question in questions:
        mechanism = DiscreteLaplace(costs[question.name], question.sensitivity)
        noisy = mechanism.draw(np.array([question.total]), source.stream(question.name))
        totals[question.name], variances[question.name] = float(noisy[0]), mechanism.variance()
    mean, mean_variance = totals["mean"] / count, variances["mean"] / count**2
    if epoch is not None and 0.5 <= theta / epoch.learnt.theta <= 2:
        mean, mean_variance = epoch.mean, epoch.variance  # far less noise, and cut at nearly the same θ
    mean = min(max(mean, 0.0), float(theta))
    above, above_variance = totals["above"] / count, variances["above"] / count**2
    excess, excess_variance = totals["excess"] / count, variances["excess"] / count**2
    # A value far above θ counts once among those above θ, and as much as one value can in the excess. Others count
    # less, so the best mean of both is too large rather than too small.
    far, far_variance = _combined(above, above_variance, excess / reach, excess_variance / reach**2)
    known = _as_known(epoch.learnt, theta) if epoch is not None and epoch.still else None
    measured = MeasuredExcess(excess, excess_variance)
    if known is not None and known.tail:
        measured = measured.after(MeasuredExcess(*known.tail))
    largest = 0.0  # the share above θ that its choice leaves open
    if aim is not None:
        # Noise decides between thresholds whose counts differ by less than it, and a θ that was kept may be outweighed
        # by less than it counts for. So the share above θ may be that large.
        kept = memory(epoch.still) if epoch is not None and epoch.still and theta == epoch.learnt.theta else 0.0
        largest = aim + (0.0 if math.isinf(epsilon) else (1 + kept) / (cost * count))
        usual = _USUAL_SHARE * largest, _SHARE_DOUBT * largest
        if known is not None and known.above is not None:
            usual = _better(usual, known.above, known.above_stderr**2)
        above, above_variance = _weighted(above, above_variance, *usual)
    above = min(max(above, 0.0), 1.0)
    share = math.hypot(above, math.sqrt(above_variance))
    # No more than what the share above θ allows, or a rare large noise would be taken for large values.
    excess = min(measured.mean, EXCESS_REACH * theta * (above + NOT_NOISE * math.sqrt(above_variance)))
    level = _weighted(mean, mean_variance, theta / 4, theta / 4)[0]
    near, beyond = power_excess(share, level / theta, settings.grid.top / theta)
    most = power_excess(max(largest, share), level / theta, settings.grid.top / theta)[0]
    usual = _USUAL_EXCESS * theta * near * (above / share if share > 0 else 0.0), _EXCESS_DOUBT * theta * most
    measured = measured.beside(excess, *usual)
    excess, excess_variance = _weighted(excess, measured.noise, usual[0], max(measured.doubt, measured.certain))
    excess_variance += measured.changed(excess)
    # Added up, not in squares: a tail that is as heavy as the law has all of both.
    excess_variance = (math.sqrt(excess_variance) + _FAR_DOUBT * theta * beyond) ** 2
    if theta >= settings.grid.top:
        excess = excess_variance = 0.0
    runs_theta, single = evidence.runs_at(theta), 2 * (settings.expectation.spread * theta) ** 2
    if before is not None and before.lengths:
        single = before.squares[0] * (theta / before.theta) ** 2
    runs = _roughness(totals, variances, single, runs_theta, lengths, count)
    if epoch is not None:
        runs = _with_published(runs, epoch.knots)
    if before is not None and before.lengths:
        runs = _with_earlier(runs, before, theta, alike=0.5 <= theta / runs_theta <= 2)
    return Learnt(
        theta,
        mean,
        mean_variance,
        runs[1][0] / 2,
        min(max(above, 0.0), 1.0),
        math.sqrt(above_variance),
        max(excess, 0.0),
        excess_variance,
        far,
        far_variance,
        0.0,
        *runs,
        astuple(measured),
    )


@dataclass(frozen=True, slots=True)
class MeasuredExcess:
    """The mean of (v − θ)+ as measured, and the variance of its noise. What is usual is weighed in afterwards.

    As long as a stream stays as it is, measurements of several epochs are one: `age` is how many epochs ago it was
    made, in the mean. What is usual is not part of it, or it would count once more in every epoch. `doubt` is how far
    the excess may be off what is usual, by the most that is known, and `certain` how far it certainly was.

    >>> MeasuredExcess(0.9, noise=0.09).after(MeasuredExcess(0.4, noise=0.01))
    MeasuredExcess(mean=0.49..., noise=0.0..., age=0.81..., doubt=inf, certain=0.0)
    """

    mean: float
    noise: float
    age: float = 0.0
    doubt: float = math.inf
    certain: float = 0.0

    def after(self, earlier: MeasuredExcess) -> MeasuredExcess:
        """This measurement and an earlier one, since when the excess may have changed."""
        stale = earlier.noise + (earlier.age + 1) * _AGEING * earlier.mean**2
        weight = self.noise / (self.noise + stale) if self.noise + stale > 0 else 0.0
        mean = weight * earlier.mean + (1 - weight) * self.mean
        noise = weight**2 * earlier.noise + (1 - weight) ** 2 * self.noise
        return MeasuredExcess(mean, noise, weight * (earlier.age + 1), earlier.doubt, earlier.certain)

    def beside(self, excess: float, usual: float, doubt: float) -> MeasuredExcess:
        """The same with what this excess says of how far it may be off what is usual."""
        certain = max(self.certain, excess - usual - NOT_NOISE * math.sqrt(self.noise))
        return replace(self, doubt=min(self.doubt, doubt), certain=certain)

    def changed(self, excess: float) -> float:
        """By how much an excess may have changed since it was measured, as a variance."""
        return min(self.age * _AGEING, 1.0) * excess**2


def _combined(first: float, variance: float, second: float, its_variance: float) -> tuple[float, float]:
    """The mean of two measurements that has the least noise, and its variance."""
    both = variance + its_variance
    weight = its_variance / both if both > 0 else 0.5
    return weight * first + (1 - weight) * second, weight * variance


def _weighted(measured: float, variance: float, usual: float, doubt: float) -> tuple[float, float]:
    """The best mean of a measured figure and of one that is usual, give or take `doubt`; and its variance.

    If the measured figure is larger than usual by more than noise explains, so is the doubt.
    """
    doubt = max(doubt, measured - usual - NOT_NOISE * math.sqrt(variance))
    weight = variance / (variance + doubt**2) if doubt else 1.0
    return weight * usual + (1 - weight) * measured, weight * doubt**2


def _as_known(known: Learnt, theta: int) -> Learnt | None:
    """What was known at a θ, for one that is not smaller: less lies above that, as if in proportion to θ^-2.

    How far it may be off stays: of a heavy tail, hardly less may lie above the larger θ.
    """
    if theta < known.theta or known.above is None or known.excess is None:
        return None
    less = (known.theta / theta) ** 2
    tail = known.tail
    if tail:
        mean, noise, age, doubt, certain = tail
        tail = less * mean, noise, age, doubt, less * certain
    return replace(known, above=less * known.above, excess=less * known.excess, tail=tail)


def _better(usual: tuple[float, float], known: float, variance: float) -> tuple[float, float]:
    """What was known before, with twice the variance and a quarter of it more or less, if that is better."""
    doubt = math.sqrt(_STALE * variance + (known / 4) ** 2)
    return (known, doubt) if doubt < usual[1] else usual


_Runs = tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]
"""Lengths of runs, Δ there, and the variances of the noise of their roots."""


def _roughness(
    totals: dict[str, float],
    variances: dict[str, float],
    usual: float,
    runs_theta: int,
    lengths: tuple[int, ...],
    count: int,
) -> _Runs:
    """Δ at the given lengths as measured; at length 1 shrunk to what is usual."""
    pairs, unit = max(count // 2, 1), (runs_theta / SQUARE_STEPS) ** 2
    weight = usual**2 / (usual**2 + variances["runs of 1"] / pairs**2 * unit**2)
    square = weight * max(totals["runs of 1"], 0.0) / pairs * unit + (1 - weight) * usual
    squares, doubts = [square], [0.0]
    for length in lengths[1:]:
        pairs, name = count // (2 * length), f"runs of {length}"
        # Of a normal distribution, the mean square is π/2 times the square of the mean distance.
        distance, noise = (math.sqrt(math.pi / 2) * it / pairs for it in (totals[name], math.sqrt(variances[name])))
        doubts.append(noise**2)
        squares.append(max(distance**2 - noise**2, 0.0))
        # Runs differ at least as much as those of independent values: so single values differ at most that much.
        largest = max(distance, 0.0) * (1 + _CERTAINLY / math.sqrt(pairs)) + _CERTAINLY * noise
        squares[0] = min(squares[0], largest**2 / length)
    squares[0] = max(squares[0], 1e-9)
    return tuple(map(float, lengths)), tuple(squares), tuple(doubts)


def _with_published(runs: _Runs, knots: tuple[Knot, ...]) -> _Runs:
    """Private answers, and what published blocks tell; at a length that both know, the better one counts more."""
    known = {length: (square, doubt) for length, square, doubt in zip(*runs, strict=True)}
    for length, square, doubt in knots:
        measured, noise = known.get(length, (square, doubt))
        if length == 1 or doubt + noise <= 0:
            continue
        weight = noise / (doubt + noise) if length in known else 1.0
        known[length] = (weight * square + (1 - weight) * measured, weight * doubt)
    lengths = sorted(known)
    return tuple(lengths), tuple(known[length][0] for length in lengths), tuple(known[length][1] for length in lengths)


def _with_earlier(runs: _Runs, before: Learnt, theta: int, *, alike: bool) -> _Runs:
    """What was measured before, in proportion to θ², still counts, next to new measurements with more doubt.

    Runs that were cut at a far smaller θ, or have the noise of a far larger one, do not count: they are not `alike`.
    """
    scale = (theta / before.theta) ** 2
    new = {length: (square, doubt) for length, square, doubt in zip(*runs, strict=True)} if alike else {}
    for length, square, doubt in zip(before.lengths, before.squares, before.doubts, strict=True):
        old, stale = scale * square, (_STALE if alike else 1.0) * scale * doubt
        measured, noise = new.get(length, (old, stale))
        if length > 1 and length in new and stale + noise > 0:
            weight = stale / (stale + noise)
            new[length] = (weight * measured + (1 - weight) * old, weight * noise)
        elif length not in new and not _between(length, new):
            new[length] = (old, stale)
    known = sorted(new)
    return tuple(known), tuple(new[length][0] for length in known), tuple(new[length][1] for length in known)


def _between(length: float, known: Collection[float]) -> bool:
    """Whether half or a fourth of a length is known, and twice or four times as much: then nothing else is needed."""
    return any(length / 4 <= other < length for other in known) and any(length < other <= 4 * length for other in known)


def roughness(learnt: Learnt, settings: Settings) -> Roughness:
    """Δ at lengths up to the horizon, in squared steps: as measured where noise allows, otherwise as expected."""
    expected, theta = settings.expectation, learnt.theta
    if not learnt.lengths:
        lengths, squares = zip(*expected.knots, strict=True)
        return Roughness(lengths, tuple(square * theta**2 for square in squares))
    lengths = tuple(float(4**power) for power in range(settings.horizon.bit_length() // 2 + 1))
    usual = Roughness(
        lengths, tuple(learnt.squares[0] * length + (expected.drift * theta * length) ** 2 for length in lengths)
    )
    return usual.weighed(learnt.lengths, learnt.squares, learnt.doubts)


def plan_after(settings: Settings, learnt: Learnt) -> StreamPlan:
    """Blocks and tree for what was learnt: a function of private answers and public settings, so it costs nothing."""
    if not learnt.lengths or settings.block is not None or settings.hierarchy == "tent":
        return settings.plan  # tents that were asked for have to be possible whatever is learnt
    known = roughness(learnt, settings)
    squares = (square / learnt.theta**2 for square in known.squares)
    return choose_plan(
        settings.epsilon,
        settings.horizon,
        expectation=settings.expectation,
        knots=tuple(zip(known.lengths, squares, strict=True)),
        fanout=settings.fanout,
        consistent=settings.consistent,
        smoother=settings.smoother,
        largest=settings.largest_block,
        hierarchy=settings.allowed_hierarchy,
        bound=settings.grid.top,
    )


def public_rows(
    settings: Settings, plan: StreamPlan, learnt: Learnt | None, published: int
) -> list[tuple[str, object]]:
    """Names and texts of everything public about a publisher, for notebooks."""
    rows: list[tuple[str, object]] = [
        ("ε", f"{settings.epsilon:g}"),
        ("values", f"{settings.grid.low:g} to {settings.grid.high:g}, in steps of {settings.grid.resolution:g}"),
        ("warm-up", f"{settings.warmup:,} values, never published"),
        ("chunks, blocks, fan-out", f"{plan.horizon:,}, {plan.block:,}, {plan.fanout}"),
        ("state", "warming up" if learnt is None else f"{published:,} published"),
    ]
    if learnt is not None:
        rows.append(("θ", f"{settings.grid.value(learnt.theta):g}"))
    return rows
