"""Ratios that the summary of results states about streams: those of the tables, with their standard errors."""

import pytest
from committed_results import RESULTS, committed

from deniable_lab.experiments.ratios import geometric_mean, ratios

SUMMARY = " ".join((RESULTS / "README.md").read_text(encoding="utf-8").split())
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


@pytest.mark.parametrize(("name", "quantity", "column", "above", "below", "data"), HEADLINES)
def test_a_ratio_of_the_summary_is_that_of_its_table(name, quantity, column, above, below, data):
    rows = committed(f"streams/{name}").of(quantity).where(data=data)
    quotient = geometric_mean(ratios(*(rows.where(**{column: value}) for value in (above, below))))
    assert f"{quotient} " in SUMMARY, str(quotient)
    # Headlines are known to a tenth; thresholds without trust vary more from run to run, and say so.
    assert quotient.stderr <= (0.5 if name == "local-thresholds" else 0.1) * quotient.mean
