"""The command line as a person calls it: in this process, or in one of its own."""

import io
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import SimpleNamespace

import pytest

from deniable.cli import main

DENIABLE = str(Path(sys.executable).parent / "deniable")
PATHS = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
"""Where else commands find the package, if tests do."""


def run(*arguments, text="", **environment):
    """A command without starting another interpreter: its exit code, and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in {"COLUMNS": "80", **environment}.items():
            patch.setenv(name, value)
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        with pytest.raises(SystemExit) as stopped:
            main.run([str(argument) for argument in arguments])
    return SimpleNamespace(returncode=stopped.value.code, stdout=out.getvalue(), stderr=err.getvalue())


def started(*arguments, **environment):
    """A command in a process of its own, with next to no environment."""
    plain = {"PATH": "/usr/bin:/bin", "COLUMNS": "80", **PATHS, **environment}
    command = [DENIABLE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=plain)
