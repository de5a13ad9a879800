"""Settings: Kafka's keys, types and defaults; what is refused, and how it is said."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from tarry.base.errors import InvalidSetting
from tarry.base.properties import SettingTexts
from tarry.base.setting import GONE, HONOURED, Setting, read_table
from tarry.base.setting_attributes import SettingAttributes
from tarry.base.settings import SETTINGS, Settings
from tarry.base.settings_ignored import reason_without_effect
from tarry.base.settings_warnings import warnings

KAFKA_KEYS = Path(__file__).with_name("kafka_broker_keys.tsv")

# Ours differ from Kafka's on purpose: a local address, a directory of our own, one id for a
# broker that needs no file; a dead broker is missed after 6 s instead of 9.
OTHER_DEFAULTS = {
    "listeners",
    "node.id",
    "log.dir",
    "broker.session.timeout.ms",
    "broker.heartbeat.interval.ms",
}

KRAFT_FILE = """
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers=localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
inter.broker.listener.name=PLAINTEXT
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kraft-combined-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
log.segment.bytes=1073741824
log.retention.check.interval.ms=300000
"""

ZOOKEEPER_FILE = """
broker.id=0
#listeners=PLAINTEXT://:9092
num.network.threads=3
num.io.threads=8
socket.send.buffer.bytes=102400
socket.receive.buffer.bytes=102400
socket.request.max.bytes=104857600
log.dirs=/tmp/kafka-logs
num.partitions=1
num.recovery.threads.per.data.dir=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
log.retention.hours=168
#log.retention.bytes=1073741824
log.retention.check.interval.ms=300000
zookeeper.connect=localhost:2181
zookeeper.connection.timeout.ms=18000
group.initial.rebalance.delay.ms=0
"""


def parsed(text: str) -> dict[str, str]:
    given = SettingTexts()
    given.add_properties(text, "server.properties")
    return given.texts


def kafka_rows() -> list[list[str]]:
    lines = KAFKA_KEYS.read_text().splitlines()
    return [[*line.split("\t"), "", ""][:4] for line in lines if not line.startswith("#")]


def test_every_key_of_kafka_is_honoured_or_named_as_without_effect() -> None:
    unknown = [
        key
        for key, _, _, _ in kafka_rows()
        if key not in SETTINGS and reason_without_effect(key) is None
    ]

    assert unknown == []


def test_no_key_is_both_honoured_and_without_effect() -> None:
    assert [key for key in SETTINGS if reason_without_effect(key) is not None] == []


@pytest.mark.parametrize("row", [row for row in kafka_rows() if row[0] in SETTINGS], ids=str)
def test_an_honoured_key_has_the_type_and_default_of_kafka(row: list[str]) -> None:
    key, type_, default, _ = row
    ours = SETTINGS[key]

    assert ours.type == {"class": "string"}.get(type_.lower(), type_.lower())
    if key not in OTHER_DEFAULTS:
        kafkas = None if default in ("null", "<required>") else default
        if ours.type == "list" and kafkas is not None:
            kafkas = default.strip("[]")
        if key == "listener.security.protocol.map":
            assert sorted((ours.default_text or "").split(",")) == sorted(default.split(","))
        else:
            assert ours.default_text == kafkas


def test_every_row_has_a_sentence() -> None:
    assert [key for key, row in SETTINGS.items() if not row.sentence.endswith(".")] == []


def test_every_attribute_has_the_type_that_it_is_annotated_with() -> None:
    settings = Settings()

    for name, annotation in SettingAttributes.__annotations__.items():
        value = getattr(settings, name)
        assert type(value).__name__ in annotation.replace("None", "NoneType"), name


def test_the_default_file_of_kraft_loads_and_one_warning_names_what_means_nothing() -> None:
    settings = Settings(parsed(KRAFT_FILE))

    assert settings.node_id == 1
    assert settings.log_directory == "/tmp/kraft-combined-logs"
    assert [one.name for one in settings.open_listeners] == ["PLAINTEXT"]
    assert settings.open_listeners[0].advertised_host == "localhost"
    unused, *others = warnings(settings)
    for name in ("process.roles", "num.io.threads", "CONTROLLER", "transaction.state"):
        assert name in unused
    for name in ("node.id", "log.segment.bytes", "offsets.topic"):
        assert name not in unused
    assert [line.partition(" is open ")[0] for line in others] == ["this broker"]


def test_the_default_file_of_the_years_of_zookeeper_loads() -> None:
    settings = Settings(parsed(ZOOKEEPER_FILE))

    assert settings.node_id == 0
    assert settings.log_directory == "/tmp/kafka-logs"
    assert "zookeeper.connect" in warnings(settings)[0]


def test_settings_that_all_count_give_no_warning() -> None:
    assert warnings(Settings({"log.segment.bytes": "1048576"})) == []
    assert warnings(Settings({"min.insync.replicas": "1"})) == []


def test_a_key_of_a_listener_or_a_plugin_is_named_as_without_effect() -> None:
    settings = Settings({"listener.name.external.ssl.keystore.location": "/x", "rsm.config.a": "1"})

    told = " ".join(warnings(settings))
    assert "listener.name.external.ssl.keystore.location" in told
    assert "rsm.config.a" in told


@pytest.mark.parametrize(
    "key", ["confluent.license.topic", "cruise.control.metrics.topic", "strimzi.x", "s3.bucket"]
)
def test_keys_of_other_vendors_load_and_are_named(key: str) -> None:
    (told,) = warnings(Settings({key: "1"}))

    assert key in told
    assert "another vendor" in told


def test_a_file_for_three_brokers_serves_on_one_and_says_so_for_each_key() -> None:
    three = {
        "default.replication.factor": "3",
        "min.insync.replicas": "2",
        "offsets.topic.replication.factor": "3",
        "transaction.state.log.replication.factor": "3",
    }

    unused, *counted = warnings(Settings(three))

    assert "transaction.state.log.replication.factor" in unused
    assert [line.partition(":")[0] for line in counted] == [
        "default.replication.factor=3 counts as 1",
        "min.insync.replicas=2 counts as 1",
        "offsets.topic.replication.factor=3 counts as 1",
    ]


def test_a_file_of_kafka_4_4_with_its_newest_keys_loads() -> None:
    newest = {
        "group.consumer.assignment.interval.ms": "1000",
        "controller.quorum.auto.join.enable": "true",
        "remote.log.index.file.cache.ttl.ms": "-1",
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }

    (unused,) = warnings(Settings(newest))

    assert [key for key in newest if key not in unused] == []


SHARED_STORE = {"metadata.store": "etcd://10.0.0.9:2379/demo"}


def test_a_listener_that_brokers_share_with_clients_is_warned_of() -> None:
    one = {**SHARED_STORE, "listeners": "PLAINTEXT://10.0.0.5:9092"}
    two = {
        **SHARED_STORE,
        "listeners": "PLAINTEXT://10.0.0.5:9092,BROKERS://10.1.0.5:9093",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,BROKERS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
    }

    (_, shared), (_,) = warnings(Settings(one)), warnings(Settings(two))

    assert "clients and brokers share the listener PLAINTEXT" in shared
    assert "inter.broker.listener.name" in shared
    assert warnings(Settings(SHARED_STORE)) == []


def test_replicas_count_in_a_cluster() -> None:
    three = {"default.replication.factor": "3", "min.insync.replicas": "2"}

    assert warnings(Settings({**three, "metadata.store": "etcd://127.0.0.1:2379/demo"})) == []


@pytest.mark.parametrize(
    "key", ["super.users", "sasl.enabled.mechanisms", "ssl.keystore.location", "ldap.url"]
)
def test_who_asks_for_protection_is_told_that_there_is_none(key: str) -> None:
    (told,) = warnings(Settings({key: "User:admin"}))

    assert told.startswith("this broker is open to everybody who can reach 127.0.0.1:9092: ")
    assert told.endswith(f"settings without effect: {key}")


@pytest.mark.parametrize(
    ("listeners", "is_open"),
    [
        ("PLAINTEXT://127.0.0.1:9092", False),
        ("PLAINTEXT://127.0.0.2:9092", False),
        ("PLAINTEXT://localhost:9092", False),
        ("PLAINTEXT://[::1]:9092", False),
        ("PLAINTEXT://0.0.0.0:9092", True),
        ("PLAINTEXT://[::]:9092", True),
        ("PLAINTEXT://:9092", True),
        ("PLAINTEXT://10.0.0.7:9092", True),
        ("PLAINTEXT://broker.example:9092", True),
    ],
)
def test_who_listens_beyond_this_machine_is_told_that_everybody_may_come(
    listeners: str, is_open: bool
) -> None:
    texts = {"listeners": listeners, "advertised.listeners": "PLAINTEXT://broker.example:9092"}

    told = warnings(Settings(texts))

    assert [line.partition(" is open ")[1] for line in told] == [" is open "] * is_open


@pytest.mark.parametrize(
    ("key", "nearest"),
    [
        ("log.dris", "log.dirs"),
        ("log.segment.byte", "log.segment.bytes"),
        ("retention.ms", "log.retention.ms"),
        ("num.partition", "num.partitions"),
        ("zookeeper.conect", "zookeeper.connect"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_known_one(key: str, nearest: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        Settings({key: "1"})

    assert str(refusal.value) == f"unknown setting {key}; did you mean {nearest}?"


@pytest.mark.parametrize(
    "key",
    [
        "qqq",
        "my.company.plugin.url",
        "database.url",
        # A key that a newer Kafka might have: no other key was meant.
        "group.consumer.metadata.interval.ms",
    ],
)
def test_an_unknown_key_that_looks_like_none_is_refused_without_a_guess(key: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        Settings({key: "1"})

    assert str(refusal.value).startswith(f"unknown setting {key}: ")
    assert "did you mean" not in str(refusal.value)


@pytest.mark.parametrize(
    ("key", "text", "words"),
    [
        ("log.segment.bytes", "abc", "whole number"),
        ("log.segment.bytes", "1_048_576", "whole number"),
        ("log.segment.bytes", "", "whole number"),
        ("log.segment.bytes", "100", "at least 1048576"),
        ("log.segment.bytes", "2147483648", "between"),
        ("log.segment.bytes", "9" * 5000, "whole number"),
        ("log.retention.bytes", "9223372036854775808", "between"),
        ("num.partitions", "0", "at least 1"),
        ("socket.send.buffer.bytes", "-2", "at least -1"),
        ("delete.topic.enable", "yes", "true or false"),
        ("flush.policy", "never", "commit or os"),
        ("compression.type", "brotli", "uncompressed, zstd"),
        ("log.message.timestamp.type", "logappendtime", "CreateTime or LogAppendTime"),
        ("log.retention.ms", "0", "at least 1, or -1"),
        ("node.id", "-3", "at least 0"),
        ("broker.id", "-3", "at least 0"),
        ("max.connections.per.ip.overrides", "10.0.0.1", "address:number"),
        ("log.cleaner.min.cleanable.ratio", "half", "a number such as 0.5"),
        ("log.cleaner.min.cleanable.ratio", "nan", "a number such as 0.5"),
        ("log.cleaner.min.cleanable.ratio", "1.5", "from 0 to 1"),
        ("offsets.topic.replication.factor", "32768", "between"),
        ("log.cleanup.policy", "delete,erase", "compact or delete"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_key(key: str, text: str, words: str) -> None:
    with pytest.raises(InvalidSetting) as refusal:
        Settings({key: text})

    assert str(refusal.value).startswith(key)
    assert words in str(refusal.value)
    assert len(str(refusal.value)) < 200


def test_a_check_may_be_a_choice_and_a_range() -> None:
    level = Setting("level", "int", "-1", "-1|1..9", HONOURED)

    assert [level.parse(text) for text in ("-1", "1", "9")] == [-1, 1, 9]
    for text in ("-2", "0", "10"):
        with pytest.raises(InvalidSetting, match="-1 or from 1 to 9"):
            level.parse(text)


def test_control_characters_of_a_value_do_not_reach_the_sentence() -> None:
    with pytest.raises(InvalidSetting) as refusal:
        Settings({"num.partitions": "1\n2\x1b[31m"})

    assert "\n" not in str(refusal.value)
    assert "\x1b" not in str(refusal.value)


@pytest.mark.parametrize("text", [" 7 ", "+7", "007"])
def test_a_number_is_read_as_java_reads_it(text: str) -> None:
    assert Settings({"num.partitions": text}).num_partitions == 7


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({}, 168 * 3_600_000),
        ({"log.retention.hours": "2"}, 7_200_000),
        ({"log.retention.hours": "2", "log.retention.minutes": "3"}, 180_000),
        ({"log.retention.minutes": "3", "log.retention.ms": "4"}, 4),
        ({"log.retention.ms": "-1"}, -1),
        ({"log.retention.hours": "-1"}, -1),
    ],
)
def test_the_finer_unit_of_retention_wins(texts: dict[str, str], expected: int) -> None:
    assert Settings(texts).log_retention_ms == expected


def test_the_finer_unit_of_rolling_wins() -> None:
    settings = Settings({"log.roll.hours": "1", "log.roll.jitter.hours": "2"})

    assert settings.log_roll_ms == 3_600_000
    assert settings.log_roll_jitter_ms == 7_200_000
    assert Settings({"log.roll.hours": "1", "log.roll.ms": "5"}).log_roll_ms == 5


def test_what_was_given_is_told_apart_from_a_default() -> None:
    settings = Settings({"num.partitions": "1"})

    assert settings.is_given("num.partitions")
    assert not settings.is_given("log.segment.bytes")
    assert settings.get_text("log.segment.bytes") == "1073741824"
    assert settings.get_text("delete.topic.enable") == "true"
    assert settings.get_text("log.cleanup.policy") == "delete"
    assert settings.get_text("broker.rack") == ""


def test_node_id_and_broker_id_must_agree() -> None:
    assert Settings({"broker.id": "5"}).node_id == 5
    assert Settings({"broker.id": "5", "node.id": "5"}).node_id == 5
    assert Settings({"broker.id": "-1", "node.id": "5"}).node_id == 5
    with pytest.raises(InvalidSetting, match="two names of one id"):
        Settings({"broker.id": "5", "node.id": "6"})


def test_the_log_directory_is_log_dirs_else_log_dir_else_our_own() -> None:
    assert Settings().log_directory == "./tarry-data"
    assert Settings({"log.dir": "/a"}).log_directory == "/a"
    assert Settings({"log.dir": "/a", "log.dirs": "/b"}).log_directory == "/b"
    assert Settings({"log.dirs": " /b ,"}).log_directory == "/b"


def test_several_log_directories_are_refused_in_one_sentence() -> None:
    with pytest.raises(InvalidSetting, match=r"one directory; write log\.dirs=/a$"):
        Settings({"log.dirs": "/a,/b"})


@pytest.mark.parametrize("key", [key for key, row in SETTINGS.items() if row.scope == GONE])
def test_a_key_that_kafka_removed_is_refused_with_what_to_write(key: str) -> None:
    with pytest.raises(InvalidSetting, match=r"write (advertised\.)?listeners="):
        Settings({key: "1"})


def test_what_would_be_dangerous_to_leave_out_is_refused() -> None:
    with pytest.raises(InvalidSetting, match=r"not supported: Tarry has no access control yet"):
        Settings(
            {"authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"}
        )
    with pytest.raises(InvalidSetting, match=r"write remote\.log.*=false"):
        Settings({"remote.log.storage.system.enable": "true"})
    assert warnings(Settings({"authorizer.class.name": ""})) == []


def test_connections_of_single_addresses_are_read() -> None:
    settings = Settings({"max.connections.per.ip.overrides": "10.0.0.1:5, [::1]:6"})

    assert settings.connections_max_by_ip == {"10.0.0.1": 5, "::/64": 6}


def test_the_words_of_a_row_say_what_else_is_true_of_its_key() -> None:
    table = """
    plain.key  int  1
        A sentence.
    own.key.ms  long  -  1..  dynamic tarry behind=a.minutes*60000,b.ms
        A sentence.
    """

    plain, own = read_table(dedent(table), HONOURED)

    assert (plain.is_dynamic, plain.is_ours, plain.is_hidden, plain.behind) == (
        False,
        False,
        False,
        (),
    )
    assert (own.is_dynamic, own.is_ours, own.is_hidden) == (True, True, False)
    assert own.behind == (("a.minutes", 60_000), ("b.ms", 1))
    assert own.check == "1.."
