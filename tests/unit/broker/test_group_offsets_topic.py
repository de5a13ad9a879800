"""`__consumer_offsets`: made when first needed, written by the broker alone, and deleted."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS, User, a_batch
from tests.support.broker.group_user import (
    OFFSETS_TOPIC,
    READERS,
    GroupUser,
    commit_codes,
    group_broker,
    pass_time,
    stable_group,
    waiting_in,
)

from tarry.base import errors
from tarry.base.errors import StorageError
from tarry.broker.broker import Broker
from tarry.protocol import api_keys
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tarry.protocol.messages.join_group import JoinGroupResponse
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tarry.simulation.by_hand import BrokerByHand
from tarry.simulation.disk import SimulatedDisk


def groups_topic(broker: Broker) -> tuple[int, int, dict[str, str]]:
    """Partitions, replicas and settings of the topic."""
    topic = broker.cluster.topics[OFFSETS_TOPIC]
    return len(topic.partitions), len(topic.partitions[0].replicas), dict(topic.configs)


# --- Creation.


def test_the_first_who_asks_for_a_coordinator_makes_the_topic() -> None:
    hand = BrokerByHand({"offsets.topic.segment.bytes": "2097152"})
    user = GroupUser(hand)
    before = OFFSETS_TOPIC in hand.broker.topics

    found = user.find()

    partitions, replicas, configs = groups_topic(hand.broker)
    assert not before
    assert (found.error_code, found.node_id) == (errors.NONE, hand.broker.broker_id)
    assert (found.host, found.port) == ("127.0.0.1", 9092)
    assert (partitions, replicas) == (50, 1)
    assert configs == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "2097152",
    }


def test_many_who_ask_at_once_wait_for_one_creation() -> None:
    hand = BrokerByHand({"offsets.topic.num.partitions": "3"})
    users = [GroupUser(hand) for _ in range(20)]

    for number, user in enumerate(users):
        request = FindCoordinatorRequest(key=f"group {number}", key_type=0)
        user.client.send(api_keys.FIND_COORDINATOR, 3, request)
    before = [user.answers() for user in users]
    hand.settle()

    assert before == [[]] * 20
    codes = [user.answer(FindCoordinatorResponse).error_code for user in users]
    assert codes == [errors.NONE] * 20
    assert groups_topic(hand.broker)[0] == 3
    assert hand.broker.changes.waits.purgatory.delayed == 0


def test_a_topic_that_could_not_be_recorded_is_made_for_the_next_who_asks() -> None:
    hand = BrokerByHand({"offsets.topic.num.partitions": "1"})
    user = GroupUser(hand)
    hand.disk.fail_writes(1, "metadata")

    refused = user.find()
    found = user.find()

    assert refused.error_code == errors.COORDINATOR_NOT_AVAILABLE
    assert found.error_code == errors.NONE


class RefusingDisk:
    """The simulated disk, which makes no directory of this name for as long as it has one."""

    def __init__(self, disk: SimulatedDisk, name: str) -> None:
        self.disk = disk
        self.name = name

    def __getattr__(self, name: str) -> object:
        return getattr(self.disk, name)

    def make_directory(self, path: str) -> None:
        if self.name and self.name in path:
            raise StorageError(f"{path}: Too many open files")
        self.disk.make_directory(path)


def test_a_topic_whose_directories_cannot_be_made_is_not_available_until_they_are() -> None:
    hand = BrokerByHand({"offsets.topic.num.partitions": "3"})
    user = GroupUser(hand)
    user.create(ORDERS)
    disk = RefusingDisk(hand.disk, f"{OFFSETS_TOPIC}-1")
    hand.broker.logs.files.disk = disk  # type: ignore[assignment]
    hand.broker.logs.disk = disk  # type: ignore[assignment]

    early = (user.find().error_code, user.find().error_code, user.commit({0: 7}))
    disk.name = ""
    pass_time(hand, 1_500)
    late = user.find().error_code

    assert early == (
        errors.COORDINATOR_NOT_AVAILABLE,
        errors.COORDINATOR_NOT_AVAILABLE,
        [errors.NOT_COORDINATOR],
    )
    assert late == errors.NONE
    assert user.commit({0: 7}) == [errors.NONE]


def test_groups_are_not_served_before_somebody_asked_for_their_coordinator() -> None:
    hand = BrokerByHand()
    user = GroupUser(hand)

    committed = user.commit({0: 1})

    assert committed == [errors.NOT_COORDINATOR]
    assert OFFSETS_TOPIC not in hand.broker.topics


def test_metadata_of_the_topic_names_it_internal_and_makes_none() -> None:
    hand = BrokerByHand({"offsets.topic.num.partitions": "2"})
    user = GroupUser(hand)
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=OFFSETS_TOPIC)], allow_auto_topic_creation=True
    )

    before = user.request(MetadataResponse, api_keys.METADATA, 12, request).topics[0]
    user.find()
    after = user.request(MetadataResponse, api_keys.METADATA, 12, request).topics[0]

    assert (before.error_code, before.is_internal) == (errors.UNKNOWN_TOPIC_OR_PARTITION, True)
    assert (after.error_code, after.is_internal, len(after.partitions)) == (errors.NONE, True, 2)


def test_an_operator_may_make_the_topic_as_he_likes_it() -> None:
    hand = BrokerByHand()
    user = GroupUser(hand)
    user.create(ORDERS)
    topic = CreatableTopic(name=OFFSETS_TOPIC, num_partitions=2, replication_factor=1)

    made = user.request(
        CreateTopicsResponse,
        api_keys.CREATE_TOPICS,
        7,
        CreateTopicsRequest(topics=[topic], timeout_ms=5_000),
    )
    found = user.find()
    committed = user.commit({0: 7})

    assert made.topics[0].error_code == errors.NONE
    assert (found.error_code, groups_topic(hand.broker)[0]) == (errors.NONE, 2)
    assert (committed, user.offset()) == ([errors.NONE], 7)


@pytest.mark.parametrize("flushes", range(4))
def test_a_crash_while_the_topic_is_made_leaves_all_of_it_or_none(flushes: int) -> None:
    hand = BrokerByHand({"offsets.topic.num.partitions": "3"})
    user = GroupUser(hand)
    user.create(ORDERS)
    request = FindCoordinatorRequest(key=READERS, key_type=0)
    user.client.send(api_keys.FIND_COORDINATOR, 3, request)
    for _ in range(flushes):
        hand.turn(*hand.disk.complete_flushes())

    hand.crash()
    hand.settle()

    user = GroupUser(hand)
    assert user.find().error_code == errors.NONE
    assert groups_topic(hand.broker)[0] == 3
    assert user.commit({0: 7}) == [errors.NONE]
    assert user.offset() == 7


# --- Clients do not write to it.


@pytest.mark.parametrize("version", [3, 11, 13])
def test_a_produce_to_the_topic_is_refused(version: int) -> None:
    hand = group_broker()
    user = User(hand)
    end = hand.broker.topics[OFFSETS_TOPIC].partitions[0].log.log_end_offset

    refused = user.produce(a_batch(b"a"), topic=OFFSETS_TOPIC, version=version)

    assert refused.error_code == errors.INVALID_TOPIC_EXCEPTION
    assert hand.broker.topics[OFFSETS_TOPIC].partitions[0].log.log_end_offset == end


@pytest.mark.parametrize("name", ["__transaction_state", "__share_group_state"])
def test_topics_of_coordinators_to_come_are_not_written_to_either(name: str) -> None:
    hand = group_broker()
    user = User(hand)
    user.create(name)

    refused = user.produce(a_batch(b"a"), topic=name)

    assert refused.error_code == errors.INVALID_TOPIC_EXCEPTION


def test_after_a_start_the_topic_is_still_refused() -> None:
    hand = group_broker()
    hand.stop()
    hand.start()

    refused = User(hand).produce(a_batch(b"a"), topic=OFFSETS_TOPIC)

    assert refused.error_code == errors.INVALID_TOPIC_EXCEPTION


def test_a_produce_to_the_topic_without_an_answer_closes_the_connection() -> None:
    hand = group_broker()
    user = User(hand)

    user.send_produce(a_batch(b"a"), topic=OFFSETS_TOPIC, acks=0)

    assert user.client.is_closed


def test_a_refused_topic_does_not_keep_the_others_of_its_produce() -> None:
    hand = group_broker()
    user = User(hand)
    request = user.produce_request(a_batch(b"a"))
    request.topic_data.extend(user.produce_request(a_batch(b"b"), topic=OFFSETS_TOPIC).topic_data)

    answer = user.client.ask(api_keys.PRODUCE, 11, request)

    codes = [topic.partition_responses[0].error_code for topic in answer.responses]  # type: ignore[attr-defined]
    assert codes == [errors.NONE, errors.INVALID_TOPIC_EXCEPTION]


def test_the_topic_is_read_like_any_other() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    user.commit({0: 7})

    partition = user.fetch(0, topic=OFFSETS_TOPIC)

    assert (partition.error_code, partition.high_watermark) == (errors.NONE, 1)


# --- Deletion.


def test_with_the_topic_all_groups_are_gone() -> None:
    hand = group_broker()
    (member,) = stable_group(hand)
    member.commit_as_member({0: 7})

    GroupUser(hand).delete(OFFSETS_TOPIC)
    without = member.heartbeat()
    found = member.find()
    after = member.heartbeat()

    assert without == errors.NOT_COORDINATOR
    assert found.error_code == errors.NONE
    assert after == errors.UNKNOWN_MEMBER_ID
    assert member.offset() == -1
    assert member.group_ids() == []
    assert waiting_in(hand) == {}


def test_who_waits_in_a_group_looks_for_another_coordinator_when_the_topic_goes() -> None:
    hand = group_broker()
    waiting, other = stable_group(hand, 2)
    waiting.send_join()

    GroupUser(hand).delete(OFFSETS_TOPIC)

    assert waiting.answer(JoinGroupResponse).error_code == errors.NOT_COORDINATOR
    assert other.heartbeat() == errors.NOT_COORDINATOR
    assert hand.broker.groups.waiting == 0
    assert waiting_in(hand) == {}


def test_a_commit_on_its_way_is_refused_when_the_topic_goes() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    GroupUser(hand).send_delete(OFFSETS_TOPIC)
    user.send_commit({0: 7})

    hand.settle()

    (answer,) = user.answers()
    assert commit_codes(answer)[0] in (errors.NONE, errors.NOT_COORDINATOR)
    assert hand.broker.groups.waiting == 0
    assert waiting_in(hand) == {}


@pytest.mark.parametrize("flushes", range(6))
def test_a_crash_while_the_topic_goes_leaves_all_groups_or_none(flushes: int) -> None:
    hand = group_broker()
    user = GroupUser(hand)
    user.commit({0: 7})
    user.send_delete(OFFSETS_TOPIC)
    for _ in range(flushes):
        hand.turn(*hand.disk.complete_flushes())
    was_told = bool(user.answers())

    hand.crash()
    hand.settle()
    pass_time(hand, 2_000)

    user = GroupUser(hand)
    assert user.find().error_code == errors.NONE
    assert user.offset() in ((-1,) if was_told else (-1, 7))
    assert user.commit({0: 8}) == [errors.NONE]
    assert user.offset() == 8
