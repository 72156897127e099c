"""What an installation brings and what an import costs: modules are looked at, not clocks."""
# ruff: noqa: E501 - code in a text

import re
import subprocess
import sys
import tomllib
from importlib.metadata import requires, version
from pathlib import Path

import pytest

HEAVY = ("numba", "scipy", "matplotlib", "numpy", "pyarrow", "duckdb", "sqlglot", "pandas", "pyspark")


def loaded(code):
    """Which heavy packages a fresh interpreter has loaded after some code."""
    ask = f"\nimport sys; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code + ask], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "code",
    [
        "import deniable",
        "from deniable.client import Client",
        "import deniable as dn; t = dn.Table('t', a=dn.Ordinal(0, 9)); dn.Collection(t, epsilon=1.0).client().report('t', {'a': 3})",
        "import deniable.spark",
    ],
)
def test_an_import_loads_nothing_heavy(code):
    assert loaded(code) == set()


def test_answering_loads_neither_plotting_nor_spark():
    assert not loaded("import deniable as dn; dn.connect") & {"matplotlib", "pyspark", "pandas"}


def test_the_command_line_starts_without_compilers_and_plots():
    assert not loaded("import deniable.cli.main") & {"numba", "scipy", "matplotlib", "pandas", "pyspark", "duckdb"}


def test_an_installation_brings_no_plotting_no_java_and_no_peers():
    always = {re.match(r"[\w.-]+", one).group().lower() for one in requires("deniable") if "extra ==" not in one}
    assert always == {
        "numpy", "pyarrow", "duckdb", "sqlglot", "numba", "scipy", "cryptography", "click", "rich"
    }  # fmt: skip
    extras = {name: set() for name in ("plot", "spark", "bench", "test", "docs")}
    for one in requires("deniable"):
        if found := re.search(r"extra == ['\"](\w+)['\"]", one):
            extras[found.group(1)].add(re.match(r"[\w.-]+", one).group().lower())
    assert extras["plot"] == {"matplotlib"}
    assert extras["spark"] == {"pyspark"}
    assert "pure-ldp" in extras["bench"]


def test_a_parser_that_nobody_has_looked_at_is_not_installed():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (declared,) = (one for one in project["dependencies"] if one.startswith("sqlglot"))
    assert re.search(r",<\d+$", declared), declared  # queries/parsing/grammar.py lists the nodes that it knows
    assert int(version("sqlglot").split(".")[0]) < int(declared.split("<")[1])
