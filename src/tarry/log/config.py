"""Configuration of a log: the settings of its topic that the log goes by.

A `LogConfig` is a plain object, one per log, changed in place when the topic is altered.  Its
attributes are Kafka's topic keys with underscores, except for keys that name a choice.
`cluster/topic_settings` parses and checks what users write.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from mypy_extensions import mypyc_attr

from tarry.base.setting import HONOURED, Setting, Value, read_table
from tarry.base.topic_settings_table import HONOURED_TABLE, OURS_TABLE
from tarry.wire.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD

INT64_MAX: Final = (1 << 63) - 1
DAY_MS: Final = 24 * 60 * 60 * 1000

# Compression codec of a log that stores batches as they were produced.
AS_PRODUCED: Final = -1

# For each value of compression.type: the codec, and the topic key of its level ("": none).
_CODECS: Final[dict[Value, tuple[int, str]]] = {
    "producer": (AS_PRODUCED, ""),
    "uncompressed": (NONE, ""),
    "gzip": (GZIP, "compression.gzip.level"),
    "snappy": (SNAPPY, ""),
    "lz4": (LZ4, "compression.lz4.level"),
    "zstd": (ZSTD, "compression.zstd.level"),
}

_ROWS: Final[list[Setting]] = [
    *read_table(HONOURED_TABLE, HONOURED),
    *read_table(OURS_TABLE, HONOURED),
]

# Rows whose key becomes an attribute of LogConfig with a number.
_NUMBERS: Final[list[Setting]] = [
    row
    for row in _ROWS
    if row.type in ("int", "long", "double") and not row.key.startswith("compression.")
]

_DEFAULTS: Final[dict[str, Value]] = {row.key: row.default for row in _ROWS}


@mypyc_attr(acyclic=True)
class LogConfig:
    """Settings of one log: Kafka's defaults, replaced by `values` (by topic key).  -1: no limit.

    `segment_jitter_ms` is the jitter that was drawn for this log.
    """

    segment_bytes: int
    segment_ms: int
    segment_jitter_ms: int
    segment_index_bytes: int
    index_interval_bytes: int
    retention_ms: int
    retention_bytes: int
    min_cleanable_dirty_ratio: float
    min_compaction_lag_ms: int
    max_compaction_lag_ms: int
    delete_retention_ms: int
    max_decompressed_message_bytes: int
    max_message_bytes: int
    min_insync_replicas: int
    flush_messages: int
    message_timestamp_before_max_ms: int
    message_timestamp_after_max_ms: int
    delay_default_ms: int
    delay_min_ms: int
    delay_max_ms: int
    delay_pending_max_bytes: int

    def __init__(self, values: Mapping[str, Value] | None = None) -> None:
        counting = dict(_DEFAULTS)
        counting.update(values or {})
        for row in _NUMBERS:
            setattr(self, row.attribute, counting[row.key])
        # cleanup.policy: old segments go, the last record of every key stays, both or neither.
        policies = counting["cleanup.policy"]
        assert isinstance(policies, tuple)
        self.has_deletion = "delete" in policies
        self.has_compaction = "compact" in policies
        self.is_log_append_time = counting["message.timestamp.type"] == "LogAppendTime"
        # unclean.leader.election.enable: True if a replica that is not in sync may lead.
        self.may_lose_records = counting["unclean.leader.election.enable"] is True
        # delay.enable: True if records wait until they are due.  delay.source: whether their
        # timestamps or their headers give the due time.
        self.has_delay = counting["delay.enable"] is True
        self.has_delay_by_timestamp = self.has_delay and counting["delay.source"] == "timestamp"
        self.has_delay_by_header = self.has_delay and counting["delay.source"] == "header"
        # delay.replace: True if a record's key is its schedule id.  It also holds for pending
        # records of a topic that delays no more.
        self.is_named_by_key = counting["delay.replace"] == "key"
        # compression.type, and the level that is set for this codec.
        codec, level_key = _CODECS[counting["compression.type"]]
        self.compression_codec: int = codec
        level = counting[level_key] if level_key else 0
        assert isinstance(level, int)
        self.compression_level: int = level

    def take_over(self, other: LogConfig) -> None:
        """Replace every setting by that of `other`, in place, for all holders of this object."""
        for row in _NUMBERS:
            setattr(self, row.attribute, getattr(other, row.attribute))
        self.has_deletion = other.has_deletion
        self.has_compaction = other.has_compaction
        self.is_log_append_time = other.is_log_append_time
        self.may_lose_records = other.may_lose_records
        self.has_delay = other.has_delay
        self.has_delay_by_timestamp = other.has_delay_by_timestamp
        self.has_delay_by_header = other.has_delay_by_header
        self.is_named_by_key = other.is_named_by_key
        self.compression_codec = other.compression_codec
        self.compression_level = other.compression_level
