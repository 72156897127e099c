"""Answers with their errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

import pyarrow as pa

from deniable.errors import QueryRefused
from deniable.notebook import html_table, html_text
from deniable.simulation import NOTE, mark
from deniable.wording import percent

UNCLEAR = "unclear: too few people, or too much noise, to divide by their number"


def number(value: float, error: float) -> str:
    """A number with as many digits as its error leaves meaning to: two of the error's.

    >>> number(291.499, 19.9), number(0.123456, 0.00789), number(7.0, 0.0), number(-0.2, 19.9)
    ('291', '0.1235', '7', '0')
    """
    if not error > 0 or not math.isfinite(error):
        return f"{value:,.10g}"
    decimals = min(max(1 - math.floor(math.log10(error)), 0), 9)
    return f"{value:z,.{decimals}f}"


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number, its standard error and an interval that contains the truth with the stated confidence.

    >>> estimate = Estimate(25_105.7, 2_120.0)
    >>> print(estimate)
    25,106 ± 2,120 (95%: 20,951 to 29,261)
    >>> estimate.interval[0] < 27_000 < estimate.interval[1]
    True
    """

    value: float
    stderr: float
    confidence: float = 0.95
    together: int = 1
    """How many intervals hold at once with that confidence (Bonferroni)."""
    model: float = 0.0
    """The additional error on data that meets a grid's assumption: one standard deviation."""
    bounds: tuple[float, float] | None = None
    """The interval, where it is not the value and the same distance to both sides."""

    @property
    def error(self) -> float:
        """The standard error and the model error together."""
        return math.hypot(self.stderr, self.model)

    @property
    def interval(self) -> tuple[float, float]:
        """From low to high."""
        if self.bounds is not None:
            return self.bounds
        tail = (1 - self.confidence) / self.together / 2
        reach = NormalDist().inv_cdf(1 - tail) * self.error
        return self.value - reach, self.value + reach

    def __str__(self) -> str:
        if math.isnan(self.value) and self.bounds is None:
            return "unclear"
        low, high = (number(end, interval_digits(self)) for end in self.interval)
        return f"{_shown(self)} ({percent(self.confidence)}: {low} to {high})"

    def _repr_html_(self) -> str:
        """What it prints as, for notebooks."""
        return html_text(str(self))


@dataclass(frozen=True, slots=True)
class Result:
    """One row per group: what it is, and an estimate for everything that was asked.

    >>> result = Result({"marital": ["single"]}, {"n": (Estimate(25_105.7, 2_120.0),)})
    >>> print(result)
    marital  n (± standard error)
     single        25,106 ± 2,120
    """

    groups: Mapping[str, Sequence[Any]]
    answers: Mapping[str, tuple[Estimate, ...]]
    notes: tuple[str, ...] = ()
    sql: str = field(default="", repr=False)
    simulation: bool = False
    """Whether the reports come from a simulation and protect nobody."""

    def __len__(self) -> int:
        return len(next(iter([*self.answers.values(), *self.groups.values()]), ()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Row by row: groups as they are, answers as estimates.

        >>> [row["sex"] for row in Result({"sex": ["f", "m"]}, {"n": (Estimate(7.0, 0.5), Estimate(5.0, 0.5))})]
        ['f', 'm']
        """
        columns = {**self.groups, **self.answers}
        for row_number in range(len(self)):
            yield {name: values[row_number] for name, values in columns.items()}

    @property
    def footnotes(self) -> tuple[str, ...]:
        """What stands below the table: the notes, and of a simulation that it is one."""
        return (*self.notes, NOTE) if self.simulation else self.notes

    def scalar(self) -> Estimate:
        """The only estimate of an answer that has one.

        >>> Result({}, {"n": (Estimate(7.0, 0.5),)}).scalar().stderr
        0.5
        """
        (estimates, *others) = self.answers.values() or ((),)
        if not others and not estimates:
            raise QueryRefused("the answer has no row", "Ask without LIMIT, OFFSET or HAVING.")
        if others or len(estimates) != 1:
            raise QueryRefused("the answer has several numbers", "Read .answers, or ask for one aggregate.")
        return estimates[0]

    def to_arrow(self) -> pa.Table:
        """Columns: the groups, and for every answer x also x_stderr, x_low, x_high; on a grid x_model.

        >>> Result({"sex": ["f"]}, {"n": (Estimate(7.0, 0.5),)}).to_arrow().column_names
        ['sex', 'n', 'n_stderr', 'n_low', 'n_high']
        """
        columns: dict[str, Any] = {name: list(values) for name, values in self.groups.items()}
        for name, estimates in self.answers.items():
            columns[name] = pa.array([estimate.value for estimate in estimates], pa.float64())
            columns[f"{name}_stderr"] = pa.array([estimate.stderr for estimate in estimates], pa.float64())
            if any(estimate.model for estimate in estimates):
                columns[f"{name}_model"] = pa.array([estimate.model for estimate in estimates], pa.float64())
            columns[f"{name}_low"] = pa.array([estimate.interval[0] for estimate in estimates], pa.float64())
            columns[f"{name}_high"] = pa.array([estimate.interval[1] for estimate in estimates], pa.float64())
        made = pa.table(columns)
        return made.replace_schema_metadata(mark(simulation=True)) if self.simulation else made

    def to_pandas(self) -> Any:
        """The same as a pandas frame.

        >>> Result({"sex": ["f"]}, {"n": (Estimate(7.0, 0.5),)}).to_pandas().shape
        (1, 5)
        """
        return self.to_arrow().to_pandas()

    def to_polars(self) -> Any:
        """The same as a Polars frame.

        >>> Result({"sex": ["f"]}, {"n": (Estimate(7.0, 0.5),)}).to_polars().shape
        (1, 5)
        """
        import polars

        return polars.from_arrow(self.to_arrow())

    def __str__(self) -> str:
        header = [*self.groups, *(f"{name} (± standard error)" for name in self.answers)]
        rows = [header]
        for row_number in range(len(self)):
            row = [str(values[row_number]) for values in self.groups.values()]
            rows.append([*row, *(_shown(estimates[row_number]) for estimates in self.answers.values())])
        widths = [max(len(row[column]) for row in rows) for column in range(len(header))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join([*lines, *self.footnotes])

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        rows = (
            [
                *(values[row_number] for values in self.groups.values()),
                *(_shown(estimates[row_number]) for estimates in self.answers.values()),
            ]
            for row_number in range(len(self))
        )
        header = [*self.groups, *(f"{name} (± standard error)" for name in self.answers)]
        return html_table(header, rows, notes=self.footnotes)


def interval_digits(estimate: Estimate) -> float:
    """The error that decides how many digits of an interval have a meaning."""
    low, high = estimate.interval
    return estimate.error if not math.isnan(estimate.value) else (high - low) / 4


def _shown(estimate: Estimate) -> str:
    if math.isnan(estimate.value):
        return "unclear"
    model = f" ± {number(estimate.model, estimate.model)} model" if estimate.model else ""
    return f"{number(estimate.value, estimate.stderr)} ± {number(estimate.stderr, estimate.stderr)}{model}"
