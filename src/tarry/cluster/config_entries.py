"""Settings as clients are told them: value, where it comes from, what stands behind it.

Kafka's sources: a topic's own value wins over the broker's file, and that over the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tarry.base.setting import GONE, Setting, value_text
from tarry.base.settings import SETTINGS, Settings
from tarry.cluster.topic_settings import TOPIC_SETTINGS, default_value
from tarry.cluster.topic_settings_table import HIDDEN_KEYS, SYNONYMS

SOURCE_TOPIC: Final = 1
SOURCE_BROKER_FILE: Final = 4
SOURCE_DEFAULT: Final = 5

_KAFKA_TYPES: Final = {
    "boolean": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
}

# Value, key and source of what stands behind a value, the winner first.
Synonym = tuple[str, str | None, int]


class ConfigEntry:
    """One setting of a topic or of the broker."""

    __slots__ = (
        "documentation",
        "is_read_only",
        "kafka_type",
        "key",
        "source",
        "synonyms",
        "value",
    )

    def __init__(self, row: Setting, value: str | None, source: int) -> None:
        self.key = row.key
        self.value = value
        self.source = source
        self.is_read_only = False
        self.synonyms: list[Synonym] = []
        self.documentation = row.sentence
        self.kafka_type = _KAFKA_TYPES[row.type]


def topic_entries(configs: Mapping[str, str], settings: Settings) -> list[ConfigEntry]:
    """All settings of a topic, by key."""
    entries: list[ConfigEntry] = []
    for key, row in TOPIC_SETTINGS.items():
        if key in HIDDEN_KEYS:
            continue
        behind = _broker_synonyms(SYNONYMS.get(key, ()), row, settings)
        own = configs.get(key)
        if own is not None:
            entry = ConfigEntry(row, own, SOURCE_TOPIC)
            entry.synonyms = [(key, own, SOURCE_TOPIC), *behind]
        else:
            source = behind[0][2] if behind else SOURCE_DEFAULT
            entry = ConfigEntry(row, value_text(default_value(key, settings)), source)
            entry.synonyms = behind
        entries.append(entry)
    return entries


def broker_entries(settings: Settings) -> list[ConfigEntry]:
    """All settings of this broker, by key.  None of them changes while it runs."""
    entries: list[ConfigEntry] = []
    for key in sorted(SETTINGS):
        row = SETTINGS[key]
        if row.scope == GONE:
            continue
        source = SOURCE_BROKER_FILE if settings.is_given(key) else SOURCE_DEFAULT
        entry = ConfigEntry(row, value_text(settings.get(key)), source)
        entry.is_read_only = True
        entry.synonyms = _broker_synonyms((key,), row, settings)
        entries.append(entry)
    return entries


def _broker_synonyms(keys: tuple[str, ...], row: Setting, settings: Settings) -> list[Synonym]:
    """What the broker's settings say under these keys: what is given, then the default."""
    synonyms: list[Synonym] = [
        (key, value_text(settings.get(key)), SOURCE_BROKER_FILE)
        for key in keys
        if key in SETTINGS and settings.is_given(key)
    ]
    # Of several keys the last one has a default: of log.retention.ms and .hours, the hours.
    for key in reversed(keys):
        default = SETTINGS[key].default if key in SETTINGS else row.default
        if default is not None:
            synonyms.append((key, value_text(default), SOURCE_DEFAULT))
            break
    return synonyms
