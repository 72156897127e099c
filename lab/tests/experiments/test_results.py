"""The committed results: complete, small, with links that lead somewhere, and without values of real streams."""

import csv
import re
from pathlib import Path

import pytest

from deniable_lab.experiments.harness import experiments

RESULTS = Path(__file__).parents[3] / "results"
FULL = {"tables/heavy-hitters"}
"""Published figures are for a million people, which takes longer than quick runs may."""
NAMES = [name for name in experiments() if (RESULTS / name.partition("/")[0]).is_dir()]


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_has_its_table_picture_and_page(name):
    page = (RESULTS / f"{name}.md").read_text()
    quick = " --quick" * (name not in FULL)
    assert f"deniable reproduce {name}{quick}" in page
    assert page.startswith(f"# {experiments()[name].title}\n")
    assert not re.search(r"\bnan\b", page.split("**Findings.**")[1])
    assert (RESULTS / f"{name}.png").stat().st_size < 120_000
    lines = list(csv.DictReader((RESULTS / f"{name}.csv").read_text().splitlines()))
    assert lines
    assert {"data", "quantity", "mean", "stderr", "repetitions"} <= set(lines[0])


@pytest.mark.parametrize("page", sorted(RESULTS.rglob("*.md")), ids=lambda page: page.stem)
def test_links_of_results_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("streams/")])
def test_values_of_real_streams_are_not_written_down(name):
    for line in csv.DictReader((RESULTS / f"{name}.csv").read_text().splitlines()):
        if line["quantity"] in ("truth", "published"):
            assert line["data"].endswith("stand-in")
