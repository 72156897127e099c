"""Answers with their errors."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pyarrow as pa

from deniable.errors import QueryRefused
from deniable.notebook import html_table, html_text
from deniable.queries.answers.answer_layout import all_columns, error_text, interval_text
from deniable.simulation import NOTE, mark
from deniable.wording import percent

UNCLEAR = "unclear: too few people, or too much noise, to divide by their number"


def are_years(low: float, high: float) -> bool:
    """Whether numbers of this range are years, most likely."""
    return 1500 <= low <= high < 2500


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
    year: bool = False
    """Whether it is a year, which is written without commas."""

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
        return f"{error_text(self)} ({percent(self.confidence)}: {interval_text(self)})"

    def _repr_html_(self) -> str:
        """What it prints as, for notebooks."""
        return html_text(str(self))


@dataclass(frozen=True, slots=True)
class Result:
    """One row per group: what it is, and an estimate for everything that was asked.

    >>> result = Result({"marital": ["single"]}, {"n": (Estimate(25_105.7, 2_120.0),)})
    >>> print(result)
    marital       n     95 % interval
     single  25,106  20,951 to 29,261
    """

    groups: Mapping[str, Sequence[Any]]
    answers: Mapping[str, tuple[Estimate, ...]]
    notes: tuple[str, ...] = ()
    sql: str = field(default="", repr=False)
    simulation: bool = False
    """Whether the reports come from a simulation and protect nobody."""
    asked: tuple[str, ...] = field(default=(), repr=False)
    """The columns in the order of the question, where it is known."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of groups and answers in the order of the question, or groups first.

        >>> Result({"sex": ["f"]}, {"n": (Estimate(7.0, 0.5),)}, asked=("n", "sex")).columns
        ('n', 'sex')
        """
        known = (*self.groups, *self.answers)
        return self.asked if sorted(self.asked) == sorted(known) else known

    def __len__(self) -> int:
        return len(next(iter([*self.answers.values(), *self.groups.values()]), ()))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Row by row: groups as they are, answers as estimates.

        >>> [row["sex"] for row in Result({"sex": ["f", "m"]}, {"n": (Estimate(7.0, 0.5), Estimate(5.0, 0.5))})]
        ['f', 'm']
        """
        known: dict[str, Sequence[Any]] = {**self.groups, **self.answers}
        columns = {name: known[name] for name in self.columns}
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
        """Columns in the order of the question; after an answer x also x_stderr, x_low, x_high; on a grid x_model.

        >>> Result({"sex": ["f"]}, {"n": (Estimate(7.0, 0.5),)}).to_arrow().column_names
        ['sex', 'n', 'n_stderr', 'n_low', 'n_high']
        """
        columns: dict[str, Any] = {}
        for name in self.columns:
            if name in self.groups:
                columns[name] = list(self.groups[name])
                continue
            estimates = self.answers[name]
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

    def to_excel(self, path: str | Path) -> None:
        """Write the same columns into an .xlsx file, with notes below.

        >>> import tempfile
        >>> Result({"sex": ["f"]}, {"n": (Estimate(7.0, 0.5),)}).to_excel(f"{tempfile.mkdtemp()}/answer.xlsx")
        """
        from deniable.queries.answers.spreadsheet import write_spreadsheet

        table = self.to_arrow()
        rows = [list(row.values()) for row in table.to_pylist()]
        write_spreadsheet(path, table.column_names, rows, list(self.footnotes))

    def plot(self, path: str | Path | None = None) -> Any:
        """A picture: one panel per answer, one point with its interval per row; also written to a file if named.

        The result is a figure of matplotlib, the extra `deniable[plot]`.

        >>> result = Result({"sex": ["f", "m"]}, {"n": (Estimate(7.0, 0.5), Estimate(5.0, 0.5))})
        >>> result.plot().axes[0].get_ylabel()
        'n'
        """
        from deniable.figure import save
        from deniable.queries.answers.answer_plot import answer_figure

        figure = answer_figure(self)
        if path is not None:
            save(figure, path)
        return figure

    def to_text(self, *, stderr: bool = False) -> str:
        """The answer as a table: every value with its interval or, with `stderr`, with its standard error.

        >>> print(Result({}, {"n": (Estimate(25_105.7, 2_120.0),)}).to_text(stderr=True))
        n (± standard error)
              25,106 ± 2,120
        """
        columns = all_columns(self, stderr=stderr)
        widths = [max(map(len, column)) for column in columns]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in zip(*columns, strict=True)
        ]
        return "\n".join([*lines, *self.footnotes])

    def __str__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        header, *rows = zip(*all_columns(self), strict=True)
        return html_table(header, rows, notes=self.footnotes)
