"""Settings of topics: checked when they are given, with the broker's behind them.

A topic keeps only what was set for it, as text; everything else follows the broker's settings,
also when those change with a restart.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tarry.base.doors import Random
from tarry.base.errors import InvalidSetting
from tarry.base.setting import (
    DEFAULT_ONLY,
    HONOURED,
    WITHOUT_EFFECT,
    Setting,
    Value,
    read_table,
    shown,
    value_text,
)
from tarry.base.settings import SETTINGS, Settings
from tarry.base.spelling import Spelling
from tarry.cluster.topic_settings_table import (
    DEFAULT_ONLY_TABLE,
    HIDDEN_KEYS,
    HONOURED_TABLE,
    SYNONYMS,
    WITHOUT_EFFECT_TABLE,
)
from tarry.log.config import AS_PRODUCED, LogConfig
from tarry.wire.compression import GZIP, LZ4, NONE, SNAPPY, ZSTD

TOPIC_SETTINGS: Final[dict[str, Setting]] = {
    row.key: row
    for row in sorted(
        [
            *read_table(HONOURED_TABLE, HONOURED),
            *read_table(WITHOUT_EFFECT_TABLE, WITHOUT_EFFECT),
            *read_table(DEFAULT_ONLY_TABLE, DEFAULT_ONLY),
        ],
        key=lambda row: row.key,
    )
}

# The codec that a value of compression.type asks for, and the key of its level.
_CODECS: Final[dict[Value, tuple[int, str]]] = {
    "producer": (AS_PRODUCED, ""),
    "uncompressed": (NONE, ""),
    "gzip": (GZIP, "compression.gzip.level"),
    "snappy": (SNAPPY, ""),
    "lz4": (LZ4, "compression.lz4.level"),
    "zstd": (ZSTD, "compression.zstd.level"),
}

# Kafka's form of a partition's replica: its number and its broker.
_REPLICA: Final = re.compile(r"[0-9]+:[0-9]+", re.ASCII)

# Settings that a log takes as they are.
_NUMBERS: Final = (
    "segment.bytes",
    "segment.ms",
    "segment.index.bytes",
    "index.interval.bytes",
    "retention.ms",
    "retention.bytes",
    "min.compaction.lag.ms",
    "max.compaction.lag.ms",
    "delete.retention.ms",
    "max.message.bytes",
    "min.insync.replicas",
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
    "flush.messages",
)

_SPELLING: Final = Spelling(key for key in TOPIC_SETTINGS if key not in HIDDEN_KEYS)


def checked_configs(configs: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """A topic's settings as they are kept; `InvalidSetting` if one cannot be had."""
    return {key: _checked(key, configs[key], settings) for key in sorted(configs)}


def _checked(key: str, text: str, settings: Settings) -> str:
    row = TOPIC_SETTINGS.get(key)
    if row is None:
        near = _SPELLING.near(key)
        hint = f"; did you mean {near}?" if near else ""
        raise InvalidSetting(f"unknown topic setting {shown(key)}{hint}")
    value = row.parse(text)
    if key.endswith(".throttled.replicas") and not _are_replicas(value):
        raise InvalidSetting(
            f"{key}={shown(text)}: it must be * or partition:broker pairs, separated by commas"
        )
    default = default_value(key, settings)
    if row.scope == DEFAULT_ONLY and value != default:
        default_text = value_text(default)
        or_write = "" if default_text is None else f" or write {key}={default_text}"
        raise InvalidSetting(
            f"{key}={shown(text)} cannot be had: {row.sentence} Leave it out{or_write}"
        )
    return value_text(value) or ""


def _are_replicas(value: Value) -> bool:
    assert isinstance(value, tuple)
    return value == ("*",) or all(_REPLICA.fullmatch(one) is not None for one in value)


def default_value(key: str, settings: Settings) -> Value:
    """What a topic has that does not set the key: the broker's value, else Kafka's default."""
    if key == "retention.ms":
        return settings.log_retention_ms
    first = SYNONYMS.get(key, ("",))[0]
    if first in SETTINGS:
        return settings.effective(first)
    return TOPIC_SETTINGS[key].default


def topic_value(key: str, configs: Mapping[str, str], settings: Settings) -> Value:
    """The value that counts for a topic with these settings."""
    text = configs.get(key)
    return default_value(key, settings) if text is None else TOPIC_SETTINGS[key].parse(text)


def log_config(
    configs: Mapping[str, str], settings: Settings, random: Random | None = None
) -> LogConfig:
    """What a topic's settings say about each of its logs.  `random` draws the jitter."""

    def number(key: str) -> int:
        value = topic_value(key, configs, settings)
        assert isinstance(value, int), key
        return value

    values: dict[str, int | float] = {key.replace(".", "_"): number(key) for key in _NUMBERS}
    policies = topic_value("cleanup.policy", configs, settings)
    assert isinstance(policies, tuple)
    values["has_deletion"] = "delete" in policies
    values["has_compaction"] = "compact" in policies
    ratio = topic_value("min.cleanable.dirty.ratio", configs, settings)
    assert isinstance(ratio, float)
    values["min_cleanable_dirty_ratio"] = ratio
    timestamp_type = topic_value("message.timestamp.type", configs, settings)
    values["is_log_append_time"] = timestamp_type == "LogAppendTime"
    compression = topic_value("compression.type", configs, settings)
    values["compression_codec"], level_key = _CODECS[compression]
    values["compression_level"] = number(level_key) if level_key else 0
    jitter_ms = min(number("segment.jitter.ms"), number("segment.ms"))
    if jitter_ms > 0 and random is not None:
        values["segment_jitter_ms"] = random.randrange(jitter_ms)
    return LogConfig(values)
