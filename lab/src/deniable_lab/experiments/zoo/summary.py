"""The zoo in figures: how often intervals cover, how far off the worst answer is, and what a model costs or gains."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from deniable_lab.experiments.zoo.measured_case import Measured

NO_WORSE = 1.25
"""How many times the error of the better design without a model is no worse than that."""
AS_FORECAST = 1.5
"""The factor within which an error is as forecast."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """The intervals of some questions."""

    name: str
    answers: int
    covered: float
    """The share that holds the truth; not a number without answers."""
    worst: float
    """The largest |z|."""

    @classmethod
    def of(cls, name: str, measured: Iterable[Measured]) -> Coverage:
        """Of the answers that are clear."""
        listed = list(measured)
        covered = [each for question in listed for each in question.covered]
        share = float(np.mean(covered)) if covered else math.nan
        return cls(name, len(covered), share, max((question.worst for question in listed), default=0.0))


@dataclass(frozen=True, slots=True)
class Relative:
    """Errors of cells, relative to those of the better design without a model, where such a design answers."""

    cells: int
    no_worse: float
    """The share of cells whose error is at most `NO_WORSE` times as large."""
    typical: float
    """The median."""
    large: float
    """What 95 % of the cells stay below."""

    @classmethod
    def of(cls, measured: Iterable[Measured]) -> Relative:
        """The root of the mean square over the questions of a cell."""
        ratios = _by_cell((each, each.ratio) for each in measured)
        if not ratios:
            return cls(0, math.nan, math.nan, math.nan)
        typical, large = np.quantile(ratios, [0.5, 0.95]).tolist()
        return cls(len(ratios), float(np.mean([ratio <= NO_WORSE for ratio in ratios])), typical, large)


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run of the zoo shows."""

    inside: tuple[Coverage, ...]
    """Questions that grids were fitted to, by shape; then by how tables are joined."""
    outside: tuple[Coverage, ...]
    median: float
    """Of the coverages of all shapes, inside and outside."""
    inside_errors: Relative
    outside_errors: Relative
    as_forecast: float
    """The share of cells whose errors in the workload are as forecast, within `AS_FORECAST`."""
    forecasts: int
    """How many cells are forecast."""
    stated_as_forecast: float
    """The share of questions of workloads whose stated error is as forecast: few releases do not blur it."""
    worst: float

    @classmethod
    def of(cls, measured: Sequence[Measured]) -> Summary:
        """Of all questions."""
        names = [*dict.fromkeys(each.shape for each in measured), *dict.fromkeys(each.joined for each in measured)]
        shapes = len({each.shape for each in measured})

        def split(inside: bool) -> tuple[Coverage, ...]:
            return tuple(
                Coverage.of(name, [m for m in measured if m.inside == inside and name in (m.shape, m.joined)])
                for name in names
            )

        inside, outside = split(True), split(False)
        shares = [each.covered for each in (*inside[:shapes], *outside[:shapes]) if each.answers]
        forecasts = _by_cell((each, each.of_forecast) for each in measured if each.inside)
        stated = [m.stated / m.forecast for m in measured if m.inside and not math.isnan(m.of_forecast)]
        return cls(
            inside,
            outside,
            float(np.median(shares)),
            Relative.of(each for each in measured if each.inside),
            Relative.of(each for each in measured if not each.inside),
            float(np.mean([1 / AS_FORECAST <= ratio <= AS_FORECAST for ratio in forecasts])) if forecasts else math.nan,
            len(forecasts),
            float(np.mean([1 / AS_FORECAST <= ratio <= AS_FORECAST for ratio in stated])) if stated else math.nan,
            max((each.worst for each in measured), default=0.0),
        )


def _by_cell(ratios: Iterable[tuple[Measured, float]]) -> list[float]:
    """For each cell the root of the mean square of some ratios of its questions."""
    by_cell: dict[int, list[float]] = {}
    for each, ratio in ratios:
        if not math.isnan(ratio):
            by_cell.setdefault(each.seed, []).append(ratio)
    return [math.sqrt(float(np.mean(np.square(mine)))) for mine in by_cell.values()]
