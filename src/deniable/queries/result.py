"""Answers with their errors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from deniable.errors import QueryRefused

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, its standard error and an interval that contains the truth with the stated confidence."""

    value: float
    stderr: float
    confidence: float = 0.95

    @property
    def interval(self) -> tuple[float, float]:
        """From low to high."""
        reach = NormalDist().inv_cdf(0.5 + self.confidence / 2) * self.stderr
        return self.value - reach, self.value + reach

    def __str__(self) -> str:
        low, high = self.interval
        return f"{self.value:,.6g} ± {self.stderr:,.3g} ({self.confidence:.0%}: {low:,.6g} to {high:,.6g})"


@dataclass(frozen=True, slots=True)
class Result:
    """One row per group: what it is, and an estimate for everything that was asked."""

    groups: Mapping[str, Sequence[Any]]
    answers: Mapping[str, tuple[Estimate, ...]]
    notes: tuple[str, ...] = ()

    def scalar(self) -> Estimate:
        """The only estimate of an answer that has one."""
        (estimates, *others) = self.answers.values()
        if others or len(estimates) != 1:
            raise QueryRefused("the answer has several numbers", "Read .answers, or ask for one aggregate.")
        return estimates[0]

    def to_arrow(self) -> pa.Table:
        """Columns: the groups, and for every answer x also x_stderr, x_low and x_high."""
        columns: dict[str, Any] = {name: list(values) for name, values in self.groups.items()}
        for name, estimates in self.answers.items():
            columns[name] = [one.value for one in estimates]
            columns[f"{name}_stderr"] = [one.stderr for one in estimates]
            columns[f"{name}_low"] = [one.interval[0] for one in estimates]
            columns[f"{name}_high"] = [one.interval[1] for one in estimates]
        return pa.table(columns)

    def to_pandas(self) -> Any:
        """The same as a pandas frame."""
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The same as a Polars frame."""
        import polars

        return polars.from_arrow(self.to_arrow())

    def __str__(self) -> str:
        header = [*self.groups, *(f"{name} (± standard error)" for name in self.answers)]
        rows = [header]
        count = len(next(iter(self.answers.values())))
        for place in range(count):
            row = [str(values[place]) for values in self.groups.values()]
            rows.append([*row, *(_shown(estimates[place]) for estimates in self.answers.values())])
        widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([*lines, *self.notes])


def _shown(estimate: Estimate) -> str:
    if math.isnan(estimate.value):
        return "unclear"
    return f"{estimate.value:,.6g} ± {estimate.stderr:,.3g}"


def total(contributions: Floats, confidence: float) -> Estimate:
    """The sum of independent contributions; their spread tells its error (slightly too much, never too little)."""
    value = float(contributions.sum())
    spread = float(np.square(contributions).sum()) - value**2 / max(contributions.size, 1)
    return Estimate(value, math.sqrt(max(spread, 0.0)), confidence)


CLEAR = 3.0
"""A denominator must be so many of its standard errors above zero."""


def ratio(above: Floats, below: Floats, confidence: float) -> Estimate:
    """The quotient of two sums of contributions of the same users, its error by the delta method; NaN if unclear."""
    denominator = total(below, confidence)
    if not denominator.value > CLEAR * denominator.stderr:
        return Estimate(math.nan, math.nan, confidence)
    value = float(above.sum()) / denominator.value
    rest = total(above - value * below, confidence)
    return Estimate(value, rest.stderr / denominator.value, confidence)
