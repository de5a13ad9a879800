"""Settings as clients are told them: value, where it comes from, what stands behind it.

Kafka's sources, the strongest first: what a topic sets, what was changed of this broker while it
runs, of every broker, the broker's file, the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tarry.base.setting import GONE, Setting, value_text
from tarry.base.settings import (
    LAYER_BROKER,
    LAYER_CLUSTER,
    LAYER_FILE,
    SETTINGS,
    Settings,
    keys_behind,
    why_not_dynamic,
)
from tarry.cluster.topic_settings import TOPIC_SETTINGS, default_value
from tarry.cluster.topic_settings_table import HIDDEN_KEYS, SYNONYMS

SOURCE_TOPIC: Final = 1
SOURCE_DYNAMIC_BROKER: Final = 2
SOURCE_DYNAMIC_CLUSTER: Final = 3
SOURCE_BROKER_FILE: Final = 4
SOURCE_DEFAULT: Final = 5
SOURCE_BROKER_LOGGER: Final = 6
SOURCE_GROUP: Final = 8

_SOURCES: Final = {
    LAYER_BROKER: SOURCE_DYNAMIC_BROKER,
    LAYER_CLUSTER: SOURCE_DYNAMIC_CLUSTER,
    LAYER_FILE: SOURCE_BROKER_FILE,
}

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
    """One setting of a resource."""

    __slots__ = (
        "documentation",
        "is_read_only",
        "kafka_type",
        "key",
        "source",
        "synonyms",
        "value",
    )

    def __init__(self, key: str, value: str | None, source: int, row: Setting | None) -> None:
        self.key = key
        self.value = value
        self.source = source
        self.is_read_only = False
        self.synonyms: list[Synonym] = []
        self.documentation = "" if row is None else row.sentence
        self.kafka_type = 0 if row is None else _KAFKA_TYPES[row.type]


def topic_entries(configs: Mapping[str, str], settings: Settings) -> list[ConfigEntry]:
    """All settings of a topic, by key."""
    entries: list[ConfigEntry] = []
    for key, row in TOPIC_SETTINGS.items():
        if key in HIDDEN_KEYS:
            continue
        behind = _broker_synonyms(SYNONYMS.get(key, ()), row, settings)
        own = configs.get(key)
        if own is not None:
            entry = ConfigEntry(key, own, SOURCE_TOPIC, row)
            entry.synonyms = [(key, own, SOURCE_TOPIC), *behind]
        else:
            source = behind[0][2] if behind else SOURCE_DEFAULT
            entry = ConfigEntry(key, value_text(default_value(key, settings)), source, row)
            entry.synonyms = behind
        entries.append(entry)
    return entries


def broker_entries(settings: Settings) -> list[ConfigEntry]:
    """All settings of this broker, by key."""
    entries: list[ConfigEntry] = []
    for key in sorted(SETTINGS):
        row = SETTINGS[key]
        if row.scope == GONE:
            continue
        synonyms = _broker_synonyms(keys_behind(key), row, settings)
        source = synonyms[0][2] if synonyms else SOURCE_DEFAULT
        entry = ConfigEntry(key, value_text(settings.get(key)), source, row)
        entry.is_read_only = why_not_dynamic(key) != ""
        entry.synonyms = synonyms
        entries.append(entry)
    return entries


def cluster_entries(configs: Mapping[str, str]) -> list[ConfigEntry]:
    """What was changed for every broker of the cluster, and nothing else."""
    entries: list[ConfigEntry] = []
    for key, text in sorted(configs.items()):
        entry = ConfigEntry(key, text, SOURCE_DYNAMIC_CLUSTER, SETTINGS.get(key))
        entry.synonyms = [(key, text, SOURCE_DYNAMIC_CLUSTER)]
        entries.append(entry)
    return entries


def logger_entries(levels: Mapping[str, str]) -> list[ConfigEntry]:
    """The levels of the broker's loggers, by name."""
    return [ConfigEntry(name, level, SOURCE_BROKER_LOGGER, None) for name, level in levels.items()]


def group_entries(facts: list[tuple[str, str, str]]) -> list[ConfigEntry]:
    """What is told of a group as key, value and sentence; nobody can set it."""
    entries: list[ConfigEntry] = []
    for key, value, documentation in facts:
        entry = ConfigEntry(key, value, SOURCE_GROUP, None)
        entry.is_read_only = True
        entry.documentation = documentation
        entry.kafka_type = _KAFKA_TYPES["string"]
        entries.append(entry)
    return entries


def _broker_synonyms(keys: tuple[str, ...], row: Setting, settings: Settings) -> list[Synonym]:
    """What the broker's settings say under these keys: layer after layer, then the default."""
    layers = {key: dict(settings.layers(key)) for key in keys if key in SETTINGS}
    synonyms: list[Synonym] = [
        (key, value_text(values[layer]), source)
        for layer, source in _SOURCES.items()
        for key, values in layers.items()
        if layer in values
    ]
    # Of several keys the last one has a default: of log.retention.ms and .hours, the hours.
    for key in reversed(keys):
        default = SETTINGS[key].default if key in SETTINGS else row.default
        if default is not None:
            synonyms.append((key, value_text(default), SOURCE_DEFAULT))
            break
    return synonyms
