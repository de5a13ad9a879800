"""Metrics of a pipeline, as Prometheus reads them from an address of this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from tarry.spark.pipeline.progress import BatchProgress

PREFIX: Final = "tarry_pipeline_"

# Labels of every metric.
STAGE: Final = ("pipeline", "stage")


class PipelineMetrics:
    """Metrics of one run, by stage."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._batches = self._counter("batches", "Micro-batches and rounds done.")
        self._records = self._counter("records", "Records read.")
        self._bytes = self._counter("bytes", "Bytes of values read, or of files.")
        self._late = self._counter(
            "late", "Rows dropped behind the watermark; of aggregates sums of windows."
        )
        self._lost = self._counter("lost", "Offsets whose records were lost, and left out.")
        self._rejected = self._counter("rejected", "Records rejected, by rule.", "rule")
        self._lag = self._gauge("lag", "Records not read yet after the last one.")
        self._seconds = self._gauge("batch_seconds", "Time of the last one.")

    def _counter(self, name: str, about: str, *labels: str) -> Counter:
        return Counter(PREFIX + name, about, (*STAGE, *labels), registry=self.registry)

    def _gauge(self, name: str, about: str) -> Gauge:
        return Gauge(PREFIX + name, about, STAGE, registry=self.registry)

    def add(self, one: BatchProgress) -> None:
        """Count a micro-batch."""
        stage = one.pipeline, one.stage
        self._batches.labels(*stage).inc()
        self._records.labels(*stage).inc(one.records)
        self._bytes.labels(*stage).inc(one.bytes)
        self._late.labels(*stage).inc(one.late)
        self._lost.labels(*stage).inc(sum(lost.count for lost in one.lost))
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
