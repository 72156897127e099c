"""Every block of the README and of the docs runs and shows what it says."""

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


@pytest.mark.parametrize("page", ["README.md", "docs/tables.md", "docs/queries.md", "docs/streams.md"])
def test_python_blocks_show_their_real_output(page):
    blocks = re.findall(r"```python\n(.*?)```", (README.parent / page).read_text(), flags=re.S)
    parsed = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, page, page, 0)
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


def test_the_specification_of_the_docs_is_the_one_of_its_python_example(tmp_path):
    import deniable as dn

    (toml,) = re.findall(r"```toml\n(.*?)```", (README.parent / "docs" / "tables.md").read_text(), flags=re.S)
    (tmp_path / "shop.toml").write_text(toml)
    assert dn.Collection.load(tmp_path / "shop.toml").sha256.startswith("27c778d7")


@pytest.mark.parametrize("page", sorted(README.parent.glob("*.md")) + sorted(README.parent.glob("docs/*.md")))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), target
