"""Ratios that the summary of results states about streams: those of the tables, with their standard errors."""

import csv
from pathlib import Path

import pytest

from deniable_lab.experiments.harness import Row, Rows
from deniable_lab.experiments.ratios import geometric_mean, ratios

RESULTS = Path(__file__).parents[3] / "results"
SUMMARY = " ".join((RESULTS / "README.md").read_text().split())
NUMBERS = ("mean", "stderr", "median", "low", "high")
HEADLINES = [
    ("overall", "MSE", "method", "NM-E", "ToPS (paper)", "POS"),
    ("overall", "MSE", "method", "NM-E", "ToPS (paper)", "DNS"),
    ("overall", "MSE", "method", "ToPS (paper)", "ours", "POS"),
    ("overall", "MSE", "method", "ToPS (paper)", "ours", "DNS"),
    ("overall", "MSE", "method", "ToPS (paper)", "ours", "Fare"),
    ("overall", "MSE", "method", "ours", "ToPS (paper)", "NASA"),
    ("overall", "MSE", "method", "PAK, θ ≤ B", "ToPS (paper)", "POS"),
    ("overall", "MSE", "method", "PAK, θ ≤ B", "ToPS (paper)", "DNS"),
    ("overall", "MSE", "method", "PAK, θ ≤ B", "ToPS (paper)", "Fare"),
    ("metrics", "MAE", "method", "NM-E", "ToPS (paper)", "POS"),
    ("metrics", "MAE", "method", "NM-E", "ToPS (paper)", "DNS"),
    ("metrics", "MAE", "method", "NM-E", "ToPS (paper)", "Fare"),
    ("metrics", "MAE", "method", "PAK, θ ≤ B", "Ĥc16, θ ≤ B", "POS"),
    ("metrics", "MAE", "method", "PAK, θ ≤ B", "Ĥc16, θ ≤ B", "DNS"),
    *(("hierarchies", "MSE", "tree", worse, better, name) for worse, better in (
        ("b = 2", "b = 16"),
        ("b = 16", "b = 16, consistent"),
        ("b = 16, consistent", "… with smoother by Eq. (7)"),
        ("b = 2, without end", "b = 2"),
    ) for name in ("POS", "DNS")),
    *(("local-thresholds", "MSE", "rule", rule, "best θ (not private)", name) for rule in ("ours", "EMS (paper)")
      for name in ("POS", "DNS", "Kosarak")),
]  # fmt: skip


def table(name):
    """The rows of a result, as an experiment had them."""
    with (RESULTS / "streams" / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    return Rows(
        tuple(
            Row(
                {column: line[column] for column in line if column not in (*NUMBERS, "quantity", "repetitions")},
                line["quantity"],
                *(float(line[number]) for number in NUMBERS),
                int(line["repetitions"]),
            )
            for line in lines
        )
    )


@pytest.mark.parametrize(("name", "quantity", "column", "above", "below", "data"), HEADLINES)
def test_a_ratio_of_the_summary_is_that_of_its_table(name, quantity, column, above, below, data):
    rows = table(name).of(quantity).where(data=data)
    quotient = geometric_mean(ratios(*(rows.where(**{column: value}) for value in (above, below))))
    assert f"{quotient} " in SUMMARY, str(quotient)
    # Headlines are known to a tenth; thresholds without trust vary more from run to run, and say so.
    assert quotient.stderr <= (0.5 if name == "local-thresholds" else 0.1) * quotient.mean
