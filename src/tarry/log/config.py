"""What a topic's settings say about its log, with Kafka's defaults.

A plain object, one per log, changed in place when a topic is altered.  Attributes are Kafka's topic
keys with underscores; who parses and checks them is `cluster/topic_settings`.
"""

from __future__ import annotations

from typing import Final

INT64_MAX: Final = (1 << 63) - 1
DAY_MS: Final = 24 * 60 * 60 * 1000

# No codec: batches are stored as they were produced.
AS_PRODUCED: Final = -1


class LogConfig:
    """Settings of one log.  -1 means without limit, as in Kafka."""

    def __init__(self) -> None:
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

    def take_over(self, other: LogConfig) -> None:
        """Become like another one: segments and whoever else holds this object see it at once."""
        self.segment_bytes = other.segment_bytes
        self.segment_ms = other.segment_ms
        self.segment_jitter_ms = other.segment_jitter_ms
        self.segment_index_bytes = other.segment_index_bytes
        self.index_interval_bytes = other.index_interval_bytes
        self.retention_ms = other.retention_ms
        self.retention_bytes = other.retention_bytes
        self.has_deletion = other.has_deletion
        self.has_compaction = other.has_compaction
        self.min_cleanable_dirty_ratio = other.min_cleanable_dirty_ratio
        self.min_compaction_lag_ms = other.min_compaction_lag_ms
        self.max_compaction_lag_ms = other.max_compaction_lag_ms
        self.delete_retention_ms = other.delete_retention_ms
        self.max_message_bytes = other.max_message_bytes
        self.min_insync_replicas = other.min_insync_replicas
        self.is_log_append_time = other.is_log_append_time
        self.compression_codec = other.compression_codec
        self.compression_level = other.compression_level
        self.flush_messages = other.flush_messages
        self.message_timestamp_before_max_ms = other.message_timestamp_before_max_ms
        self.message_timestamp_after_max_ms = other.message_timestamp_after_max_ms
