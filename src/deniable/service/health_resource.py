"""Whether the collector lives, whether it would take uploads, which version it is, and its numbers."""

from __future__ import annotations

from collections import Counter

from starlette.requests import Request
from starlette.responses import Response

from deniable import __version__
from deniable.service.answers import answered, refusal
from deniable.service.authorisation import is_local, require_scope
from deniable.service.collector import Collector
from deniable.tables.schema.report_format import REPORT_VERSION


async def get_health(_: Request) -> Response:
    """200 as long as requests are answered."""
    return answered({"alive": True})


async def get_readiness(request: Request) -> Response:
    """200 if an upload would be taken now, else 503."""
    collector: Collector = request.app.state.collector
    if collector.is_ready:
        return answered({"ready": True})
    return refusal(503, "not_ready", "Uploads are not taken now: stopping, or the disk is nearly full.", wait_s=5)


async def get_version(_: Request) -> Response:
    """Versions of the software and of the report format."""
    return answered({"version": __version__, "report_format": REPORT_VERSION})


async def get_metrics(request: Request) -> Response:
    """Numbers for Prometheus: on a loopback port for everybody, elsewhere with a key of scope operate."""
    collector: Collector = request.app.state.collector
    if not is_local(collector, request):
        require_scope(collector, request, "operate")
    metrics, summary = collector.metrics, collector.store.summary()
    metrics.queued.set(collector.writer.queued)
    metrics.free_bytes.set(collector.free_bytes())
    metrics.open_rounds.set(sum(summary.rounds.values()))
    stored: Counter[str] = Counter()
    for (table, _), rows in summary.counts.items():
        stored[table] += rows
    for table, rows in stored.items():
        metrics.stored.labels(table).set(rows)
    return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
