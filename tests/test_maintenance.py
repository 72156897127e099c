"""What maintainers of a project expect to find, and that it says the same as the rest."""

import re
import tomllib
from pathlib import Path

import pytest

import deniable

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(not (ROOT / "Makefile").exists(), reason="needs a checkout")


def test_the_workflow_calls_targets_that_exist():
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    called = set(re.findall(r"run: make ([a-z-]+)", (ROOT / ".github/workflows/test.yml").read_text()))
    assert {"test", "test-oldest", "docs", "wheel"} <= called
    assert called <= targets


def test_the_workflow_runs_every_python_that_the_package_admits():
    lowest = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["requires-python"].removeprefix(">=")
    versions = re.search(r"python: \[(.*)\]", (ROOT / ".github/workflows/test.yml").read_text())
    assert versions is not None
    named = [version.strip(' "') for version in versions[1].split(",")]
    assert named == [lowest, *(f"3.{minor}" for minor in range(12, 15))]


def test_hooks_run_what_make_lint_runs():
    recipe = (ROOT / "Makefile").read_text().split("\nlint:")[1].split("\n\n")[0]
    hooks = (ROOT / ".pre-commit-config.yaml").read_text()
    for tool in re.findall(r"\$\(BIN\)/([a-z-]+)", recipe):
        assert f".venv/bin/{tool}" in hooks


def test_the_citation_names_this_version():
    assert f"\nversion: {deniable.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_files_that_are_handed_out_first_exist():
    listed = (ROOT / "conftest.py").read_text(encoding="utf-8").split("\nLONGEST = (")[1].split("\n)")[0]
    paths = re.findall(r'"(.+)"', listed)
    assert paths
    assert all((ROOT / path).exists() for path in paths)
