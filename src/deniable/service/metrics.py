"""Numbers for operators, in Prometheus' text format. No label holds anything that a device sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from deniable.stores.collector.group_commit import Committed

_COMMIT_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

_STREAM = ["stream", "outcome"]


class Metrics:
    """The numbers of one collector."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        made: dict[str, Any] = {"registry": self.registry, "namespace": "deniable"}
        self.reports = Counter("reports", "Reports that were answered, by what became of them", ["outcome"], **made)
        self.refused = Counter("refused_reports", "Reports that were refused, by reason", ["reason"], **made)
        self.requests = Counter("requests", "Requests, by route and status", ["route", "status"], **made)
        self.commits = Histogram("commit_seconds", "Time of one commit", buckets=_COMMIT_SECONDS, **made)
        self.commit_reports = Counter("committed_reports", "Reports that went through commits", **made)
        self.failed_commits = Counter("failed_commits", "Commits that failed", **made)
        self.queued = Gauge("queued_reports", "Reports that wait for the disk", **made)
        self.free_bytes = Gauge("disk_free_bytes", "Room on the disk of the store", **made)
        self.stored = Gauge("stored_reports", "Reports in the store, by table", ["table"], **made)
        self.open_rounds = Gauge("open_rounds", "Rounds that are open", **made)
        self.stream_values = Counter("stream_values", "Values of streams, by what became of them", _STREAM, **made)
        self._outcomes = {outcome: self.reports.labels(outcome) for outcome in ("accepted", "repeated", "refused")}

    def answered(self, counts: Mapping[str, int]) -> None:
        """Note what became of reports: accepted, repeated, or the word of a refusal."""
        for word, count in counts.items():
            if word in self._outcomes:
                self._outcomes[word].inc(count)
            else:
                self._outcomes["refused"].inc(count)
                self.refused.labels(word).inc(count)

    def committed(self, commit: Committed) -> None:
        """Note one commit."""
        self.commits.observe(commit.seconds)
        self.commit_reports.inc(commit.reports)
        if commit.failed:
            self.failed_commits.inc()

    def text(self) -> bytes:
        """All numbers."""
        return bytes(generate_latest(self.registry))
