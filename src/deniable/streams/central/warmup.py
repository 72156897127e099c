"""The warm-up: four private answers about values that are never published."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from deniable.arrays import Integers
from deniable.mechanisms import DiscreteLaplace
from deniable.randomness import Source
from deniable.streams.central.settings import SQUARE_STEPS, Settings
from deniable.streams.central.stream_forecast import StreamPlan
from deniable.streams.central.threshold import PredictedError, PublicThreshold, Situation


@dataclass(frozen=True, slots=True)
class Learnt:
    """The private answers of the warm-up, in steps of the grid. Those that were not measured are None.

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


def learn(values: Integers, settings: Settings, plan: StreamPlan, source: Source) -> Learnt:
    """Four private answers about the warm-up, whose shares of ε add up to ε. `values` are steps 0 … bound."""
    epsilon, count = settings.epsilon, values.size
    costs = settings.costs
    error = 0.0 if math.isinf(epsilon) else plan.noise(epsilon)
    error += plan.smoothing(settings.expectation, measured_start=settings.measure_start)
    tail = settings.expectation.tail
    situation = Situation(settings.grid.top, max(count, 1), settings.horizon, epsilon, max(error, 1e-12), tail)
    if isinstance(settings.threshold, PublicThreshold):
        theta = max(settings.grid.unit(settings.threshold.theta), 1)
    else:
        draws = source.stream("threshold")  # the publisher has checked source and ε
        theta = settings.threshold.draw(values, situation, costs["threshold"], draws)
    if not settings.measure_start:
        if not isinstance(settings.threshold, PredictedError):
            return Learnt(theta)
        aim = settings.threshold.aim(situation)
        return Learnt(theta, above=aim, above_stderr=aim)
    cut = np.minimum(values, theta)

    def noisy(name: str, total: int, sensitivity: int) -> tuple[float, float]:
        mechanism = DiscreteLaplace(costs[name], sensitivity)
        answer = mechanism.draw(np.array([total]), source.stream(name))[0]
        return float(answer) / count, mechanism.variance() / count**2

    mean, mean_variance = noisy("mean", int(cut.sum()), theta)
    fine = (cut * SQUARE_STEPS // theta) ** 2
    square, square_variance = noisy("square", int(fine.sum()), SQUARE_STEPS**2)
    above, above_variance = noisy("above", int((values > theta).sum()), 1)
    mean = min(max(mean, 0.0), float(theta))
    spread = (square + math.sqrt(square_variance)) * (theta / SQUARE_STEPS) ** 2 - mean**2
    spread = min(max(spread, 0.0), mean * (theta - mean))
    if isinstance(settings.threshold, PredictedError) and above_variance > 0:
        # A weighted mean of the measured share and the share that the choice aims at, which it misses by as much again.
        aim = settings.threshold.aim(situation)
        weight = above_variance / (above_variance + aim**2)
        above, above_variance = weight * aim + (1 - weight) * above, weight * aim**2
    return Learnt(theta, mean, mean_variance, spread, min(max(above, 0.0), 1.0), math.sqrt(above_variance))
