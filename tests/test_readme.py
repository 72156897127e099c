"""Every block of the README runs and shows what it says."""

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", README.read_text(), flags=re.S)


def test_the_readme_has_python_and_console_blocks():
    assert {language for language, _ in BLOCKS} >= {"python", "console", "sh"}


def test_python_blocks_show_their_real_output():
    session = "\n".join(text for language, text in BLOCKS if language == "python")
    parsed = doctest.DocTestParser().get_doctest(session, {}, "README.md", str(README), 0)
    assert parsed.examples
    results = doctest.DocTestRunner(verbose=False).run(parsed)
    assert results.failed == 0


@pytest.mark.parametrize("text", [text for language, text in BLOCKS if language == "console"])
def test_console_blocks_show_their_real_output(text):
    first, _, expected = text.partition("\n")
    prompt, *command = shlex.split(first)
    assert prompt == "$"
    command[0] = str(Path(sys.executable).parent / command[0])
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={"COLUMNS": "80", "PATH": "/bin"})
    assert done.returncode == 0

    def trimmed(lines):
        return [line.rstrip() for line in lines.splitlines() if line.strip()]

    assert trimmed(done.stdout) == trimmed(expected)


@pytest.mark.parametrize("text", [text for language, text in BLOCKS if language == "sh"])
def test_make_targets_exist(text):
    makefile = (README.parent / "Makefile").read_text()
    targets = re.findall(r"^make ([\w-]+)", text, flags=re.M)
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.M)
