"""Offsets of a topic that is deleted: all of them go, and none comes back with its successor."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS, User
from tests.support.broker.group_user import (
    READERS,
    GroupUser,
    group_broker,
)

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tarry.simulation.by_hand import BrokerByHand, ClientByHand


def settled_answers(client: ClientByHand) -> list[Message]:
    """Turns, each with what was flushed, until the client is answered; nothing more."""
    for _ in range(50):
        found = client.answers()
        if found:
            return found
        client.hand.turn(*client.hand.disk.complete_flushes())
    raise AssertionError("no answer")


def replace_topic(user: User) -> None:
    """`orders` is deleted and made anew, in no more turns than the answers take."""
    delete_topic(user)
    topics = [CreatableTopic(name=ORDERS, num_partitions=1, replication_factor=1)]
    request = CreateTopicsRequest(topics=topics, timeout_ms=5_000)
    user.client.send(api_keys.CREATE_TOPICS, 7, request)
    (answer,) = settled_answers(user.client)
    assert isinstance(answer, CreateTopicsResponse)
    assert answer.topics[0].error_code == errors.NONE


def delete_topic(user: User, name: str = ORDERS) -> None:
    user.send_delete(name)
    (answer,) = settled_answers(user.client)
    assert isinstance(answer, DeleteTopicsResponse)
    assert answer.responses[0].error_code == errors.NONE


def commit_in_groups(user: GroupUser, count: int) -> list[str]:
    """Every group commits an offset of `orders`; their names."""
    groups = [f"group{number}" for number in range(count)]
    for group in groups:
        user.send_commit({0: 7}, group)
    user.hand.settle(1_000)
    assert len(user.answers()) == count
    return groups


def test_what_was_committed_for_a_deleted_topic_is_not_its_successors_after_a_crash() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    groups = commit_in_groups(user, 1_200)
    replace_topic(user)
    shard = hand.broker.groups.shards[0]
    assert ORDERS in shard.group(groups[-1]).offsets, "the crash must come before the end"

    hand.crash()
    hand.settle(1_000)

    reader = GroupUser(hand)
    assert {reader.offset(each) for each in groups} == {-1}


@pytest.mark.parametrize("names_topics", [True, False])
def test_what_was_committed_for_a_deleted_topic_is_not_its_successors_for_a_moment(
    *, names_topics: bool
) -> None:
    hand = group_broker()
    user = GroupUser(hand)
    groups = commit_in_groups(user, 1_200)
    replace_topic(user)
    shard = hand.broker.groups.shards[0]
    assert ORDERS in shard.group(groups[-1]).offsets, "it was forgotten too early for this test"

    topics = [OffsetFetchRequestTopics(ORDERS, partition_indexes=[0])] if names_topics else None
    asked = OffsetFetchRequestGroup(groups[-1], topics=topics)
    reader = GroupUser(hand)
    reader.client.send(api_keys.OFFSET_FETCH, 8, OffsetFetchRequest(groups=[asked]))

    answer = reader.answer(OffsetFetchResponse)
    found = [each.partitions[0].committed_offset for each in answer.groups[0].topics]
    assert found == ([-1] if names_topics else [])


def test_what_is_committed_for_a_topic_that_came_back_stays() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    groups = commit_in_groups(user, 1_000)
    hand.now_wall_ms -= 60_000
    replace_topic(user)
    hand.now_wall_ms -= 60_000

    last = groups[-1]
    assert user.commit({0: 9}, last) == [errors.NONE]

    hand.settle(1_000)
    assert user.offset(last) == 9
    assert user.offset(groups[0]) == -1


def test_a_topic_deleted_while_groups_are_loaded_takes_all_its_offsets_with_it() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    groups = commit_in_groups(user, 2_000)
    hand.crash()
    user = GroupUser(hand)
    delete_topic(user)
    assert hand.broker.groups.is_loading(), "too few groups for this test"

    hand.settle(1_000)

    assert {user.offset(each) for each in groups} == {-1}


def test_many_topics_deleted_at_once_are_forgotten_in_one_walk() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    names = [f"topic{number}" for number in range(20)]
    for name in names:
        user.create(name)
        assert user.commit({0: 1}, topic=name) == [errors.NONE]

    topics = [DeleteTopicState(name=name) for name in names]
    request = DeleteTopicsRequest(topics=topics, timeout_ms=5_000)
    user.client.send(api_keys.DELETE_TOPICS, 6, request)
    chores: list[int] = []
    while not user.answers():
        hand.turn(*hand.disk.complete_flushes())
        chores.append(len(hand.broker.groups._chores))
    hand.settle()

    assert max(chores) <= 1
    assert [user.offset(topic=name) for name in names] == [-1] * len(names)


def test_offsets_that_could_not_be_forgotten_are_forgotten_later() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    assert user.commit({0: 7}) == [errors.NONE]
    user.send_delete()
    while ORDERS in hand.broker.topics:
        hand.turn(*hand.disk.complete_flushes())
    hand.disk.capacity_bytes = hand.disk.used_bytes()
    hand.settle()
    hand.disk.heal()
    assert ORDERS in hand.broker.groups.shards[0].group(READERS).offsets

    hand.broker.groups.expire_offsets()
    hand.settle()

    assert GroupUser(hand).offset() == -1


def group_of_many_offsets() -> tuple[BrokerByHand, GroupUser]:
    """A group with 200 offsets of `wide`, whose tombstones no batch of 10,000 bytes holds."""
    hand = group_broker(message_max_bytes="10000")
    user = GroupUser(hand)
    user.create("wide", 200)
    for first in range(0, 200, 50):
        offsets = dict.fromkeys(range(first, first + 50), 1)
        assert {*user.commit(offsets, topic="wide")} == {errors.NONE}
    return hand, user


def test_a_group_whose_tombstones_are_more_than_a_batch_holds_can_be_deleted() -> None:
    hand, user = group_of_many_offsets()

    deleted = user.delete_groups()
    before = dict(hand.broker.groups.shards[0].groups.by_id)
    hand.crash()
    hand.settle()

    assert deleted == [errors.NONE]
    assert before == hand.broker.groups.shards[0].groups.by_id == {}


def test_a_deleted_topic_takes_more_offsets_with_it_than_a_batch_holds() -> None:
    hand, user = group_of_many_offsets()

    delete_topic(user, "wide")
    hand.settle()

    assert hand.broker.groups.shards[0].groups.by_id == {}
