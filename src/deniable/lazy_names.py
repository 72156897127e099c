"""Public names whose modules are imported on first use. Standard library only, so that a device can import the rest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, from the module of every name.

    >>> get, names = lazy_names("deniable.example", {"Fraction": "fractions"})
    >>> get("Fraction")(1, 3), names()
    (Fraction(1, 3), ['Fraction'])
    """

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return get, lambda: sorted(modules)
