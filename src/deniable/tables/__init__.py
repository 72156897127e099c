"""Tables: what is collected, how a device randomises it, and what the reports look like.

Importing this package needs the standard library alone: a device does.
"""

from deniable.tables.schema.attributes import Categorical, Ordinal, Public, Table, Text
from deniable.tables.schema.dates import Dates
from deniable.tables.schema.grid_views import Cells, GridView, Points
from deniable.tables.schema.rounds import Rounds

__all__ = ["Categorical", "Cells", "Dates", "GridView", "Ordinal", "Points", "Public", "Rounds", "Table", "Text"]
