"""GET /v1/tables: what there is to ask about, with a key of the scope ask."""

from __future__ import annotations

from dataclasses import asdict

from starlette.requests import Request
from starlette.responses import Response

from deniable.queries.answers.catalogue import catalogue
from deniable.service.answers import answered
from deniable.service.authorisation import require_scope
from deniable.service.collector import Collector


async def get_tables(request: Request) -> Response:
    """Tables and columns with types, comments and, where they are few, the values of a domain."""
    collector: Collector = request.app.state.collector
    require_scope(collector, request, "ask")
    tables = [asdict(table) for table in catalogue(collector.folder.collection)]
    return answered({"name": collector.name, "tables": tables})
