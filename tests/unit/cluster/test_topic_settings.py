"""Settings of topics: every key of Kafka 4.4, checked, with the broker's behind them."""

from __future__ import annotations

import random

import pytest

from tarry.base.errors import InvalidSetting
from tarry.base.setting import DEFAULT_ONLY, WITHOUT_EFFECT, value_text
from tarry.base.settings import DYNAMIC_KEYS, IDLE_SETTINGS, Settings
from tarry.cluster.configs.config_entries import broker_entries, topic_entries
from tarry.cluster.configs.topic_settings import (
    TOPIC_SETTINGS,
    checked_configs,
    default_value,
    log_config,
)
from tarry.log.config import LogConfig

FIELDS = [name for name in dir(LogConfig()) if name[0] != "_" and name != "take_over"]

DEFAULT_ONLY_KEYS = [key for key, row in TOPIC_SETTINGS.items() if row.scope == DEFAULT_ONLY]

KEYS_WITHOUT_EFFECT = [key for key, row in TOPIC_SETTINGS.items() if row.scope == WITHOUT_EFFECT]

# A value that Kafka takes and that is not its default.
OTHER_VALUES = {
    "follower.replication.throttled.replicas": "*",
    "leader.replication.throttled.replicas": "0:1",
    "internal.segment.bytes": "1024",
}


def other_value(key: str) -> str:
    other = "true" if TOPIC_SETTINGS[key].type == "boolean" else "5"
    return OTHER_VALUES.get(key, other)


def test_kafkas_38_topic_keys_are_known_with_a_sentence_each():
    assert len([row for row in TOPIC_SETTINGS.values() if not row.is_ours]) == 38
    assert all(row.sentence.endswith(".") for row in TOPIC_SETTINGS.values())


# A key whose default is that it is not set has no text to be accepted.
KEYS_WITH_DEFAULT = [
    key for key in sorted(TOPIC_SETTINGS) if value_text(default_value(key, Settings())) is not None
]


@pytest.mark.parametrize("key", KEYS_WITH_DEFAULT)
def test_every_key_is_accepted_at_its_default(key):
    settings = Settings()
    text = value_text(default_value(key, settings))

    assert checked_configs({key: text}, settings) == {key: text}


@pytest.mark.parametrize("key", DEFAULT_ONLY_KEYS)
def test_what_is_not_honoured_is_refused_at_any_other_value(key):
    with pytest.raises(InvalidSetting, match=r"cannot be had: .*Leave it out") as refusal:
        checked_configs({key: other_value(key)}, Settings())

    assert key in str(refusal.value)


@pytest.mark.parametrize("key", KEYS_WITHOUT_EFFECT)
def test_what_has_no_effect_is_kept_and_told_so(key):
    kept = checked_configs({key: other_value(key)}, Settings())

    entry = next(entry for entry in topic_entries(kept, Settings()) if entry.key == key)
    assert (entry.value, entry.source) == (other_value(key), 1)
    assert entry.documentation.startswith("No effect: ")


def test_no_key_that_a_topic_of_kafka_shows_is_refused_but_tiered_storage():
    assert DEFAULT_ONLY_KEYS == ["internal.segment.bytes", "remote.storage.enable"]


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("retention.ms", "abc"),
        ("retention.ms", ""),
        ("retention.ms", "-2"),
        ("retention.ms", "1_000"),
        ("retention.ms", "9223372036854775808"),
        ("segment.bytes", "1048575"),
        ("segment.bytes", "99999999999"),
        ("segment.bytes", "0x200000"),
        ("segment.ms", "0"),
        ("segment.index.bytes", "3"),
        ("index.interval.bytes", "-1"),
        ("max.message.bytes", "-1"),
        ("message.timestamp.type", "createtime"),
        ("min.insync.replicas", "0"),
        ("preallocate", "maybe"),
        ("compression.lz4.level", "18"),
        ("compression.lz4.level", "0"),
        ("compression.gzip.level", "0"),
        ("compression.gzip.level", "10"),
        ("compression.zstd.level", "23"),
        ("compression.zstd.level", "-131073"),
        ("compression.type", "none"),
        ("compression.type", "GZIP"),
        ("leader.replication.throttled.replicas", "all"),
        ("follower.replication.throttled.replicas", "0:1,*"),
        ("flush.messages", "0"),
        ("flush.ms", "-1"),
        ("file.delete.delay.ms", "-1"),
        ("unclean.leader.election.enable", "1"),
        ("cleanup.policy", "delete,erase"),
        ("min.cleanable.dirty.ratio", "1.1"),
        ("min.cleanable.dirty.ratio", "nan"),
        ("min.cleanable.dirty.ratio", "half"),
        ("max.compaction.lag.ms", "0"),
    ],
)
def test_values_that_kafka_refuses_are_refused(key, text):
    with pytest.raises(InvalidSetting, match=key):
        checked_configs({key: text}, Settings())


def test_an_unknown_key_is_refused_with_the_nearest_one():
    with pytest.raises(InvalidSetting, match=r"retention\.mss; did you mean retention\.ms\?"):
        checked_configs({"retention.mss": "1"}, Settings())


def test_values_are_kept_as_they_are_written_properly():
    checked = checked_configs(
        {"retention.ms": " 5 ", "segment.bytes": "+1048576", "preallocate": "FALSE"}, Settings()
    )

    assert checked == {"retention.ms": "5", "segment.bytes": "1048576", "preallocate": "false"}


def test_a_log_without_settings_has_kafkas_defaults():
    standard, config = LogConfig(), log_config({}, Settings())

    assert len(FIELDS) == 31
    assert [getattr(config, name) for name in FIELDS] == [
        getattr(standard, name) for name in FIELDS
    ]


def test_a_log_takes_over_every_setting_that_changed():
    config, other = LogConfig(), LogConfig()
    for number, name in enumerate(FIELDS):
        kind = type(getattr(other, name))
        setattr(other, name, not getattr(other, name) if kind is bool else kind(number + 1))

    config.take_over(other)

    assert [getattr(config, name) for name in FIELDS] == [getattr(other, name) for name in FIELDS]


def test_the_brokers_settings_stand_behind_a_topics():
    settings = Settings(
        {
            "log.retention.hours": "2",
            "log.roll.hours": "3",
            "log.segment.bytes": "2097152",
            "message.max.bytes": "5000",
            "log.message.timestamp.type": "LogAppendTime",
        }
    )

    config = log_config({"segment.bytes": "1048576", "min.insync.replicas": "2"}, settings)

    assert config.retention_ms == 2 * 3_600_000
    assert config.segment_ms == 3 * 3_600_000
    assert config.segment_bytes == 1_048_576
    assert config.max_message_bytes == 5_000
    assert config.min_insync_replicas == 2
    assert config.is_log_append_time


@pytest.mark.parametrize(
    ("policy", "deletes", "compacts"),
    [
        ("delete", True, False),
        ("compact", False, True),
        ("compact, delete", True, True),
        ("", False, False),
    ],
)
def test_the_cleanup_policy_says_what_a_log_loses(policy, deletes, compacts):
    config = log_config(checked_configs({"cleanup.policy": policy}, Settings()), Settings())

    assert (config.has_deletion, config.has_compaction) == (deletes, compacts)


def test_how_a_log_is_compacted_follows_the_topic_and_behind_it_the_broker():
    settings = Settings(
        {"log.cleaner.min.cleanable.ratio": "0.1", "log.cleaner.delete.retention.ms": "7"}
    )

    config = log_config({"min.compaction.lag.ms": "3", "max.compaction.lag.ms": "4"}, settings)

    assert config.min_cleanable_dirty_ratio == 0.1
    assert config.delete_retention_ms == 7
    assert (config.min_compaction_lag_ms, config.max_compaction_lag_ms) == (3, 4)


@pytest.mark.parametrize(
    ("type_", "codec", "level"),
    [
        ("producer", -1, 0),
        ("uncompressed", 0, 0),
        ("snappy", 2, 0),
        ("gzip", 1, 5),
        ("lz4", 3, 6),
        ("zstd", 4, 7),
    ],
)
def test_compression_type_is_a_codec_with_the_level_of_its_own_key(type_, codec, level):
    configs = {
        "compression.type": type_,
        "compression.gzip.level": "5",
        "compression.lz4.level": "6",
        "compression.zstd.level": "7",
    }

    config = log_config(checked_configs(configs, Settings()), Settings())

    assert (config.compression_codec, config.compression_level) == (codec, level)


def test_the_brokers_compression_stands_behind_a_topics():
    settings = Settings({"compression.type": "zstd", "compression.zstd.level": "1"})

    followed, own = log_config({}, settings), log_config({"compression.type": "gzip"}, settings)

    assert (followed.compression_codec, followed.compression_level) == (4, 1)
    assert (own.compression_codec, own.compression_level) == (1, -1)


def test_retention_for_ever_is_minus_one_whichever_way_it_is_said():
    assert log_config({}, Settings({"log.retention.hours": "-1"})).retention_ms == -1
    assert log_config({}, Settings({"log.retention.ms": "-7"})).retention_ms == -1
    assert log_config({"retention.ms": "-1"}, Settings()).retention_ms == -1


def test_the_jitter_is_drawn_for_each_log():
    source = random.Random(3)
    configs = {"segment.jitter.ms": "100000"}

    drawn = [log_config(configs, Settings(), source).segment_jitter_ms for _ in range(50)]

    assert all(0 <= jitter < 100_000 for jitter in drawn)
    assert len(set(drawn)) > 40


def test_a_value_tells_where_it_comes_from():
    settings = Settings({"log.retention.hours": "24", "log.retention.minutes": "2880"})

    entries = {entry.key: entry for entry in topic_entries({"segment.ms": "7"}, settings)}

    assert len(entries) == 44
    own = entries["segment.ms"]
    assert (own.value, own.source) == ("7", 1)
    assert own.synonyms == [("segment.ms", "7", 1)]
    hours = entries["retention.ms"]
    assert (hours.value, hours.source, hours.synonyms) == ("172800000", 5, [])
    default = entries["flush.messages"]
    assert (default.value, default.source) == ("9223372036854775807", 5)
    assert default.synonyms == [("log.flush.interval.messages", "9223372036854775807", 5)]


def test_what_stands_behind_a_value_begins_with_the_key_that_gave_it():
    settings = Settings({"log.retention.ms": "7000000", "log.retention.hours": "24"})

    entries = {entry.key: entry for entry in topic_entries({}, settings)}

    file = entries["retention.ms"]
    assert (file.value, file.source) == ("7000000", 4)
    assert file.synonyms == [
        ("log.retention.ms", "7000000", 4),
        ("log.retention.hours", "24", 4),
        ("log.retention.hours", "168", 5),
    ]


def test_the_brokers_entries_come_in_order_and_say_what_may_change():
    entries = broker_entries(Settings({"node.id": "4"}))

    keys = [entry.key for entry in entries]
    node_id = entries[keys.index("node.id")]
    assert keys == sorted(keys)
    assert "host.name" not in keys
    dynamic = sorted([*DYNAMIC_KEYS, *IDLE_SETTINGS])
    assert [entry.key for entry in entries if not entry.is_read_only] == dynamic
    assert (node_id.value, node_id.source, node_id.kafka_type) == ("4", 4, 3)
