"""Runs a collector: opens the port, and on SIGTERM ends requests, commits, and leaves."""

from __future__ import annotations

import gc
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from deniable.engines.collecting.stored_reports import collector_folder
from deniable.errors import Failure
from deniable.service.application import application
from deniable.service.collector import Collector, open_collector
from deniable.service.direct_uploads import DirectUploads, upload_http
from deniable.service.logs import UploadCounts, log, start_logging, thread_failed
from deniable.service.reports_resource import REPORTS_ROUTE
from deniable.service.settings import ServeSettings
from deniable.stores.collector import sqlite_store

_KEEP_ALIVE_S = 15
_COLLECTOR_THRESHOLDS = (100_000, 20, 50)
"""Reports are no cycles: looking for some every 700 objects took a third of the time of a commit."""


class _Server(uvicorn.Server):  # type: ignore[misc] # an extra
    """Ends in order on SIGTERM and Ctrl-C, and returns to whoever started it."""

    def __init__(self, collector: Collector, settings: ServeSettings) -> None:
        super().__init__(_config(collector, settings))
        self._collector = collector

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Let signals end the server, for as long as it runs. Only the main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGTERM, signal.SIGINT)
        before = {number: signal.signal(number, self._end) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self, *_: Any) -> None:
        self._collector.stopping = True
        self.should_exit = True


def warm_up(collector: Collector) -> None:
    """Compile what is compiled on first use; otherwise the first requests would wait for it."""
    collector.door.warm_up()
    sqlite_store.warm_up()


def serve(path: Path, settings: ServeSettings, started: Callable[[str], None] = lambda _: None) -> None:
    """Serve a folder until a signal ends it. `started` is called with the address when the port is open."""
    start_logging()
    collector = open_collector(path, settings)
    warm_up(collector)
    thresholds, hook = gc.get_threshold(), threading.excepthook
    threading.excepthook = thread_failed
    gc.freeze()
    gc.set_threshold(*_COLLECTOR_THRESHOLDS)
    try:
        with _listening(settings) as listening, _mysql(collector, settings, started):
            host, port = listening.getsockname()[:2]
            scheme = "https" if settings.certificate else "http"
            started(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}")
            log("started", collection=collector.name, tokens=settings.needs_token)
            if any(key.scope == "ask" for key in collector.keys.keys().keys):
                collector.questions.read_ahead()
            server = _Server(collector, settings)
            server.run([listening])
            if not server.started:
                raise Failure("the server could not start. Nothing was taken. The log says why.")
    finally:
        collector.close()
        threading.excepthook = hook
        gc.set_threshold(*thresholds)
        gc.unfreeze()  # what is frozen is not released in the end, and modules complain of that on stderr
        log("stopped", reports=sum(collector_counts(path).values()))


@contextmanager
def _mysql(collector: Collector, settings: ServeSettings, started: Callable[[str], None]) -> Iterator[None]:
    """The port for tools that speak MySQL, if one is wanted."""
    if not settings.mysql_port:
        yield
        return
    from deniable.service.mysql.mysql_server import MysqlServer  # only where it is wanted

    server = MysqlServer(collector, settings.mysql_port)
    server.start()
    started(f"mysql://{settings.host}:{server.port}/{collector.name}")
    try:
        yield
    finally:
        server.close()


def collector_counts(path: Path) -> dict[tuple[str, int], int]:
    """How many reports a folder's store holds."""
    store = collector_folder(path).open_store()
    try:
        return dict(store.summary().counts)
    finally:
        store.close()


def _listening(settings: ServeSettings) -> socket.socket:
    """The open port; 0 takes one that is free."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((settings.host, settings.port))
        listening.listen(min(settings.connections, 2048))
    except OSError as problem:
        listening.close()
        reason = (problem.strerror or "unknown").lower()
        raise Failure(
            f"port {settings.port} of {settings.host!r} cannot be opened ({reason}). Nothing was started. "
            "Choose another with --port, or end the program that has it."
        ) from None
    return listening


def _config(collector: Collector, settings: ServeSettings) -> uvicorn.Config:
    counts = UploadCounts(collector.metrics.requests, REPORTS_ROUTE)
    return uvicorn.Config(
        application(collector, counts),
        http=upload_http(DirectUploads(collector, counts)),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=settings.connections,
        timeout_keep_alive=_KEEP_ALIVE_S,
        timeout_graceful_shutdown=int(settings.drain_seconds),
        ssl_certfile=settings.certificate or None,
        ssl_keyfile=settings.private_key or None,
    )
