"""How loops are compiled: without the interpreter's lock, and kept on disk where that is possible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """A compiled version of a loop over arrays."""
    try:
        return numba.njit(nogil=True, cache=True, **options)(function)
    except RuntimeError:  # no folder to keep it in, as in a read-only installation: compile anew in every process
        return numba.njit(nogil=True, **options)(function)


def compiled_sum(function: Callable[..., Any]) -> Any:
    """A compiled loop that adds floats in whatever order is fastest, so that several are added at once."""
    return compiled(function, fastmath={"reassoc", "nsz", "contract"})
