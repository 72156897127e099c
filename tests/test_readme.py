"""Every block of the README and of the docs runs and shows what it says, and every link leads somewhere."""

import doctest
import importlib.util
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

import deniable as dn
from command_line import run
from deniable.stores.collector.stream_log import check_streams

ROOT = Path(__file__).parents[1]
MADE = sorted((ROOT / "docs" / "reference" / "api").glob("*.md"))  # from docstrings, which run where they stand
# tests/engines/spark/test_spark_docs.py runs the first; the second needs a cluster, and only its arguments are checked.
ELSEWHERE = [ROOT / "docs" / "spark.md", ROOT / "docs" / "how-to" / "spark-streams.md"]
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")] + sorted(
    (ROOT / "docs").rglob("*.md")
)


def blocks(page, *languages):
    """The blocks of a page in some languages, in their order."""
    all_blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    return [(language, text) for language, text in all_blocks if language in languages]


def name(page):
    return str(page.relative_to(ROOT))


RUNNING = [page for page in PAGES if page not in MADE + ELSEWHERE and blocks(page, "python", "console")]


def test_the_readme_shows_python_a_command_line_and_pictures():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(blocks(ROOT / "README.md", "python")) >= 2
    assert len(blocks(ROOT / "README.md", "console")) >= 2
    assert text.count("![") == 3
    first = blocks(ROOT / "README.md", "python")[0][1]
    assert first.count(">>> ") == 10


@pytest.mark.parametrize("page", RUNNING, ids=name)
def test_python_and_console_blocks_show_their_real_output(page, tmp_path, monkeypatch):
    """One after the other in one folder: what Python writes, commands may read."""
    monkeypatch.chdir(tmp_path)
    names = {}
    for number, (language, text) in enumerate(blocks(page, "python", "console")):
        if language == "python":
            parsed = doctest.DocTestParser().get_doctest(text, names, f"{name(page)}, block {number}", name(page), 0)
            assert parsed.examples
            assert doctest.DocTestRunner(verbose=False).run(parsed, clear_globs=False).failed == 0
            names = parsed.globs
            continue
        for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
            first, _, expected = part.partition("\n")
            check_command(shlex.split(first), expected)


def check_command(command, expected):
    assert command[0] == "deniable"
    done = run(*command[1:])
    assert done.returncode == 0, done.stderr

    def trimmed(lines):
        return [line.rstrip() for line in lines.splitlines() if line.strip()]

    assert trimmed(done.stdout) == trimmed(expected)


@pytest.mark.parametrize("page", [page for page in PAGES if "\nmake " in page.read_text()], ids=name)
def test_make_targets_exist(page):
    makefile = (ROOT / "Makefile").read_text()
    targets = [target for _, text in blocks(page, "sh") for target in re.findall(r"^make ([\w-]+)", text, flags=re.M)]
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, flags=re.M)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "toml")], ids=name)
def test_specifications_in_the_docs_load(page, tmp_path):
    for _, text in blocks(page, "toml"):
        if text.startswith("[streams."):  # what a collector is told about streams
            assert check_streams(tomllib.loads(text))
            continue
        (tmp_path / "shop.toml").write_text(text, encoding="utf-8")
        loaded = dn.Collection.load(tmp_path / "shop.toml")
        loaded.save(tmp_path / "again.toml")
        assert dn.Collection.load(tmp_path / "again.toml") == loaded


def test_the_specification_of_the_docs_is_the_one_of_its_python_example(tmp_path):
    ((_, text),) = blocks(ROOT / "docs" / "tables.md", "toml")
    (tmp_path / "shop.toml").write_text(text)
    assert dn.Collection.load(tmp_path / "shop.toml").sha256.startswith("737adcc3")


def test_cited_papers_are_those_of_the_references():
    (_, cited), *_ = blocks(ROOT / "README.md", "bibtex")
    references = (ROOT / "docs" / "references.md").read_text(encoding="utf-8").casefold()
    titles = re.findall(r"title\s+= \{(.*?)\}", cited)
    assert len([title for title in titles if title.casefold() in references]) == 2


# Links ----------------------------------------------------------------------------------------------------------------


def prose(page):
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)


def anchors(page):
    """The anchors of a page's headings, by the rule of Markdown's table of contents."""
    slugs = []
    for heading in re.findall(r"^#+ (.*)$", prose(page), flags=re.M):
        plain = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", plain.encode("ascii", "ignore").decode()).strip().lower())
        slugs.append(slug if slug not in slugs else f"{slug}_{slugs.count(slug)}")
    return slugs


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_and_anchors_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        reached = (page.parent / path).resolve() if path else page
        assert reached.is_file(), target
        if anchor:
            assert anchor in anchors(reached), target


def test_every_page_has_its_place_in_the_navigation():
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = re.findall(r"(\S+\.md)$", text, flags=re.M)
    assert len(listed) == len(set(listed))
    assert {ROOT / "docs" / page for page in listed} == set((ROOT / "docs").rglob("*.md"))


# What is made ---------------------------------------------------------------------------------------------------------


def script(name):
    """A script of the docs, as a module."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "docs" / f"{name}.py")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def made():
    return script("generate").texts()


def test_what_is_claimed_beyond_the_papers_is_what_results_say():
    beyond = script("beyond")
    assert beyond.PAGE.read_text(encoding="utf-8") == beyond.page(), "run `make pages`"
    for claim in beyond.CLAIMS:
        copied = ROOT / "docs" / "images" / beyond.picture_name(claim)
        assert copied.read_bytes() == (ROOT / "results" / f"{claim.experiment}.png").read_bytes(), "run `make pages`"


def test_the_reference_is_current(made):
    assert {ROOT / "docs" / page for page in made} == {*MADE, ROOT / "docs" / "reference" / "command-line.md"}
    for page, text in made.items():
        written = (ROOT / "docs" / page).read_text(encoding="utf-8")
        assert written.split() == text.split(), f"{page} is out of date: run `make pages`"


def test_the_reference_names_everything_public(made):
    from test_public_names import public_values

    text = "\n".join(made.values())
    for name in public_values():
        assert re.search(rf"\b{name.rsplit('.', 1)[-1]}\b", text), name


def test_pictures_are_there_and_small():
    pictures = list((ROOT / "docs" / "images").glob("*.png"))
    used = {reached.name for page in PAGES for reached in map(Path, re.findall(r"!\[[^\]]*\]\(([^)]+)\)", prose(page)))}
    assert {picture.name for picture in pictures} == used
    assert all(picture.stat().st_size < 80_000 for picture in pictures)


def test_sessions_are_shown_as_such_and_other_python_as_it_is():
    hook = script("prompt_blocks")
    assert hook.on_page_markdown("```python\n>>> 1\n1\n```") == "```pycon\n>>> 1\n1\n```"
    assert hook.on_page_markdown("```python\ndef f(): ...\n```") == "```python\ndef f(): ...\n```"


def test_results_that_pages_link_to_are_on_the_site(tmp_path):
    script("results_files").on_post_build({"site_dir": tmp_path})
    leaving = 0
    for page in {*PAGES} & {*(ROOT / "docs").rglob("*.md")}:
        for target in re.findall(r"\]\(((?:\.\./)+[^)#\s]+)", prose(page)):
            reached = (page.parent / target).resolve()
            if not reached.is_relative_to(ROOT / "docs"):
                leaving += 1
                assert (tmp_path / reached.relative_to(ROOT)).is_file(), f"{name(page)}: {target}"
    assert leaving > 5


@pytest.mark.parametrize("page", sorted({*PAGES} & {*(ROOT / "docs").rglob("*.md")}), ids=name)
def test_every_page_begins_with_what_it_is_for(page):
    said = script("found_pages").description(page.read_text(encoding="utf-8"))
    assert 40 <= len(said) <= 320
    assert said[-1] in ".:?…"


def test_a_description_is_plain_text():
    text = "# Title\n\n![A picture](x.png)\n\nThis page shows `it`,\n[twice](y.md). " + "Not more. " * 30
    assert script("found_pages").description(text).startswith("This page shows it, twice. Not more. Not")


def test_tests_that_contributing_names_exist():
    named = re.findall(r"`((?:lab/)?tests/[\w/]+\.py)`", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_attempt_of_the_threat_model_names_its_tests():
    model = (ROOT / "docs" / "background" / "threat-model.md").read_text(encoding="utf-8")
    tables = re.findall(r"^\| attempt \|.*\n\|[-|]+\n((?:\|.*\n)+)", model, re.M)
    attempts = [row.split("|")[1].strip() for table in tables for row in table.splitlines()]
    assert len(attempts) >= 10
    listed = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Tests of the threat model")[2]
    assert [attempt for attempt in attempts if f"| {attempt} | `tests/" not in listed] == []
    named = re.findall(r"`((?:lab/)?tests/\S+)`", listed)
    assert len(named) > len(attempts)
    assert [name for name in named if not (ROOT / name).is_file()] == []


def test_every_field_of_a_specification_is_described():
    page = (ROOT / "docs" / "reference" / "specification.md").read_text(encoding="utf-8")
    kinds = ("ordinal", "dates", "categorical", "text")
    tables = [{"t": {"attributes": {"x": {"kind": kind, "wrong": 1}}}} for kind in kinds]
    plain = {"t": {"attributes": {"x": {"kind": "public"}}}}
    wrong = [{"epsilon": 1.0, "wrong": 1, "tables": plain}, *({"epsilon": 1.0, "tables": table} for table in tables)]
    for specification in wrong:
        with pytest.raises(dn.errors.InvalidParameter, match=r"(Use|Its fields:) ") as refused:
            dn.Collection.from_dict(specification)
        names = re.split(", ", re.split("Use |Its fields: ", str(refused.value))[1].rstrip("."))
        assert [name for name in names if f"`{name}`" not in page] == []
