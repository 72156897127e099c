"""What an installation brings and what an import costs: modules are looked at, not clocks."""
# ruff: noqa: E501 - code in a text

import re
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points, requires, version
from pathlib import Path

import pytest

from deniable.cli.installed_commands import GROUP, LAB_COMMANDS

ROOT = Path(__file__).parents[1]
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
    always = {re.match(r"[\w.-]+", line).group().lower() for line in requires("deniable") if "extra ==" not in line}
    assert always == {
        "numpy", "pyarrow", "duckdb", "sqlglot", "numba", "scipy", "cryptography", "click", "rich"
    }  # fmt: skip
    extras = {
        name: set() for name in ("kafka", "mqtt", "plot", "postgresql", "serve", "spark", "sqlalchemy", "test", "docs")
    }
    for declared in requires("deniable"):
        if extra := re.search(r"extra == ['\"](\w+)['\"]", declared):
            extras[extra[1]].add(re.match(r"[\w.-]+", declared).group().lower())
    assert (extras["kafka"], extras["mqtt"]) == ({"confluent-kafka"}, {"paho-mqtt"})
    assert extras["plot"] == {"matplotlib"}
    assert extras["postgresql"] == {"psycopg"}
    assert extras["spark"] == {"protobuf", "pyspark"}
    assert extras["serve"] == {"starlette", "uvicorn", "httptools", "uvloop", "prometheus-client", "mysql-mimic"}
    assert extras["sqlalchemy"] == {"sqlalchemy"}
    assert not any("pure-ldp" in packages for packages in extras.values())


def test_no_module_of_the_library_imports_the_lab():
    for file in sorted((ROOT / "src").rglob("*.py")):
        assert not re.search(r"^\s*(import|from) deniable_lab", file.read_text(encoding="utf-8"), re.MULTILINE), file


def test_the_wheel_and_the_source_archive_take_in_nothing_of_the_lab():
    targets = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"]["packages"] == ["src/deniable"]
    assert not any("lab" in path for path in targets["sdist"]["include"])
    assert not [folder for name in ("experiments", "benchmarks") for folder in (ROOT / "src").rglob(name)]


def test_the_lab_is_of_the_same_version_and_brings_its_commands():
    lab = tomllib.loads((ROOT / "lab" / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert lab["version"] == version("deniable")
    assert lab["dependencies"] == [f"deniable[plot]=={version('deniable')}"]
    assert set(lab["entry-points"]["deniable.commands"]) == set(LAB_COMMANDS)
    assert {command.name for command in entry_points(group=GROUP)} >= set(LAB_COMMANDS)


def test_the_library_starts_where_the_lab_cannot_be_imported():
    block = "import sys; sys.modules['deniable_lab'] = None\n"
    code = block + "import deniable, deniable.spark, deniable.streams, deniable.cli.main, deniable.cli.demo.meters"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_parser_that_nobody_has_looked_at_is_not_installed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (declared,) = (line for line in project["dependencies"] if line.startswith("sqlglot"))
    assert re.search(r",<\d+$", declared), declared  # queries/parsing/grammar.py lists the nodes that it knows
    assert int(version("sqlglot").split(".")[0]) < int(declared.split("<")[1])
