"""How loops are compiled: on their first call, without the interpreter's lock, and kept on disk where that is possible.

The compiler is imported by the first call too, because that takes longer than most commands. `compiler_is_loaded` lets
a caller with little to do take another way (`engines/kernel/plain_loops.py`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

_COMPILING = threading.RLock()


class Loop:
    """A loop over arrays that is compiled when it is first called."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._function, self._options = function, options
        self._dispatcher: Any = None
        self.__doc__, self.__name__ = function.__doc__, function.__name__

    def __call__(self, *arguments: Any) -> Any:
        """Run the compiled loop."""
        return (self._dispatcher or self.dispatcher())(*arguments)

    def dispatcher(self) -> Any:
        """What the compiler made of the function. Loops that it calls are compiled with it."""
        with _COMPILING:
            if self._dispatcher is None:
                names = self._function.__globals__
                for name in self._function.__code__.co_names:
                    if isinstance(names.get(name), Loop):
                        names[name] = names[name].dispatcher()
                self._dispatcher = self._compiled()
        return self._dispatcher

    def _compiled(self) -> Any:
        import numba  # here, because it takes longer to import than most commands to run

        try:
            return numba.njit(nogil=True, cache=True, **self._options)(self._function)
        except RuntimeError:  # no folder to keep it in, as in a read-only installation: compile anew in every process
            return numba.njit(nogil=True, **self._options)(self._function)


def compiled(function: Callable[..., Any], **options: Any) -> Any:
    """A compiled version of a loop over arrays."""
    return Loop(function, options)


def compiled_sum(function: Callable[..., Any]) -> Any:
    """A compiled loop that adds floats in whatever order is fastest, so that several are added at once."""
    return compiled(function, fastmath={"reassoc", "nsz", "contract"})


def compiler_is_loaded() -> bool:
    """Whether this process has paid for importing the compiler."""
    return "numba" in sys.modules
