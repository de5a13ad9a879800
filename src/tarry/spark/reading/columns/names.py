"""Columns of a record, by name: those of Spark's Kafka source."""

from __future__ import annotations

from typing import Final

HEADERS: Final = "headers"

# In their order; the last one is there if `includeHeaders` is true.
COLUMNS: Final = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "timestampType",
    HEADERS,
)
