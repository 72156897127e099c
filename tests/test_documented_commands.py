"""Every command that the README, the docs and the results name exists, with these options; examples run elsewhere."""

import re
import shlex

import click
import pytest

from deniable.cli.main import cli
from deniable_lab.experiments.harness import named
from test_readme import PAGES, ROOT, name, prose

EVERYWHERE = [*PAGES, *sorted((ROOT / "results").rglob("*.md"))]


def parsed(words):
    """The command that words lead to, and its parameters; nothing is run."""
    context = click.Context(cli, info_name="deniable", **cli.context_settings)
    command, rest = cli, list(words)
    while isinstance(command, click.Group):
        if not rest or rest[0] in ("-h", "--help", "--version"):
            return command, {}
        called, command, rest = command.resolve_command(context, rest)
        context = (
            command.make_context(called, rest, parent=context) if not isinstance(command, click.Group) else context
        )
    return command, context.params


def words_of(line):
    """The commands of a line of the shell, as lists of words."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    commands = [[]]
    for word in lexer:
        if set(word) <= set("|&;<>"):
            commands.append([])
        else:
            commands[-1].append(word)
    return [words[1:] for words in commands if words and words[0] == "deniable"]


def commands_in_blocks(page):
    """Commands that stand in blocks, without the explanations beside them."""
    commands = []
    for block in re.findall(r"^```(?:sh|text|console)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.S | re.M):
        for line in re.sub(r"\\\n\s*", "", block).splitlines():
            if re.match(r"(\$ )?(deniable |.*\| deniable )", line.strip()):
                commands += words_of(re.split(r"\s{3,}", line.strip().removeprefix("$ "))[0])
    return commands


def named_in_passing(page):
    """Commands in the text: what they need may be missing there."""
    return [text for text in re.findall(r"`([^`]+)`", prose(page)) if text.startswith("deniable ")]


@pytest.fixture(autouse=True)
def a_folder_of_data(tmp_path, monkeypatch):
    """`--data DIR` checks that its folder exists."""
    for room in ("streams", "tables"):
        (tmp_path / "DIR" / room).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("page", [page for page in EVERYWHERE if commands_in_blocks(page)], ids=name)
def test_commands_in_blocks_parse(page):
    for words in commands_in_blocks(page):
        parsed(words)


@pytest.mark.parametrize("page", [page for page in EVERYWHERE if named_in_passing(page)], ids=name)
def test_commands_named_in_passing_exist(page):
    for text in named_in_passing(page):
        words = shlex.split(" ".join(text.split()))[1:]
        try:
            command, parameters = parsed([word for word in words if word != "…"])
        except (click.MissingParameter, click.BadOptionUsage):  # the name of a command, or of an option of it
            continue
        if command.name == "reproduce" and parameters.get("name"):
            assert named(parameters["name"])


def test_what_does_not_exist_is_found():
    for wrong in ("querry", "query --colour", "stream fly", "bench accuracy --rows many", "shell a --weight greedy"):
        with pytest.raises(click.UsageError):
            parsed(wrong.split())
    assert parsed(["bench", "accuracy", "--grids"])[1]["grids"] is True
