"""The designs by name. Each takes a table and a fan-out and returns the parts of its design: groups of views."""

from collections.abc import Callable

from deniable.tables.designs.ahio import ahio
from deniable.tables.designs.amg import amg
from deniable.tables.designs.ehio import ehio
from deniable.tables.designs.hio import hio
from deniable.tables.designs.mg import mg
from deniable.tables.designs.sc import sc
from deniable.tables.designs.sr_hio import sr_hio
from deniable.tables.designs.views import Group
from deniable.tables.schema.attributes import Table

Parts = tuple[tuple[Group, ...], ...]

DESIGNS: dict[str, Callable[[Table, int], Parts]] = {
    "ahio": ahio,
    "amg": amg,
    "ehio": ehio,
    "hio": hio,
    "mg": mg,
    "sc": sc,
    "sr-hio": sr_hio,
}
GRID = "grid"
PRODUCTS = frozenset({"hio", "sr-hio", "ahio", "ehio"})
"""The designs whose views are all combinations of levels of all attributes."""
"""Its views are listed in the specification; see `grid.py`."""
