"""Profiles: means by phase of a period, such as hours of the day or days of the week, with errors that go together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats, Integers
from deniable.checks import check_integer
from deniable.errors import InvalidParameter, QueryRefused
from deniable.streams.released.curve_table import CurveTable
from deniable.streams.released.joint_windows import Answering, joint_errors, possible
from deniable.streams.released.windows import WindowEstimate

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONDAY = np.datetime64("1970-01-05")
NAMED_PERIODS = {"hour": (3600, 60), "day": (86_400, 24), "week": (7 * 86_400, 7)}
"""Seconds, and the usual number of phases."""


@dataclass(frozen=True, eq=False)
class Profile(CurveTable):
    """Means by phase. Differences between phases have smaller errors, or larger ones, than if phases were independent.

    >>> import deniable as dn
    >>> tops = dn.streams.ToPS(1.0, 100, warmup=1000, horizon=1000, source=dn.SeededSource(1), simulation=True)
    >>> private = tops.push_many([5, 6, 7, 8] * 1000)
    >>> halves = tops.released.profile(1000, phases=2)
    >>> halves.counts.tolist()
    [1500, 1500]
    """

    labels: tuple[Any, ...]
    counts: Integers
    """Values of each phase."""
    values: Floats
    """Means of the phases."""
    truncation: Floats
    noise: Floats
    """Covariance of the noise of the means, which is exact."""
    covariance: Floats
    """Covariance of all errors that intervals cover."""
    simulation: bool
    confidence: float

    def __len__(self) -> int:
        return len(self.labels)

    def columns(self) -> dict[str, Any]:
        """The columns of `to_arrow`."""
        means = self.means
        low, high = np.array([mean.interval for mean in means]).T
        errors = {name: [getattr(mean, name) for mean in means] for name in ("stderr", "smoothing")}
        return {"phase": list(self.labels), "mean": self.values, "low": low, "high": high, **errors} | {
            "count": self.counts
        }

    @property
    def means(self) -> tuple[WindowEstimate, ...]:
        """The mean of every phase, with its errors."""
        return tuple(self.contrast(weights) for weights in np.eye(len(self)))

    def contrast(self, weights: Any) -> WindowEstimate:
        """A weighted sum of the means, with its own error: weekdays against weekends, for example.

        >>> halves.contrast([1, -1]).stderr > 0
        True
        """
        given = np.asarray(weights, dtype=np.float64)
        if given.shape != (len(self),):
            raise QueryRefused(f"there are {len(self)} phases", "Give one weight for each.")
        noise = max(float(given @ self.noise @ given), 0.0)
        error = max(float(given @ self.covariance @ given), noise)
        lost = [float(np.maximum(sign * given, 0) @ self.truncation) for sign in (1, -1)]
        return WindowEstimate(
            float(given @ self.values),
            noise**0.5,
            self.confidence,
            smoothing=(error - noise) ** 0.5,
            truncation=None if np.isnan(lost).any() else max(lost),
        )

    def difference(self, first: Any, second: Any) -> WindowEstimate:
        """The mean of one phase less that of another, by their labels.

        >>> halves.difference(0, 1) == halves.contrast([1, -1])
        True
        """
        weights = np.zeros(len(self))
        for label, sign in ((first, 1), (second, -1)):
            if label not in self.labels:
                raise QueryRefused(f"{label!r} is not a phase", f"Use one of {', '.join(map(str, self.labels))}.")
            weights[self.labels.index(label)] += sign
        return self.contrast(weights)


def profile_of(released: Answering, period: Any, *, phases: int | None, confidence: float) -> Profile:
    """Means by phase of a period: a number of values, or "hour", "day" or "week" where there are timestamps."""
    borders, numbers, labels = _cut(released, period, phases)
    starts, stops = borders[:-1], borders[1:]
    held = stops > starts
    belongs = (numbers[held] == np.arange(len(labels))[:, None]).astype(np.float64)
    counts = belongs @ (stops - starts)[held]
    if not counts.all():
        raise QueryRefused("a phase has no values", "Use fewer phases, or a longer stream.")
    averages = belongs / counts[:, None]
    noise, _, cut = (averages @ matrix @ averages.T for matrix in joint_errors(released, starts[held], stops[held]))
    recurring = _recurring(released, borders, numbers, len(labels)) / np.outer(counts, counts)
    answers = released.sums(starts[held], stops[held])
    facts = (noise, possible(noise + cut + recurring), released.simulation, confidence)
    return Profile(labels, counts.astype(np.int64), averages @ answers.values, averages @ answers.truncation, *facts)


def _recurring(released: Answering, borders: Integers, numbers: Integers, phases: int) -> Floats:
    """Covariance of what smoothing misses in the sums of phases, with the same sign in every period.

    A stream with a period is smoothed wrongly at the same phase in the same direction, so errors where a phase begins
    do not average out over periods: their standard deviations are added up, not their squares.
    """
    inside = np.flatnonzero((borders[:-1] > 0) & (borders[:-1] < len(released)))
    positions = borders[inside]
    whole = np.full(positions.shape, len(released))
    left, right = released.sums(np.zeros_like(positions), positions), released.sums(positions, whole)
    both = released.sums(np.zeros_like(positions), whole)
    squares = np.maximum(left.smoothing**2 + right.smoothing**2 - both.smoothing**2, 0.0) / 2
    begins = np.bincount(numbers[inside], weights=np.sqrt(squares), minlength=phases) ** 2
    # A phase ends where the next one begins, and what one has too much the other has too little.
    change = np.roll(np.eye(phases), -1, axis=0) - np.eye(phases)
    return np.asarray((change * begins) @ change.T)


def _cut(released: Answering, period: Any, phases: int | None) -> tuple[Integers, Integers, tuple[Any, ...]]:
    """Positions where phases begin and end, the number of the phase after each but the last, and labels."""
    size = len(released)
    if isinstance(period, str):
        return _cut_by_time(released.timestamps, period, phases)
    check_integer("period", period, 2, max(size, 2), repair='Give a number of values, or "day" or "week".')
    phases = min(period, 24) if phases is None else phases
    check_integer("phases", phases, 2, period, repair="Use at most one phase per value.")
    cycles = -(-size // period)
    inside = np.arange(phases) * period // phases
    borders = (np.arange(cycles)[:, None] * period + inside).ravel()
    borders = np.minimum(np.append(borders, cycles * period), size)
    return borders, np.tile(np.arange(phases), cycles), tuple(range(phases))


def _cut_by_time(
    timestamps: NDArray[Any] | None, period: str, phases: int | None
) -> tuple[Integers, Integers, tuple[Any, ...]]:
    if period not in NAMED_PERIODS:
        raise InvalidParameter("period", "is unknown", f"Use one of {', '.join(NAMED_PERIODS)}, or a number of values.")
    if timestamps is None or timestamps.dtype.kind != "M":
        raise QueryRefused("this stream has no points in time", "Give the period as a number of values.")
    seconds, usual = NAMED_PERIODS[period]
    phases = usual if phases is None else phases
    check_integer("phases", phases, 2, seconds, repair="Leave it out.")
    if seconds % phases:
        raise InvalidParameter("phases", f"must divide a {period} into whole seconds", f"Use {usual}.")
    first, last = ((stamp - _MONDAY) // np.timedelta64(seconds, "s") for stamp in (timestamps[0], timestamps[-1]))
    steps = np.arange(int(first) * phases, (int(last) + 1) * phases + 1)
    times = _MONDAY.astype("datetime64[s]") + (steps * (seconds // phases)).astype("timedelta64[s]")
    borders = np.searchsorted(timestamps, times, side="left")
    labels = _DAYS if period == "week" and phases == len(_DAYS) else tuple(range(phases))
    return borders.astype(np.int64), steps[:-1] % phases, labels
