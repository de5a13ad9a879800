"""What a topic's settings say about its log, with Kafka's defaults.

A plain object, one per log, changed in place when a topic is altered.  Attributes are Kafka's topic
keys with underscores; who parses and checks them is `cluster/topic_settings`.
"""

from __future__ import annotations

from typing import Final

INT64_MAX: Final = (1 << 63) - 1
DAY_MS: Final = 24 * 60 * 60 * 1000


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
        self.message_timestamp_before_max_ms = INT64_MAX
        self.message_timestamp_after_max_ms = 60 * 60 * 1000
