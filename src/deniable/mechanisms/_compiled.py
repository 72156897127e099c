"""How loops are compiled: without the interpreter's lock, and kept on disk where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable[..., Any]) -> Any:
    """A compiled version of a loop over arrays."""
    try:
        return numba.njit(nogil=True, cache=True)(function)
    except RuntimeError:  # no folder to keep it in, as in a read-only installation: compile anew in every process
        return numba.njit(nogil=True)(function)
