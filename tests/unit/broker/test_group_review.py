"""Groups in a broker when things happen at once: deadlines of one turn, topics that come back."""

from __future__ import annotations

import pytest
from broker_user import User

from tarry.base import errors
from tarry.group.decision import AssignmentMissing, MemberRemoved, RebalanceBegan
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tarry.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
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
from tarry.protocol.messages.find_coordinator import FindCoordinatorRequest
from tarry.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tarry.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from tarry.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tarry.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
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
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from tarry.simulation.by_hand import START_MS, BrokerByHand, ClientByHand

GROUP = "billing"
ONE_SHARD = {"offsets.topic.num.partitions": "1", "group.initial.rebalance.delay.ms": "0"}


def broker_with_groups(**settings: str) -> BrokerByHand:
    """A broker with a coordinator that has its topic; keys with underscores for dots."""
    given = {key.replace("_", "."): value for key, value in settings.items()}
    hand = BrokerByHand({**ONE_SHARD, **given})
    client = hand.connect()
    client.ask(api_keys.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=[GROUP]))
    return hand


class MemberByHand:
    """A member of a group, over a connection of its own; version 3, which knows no id first."""

    def __init__(self, hand: BrokerByHand, group: str = GROUP, *, session_ms: int = 10_300) -> None:
        self.hand = hand
        self.group = group
        self.client: ClientByHand = hand.connect()
        self.session_ms = session_ms
        self.rebalance_ms = 10_000
        self.member_id = ""
        self.generation_id = -1

    def send_join(self) -> None:
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self.session_ms,
            rebalance_timeout_ms=self.rebalance_ms,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol("range", b"")],
        )
        self.client.send(api_keys.JOIN_GROUP, 3, request)

    def joined(self) -> JoinGroupResponse:
        """The answer to the join."""
        (answer,) = self.client.answers()
        assert isinstance(answer, JoinGroupResponse)
        self.member_id = answer.member_id
        self.generation_id = answer.generation_id
        return answer

    def send_sync(self, *assigned: str) -> None:
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation_id,
            member_id=self.member_id,
            assignments=[SyncGroupRequestAssignment(each, b"all") for each in assigned],
        )
        self.client.send(api_keys.SYNC_GROUP, 3, request)

    def synced(self) -> int:
        (answer,) = self.client.answers()
        assert isinstance(answer, SyncGroupResponse)
        return answer.error_code

    def beat(self) -> int:
        request = HeartbeatRequest(self.group, self.generation_id, self.member_id)
        answer = self.client.ask(api_keys.HEARTBEAT, 3, request)
        assert isinstance(answer, HeartbeatResponse)
        return answer.error_code


def stable_pair(hand: BrokerByHand) -> tuple[MemberByHand, MemberByHand]:
    """Two members of a Stable group; the first leads."""
    first, second = MemberByHand(hand), MemberByHand(hand)
    first.send_join()
    hand.settle()
    first.joined()
    second.send_join()
    first.send_join()
    hand.settle()
    first.joined()
    second.joined()
    second.send_sync()
    first.send_sync(first.member_id, second.member_id)
    hand.settle()
    assert first.synced() == second.synced() == errors.NONE
    return first, second


def pass_time(hand: BrokerByHand, ms: int, step_ms: int = 500) -> None:
    for _ in range(ms // step_ms):
        hand.turn(after_ms=step_ms)
        hand.settle()


def member_ids(hand: BrokerByHand, group: str = GROUP) -> list[str]:
    """Who is a member now."""
    return list(hand.broker.coordinator.shards[0].group(group).round.members)


def commit(client: ClientByHand, topic: str, *offsets: int, group: str = GROUP) -> list[int]:
    """Commit to partitions from 0 on, as one who is in no group; their error codes."""
    client.send(api_keys.OFFSET_COMMIT, 8, commit_request(topic, *offsets, group=group))
    client.hand.settle()
    return committed(client)


def commit_request(topic: str, *offsets: int, group: str = GROUP) -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=offset)
        for index, offset in enumerate(offsets)
    ]
    return OffsetCommitRequest(group, topics=[OffsetCommitRequestTopic(topic, partitions)])


def committed(client: ClientByHand) -> list[int]:
    (answer,) = client.answers()
    assert isinstance(answer, OffsetCommitResponse)
    return [each.error_code for each in answer.topics[0].partitions]


def offset_of(client: ClientByHand, topic: str, index: int = 0, *, group: str = GROUP) -> int:
    asked = OffsetFetchRequestGroup(group, topics=[OffsetFetchRequestTopics(topic, [index])])
    answer: Message = client.ask(api_keys.OFFSET_FETCH, 8, OffsetFetchRequest(groups=[asked]))
    assert isinstance(answer, OffsetFetchResponse)
    assert answer.groups[0].error_code == errors.NONE
    return answer.groups[0].topics[0].partitions[0].committed_offset


def settled_answers(client: ClientByHand) -> list[Message]:
    """Turns, each with what was flushed, until the client is answered; nothing more."""
    for _ in range(50):
        found = client.answers()
        if found:
            return found
        client.hand.turn(*client.hand.disk.complete_flushes())
    raise AssertionError("no answer")


def delete_topic(user: User, name: str = "orders") -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=5_000)
    user.client.send(api_keys.DELETE_TOPICS, 6, request)
    (answer,) = settled_answers(user.client)
    assert isinstance(answer, DeleteTopicsResponse)
    assert answer.responses[0].error_code == errors.NONE


def create_topic(user: User, name: str = "orders") -> None:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1)]
    request = CreateTopicsRequest(topics=topics, timeout_ms=5_000)
    user.client.send(api_keys.CREATE_TOPICS, 7, request)
    (answer,) = settled_answers(user.client)
    assert isinstance(answer, CreateTopicsResponse)
    assert answer.topics[0].error_code == errors.NONE


def commit_in_groups(user: User, count: int, offset: int) -> list[str]:
    """Every group commits this offset of `orders`; their names."""
    groups = [f"group{number}" for number in range(count)]
    for group in groups:
        user.client.send(api_keys.OFFSET_COMMIT, 8, commit_request("orders", offset, group=group))
    user.hand.settle(1_000)
    assert len(user.answers()) == count
    return groups


def test_a_session_that_begins_anew_in_the_turn_in_which_it_was_due_is_watched() -> None:
    hand = broker_with_groups()
    first, second = stable_pair(hand)
    # The second lives and does not come back.  When the join phase ends without it, the first
    # one's session begins anew, and the old end of it is due in the same turn.
    first.send_join()
    for _ in range(19):
        hand.turn(after_ms=500)
        second.beat()

    hand.turn(after_ms=900)

    assert first.joined().error_code == errors.NONE
    assert member_ids(hand) == [first.member_id]
    assert hand.broker.coordinator.heartbeat_purgatory.delayed == 1


def test_what_was_committed_for_a_deleted_topic_is_not_its_successors_after_a_crash() -> None:
    hand = broker_with_groups()
    user = User(hand)
    user.create("orders")
    groups = commit_in_groups(user, 1_200, offset=7)
    delete_topic(user)
    create_topic(user)
    shard = hand.broker.coordinator.shards[0]
    assert "orders" in shard.group(groups[-1]).offsets, "the crash must come before the end"

    hand.crash()
    hand.settle(1_000)

    client = hand.connect()
    assert {offset_of(client, "orders", group=each) for each in groups} == {-1}


@pytest.mark.parametrize("names_topics", [True, False])
def test_what_was_committed_for_a_deleted_topic_is_not_its_successors_for_a_moment(
    *, names_topics: bool
) -> None:
    hand = broker_with_groups()
    user = User(hand)
    user.create("orders")
    groups = commit_in_groups(user, 1_200, offset=7)
    delete_topic(user)
    create_topic(user)
    shard = hand.broker.coordinator.shards[0]
    assert "orders" in shard.group(groups[-1]).offsets, "it was forgotten too early for this test"

    topics = [OffsetFetchRequestTopics("orders", [0])] if names_topics else None
    asked = OffsetFetchRequestGroup(groups[-1], topics=topics)
    client = hand.connect()
    client.send(api_keys.OFFSET_FETCH, 8, OffsetFetchRequest(groups=[asked]))

    (answer,) = client.answers()
    assert isinstance(answer, OffsetFetchResponse)
    found = [each.partitions[0].committed_offset for each in answer.groups[0].topics]
    assert found == ([-1] if names_topics else [])


def test_what_is_committed_for_a_topic_that_came_back_stays() -> None:
    hand = broker_with_groups()
    user = User(hand)
    user.create("orders")
    groups = commit_in_groups(user, 1_000, offset=7)
    hand.now_wall_ms -= 60_000
    delete_topic(user)
    create_topic(user)
    hand.now_wall_ms -= 60_000

    last = groups[-1]
    assert commit(user.client, "orders", 9, group=last) == [errors.NONE]

    hand.settle(1_000)
    assert offset_of(user.client, "orders", group=last) == 9
    assert offset_of(user.client, "orders", group=groups[0]) == -1


def test_a_topic_deleted_while_groups_are_loaded_takes_all_its_offsets_with_it() -> None:
    hand = broker_with_groups()
    user = User(hand)
    user.create("orders")
    groups = commit_in_groups(user, 2_000, offset=7)
    hand.crash()
    user = User(hand)
    delete_topic(user)
    assert hand.broker.coordinator.is_loading(), "too few groups for this test"

    hand.settle(1_000)

    assert {offset_of(user.client, "orders", group=each) for each in groups} == {-1}


def test_many_topics_deleted_at_once_are_forgotten_in_one_walk() -> None:
    hand = broker_with_groups()
    user = User(hand)
    names = [f"topic{number}" for number in range(20)]
    for name in names:
        user.create(name)
        assert commit(user.client, name, 1) == [errors.NONE]

    topics = [DeleteTopicState(name=name) for name in names]
    request = DeleteTopicsRequest(topics=topics, timeout_ms=5_000)
    user.client.send(api_keys.DELETE_TOPICS, 6, request)
    chores: list[int] = []
    while not user.answers():
        hand.turn(*hand.disk.complete_flushes())
        chores.append(len(hand.broker.coordinator._chores))
    hand.settle()

    assert max(chores) <= 1
    assert [offset_of(user.client, name) for name in names] == [-1] * len(names)


def test_offsets_that_could_not_be_forgotten_are_forgotten_later() -> None:
    hand = broker_with_groups()
    user = User(hand)
    user.create("orders")
    assert commit(user.client, "orders", 7) == [errors.NONE]
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name="orders")], timeout_ms=5_000)
    user.client.send(api_keys.DELETE_TOPICS, 6, request)
    while "orders" in hand.broker.topics:
        hand.turn(*hand.disk.complete_flushes())
    hand.disk.capacity_bytes = hand.disk.used_bytes()
    hand.settle()
    hand.disk.heal()
    assert "orders" in hand.broker.coordinator.shards[0].group(GROUP).offsets

    hand.broker.coordinator.expire_offsets()
    hand.settle()

    assert offset_of(hand.connect(), "orders") == -1


def group_of_many_offsets() -> tuple[BrokerByHand, User]:
    """A group with 200 offsets of `orders`, whose tombstones no batch of 10,000 bytes holds."""
    hand = broker_with_groups(message_max_bytes="10000")
    user = User(hand)
    user.create("orders", 200)
    for first in range(0, 200, 50):
        partitions = [
            OffsetCommitRequestPartition(partition_index=index, committed_offset=1)
            for index in range(first, first + 50)
        ]
        request = OffsetCommitRequest(
            GROUP, topics=[OffsetCommitRequestTopic("orders", partitions)]
        )
        user.client.send(api_keys.OFFSET_COMMIT, 8, request)
        hand.settle()
        assert {*committed(user.client)} == {errors.NONE}
    return hand, user


def test_a_group_whose_tombstones_are_more_than_a_batch_holds_can_be_deleted() -> None:
    hand, user = group_of_many_offsets()

    answer = user.client.ask(api_keys.DELETE_GROUPS, 2, DeleteGroupsRequest([GROUP]))
    before = dict(hand.broker.coordinator.shards[0].groups.by_id)
    hand.crash()
    hand.settle()

    assert isinstance(answer, DeleteGroupsResponse)
    assert answer.results[0].error_code == errors.NONE
    assert before == hand.broker.coordinator.shards[0].groups.by_id == {}


def test_a_deleted_topic_takes_more_offsets_with_it_than_a_batch_holds() -> None:
    hand, user = group_of_many_offsets()

    delete_topic(user)
    hand.settle()

    assert hand.broker.coordinator.shards[0].groups.by_id == {}


@pytest.mark.parametrize("version", [2, 4])
def test_a_commit_that_is_to_be_kept_for_ever_is_kept(version: int) -> None:
    hand = broker_with_groups()
    user = User(hand)
    user.create("orders")
    request = commit_request("orders", 5)
    request.retention_time_ms = (1 << 63) - 1

    user.client.send(api_keys.OFFSET_COMMIT, version, request)
    hand.settle()

    assert committed(user.client) == [errors.NONE]
    hand.broker.coordinator.expire_offsets()
    hand.settle()
    assert offset_of(user.client, "orders") == 5


def test_text_that_an_older_fetch_could_not_hold_is_refused_whatever_the_setting_allows() -> None:
    hand = broker_with_groups(offset_metadata_max_bytes="100000")
    user = User(hand)
    user.create("orders")
    codes = []
    for size in (32_768, 32_767):
        request = commit_request("orders", 5)
        request.topics[0].partitions[0].committed_metadata = "x" * size
        user.client.send(api_keys.OFFSET_COMMIT, 8, request)
        hand.settle()
        codes += committed(user.client)

    asked = OffsetFetchRequest(GROUP, [OffsetFetchRequestTopic("orders", [0])])
    answer = user.client.ask(api_keys.OFFSET_FETCH, 1, asked)

    assert codes == [errors.OFFSET_METADATA_TOO_LARGE, errors.NONE]
    assert isinstance(answer, OffsetFetchResponse)
    assert answer.topics[0].partitions[0].metadata == "x" * 32_767


def test_notes_of_long_names_and_many_members_stay_short_and_can_be_described() -> None:
    hand = broker_with_groups()
    history = hand.broker.coordinator.history
    names = tuple(f"{number}" * 900 for number in range(2_000))
    long = "\x01" * 40_000

    history.note(
        GROUP,
        [
            AssignmentMissing(names),
            MemberRemoved(long, long, long, long, long, 1, long),
            RebalanceBegan(1, long),
        ],
    )

    asked = DescribeConfigsResource(32, GROUP, None)
    answer = hand.connect().ask(api_keys.DESCRIBE_CONFIGS, 1, DescribeConfigsRequest([asked]))
    assert isinstance(answer, DescribeConfigsResponse)
    sizes = [len(each.value or "") for each in answer.results[0].configs]
    assert len(sizes) >= 4
    assert max(sizes) < 32_768
    assert "and 1990 others" in "".join(each.value or "" for each in answer.results[0].configs)


def test_the_reason_of_a_member_is_kept_as_far_as_kafkas_clients_send_it() -> None:
    hand = broker_with_groups()
    client = hand.connect()
    request = JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        group_instance_id="i",
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"")],
        reason="r" * 1_000,
    )

    client.ask(api_keys.JOIN_GROUP, 9, request)

    notes = [note for _, _, note in hand.broker.coordinator.history.notes(GROUP)]
    began = next(each for each in notes if isinstance(each, RebalanceBegan))
    assert began.reason.endswith(": " + "r" * 255)


@pytest.mark.parametrize(("version", "code"), [(2, errors.UNKNOWN_MEMBER_ID), (3, errors.NONE)])
def test_who_leaves_a_group_that_is_not_there_is_told_so_as_a_member(
    version: int, code: int
) -> None:
    client = broker_with_groups().connect()
    request = LeaveGroupRequest(GROUP)
    if version < 3:
        request.member_id = "m"
    else:
        request.members = [MemberIdentity("m", None), MemberIdentity("", "i")]

    answer = client.ask(api_keys.LEAVE_GROUP, version, request)

    assert isinstance(answer, LeaveGroupResponse)
    assert answer.error_code == code
    told = [(each.member_id, each.group_instance_id, each.error_code) for each in answer.members]
    unknown = errors.UNKNOWN_MEMBER_ID
    assert told == ([("m", None, unknown), ("", "i", unknown)] if version >= 3 else [])


def test_a_sync_that_must_name_its_protocol_and_does_not_is_refused() -> None:
    client = broker_with_groups().connect()
    request = SyncGroupRequest(GROUP, 1, "m", protocol_type="consumer")

    answer = client.ask(api_keys.SYNC_GROUP, 5, request)

    assert isinstance(answer, SyncGroupResponse)
    assert answer.error_code == errors.INCONSISTENT_GROUP_PROTOCOL


def test_offsets_of_partitions_that_are_not_there_are_not_deleted() -> None:
    hand = broker_with_groups()
    user = User(hand)
    user.create("orders")
    commit(user.client, "orders", 5)
    asked = [OffsetDeleteRequestPartition(index) for index in (7, -1, 0)]
    request = OffsetDeleteRequest(GROUP, [OffsetDeleteRequestTopic("orders", asked)])

    answer = user.client.ask(api_keys.OFFSET_DELETE, 0, request)

    assert isinstance(answer, OffsetDeleteResponse)
    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    codes = [each.error_code for each in answer.topics[0].partitions]
    assert codes == [unknown, unknown, errors.NONE]


def test_a_join_that_waits_longer_than_a_connection_may_be_idle_keeps_the_broker_at_rest() -> None:
    hand = broker_with_groups(connections_max_idle_ms="5000", group_initial_rebalance_delay_ms="0")
    first, _ = stable_pair(hand)
    first.send_join()
    turns = 0
    while hand.now_ms < START_MS + 9_000:
        hand.turn(after_ms=max(min(hand.broker.next_due_ms() - hand.now_ms, 500), 1))
        turns += 1

    assert not first.client.is_closed
    assert turns < 100


def static_join(name: str, rebalance_ms: int, member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=rebalance_ms,
        member_id=member_id,
        group_instance_id=name,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol("range", b"")],
    )


def test_a_static_member_with_no_rebalance_timeout_keeps_nobody_but_itself_waiting() -> None:
    hand = broker_with_groups()
    hasty, patient = MemberByHand(hand), MemberByHand(hand)
    patient.client.send(api_keys.JOIN_GROUP, 9, static_join("patient", 60_000))
    hand.settle()
    patient.joined()
    hasty.client.send(api_keys.JOIN_GROUP, 9, static_join("hasty", 0))
    patient.client.send(api_keys.JOIN_GROUP, 9, static_join("patient", 60_000, patient.member_id))
    hand.settle()
    hasty.joined()
    patient.joined()
    hasty.send_sync()
    patient.send_sync(hasty.member_id, patient.member_id)
    hand.settle()
    assert patient.synced() == errors.NONE
    leave = LeaveGroupRequest(GROUP, members=[MemberIdentity("", "patient")])

    # Now the group's rebalance time-out is 0, and nobody joins.
    patient.client.ask(api_keys.LEAVE_GROUP, 5, leave)

    assert member_ids(hand) == [hasty.member_id]
    assert hand.broker.next_due_ms() >= hand.now_ms + 100
    pass_time(hand, 11_000)
    assert member_ids(hand) == []


def test_a_negative_rebalance_timeout_is_none_before_and_after_a_crash() -> None:
    hand = broker_with_groups()
    member, other = MemberByHand(hand), MemberByHand(hand)
    other.client.send(api_keys.JOIN_GROUP, 9, static_join("other", 60_000))
    hand.settle()
    other.joined()
    member.client.send(api_keys.JOIN_GROUP, 9, static_join("member", -1))
    other.client.send(api_keys.JOIN_GROUP, 9, static_join("other", 60_000, other.member_id))
    hand.settle()
    member.joined()
    other.joined()
    other.send_sync(member.member_id)
    hand.settle()
    assert other.synced() == errors.NONE

    live = hand.broker.coordinator.shards[0].group(GROUP).round.members
    hand.crash()
    hand.settle()
    loaded = hand.broker.coordinator.shards[0].group(GROUP).round.members

    assert live[member.member_id].rebalance_timeout_ms == 0
    assert loaded[member.member_id].rebalance_timeout_ms == 0
