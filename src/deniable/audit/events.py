"""Events: found in one half of the runs, measured in the other.

Each run has one of two inputs, chosen by a fair coin. An attacker who sees an event and guesses the input is right
with probability at most e^ε/(1 + e^ε), if a run costs ε: P(E | a) ≤ e^ε·P(E | b) says just that. So right and wrong
guesses are coins, and their Clopper-Pearson bound is a bound on ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from deniable.arrays import Floats, Integers
from deniable.audit.features import Feature, features
from deniable.audit.output import Output

FALSE_ALARM = 1e-9
"""The chance that one event refutes a true claim. A pair of inputs has `EVENTS`, an audit of everything about 1,000."""
EVENTS, _ANSWERS = 16, 6
_SHOWN_LABELS = 4
NO_GUESS = -1
_DOUBT = 2.0  # added to counts, because a label with few runs looks more revealing than it is
_NO_RATIO = 50.0


@dataclass(frozen=True, slots=True)
class Event:
    """Some labels of a feature, and the input that an attacker who sees one of them names."""

    feature: Feature
    guesses: Integers
    """For every label the input to name, or `NO_GUESS`."""

    def __str__(self) -> str:
        labels = np.flatnonzero(self.guesses != NO_GUESS)
        shown = ", ".join(self.feature.words(int(label)) for label in labels[:_SHOWN_LABELS])
        return f"{self.feature.name}: {shown}{', …' if labels.size > _SHOWN_LABELS else ''}"

    def measure(self, output: Output, worlds: Integers, delta: float) -> Measured:
        """How often the guess is right, on runs that the event was not chosen by."""
        guesses = self.guesses[self.feature.labels(output)]
        right, wrong = (int(np.count_nonzero(guesses == named)) for named in (worlds, 1 - worlds))
        return Measured(self, right, wrong, float(lower_epsilon(right, wrong, worlds.size, delta)))


@dataclass(frozen=True, slots=True)
class Measured:
    """An event with its guesses, and the ε that they prove."""

    event: Event
    right: int
    wrong: int
    bound: float

    def __str__(self) -> str:
        return f"{self.event} (guessed right {self.right:,} of {self.right + self.wrong:,} times)"


def strongest_events(output: Output, worlds: Integers, delta: float) -> list[Event]:
    """The events to measure: those with the highest bounds here, of answers and of facts."""
    candidates = [_best_event(feature, output, worlds, delta) for feature in features(output, worlds)]
    candidates.sort(key=lambda candidate: -candidate[0])
    answers = [event for _, event in candidates if not event.feature.fact]
    facts = [event for _, event in candidates if event.feature.fact][: EVENTS - _ANSWERS]
    return [*answers[: EVENTS - len(facts)], *facts]


def _best_event(feature: Feature, output: Output, worlds: Integers, delta: float) -> tuple[float, Event]:
    """The labels with the highest bound, among those that take labels in order of their ratio."""
    labels = feature.labels(output)
    counts = np.stack([np.bincount(labels[worlds == world], minlength=feature.count) for world in (0, 1)])
    right, wrong = counts.max(0), counts.min(0)
    order = np.argsort(-(right + _DOUBT) / (wrong + _DOUBT), kind="stable")
    sums = np.cumsum(right[order]), np.cumsum(wrong[order])
    bounds = lower_epsilon(*sums, worlds.size, 0.0 if feature.fact else delta)
    best = int(np.argmax(bounds))
    guesses = np.full(feature.count, NO_GUESS)
    guesses[order[: best + 1]] = counts.argmax(0)[order[: best + 1]]
    guesses[right == 0] = NO_GUESS
    return float(bounds[best]), Event(feature, guesses)


def lower_epsilon(right: Any, wrong: Any, runs: int, delta: float = 0.0) -> Floats:
    """The ε below which so many right guesses happen with a chance of `FALSE_ALARM`.

    With δ, up to δ of the runs may be given away. As many of those as are likely do not count as right.
    """
    from scipy.special import betaincinv  # here, because it takes longer to import than most commands to run

    level = FALSE_ALARM
    counted, missed = np.asarray(right, dtype=np.float64), np.asarray(wrong, dtype=np.float64)
    if delta:
        from scipy.stats import binom

        level /= 2
        counted = counted - binom.isf(level, runs, delta)
    low = np.where(counted > 0, betaincinv(np.maximum(counted, 0.5), missed + 1, level), 0.0)
    share = np.maximum(low, 0.5)
    bound: Floats = np.log(share) - np.log(np.maximum(1 - share, np.exp(-_NO_RATIO)))
    return bound
