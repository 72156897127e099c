"""Questions about many windows at once: their joint errors, a smooth curve, a profile by phase."""

from __future__ import annotations

from typing import Any

from deniable.arrays import Integers
from deniable.streams.released.joint_windows import Answering, JointWindows, joint_windows
from deniable.streams.released.profile import Profile, profile_of
from deniable.streams.released.trend import Trend, trend_of


class ManyWindows:
    """What a released stream can answer about many windows together. All of it is free.

    >>> import deniable as dn
    >>> tops = dn.streams.ToPS(1.0, 100, warmup=1000, horizon=1000, source=dn.SeededSource(1), simulation=True)
    >>> private = tops.push_many([5, 6, 7, 8] * 1000)
    """

    def _joint_sums(self: Answering, starts: Integers, stops: Integers, *, cut: bool) -> JointWindows:
        """The sums over windows that were checked, with the covariance of their errors."""
        return joint_windows(self, starts, stops, cut=cut)

    def trend(
        self: Answering, *, cell: int | None = None, bandwidth: float | None = None, confidence: float = 0.95
    ) -> Trend:
        """A smooth curve with a band that holds at all its points at once.

        The band is for the stream smoothed in the same way, and assumes nothing about the stream. `smoothing` estimates
        how far the means of single cells lie from the curve. `cell`: values per point, by default whole blocks and
        about 200 points. `bandwidth`: values over which the curve is smoothed, by default with the least estimated
        error.

        >>> curve = tops.released.trend()
        >>> bool(((curve.lows < 6.5) & (6.5 < curve.highs)).all())
        True
        """
        return trend_of(self, cell=cell, bandwidth=bandwidth, confidence=confidence)

    def profile(self: Answering, period: Any, *, phases: int | None = None, confidence: float = 0.95) -> Profile:
        """Means by phase of a period: a number of values, or "hour", "day" or "week" if there are points in time.

        The errors of phases belong together, and `difference` and `contrast` of the result use that. A week has a phase
        for each day, from Monday on, a day has 24 phases, an hour 60, and a number of values at most 24.

        >>> import numpy as np
        >>> hours = np.datetime64("2024-01-01T00") + np.arange(3000)
        >>> week = tops.released.with_timestamps(hours).profile("week")
        >>> week.labels[:2], bool(week.difference("Mon", "Sun").stderr > 0)
        (('Mon', 'Tue'), True)
        """
        return profile_of(self, period, phases=phases, confidence=confidence)
