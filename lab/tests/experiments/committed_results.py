"""The numbers of the committed results, as rows."""

import csv
from pathlib import Path

from deniable_lab.experiments.harness import Row, Rows

RESULTS = Path(__file__).parents[3] / "results"
NUMBERS = ("mean", "stderr", "median", "low", "high")


def typed(text):
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def committed(name):
    rows = []
    with (RESULTS / f"{name}.csv").open(encoding="utf-8") as file:
        for line in csv.DictReader(file):
            numbers = [float(line.pop(column)) for column in NUMBERS]
            quantity, repetitions = line.pop("quantity"), int(line.pop("repetitions"))
            rows.append(Row({k: typed(v) for k, v in line.items() if v != ""}, quantity, *numbers, repetitions))
    return Rows(tuple(rows))
