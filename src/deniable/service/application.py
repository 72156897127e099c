"""The application: routes, one line of log per request, and no way for an error to say what somebody sent."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deniable.service.answers import Refused, refusal, refused_answer
from deniable.service.collection_resource import get_collection, no_such_collection
from deniable.service.collector import Collector
from deniable.service.console_resource import get_console, get_console_file, get_favicon
from deniable.service.cross_origin import CrossOrigin
from deniable.service.health_resource import get_health, get_metrics, get_readiness, get_version
from deniable.service.live_events_resource import get_events
from deniable.service.live_values_resource import post_values
from deniable.service.live_windows_resource import get_windows
from deniable.service.logs import UploadCounts, log
from deniable.service.plan_resource import post_plan
from deniable.service.promise_resource import get_promise
from deniable.service.questions_resource import post_explain, post_forecast, post_sql
from deniable.service.reports_resource import FAILED_ANSWER, REPORTS_ROUTE, post_reports
from deniable.service.status_resource import get_key, get_status, post_round
from deniable.service.stream_windows_resource import get_series, get_streams, post_window
from deniable.service.streams_resource import post_renewal, post_stream_reports
from deniable.service.tables_resource import get_tables

ROUTES: tuple[BaseRoute, ...] = (
    Route(REPORTS_ROUTE, no_such_collection, methods=["POST"]),
    Route("/v1/collections/{name}", get_collection),
    Route("/v1/collections/{name}/streams/{stream}/reports", post_stream_reports, methods=["POST"]),
    Route("/v1/collections/{name}/streams/{stream}/renewals", post_renewal, methods=["POST"]),
    Route("/", get_console),
    Route("/favicon.ico", get_favicon),
    Route("/console/{file}", get_console_file),
    Route("/v1/key", get_key),
    Route("/v1/tables", get_tables),
    Route("/v1/status", get_status),
    Route("/v1/rounds", post_round, methods=["POST"]),
    Route("/v1/plan", post_plan, methods=["POST"]),
    Route("/v1/promise", get_promise),
    Route("/v1/streams", get_streams),
    Route("/v1/streams/{stream}", post_values, methods=["POST"]),
    Route("/v1/streams/{stream}/events", get_events),
    Route("/v1/streams/{stream}/windows", get_windows),
    Route("/v1/streams/{stream}/series", get_series),
    Route("/v1/streams/{stream}/window", post_window, methods=["POST"]),
    Route("/v1/sql", post_sql, methods=["POST"]),
    Route("/v1/explain", post_explain, methods=["POST"]),
    Route("/v1/forecast", post_forecast, methods=["POST"]),
    Route("/healthz", get_health),
    Route("/readyz", get_readiness),
    Route("/version", get_version),
    Route("/metrics", get_metrics),
)
_CAREFUL = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
_QUIET = ("/healthz", "/readyz", "/metrics")


def application(collector: Collector, counts: UploadCounts | None = None) -> ASGIApp:
    """The ASGI application of a collector. When it ends, what waits is committed."""
    uploads = UploadCounts(collector.metrics.requests, REPORTS_ROUTE) if counts is None else counts

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        collector.close()
        uploads.write()

    app = Starlette(
        routes=ROUTES,
        lifespan=lifespan,
        exception_handlers={Refused: refused_answer, HTTPException: _http_answer, Exception: _failed_answer},
    )
    app.state.collector = collector
    app.router.redirect_slashes = False  # an answer that repeats the host which a request names
    return CrossOrigin(Watched(app, collector, uploads), collector.settings.origins)


async def _http_answer(_: Request, problem: Exception) -> Response:
    """Starlette's own refusals: unknown paths and methods."""
    status = problem.status_code if isinstance(problem, HTTPException) else 500
    words = {404: "There is nothing at this path.", 405: "This path does not take that method."}
    return refusal(status, "http", words.get(status, "The request is not understood."))


_FAILED_RESPONSE = Response(FAILED_ANSWER, 500, media_type="application/json")


async def _failed_answer(*_: object) -> Response:
    """Starlette sends this and raises the exception again, which `Watched` logs."""
    return _FAILED_RESPONSE


class Watched:
    """Counts and logs every request by its route. What fails is answered with 500 and logged without its text."""

    def __init__(self, app: Starlette, collector: Collector, uploads: UploadCounts) -> None:
        self._app, self._collector, self._uploads = app, collector, uploads
        self._reports_path = f"/v1/collections/{collector.name}/reports"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] == self._reports_path and scope["method"] == "POST":
            await self._take_reports(scope, receive, send)
            return
        begun, status = time.monotonic(), 0

        async def watched_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": _careful(message["headers"])}
            await send(message)

        route = _route(scope)
        try:
            await self._app(scope, receive, watched_send)
        except Exception as problem:
            log("request failed", level=logging.ERROR, problem=problem, route=route)
        self._collector.metrics.requests.labels(route, str(status)).inc()
        if route not in _QUIET:
            log("request", route=route, status=status, ms=round(1000 * (time.monotonic() - begun), 1))

    async def _take_reports(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The path with the load: counted here, and logged once a second."""
        begun, status = time.monotonic(), 0
        try:
            status = await post_reports(self._collector, scope, receive, send)
        except Exception as problem:
            status = status or 500
            log("request failed", level=logging.ERROR, problem=problem, route=REPORTS_ROUTE)
            with suppress(Exception):  # perhaps the answer has begun, or nobody is there
                await _FAILED_RESPONSE(scope, receive, send)
        self._uploads.note(status, begun)


def _careful(headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """The headers of an answer, and what keeps it out of caches and from being read as another type."""
    names = {name for name, _ in headers}
    return [*headers, *((name, value) for name, value in _CAREFUL if name not in names)]


def _route(scope: Scope) -> str:
    """The pattern of the path. The path itself may hold anything."""
    for route in ROUTES:
        if isinstance(route, Route) and route.matches(scope)[0] is not Match.NONE:
            return str(route.path)
    return "unknown"
