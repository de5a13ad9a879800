"""Groups in a broker when things happen at once: deadlines of one turn, topics that come back."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS, User
from tests.support.broker.group_user import (
    READERS,
    GroupUser,
    Member,
    group_broker,
    pass_time,
    stabilize,
)

from tarry.base import errors
from tarry.group.notes import AssignmentMissing, MemberRemoved, RebalanceBegan
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
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tarry.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tarry.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupResponse,
)
from tarry.simulation.by_hand import START_MS, BrokerByHand, ClientByHand


def stable_pair(hand: BrokerByHand) -> tuple[Member, Member]:
    """Two members whose sessions end shortly after the time that they have for a rejoin."""
    first, second = (Member(hand, session_ms=10_300, rebalance_ms=10_000) for _ in range(2))
    stabilize(first, second)
    return first, second


def member_ids(hand: BrokerByHand) -> list[str]:
    """Who is a member now."""
    return list(hand.broker.coordinator.shards[0].group(READERS).round.members)


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


def test_a_session_that_begins_anew_in_the_turn_in_which_it_was_due_is_watched() -> None:
    hand = group_broker()
    first, second = stable_pair(hand)
    # The second lives and does not come back.  When the join phase ends without it, the first
    # one's session begins anew, and the old end of it is due in the same turn.
    first.send_join()
    for _ in range(19):
        hand.turn(after_ms=500)
        second.heartbeat()

    hand.turn(after_ms=900)

    assert first.take_join().error_code == errors.NONE
    assert member_ids(hand) == [first.member_id]
    assert hand.broker.coordinator.groups.heartbeats.delayed == 1


def test_what_was_committed_for_a_deleted_topic_is_not_its_successors_after_a_crash() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    groups = commit_in_groups(user, 1_200)
    replace_topic(user)
    shard = hand.broker.coordinator.shards[0]
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
    shard = hand.broker.coordinator.shards[0]
    assert ORDERS in shard.group(groups[-1]).offsets, "it was forgotten too early for this test"

    topics = [OffsetFetchRequestTopics(ORDERS, [0])] if names_topics else None
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
    assert hand.broker.coordinator.is_loading(), "too few groups for this test"

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
        chores.append(len(hand.broker.coordinator._chores))
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
    assert ORDERS in hand.broker.coordinator.shards[0].group(READERS).offsets

    hand.broker.coordinator.expire_offsets()
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
    before = dict(hand.broker.coordinator.shards[0].groups.by_id)
    hand.crash()
    hand.settle()

    assert deleted == [errors.NONE]
    assert before == hand.broker.coordinator.shards[0].groups.by_id == {}


def test_a_deleted_topic_takes_more_offsets_with_it_than_a_batch_holds() -> None:
    hand, user = group_of_many_offsets()

    delete_topic(user, "wide")
    hand.settle()

    assert hand.broker.coordinator.shards[0].groups.by_id == {}


@pytest.mark.parametrize("version", [2, 4])
def test_a_commit_that_is_to_be_kept_for_ever_is_kept(version: int) -> None:
    hand = group_broker()
    user = GroupUser(hand)

    committed = user.commit({0: 5}, version=version, retention_ms=(1 << 63) - 1)

    assert committed == [errors.NONE]
    hand.broker.coordinator.expire_offsets()
    hand.settle()
    assert user.offset() == 5


def test_text_that_an_older_fetch_could_not_hold_is_refused_whatever_the_setting_allows() -> None:
    user = GroupUser(group_broker(offset_metadata_max_bytes="100000"))
    codes = [user.commit({0: 5}, metadata="x" * size) for size in (32_768, 32_767)]

    asked = OffsetFetchRequest(READERS, [OffsetFetchRequestTopic(ORDERS, [0])])
    answer = user.request(OffsetFetchResponse, api_keys.OFFSET_FETCH, 1, asked)

    assert codes == [[errors.OFFSET_METADATA_TOO_LARGE], [errors.NONE]]
    assert answer.topics[0].partitions[0].metadata == "x" * 32_767


def test_notes_of_long_names_and_many_members_stay_short_and_can_be_described() -> None:
    hand = group_broker()
    history = hand.broker.coordinator.history
    names = tuple(f"{number}" * 900 for number in range(2_000))
    long = "\x01" * 40_000

    history.note(
        READERS,
        [
            AssignmentMissing(names),
            MemberRemoved(long, long, long, long, long, 1, long),
            RebalanceBegan(1, long),
        ],
    )

    asked = DescribeConfigsResource(32, READERS, None)
    answer = hand.connect().ask(api_keys.DESCRIBE_CONFIGS, 1, DescribeConfigsRequest([asked]))
    assert isinstance(answer, DescribeConfigsResponse)
    sizes = [len(each.value or "") for each in answer.results[0].configs]
    assert len(sizes) >= 4
    assert max(sizes) < 32_768
    assert "and 1990 others" in "".join(each.value or "" for each in answer.results[0].configs)


def test_the_reason_of_a_member_is_kept_as_far_as_kafkas_clients_send_it() -> None:
    hand = group_broker()
    member = Member(hand, instance_id="i")
    request = member.join_request()
    request.reason = "r" * 1_000

    member.client.ask(api_keys.JOIN_GROUP, 9, request)

    notes = [note for _, _, note in hand.broker.coordinator.history.notes(READERS)]
    began = next(each for each in notes if isinstance(each, RebalanceBegan))
    assert began.reason.endswith(": " + "r" * 255)


@pytest.mark.parametrize(("version", "code"), [(2, errors.UNKNOWN_MEMBER_ID), (3, errors.NONE)])
def test_who_leaves_a_group_that_is_not_there_is_told_so_as_a_member(
    version: int, code: int
) -> None:
    user = GroupUser(group_broker())
    request = LeaveGroupRequest(READERS)
    if version < 3:
        request.member_id = "m"
    else:
        request.members = [MemberIdentity("m", None), MemberIdentity("", "i")]

    answer = user.request(LeaveGroupResponse, api_keys.LEAVE_GROUP, version, request)

    assert answer.error_code == code
    told = [(each.member_id, each.group_instance_id, each.error_code) for each in answer.members]
    unknown = errors.UNKNOWN_MEMBER_ID
    assert told == ([("m", None, unknown), ("", "i", unknown)] if version >= 3 else [])


def test_a_sync_that_must_name_its_protocol_and_does_not_is_refused() -> None:
    user = GroupUser(group_broker())
    request = SyncGroupRequest(READERS, 1, "m", protocol_type="consumer")

    answer = user.request(SyncGroupResponse, api_keys.SYNC_GROUP, 5, request)

    assert answer.error_code == errors.INCONSISTENT_GROUP_PROTOCOL


def test_offsets_of_partitions_that_are_not_there_are_not_deleted() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    user.commit({0: 5})

    codes = user.delete_offsets(7, -1, 0)

    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    assert codes == [unknown, unknown, errors.NONE]


def test_a_join_that_waits_longer_than_a_connection_may_be_idle_keeps_the_broker_at_rest() -> None:
    hand = group_broker(connections_max_idle_ms="5000")
    first, _ = stable_pair(hand)
    first.send_join()
    turns = 0
    while hand.now_ms < START_MS + 9_000:
        hand.turn(after_ms=max(min(hand.broker.next_due_ms() - hand.now_ms, 500), 1))
        turns += 1

    assert not first.client.is_closed
    assert turns < 100


def test_a_static_member_with_no_rebalance_timeout_keeps_nobody_but_itself_waiting() -> None:
    hand = group_broker()
    hasty = Member(hand, instance_id="hasty", rebalance_ms=0)
    patient = Member(hand, instance_id="patient")
    stabilize(patient, hasty)
    leave = LeaveGroupRequest(READERS, members=[MemberIdentity("", "patient")])

    # Now the group's rebalance time-out is 0, and nobody joins.
    patient.client.ask(api_keys.LEAVE_GROUP, 5, leave)

    assert member_ids(hand) == [hasty.member_id]
    assert hand.broker.next_due_ms() >= hand.now_ms + 100
    pass_time(hand, 11_000)
    assert member_ids(hand) == []


def test_a_negative_rebalance_timeout_is_none_before_and_after_a_crash() -> None:
    hand = group_broker()
    member = Member(hand, instance_id="member", rebalance_ms=-1)
    other = Member(hand, instance_id="other")
    stabilize(other, member)

    live = hand.broker.coordinator.shards[0].group(READERS).round.members
    hand.crash()
    hand.settle()
    loaded = hand.broker.coordinator.shards[0].group(READERS).round.members

    assert live[member.member_id].rebalance_timeout_ms == 0
    assert loaded[member.member_id].rebalance_timeout_ms == 0
