"""CreateTopics and DeleteTopics over frames: durability, time-outs, failures, every version."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS, a_batch
from tests.support.broker.group_user import GroupUser

from tarry.base import doors, errors
from tarry.protocol import api_keys
from tarry.protocol.message import ZERO_UUID
from tarry.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tarry.simulation.by_hand import BrokerByHand, ClientByHand


def wanted(name: str, partitions: int = 1, **configs: str) -> CreatableTopic:
    return CreatableTopic(
        name,
        partitions,
        -1,
        configs=[CreatableTopicConfig(key.replace("_", "."), configs[key]) for key in configs],
    )


def creation(*topics: CreatableTopic, timeout_ms: int = 5_000) -> CreateTopicsRequest:
    return CreateTopicsRequest(list(topics), timeout_ms)


def create(
    client: ClientByHand, request: CreateTopicsRequest, version: int = 7
) -> list[CreatableTopicResult]:
    response = client.ask(api_keys.CREATE_TOPICS, version, request)
    assert isinstance(response, CreateTopicsResponse)
    return response.topics


def create_answers(client: ClientByHand) -> list[int]:
    codes: list[int] = []
    for answer in client.answers():
        assert isinstance(answer, CreateTopicsResponse)
        codes.extend(topic.error_code for topic in answer.topics)
    return codes


def delete(
    client: ClientByHand, *topics: str | bytes, version: int = 6
) -> list[DeletableTopicResult]:
    request = DeleteTopicsRequest(timeout_ms=5_000)
    for topic in topics:
        if version < 6:
            assert isinstance(topic, str)
            request.topic_names.append(topic)
        elif isinstance(topic, str):
            request.topics.append(DeleteTopicState(name=topic))
        else:
            request.topics.append(DeleteTopicState(topic_id=topic))
    response = client.ask(api_keys.DELETE_TOPICS, version, request)
    assert isinstance(response, DeleteTopicsResponse)
    return response.responses


@pytest.fixture
def broker() -> BrokerByHand:
    return BrokerByHand({"num.partitions": "2"})


@pytest.mark.parametrize("version", range(2, 8))
def test_a_topic_is_created_with_every_version(broker, version):
    (result,) = create(broker.connect(), creation(wanted("orders", -1)), version)

    assert (result.error_code, result.error_message) == (errors.NONE, None)
    assert len(broker.broker.topics["orders"].partitions) == 2
    assert (result.num_partitions, result.replication_factor) == (
        (2, 1) if version > 4 else (-1,) * 2
    )
    assert (result.topic_id != ZERO_UUID) == (version >= 7)


def test_an_answer_tells_the_settings_and_where_they_come_from(broker):
    (result,) = create(broker.connect(), creation(wanted("orders", retention_ms="5")))

    configs = {config.name: config for config in result.configs or []}
    assert len(configs) == 44
    assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("5", 1)
    assert configs["segment.ms"].config_source == 5
    assert list(configs) == sorted(configs)


def test_a_creation_is_answered_when_it_is_durable_and_not_before(broker):
    client = broker.connect()

    client.send(api_keys.CREATE_TOPICS, 7, creation(wanted("orders")))
    broker.turn()
    before = create_answers(client)
    broker.settle()

    assert before == []
    assert create_answers(client) == [errors.NONE]
    broker.crash()
    assert "orders" in broker.broker.topics


def test_a_creation_that_was_not_durable_may_be_gone_after_a_crash_and_nobody_was_told():
    broker = BrokerByHand()
    client = broker.connect()

    client.send(api_keys.CREATE_TOPICS, 7, creation(wanted("orders")))

    assert client.answers() == []
    assert "orders" not in broker.broker.cluster.topics


def test_of_two_creations_in_one_turn_the_second_is_refused(broker):
    first, second = broker.connect(), broker.connect()

    first.send(api_keys.CREATE_TOPICS, 7, creation(wanted("orders")))
    second.send(api_keys.CREATE_TOPICS, 7, creation(wanted("orders")))
    broker.settle()

    assert create_answers(first) == [errors.NONE]
    assert create_answers(second) == [errors.TOPIC_ALREADY_EXISTS]


def test_a_refusal_waits_until_what_it_rests_on_is_durable(broker):
    first, second, third = broker.connect(), broker.connect(), broker.connect()
    first.send(api_keys.CREATE_TOPICS, 7, creation(wanted("orders")))
    second.send(api_keys.CREATE_TOPICS, 7, creation(wanted("orders")))
    before = second.answers()
    broker.settle()
    after = create_answers(second)

    gone = DeleteTopicsRequest([DeleteTopicState(name="orders")], timeout_ms=5_000)
    first.send(api_keys.DELETE_TOPICS, 6, gone)
    third.send(api_keys.DELETE_TOPICS, 6, gone)
    before += third.answers()
    broker.settle()
    (refused,) = third.answers()

    assert before == []
    assert after == [errors.TOPIC_ALREADY_EXISTS]
    assert refused.responses[0].error_code == errors.UNKNOWN_TOPIC_OR_PARTITION


def test_a_refusal_for_what_the_disk_then_refused_is_none(broker):
    first, second = broker.connect(), broker.connect()
    broker.disk.fail_writes(path_part="__cluster_metadata")

    broker.turn(
        doors.received(
            first.connection_id,
            first.encode(api_keys.CREATE_TOPICS, 7, creation(wanted("orders"))),
        ),
        doors.received(
            second.connection_id,
            second.encode(api_keys.CREATE_TOPICS, 7, creation(wanted("orders"))),
        ),
    )
    broker.settle()

    assert create_answers(first) == [errors.KAFKA_STORAGE_ERROR]
    assert create_answers(second) == [errors.KAFKA_STORAGE_ERROR]


def test_validate_only_creates_nothing(broker):
    client = broker.connect()
    request = creation(wanted("orders"), wanted("a b"))
    request.validate_only = True

    results = create(client, request)

    assert [result.error_code for result in results] == [
        errors.NONE,
        errors.INVALID_TOPIC_EXCEPTION,
    ]
    assert results[0].num_partitions == 1
    assert broker.broker.cluster.topics == {}


def test_each_topic_of_a_request_has_its_own_answer_in_its_place(broker):
    results = create(
        broker.connect(),
        creation(wanted("a"), wanted("b", retention_ms="x"), wanted("c"), wanted("a")),
    )

    assert [(result.name, result.error_code) for result in results] == [
        ("a", errors.INVALID_REQUEST),
        ("b", errors.INVALID_CONFIG),
        ("c", errors.NONE),
    ]
    assert results[1].error_message == "retention.ms=x: it must be a whole number"
    assert (results[1].num_partitions, results[1].configs) == (-1, [])


def test_an_assignment_names_the_replicas(broker):
    assignment = [CreatableReplicaAssignment(1, [1]), CreatableReplicaAssignment(0, [1])]
    topic = CreatableTopic("orders", -1, -1, assignment)

    (result,) = create(broker.connect(), creation(topic))

    assert result.error_code == errors.NONE
    assert result.num_partitions == 2


def test_an_empty_request_has_an_empty_answer(broker):
    assert create(broker.connect(), creation()) == []


def test_a_creation_that_the_disk_refuses_is_answered_so_and_may_be_repeated(broker):
    client = broker.connect()
    broker.disk.fail_writes()

    (failed,) = create(client, creation(wanted("orders")))
    (repeated,) = create(client, creation(wanted("orders")))

    assert failed.error_code == errors.KAFKA_STORAGE_ERROR
    assert "nothing was changed" in (failed.error_message or "")
    assert repeated.error_code == errors.NONE


def test_a_creation_that_takes_too_long_is_answered_so_and_still_done(broker):
    client = broker.connect()

    client.send(api_keys.CREATE_TOPICS, 7, creation(wanted("orders"), timeout_ms=100))
    broker.turn(after_ms=200)
    codes = create_answers(client)
    broker.settle()

    assert codes == [errors.REQUEST_TIMED_OUT]
    assert "orders" in broker.broker.topics


def test_a_peer_that_goes_away_while_it_waits_is_no_trouble(broker):
    client = broker.connect()
    client.send(api_keys.CREATE_TOPICS, 7, creation(wanted("orders")))

    broker.broker.answers.close(broker.broker.answers.connections[client.connection_id], "gone")
    broker.settle()

    assert "orders" in broker.broker.topics


@pytest.mark.parametrize("version", range(1, 7))
def test_a_topic_is_deleted_with_every_version(broker, version):
    client = broker.connect()
    create(client, creation(wanted("orders")))
    topic_id = broker.broker.topics["orders"].topic_id

    known, unknown = delete(client, "orders", "bills", version=version)

    assert (known.name, known.error_code) == ("orders", errors.NONE)
    assert (unknown.name, unknown.error_code) == ("bills", errors.UNKNOWN_TOPIC_OR_PARTITION)
    assert known.topic_id == (topic_id if version >= 6 else ZERO_UUID)
    assert broker.broker.topics.names() == []


def test_a_topic_is_deleted_by_its_id(broker):
    client = broker.connect()
    create(client, creation(wanted("orders")))
    topic_id = broker.broker.topics["orders"].topic_id

    (first,) = delete(client, topic_id)
    (second,) = delete(client, topic_id)

    assert (first.name, first.error_code) == ("orders", errors.NONE)
    assert (second.name, second.error_code) == (None, errors.UNKNOWN_TOPIC_ID)


def test_who_waits_for_a_deletion_can_create_the_topic_again_at_once(broker):
    client = broker.connect()
    create(client, creation(wanted("orders")))
    first_id = broker.broker.topics["orders"].topic_id

    for _ in range(5):
        (deleted,) = delete(client, "orders")
        (created,) = create(client, creation(wanted("orders")))
        assert (deleted.error_code, created.error_code) == (errors.NONE, errors.NONE)

    assert broker.broker.topics["orders"].topic_id != first_id
    assert broker.broker.cluster.deleted_topics == {}


def test_a_deletion_that_is_under_way_keeps_the_name(broker):
    first, second = broker.connect(), broker.connect()
    create(first, creation(wanted("orders")))

    first.send(
        api_keys.DELETE_TOPICS,
        6,
        DeleteTopicsRequest([DeleteTopicState(name="orders")], timeout_ms=5_000),
    )
    second.send(api_keys.CREATE_TOPICS, 7, creation(wanted("orders")))
    broker.settle()

    assert create_answers(second) == [errors.TOPIC_ALREADY_EXISTS]
    assert len(first.answers()) == 1


@pytest.mark.parametrize("turns", range(8))
def test_a_deletion_is_finished_after_a_crash_in_its_middle(turns):
    broker = BrokerByHand(seed=turns)
    client = broker.connect()
    create(client, creation(wanted("orders", 3)))
    client.send(
        api_keys.DELETE_TOPICS,
        6,
        DeleteTopicsRequest([DeleteTopicState(name="orders")], timeout_ms=5_000),
    )
    for _ in range(turns):
        broker.turn(*broker.disk.complete_flushes())

    is_acknowledged = len(client.answers()) == 1
    broker.crash()
    broker.settle()

    left = [path for path in broker.disk.paths() if path.startswith("orders-")]
    if is_acknowledged or "orders" not in broker.broker.topics:
        assert "orders" not in broker.broker.topics
        assert left == []
        assert broker.broker.cluster.deleted_topics == {}
    else:
        assert len(left) == 3
    client = broker.connect()
    assert create(client, creation(wanted("orders")))[0].error_code in (
        errors.NONE,
        errors.TOPIC_ALREADY_EXISTS,
    )


def test_deletion_can_be_switched_off():
    broker = BrokerByHand({"delete.topic.enable": "false"})
    client = broker.connect()
    create(client, creation(wanted("orders")))

    assert delete(client, "orders", version=2)[0].error_code == errors.INVALID_REQUEST
    assert delete(client, "orders")[0].error_code == errors.TOPIC_DELETION_DISABLED
    assert "orders" in broker.broker.topics


def test_with_the_settings_of_three_brokers_one_broker_serves():
    hand = BrokerByHand(
        {
            "default.replication.factor": "3",
            "min.insync.replicas": "2",
            "offsets.topic.replication.factor": "3",
            "auto.create.topics.enable": "true",
        }
    )
    user = GroupUser(hand)
    asked = creation(CreatableTopic(ORDERS, -1, -1))

    created = user.client.ask(api_keys.CREATE_TOPICS, 7, asked)
    produced = user.produce(a_batch(b"a"), acks=-1)
    found = user.find()
    committed = user.commit({0: 1})

    assert isinstance(created, CreateTopicsResponse)
    assert [(each.error_code, each.replication_factor) for each in created.topics] == [
        (errors.NONE, 1)
    ]
    assert (produced.error_code, found.error_code, committed) == (
        errors.NONE,
        errors.NONE,
        [errors.NONE],
    )


def test_more_replicas_than_brokers_are_refused_with_what_to_ask_for():
    user = GroupUser(BrokerByHand())
    asked = creation(CreatableTopic(ORDERS, 1, 3))

    answer = user.client.ask(api_keys.CREATE_TOPICS, 7, asked)

    assert isinstance(answer, CreateTopicsResponse)
    (topic,) = answer.topics
    assert topic.error_code == errors.INVALID_REPLICATION_FACTOR
    assert "ask for 1, or for -1" in (topic.error_message or "")


def test_a_refused_deletion_does_not_wait_for_the_data_of_another(broker: BrokerByHand) -> None:
    client, other = broker.connect(), broker.connect()
    topic_id = create(client, creation(wanted("orders")))[0].topic_id
    request = DeleteTopicsRequest([DeleteTopicState(name="orders")], timeout_ms=5_000)
    client.send(api_keys.DELETE_TOPICS, 6, request)
    broker.turn(*broker.disk.complete_flushes())
    assert broker.broker.cluster.deleted_topics
    request = DeleteTopicsRequest([DeleteTopicState(topic_id=topic_id)], timeout_ms=5_000)
    other.send(api_keys.DELETE_TOPICS, 6, request)
    (answer,) = other.answers()
    assert isinstance(answer, DeleteTopicsResponse)
    assert answer.responses[0].error_code == errors.UNKNOWN_TOPIC_ID
    assert not client.answers()
    broker.settle()
    assert len(client.answers()) == 1
