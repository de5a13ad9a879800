"""Metrics of a pipeline, as Prometheus reads them from an address of this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from tarry.spark.pipeline.progress import BatchProgress

STAGE: Final = ("pipeline", "stage")


class PipelineMetrics:
    """Metrics of one run, by stage."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        made = {"registry": self.registry, "namespace": "tarry_pipeline"}
        self._batches = Counter("batches", "Micro-batches and rounds done.", STAGE, **made)
        self._records = Counter("records", "Records read.", STAGE, **made)
        self._bytes = Counter("bytes", "Bytes of values read, or of files.", STAGE, **made)
        self._late = Counter("late", "Rows that came behind the watermark.", STAGE, **made)
        rules = (*STAGE, "rule")
        self._rejected = Counter("rejected", "Records rejected, by rule.", rules, **made)
        self._lag = Gauge("lag", "Records not read yet after the last one.", STAGE, **made)
        self._seconds = Gauge("batch_seconds", "Time of the last one.", STAGE, **made)

    def add(self, one: BatchProgress) -> None:
        """Count a micro-batch."""
        stage = one.pipeline, one.stage
        self._batches.labels(*stage).inc()
        self._records.labels(*stage).inc(one.records)
        self._bytes.labels(*stage).inc(one.bytes)
        self._late.labels(*stage).inc(one.late)
        for rule, count in sorted(one.rejected.items()):
            self._rejected.labels(*stage, rule).inc(count)
        if one.lag is not None:
            self._lag.labels(*stage).set(one.lag)
        self._seconds.labels(*stage).set(one.seconds)


@contextmanager
def served(metrics: PipelineMetrics, host: str, port: int) -> Iterator[int]:
    """Serve metrics over HTTP, in a thread; yield the port, which the system chooses for 0."""
    server, thread = start_http_server(port, host, metrics.registry)
    try:
        yield int(server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
