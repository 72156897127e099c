"""What `mkdocs build` adds to the pages: the files of results/, to which pages link next to their figures."""

import shutil
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"


def on_post_build(config: Any, **_: object) -> None:
    """A link that leaves docs/ in the repository leaves a page's own folder on the site, so it arrives here."""
    shutil.copytree(RESULTS, Path(config["site_dir"]) / "results", dirs_exist_ok=True)
