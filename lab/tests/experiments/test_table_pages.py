"""The committed pages about tables say what the code says of the committed numbers."""

import pytest
from committed_results import RESULTS, committed

from deniable_lab.experiments.harness import experiments
from deniable_lab.experiments.writing import draw

NAMES = [name for name in experiments() if name.startswith("tables/")]


@pytest.mark.skipif(not RESULTS.is_dir(), reason="the results are in the repository only")
@pytest.mark.parametrize("name", NAMES)
def test_pages_follow_from_the_numbers(name, tmp_path):
    experiment, rows = experiments()[name], committed(name)
    page = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    assert experiment.describe(rows).strip() in page
    draw(experiment, rows, tmp_path / "picture.png")
    assert (RESULTS / f"{name}.png").stat().st_size < 120_000
