"""The committed pages about tables say what the code says of the committed numbers."""

import csv
from pathlib import Path

import pytest

from deniable_lab.experiments.harness import Row, Rows, experiments
from deniable_lab.experiments.writing import draw

RESULTS = Path(__file__).parents[3] / "results"
NUMBERS = ("mean", "stderr", "median", "low", "high")
NAMES = [name for name in experiments() if name.startswith("tables/")]


def typed(text):
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


@pytest.mark.skipif(not RESULTS.is_dir(), reason="the results are in the repository only")
@pytest.mark.parametrize("name", NAMES)
def test_pages_follow_from_the_numbers(name, tmp_path):
    experiment, rows = experiments()[name], committed(name)
    page = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    assert experiment.describe(rows).strip() in page
    draw(experiment, rows, tmp_path / "picture.png")
    assert (RESULTS / f"{name}.png").stat().st_size < 120_000
