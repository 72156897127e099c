"""What an attacker sees of many runs: columns with one entry per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

ABSENT = -1
"""Stands where a run has no such entry, as when it sent fewer reports than others."""

Column = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Output:
    """Everything that runs have put out. A column of one of several reports is called "orders[0].y".

    `answers` may depend on the data, as far as ε allows. `facts` (views, seeds, number and order of reports, …) must
    have one and the same law whatever the data are.
    """

    answers: Mapping[str, Column]
    facts: Mapping[str, Column] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Column:
        return self.answers[name] if name in self.answers else self.facts[name]

    def __or__(self, other: Output) -> Output:
        """The columns of both."""
        return Output({**self.answers, **other.answers}, {**self.facts, **other.facts})

    def part(self, runs: slice) -> Output:
        """Some of the runs."""
        return Output(
            {name: column[runs] for name, column in self.answers.items()},
            {name: column[runs] for name, column in self.facts.items()},
        )


def joined(parts: Sequence[Output], sizes: Sequence[int]) -> Output:
    """Batches of runs one after another; a batch without some column has `ABSENT` there."""

    def column(kind: str, name: str) -> Column:
        pieces = [getattr(part, kind) for part in parts]
        return np.concatenate(
            [piece.get(name, np.full(size, ABSENT)) for piece, size in zip(pieces, sizes, strict=True)]
        )

    def columns(kind: str) -> dict[str, Column]:
        names = dict.fromkeys(name for part in parts for name in getattr(part, kind))
        return {name: column(kind, name) for name in names}

    return Output(columns("answers"), columns("facts"))
