"""The functions of pyarrow.compute, imported when one is first used: importing it takes as long as a small question."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import pyarrow.compute

    globals()[name] = function = getattr(pyarrow.compute, name)
    return function
