"""Settings of topics: how they are checked, and how the broker's settings stand behind them.

A topic keeps only what was set for it, as text.  All other settings follow the broker's, also when
those change with a restart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
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
from tarry.base.settings import DESCRIBED_SETTINGS, Settings
from tarry.base.spelling import Spelling
from tarry.base.topic_settings_table import (
    DEFAULT_ONLY_TABLE,
    HONOURED_TABLE,
    OURS_TABLE,
    WITHOUT_EFFECT_TABLE,
)
from tarry.log.config import INT64_MAX, LogConfig

TOPIC_SETTINGS: Final[dict[str, Setting]] = {
    row.key: row
    for row in sorted(
        [
            *read_table(HONOURED_TABLE, HONOURED),
            *read_table(OURS_TABLE, HONOURED),
            *read_table(WITHOUT_EFFECT_TABLE, WITHOUT_EFFECT),
            *read_table(DEFAULT_ONLY_TABLE, DEFAULT_ONLY),
        ],
        key=lambda row: row.key,
    )
}

# Kafka's form of a partition's replica: partition number and broker id.
_REPLICA: Final = re.compile(r"[0-9]+:[0-9]+", re.ASCII)

_COMPANION_VALUES: Final[dict[str, Value]] = {
    "cleanup.policy": (),
    "message.timestamp.type": "CreateTime",
    "segment.jitter.ms": 0,
    "segment.ms": INT64_MAX,
}

_SPELLING: Final = Spelling(row.key for row in TOPIC_SETTINGS.values() if not row.is_hidden)


def checked_configs(configs: Mapping[str, str], settings: Settings) -> dict[str, str]:
    """Check a topic's settings and return them as they are stored; raise `InvalidSetting` if one is
    invalid.
    """
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
    """Return the value of a key for a topic that does not set it: the broker's value, or else
    Kafka's default.
    """
    if key == "retention.ms":
        return settings.log_retention_ms
    row = TOPIC_SETTINGS[key]
    if row.behind and row.behind[0][0] in DESCRIBED_SETTINGS:
        value = settings.effective(row.behind[0][0])
        return row.default if value is None else value
    return row.default


def topic_value(key: str, configs: Mapping[str, str], settings: Settings) -> Value:
    """Return the value that is in force for a topic with these settings."""
    text = configs.get(key)
    return default_value(key, settings) if text is None else TOPIC_SETTINGS[key].parse(text)


def config_faults(configs: Mapping[str, str]) -> dict[str, str]:
    """Return the stored settings that are invalid, and why: another release has written them, or
    they are damaged.
    """
    faults: dict[str, str] = {}
    for key, text in configs.items():
        row = TOPIC_SETTINGS.get(key)
        try:
            if row is not None:
                row.parse(text)
        except InvalidSetting as fault:
            faults[key] = str(fault)
    return faults


def log_config(
    configs: Mapping[str, str], settings: Settings, random: Random | None = None
) -> LogConfig:
    """Return the configuration of one of a topic's logs; `random` draws the segment jitter."""
    return log_configs(configs, settings, random)()


def companion_config(configs: Mapping[str, str], settings: Settings) -> LogConfig:
    """Return the configuration of the companion log, in which a topic's records wait.

    No record of it is removed by age, size or key.  The records keep their timestamps, and records
    that are due in years do not begin new segments.
    """
    values = {
        key: topic_value(key, configs, settings)
        for key, row in TOPIC_SETTINGS.items()
        if row.scope == HONOURED
    }
    return LogConfig({**values, **_COMPANION_VALUES})


def log_configs(
    configs: Mapping[str, str], settings: Settings, random: Random | None = None
) -> Callable[[], LogConfig]:
    """Return a function that makes `log_config` for each log of a topic, which may have
    thousands.
    """
    values = {
        key: topic_value(key, configs, settings)
        for key, row in TOPIC_SETTINGS.items()
        if row.scope == HONOURED
    }
    jitter_ms, roll_ms = values["segment.jitter.ms"], values["segment.ms"]
    assert isinstance(jitter_ms, int)
    assert isinstance(roll_ms, int)
    stop_ms = min(jitter_ms, roll_ms)

    def make() -> LogConfig:
        drawn_ms = random.randrange(stop_ms) if stop_ms > 0 and random is not None else 0
        return LogConfig({**values, "segment.jitter.ms": drawn_ms})

    return make
