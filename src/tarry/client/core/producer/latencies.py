"""Latencies of the last batches, and their quantiles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tarry.client.metrics import LatencyMetrics

# Number of batches kept: enough for a 99th percentile, and sorted in some microseconds.
KEPT_MAX: Final = 512


class Latencies:
    """Times in ms from the first record of a batch to its acknowledgement."""

    def __init__(self) -> None:
        self._kept: list[int] = []
        self._next = 0

    def add(self, latency_ms: int) -> None:
        """Keep a latency; it replaces the oldest one if there are enough."""
        if len(self._kept) < KEPT_MAX:
            self._kept.append(latency_ms)
        else:
            self._kept[self._next] = latency_ms
            self._next = (self._next + 1) % KEPT_MAX

    def metrics(self) -> LatencyMetrics:
        """Return the quantiles of the latencies: the median, p90, p99 and the maximum."""
        # Imported here, because few programs read metrics.
        from tarry.client.metrics import LatencyMetrics

        if not self._kept:
            return LatencyMetrics(-1, -1, -1, -1)
        kept = sorted(self._kept)
        last = len(kept) - 1
        return LatencyMetrics(
            kept[last * 50 // 100], kept[last * 90 // 100], kept[last * 99 // 100], kept[last]
        )
