"""Ratios of measured means, each with its standard error."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from deniable_lab.experiments.harness import Row, Rows
from deniable_lab.experiments.stream_reference import Figure


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio and its standard error, which is not a number where a mean comes from a single run.

    >>> str(Ratio(0.271, 0.034)), str(Ratio(1.2e11, 3e10)), str(Ratio(1.0, 0.0)), str(Ratio(5.0, math.nan))
    ('0.27 ± 0.03', '1.2e+11 ± 0.3e+11', '1.0', '5.0')
    """

    mean: float
    stderr: float

    def __str__(self) -> str:
        if not self.stderr > 1e-9 * abs(self.mean):  # nothing was drawn, or nobody knows
            return _rounded(self.mean, self.mean)
        power = math.floor(math.log10(abs(self.mean))) if abs(self.mean) >= 10_000 else 0
        scale = self.mean / 10**power
        error = self.stderr / 10**power
        mean, stderr = _rounded(scale, scale), _rounded(error, scale)
        if not float(stderr.replace(",", "")):
            stderr = f"{error:.1g}"
        return f"{mean}e+{power:02d} ± {stderr}e+{power:02d}" if power else f"{mean} ± {stderr}"


def ratio(above: Row | Figure | Ratio, below: Row | Figure | Ratio) -> Ratio:
    """One mean over another, to first order: relative errors add up in squares.

    >>> str(ratio(Figure(6.0, 0.3), Figure(2.0, 0.1)))
    '3.0 ± 0.2'
    """
    quotient = above.mean / below.mean
    return Ratio(quotient, quotient * math.hypot(above.stderr / above.mean, below.stderr / below.mean))


def ratios(above: Rows, below: Rows) -> list[Ratio]:
    """Row over row, in order."""
    return [ratio(*pair) for pair in zip(above, below, strict=True)]


def average(parts: Iterable[Row | Figure]) -> Figure:
    """The mean of several means from the same runs: their errors may go together, so errors are averaged, too.

    >>> average([Figure(1.0, 0.1), Figure(3.0, 0.3)])
    Figure(mean=2.0, stderr=0.2)
    """
    each = list(parts)
    return Figure(*(math.fsum(column) / len(each) for column in zip(*((p.mean, p.stderr) for p in each), strict=True)))


def root(square: Row | Figure | Ratio) -> Ratio:
    """A root mean square from a mean square: half the relative error.

    >>> str(root(Figure(4.0, 0.4)))
    '2.0 ± 0.1'
    """
    mean = math.sqrt(square.mean)
    return Ratio(mean, square.stderr / (2 * mean) if mean else 0.0)


def extremes(quotients: Iterable[Ratio]) -> tuple[Ratio, Ratio]:
    """The least and the largest of several ratios.

    >>> [str(end) for end in extremes([Ratio(3.0, 0.1), Ratio(1.0, 0.2), Ratio(2.0, 0.3)])]
    ['1.0 ± 0.2', '3.0 ± 0.1']
    """
    ordered = sorted(quotients, key=lambda quotient: quotient.mean)
    return ordered[0], ordered[-1]


def geometric_mean(quotients: Iterable[Ratio]) -> Ratio:
    """The geometric mean of independent ratios.

    >>> str(geometric_mean([Ratio(2.0, 0.2), Ratio(8.0, 0.8)]))
    '4.0 ± 0.3'
    """
    parts = list(quotients)
    mean = math.exp(math.fsum(math.log(part.mean) for part in parts) / len(parts))
    return Ratio(mean, mean * math.hypot(*(part.stderr / part.mean for part in parts)) / len(parts))


def _rounded(number: float, scale: float) -> str:
    """As many digits as two of `scale` have."""
    if scale == 0 or abs(scale) >= 10_000:
        return f"{number:.2g}"
    return f"{number:,.{max(1 - math.floor(math.log10(abs(scale))), 0)}f}"
