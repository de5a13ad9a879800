"""Settings in answers to clients: the value, its source, and the values of weaker sources.

Kafka's sources, the strongest first: the topic's own settings, changes for this running broker,
changes for all brokers, this broker's file, the default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tarry.base.setting import GONE, Setting, value_text
from tarry.base.settings import (
    DESCRIBED_SETTINGS,
    LAYER_BROKER,
    LAYER_CLUSTER,
    LAYER_FILE,
    Settings,
    keys_behind,
    why_not_dynamic,
)
from tarry.cluster.configs.client_metrics_settings import CLIENT_METRICS_SETTINGS
from tarry.cluster.configs.group_settings import GROUP_SETTINGS
from tarry.cluster.configs.topic_settings import TOPIC_SETTINGS, default_value

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

# Value, key and source of a setting that stands behind another one; the strongest comes first.
Synonym = tuple[str, str | None, int]


class DescribedConfig:
    """Entry of one setting of a resource."""

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


def topic_entries(
    configs: Mapping[str, str], settings: Settings, *, is_read_only: bool = False
) -> list[DescribedConfig]:
    """Return all settings of a topic, by key."""
    entries: list[DescribedConfig] = []
    for key, row in TOPIC_SETTINGS.items():
        if row.is_hidden:
            continue
        behind = _topic_synonyms(row, settings)
        own = configs.get(key)
        if own is not None:
            entry = DescribedConfig(key, own, SOURCE_TOPIC, row)
            entry.synonyms = [(key, own, SOURCE_TOPIC), *behind]
        else:
            source = behind[0][2] if behind else SOURCE_DEFAULT
            entry = DescribedConfig(key, value_text(default_value(key, settings)), source, row)
            entry.synonyms = behind
        entry.is_read_only = is_read_only
        entries.append(entry)
    return entries


def broker_entries(settings: Settings) -> list[DescribedConfig]:
    """Return all settings of this broker, by key."""
    entries: list[DescribedConfig] = []
    for key in sorted(DESCRIBED_SETTINGS):
        row = DESCRIBED_SETTINGS[key]
        if row.scope == GONE:
            continue
        synonyms = _broker_synonyms(key, row, settings)
        source = synonyms[0][2] if synonyms else SOURCE_DEFAULT
        entry = DescribedConfig(key, value_text(settings.get(key)), source, row)
        entry.is_read_only = why_not_dynamic(key) != ""
        entry.synonyms = synonyms
        if key == "log.dirs" and not synonyms:
            _tell_directory(entry, settings)
        entries.append(entry)
    return entries


def _tell_directory(entry: DescribedConfig, settings: Settings) -> None:
    """Set the entry to the directory in use if log.dirs was not given: that of log.dir or the
    default.
    """
    entry.value = settings.log_directory
    is_given = settings.is_given("log.dir")
    entry.source = SOURCE_BROKER_FILE if is_given else SOURCE_DEFAULT
    entry.synonyms = [("log.dir" if is_given else entry.key, entry.value, entry.source)]


def cluster_entries(configs: Mapping[str, str]) -> list[DescribedConfig]:
    """Return the settings that were changed for all brokers of the cluster."""
    entries: list[DescribedConfig] = []
    for key, text in sorted(configs.items()):
        entry = DescribedConfig(key, text, SOURCE_DYNAMIC_CLUSTER, DESCRIBED_SETTINGS.get(key))
        entry.synonyms = [(key, text, SOURCE_DYNAMIC_CLUSTER)]
        entries.append(entry)
    return entries


def logger_entries(levels: Mapping[str, str]) -> list[DescribedConfig]:
    """Return the levels of the broker's loggers, by name."""
    return [
        DescribedConfig(name, level, SOURCE_BROKER_LOGGER, None) for name, level in levels.items()
    ]


def group_entries(configs: Mapping[str, str]) -> list[DescribedConfig]:
    """Return Kafka's settings of a group, by key."""
    entries: list[DescribedConfig] = []
    for key, row in GROUP_SETTINGS.items():
        default = value_text(row.default)
        own = configs.get(key)
        entry = DescribedConfig(key, default, SOURCE_DEFAULT, row)
        entry.synonyms = [(row.behind[0][0] if row.behind else key, default, SOURCE_DEFAULT)]
        if own is not None:
            entry.value, entry.source = own, SOURCE_GROUP
            entry.synonyms = [(key, own, SOURCE_GROUP), *entry.synonyms]
        entries.append(entry)
    return entries


def note_configs(facts: list[tuple[str, str, str]]) -> list[DescribedConfig]:
    """Return facts about a group, each with key, value and sentence, as entries that cannot be
    set.
    """
    entries: list[DescribedConfig] = []
    for key, value, documentation in facts:
        entry = DescribedConfig(key, value, SOURCE_GROUP, None)
        entry.is_read_only = True
        entry.documentation = documentation
        entry.kafka_type = _KAFKA_TYPES["string"]
        entries.append(entry)
    return entries


def client_metrics_entries() -> list[DescribedConfig]:
    """Return Kafka's settings of a subscription to client metrics, at their defaults."""
    return [_unset_entry(row) for row in CLIENT_METRICS_SETTINGS]


def _unset_entry(row: Setting) -> DescribedConfig:
    entry = DescribedConfig(row.key, value_text(row.default), SOURCE_DEFAULT, row)
    entry.is_read_only = True
    return entry


def _topic_synonyms(row: Setting, settings: Settings) -> list[Synonym]:
    """Return the broker's values that stand behind a topic's setting."""
    return _broker_synonyms(row.behind[0][0], row, settings) if row.behind else []


def _broker_synonyms(key: str, row: Setting, settings: Settings) -> list[Synonym]:
    """Return the values of a key in the broker's settings: layer after layer, then the default.

    Kafka's rule for a key with other keys behind it (log.retention.ms, .minutes, .hours): the list
    begins at the first value of the key itself.  So the list is empty if only the hours are given,
    although they are in force.
    """
    keys = keys_behind(key)
    layers = {one: dict(settings.layers(one)) for one in keys if one in DESCRIBED_SETTINGS}
    synonyms: list[Synonym] = [
        (one, value_text(values[layer]), source)
        for layer, source in _SOURCES.items()
        for one, values in layers.items()
        if layer in values
    ]
    for one in keys:
        default = DESCRIBED_SETTINGS.get(one, row).default
        if default is not None:
            synonyms.append((one, value_text(default), SOURCE_DEFAULT))
    while synonyms and synonyms[0][0] != key:
        del synonyms[0]
    return synonyms
