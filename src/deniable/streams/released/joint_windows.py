"""Sums over many windows together: how their errors go together, so that differences and averages have honest errors.

An answer for a window is a difference X(stop) − X(start) of prefix sums, whatever made them. With v(i, j) the variance
of X(j) − X(i), two windows have the covariance

    Cov([a, b), [c, d)) = ½·(v(a, d) + v(b, c) − v(a, c) − v(b, d)).

So the exact variances of single windows give the exact covariance of any of them.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from deniable.arrays import Floats, Integers
from deniable.errors import QueryRefused
from deniable.streams.released.windows import WindowEstimate, Windows

MOST_BORDERS = 2048
"""Positions at which jointly answered windows may start or end. Their number is squared."""


class Answering(Protocol):
    """What questions about many windows need of a released stream."""

    @property
    def about(self) -> Any:
        """Public settings."""

    @property
    def timestamps(self) -> NDArray[Any] | None:
        """One per value, or none at all."""

    @property
    def simulation(self) -> bool:
        """Whether it protects nobody."""

    def __len__(self) -> int: ...

    def sums(self, starts: Any, stops: Any, *, cut: bool = False) -> Windows:
        """Sums over windows with their errors."""


@dataclass(frozen=True, slots=True, eq=False)
class JointWindows(Windows):
    """Sums over windows with the covariance of their errors.

    >>> import deniable as dn
    >>> tops = dn.streams.ToPS(1.0, 100, warmup=1000, horizon=1000, source=dn.SeededSource(1), simulation=True)
    >>> private = tops.push_many([5, 6, 7, 8] * 1000)
    >>> days = tops.released.sums([0, 500], [1000, 1500], covariance=True)
    >>> days.covariance.shape
    (2, 2)
    """

    noise: Floats
    """Covariance of the noise, which is exact. Its diagonal is the square of `stderrs`."""
    covariance: Floats
    """Covariance of all errors that intervals cover. What smoothing misses at different positions is taken as
    independent, which is wrong for windows that recur with the stream: ask for a profile then."""

    def combine(self, weights: Any, *, confidence: float = 0.95) -> WindowEstimate:
        """A weighted sum of the windows, with the error that it has.

        >>> change = days.combine([-1, 1])
        >>> bool(change.stderr**2 < (days.stderrs**2).sum())
        True
        """
        given = np.asarray(weights, dtype=np.float64)
        if given.shape != self.values.shape:
            raise QueryRefused(f"there are {self.values.size} windows", "Give one weight for each.")
        noise = max(float(given @ self.noise @ given), 0.0)
        error = max(float(given @ self.covariance @ given), noise)
        up, down = (float(np.maximum(sign * given, 0) @ self.truncation) for sign in (1, -1))
        cut = max(up, down)
        return WindowEstimate(
            float(given @ self.values),
            noise**0.5,
            confidence,
            smoothing=(error - noise) ** 0.5,
            truncation=None if np.isnan(cut) else cut,
        )


def joint_windows(released: Answering, starts: Integers, stops: Integers, *, cut: bool = False) -> JointWindows:
    """The sums, and the covariances of their errors."""
    answers = released.sums(starts, stops, cut=cut)
    noise, smoothing, added = joint_errors(released, starts, stops, cut=cut)
    facts = {field.name: getattr(answers, field.name) for field in fields(answers)}
    return JointWindows(**facts, noise=noise, covariance=possible(noise + smoothing + added))


def joint_errors(
    released: Answering, starts: Integers, stops: Integers, *, cut: bool = False
) -> tuple[Floats, Floats, Floats]:
    """Covariances of noise, of smoothing, and of what was added back for values that were cut."""
    borders, index = np.unique(np.concatenate((starts, stops)), return_inverse=True)
    if borders.size > MOST_BORDERS:
        raise QueryRefused(
            f"windows that are answered together start and end at {borders.size:,} positions",
            f"Ask for windows with at most {MOST_BORDERS:,}.",
        )
    i, j = np.triu_indices(borders.size, 1)
    between = released.sums(borders[i], borders[j], cut=cut)
    first, last = index[: starts.size], index[starts.size :]

    def polarised(errors: Floats) -> Floats:
        apart = np.zeros((borders.size, borders.size))
        apart[i, j] = apart[j, i] = errors**2
        up, down = apart[np.ix_(first, last)], apart[np.ix_(first, first)] + apart[np.ix_(last, last)]
        return np.asarray((up + up.T - down) / 2)

    return polarised(between.stderrs), polarised(between.smoothing), polarised(between.cut)


def possible(covariance: Floats) -> Floats:
    """The nearest covariance matrix from above: estimates of single windows need not agree with each other."""
    values, vectors = np.linalg.eigh(covariance)
    if not values.size or values[0] >= 0:
        return covariance
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
