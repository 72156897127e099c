"""`make java`: what it does where there is Java, where it can be installed, and where it cannot; what else runs."""

import importlib
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    shutil.which("make") is None or not (ROOT / "Makefile").exists(), reason="needs make and a checkout"
)
debian = pytest.mark.skipif(not Path("/etc/debian_version").exists(), reason="installs on Debian only")


def made(folder, *, there=False, root=False, offered=()):
    """What `make java` says, and which packages it has asked for, with commands that only pretend."""
    bin_, venv, state = (folder / name for name in ("bin", "venv", "state"))
    for path in (bin_, venv, state):
        path.mkdir()
    if there:
        (state / "java").touch()
    programs = {
        venv / "python": f"test -e {state}/java",
        bin_ / "id": f"echo {0 if root else 1000}",
        bin_ / "apt-get": f"""echo "$@" >> {state}/asked
            for last; do :; done
            case " update {" ".join(offered)} " in *" $last "*) ;; *) exit 100;; esac
            if [ "$last" != update ]; then touch {state}/java; fi""",
    }
    for path, text in programs.items():
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    command = ["make", "--no-print-directory", "-o", ".venv/.installed-test", f"BIN={venv}", "java"]
    settings = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    settings["PATH"] = f"{bin_}:{settings['PATH']}"
    ended = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr  # without Java the other tests still run
    asked = (state / "asked").read_text().split("\n") if (state / "asked").exists() else []
    return ended.stdout.splitlines(), [line.split()[-1] for line in asked if line]


def test_java_that_is_there_is_used(tmp_path):
    assert made(tmp_path, there=True, root=True) == ([], [])


@debian
@pytest.mark.parametrize("version", ["17", "21", "25"])
def test_root_on_debian_gets_the_version_that_there_is(tmp_path, version):
    package = f"openjdk-{version}-jre-headless"
    said, asked = made(tmp_path, root=True, offered=[package])
    assert said == ["Installing Java for Spark's tests"]
    assert asked[0] == "update"
    assert asked[-1] == package


@debian
def test_an_installation_that_fails_is_told(tmp_path):
    said, asked = made(tmp_path, root=True)
    assert len(asked) == 4
    assert len(said) == 2
    assert "apt-get install openjdk-17-jre-headless" in said[-1]


def test_others_are_told_what_to_install_in_one_line(tmp_path):
    said, asked = made(tmp_path)
    assert asked == []
    assert len(said) == 1
    assert "apt-get install openjdk-17-jre-headless" in said[0]
    assert "brew install openjdk@17" in said[0]


def planned(target):
    """The commands that a target would run."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    there = ("-o", ".venv/.installed-test", "-o", ".venv-oldest/.installed")
    command = ["make", "--no-print-directory", "--dry-run", *there, target]
    return subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, check=True).stdout


def test_everything_runs_with_other_rounding_and_with_the_oldest_versions():
    everything = planned("test-all")
    for target in ("test-portable", "test-oldest"):
        commands = [line.strip() for line in planned(target).splitlines() if "pytest" in line]
        assert commands
        assert all(line in everything for line in commands)
    for setting in ("NPY_DISABLE_CPU_FEATURES", "OPENBLAS_CORETYPE", "NUMBA_CPU_NAME", "NUMBA_NUM_THREADS=4"):
        assert setting in planned("test-portable")


def test_the_paths_of_the_other_runs_exist():
    for target in ("test-portable", "test-oldest"):
        paths = {word for word in planned(target).split() if word.startswith(("tests/", "src", "lab/"))}
        assert {"tests/queries", "src", "lab/src"} <= paths
        assert all((ROOT / path).exists() for path in paths)


def test_the_oldest_versions_are_those_that_are_declared():
    settings = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--no-print-directory", "--dry-run", "--always-make", ".venv-oldest/.installed"]
    ended = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, check=True)
    command = " ".join(ended.stdout.replace("\\\n", "").split())
    assert "--resolution lowest-direct --editable '.[test]' --editable ./lab" in command
    assert ".venv-oldest/" in (ROOT / ".gitignore").read_text().splitlines()


def test_names_that_recipes_import_exist():
    imported = re.findall(r"from (deniable[\w.]*) import (\w+)", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert imported
    for module, name in imported:
        assert hasattr(importlib.import_module(module), name), f"{module}.{name}"


@pytest.mark.parametrize("uv", ["works", "fails", "is missing"])
def test_uv_installs_from_where_pip_is_told_to_look_and_otherwise_pip_does(tmp_path, uv):
    bin_, log = tmp_path / ".venv" / "bin", tmp_path / "log"
    for folder in (bin_, tmp_path / "lab"):
        folder.mkdir(parents=True)
    for project in (tmp_path, tmp_path / "lab"):
        (project / "pyproject.toml").touch()
    told = 'printf "%s\\n" "global.extra-index-url=\'file:///one file:///two\'" "global.index-url=\'https://a/simple\'"'
    without_uv = 'case "$*" in *"install uv") exit 1;; esac' if uv == "is missing" else ":"
    programs = {
        "python": f'case "$*" in *"config list") {told}; exit;; esac; {without_uv}; echo pip "$@" >> {log}',
        "uv": f'echo uv "$@" "$UV_DEFAULT_INDEX" "$UV_INDEX" >> {log}; exit {int(uv == "fails")}',
    }
    for name, text in programs.items():
        (bin_ / name).write_text(f"#!/bin/sh\n{text}\n")
        (bin_ / name).chmod(0o755)
    settings = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "--file", ROOT / "Makefile", ".venv/.installed-test"]
    subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, check=True)
    *_, last = lines = log.read_text().splitlines()
    if uv != "is missing":
        assert any(
            line.startswith("uv pip") and line.endswith("https://a/simple file:///one file:///two") for line in lines
        )
    assert last.startswith("uv pip install" if uv == "works" else "pip -m pip")
    assert "--editable .[test] --editable ./lab" in last
    assert (tmp_path / ".venv" / ".installed-test").exists()


SKIPPED = "No known vulnerabilities found\nclick  Dependency not found on PyPI and could not be audited: click (8.4)"
FOUND = "Found 1 known vulnerability in 1 package"


@pytest.mark.parametrize(
    ("said", "status", "in_ci", "passes", "checked"),
    [
        ("No known vulnerabilities found", 0, True, True, True),
        (FOUND, 1, False, False, True),
        (SKIPPED.replace("No", FOUND, 1), 1, False, False, True),
        (SKIPPED, 0, False, True, False),
        (SKIPPED, 0, True, False, False),
        ("no route to host", 1, False, True, False),
        ("no route to host", 1, True, False, False),
    ],
)
def test_what_could_not_be_looked_up_is_not_called_safe(tmp_path, said, status, in_ci, passes, checked):
    programs = {"python": "exit 0", "bandit": "exit 0", "pip-audit": f"echo '{said}'; exit {status}"}
    programs |= {"npm": 'echo "found 0 vulnerabilities"'}
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    command = ["make", "--no-print-directory", "-o", ".venv/.installed-test", f"BIN={tmp_path}", "security"]
    settings = {name: value for name, value in os.environ.items() if not name.startswith("MAKE") and name != "CI"}
    settings |= {"PATH": f"{tmp_path}:{settings['PATH']}"} | ({"CI": "true"} if in_ci else {})
    ended = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False)
    assert (ended.returncode == 0, "NOT CHECKED" not in ended.stdout) == (passes, checked)
