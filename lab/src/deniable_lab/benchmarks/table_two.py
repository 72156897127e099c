"""Standard errors of the averages of [XDW20, Table 2]: the paper's methods and our defaults, next to those printed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from deniable_lab.experiments.harness import Data
from deniable_lab.experiments.tables._lines import OURS
from deniable_lab.experiments.tables.table_two import EPSILONS, METHODS, PRINTED, QUESTIONS, answers, survey

__all__ = ["EPSILONS", "METHODS", "Cell", "measure"]


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell of the table."""

    epsilon: float
    question: str
    method: str
    stderr: float
    printed: float
    """The method's own printed figure; for ours the best printed one of all methods."""
    wanted: float
    """How many times smaller than the printed figure ours has to be; 0 where that is not asked."""


def measure(data: Data, rows: int, runs: int, advance: Callable[[int], None]) -> Iterator[Cell]:
    """All cells. A standard error is the root mean square of those that the releases state."""
    folder = survey(data)
    for epsilon in EPSILONS:
        for number, method in enumerate(METHODS):
            releases = [answers(method, epsilon, run, rows, folder) for run in range(runs)]
            for name in QUESTIONS:
                printed, ours = PRINTED[name, epsilon], method in OURS
                figure = min(printed) if ours else printed[number]
                wanted = (2.0 if epsilon <= 2.0 else 1.0) if ours else 0.0
                stderr = math.sqrt(sum(release[name][1] for release in releases) / runs)
                yield Cell(epsilon, name, method, stderr, figure, wanted)
            advance(1)
