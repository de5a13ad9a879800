"""Micro-batches as Spark tells of them, and as a pipeline keeps them."""

from __future__ import annotations

from typing import Any

import msgspec

from tarry.spark.pipeline.progress import BatchProgress, batch_of

TOLD: dict[str, Any] = {
    "timestamp": "2026-11-22T08:00:00.000Z",
    "batchId": 7,
    "durationMs": {"triggerExecution": 2000, "addBatch": 1500},
    "stateOperators": [{"operatorName": "dedupe", "numRowsDroppedByWatermark": 3}],
    "sources": [
        {
            "numInputRows": 500,
            "startOffset": {"orders": {"id": "x", "0": 0}},
            "endOffset": {"orders": {"id": "x", "0": 500, "1": 20}},
            "latestOffset": {"orders": {"id": "x", "0": 1400, "1": 120}},
        }
    ],
    "observedMetrics": {"tarry": {"bytes": 4_000_000, "rule:decode": 0, "rule:a.b": 12}},
}


def batch(stage: str, **more: Any) -> BatchProgress:
    """Progress of a micro-batch, with some of it changed."""
    return msgspec.structs.replace(batch_of(TOLD, "orders", stage), **more)
