"""What cells of the zoo showed, as a CSV file: a row per answer. A run that was stopped goes on where it ended."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable
from dataclasses import astuple, fields
from pathlib import Path

from deniable.queries.answers.result import Estimate
from deniable_lab.experiments.zoo.measured_case import Measured

QUESTION = tuple(each.name for each in fields(Measured) if each.name != "answers")
ANSWER = ("release", "value", "stderr", "model", "low", "high")


def appended(path: Path, measured: Iterable[Measured]) -> None:
    """Add all questions of one cell; they are on the disk when this returns, and one by one in the file."""
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        lines = csv.writer(file, lineterminator="\n")
        if fresh:
            lines.writerow((*QUESTION, *ANSWER))
        for each in measured:
            values = dict(zip((field.name for field in fields(each)), astuple(each), strict=True))
            shown = [_shown(values[name]) for name in QUESTION]
            for release, answer in enumerate(each.answers):
                numbers = (answer.value, answer.stderr, answer.model, *answer.interval)
                lines.writerow((*shown, release, *map(_shown, numbers)))
        file.flush()
        os.fsync(file.fileno())


def read_measured(path: Path) -> list[Measured]:
    """All questions of a file, in its order; none if there is no file."""
    if not path.exists():
        return []
    answers: dict[tuple[str, ...], list[Estimate]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for position, row in enumerate(csv.DictReader(file)):
            key = tuple(row[name] for name in QUESTION)
            if row["release"] == "0":
                key = (*key, str(position))  # a workload may ask the same question twice
                answers[key] = mine = []
            value, stderr, model, low, high = (float(row[name]) for name in ANSWER[1:])
            mine.append(Estimate(value, stderr, model=model, bounds=(low, high)))
    return [_measured(dict(zip(QUESTION, key, strict=False)), mine) for key, mine in answers.items()]


def _measured(values: dict[str, str], answers: list[Estimate]) -> Measured:
    return Measured(
        seed=int(values["seed"]),
        shape=values["shape"],
        joined=values["joined"],
        epsilon=float(values["epsilon"]),
        users=int(values["users"]),
        question=values["question"],
        inside=values["inside"] == "True",
        truth=float(values["truth"]),
        answers=tuple(answers),
        reference=float(values["reference"]),
        forecast=float(values["forecast"]),
    )


def _shown(value: object) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)
