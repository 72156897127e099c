"""Generates pictures, and the reference of names and commands.

`make pages` runs it. A test compares the texts with the code. The pictures come from made-up data and a seed.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import numpy as np

import deniable
from deniable import client, errors, mechanisms, spark, stores, streams
from deniable.cli.main import cli

DOCS = Path(__file__).parent
AGES = "SELECT FLOOR(age / 10) * 10 AS ages, COUNT(*) AS people FROM users GROUP BY ages ORDER BY ages"
MADE = "<!-- Made by docs/generate.py: run `make pages` after a change. -->\n\n"


# Command line ---------------------------------------------------------------------------------------------------------


def commands(group: click.Group = cli, path: tuple[str, ...] = ("deniable",)) -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, groups first."""
    yield " ".join(path), group
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))
        elif command is not None:
            yield " ".join((*path, name)), command


OF_THE_LAB = ("deniable bench", "deniable reproduce")
EXIT_CODES = """\
| exit code | meaning |
|---|---|
| 0 | success; also a stream command whose reader stopped reading (`\\| head` after it), with its files intact |
| 1 | failure: a full disk, a path that cannot be written, a broken claim of an audit |
| 2 | bad input: the message says what to change, and nothing was done |
| 130, 143 | interrupted with Ctrl-C, or ended by SIGTERM; files are intact |
| 141 | the reader of the output stopped reading (`\\| head -1` after the command); files are intact |

An ASCII terminal gets *epsilon* for ε and escapes for other characters; JSON uses its own escapes. If stderr cannot be
written, messages are dropped and the work continues.
"""


def command_line() -> str:
    """`--help` of every command."""
    parts = [
        MADE
        + "# Command line\n\nThis page shows `--help` of every command. "
        + "Rows go to stdout, messages to stderr; `-` reads stdin. "
        + "`bench` and `reproduce` come last: they need the package deniable-lab (`pip install ./lab`).\n\n"
        + EXIT_CODES
    ]
    for name, command in sorted(commands(), key=lambda named: named[0].startswith(OF_THE_LAB)):
        settings = {"max_content_width": 80, "terminal_width": 80, **cli.context_settings}
        context = click.Context(command, info_name=name, **settings)
        parts.append(f"## {name}\n\n```text\n{command.get_help(context).rstrip()}\n```\n")
    parts.append(
        "Next: [fields of a specification](specification.md), [names in Python](api/tables.md), [limits](limits.md).\n"
    )
    return "\n".join(parts)


# Names ----------------------------------------------------------------------------------------------------------------


def shown(docstring: str) -> str:
    """A docstring as Markdown: examples and formulas become blocks of code."""
    lines, out, block = docstring.splitlines(), [], False
    for line in lines:
        example = line.lstrip().startswith((">>>", "..."))
        if example and not block:
            out += ["", "```python"]
            block = True
        if block and not line.strip():
            out += ["```", ""]
            block = False
            continue
        out.append(line)
    return "\n".join([*out, "```"] if block else out)


def signature(name: str, value: Callable[..., Any]) -> str:
    """How it is called, one argument per line where there are many."""
    try:
        call = inspect.signature(value)
    except ValueError:
        return name
    if len(name + _plain(call)) <= 100:
        return name + _plain(call)
    arguments = ",\n    ".join(_arguments(call))
    end = "" if call.return_annotation in (inspect.Signature.empty, None, "None") else f" -> {call.return_annotation}"
    return f"{name}(\n    {arguments},\n){end}"


def _arguments(call: inspect.Signature) -> Iterator[str]:
    """Every argument, and the star before those that must be named."""
    starred = False
    for parameter in call.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            yield "*"
        starred |= parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        yield _plain(parameter)


def _plain(part: inspect.Signature | inspect.Parameter) -> str:
    """Types without quotes, and defaults that cannot be written as an ellipsis."""
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(part)).removesuffix(" -> None")
    return re.sub(r"<[^>]*>", "…", text)


def described(name: str, value: Any, level: int = 3) -> Iterator[str]:
    """A class or function: how it is called, its docstring, its methods."""
    own = name.rsplit(".", 1)[-1]
    yield f"{'#' * level} {own}\n\n```python\n{signature(name, value)}\n```\n\n{shown(inspect.getdoc(value) or '')}\n"
    if not inspect.isclass(value) or issubclass(value, Exception):
        return
    if notes := field_notes(value):
        yield "\n".join(f"- `{field}`: {note}" for field, note in notes.items()) + "\n"
    for attribute, member in members(value).items():
        function = getattr(member, "__func__", member)
        if attribute.startswith("_") or not (inspect.isfunction(function) or isinstance(member, property)):
            continue
        text = shown(inspect.getdoc(function) or "")
        if isinstance(member, property):
            yield f"`{own}.{attribute}`: {text}\n"
            continue
        call = re.sub(r"\((self|cls)(, )?", "(", signature(f"{own}.{attribute}", function))
        call = re.sub(r"\(\n    (self|cls),\n", "(\n", call)
        yield f"{'#' * (level + 1)} {own}.{attribute}\n\n```python\n{call}\n```\n\n{text}\n"


def field_notes(value: type) -> dict[str, str]:
    """What is written below the fields of a class."""
    body = ast.parse(textwrap.dedent(inspect.getsource(value))).body[0].body  # type: ignore[attr-defined]
    return {
        field.target.id: " ".join(note.value.value.split())
        for field, note in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and not field.target.id.startswith("_")
        if isinstance(note, ast.Expr) and isinstance(note.value, ast.Constant) and isinstance(note.value.value, str)
    }


def overview(values: dict[str, Any]) -> str:
    """Every name of a page with the first sentence about it."""
    rows, anchors = ["| name | what it is |", "|---|---|"], []
    for name, value in values.items():
        first = re.split(r"(?<=\.) (?=[A-Z])", " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split()))[0]
        own = name.rsplit(".", 1)[-1]
        again = anchors.count(own.lower())  # Plan and plan
        anchors.append(own.lower())
        rows.append(
            f"| [`{own}`](#{own.lower()}{f'_{again}' if again else ''}) | {first.replace('|', chr(92) + '|')} |"
        )
    return "\n".join(rows)


def members(value: type) -> dict[str, Any]:
    """What a class defines itself, and what it has from bases that have no public name of their own."""
    public = {getattr(module, name) for _, _, module, _ in PAGES.values() for name in getattr(module, "__all__", ())}
    hidden = [base for base in value.__mro__[1:] if base.__module__.startswith("deniable.") and base not in public]
    inherited = {name: member for base in reversed(hidden) for name, member in vars(base).items()}
    return {**vars(value), **{name: member for name, member in inherited.items() if name not in vars(value)}}


PAGES: dict[str, tuple[str, str, ModuleType, str]] = {  # a name is described on the first of its pages
    "errors": ("Errors", "Everything that is raised on purpose: `dn.errors.…`.", errors, "dn.errors."),
    "tables": (
        "Tables and questions",
        "Names that say what is collected, and that ask questions: `import deniable as dn`. "
        "The guides are [Tables](../../tables.md) and [Asking](../../queries.md).",
        deniable,
        "dn.",
    ),
    "client": (
        "On a device",
        "Names for devices, which need only the standard library: `from deniable.client import …`. "
        "The guide is [Tables](../../tables.md#report-from-a-device).",
        client,
        "",
    ),
    "streams": (
        "Streams",
        "Names for private streams: `dn.streams.…`. The guide is [Streams](../../streams.md). "
        "The example of a method continues the example of its class.",
        streams,
        "dn.streams.",
    ),
    "stores": (
        "Streams that survive a crash",
        "Names for streams whose state is in a file: `dn.stores.…`. The guide is [Streams](../../streams.md).",
        stores,
        "dn.stores.",
    ),
    "mechanisms": (
        "Mechanisms",
        "Single randomisers, each with its exact law: `dn.mechanisms.…`. "
        "[Compare a mechanism of your own](../../how-to/compare-a-mechanism.md) uses them.",
        mechanisms,
        "dn.mechanisms.",
    ),
    "spark": (
        "Spark",
        "Names for Spark, with the extra `spark`: `dn.spark.…`. The guide is [Run on Spark](../../spark.md).",
        spark,
        "dn.spark.",
    ),
}


def public_names(module: ModuleType) -> list[str]:
    """What a module exports; of one that lists nothing, its classes."""
    return list(getattr(module, "__all__", [name for name, value in vars(module).items() if inspect.isclass(value)]))


def described_before(page: str, value: Any) -> str | None:
    """A link to the same name on an earlier page, if it is described there."""
    for earlier, (_, _, module, prefix) in PAGES.items():
        if earlier == page:
            return None
        for name in public_names(module):
            if getattr(module, name) is value:
                return f"[`{prefix}{name}`]({earlier}.md#{name.lower()})"
    return None


def names(page: str) -> str:
    """The public names of a module."""
    title, how, module, prefix = PAGES[page]
    public = public_names(module)
    parts = [f"{MADE}# {title}\n\n{how}\n"]
    if page == "errors":
        parts.append(f"```text\n{inspect.getdoc(module)}\n```\n")
    values = {prefix + name: getattr(module, name) for name in public}
    values = {name: value for name, value in values.items() if callable(value)}
    short = f"Examples write names without `{prefix}` where they show one name.\n\n" if prefix else ""
    parts.append(f"## Names\n\n{short}{overview(values)}\n")
    for name, value in values.items():
        if elsewhere := described_before(page, value):
            parts.append(f"### {name.removeprefix(prefix)}\n\nThe same as {elsewhere}.\n")
        else:
            parts += described(name, value)
    return "\n".join(parts)


def texts() -> dict[str, str]:
    """Every generated text, by its path below docs/."""
    made = {"reference/command-line.md": command_line()}
    return made | {f"reference/api/{page}.md": names(page) for page in PAGES}


# Pictures -------------------------------------------------------------------------------------------------------------


def answer_and_stream() -> None:
    """The two pictures of the README: an answer with error bars, and a private stream."""
    from deniable.cli.demo import meters, shop
    from deniable.database import connect
    from deniable.plotting.stream_plot import draw as draw_stream
    from deniable.queries.answers.answer_plot import draw
    from deniable.randomness import SeededSource
    from deniable.streams import Expectation, ToPS

    people, title, sql = shop.made_up(200_000), "ages", AGES
    users, orders = people.from_person(0)
    asked_once = shop.specification().with_settings(rounds=None, coins="drawn", design="hio", grids=None)
    reports = asked_once.perturb(
        users=users.drop_columns(["city"]), orders=orders, source=SeededSource(1), simulation=True
    )
    answered = shop.ask(connect(reports), shop.TrueAnswers([people]), title, sql)
    draw(answered.result, DOCS / "images" / "answer.png", truth=answered.truth, dpi=110)
    watts = meters.meter_readings(500_000, np.random.default_rng(2), meters.MOST_WATTS)
    tops = ToPS(
        0.2, meters.MOST_WATTS, warmup=2**16, horizon=2**19, expectation=Expectation(drift=0.02),
        source=SeededSource(1), simulation=True,
    )  # fmt: skip
    tops.push_many(watts)
    draw_stream(tops.released, DOCS / "images" / "stream.png", truth=watts, unit="readings, watts", dpi=110)


def main() -> None:
    """Write everything."""
    for name, text in texts().items():
        path = DOCS / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    answer_and_stream()
    sys.path.insert(0, str(DOCS))
    from drawings import draw_all

    draw_all(DOCS / "images")


if __name__ == "__main__":
    main()
