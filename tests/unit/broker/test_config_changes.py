"""Settings that change while the broker runs: they act at once, and a crash keeps them."""

from __future__ import annotations

import logging

import pytest
from tests.support.broker.admin_user import (
    APPEND,
    BROKER,
    DELETE,
    GROUP,
    LOGGER,
    METRICS,
    SET,
    SUBTRACT,
    TOPIC,
    Change,
    Operator,
    changed,
    operator,
)
from tests.support.broker.broker_user import ORDERS, a_batch, records_in
from tests.support.metadata_stores import GivenChange

from tarry.base import errors
from tarry.cluster.configs import config_decisions
from tarry.cluster.configs.config_entries import DescribedConfig, broker_entries
from tarry.cluster.state.records import BrokerConfigChanged
from tarry.protocol import api_keys
from tarry.simulation.by_hand import START_WALL_MS

EARLIEST = -2

TOPIC_SOURCE, BROKER_SOURCE, CLUSTER_SOURCE, FILE_SOURCE, DEFAULT_SOURCE = 1, 2, 3, 4, 5


@pytest.fixture
def someone() -> Operator:
    """An operator of broker 1, with the topic `orders`."""
    made = operator({"log.retention.check.interval.ms": "10000"})
    made.create(ORDERS)
    return made


def pass_time(someone: Operator, ms: int) -> None:
    for _ in range(ms // 400):
        someone.hand.turn(after_ms=400)
        someone.hand.settle()


# -- What a topic's settings do at once


def test_a_topic_takes_larger_batches_as_soon_as_it_is_told_so(someone: Operator) -> None:
    someone.set(TOPIC, ORDERS, max_message_bytes="100")
    refused = someone.produce(a_batch(b"x" * 200))

    someone.set(TOPIC, ORDERS, max_message_bytes="1000")
    taken = someone.produce(a_batch(b"x" * 200))

    assert refused.error_code == errors.MESSAGE_TOO_LARGE
    assert taken.error_code == errors.NONE


def test_a_topic_carries_the_brokers_time_as_soon_as_it_is_told_so(someone: Operator) -> None:
    before = someone.produce(a_batch(b"a", times=(5,)))
    someone.set(TOPIC, ORDERS, message_timestamp_type="LogAppendTime")

    answer = someone.produce(a_batch(b"b", times=(5,)))

    assert before.log_append_time_ms == -1
    assert answer.log_append_time_ms >= START_WALL_MS
    assert records_in(someone.fetch(1))[-1].timestamp == answer.log_append_time_ms


def test_a_log_rolls_by_a_new_segment_size_though_its_segment_is_older(someone: Operator) -> None:
    log = someone.hand.broker.topics[ORDERS].partitions[0].log
    someone.produce(a_batch(b"x" * 600_000))
    someone.set(TOPIC, ORDERS, segment_bytes="1048576")

    someone.produce(a_batch(b"x" * 600_000))

    assert len(log.segments) == 2


def test_retention_goes_by_a_new_time_at_its_next_look(someone: Operator) -> None:
    someone.produce(a_batch(b"old", times=(START_WALL_MS - 60_000,)))
    pass_time(someone, 12_000)
    before = someone.list_offsets(EARLIEST).offset

    someone.set(TOPIC, ORDERS, retention_ms="30000")
    pass_time(someone, 20_000)

    assert before == 0
    assert someone.list_offsets(EARLIEST).offset == 1


def test_what_a_topic_unsets_follows_the_broker_again(someone: Operator) -> None:
    someone.set(TOPIC, ORDERS, retention_ms="5")

    outcome = someone.change(TOPIC, ORDERS, ("retention.ms", DELETE, None))

    assert outcome.error_code == errors.NONE
    assert someone.value(TOPIC, ORDERS, "retention.ms") == ("604800000", DEFAULT_SOURCE)


def test_a_new_segment_draws_its_jitter_after_a_change_too(someone: Operator) -> None:
    partition = someone.hand.broker.topics[ORDERS].partitions[0]

    someone.set(TOPIC, ORDERS, segment_jitter_ms="100000000")

    assert 0 < partition.log.config.segment_jitter_ms < 100_000_000


# -- Lists


def test_a_list_is_appended_to_and_subtracted_from(someone: Operator) -> None:
    someone.change(TOPIC, ORDERS, ("cleanup.policy", APPEND, "compact"))
    both = someone.value(TOPIC, ORDERS, "cleanup.policy")

    someone.change(TOPIC, ORDERS, ("cleanup.policy", SUBTRACT, "delete"))

    assert both == ("delete,compact", TOPIC_SOURCE)
    assert someone.value(TOPIC, ORDERS, "cleanup.policy") == ("compact", TOPIC_SOURCE)
    config = someone.hand.broker.topics[ORDERS].partitions[0].config
    assert (config.has_deletion, config.has_compaction) == (False, True)


def test_a_list_is_appended_to_what_the_broker_says(someone: Operator) -> None:
    someone.set(BROKER, "1", log_cleanup_policy="compact")

    someone.change(TOPIC, ORDERS, ("cleanup.policy", APPEND, "delete"))

    assert someone.value(TOPIC, ORDERS, "cleanup.policy") == ("compact,delete", TOPIC_SOURCE)


# -- The broker's own settings


def test_a_brokers_change_stands_behind_every_topic_that_does_not_set_it(
    someone: Operator,
) -> None:
    someone.create("bills", max_message_bytes="300")

    someone.set(BROKER, "1", message_max_bytes="100")

    assert someone.produce(a_batch(b"x" * 200)).error_code == errors.MESSAGE_TOO_LARGE
    assert someone.produce(a_batch(b"x" * 200), topic="bills").error_code == errors.NONE
    assert someone.value(TOPIC, ORDERS, "max.message.bytes") == ("100", BROKER_SOURCE)


def test_of_several_layers_the_strongest_counts_and_all_are_told(someone: Operator) -> None:
    someone.set(BROKER, "", log_segment_bytes="2000000")
    someone.set(BROKER, "1", log_segment_bytes="3000000")
    someone.set(TOPIC, ORDERS, segment_bytes="4000000")

    told = someone.described(TOPIC, ORDERS)["segment.bytes"]

    assert [(one.name, one.value, one.source) for one in told.synonyms] == [
        ("segment.bytes", "4000000", TOPIC_SOURCE),
        ("log.segment.bytes", "3000000", BROKER_SOURCE),
        ("log.segment.bytes", "2000000", CLUSTER_SOURCE),
        ("log.segment.bytes", "1073741824", DEFAULT_SOURCE),
    ]
    log = someone.hand.broker.topics[ORDERS].partitions[0].log
    assert log.config.segment_bytes == 4_000_000


def test_without_a_layer_the_next_one_counts(someone: Operator) -> None:
    someone.set(BROKER, "", log_segment_bytes="2000000")
    someone.set(BROKER, "1", log_segment_bytes="3000000")
    config = someone.hand.broker.topics[ORDERS].partitions[0].log.config

    seen = []
    for name in ("1", ""):
        someone.change(BROKER, name, ("log.segment.bytes", DELETE, None))
        seen.append((config.segment_bytes, *someone.value(BROKER, "1", "log.segment.bytes")))

    assert seen == [
        (2_000_000, "2000000", CLUSTER_SOURCE),
        (1 << 30, "1073741824", DEFAULT_SOURCE),
    ]


def test_a_change_lies_over_the_file(someone: Operator) -> None:
    someone = operator({"message.max.bytes": "500", "log.retention.hours": "1"})

    someone.set(BROKER, "", message_max_bytes="600", log_retention_ms="7")

    told = someone.described(BROKER, "1")
    assert [(one.value, one.source) for one in told["message.max.bytes"].synonyms] == [
        ("600", CLUSTER_SOURCE),
        ("500", FILE_SOURCE),
        ("1048588", DEFAULT_SOURCE),
    ]
    assert someone.hand.broker.settings.log_retention_ms == 7
    someone.change(BROKER, "", ("log.retention.ms", DELETE, None))
    assert someone.hand.broker.settings.log_retention_ms == 3_600_000


def test_what_holds_for_all_brokers_is_described_by_itself(someone: Operator) -> None:
    someone.set(BROKER, "", log_retention_ms="7")
    someone.set(BROKER, "1", message_max_bytes="8")

    told = someone.described(BROKER, "")

    assert {key: (one.value, one.config_source) for key, one in told.items()} == {
        "log.retention.ms": ("7", CLUSTER_SOURCE)
    }


def test_a_brokers_settings_are_replaced_as_a_whole(someone: Operator) -> None:
    someone.set(BROKER, "1", message_max_bytes="8", log_retention_ms="7")

    outcome = someone.replace(BROKER, "1", ("message.max.bytes", "9"))

    assert outcome.error_code == errors.NONE
    assert someone.hand.broker.cluster.configs_of_broker(1) == {"message.max.bytes": "9"}
    assert someone.hand.broker.settings.message_max_bytes == 9
    assert someone.hand.broker.settings.log_retention_ms == 604_800_000


def test_producers_are_forgotten_after_a_new_time(someone: Operator) -> None:
    partition = someone.hand.broker.topics[ORDERS].partitions[0]

    someone.set(BROKER, "1", producer_id_expiration_ms="5")

    assert partition.producers._expiration_ms == 5


def test_a_topic_that_is_made_later_follows_what_was_changed(someone: Operator) -> None:
    someone.set(BROKER, "1", log_segment_bytes="3000000")

    someone.create("bills")

    assert someone.hand.broker.topics["bills"].partitions[0].config.segment_bytes == 3_000_000


def test_what_cannot_change_while_the_broker_runs_is_refused_with_what_to_do(
    someone: Operator,
) -> None:
    told = {
        key: someone.change(BROKER, "1", (key, SET, "1"))
        for key in (
            "node.id",
            "telemetry.max.bytes",
            "log.segment.byts",
            "host.name",
            "retention.ms",
        )
    }

    assert {each.error_code for each in told.values()} == {errors.INVALID_REQUEST}
    assert "next start" in (told["node.id"].error_message or "")
    assert "metrics" in (told["telemetry.max.bytes"].error_message or "")
    assert "log.segment.bytes" in (told["log.segment.byts"].error_message or "")
    assert "listeners" in (told["host.name"].error_message or "")
    assert "log.retention.ms" in (told["retention.ms"].error_message or "")


def test_a_dynamic_key_of_kafka_without_effect_is_taken_and_described(
    someone: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    key = "sasl.kerberos.min.time.before.relogin"

    with caplog.at_level(logging.INFO):
        taken = someone.change(BROKER, "1", (key, SET, "58000"))
        refused = someone.change(BROKER, "1", (key, SET, "soon"))

    assert taken.error_code == errors.NONE
    assert refused.error_code == errors.INVALID_REQUEST
    (entry,) = broker_entries_named(someone, key)
    assert (entry.value, entry.source, entry.is_read_only) == ("58000", 2, False)
    assert entry.documentation.startswith("No effect: ")
    assert f"(without effect: {key})" in caplog.text


@pytest.mark.parametrize("key", ["ssl.keystore.password", "metric.reporters", "config.providers"])
def test_passwords_and_names_of_classes_are_not_taken(someone: Operator, key: str) -> None:
    told = someone.change(BROKER, "1", (key, SET, "x"))

    assert told.error_code == errors.INVALID_REQUEST
    assert "has no effect here" in (told.error_message or "")


def broker_entries_named(someone: Operator, key: str) -> list[DescribedConfig]:
    entries = broker_entries(someone.hand.broker.settings)
    return [entry for entry in entries if entry.key == key]


# -- Durable before it is answered


def test_changes_survive_a_loss_of_power(someone: Operator) -> None:
    someone.set(TOPIC, ORDERS, segment_bytes="4000000")
    someone.set(BROKER, "1", message_max_bytes="100")
    someone.set(BROKER, "", log_retention_ms="7")

    someone.hand.crash()
    again = Operator(someone.hand)

    assert again.value(TOPIC, ORDERS, "segment.bytes") == ("4000000", TOPIC_SOURCE)
    assert again.value(TOPIC, ORDERS, "max.message.bytes") == ("100", BROKER_SOURCE)
    assert again.value(BROKER, "1", "log.retention.ms") == ("7", CLUSTER_SOURCE)
    assert again.produce(a_batch(b"x" * 200)).error_code == errors.MESSAGE_TOO_LARGE
    config = again.hand.broker.topics[ORDERS].partitions[0].log.config
    assert (config.segment_bytes, config.retention_ms) == (4_000_000, 7)


def test_a_change_counts_and_is_answered_when_it_is_durable_and_not_before(
    someone: Operator,
) -> None:
    request = someone.change_request((BROKER, "1", [("message.max.bytes", SET, "100")]))

    someone.client.send(api_keys.INCREMENTAL_ALTER_CONFIGS, 1, request)

    assert someone.answers() == []
    assert someone.hand.broker.settings.message_max_bytes == 1_048_588
    someone.hand.settle()
    assert [one.error_code for one in changed(someone.answers()[0])] == [errors.NONE]
    assert someone.hand.broker.settings.message_max_bytes == 100


def test_two_changes_in_one_turn_build_upon_each_other(someone: Operator) -> None:
    frames = [
        someone.client.encode(
            api_keys.INCREMENTAL_ALTER_CONFIGS, 1, someone.change_request((TOPIC, ORDERS, [change]))
        )
        for change in [
            ("retention.ms", SET, "5"),
            ("segment.ms", SET, "6"),
            ("cleanup.policy", APPEND, "compact"),
            ("cleanup.policy", SUBTRACT, "delete"),
        ]
    ]

    someone.client.send_bytes(b"".join(frames))
    someone.hand.settle()

    assert [one.error_code for answer in someone.answers() for one in changed(answer)] == [0] * 4
    assert someone.hand.broker.cluster.topics[ORDERS].configs == {
        "cleanup.policy": "compact",
        "retention.ms": "5",
        "segment.ms": "6",
    }


def test_a_change_that_the_disk_refuses_is_told_and_leaves_all_as_it_was(someone: Operator) -> None:
    someone.hand.disk.fail_writes()

    topic, stranger = someone.change_all(
        (TOPIC, ORDERS, [("retention.ms", SET, "5")]), (TOPIC, "nope", [])
    )

    someone.hand.disk.heal()
    assert topic.error_code == errors.KAFKA_STORAGE_ERROR
    assert stranger.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert someone.value(TOPIC, ORDERS, "retention.ms")[1] == DEFAULT_SOURCE
    assert someone.change(TOPIC, ORDERS, ("retention.ms", SET, "6")).error_code == errors.NONE


def test_what_changes_nothing_writes_nothing(someone: Operator) -> None:
    someone.set(TOPIC, ORDERS, retention_ms="5")
    end = someone.hand.broker.store.log.log_end_offset

    outcomes = someone.change_all(
        (TOPIC, ORDERS, [("retention.ms", SET, "5"), ("segment.ms", DELETE, None)]),
        (BROKER, "", [("message.max.bytes", DELETE, None)]),
    )

    assert [one.error_code for one in outcomes] == [errors.NONE, errors.NONE]
    assert someone.hand.broker.store.log.log_end_offset == end


@pytest.mark.parametrize("kind", [TOPIC, BROKER, LOGGER])
def test_a_change_that_is_only_validated_changes_nothing(someone: Operator, kind: int) -> None:
    name, key, value = {
        TOPIC: (ORDERS, "retention.ms", "5"),
        BROKER: ("1", "message.max.bytes", "5"),
        LOGGER: ("1", "tarry.timer", "WARN"),
    }[kind]
    before = someone.value(kind, name, key)

    good = someone.change(kind, name, (key, SET, value), validate_only=True)
    bad = someone.change(kind, name, (key, SET, "x"), validate_only=True)

    assert good.error_code == errors.NONE
    assert bad.error_code != errors.NONE
    assert someone.value(kind, name, key) == before


def test_a_resource_is_changed_as_a_whole_or_not_at_all(someone: Operator) -> None:
    bad, good = someone.change_all(
        (TOPIC, ORDERS, [("segment.ms", SET, "5"), ("retention.ms", SET, "x")]),
        (BROKER, "1", [("message.max.bytes", SET, "5")]),
    )

    assert (bad.error_code, good.error_code) == (errors.INVALID_CONFIG, errors.NONE)
    assert someone.hand.broker.cluster.topics[ORDERS].configs == {}
    assert someone.hand.broker.settings.message_max_bytes == 5


def test_what_was_accepted_once_does_not_hinder_another_change(someone: Operator) -> None:
    # The value is one that a release which knew the key had taken.
    someone.hand.broker.cluster.topics[ORDERS].configs["remote.storage.enable"] = "true"

    outcome = someone.change(TOPIC, ORDERS, ("retention.ms", SET, "5"))

    assert outcome.error_code == errors.NONE
    assert someone.hand.broker.cluster.topics[ORDERS].configs == {
        "remote.storage.enable": "true",
        "retention.ms": "5",
    }


def test_a_stored_setting_that_cannot_be_had_any_more_does_not_hinder_a_start(
    someone: Operator, caplog: pytest.LogCaptureFixture
) -> None:
    someone.set(BROKER, "1", message_max_bytes="100")
    configs = someone.hand.broker.cluster.broker_configs[1]
    stored = BrokerConfigChanged(broker_id=1, configs={**configs, "gone.key": "1"})
    someone.hand.broker.store.change(GivenChange(stored))
    someone.hand.settle()

    someone.hand.crash()

    assert someone.hand.broker.settings.message_max_bytes == 100
    assert "gone.key" in caplog.text


# -- Loggers


@pytest.mark.parametrize("name", ["root", "tarry", "tarry.broker"])
@pytest.mark.parametrize("level", ["ERROR", "FATAL"])
def test_nobody_silences_the_warnings_of_the_broker(
    someone: Operator, name: str, level: str
) -> None:
    before = someone.hand.broker.levels.level("tarry.broker")

    outcome = someone.change(LOGGER, "1", (name, SET, level))

    assert outcome.error_code == errors.INVALID_CONFIG
    assert "WARN is the highest level" in (outcome.error_message or "")
    assert someone.hand.broker.levels.level("tarry.broker") == before


def test_the_level_of_a_logger_changes_and_is_given_back(someone: Operator) -> None:
    levels = someone.hand.broker.levels
    changes: list[Change] = [("tarry.timer", SET, "TRACE"), ("tarry.log", SET, "WARN")]

    someone.change(LOGGER, "1", *changes)
    changed_to = [someone.value(LOGGER, "1", name)[0] for name in ("tarry.timer", "tarry.log")]
    counted = levels.level("tarry.timer")
    someone.change(LOGGER, "1", ("tarry.timer", DELETE, None))

    assert changed_to == ["DEBUG", "WARN"]
    assert counted == logging.DEBUG
    assert levels.level("tarry.timer") == logging.INFO


# -- Bad input


@pytest.mark.parametrize(
    ("kind", "name", "changes", "error_code"),
    [
        (TOPIC, ORDERS, [("retention.ms", 9, "5")], errors.INVALID_REQUEST),
        (TOPIC, ORDERS, [("retention.ms", -1, "5")], errors.INVALID_REQUEST),
        (TOPIC, "x" * 32_000, [("retention.ms", SET, "5")], errors.INVALID_TOPIC_EXCEPTION),
        (TOPIC, ORDERS, [("k" * 32_000, SET, "5")], errors.INVALID_CONFIG),
        (TOPIC, ORDERS, [("retention.ms", SET, "9" * 32_000)], errors.INVALID_CONFIG),
        (TOPIC, ORDERS, [("retention.ms", SET, "\n\x1b[31m")], errors.INVALID_CONFIG),
        (TOPIC, ORDERS, [("compression.type", SET, "brotli")], errors.INVALID_CONFIG),
        (BROKER, "9" * 32_000, [], errors.INVALID_REQUEST),
        (BROKER, "-", [], errors.INVALID_REQUEST),
        (BROKER, "1", [("listeners", SET, "PLAINTEXT://:1")], errors.INVALID_REQUEST),
        (BROKER, "1", [("max.connections.per.ip.overrides", SET, "a")], errors.INVALID_REQUEST),
        (TOPIC, ORDERS, [("cleanup.policy", SET, "compact," * 10_000)], errors.INVALID_CONFIG),
        (TOPIC, ORDERS, [("cleanup.policy", APPEND, "x" * 40_000)], errors.INVALID_CONFIG),
        (BROKER, "", [("log.cleanup.policy", SET, "compact," * 10_000)], errors.INVALID_REQUEST),
        (BROKER, "1", [("max.connections.per.ip.overrides", SET, "a:1," * 9_000)], 42),
        (BROKER, "1", [("max.connections.per.ip.overrides", SET, "a:" + "9" * 5_000)], 42),
        (LOGGER, "", [], errors.INVALID_REQUEST),
        (LOGGER, "1", [("tarry.timer", SET, "x" * 32_000)], errors.INVALID_CONFIG),
        (METRICS, "m", [("interval.ms", SET, "5")], errors.INVALID_CONFIG),
        (METRICS, "", [], errors.INVALID_REQUEST),
        (GROUP, "g", [("consumer.session.timeout.ms", SET, "5")], errors.INVALID_CONFIG),
        (GROUP, "g", [("consumer.session.timeout.ms", SET, "60001")], errors.INVALID_CONFIG),
        (GROUP, "g", [("share.delivery.count.limit", SET, "11")], errors.INVALID_CONFIG),
        (GROUP, "g", [("share.isolation.level", SET, "any")], errors.INVALID_CONFIG),
        (GROUP, "g", [("share.auto.offset.reset", SET, "by_duration:-P1D")], 40),
        (GROUP, "g", [("share.auto.offset.reset", SET, "by_duration:P")], 40),
        (GROUP, "g", [("errors.deadletterqueue.topic.name", SET, "__dead")], 40),
        (GROUP, "g", [("streams.rack.aware.assignment.tags", SET, "a,b,a")], 40),
        (GROUP, "g", [("streams.rack.aware.assignment.tags", SET, "a,,b")], 40),
        (GROUP, "g", [("streams.rack.aware.assignment.tags", APPEND, "a")], 40),
        (GROUP, "g", [("consumer.session.timeout.ms", APPEND, "5")], errors.INVALID_CONFIG),
        (GROUP, "g", [("retention.ms", SET, "5")], errors.INVALID_CONFIG),
        (GROUP, "", [("consumer.session.timeout.ms", SET, "50000")], errors.INVALID_REQUEST),
        (0, "", [], errors.INVALID_REQUEST),
        (127, ORDERS, [("retention.ms", SET, "5")], errors.INVALID_REQUEST),
        (-128, ORDERS, [], errors.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_is_refused_with_a_short_sentence(
    someone: Operator, kind: int, name: str, changes: list[Change], error_code: int
) -> None:
    outcome = someone.change(kind, name, *changes)

    assert outcome.error_code == error_code
    assert 10 < len(outcome.error_message or "") < 300
    assert (outcome.error_message or "").isprintable()
    assert someone.value(TOPIC, ORDERS, "retention.ms")[1] == DEFAULT_SOURCE


def test_a_resource_that_is_named_twice_is_refused_once(someone: Operator) -> None:
    one: tuple[int, str, list[Change]] = (TOPIC, ORDERS, [("retention.ms", SET, "5")])
    other: tuple[int, str, list[Change]] = (BROKER, "1", [("message.max.bytes", SET, "6")])

    outcomes = someone.change_all(one, other, one)

    assert [outcome.error_code for outcome in outcomes] == [
        errors.INVALID_REQUEST,
        errors.NONE,
    ]
    assert someone.hand.broker.cluster.topics[ORDERS].configs == {}


def test_as_many_settings_as_a_request_holds_are_refused_and_the_next_request_is_served(
    someone: Operator,
) -> None:
    unknown: list[Change] = [(f"key-{number}", SET, "1") for number in range(99_999)]
    again: list[Change] = [("retention.ms", SET, "1")] * 99_999

    outcomes = [someone.change(TOPIC, ORDERS, *changes) for changes in (unknown, again)]
    outcomes.append(someone.change(BROKER, "1", *unknown))
    served = someone.change(TOPIC, ORDERS, ("retention.ms", SET, "7"))

    assert [outcome.error_code for outcome in outcomes] == [errors.INVALID_REQUEST] * 3
    assert served.error_code == errors.NONE


def test_a_request_changes_ten_thousand_resources_at_most(someone: Operator) -> None:
    resources: list[tuple[int, str, list[Change]]] = [
        (TOPIC, f"t{number}", []) for number in range(10_001)
    ]

    as_many = someone.change_all(*resources[1:])
    too_many = someone.change_all(*resources)

    assert {one.error_code for one in as_many} == {errors.UNKNOWN_TOPIC_OR_PARTITION}
    assert {one.error_code for one in too_many} == {errors.POLICY_VIOLATION}


def test_one_broker_has_one_name(someone: Operator) -> None:
    change: Change = ("message.max.bytes", SET, "5")

    outcomes = someone.change_all(*((BROKER, name, [change]) for name in ("01", "+1", " 1", "-0")))

    assert {one.error_code for one in outcomes} == {errors.INVALID_REQUEST}


# -- Groups

SESSION = "consumer.session.timeout.ms"
GROUP_SOURCE = 8


def test_settings_of_a_group_are_kept_and_described_with_their_source(someone: Operator) -> None:
    someone.change(GROUP, "billing", (SESSION, SET, " 0050000"))

    someone.hand.crash()
    again = Operator(someone.hand)
    entry = again.described(GROUP, "billing")[SESSION]
    assert (entry.value, entry.config_source, entry.read_only) == ("50000", GROUP_SOURCE, False)
    assert [(each.name, each.value, each.source) for each in entry.synonyms] == [
        (SESSION, "50000", GROUP_SOURCE),
        ("group.consumer.session.timeout.ms", "45000", DEFAULT_SOURCE),
    ]
    assert again.value(GROUP, "other", SESSION) == ("45000", DEFAULT_SOURCE)


def test_a_group_follows_the_default_again_when_its_setting_is_unset(someone: Operator) -> None:
    someone.change(GROUP, "billing", (SESSION, SET, "50000"))

    outcome = someone.change(GROUP, "billing", (SESSION, DELETE, None))

    assert outcome.error_code == errors.NONE
    assert someone.value(GROUP, "billing", SESSION) == ("45000", DEFAULT_SOURCE)
    assert someone.hand.broker.cluster.group_configs == {}


def test_settings_of_a_group_are_replaced_as_a_whole(someone: Operator) -> None:
    someone.change(GROUP, "billing", (SESSION, SET, "50000"))

    outcome = someone.replace(GROUP, "billing", ("share.auto.offset.reset", "by_duration:PT1H"))

    assert outcome.error_code == errors.NONE
    assert someone.hand.broker.cluster.group_configs == {
        "billing": {"share.auto.offset.reset": "by_duration:PT1H"}
    }


def test_so_many_groups_have_settings_and_no_more(
    someone: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_decisions, "GROUPS_WITH_SETTINGS_MAX", 1)
    someone.change(GROUP, "first", (SESSION, SET, "50000"))

    refused = someone.change(GROUP, "second", (SESSION, SET, "50000"))
    changed_again = someone.change(GROUP, "first", (SESSION, SET, "55000"))

    assert refused.error_code == errors.POLICY_VIOLATION
    assert changed_again.error_code == errors.NONE


def test_groups_of_one_request_count_together(
    someone: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_decisions, "GROUPS_WITH_SETTINGS_MAX", 3)
    someone.change(GROUP, "first", (SESSION, SET, "50000"))
    change: Change = (SESSION, SET, "55000")

    outcomes = someone.change_all(*((GROUP, name, [change]) for name in "abcd"))

    refused = errors.POLICY_VIOLATION
    assert [one.error_code for one in outcomes] == [0, 0, refused, refused]
    assert sorted(someone.hand.broker.cluster.group_configs) == ["a", "b", "first"]


def test_a_group_whose_settings_go_makes_room_in_the_same_request(
    someone: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config_decisions, "GROUPS_WITH_SETTINGS_MAX", 1)
    someone.change(GROUP, "first", (SESSION, SET, "50000"))

    outcomes = someone.change_all(
        (GROUP, "first", [(SESSION, DELETE, None)]), (GROUP, "second", [(SESSION, SET, "55000")])
    )

    assert [one.error_code for one in outcomes] == [errors.NONE, errors.NONE]


@pytest.mark.parametrize(
    ("name", "tags"), [("g", "t" * 4_096), ("g" * 4_096, "t"), ("g", "\x01" * 700)]
)
def test_the_bytes_of_a_groups_settings_are_bounded(
    someone: Operator, name: str, tags: str
) -> None:
    key = "streams.rack.aware.assignment.tags"

    refused = someone.change(GROUP, name, (key, SET, tags))
    taken = someone.change(GROUP, name[:1_000], (key, SET, tags[:200]))

    assert refused.error_code == errors.POLICY_VIOLATION
    assert "4096 are the most" in (refused.error_message or "")
    assert taken.error_code == errors.NONE


def test_settings_of_a_group_that_are_too_long_from_before_may_go_one_by_one(
    someone: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    tags, reset = "streams.rack.aware.assignment.tags", "share.auto.offset.reset"
    long, longer = ("t" * size for size in (6_000, 6_001))
    with monkeypatch.context() as before:
        before.setattr(config_decisions, "GROUP_SETTINGS_BYTES_MAX", 10_000)
        someone.change(GROUP, "g", (tags, SET, long), (reset, SET, "latest"))

    grown = someone.change(GROUP, "g", (tags, SET, longer))
    shrunk = someone.change(GROUP, "g", (reset, DELETE, None))
    gone = someone.change(GROUP, "g", (tags, DELETE, None))

    codes = [one.error_code for one in (grown, shrunk, gone)]
    assert codes == [errors.POLICY_VIOLATION, errors.NONE, errors.NONE]
