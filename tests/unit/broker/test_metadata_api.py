"""Metadata over frames: which topics, in which version, and topics that come into being by it."""

from __future__ import annotations

import pytest

from tarry.base import errors
from tarry.base.doors import connected
from tarry.broker.metadata import auto_creations
from tarry.protocol import api_keys
from tarry.protocol.message import ZERO_UUID
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tarry.simulation.by_hand import BrokerByHand, ClientByHand

NOT_ASKED = -(2**31)


def ask(client: ClientByHand, request: MetadataRequest, version: int) -> MetadataResponse:
    response = client.ask(api_keys.METADATA, version, request)
    assert isinstance(response, MetadataResponse)
    return response


def names(*topics: str, create: bool = False) -> MetadataRequest:
    asked = [MetadataRequestTopic(name=name) for name in topics]
    return MetadataRequest(asked, allow_auto_topic_creation=create)


def ids(*topic_ids: bytes) -> MetadataRequest:
    return MetadataRequest(
        [MetadataRequestTopic(topic_id, None) for topic_id in topic_ids],
        allow_auto_topic_creation=False,
    )


@pytest.fixture
def broker(topic) -> BrokerByHand:
    hand = BrokerByHand({"node.id": "7", "broker.rack": "r1", "num.partitions": "2"})
    client = hand.connect()
    topic(client, "orders", 3)
    topic(client, "bills")
    return hand


@pytest.mark.parametrize("version", range(14))
def test_every_version_tells_brokers_and_topics(broker, version):
    response = ask(broker.connect(), names("orders", create=version < 4), version)

    (node,) = response.brokers
    assert (node.node_id, node.host, node.port) == (7, "127.0.0.1", 9092)
    assert node.rack == ("r1" if version >= 1 else None)
    assert response.controller_id == (7 if version >= 1 else -1)
    assert response.cluster_id == (broker.broker.cluster.cluster_id if version >= 2 else None)
    (topic,) = response.topics
    assert (topic.error_code, topic.name, topic.is_internal) == (errors.NONE, "orders", False)
    assert (topic.topic_id != ZERO_UUID) == (version >= 10)
    assert [partition.partition_index for partition in topic.partitions] == [0, 1, 2]
    for partition in topic.partitions:
        assert (partition.error_code, partition.leader_id) == (errors.NONE, 7)
        assert (partition.replica_nodes, partition.isr_nodes) == ([7], [7])
        assert partition.offline_replicas == []
        assert partition.leader_epoch == (0 if version >= 7 else -1)
    assert topic.topic_authorized_operations == NOT_ASKED
    assert response.cluster_authorized_operations == NOT_ASKED


def test_null_asks_for_all_topics_and_an_empty_list_for_none(broker):
    client = broker.connect()

    for version in range(1, 14):
        request = MetadataRequest(None)
        assert [topic.name for topic in ask(client, request, version).topics] == ["bills", "orders"]
        assert ask(client, MetadataRequest([]), version).topics == []


def test_in_version_0_an_empty_list_asks_for_all(broker):
    response = ask(broker.connect(), MetadataRequest([]), 0)

    assert [topic.name for topic in response.topics] == ["bills", "orders"]


def test_a_topic_is_found_by_its_id(broker):
    topic_id = broker.broker.topics["orders"].topic_id

    for version in (12, 13):
        (topic,) = ask(broker.connect(), ids(topic_id), version).topics
        assert (topic.name, topic.topic_id, len(topic.partitions)) == ("orders", topic_id, 3)


def test_an_unknown_id_is_answered_as_such(broker):
    (topic,) = ask(broker.connect(), ids(b"?" * 16), 12).topics

    assert (topic.error_code, topic.name, topic.topic_id) == (
        errors.UNKNOWN_TOPIC_ID,
        None,
        b"?" * 16,
    )


@pytest.mark.parametrize("version", [10, 11])
def test_ids_were_not_to_be_used_before_version_12(broker, version):
    request = ids(broker.broker.topics["orders"].topic_id)

    response = ask(broker.connect(), request, version)

    assert [topic.error_code for topic in response.topics] == [errors.INVALID_REQUEST]
    assert response.brokers == []


def test_neither_name_nor_id_is_an_invalid_request(broker):
    response = ask(broker.connect(), ids(ZERO_UUID), 13)

    assert response.error_code == errors.INVALID_REQUEST
    assert response.topics[0].error_code == errors.INVALID_REQUEST


def test_a_topic_that_is_named_twice_is_told_once(broker):
    response = ask(broker.connect(), names("orders", "nope", "orders"), 9)

    assert [topic.name for topic in response.topics] == ["orders", "nope"]


def test_what_is_allowed_is_told_to_who_asks(broker):
    request = MetadataRequest(None)
    request.include_topic_authorized_operations = True
    request.include_cluster_authorized_operations = True

    response = ask(broker.connect(), request, 10)

    # The numbers that Apache Kafka 4.1 answers without an authorizer.
    assert [topic.topic_authorized_operations for topic in response.topics] == [3576, 3576]
    assert response.cluster_authorized_operations == 8096


@pytest.mark.parametrize("is_allowed", [True, False])
def test_an_invalid_name_is_answered_as_such_and_makes_no_topic(broker, is_allowed):
    response = ask(broker.connect(), names("a b", "", create=is_allowed), 12)

    assert [topic.error_code for topic in response.topics] == [errors.INVALID_TOPIC_EXCEPTION] * 2


def test_a_topic_comes_into_being_when_broker_and_request_consent(broker):
    (topic,) = ask(broker.connect(), names("fresh", create=True), 12).topics

    assert topic.error_code == errors.NONE
    assert len(topic.partitions) == 2
    assert len(broker.broker.topics["fresh"].partitions) == 2


@pytest.mark.parametrize("version", range(4))
def test_old_versions_always_consent(broker, version):
    (topic,) = ask(broker.connect(), names("fresh", create=True), version).topics

    assert topic.error_code == errors.NONE


def test_a_topic_does_not_come_into_being_without_the_requests_consent(broker):
    (topic,) = ask(broker.connect(), names("fresh"), 12).topics

    assert topic.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert "fresh" not in broker.broker.topics


def test_a_topic_does_not_come_into_being_without_the_brokers_consent():
    broker = BrokerByHand({"auto.create.topics.enable": "false"})

    (topic,) = ask(broker.connect(), names("fresh", create=True), 12).topics

    assert topic.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.broker.topics.names() == []


def test_two_clients_that_ask_for_a_new_topic_in_one_turn_both_get_it(broker):
    first, second = broker.connect(), broker.connect()

    first.send(api_keys.METADATA, 12, names("fresh", create=True))
    second.send(api_keys.METADATA, 12, names("fresh", create=True))
    broker.settle()

    for client in (first, second):
        (answer,) = client.answers()
        assert isinstance(answer, MetadataResponse)
        assert answer.topics[0].error_code == errors.NONE


def test_a_new_topic_that_clashes_is_refused_for_good(broker, topic):
    client = broker.connect()
    topic(client, "a.b")

    (answer,) = ask(client, names("a_b", create=True), 12).topics

    assert answer.error_code == errors.INVALID_TOPIC_EXCEPTION


def test_a_new_topic_whose_default_cannot_be_is_refused_so():
    broker = BrokerByHand({"default.replication.factor": "0"})

    (topic,) = ask(broker.connect(), names("fresh", create=True), 12).topics

    assert topic.error_code == errors.INVALID_REPLICATION_FACTOR


def test_a_new_topic_that_the_disk_refuses_stays_unknown(broker):
    broker.disk.fail_writes()

    (topic,) = ask(broker.connect(), names("fresh", create=True), 12).topics

    assert topic.error_code == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_a_new_topic_that_takes_too_long_stays_unknown_for_now(broker):
    client = broker.connect()

    client.send(api_keys.METADATA, 12, names("fresh", create=True))
    for _ in range(10):
        broker.turn(after_ms=900)
    (answer,) = client.answers()

    assert isinstance(answer, MetadataResponse)
    assert answer.topics[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_topics_of_the_coordinators_do_not_come_into_being_by_asking(broker):
    (topic,) = ask(broker.connect(), names("__consumer_offsets", create=True), 12).topics

    assert (topic.error_code, topic.is_internal) == (errors.UNKNOWN_TOPIC_OR_PARTITION, True)


def test_a_client_is_told_the_address_of_the_listener_that_it_came_through():
    broker = BrokerByHand({"advertised.listeners": "PLAINTEXT://other.example:1234"})

    (node,) = ask(broker.connect(), names(), 12).brokers

    assert (node.host, node.port) == ("other.example", 1234)


def test_after_an_unclean_stop_the_leader_epoch_has_grown(broker):
    broker.crash()

    (topic,) = ask(broker.connect(), names("bills"), 12).topics

    assert topic.partitions[0].leader_epoch == 1


def test_a_host_creates_so_many_topics_a_minute_and_another_is_not_held_up(
    broker: BrokerByHand, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_creations, "TOPICS_AUTO_CREATED_PER_MINUTE_MAX", 10)
    codes = []
    for first in range(0, 15, 5):
        wanted = [f"t{number}" for number in range(first, first + 5)]
        response = ask(broker.connect(), names(*wanted, create=True), 12)
        codes += [topic.error_code for topic in response.topics]
    broker.turn(connected(99, "PLAINTEXT", "10.0.0.2:1"))
    honest = ask(ClientByHand(broker, 99), names("honest", create=True), 12)
    lines = [r.getMessage() for r in caplog.records if "creates at most 10 a minute" in r.message]
    for _ in range(auto_creations.MINUTE_MS // 400 + 1):
        broker.turn(after_ms=400)
    later = ask(broker.connect(), names("t14", create=True), 12)

    assert codes == [errors.NONE] * 10 + [errors.UNKNOWN_TOPIC_OR_PARTITION] * 5
    assert [topic.error_code for topic in honest.topics] == [errors.NONE]
    assert len(lines) == 1
    assert "5 are not created now" in lines[0]
    assert [topic.error_code for topic in later.topics] == [errors.NONE]
