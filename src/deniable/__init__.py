"""Analytics on data that nobody should hold.

>>> import deniable as dn
>>> dn.mechanisms.RandomizedResponse(epsilon=1.0, k=4).perturb_one(2) in range(4)
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deniable import errors, mechanisms
from deniable.errors import DeniableError
from deniable.tables import Categorical, Cells, Collection, GridView, Ordinal, Points, Public, Table

if TYPE_CHECKING:
    from deniable import streams
    from deniable.engines.reading import connect
    from deniable.queries.fit import fit
    from deniable.randomness import SecureSource, SeededSource

__version__ = "0.1.0"
__all__ = [
    "Categorical",
    "Cells",
    "Collection",
    "DeniableError",
    "GridView",
    "Ordinal",
    "Points",
    "Public",
    "SecureSource",
    "SeededSource",
    "Table",
    "__version__",
    "connect",
    "errors",
    "fit",
    "mechanisms",
    "spark",
    "streams",
]

# Names whose modules need numpy: imported on first use, so that a device can import the rest with nothing installed.
_LAZY = {
    "SecureSource": "deniable.randomness",
    "SeededSource": "deniable.randomness",
    "connect": "deniable.engines.reading",
    "fit": "deniable.queries.fit",
}


def __getattr__(name: str) -> Any:
    if name in ("spark", "streams"):
        return import_module(f"deniable.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'deniable' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
