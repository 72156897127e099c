"""`deniable query` without pandas. Where it is installed, pyarrow imports it, which takes longer than a question."""

from __future__ import annotations

import sys
from collections.abc import Sequence


class _Absent:
    """An import hook that says once that pandas is not installed. pyarrow asks once, and remembers the answer."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002 - as Python calls it
        """Say so, and leave."""
        if name == "pandas":
            sys.meta_path.remove(self)
            raise ModuleNotFoundError("pandas is not needed here", name=name)


def keep_pandas_out(arguments: Sequence[str]) -> None:
    """Hide pandas from pyarrow, if this process is about to answer a question and Spark has no part in it."""
    if arguments[:1] == ["query"] and not any("spark" in argument for argument in arguments):
        sys.meta_path.insert(0, _Absent())
