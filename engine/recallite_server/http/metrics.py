"""Counts of the server, as Prometheus reads it."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from recallite.memory import Memory

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """The figures of one server."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self.requests = Counter(
            "recallite_requests", "Requests answered.", ["operation", "status"], registry=self._registry
        )
        self.seconds = Histogram(
            "recallite_request_duration_seconds", "Time to answer a request.", ["operation"], buckets=_SECONDS,
            registry=self._registry,
        )  # fmt: skip
        self.batch = Histogram(
            "recallite_recall_batch_queries", "Queries answered in one batch.", buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=self._registry,
        )  # fmt: skip
        self._records = Gauge("recallite_records", "Memories stored.", ["kind"], registry=self._registry)
        self._store_bytes = Gauge("recallite_store_bytes", "Bytes of the store's files.", registry=self._registry)
        self._index_bytes = Gauge("recallite_index_bytes", "Bytes of the index in RAM.", registry=self._registry)
        self._index_records = Gauge("recallite_index_records", "Records in the index.", registry=self._registry)
        self._pending = Gauge("recallite_pending_records", "Memories that wait for a vector.", registry=self._registry)

    def counted(self, operation: str, status: int, seconds: float) -> None:
        """Count a request."""
        self.requests.labels(operation, str(status)).inc()
        self.seconds.labels(operation).observe(seconds)

    def text(self, memory: Memory) -> bytes:
        """All figures, with those of the store as they are now."""
        stats = memory.store.stats()
        self._records.clear()
        for kind, count in stats.kinds.items():
            self._records.labels(kind).set(count)
        self._store_bytes.set(stats.bytes_on_disk or 0)
        self._index_bytes.set(stats.index.get("bytes", 0))
        self._index_records.set(stats.index.get("records", 0))
        self._pending.set(stats.pending)
        return generate_latest(self._registry)
