"""Tables: what is collected, how a device randomises it, and what the reports look like.

Importing this package needs the standard library alone: a device does.
"""

from deniable.tables.collection import Collection
from deniable.tables.grids import Cells, GridView, Points
from deniable.tables.schema import Categorical, Ordinal, Public, Table

__all__ = ["Categorical", "Cells", "Collection", "GridView", "Ordinal", "Points", "Public", "Table"]
