"""`make javascript`: what it runs where there is everything, what it installs, and what it says it skipped."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.skipif(
    shutil.which("make") is None or not (ROOT / "Makefile").exists(), reason="needs make and a checkout"
)
debian = pytest.mark.skipif(not Path("/etc/debian_version").exists(), reason="installs on Debian only")
PROGRAMS = {"nodejs": "node", "npm": "npm", "chromium": "chromium"}


def made(folder, *, there=(), root=False, offered=(), reachable=True):
    """What `make javascript` says, asks to install, and runs, with commands that only pretend."""
    bin_, state, client = folder / "bin", folder / "state", folder / "client"
    for path in (bin_, state, client / "node_modules"):
        path.mkdir(parents=True)
    (client / "package.json").touch()
    node = f'[ "$1" = -e ] || echo "$@" >> {state}/ran'
    texts = {"node": node, "npm": "true" if reachable else "false", "chromium": "true"}
    texts |= {"id": f"echo {0 if root else 1000}"}
    texts |= {
        "apt-get": f"""for last; do :; done
            [ "$last" = update ] && exit
            echo "$last" >> {state}/asked
            case " {" ".join(offered)} " in *" $last "*) /bin/cp {state}/$last.sh {bin_}/$last;; *) exit 100;; esac
            [ "$last" = nodejs ] && /bin/mv {bin_}/nodejs {bin_}/node || true"""
    }
    for name, text in texts.items():
        package = next((package for package, program in PROGRAMS.items() if program == name), None)
        paths = [state / f"{package}.sh"] if package else []
        paths += [bin_ / name] if package is None or name in there else []
        for path in paths:
            path.write_text(f"#!/bin/sh\n{text}\n")
            path.chmod(0o755)
    (bin_ / "touch").symlink_to(shutil.which("touch"))
    command = [
        shutil.which("make"),
        "--no-print-directory",
        "-o",
        ".venv/.installed-test",
        f"JS={client}",
        "javascript",
    ]
    ended = subprocess.run(command, cwd=ROOT, env={"PATH": str(bin_)}, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    notes = [(state / name).read_text().splitlines() if (state / name).exists() else [] for name in ("asked", "ran")]
    return ended.stdout.splitlines(), *notes


def test_where_all_is_there_both_suites_run(tmp_path):
    said, asked, ran = made(tmp_path, there=("node", "npm", "chromium"), root=True)
    assert (said, asked) == ([], [])
    assert [line.split()[-1] for line in ran] == ["build.js", "tests/*.test.js", "tests/browser/*.test.js"]


@debian
def test_root_on_debian_gets_what_is_missing(tmp_path):
    said, asked, ran = made(tmp_path, there=("npm",), root=True, offered=("nodejs", "chromium"))
    assert said == ["Installing Node.js and Chromium for the tests of the client in JavaScript"]
    assert asked == ["nodejs", "chromium"]
    assert len(ran) == 3


def test_without_node_it_says_so_and_goes_on(tmp_path):
    said, asked, ran = made(tmp_path)
    assert said[0].startswith("Tests of the client in JavaScript are skipped: they need Node.js 20 or newer. Run:")
    assert (asked, ran) == ([], [])


def test_without_chromium_the_other_tests_run(tmp_path):
    said, _, ran = made(tmp_path, there=("node", "npm"))
    assert said[0].startswith("Tests in a browser are skipped: they need Chromium. Run:")
    assert len(ran) == 2


def test_without_packages_the_other_tests_run(tmp_path):
    said, _, ran = made(tmp_path, there=("node", "npm", "chromium"), reachable=False)
    assert said[0].startswith("Tests of the client's types, size and pages are skipped: npm could not install")
    assert len(ran) == 1
