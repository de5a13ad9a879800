"""OffsetCommit and OffsetFetch of version 10, which name topics by their ids (KIP-848)."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS
from tests.support.broker.group_user import READERS, GroupUser, group_broker

from tarry.base import errors
from tarry.broker.delayed.long_answers import LONG_REQUEST_ELEMENTS
from tarry.protocol import api_keys
from tarry.protocol.message import ZERO_UUID
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

VERSION = 10
NOBODYS = b"\x07" * 16

# By topic id, of each partition: index and error, or index, error and offset.
Codes = dict[bytes, list[tuple[int, int]]]
Offsets = dict[bytes, list[tuple[int, int, int]]]


@pytest.fixture
def user() -> GroupUser:
    return GroupUser(group_broker())


def id_of(user: GroupUser, name: str = ORDERS) -> bytes:
    return user.hand.broker.topics[name].topic_id


def commit(user: GroupUser, *topics: tuple[bytes, dict[int, int]], epoch: int = -1) -> Codes:
    request = OffsetCommitRequest(
        group_id=READERS,
        generation_id_or_member_epoch=epoch,
        topics=[
            OffsetCommitRequestTopic(
                topic_id=topic_id,
                partitions=[OffsetCommitRequestPartition(*row) for row in offsets.items()],
            )
            for topic_id, offsets in topics
        ],
    )
    user.client.send(api_keys.OFFSET_COMMIT, VERSION, request)
    user.hand.settle(1_000)
    answer = user.answer(OffsetCommitResponse)
    assert {topic.name for topic in answer.topics} == {""}
    assert len({topic.topic_id for topic in answer.topics}) == len(answer.topics)
    return {
        topic.topic_id: [(each.partition_index, each.error_code) for each in topic.partitions]
        for topic in answer.topics
    }


def fetch(user: GroupUser, *topics: tuple[bytes, list[int]], names_all: bool = False) -> Offsets:
    asked = [OffsetFetchRequestTopics("", *topic) for topic in topics]
    group = OffsetFetchRequestGroup(READERS, topics=None if names_all else asked)
    request = OffsetFetchRequest(groups=[group])
    answer = user.request(OffsetFetchResponse, api_keys.OFFSET_FETCH, VERSION, request)
    (found,) = answer.groups
    assert found.error_code == errors.NONE
    return {
        topic.topic_id: [
            (each.partition_index, each.error_code, each.committed_offset)
            for each in topic.partitions
        ]
        for topic in found.topics
    }


def test_offsets_are_committed_and_fetched_by_the_id_of_their_topic(user: GroupUser) -> None:
    orders = id_of(user)

    codes = commit(user, (orders, {0: 7, 2: 8}))

    assert codes == {orders: [(0, errors.NONE), (2, errors.NONE)]}
    assert fetch(user, (orders, [2, 1])) == {orders: [(2, 0, 8), (1, 0, -1)]}
    assert fetch(user, names_all=True) == {orders: [(0, 0, 7), (2, 0, 8)]}
    assert user.all_offsets() == {(ORDERS, 0): 7, (ORDERS, 2): 8}


def test_ids_of_no_topic_are_refused_singly_in_a_commit(user: GroupUser) -> None:
    orders = id_of(user)
    missing = (errors.UNKNOWN_TOPIC_OR_PARTITION, errors.UNKNOWN_TOPIC_ID)

    codes = commit(user, (NOBODYS, {0: 1}), (orders, {0: 7, 9: 7}), (ZERO_UUID, {0: 2, 1: 2}))

    assert codes == {
        NOBODYS: [(0, missing[1])],
        orders: [(0, errors.NONE), (9, missing[0])],
        ZERO_UUID: [(0, missing[1]), (1, missing[1])],
    }
    assert user.all_offsets() == {(ORDERS, 0): 7}


def test_ids_of_no_topic_are_refused_singly_in_a_fetch(user: GroupUser) -> None:
    orders = id_of(user)
    commit(user, (orders, {0: 7}))

    found = fetch(user, (NOBODYS, [0]), (ZERO_UUID, [1]), (orders, [0, 9]))

    assert found == {
        NOBODYS: [(0, errors.UNKNOWN_TOPIC_ID, -1)],
        ZERO_UUID: [(1, errors.UNKNOWN_TOPIC_ID, -1)],
        orders: [(0, errors.NONE, 7), (9, errors.NONE, -1)],
    }


def test_an_error_of_the_group_leaves_ids_of_no_topic_their_own(user: GroupUser) -> None:
    orders = id_of(user)

    codes = commit(user, (orders, {0: 7}), (NOBODYS, {0: 7}), epoch=3)

    assert codes == {
        orders: [(0, errors.GROUP_ID_NOT_FOUND)],
        NOBODYS: [(0, errors.UNKNOWN_TOPIC_ID)],
    }


def test_a_topic_named_twice_is_answered_once(user: GroupUser) -> None:
    orders = id_of(user)

    codes = commit(user, (orders, {0: 7}), (NOBODYS, {0: 7}), (orders, {0: 9, 1: 1}))

    assert codes[orders] == [(0, errors.NONE), (1, errors.NONE)]
    assert fetch(user, (orders, [0, 1]), (orders, [0])) == {orders: [(0, 0, 9), (1, 0, 1)]}


def test_the_id_of_a_topic_that_was_made_anew_is_another(user: GroupUser) -> None:
    before = id_of(user)
    commit(user, (before, {0: 7}))
    user.send_delete(ORDERS)
    user.hand.settle(1_000)
    user.answers()
    user.create(ORDERS, 4)
    after = id_of(user)

    codes = commit(user, (before, {0: 8}), (after, {1: 9}))

    assert after != before
    assert codes == {before: [(0, errors.UNKNOWN_TOPIC_ID)], after: [(1, errors.NONE)]}
    assert fetch(user, names_all=True) == {after: [(1, 0, 9)]}


def test_a_commit_of_thousands_of_partitions_names_its_topics_by_ids(user: GroupUser) -> None:
    count = LONG_REQUEST_ELEMENTS + 100
    user.create("wide", count)
    wide = id_of(user, "wide")

    codes = commit(user, (wide, dict.fromkeys(range(count), 5)), (NOBODYS, {0: 1}))

    assert codes[NOBODYS] == [(0, errors.UNKNOWN_TOPIC_ID)]
    assert codes[wide] == [(index, errors.NONE) for index in range(count)]
    assert len(user.all_offsets()) == count
