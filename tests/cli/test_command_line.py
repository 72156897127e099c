"""The command line as a person meets it: help, versions, errors, exit codes, 80 columns."""

import math
import re
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints

import click
import numpy as np
import pytest
from rich.console import Console

import deniable
import deniable as dn
from command_line import run, started
from deniable.audit import Output, Target
from deniable.cli import installed_commands
from deniable.cli.gather import gather
from deniable.cli.main import cli
from deniable.cli.own_commands import OWN_COMMANDS
from deniable.cli.query import query
from deniable.errors import DeniableError, InvalidData, RandomnessFault


def every_command(group=cli, path=()):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))


def test_help_and_version():
    version = f"deniable, version {deniable.__version__}\n"
    assert started("--version").stdout == version
    module = [sys.executable, "-m", "deniable", "--version"]
    assert subprocess.run(module, capture_output=True, text=True, check=True).stdout == version
    shown = started("--help")
    assert shown.returncode == 0
    for name in (*OWN_COMMANDS, "bench", "reproduce"):
        assert f"\n  {name} " in shown.stdout


@pytest.mark.parametrize("path", [(), *(path for path, command in every_command() if isinstance(command, click.Group))])
def test_lists_of_commands_end_no_line_halfway(path):
    assert "..." not in run(*path, "--help").stdout.partition("Commands:")[2]


@pytest.mark.parametrize("path", [path for path, _ in every_command()], ids=" ".join)
def test_every_command_has_help_and_a_documented_example(path):
    command = dict(every_command())[path]
    assert command.help
    assert [option.name for option in command.params if isinstance(option, click.Option) and not option.help] == []
    if not isinstance(command, click.Group):
        assert f"deniable {' '.join(path)}" in command.help
    shown = run(*path, "--help")
    assert shown.returncode == 0
    assert max(map(len, shown.stdout.splitlines())) <= 80
    assert "\\b" not in shown.stdout
    if not isinstance(command, click.Group):
        assert re.search(rf"Example:\n +deniable {' '.join(path)}", shown.stdout)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["audit", "--epsilon", "-1"], "epsilon must be a positive number"),
        (["audit", "--epsilon", "nan"], "epsilon must be a positive number"),
        (["audit", "--epsilon", "inf"], "epsilon must be finite"),
        (["audit", "hybrid", "--samples", "100", "--seconds", "0"], "seconds must be positive"),
        (["audit", "hybrid", "--samples", "3"], "samples must be at least 100"),
        (["audit", "no-such-mechanism"], "target 'no-such-mechanism' is unknown"),
        (["audit", "nowhere.toml"], "file 'nowhere.toml' cannot be read"),
        (["audit", "nowhere.toml", "--epsilon", "1"], "epsilon is given by the file already"),
        (["no-such-command"], "No such command"),
    ],
)
def test_bad_input_exits_2_with_a_message_and_no_traceback(arguments, message):
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InvalidData("values are empty", "Pass some."), 2, "values are empty"),
        (RandomnessFault("bits would repeat"), 1, "bits would repeat"),
        (DeniableError("anything else"), 1, "anything else"),
        (ValueError("secret 4711"), 1, "unexpected ValueError"),
        (click.Abort(), 1, "Interrupted"),
    ],
)
def test_errors_become_exit_codes_in_one_place(monkeypatch, error, code, message):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("deniable.audit.audit", fail)
    done = run("audit", "hybrid")
    assert done.returncode == code
    shown = done.stderr
    assert message in shown
    assert "Traceback" not in shown
    assert "4711" not in shown  # the text of a foreign error may quote data


def test_an_audit_says_what_it_proved_and_what_it_would_have_noticed_and_repeats_under_a_seed():
    first = started("audit", "local-hashing", "--epsilon", "2", "--samples", "20000", "--seed", "1")
    assert first.returncode == 0
    assert first.stderr.splitlines()[:2] == ["attacking local-hashing", "attacking a stand-in of local-hashing"]
    assert re.search(r"local-hashing +ε = 2 +ε ≥ 1\.\d{3} +1\.\d\d ε +20,000", first.stdout)
    assert "holds" not in first.stdout
    assert max(map(len, first.stdout.splitlines())) <= 80
    again = run("audit", "local-hashing", "--epsilon", "2", "--samples", "20000", "--seed", "1")
    assert again.stdout == first.stdout


def test_an_audit_of_a_specification_attacks_its_clients(tmp_path):
    table = dn.Table(
        "orders", many=3, tau=2, amount=dn.Ordinal(0, "0.09", "0.01"), kind=dn.Categorical("a", "b"), city=dn.Public()
    )
    users = dn.Table("users", age=dn.Ordinal(1, 95), town=dn.Public())
    dn.Collection(table, users, epsilon=3.0).save(tmp_path / "shop.toml")
    done = run("audit", tmp_path / "shop.toml", "--samples", 200, "--seed", 1)
    assert done.returncode == 0, done.stderr
    for name in ("device, lowest or highest", "device, nothing or highest", "bulk, lowest or", "bulk, nothing or"):
        assert name in done.stdout
    dn.Collection(users, epsilon=math.inf).save(tmp_path / "plain.toml")
    assert "epsilon must be finite" in run("audit", tmp_path / "plain.toml").stderr


def test_an_audit_that_refutes_a_claim_exits_1(monkeypatch):
    def leaking(worlds, source):
        return Output({"y": (source.below(4, worlds.size) < 1 + worlds).astype(np.int64)})

    mutant = {"hybrid": lambda epsilon: Target("hybrid", epsilon, leaking)}
    monkeypatch.setattr("deniable.audit.targets", lambda: mutant)
    done = run("audit", "hybrid", "--epsilon", 0.1, "--samples", 5000, "--seed", 3)
    assert done.returncode == 1
    assert "REFUTED" in done.stdout
    assert "y: 0, 1 (guessed right" in done.stdout
    assert "samples contradict the claim of hybrid" in done.stderr


def test_a_progress_bar_on_a_terminal(monkeypatch):
    monkeypatch.setattr(
        "deniable.cli.terminal.Console", lambda **options: Console(force_terminal=True, width=80, **options)
    )
    done = run("audit", "hybrid", "--samples", 1000, "--seed", 3)
    assert done.returncode == 0
    assert "attacking hybrid" in done.stderr


@pytest.mark.parametrize("name", ["bench", "reproduce"])
def test_commands_of_the_lab_say_in_one_sentence_how_to_get_them(monkeypatch, name):
    monkeypatch.setattr(installed_commands, "entry_points", lambda *_: EntryPoints())
    assert f"\n  {name} " not in run("--help").stdout
    done = run(name)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"Error: `deniable {name}` is part of the package deniable-lab, which is not installed: "
        "run `pip install ./lab` in a checkout of deniable.\n"
    )


def test_another_package_adds_a_command_and_replaces_none(monkeypatch):
    added = [EntryPoint(name, "click:Command", installed_commands.GROUP) for name in ("query", "later", "broken")]
    added[1] = EntryPoint("later", "deniable.cli.gather:gather", installed_commands.GROUP)
    monkeypatch.setattr(
        installed_commands, "entry_points", lambda name="": EntryPoints(e for e in added if name in ("", e.name))
    )
    context = click.Context(cli)
    assert cli.get_command(context, "query") is query
    assert cli.get_command(context, "later") is gather
    assert "later" in cli.list_commands(context)
    done = run("broken")
    assert (done.returncode, "the command 'broken' cannot be loaded from 'click:Command'" in done.stderr) == (1, True)
