"""What an experiment is, and what its runs add up to. Values and pure functions; files are written elsewhere."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from deniable.arrays import Floats
from deniable.errors import InvalidParameter
from deniable_lab.experiments.data import GROUPS, Data

__all__ = ["Data", "Experiment", "Measured", "Row", "Rows", "Setting", "experiments", "named", "summarise"]

Setting = dict[str, str | int | float | bool]
Measured = Mapping[str, float] | Sequence[tuple[Setting, Mapping[str, float]]]
"""Numbers by name; or several times further columns of the setting with their numbers."""


@dataclass(frozen=True, slots=True)
class Row:
    """One number of one setting, over its repetitions."""

    setting: Setting
    quantity: str
    mean: float
    stderr: float
    median: float
    low: float
    high: float
    """5 % and 95 % of the repetitions."""
    repetitions: int

    def __getitem__(self, column: str) -> Any:
        return self.setting[column]


@dataclass(frozen=True, slots=True)
class Rows:
    """All numbers of an experiment, in the order of its settings."""

    rows: tuple[Row, ...]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def of(self, quantity: str) -> Rows:
        """Rows of one quantity."""
        return Rows(tuple(row for row in self.rows if row.quantity == quantity))

    def where(self, **columns: Any) -> Rows:
        """Rows whose setting has these values."""
        same = (row for row in self.rows if all(row.setting.get(name) == value for name, value in columns.items()))
        return Rows(tuple(same))

    def only(self, **columns: Any) -> Row:
        """The only row with these values."""
        matching = self.where(**columns)
        if len(matching) != 1:
            raise KeyError(f"{len(matching)} rows have {columns}")
        return matching.rows[0]

    def split(self, column: str) -> list[tuple[Any, Rows]]:
        """Rows by the values of a column, in the order these come."""
        values = list(dict.fromkeys(row.setting[column] for row in self.rows if column in row.setting))
        return [(value, self.where(**{column: value})) for value in values]

    def column(self, name: str) -> list[Any]:
        """A column of the settings."""
        return [row.setting[name] for row in self.rows]

    @property
    def means(self) -> Floats:
        """Means of the repetitions."""
        return np.array([row.mean for row in self.rows])

    @property
    def stderrs(self) -> Floats:
        """Standard errors of these means."""
        return np.array([row.stderr for row in self.rows])

    @property
    def medians(self) -> Floats:
        """Medians of the repetitions."""
        return np.array([row.median for row in self.rows])


@dataclass(frozen=True, slots=True)
class Experiment:
    """One table or figure. See the package's docstring for how to write one.

    `repetitions` are those of --quick and of a full run. `settings` lists what is measured, each with a column `data`.
    `plot` draws on a matplotlib figure of `size` inches. `describe` tells what was found, in Markdown.
    """

    title: str
    figure: str
    settings: Callable[[Data, bool], Sequence[Setting]]
    measure: Callable[[Setting, int, Data], Measured]
    plot: Callable[[Rows, Any], None]
    describe: Callable[[Rows], str]
    repetitions: tuple[int, int] = (5, 40)
    fewest: Callable[[Setting], int] = lambda _: 1
    """The fewest repetitions of a setting, also with --quick: more where a headline rests on it and a run is cheap."""
    size: tuple[float, float] = (7.0, 3.2)
    setting: str = ""
    """What all settings have in common, in a sentence."""
    runs_of: str = ""
    """The experiment whose runs these are, where two figures show the same runs; settings and measure are its own."""


def experiments() -> dict[str, Experiment]:
    """All experiments by name: what lies in the folders is what there is."""
    folder = Path(__file__).parent
    return {
        f"{group}/{file.stem.replace('_', '-')}": importlib.import_module(
            f"{__package__}.{group}.{file.stem}"
        ).EXPERIMENT
        for group in GROUPS
        for file in sorted((folder / group).glob("*.py"))
        if not file.stem.startswith("_")
    }


def named(name: str) -> dict[str, Experiment]:
    """The experiments that a person means: one, a folder of them, or all."""
    known = experiments()
    chosen = {path: known[path] for path in known if name in ("all", path, path.partition("/")[0])}
    if not chosen:
        raise InvalidParameter("NAME", "is not an experiment", "Run `deniable reproduce` to see them.")
    return chosen


def summarise(settings: Iterable[tuple[Setting, Sequence[Mapping[str, float]]]]) -> Rows:
    """Rows from the runs of each setting: mean, standard error, median and 5 % to 95 % of every number."""
    rows = []
    for setting, runs in settings:
        for quantity in dict.fromkeys(name for run in runs for name in run):
            values = np.array([run[quantity] for run in runs if quantity in run], dtype=np.float64)
            spread = float(values.std(ddof=1) / math.sqrt(values.size)) if values.size > 1 else math.nan
            median, low, high = np.quantile(values, (0.5, 0.05, 0.95))
            numbers = (float(values.mean()), spread, float(median), float(low), float(high))
            rows.append(Row(setting, quantity, *numbers, values.size))
    return Rows(tuple(rows))
