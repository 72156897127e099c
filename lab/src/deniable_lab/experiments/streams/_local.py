"""What experiments on streams without trust share."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from deniable.randomness import SeededSource
from deniable.streams import ToPL
from deniable.streams.local.stream_protocol import ToPLProtocol
from deniable.streams.local.threshold_choice import candidates
from deniable_lab.experiments.stream_data import Stream

EPSILONS = (0.2, 0.5, 1.0, 2.0)


def simulated(epsilon: float, stream: Stream, seed: int, **parts: Any) -> ToPL:
    """Devices and server, seeded."""
    return ToPL(epsilon, stream.bound, keep=False, source=SeededSource(seed), simulation=True, **parts)


def expected(stream: Stream, protocol: ToPLProtocol, theta: float) -> float:
    """The mean squared error over the ranges that θ leads to: variances and what is cut away are known exactly."""
    cut = np.minimum(stream.published, theta)
    noise = protocol.mean_variance(theta, cut.mean(), np.square(cut).mean())
    return float(np.mean(noise * (stream.stops - stream.starts) + stream.answers(stream.published - cut) ** 2))


@lru_cache(maxsize=64)
def best_theta(stream: Stream, protocol: ToPLProtocol) -> float:
    """The θ of least expected error, which only somebody who sees the data can know."""
    return float(min(candidates(protocol)[::8], key=lambda theta: expected(stream, protocol, float(theta))))
