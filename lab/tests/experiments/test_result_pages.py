"""The committed pages of experiments say what the code says of the committed numbers."""

import pytest
from committed_results import RESULTS, committed

from deniable_lab.experiments.harness import experiments
from deniable_lab.experiments.writing import draw
from effort import some

in_repository = pytest.mark.skipif(not RESULTS.is_dir(), reason="the results are in the repository only")


@in_repository
@pytest.mark.parametrize("name", experiments())
def test_pages_follow_from_the_numbers(name):
    page = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    assert experiments()[name].describe(committed(name)).strip() in page


@in_repository
@pytest.mark.parametrize("name", some([name for name in experiments() if name.startswith("tables/")], 4))
def test_pictures_can_be_drawn_from_the_numbers(name, tmp_path):
    draw(experiments()[name], committed(name), tmp_path / "picture.png")
    assert (RESULTS / f"{name}.png").stat().st_size < 120_000
