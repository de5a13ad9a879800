"""Settings of scheduled records that must fit together in a topic.

The table of topic settings checks each key alone.  This module checks what the keys mean together,
and whether this broker can do it.  A change that touches none of them is not checked, so that
settings that were accepted earlier stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tarry.base.errors import InvalidSetting
from tarry.base.setting import Value
from tarry.base.settings import Settings
from tarry.cluster.configs.topic_settings import topic_value

_ENABLE: Final = "delay.enable"
_SOURCE: Final = "delay.source"
_DEFAULT: Final = "delay.default.ms"
_MAX: Final = "delay.max.ms"
_MIN: Final = "delay.min.ms"
_TIMESTAMP_TYPE: Final = "message.timestamp.type"
_POLICY: Final = "cleanup.policy"
_KEYS: Final = (_ENABLE, _SOURCE, _DEFAULT, _MAX, _MIN, _TIMESTAMP_TYPE, _POLICY)


def check_delay(before: Mapping[str, str], after: Mapping[str, str], settings: Settings) -> None:
    """Raise `InvalidSetting` with a sentence if a topic's settings cannot delay records as they
    ask.

    `before` are the topic's present settings, `after` its future ones.
    """
    if all(before.get(key) == after.get(key) for key in _KEYS):
        return
    values = {key: topic_value(key, after, settings) for key in _KEYS}
    if values[_ENABLE] is not True:
        return
    fault = _fault(values, settings)
    if fault:
        raise InvalidSetting(f"{_ENABLE}=true cannot be had: {fault}")


def _fault(values: Mapping[str, Value], settings: Settings) -> str:
    """Return why records cannot be delayed with these values; "" if they can."""
    default_ms, max_ms, min_ms = (_number(values[key]) for key in (_DEFAULT, _MAX, _MIN))
    has_source = values[_SOURCE] != "none"
    policies = values[_POLICY]
    assert isinstance(policies, tuple)
    if not has_source and default_ms < 0:
        return f"{_SOURCE} or {_DEFAULT} must say when records are due"
    if has_source and default_ms >= 0:
        return f"{_SOURCE} and {_DEFAULT} both say when records are due; unset one of them"
    if values[_SOURCE] == "timestamp" and values[_TIMESTAMP_TYPE] != "CreateTime":
        return (
            f"by {_SOURCE}=timestamp the producer's time says when a record is due, and "
            f"{_TIMESTAMP_TYPE} is {values[_TIMESTAMP_TYPE]}"
        )
    if "compact" in policies:
        return f"records of a topic with {_POLICY}=compact cannot be scheduled yet"
    if default_ms > max_ms:
        return f"{_DEFAULT} is {default_ms} and {_MAX} is {max_ms}"
    if min_ms > max_ms:
        return f"{_MIN} is {min_ms} and {_MAX} is {max_ms}"
    return ""


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value
