"""Analytics on data that nobody should hold.

>>> import deniable as dn
>>> dn.mechanisms.RandomizedResponse(epsilon=1.0, k=4).perturb_one(2) in range(4)
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from deniable import errors, mechanisms
from deniable.collection import Collection, fit, plan
from deniable.errors import DeniableError
from deniable.tables import Categorical, Cells, Dates, GridView, Ordinal, Points, Public, Rounds, Table, Text

if TYPE_CHECKING:
    from deniable import client, spark, stores, streams
    from deniable.database import Database, connect
    from deniable.engines.collecting.collected_reports import Collected, Reports
    from deniable.ledger import Ledger
    from deniable.queries.answers.answer_options import AnswerOptions
    from deniable.queries.answers.result import Estimate, Result
    from deniable.queries.forecasts.forecast import Explanation, Forecast
    from deniable.queries.forecasts.influence import Influence
    from deniable.queries.forecasts.proposal import Proposal
    from deniable.queries.planning.plan import Plan
    from deniable.randomness import SecureSource, SeededSource

__version__ = "0.2.0"
__all__ = [
    "AnswerOptions",
    "Categorical",
    "Cells",
    "Collected",
    "Collection",
    "Database",
    "Dates",
    "DeniableError",
    "Estimate",
    "Explanation",
    "Forecast",
    "GridView",
    "Influence",
    "Ledger",
    "Ordinal",
    "Plan",
    "Points",
    "Proposal",
    "Public",
    "Reports",
    "Result",
    "Rounds",
    "SecureSource",
    "SeededSource",
    "Table",
    "Text",
    "__version__",
    "client",
    "connect",
    "errors",
    "fit",
    "mechanisms",
    "plan",
    "spark",
    "stores",
    "streams",
]

# Names whose modules are imported on first use: most need numpy, and a device can import the rest without.
_LAZY = {
    "AnswerOptions": "deniable.queries.answers.answer_options",
    "Collected": "deniable.engines.collecting.collected_reports",
    "Database": "deniable.database",
    "Estimate": "deniable.queries.answers.result",
    "Explanation": "deniable.queries.forecasts.forecast",
    "Forecast": "deniable.queries.forecasts.forecast",
    "Influence": "deniable.queries.forecasts.influence",
    "Ledger": "deniable.ledger",
    "Plan": "deniable.queries.planning.plan",
    "Proposal": "deniable.queries.forecasts.proposal",
    "Reports": "deniable.engines.collecting.collected_reports",
    "Result": "deniable.queries.answers.result",
    "SecureSource": "deniable.randomness",
    "SeededSource": "deniable.randomness",
    "connect": "deniable.database",
}


def __getattr__(name: str) -> Any:
    if name in ("client", "spark", "stores", "streams"):
        return import_module(f"deniable.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module 'deniable' has no attribute {name!r}")
    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
