"""Where every command is written. A process imports only the one it runs: all together take longer than a question."""

from __future__ import annotations

from importlib import import_module

import click

OWN_COMMANDS = {
    "audit": "audit:audit_command",
    "check": "collect:check",
    "compare": "forecast:compare",
    "demo": "demo.command:demo",
    "doctor": "doctor:doctor",
    "explain": "forecast:explain",
    "fit": "plan:fit",
    "forecast": "forecast:forecast",
    "gather": "gather:gather",
    "init": "init:init",
    "key": "serve:key",
    "ledger": "ledger:ledger",
    "perturb": "collect:perturb",
    "plan": "plan:plan",
    "query": "query:query",
    "round": "serve:round_",
    "seal": "serve:seal",
    "serve": "serve:serve",
    "shell": "shell:shell",
    "stream": "stream:stream",
    "token": "serve:token",
}
OF_STREAMS = (
    "stream_create:create",
    "stream_follow:doctor",
    "stream_follow:follow",
    "stream_local:collect",
    "stream_local:report",
    "stream_publish:publish",
    "stream_query:query",
    "stream_send:send",
)


def load(name: str) -> click.Command | None:
    """A command of this package by its name, with its own commands; None if there is none."""
    if name not in OWN_COMMANDS:
        return None
    command = _written(OWN_COMMANDS[name])
    if name == "stream" and isinstance(command, click.Group):
        for where in OF_STREAMS:
            command.add_command(_written(where))
    return command


def _written(where: str) -> click.Command:
    module, _, attribute = where.partition(":")
    command = getattr(import_module(f"deniable.cli.{module}"), attribute)
    assert isinstance(command, click.Command)  # noqa: S101 - as listed above
    return command
