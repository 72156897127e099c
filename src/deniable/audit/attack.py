"""The game: inputs chosen by coins, outputs shown to an attacker, and what the guesses prove about ε.

A claim of ε says that no event is more than e^ε times as likely under one of two neighbouring inputs as under the other
(plus δ, where that is claimed). An audit runs a target on two inputs that are as different as the claim covers, finds
revealing events in the first half of the runs, and measures them in the second half. They prove a lower bound on
ε. A bound above the claim refutes it. A bound below proves nothing, which is why a stand-in that spends more than it
claims is put through the same attack: it shows how much the attack would have noticed.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from deniable.arrays import Integers
from deniable.audit.events import Measured, lower_epsilon, strongest_events
from deniable.audit.output import Output, joined
from deniable.errors import InvalidData, InvalidParameter
from deniable.randomness import Source

FEWEST_SAMPLES = 100
_BATCH_RUNS = 1 << 15
_STRONGEST = 60.0
"""No stand-in spends more than this."""
_STEPS = (1.0, 1.15, 1.6, 2.5)
_UNLUCKY = 1.3  # standard errors: nine of ten runs have more right guesses than this below the mean

Advance = Callable[[int], None]
Draw = Callable[[Integers, Source], Output]


@dataclass(frozen=True, slots=True)
class Target:
    """Something that claims ε for the pair of inputs 0 and 1.

    `draw` is handed the input of every run, an array of 0 and 1, and a source, and returns what the runs put out.
    """

    name: str
    epsilon: float
    draw: Draw
    delta: float = 0.0
    most: int = 10**9
    """Runs that one audit takes at most: whole clients and publishers are slow."""
    batch: int = _BATCH_RUNS


@dataclass(frozen=True, slots=True)
class Finding:
    """What an audit showed about one target."""

    target: Target
    samples: int
    measured: tuple[Measured, ...]
    noticed: float = math.inf
    """A stand-in that spent so many times the claimed ε was refuted by the same attack."""

    @property
    def bound(self) -> float:
        """The largest ε that the answers prove: claims of less are refuted."""
        return max((measured.bound for measured in self.measured if not measured.event.feature.fact), default=0.0)

    @property
    def refutations(self) -> tuple[Measured, ...]:
        """The events that contradict the claim, the clearest first."""
        broken = [measured for measured in self.measured if measured.bound > self.claim_of(measured)]
        return tuple(sorted(broken, key=lambda measured: self.claim_of(measured) - measured.bound))

    def claim_of(self, measured: Measured) -> float:
        """What the claim allows an event to reveal: ε for an answer, nothing for a fact."""
        return 0.0 if measured.event.feature.fact else self.target.epsilon

    @property
    def refuted(self) -> bool:
        """Whether the samples contradict the claim."""
        return bool(self.refutations)

    def __str__(self) -> str:
        if self.refuted:
            return f"{self.target.name}: REFUTED by {self.refutations[0]}"
        reached = f"{self.target.name}: not refuted at ε ≥ {self.bound:.3g} of {self.target.epsilon:g}"
        if math.isinf(self.noticed):
            return f"{reached}; how much it would have noticed is not known"
        return f"{reached}; would have noticed {self.noticed:.3g} ε"


def audit(
    target: Target,
    samples: int,
    source: Source,
    *,
    seconds: float | None = None,
    advance: Advance = lambda _: None,
) -> Finding:
    """Attack a target with `samples` runs in all, or as many as `seconds` allow. `advance` hears of every batch."""
    if samples < FEWEST_SAMPLES:
        raise InvalidParameter("samples", f"must be at least {FEWEST_SAMPLES}", "Use 100000 for a meaningful audit.")
    worlds, output = _play(target, min(samples, target.most), source, seconds, advance)
    half = worlds.size // 2
    first, second = slice(0, half), slice(half, None)
    events = strongest_events(output.part(first), worlds[first], target.delta)
    tested = output.part(second)
    measured = [event.measure(tested, worlds[second], 0.0 if event.feature.fact else target.delta) for event in events]
    return Finding(target, worlds.size, tuple(measured))


def _play(
    target: Target, samples: int, source: Source, seconds: float | None, advance: Advance
) -> tuple[Integers, Output]:
    started = time.monotonic()
    worlds: list[Integers] = []
    outputs: list[Output] = []
    done = 0
    while done < samples:
        if seconds is not None and done >= FEWEST_SAMPLES and time.monotonic() - started > seconds:
            break
        size = min(target.batch, samples - done)
        worlds.append(source.stream("inputs", done).below(2, size))
        outputs.append(_checked(target.draw(worlds[-1], source.stream("runs", done)), size))
        done += size
        advance(size)
    return np.concatenate(worlds), joined(outputs, [part.size for part in worlds])


def _checked(output: Output, runs: int) -> Output:
    columns = [*output.answers.values(), *output.facts.values()] if isinstance(output, Output) else []
    if not columns or any(getattr(column, "shape", None) != (runs,) for column in columns):
        raise InvalidData(
            "a draw did not give columns with one entry per run",
            'Return Output({"y": array}), with an array of as many numbers as there are runs.',
            cost="Nothing was measured",
        )
    return output


def noticed_factor(
    finding: Finding,
    make: Callable[[float], Target],
    samples: int,
    source: Source,
    *,
    seconds: float | None = None,
    advance: Advance = lambda _: None,
) -> Finding:
    """The finding with the power of its attack: the least spend, as a multiple of ε, that it was seen to refute.

    `make` gives the target at any ε. What the best event would show at a higher ε is calculated first. Then a stand-in
    that spends this much and claims ε is attacked, and one that spends more where that went unnoticed.
    """
    epsilon, expected = finding.target.epsilon, expected_factor(finding)
    for attempt, step in enumerate(_STEPS):
        factor = expected * step
        if factor * epsilon > _STRONGEST:
            break
        stand_in = replace(make(factor * epsilon), epsilon=epsilon, delta=finding.target.delta)
        stream = source.stream("stand-in", attempt)
        if audit(stand_in, samples, stream, seconds=seconds, advance=advance).refuted:
            return replace(finding, noticed=factor)
    return finding


def expected_factor(finding: Finding) -> float:
    """How many times ε must be spent for nine of ten audits to notice, from the best event of this one.

    Calculated as if the log odds of the event grew with ε and its frequency stayed.
    """
    epsilon, runs = finding.target.epsilon, finding.samples - finding.samples // 2
    answers = [answer for answer in finding.measured if not answer.event.feature.fact and answer.right > answer.wrong]
    factors = 1.02 ** np.arange(1, 300)
    best = math.inf
    for answer in answers:
        total = answer.right + answer.wrong
        share = 1 / (1 + np.exp(-factors * math.log(answer.right / max(answer.wrong, 0.5))))
        right = np.maximum(total * share - _UNLUCKY * np.sqrt(total * share * (1 - share)), 0)
        noticed = np.flatnonzero(lower_epsilon(right, total - right, runs, finding.target.delta) > epsilon)
        if noticed.size:
            best = min(best, float(factors[noticed[0]]))
    return best
