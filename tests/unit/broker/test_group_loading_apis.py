"""While groups are being loaded: who asks is to come again, and nobody reads "no offset"."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS, a_batch, produced
from tests.support.broker.group_user import (
    OFFSETS_TOPIC,
    READERS,
    GroupUser,
    Member,
    commit_codes,
    group_broker,
    pass_time,
    stable_group,
    waiting_in,
)

from tarry.base import errors
from tarry.base.placement import partition_of_key
from tarry.protocol import api_keys
from tarry.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tarry.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from tarry.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tarry.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tarry.protocol.messages.join_group import JoinGroupResponse
from tarry.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from tarry.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tarry.protocol.messages.offset_delete import OffsetDeleteResponse
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from tarry.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tarry.simulation.by_hand import BrokerByHand

LOADING = errors.COORDINATOR_LOAD_IN_PROGRESS


def fill(user: GroupUser, group: str, megabytes: int) -> None:
    """A log that takes several turns to load: the same partitions over and over."""
    if "wide" not in user.hand.broker.topics:
        wide = CreatableTopic(name="wide", num_partitions=200, replication_factor=1)
        created = CreateTopicsRequest(topics=[wide], timeout_ms=1_000)
        user.client.ask(api_keys.CREATE_TOPICS, 7, created)
    rows = [
        OffsetCommitRequestPartition(
            partition_index=number, committed_offset=number, committed_metadata="x" * 4_096
        )
        for number in range(200)
    ]
    request = OffsetCommitRequest(
        group_id=group, topics=[OffsetCommitRequestTopic(name="wide", partitions=rows)]
    )
    for _ in range(megabytes):
        answer = user.client.ask(api_keys.OFFSET_COMMIT, 9, request)
        assert set(commit_codes(answer)) == {errors.NONE}


def groups_of_two_shards() -> tuple[str, str]:
    """A group in each of two partitions."""
    names = [f"group-{number}" for number in range(20)]
    first = next(each for each in names if partition_of_key(each, 2) == 0)
    second = next(each for each in names if partition_of_key(each, 2) == 1)
    return first, second


@pytest.fixture
def hand() -> BrokerByHand:
    """A broker that has much to load: the group `filler` and the Stable group `readers`."""
    hand = group_broker()
    fill(GroupUser(hand), "filler", 4)
    (member,) = stable_group(hand)
    member.commit_as_member({0: 7})
    return hand


def test_who_asks_while_groups_are_loaded_is_told_to_come_again(hand: BrokerByHand) -> None:
    member_id = GroupUser(hand).describe().members[0].member_id
    hand.crash()
    member = Member(hand)
    member.member_id, member.generation_id = member_id, 1
    client = member.client
    frames = [
        client.encode(api_keys.JOIN_GROUP, 9, member.join_request()),
        client.encode(
            api_keys.SYNC_GROUP,
            5,
            SyncGroupRequest(group_id=READERS, generation_id=1, member_id=member_id),
        ),
        client.encode(
            api_keys.HEARTBEAT,
            4,
            HeartbeatRequest(group_id=READERS, generation_id=1, member_id=member_id),
        ),
        client.encode(
            api_keys.LEAVE_GROUP,
            5,
            LeaveGroupRequest(group_id=READERS, members=[MemberIdentity(member_id=member_id)]),
        ),
        client.encode(api_keys.OFFSET_COMMIT, 9, member.commit_request({0: 8, 1: 8})),
        client.encode(
            api_keys.OFFSET_FETCH,
            9,
            OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=READERS, topics=None)]),
        ),
        client.encode(api_keys.DESCRIBE_GROUPS, 6, DescribeGroupsRequest(groups=[READERS])),
        client.encode(api_keys.LIST_GROUPS, 5, ListGroupsRequest()),
        client.encode(api_keys.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=[READERS])),
        client.encode(api_keys.OFFSET_DELETE, 0, member.delete_offsets_request(0)),
        client.encode(
            api_keys.FIND_COORDINATOR, 3, FindCoordinatorRequest(key=READERS, key_type=0)
        ),
    ]

    client.send_bytes(b"".join(frames))
    join, sync, heartbeat, leave, commit, fetch, describe, listed, delete, offsets, find = (
        member.answers()
    )

    assert isinstance(join, JoinGroupResponse)
    assert join.error_code == LOADING
    # Java's consumer gives up at any other code: it must join again.
    assert isinstance(sync, SyncGroupResponse)
    assert sync.error_code == errors.REBALANCE_IN_PROGRESS
    # The member stays.
    assert isinstance(heartbeat, HeartbeatResponse)
    assert heartbeat.error_code == errors.NONE
    assert isinstance(leave, LeaveGroupResponse)
    assert leave.error_code == LOADING
    assert commit_codes(commit) == [LOADING, LOADING]
    assert isinstance(fetch, OffsetFetchResponse)
    assert (fetch.groups[0].error_code, fetch.groups[0].topics) == (LOADING, [])
    assert isinstance(describe, DescribeGroupsResponse)
    assert describe.groups[0].error_code == LOADING
    assert isinstance(listed, ListGroupsResponse)
    assert (listed.error_code, listed.groups) == (LOADING, [])
    assert isinstance(delete, DeleteGroupsResponse)
    assert delete.results[0].error_code == LOADING
    assert isinstance(offsets, OffsetDeleteResponse)
    assert offsets.error_code == LOADING
    assert isinstance(find, FindCoordinatorResponse)
    assert find.error_code == errors.NONE


def test_at_no_turn_of_the_loading_is_there_no_offset(hand: BrokerByHand) -> None:
    hand.crash()
    user = GroupUser(hand)
    asked = OffsetFetchRequestGroup(group_id=READERS, topics=None)
    request = OffsetFetchRequest(groups=[asked])

    seen: list[tuple[int, list[int]]] = []
    while not seen or seen[-1][0] != errors.NONE:
        user.client.send(api_keys.OFFSET_FETCH, 9, request)
        group = user.answer(OffsetFetchResponse).groups[0]
        offsets = [each.committed_offset for topic in group.topics for each in topic.partitions]
        seen.append((group.error_code, offsets))

    assert len(seen) > 5
    assert seen[:-1] == [(LOADING, [])] * (len(seen) - 1)
    assert seen[-1] == (errors.NONE, [7])


@pytest.mark.parametrize("version", range(1, 8))
def test_before_version_8_loading_is_told_in_its_version_s_place(
    hand: BrokerByHand, version: int
) -> None:
    hand.crash()
    user = GroupUser(hand)
    topics = [OffsetFetchRequestTopic(name=ORDERS, partition_indexes=[0])]
    request = OffsetFetchRequest(group_id=READERS, topics=topics)

    user.client.send(api_keys.OFFSET_FETCH, version, request)
    answer = user.answer(OffsetFetchResponse)

    if version >= 2:
        assert answer.error_code == LOADING
    else:
        row = answer.topics[0].partitions[0]
        assert (row.error_code, row.committed_offset) == (LOADING, -1)


def test_a_broker_that_loads_goes_on_serving(hand: BrokerByHand) -> None:
    hand.crash()
    shard = hand.broker.groups.shards[0]
    user = GroupUser(hand)

    user.send_produce(a_batch(b"a"))
    hand.turn(*hand.disk.complete_flushes())
    (answer,) = user.answers()

    assert shard.runtime.error_code == LOADING
    assert produced(answer)[0].error_code == errors.NONE


def test_a_member_that_lived_through_the_loading_has_a_session_since_its_end(
    hand: BrokerByHand,
) -> None:
    member_id = GroupUser(hand).describe().members[0].member_id
    hand.crash()
    hand.now_ms += 100_000
    hand.settle()
    member = Member(hand)
    member.member_id, member.generation_id = member_id, 1

    pass_time(hand, 9_999)

    assert member.heartbeat() == errors.NONE


# --- One partition and another.


def test_a_partition_that_loads_slowly_does_not_keep_the_groups_of_another() -> None:
    slow, quick = groups_of_two_shards()
    hand = group_broker(offsets_topic_num_partitions="2")
    fill(GroupUser(hand), slow, 8)
    (member,) = stable_group(hand, 1, quick)
    hand.crash()
    shards = hand.broker.groups.shards
    while shards[partition_of_key(quick, 2)].runtime.error_code != errors.NONE:
        hand.turn()
    member.client = hand.connect()

    member.send_commit(
        {0: 7}, quick, member_id=member.member_id, generation_id=member.generation_id
    )
    member.client.send(
        api_keys.HEARTBEAT,
        4,
        HeartbeatRequest(group_id=quick, generation_id=1, member_id=member.member_id),
    )
    hand.turn(*hand.disk.complete_flushes())
    hand.turn()
    commit, heartbeat = member.answers()
    still = shards[partition_of_key(slow, 2)].runtime.error_code

    assert still == LOADING
    assert commit_codes(commit) == [errors.NONE]
    assert isinstance(heartbeat, HeartbeatResponse)
    assert heartbeat.error_code == errors.NONE


def test_a_partition_whose_disk_refuses_does_not_keep_the_groups_of_another() -> None:
    first, second = groups_of_two_shards()
    hand = group_broker(offsets_topic_num_partitions="2")
    members = [stable_group(hand, 1, group)[0] for group in (first, second)]
    hand.disk.fail_writes(10, f"{OFFSETS_TOPIC}-0")

    codes = [member.commit_as_member({0: 7})[0] for member in members]
    beats = [member.heartbeat() for member in members]

    assert codes == [errors.NOT_COORDINATOR, errors.NONE]
    assert beats == [errors.NONE, errors.NONE]
    assert members[1].offset(second) == 7


def test_a_partition_that_cannot_be_read_is_not_available_and_the_others_are(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = groups_of_two_shards()
    hand = group_broker(offsets_topic_num_partitions="2")
    user = GroupUser(hand)
    for group in (first, second):
        user.commit({0: 7}, group)
    hand.stop()
    hand.disk.flip_bit(f"{OFFSETS_TOPIC}-0/00000000000000000000.log", 80)

    hand.start()
    hand.settle()

    user = GroupUser(hand)
    assert user.find(first).error_code == errors.NONE
    assert user.commit({0: 8}, first) == [errors.COORDINATOR_NOT_AVAILABLE]
    assert user.describe(first).error_code == errors.COORDINATOR_NOT_AVAILABLE
    assert user.offset(second) == 7
    assert user.commit({0: 8}, second) == [errors.NONE]
    assert any("cannot be loaded" in line for line in caplog.messages)


def test_a_disk_that_fails_to_read_once_keeps_only_the_groups_of_its_partition() -> None:
    first, second = groups_of_two_shards()
    hand = group_broker(offsets_topic_num_partitions="2")
    user = GroupUser(hand)
    for group in (first, second):
        user.commit({0: 7}, group)
    hand.stop()
    hand.start()
    hand.disk.fail_reads(1, f"{OFFSETS_TOPIC}-0")
    hand.settle()

    user = GroupUser(hand)
    codes = [user.describe(group).error_code for group in (first, second)]

    assert codes == [errors.COORDINATOR_NOT_AVAILABLE, errors.NONE]


# --- What happens meanwhile.


def test_a_topic_that_is_deleted_while_it_is_loaded_leaves_nothing(hand: BrokerByHand) -> None:
    hand.crash()
    user = GroupUser(hand)
    user.send_delete(OFFSETS_TOPIC)
    loading = [shard.runtime.error_code for shard in hand.broker.groups.shards.values()]

    hand.settle()
    user.answers()

    assert loading == [LOADING]
    assert user.group_ids() == []
    assert user.find().error_code == errors.NONE
    assert user.commit({0: 1}) == [errors.NONE]
    assert user.all_offsets() == {(ORDERS, 0): 1}
    pass_time(hand, 60_000)
    assert waiting_in(hand) == {}


@pytest.mark.parametrize("turns", range(0, 16, 3))
@pytest.mark.parametrize("end", ["stop", "power"])
def test_a_loading_that_is_broken_off_begins_again_at_the_next_start(
    hand: BrokerByHand, turns: int, end: str
) -> None:
    hand.crash()
    for _ in range(turns):
        hand.turn()

    if end == "stop":
        hand.stop()
    else:
        hand.disk.crash()
    hand.start()
    hand.settle()

    user = GroupUser(hand)
    assert user.offset() == 7
    assert user.state() == "Stable"
    assert user.offset("filler", topic="wide", index=199) == 199
