"""What only Kafka's own Java client asks: its admin calls, and the newest versions of all APIs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.broker_process import BrokerProcess
from tests.support.interop.java_face import JavaError, JavaFace, JavaProgram
from tests.support.interop.kafka_server import free_port
from tests.support.interop.records_sent import START_MS, SentRecord, numbered
from tests.support.interop.request_recorder import RequestRecorder

from tarry.protocol import api_keys

# The newest that this client has and we serve.
NEWEST_VERSIONS = {
    api_keys.PRODUCE: 13,
    api_keys.FETCH: 18,
    api_keys.LIST_OFFSETS: 11,
    api_keys.METADATA: 13,
    api_keys.API_VERSIONS: 5,
    api_keys.CREATE_TOPICS: 7,
    api_keys.DELETE_TOPICS: 6,
    api_keys.INIT_PRODUCER_ID: 5,
    api_keys.DESCRIBE_CONFIGS: 4,
    api_keys.DESCRIBE_CLUSTER: 2,
    api_keys.DESCRIBE_TOPIC_PARTITIONS: 0,
}


@pytest.fixture(scope="module")
def java(shared_broker: BrokerProcess, java_program: JavaProgram) -> JavaFace:
    return JavaFace(shared_broker.address, java_program)


@pytest.fixture
def recorder() -> Iterator[RequestRecorder]:
    recorder = RequestRecorder()
    yield recorder
    recorder.close()


def produce(java: JavaFace, topic: str, records: list[SentRecord]) -> None:
    producer = java.producer()
    for record in records:
        producer.send(topic, 0, record)
    producer.flush()
    producer.close()


def test_describe_cluster_tells_the_one_broker(java, shared_broker):
    cluster = java.ask("describe cluster")

    assert cluster["controller"] == 1
    assert cluster["nodes"] == [[1, shared_broker.address]]
    assert len(cluster["id"]) == 22


def test_describe_topics_tells_id_partitions_and_leaders(java):
    topic_id = java.ask("create topic", topic="described", partitions=3, configs={})

    topic = java.ask("describe topic", topic="described")

    assert topic["id"] == topic_id
    assert topic["partitions"] == [[0, 1, 1, 1], [1, 1, 1, 1], [2, 1, 1, 1]]
    assert topic["internal"] is False
    assert "described" in java.ask("list topics")


def test_describe_configs_tells_values_and_where_they_come_from(java):
    configs = {"retention.ms": "3600000"}
    java.ask("create topic", topic="configured", partitions=1, configs=configs)

    of_topic = java.ask("describe configs", kind="TOPIC", name="configured")
    of_broker = java.ask("describe configs", kind="BROKER", name="1")

    assert of_topic["retention.ms"] == ["3600000", "DYNAMIC_TOPIC_CONFIG"]
    assert of_topic["max.message.bytes"] == ["1048588", "DEFAULT_CONFIG"]
    assert of_broker["auto.create.topics.enable"] == ["true", "STATIC_BROKER_CONFIG"]


def test_list_offsets_tells_all_kinds_of_offsets(java):
    java.create_topic("listed", 1, {})
    times = [START_MS, START_MS + 9_000, START_MS + 3_000, START_MS + 5_000]
    produce(java, "listed", [SentRecord(b"v", timestamp_ms=time) for time in times])

    found = java.ask("list offsets", topic="listed", partition=0, timestamp=START_MS + 1)

    assert found == {
        "earliest": [0, -1],
        "latest": [4, -1],
        "max timestamp": [1, START_MS + 9_000],
        "time": [1, START_MS + 9_000],
    }


def test_producers_and_all_that_has_settings_are_told(java):
    java.create_topic("written", 1, {})
    produce(java, "written", [SentRecord(b"v", timestamp_ms=START_MS + 9)])

    producers = java.ask("describe producers", topic="written", partition=0)
    resources = java.ask("list config resources")

    assert producers == [[0, 0, START_MS + 9, False, False]]
    assert ["TOPIC", "written"] in resources
    assert [one for one in resources if one[0] != "TOPIC"] == [
        ["BROKER_LOGGER", "1"],
        ["BROKER", "1"],
    ]


def test_a_group_that_nobody_knows_has_settings(java):
    configs = java.ask("describe configs", kind="GROUP", name="nobody")

    assert configs["consumer.session.timeout.ms"] == ["45000", "DEFAULT_CONFIG"]


def test_errors_arrive_as_javas_exceptions(java):
    java.create_topic("small", 1, {"max.message.bytes": "1000"})

    with pytest.raises(JavaError, match="TopicExistsException"):
        java.create_topic("small", 1, {})
    with pytest.raises(JavaError, match="InvalidConfigurationException"):
        java.create_topic("wrong", 1, {"no.such.key": "1"})
    with pytest.raises(JavaError, match="UnknownTopicOrPartitionException"):
        java.delete_topic("never-created")
    with pytest.raises(JavaError, match="RecordTooLargeException"):
        produce(java, "small", [SentRecord(b"x" * 2_000)])
    with pytest.raises(JavaError, match="InvalidTopicException"):
        java.create_topic("not a name", 1, {})


def test_a_transactional_producer_is_refused_at_once(java):
    # It looks for a coordinator first, and would look again and again if it were told to wait.
    with pytest.raises(JavaError, match="this broker has no transactions yet"):
        java.ask("begin transactions", settings={"transactional.id": "t", "max.block.ms": "300000"})


def test_the_newest_versions_are_used_and_topics_go_by_their_ids(recorder, tmp_path, java_program):
    broker = BrokerProcess(tmp_path)
    recorder.broker_port = free_port()
    broker.start(
        {
            "listeners": f"PLAINTEXT://127.0.0.1:{recorder.broker_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{recorder.port}",
        }
    )
    java = JavaFace(f"127.0.0.1:{recorder.port}", java_program)

    java.create_topic("newest", 1, {})
    produce(java, "newest", numbered(0, 10))
    found = java.read("newest", 0, 0, 10)
    java.ask("list offsets", topic="newest", partition=0, timestamp=START_MS)
    java.ask("describe topic", topic="newest")
    java.ask("describe configs", kind="TOPIC", name="newest")
    java.ask("describe cluster")
    java.delete_topic("newest")
    broker.close()

    assert [one.record.value for one in found] == [b"%d" % number for number in range(10)]
    assert {key: max(versions) for key, versions in recorder.versions.items()} == NEWEST_VERSIONS
