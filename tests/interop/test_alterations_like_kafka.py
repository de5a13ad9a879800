"""Changes of settings, of partition counts and of log starts, to Apache Kafka 4.4 and to Tarry.

Error codes and what is there afterwards are compared; sentences are our own.  Kafka's brokers
hear of a change a moment after its answer, so it is asked until it says what Tarry says, or for
long enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from tests.support.interop.both_brokers import (
    RUN,
    Ask,
    Both,
    KafkaConnection,
    wait_until_led,
)
from tests.support.patience import PATIENCE_S, tries

from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages import alter_configs, incremental_alter_configs
from tarry.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from tarry.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tarry.records import BatchBuilder
from tarry.simulation.by_hand import BrokerByHand
from tarry.wire.reader import window_of

SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32

# For Kafka's controller on a machine that does other work besides.
TIMEOUT_MS = PATIENCE_S * 1_000

# The past for every clock: a record of the future is refused.
PAST_MS = 1_600_000_000_000

Change = tuple[str, int, str | None]
Resource = tuple[int, str, list[Change]]

# Settings of the broker that these tests change.
CHANGED_OF_BROKER = [
    "log.cleanup.policy",
    "log.retention.bytes",
    "log.retention.ms",
    "log.roll.ms",
    "log.segment.bytes",
    "message.max.bytes",
]

# Of Kafka with eligible leader replicas this one cannot be unset, and has a value at first.
KEY_OF_ELR = "min.insync.replicas"


@pytest.fixture(scope="module")
def both(apache_kafka: str) -> Iterator[Both]:
    connection = KafkaConnection(apache_kafka)
    hand = BrokerByHand({"auto.create.topics.enable": "false"})
    client = hand.connect()

    def ask_tarry(api_key: int, version: int, request: Message) -> Message:
        client.send(api_key, version, request)
        hand.settle()
        answers = client.answers()
        if not answers:
            # Recovery points are written by a duty of the timer.
            hand.turn(after_ms=1)
            hand.settle()
            answers = client.answers()
        assert len(answers) == 1
        return answers[0]

    unset_broker(connection.ask)
    yield Both(connection.ask, ask_tarry)
    unset_broker(connection.ask)
    connection.close()


def unset_broker(ask: Ask) -> None:
    """The broker as its file says: a Kafka may have been used before, and is used again."""
    changes = [
        incremental_alter_configs.AlterableConfig(key, DELETE, None) for key in CHANGED_OF_BROKER
    ]
    resources = [
        incremental_alter_configs.AlterConfigsResource(BROKER, name, changes) for name in ("1", "")
    ]
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(resources)
    ask(api_keys.INCREMENTAL_ALTER_CONFIGS, 1, request)


def full(name: str) -> str:
    return f"{RUN}-{name}"


def create(both: Both, name: str, partitions: int = 1, **configs: str) -> None:
    settings = [CreatableTopicConfig(key.replace("_", "."), configs[key]) for key in configs]
    request = CreateTopicsRequest(
        [CreatableTopic(full(name), partitions, 1, [], settings)], TIMEOUT_MS
    )
    for answer in both.answers(api_keys.CREATE_TOPICS, 7, lambda _: request):
        assert isinstance(answer, CreateTopicsResponse)
        assert answer.topics[0].error_code == 0, answer.topics[0].error_message
    wait_until_led(both.kafka, full(name))


def in_the_end_alike(both: Both, shape: Callable[[Ask], object]) -> None:
    """What Kafka says after a while is what Tarry says at once."""
    tarry = shape(both.tarry)
    kafka = shape(both.kafka)
    for _ in tries():
        if kafka == tarry:
            break
        kafka = shape(both.kafka)
    assert tarry == kafka


# -- IncrementalAlterConfigs and AlterConfigs


def altered(both: Both, resources: list[Resource], *, validate_only: bool = False) -> Both:
    """Change, and compare the outcomes; Kafka answers a resource as often as it is named."""
    request = incremental_alter_configs.IncrementalAlterConfigsRequest(
        [
            incremental_alter_configs.AlterConfigsResource(
                kind,
                name,
                [incremental_alter_configs.AlterableConfig(*change) for change in changes],
            )
            for kind, name, changes in resources
        ],
        validate_only,
    )

    def outcomes(answer: Message) -> list[tuple[int, str, int]]:
        assert isinstance(answer, incremental_alter_configs.IncrementalAlterConfigsResponse)
        return sorted((a.resource_type, a.resource_name, a.error_code) for a in answer.responses)

    for version in (0, 1) if validate_only else (1,):
        kafka, tarry = both.answers(api_keys.INCREMENTAL_ALTER_CONFIGS, version, lambda _: request)
        assert outcomes(tarry) == sorted(set(outcomes(kafka)))
    return both


def replaced(
    both: Both, kind: int, name: str, configs: list[tuple[str, str | None]], version: int = 2
) -> None:
    request = alter_configs.AlterConfigsRequest(
        [
            alter_configs.AlterConfigsResource(
                kind, name, [alter_configs.AlterableConfig(*each) for each in configs]
            )
        ]
    )

    def outcomes(answer: Message) -> list[object]:
        assert isinstance(answer, alter_configs.AlterConfigsResponse)
        return [(a.resource_type, a.resource_name, a.error_code) for a in answer.responses]

    kafka, tarry = both.answers(api_keys.ALTER_CONFIGS, version, lambda _: request)
    assert outcomes(tarry) == outcomes(kafka)


def told_by_kafka(synonyms: list[tuple[str, str | None, int]]) -> list[object]:
    """Kafka leaves out the hours that stand behind milliseconds while no milliseconds are set."""
    named = [name for name, _, _ in synonyms]
    hours = [name for name in named if name.endswith(".hours")]
    if hours and hours[0].replace(".hours", ".ms") not in named:
        return [one for one in synonyms if one[0] not in hours]
    return list(synonyms)


def described(kind: int, name: str, keys: list[str] | None) -> Callable[[Ask], object]:
    def shape(ask: Ask) -> object:
        request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, keys)], True, False)
        answer = ask(api_keys.DESCRIBE_CONFIGS, 4, request)
        assert isinstance(answer, DescribeConfigsResponse)
        (result,) = answer.results
        return sorted(
            (
                each.name,
                each.value,
                each.config_source,
                each.read_only,
                each.is_sensitive,
                each.config_type,
                told_by_kafka([(one.name, one.value, one.source) for one in each.synonyms]),
            )
            for each in result.configs
            if each.name != KEY_OF_ELR
        )

    return shape


# Settings of a topic, and the changes of them.
CHANGES: dict[str, tuple[dict[str, str], list[Change]]] = {
    "set": ({}, [("retention.ms", SET, "7")]),
    "set over": ({"retention.ms": "5"}, [("retention.ms", SET, "7")]),
    "set with spaces": ({}, [("retention.ms", SET, " 7 ")]),
    "set as it is": ({"retention.ms": "5"}, [("retention.ms", SET, "5")]),
    "deleted": ({"retention.ms": "5", "segment.ms": "9"}, [("retention.ms", DELETE, None)]),
    "deleted though unset": ({}, [("segment.ms", DELETE, None)]),
    "deleted with a value": ({"segment.ms": "9"}, [("segment.ms", DELETE, "5")]),
    "unknown key": ({}, [("nope", SET, "1")]),
    "unknown key deleted": ({}, [("nope", DELETE, None)]),
    "empty key": ({}, [("", SET, "1")]),
    "no value": ({}, [("retention.ms", SET, None)]),
    "appended": ({}, [("cleanup.policy", APPEND, "compact")]),
    "appended twice": ({}, [("cleanup.policy", APPEND, "compact,compact")]),
    "appended what is there": (
        {"cleanup.policy": "compact"},
        [("cleanup.policy", APPEND, "compact")],
    ),
    "appended to none": ({"cleanup.policy": ""}, [("cleanup.policy", APPEND, "compact")]),
    "appended nonsense": ({}, [("cleanup.policy", APPEND, "erase")]),
    "appended nothing": ({}, [("cleanup.policy", APPEND, None)]),
    "appended to a number": ({}, [("retention.ms", APPEND, "5")]),
    "subtracted": (
        {"cleanup.policy": "compact,delete"},
        [("cleanup.policy", SUBTRACT, "delete")],
    ),
    "subtracted all": (
        {"cleanup.policy": "compact,delete"},
        [("cleanup.policy", SUBTRACT, "delete,compact")],
    ),
    "subtracted what is not there": (
        {"cleanup.policy": "compact"},
        [("cleanup.policy", SUBTRACT, "delete")],
    ),
    "subtracted from a number": ({}, [("retention.ms", SUBTRACT, "5")]),
    "subtracted nothing": ({}, [("cleanup.policy", SUBTRACT, None)]),
    "a key twice": ({}, [("retention.ms", SET, "5"), ("retention.ms", SET, "5")]),
    "a key set and deleted": ({}, [("retention.ms", SET, "5"), ("retention.ms", DELETE, None)]),
    "no number": ({}, [("retention.ms", SET, "abc")]),
    "empty number": ({}, [("retention.ms", SET, "")]),
    "one good, one bad": ({}, [("segment.ms", SET, "9"), ("retention.ms", SET, "x")]),
    "below": ({}, [("segment.bytes", SET, "5")]),
    "several": (
        {"retention.ms": "5"},
        [("retention.ms", DELETE, None), ("segment.ms", SET, "9"), ("max.message.bytes", SET, "1")],
    ),
    "nothing": ({"retention.ms": "5"}, []),
}


@pytest.mark.parametrize("case", CHANGES)
def test_a_topics_settings_change_alike(both: Both, case: str) -> None:
    configs, changes = CHANGES[case]
    name = f"c{list(CHANGES).index(case)}"
    create(both, name, **configs)

    altered(both, [(TOPIC, full(name), changes)], validate_only=True)
    altered(both, [(TOPIC, full(name), changes)])

    own = ["retention.ms", "segment.ms", "cleanup.policy", "max.message.bytes", "segment.bytes"]
    in_the_end_alike(both, described(TOPIC, full(name), own))


REPLACEMENTS: dict[str, list[tuple[str, str | None]]] = {
    "some": [("segment.ms", "9")],
    "none": [],
    "the same": [("retention.ms", "5")],
    "no value": [("retention.ms", None)],
    "unknown key": [("nope", "1")],
    "a key twice": [("retention.ms", "9"), ("retention.ms", "8")],
    "no number": [("retention.ms", "x")],
}


@pytest.mark.parametrize("case", REPLACEMENTS)
def test_a_topics_settings_are_replaced_alike(both: Both, case: str) -> None:
    name = f"r{list(REPLACEMENTS).index(case)}"
    create(both, name, retention_ms="5")

    replaced(
        both, TOPIC, full(name), REPLACEMENTS[case], version=list(REPLACEMENTS).index(case) % 3
    )

    in_the_end_alike(both, described(TOPIC, full(name), ["retention.ms", "segment.ms"]))


RESOURCES: dict[str, list[Resource]] = {
    "unknown topic": [(TOPIC, "nope", [("retention.ms", SET, "7")])],
    "unknown topic, unknown key": [(TOPIC, "nope", [("nope", SET, "7")])],
    "unknown topic, no value": [(TOPIC, "nope", [("retention.ms", SET, None)])],
    "unknown topic, nothing": [(TOPIC, "nope", [])],
    "invalid name": [(TOPIC, "a b", [("retention.ms", SET, "7")])],
    "empty name": [(TOPIC, "", [("retention.ms", SET, "7")])],
    "twice": [(TOPIC, "nope", []), (TOPIC, "nope", [])],
    "twice and another": [(TOPIC, "a", []), (TOPIC, "a", []), (BROKER, "1", [])],
    "no such type": [(0, "x", [("a", SET, "b")])],
    "no such type either": [(99, "x", [])],
    "nor a negative one": [(-1, "x", [("a", SET, "b")])],
    "another broker": [(BROKER, "2", [("message.max.bytes", SET, "7")])],
    "broker -1": [(BROKER, "-1", [("message.max.bytes", SET, "7")])],
    "no broker's id": [(BROKER, "x", [("message.max.bytes", SET, "7")])],
    "what is read-only": [(BROKER, "1", [("node.id", SET, "1")])],
    "what is read-only for all": [(BROKER, "", [("group.max.size", SET, "7")])],
    "what is read-only, deleted": [(BROKER, "1", [("node.id", DELETE, None)])],
    "hours of retention": [(BROKER, "1", [("log.retention.hours", SET, "3")])],
    "a broker's number": [(BROKER, "1", [("message.max.bytes", SET, "x")])],
    "below": [(BROKER, "", [("message.max.bytes", SET, "-5")])],
    "no retention": [(BROKER, "1", [("log.retention.ms", SET, "0")])],
    "no value": [(BROKER, "1", [("message.max.bytes", SET, None)])],
    "append to a number": [(BROKER, "1", [("message.max.bytes", APPEND, "1")])],
    "a key twice": [
        (BROKER, "1", [("message.max.bytes", SET, "1"), ("message.max.bytes", SET, "1")])
    ],
    "listeners of all": [(BROKER, "", [("listeners", SET, "PLAINTEXT://:9092")])],
    "no such logger": [(LOGGER, "1", [("nope", SET, "DEBUG")])],
    "no such level": [(LOGGER, "1", [("root", SET, "LOUD")])],
    "a level appended": [(LOGGER, "1", [("root", APPEND, "DEBUG")])],
    "the root's level deleted": [(LOGGER, "1", [("root", DELETE, None)])],
    "no level": [(LOGGER, "1", [("root", SET, None)])],
    "another broker's logger": [(LOGGER, "2", [("root", SET, "INFO")])],
    "no broker's logger": [(LOGGER, "", [("root", SET, "INFO")])],
    "a group's unknown key": [(GROUP, "g", [("nope", SET, "1")])],
    "a group's key deleted": [(GROUP, "g", [("nope", DELETE, None)])],
    "no group": [(GROUP, "", [("nope", DELETE, None)])],
    "nothing": [],
}
# Values of a group's settings, on both sides of each bound.
GROUP_VALUES: dict[str, tuple[str, ...]] = {
    "consumer.assignment.interval.ms": ("0", "15000", "15001", "-1"),
    "consumer.heartbeat.interval.ms": ("4999", "5000", "15000", "15001"),
    "consumer.session.timeout.ms": ("44999", "45000", "60000", "60001", "x", "", " 45000 "),
    "errors.deadletterqueue.copy.record.enable": ("true", "FALSE", "yes"),
    "errors.deadletterqueue.topic.name": ("", "dlq.orders", "__dlq"),
    "share.assignment.interval.ms": ("0", "15000", "15001"),
    "share.auto.offset.reset": (
        "earliest",
        "latest",
        "Latest",
        "none",
        "",
        "by_duration:PT1H",
        "by_duration:P1DT2H3M4.5S",
        "by_duration:pt1h",
        "BY_DURATION:PT1H",
        "by_duration:-PT1H",
        "by_duration:PT-1H",
        "by_duration:PT0S",
        "by_duration:P",
        "by_duration:PT",
        "by_duration:1h",
        "by_duration:",
    ),
    "share.delivery.count.limit": ("1", "2", "10", "11"),
    "share.heartbeat.interval.ms": ("4999", "5000", "15000", "15001"),
    "share.isolation.level": ("read_committed", "read_uncommitted", "READ_COMMITTED", "any"),
    "share.partition.max.record.locks": ("99", "100", "4000", "4001"),
    "share.record.lock.duration.ms": ("14999", "15000", "60000", "60001"),
    "share.renew.acknowledge.enable": ("true", "false", "no"),
    "share.session.timeout.ms": ("44999", "45000", "60000", "60001"),
    "streams.assignment.interval.ms": ("0", "15000", "15001"),
    "streams.assignor.name": ("sticky", "other"),
    "streams.heartbeat.interval.ms": ("4999", "5000", "15000", "15001"),
    "streams.initial.rebalance.delay.ms": ("-1", "0", "2147483647"),
    "streams.num.standby.replicas": ("-1", "0", "2", "3"),
    "streams.rack.aware.assignment.tags": ("", "a", "a,b", "a,b,a", "a,,b"),
    "streams.session.timeout.ms": ("44999", "45000", "60000", "60001"),
}
RESOURCES |= {
    f"a group's {key}={value!r}": [(GROUP, "g", [(key, SET, value)])]
    for key, values in GROUP_VALUES.items()
    for value in values
}
RESOURCES |= {
    "a group's number appended to": [(GROUP, "g", [("share.delivery.count.limit", APPEND, "3")])],
    "a group's list appended to": [
        (GROUP, "g", [("streams.rack.aware.assignment.tags", APPEND, "a")])
    ],
    "a group's key without a value": [(GROUP, "g", [("consumer.session.timeout.ms", SET, None)])],
    "a group's key twice": [
        (
            GROUP,
            "g",
            [
                ("consumer.session.timeout.ms", SET, "50000"),
                ("consumer.session.timeout.ms", SET, "50001"),
            ],
        )
    ],
    "no group with a value": [(GROUP, "", [("consumer.session.timeout.ms", SET, "50000")])],
    "a good key and a bad one": [
        (GROUP, "g", [("consumer.session.timeout.ms", SET, "50000"), ("nope", SET, "1")])
    ],
}


@pytest.mark.parametrize("case", RESOURCES)
def test_resources_are_checked_alike(both: Both, case: str) -> None:
    altered(both, RESOURCES[case], validate_only=True)


# A dead broker is missed after 6 s instead of 9.
OWN_DEFAULTS = (
    "broker.heartbeat.interval.ms",
    "broker.session.timeout.ms",
    "log.dir",
    "node.id",
)


def test_the_brokers_keys_are_kafkas_and_so_is_which_of_them_may_change(both: Both) -> None:
    def told(ask: Ask) -> dict[str, DescribeConfigsResourceResult]:
        request = DescribeConfigsRequest([DescribeConfigsResource(BROKER, "1", None)])
        answer = ask(api_keys.DESCRIBE_CONFIGS, 4, request)
        assert isinstance(answer, DescribeConfigsResponse)
        return {each.name: each for each in answer.results[0].configs}

    theirs, ours = told(both.kafka), told(both.tarry)

    # Kafka keeps some to itself, and tells a throttle only while it is set.
    assert [key for key in ours if key not in theirs] == [
        "delay.pending.total.max.bytes",
        "events.enable",
        "events.interval.ms",
        "flush.policy",
        "follower.replication.throttled.rate",
        "leader.imbalance.per.broker.percentage",
        "logging.format",
        "logging.level",
        "metadata.store",
        "metadata.store.credentials.location",
        "metadata.store.ssl.ca.location",
        "metadata.store.ssl.certificate.location",
        "metadata.store.ssl.key.location",
        "producer.id.expiration.check.interval.ms",
    ]
    shared = [key for key in ours if key in theirs]
    # Tarry's listeners stay as they were opened.
    assert [key for key in shared if ours[key].read_only != theirs[key].read_only] == [
        "listener.security.protocol.map",
        "listeners",
    ]
    for key in shared:
        one, other = ours[key], theirs[key]
        assert (one.config_type, one.is_sensitive) == (other.config_type, other.is_sensitive), key
        # The rest is in the file of the Kafka of these tests, or a default of our own.
        if one.config_source == other.config_source == 5 and key not in OWN_DEFAULTS:
            assert one.value == other.value, key


def test_a_brokers_settings_change_alike_layer_by_layer(both: Both) -> None:
    create(both, "layers", segment_ms="5")
    keys = CHANGED_OF_BROKER
    own: list[Resource] = [
        (
            BROKER,
            "1",
            [("log.segment.bytes", SET, "3000000"), ("log.cleanup.policy", APPEND, "compact")],
        )
    ]
    every: list[Resource] = [
        (BROKER, "", [("log.segment.bytes", SET, "2000000"), ("log.roll.ms", SET, "77")]),
    ]
    undone: list[Resource] = [
        (BROKER, "1", [("log.segment.bytes", DELETE, None), ("log.retention.ms", SET, "9")]),
    ]
    all_undone: list[Resource] = [
        (BROKER, "1", [(key, DELETE, None) for key in keys]),
        (BROKER, "", [(key, DELETE, None) for key in keys]),
    ]

    for changes in (own, every, undone, all_undone):
        altered(both, changes)

        in_the_end_alike(both, described(BROKER, "1", keys))
        in_the_end_alike(both, described(BROKER, "", None))
        in_the_end_alike(
            both,
            described(
                TOPIC,
                full("layers"),
                ["segment.bytes", "retention.ms", "segment.ms", "cleanup.policy"],
            ),
        )


def test_a_groups_settings_change_alike(both: Both) -> None:
    group = full("group/ü")
    keys = ["consumer.session.timeout.ms", "share.auto.offset.reset", "share.isolation.level"]
    keys.append("streams.rack.aware.assignment.tags")
    session = "consumer.session.timeout.ms"
    for changes in (
        [(session, SET, "050000"), ("share.auto.offset.reset", SET, "by_duration:PT1H")],
        [(session, SET, "55000"), ("streams.rack.aware.assignment.tags", SET, "a, b")],
        [(session, DELETE, None), ("nope", DELETE, None)],
        [("share.isolation.level", SET, "read_committed")],
    ):
        given: list[Change] = list(changes)
        altered(both, [(GROUP, group, given)])

        in_the_end_alike(both, described(GROUP, group, keys))
    replaced(both, GROUP, group, [("consumer.heartbeat.interval.ms", "6000")])
    in_the_end_alike(both, described(GROUP, group, [*keys, "consumer.heartbeat.interval.ms"]))
    replaced(both, GROUP, group, [])
    in_the_end_alike(both, described(GROUP, group, [*keys, "consumer.heartbeat.interval.ms"]))


def test_a_brokers_settings_are_replaced_alike(both: Both) -> None:
    keys = ["message.max.bytes", "log.retention.bytes"]
    for configs in (
        [("message.max.bytes", "8000")],
        [("log.retention.bytes", "9000")],
        [("node.id", "1")],
        [],
    ):
        given: list[tuple[str, str | None]] = list(configs)
        replaced(both, BROKER, "1", given)

        in_the_end_alike(both, described(BROKER, "1", keys))


# -- CreatePartitions


# How many partitions of one with two, and the assignments of the new ones.
GROWTHS: dict[str, list[tuple[str, int, list[list[int]] | None]]] = {
    "more": [("two", 3, None)],
    "as many": [("two", 2, None)],
    "fewer": [("two", 1, None)],
    "none": [("two", 0, None)],
    "negative": [("two", -1, None)],
    "unknown": [("nope", 3, None)],
    "invalid name": [("a b", 3, None)],
    "twice": [("two", 3, None), ("two", 4, None)],
    "twice and another": [("two", 3, None), ("two", 4, None), ("one", 2, None)],
    "both": [("two", 3, None), ("one", 2, None)],
    "assigned": [("two", 3, [[1]])],
    "assigned too few": [("two", 5, [[1]])],
    "assigned too many": [("two", 3, [[1], [1]])],
    "assigned none": [("two", 3, [])],
    "assigned to nobody": [("two", 3, [[]])],
    "assigned to a stranger": [("two", 3, [[99]])],
    "assigned to one twice": [("two", 3, [[1, 1]])],
    "assigned as many": [("two", 2, [[1]])],
    "nothing": [],
}


def growth(
    wanted: list[tuple[str, int, list[list[int]] | None]], *, validate_only: bool
) -> Message:
    return CreatePartitionsRequest(
        [
            CreatePartitionsTopic(
                full(name),
                count,
                None
                if assignments is None
                else [CreatePartitionsAssignment(replicas) for replicas in assignments],
            )
            for name, count, assignments in wanted
        ],
        TIMEOUT_MS,
        validate_only,
    )


def grown(answer: Message) -> list[object]:
    assert isinstance(answer, CreatePartitionsResponse)
    return sorted((each.name, each.error_code) for each in answer.results)


@pytest.fixture(scope="module")
def sized(both: Both) -> Both:
    create(both, "one", 1)
    create(both, "two", 2)
    return both


@pytest.mark.parametrize("case", GROWTHS)
def test_growth_is_checked_alike(sized: Both, case: str) -> None:
    for version in range(4):
        kafka, tarry = sized.answers(
            api_keys.CREATE_PARTITIONS,
            version,
            lambda _: growth(GROWTHS[case], validate_only=True),
        )
        assert grown(tarry) == grown(kafka)


def test_topics_grow_alike(both: Both) -> None:
    create(both, "grows", 1)

    for count in (3, 3, 4):
        kafka, tarry = both.answers(
            api_keys.CREATE_PARTITIONS,
            3,
            lambda _, count=count: growth([("grows", count, None)], validate_only=False),
        )
        assert grown(tarry) == grown(kafka)


# -- DeleteRecords and DescribeLogDirs


def fill(both: Both, name: str) -> None:
    """Ten records in partition 0."""
    builder = BatchBuilder()
    for _ in range(10):
        builder.append(PAST_MS, b"key", b"x" * 100)
    data = [PartitionProduceData(0, window_of(builder.build()))]
    request = ProduceRequest(
        None, -1, TIMEOUT_MS, [TopicProduceData(full(name), partition_data=data)]
    )

    def is_done(ask: Ask) -> bool:
        answer = ask(api_keys.PRODUCE, 9, request)
        assert isinstance(answer, ProduceResponse)
        return answer.responses[0].partition_responses[0].error_code == 0

    for ask in (both.kafka, both.tarry):
        # Kafka's broker hears of a new topic a moment after its answer.
        assert any(is_done(ask) for _ in tries())


@pytest.fixture(scope="module")
def filled(both: Both) -> Both:
    create(both, "log", 2, retention_ms="-1")
    create(both, "compacted", 1, cleanup_policy="compact")
    create(both, "both-ways", 1, cleanup_policy="compact,delete", retention_ms="-1")
    create(both, "neither", 1, cleanup_policy="")
    for name in ("log", "compacted", "both-ways", "neither"):
        fill(both, name)
    return both


Deletions = list[tuple[str, list[tuple[int, int]]]]

# In this order, to one log after the other.
DELETIONS: dict[str, Deletions] = {
    "some": [("log", [(0, 3)])],
    "the same": [("log", [(0, 3)])],
    "fewer": [("log", [(0, 1)])],
    "beyond the end": [("log", [(0, 11)])],
    "another topic twice": [("log", [(0, 4)]), ("log", [(0, 5)])],
    "a partition twice": [("log", [(0, 5), (0, 6)])],
    "negative": [("log", [(0, -2)])],
    "very negative": [("log", [(0, -(2**63))])],
    "all": [("log", [(0, -1)])],
    "to the end": [("log", [(0, 10)])],
    "an empty partition": [("log", [(1, 0)])],
    "all of an empty partition": [("log", [(1, -1)])],
    "beyond an empty partition": [("log", [(1, 1)])],
    "no such partition": [("log", [(99, 0), (-1, 0)])],
    "no such topic": [("nope", [(0, 0)])],
    "compacted": [("compacted", [(0, 3)])],
    "all of compacted": [("compacted", [(0, -1)])],
    "compacted and deleted": [("both-ways", [(0, 3)])],
    "neither": [("neither", [(0, 3)])],
    "several": [("log", [(0, 10), (99, 0)]), ("nope", [(0, 1)]), ("both-ways", [(0, 4)])],
    "no partitions": [("log", [])],
    "nothing": [],
}


@pytest.mark.parametrize("case", DELETIONS)
def test_records_are_deleted_alike(filled: Both, case: str) -> None:
    def request(_: Ask) -> Message:
        topics = [
            DeleteRecordsTopic(full(name), [DeleteRecordsPartition(*each) for each in offsets])
            for name, offsets in DELETIONS[case]
        ]
        return DeleteRecordsRequest(topics, TIMEOUT_MS)

    def shape(answer: Message) -> list[object]:
        assert isinstance(answer, DeleteRecordsResponse)
        return sorted(
            (topic.name, part.partition_index, part.low_watermark, part.error_code)
            for topic in answer.topics
            for part in topic.partitions
        )

    def start(ask: Ask) -> list[object]:
        asked = [ListOffsetsPartition(0, -1, -2)]
        topics = [ListOffsetsTopic(full(name), asked) for name in ("log", "both-ways", "compacted")]
        answer = ask(api_keys.LIST_OFFSETS, 7, ListOffsetsRequest(-1, 0, topics))
        assert isinstance(answer, ListOffsetsResponse)
        return sorted((each.name, each.partitions[0].offset) for each in answer.topics)

    for version in range(3):
        kafka, tarry = filled.answers(api_keys.DELETE_RECORDS, version, request)
        assert shape(tarry) == shape(kafka)
    assert start(filled.tarry) == start(filled.kafka)


DIRECTORIES: dict[str, list[tuple[str, list[int]]]] = {
    "one": [("log", [0, 1])],
    "no such partition": [("log", [99, -1])],
    "no such topic": [("nope", [0])],
    "no partitions": [("log", [])],
    "a partition twice": [("log", [0, 0])],
    "a topic twice": [("log", [0]), ("log", [1])],
    "nothing": [],
}


@pytest.mark.parametrize("case", DIRECTORIES)
@pytest.mark.parametrize("version", range(1, 5))
def test_directories_are_described_alike(filled: Both, case: str, version: int) -> None:
    def request(_: Ask) -> Message:
        return DescribeLogDirsRequest(
            [DescribableLogDirTopic(full(name), parts) for name, parts in DIRECTORIES[case]]
        )

    def shape(answer: Message) -> list[object]:
        assert isinstance(answer, DescribeLogDirsResponse)
        (result,) = answer.results
        sizes = sorted(
            (topic.name, part.partition_index, part.partition_size, part.offset_lag)
            for topic in result.topics
            for part in topic.partitions
        )
        has_room = (result.total_bytes >= result.usable_bytes > 0, result.total_bytes == -1)
        return [answer.error_code, result.error_code, has_room, sizes]

    kafka, tarry = filled.answers(api_keys.DESCRIBE_LOG_DIRS, version, request)

    assert shape(tarry) == shape(kafka)


def test_without_topics_all_of_them_are_described(filled: Both) -> None:
    def sizes(answer: Message) -> list[object]:
        assert isinstance(answer, DescribeLogDirsResponse)
        return sorted(
            (topic.name, part.partition_index, part.partition_size)
            for topic in answer.results[0].topics
            for part in topic.partitions
            if topic.name in (full("log"), full("compacted"))
        )

    kafka, tarry = filled.answers(
        api_keys.DESCRIBE_LOG_DIRS, 4, lambda _: DescribeLogDirsRequest(None)
    )

    assert len(sizes(tarry)) == 3
    assert sizes(tarry) == sizes(kafka)
