"""What a topic's settings say about its log, with Kafka's defaults.

A plain object, one per log, changed in place when a topic is altered.  Attributes are Kafka's topic
keys with underscores; `cluster/topic_settings` parses and checks them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

INT64_MAX: Final = (1 << 63) - 1
DAY_MS: Final = 24 * 60 * 60 * 1000

# No codec: batches are stored as they were produced.
AS_PRODUCED: Final = -1


NAMES: Final = (
    *("segment_bytes", "segment_ms", "segment_jitter_ms", "segment_index_bytes"),
    *("index_interval_bytes", "retention_ms", "retention_bytes", "has_deletion", "has_compaction"),
    *("min_cleanable_dirty_ratio", "min_compaction_lag_ms", "max_compaction_lag_ms"),
    *("delete_retention_ms", "max_message_bytes", "min_insync_replicas", "is_log_append_time"),
    *("compression_codec", "compression_level", "flush_messages"),
    *("message_timestamp_before_max_ms", "message_timestamp_after_max_ms"),
)


class LogConfig:
    """Settings of one log: defaults, and `values` by attribute.  -1 means without limit."""

    def __init__(self, values: Mapping[str, int | float] | None = None) -> None:
        self.segment_bytes = 1 << 30
        self.segment_ms = 7 * DAY_MS
        self.segment_jitter_ms = 0
        self.segment_index_bytes = 10 << 20
        self.index_interval_bytes = 4096
        self.retention_ms = 7 * DAY_MS
        self.retention_bytes = -1
        # cleanup.policy: old segments go, the last record of every key stays, both or neither.
        self.has_deletion = True
        self.has_compaction = False
        self.min_cleanable_dirty_ratio = 0.5
        self.min_compaction_lag_ms = 0
        self.max_compaction_lag_ms = INT64_MAX
        self.delete_retention_ms = DAY_MS
        self.max_message_bytes = 1_048_588
        self.min_insync_replicas = 1
        self.is_log_append_time = False
        # compression.type, and the level that is set for this codec.
        self.compression_codec = AS_PRODUCED
        self.compression_level = 0
        self.flush_messages = INT64_MAX
        self.message_timestamp_before_max_ms = INT64_MAX
        self.message_timestamp_after_max_ms = 60 * 60 * 1000

        self._take(values or {})

    def take_over(self, other: LogConfig) -> None:
        """Become like `other`: segments and whoever else holds this object see it at once."""
        self._take({name: getattr(other, name) for name in NAMES})

    def _take(self, values: Mapping[str, int | float]) -> None:
        for name, value in values.items():
            assert name in NAMES, name
            setattr(self, name, value)
