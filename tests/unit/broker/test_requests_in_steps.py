"""Requests of thousands of elements that change something: in steps, and to their end."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import a_batch
from tests.support.broker.group_user import GroupUser, group_broker

from tarry.base import errors
from tarry.base.doors import disconnected, received
from tarry.base.limits import (
    LARGE_REQUESTS_LOOKED_AT,
    LONG_ANSWER_UNITS_PER_TURN,
    SMALL_ELEMENTS_PER_TURN_MAX,
    TOPICS_PER_CHANGE_MAX,
)
from tarry.broker.apis.offset_delete import PARTITIONS_PER_DECISION
from tarry.broker.delayed.long_answers import LONG_REQUEST_ELEMENTS, LongAnswers
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tarry.protocol.messages.delete_groups import DeleteGroupsRequest
from tarry.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from tarry.protocol.messages.find_coordinator import FindCoordinatorRequest
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
from tarry.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from tarry.simulation.by_hand import BrokerByHand
from tarry.wire.reader import window_of

MANY = LONG_REQUEST_ELEMENTS + 100
WIDE = "wide"
GROUP = "g"
# A decision of one step more than the turn's share.
UNITS_MAX = LONG_ANSWER_UNITS_PER_TURN + PARTITIONS_PER_DECISION


@pytest.fixture(scope="module")
def wide() -> GroupUser:
    """A user of a broker with a topic of many partitions, for tests with groups of their own."""
    user = GroupUser(group_broker())
    user.create(WIDE, MANY)
    return user


def a_commit(group: str, *, count: int = MANY, metadata: str = "") -> OffsetCommitRequest:
    rows = [
        OffsetCommitRequestPartition(index, 1_000 + index, committed_metadata=metadata)
        for index in range(count)
    ]
    again = OffsetCommitRequestPartition(0, 7, committed_metadata=metadata)
    return OffsetCommitRequest(
        group_id=group,
        topics=[
            OffsetCommitRequestTopic(WIDE, partitions=rows),
            OffsetCommitRequestTopic(WIDE, partitions=[again]),
        ],
    )


def codes_of(answer: Message) -> list[int]:
    assert isinstance(answer, OffsetCommitResponse | OffsetDeleteResponse)
    return [each.error_code for topic in answer.topics for each in topic.partitions]


def committed(user: GroupUser, group: str) -> dict[int, int]:
    shard, _ = user.hand.broker.groups.find(group)
    assert shard is not None
    rows = shard.group(group).offsets.get(WIDE, {})
    return {index: record.offset for index, record in rows.items()}


def fill(user: GroupUser, count: int) -> None:
    """Write a record into each partition."""
    batch = window_of(a_batch(b"1"))
    rows = [PartitionProduceData(index, batch) for index in range(count)]
    data = [TopicProduceData(WIDE, partition_data=rows)]
    user.client.ask(api_keys.PRODUCE, 11, ProduceRequest(None, 1, 30_000, data))


def take_turns(hand: BrokerByHand) -> int:
    """Turns until nothing is left to do, none of them longer than it may be."""
    turns = 0
    while hand.broker.has_work_left() or not hand.broker.flushes.is_idle():
        hand.turn(*hand.disk.complete_flushes(), after_ms=1)
        assert hand.broker.long_answers.units_spent <= UNITS_MAX
        turns += 1
    return turns


def test_a_commit_of_thousands_is_made_ready_in_steps_and_is_one_batch(wide: GroupUser) -> None:
    wide.client.send(api_keys.OFFSET_COMMIT, 8, a_commit("steps"))
    shard, _ = wide.hand.broker.groups.find("steps")
    assert shard is not None
    before = shard.runtime.partition.log.log_end_offset

    turns = take_turns(wide.hand)

    [answer] = wide.answers()
    assert codes_of(answer) == [errors.NONE] * MANY
    assert turns > MANY // LONG_ANSWER_UNITS_PER_TURN
    assert committed(wide, "steps") == {0: 7} | {each: 1_000 + each for each in range(1, MANY)}
    assert shard.runtime.partition.log.log_end_offset == before + MANY


def test_commits_written_together_are_decided_on_in_their_order(wide: GroupUser) -> None:
    """The answer to the first is made while the second waits for others' long requests."""
    last = [OffsetCommitRequestTopic(WIDE, partitions=[OffsetCommitRequestPartition(1, 5)])]
    commits = [a_commit("order"), a_commit("order"), OffsetCommitRequest("order", topics=last)]
    frames = [wide.client.encode(api_keys.OFFSET_COMMIT, 8, each) for each in commits]
    others = [wide.hand.connect() for _ in range(40)]
    keys = FindCoordinatorRequest(coordinator_keys=[f"{each}" for each in range(MANY)])
    busy = (api_keys.FIND_COORDINATOR, 4, keys)

    wide.hand.turn(
        received(wide.client.connection_id, b"".join(frames)),
        *(received(each.connection_id, each.encode(*busy)) for each in others),
    )
    take_turns(wide.hand)

    assert len(wide.answers()) == 3
    assert committed(wide, "order")[1] == 5


def test_a_commit_in_steps_refuses_what_is_not_there_singly(wide: GroupUser) -> None:
    answer = wide.client.ask(api_keys.OFFSET_COMMIT, 8, a_commit("singly", count=MANY + 2))

    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    assert codes_of(answer) == [errors.NONE] * MANY + [unknown] * 2


def test_a_commit_in_steps_of_more_than_a_batch_holds_is_refused_as_a_whole(
    wide: GroupUser,
) -> None:
    answer = wide.client.ask(api_keys.OFFSET_COMMIT, 8, a_commit("large", metadata="m" * 1_000))

    assert codes_of(answer) == [errors.UNKNOWN_SERVER_ERROR] * MANY
    assert committed(wide, "large") == {}


def test_a_commit_in_steps_of_a_member_that_is_none_is_refused(wide: GroupUser) -> None:
    request = a_commit("none")
    request.generation_id_or_member_epoch = 3

    answer = wide.client.ask(api_keys.OFFSET_COMMIT, 8, request)

    assert codes_of(answer) == [errors.ILLEGAL_GENERATION] * MANY


def test_a_client_that_leaves_between_the_steps_of_its_commit_has_committed_nothing(
    wide: GroupUser,
) -> None:
    leaving = GroupUser(wide.hand)
    leaving.client.send(api_keys.OFFSET_COMMIT, 8, a_commit("gone"))

    wide.hand.turn(disconnected(leaving.client.connection_id))
    take_turns(wide.hand)

    assert committed(wide, "gone") == {}


def test_no_offset_is_committed_for_a_topic_that_is_deleted_between_the_steps() -> None:
    user = GroupUser(group_broker())
    user.create(WIDE, MANY)
    other = GroupUser(user.hand)
    user.client.send(api_keys.OFFSET_COMMIT, 8, a_commit(GROUP))
    user.hand.turn()

    other.delete(WIDE)
    take_turns(user.hand)

    [answer] = user.answers()
    assert codes_of(answer) == [errors.UNKNOWN_TOPIC_OR_PARTITION] * MANY
    assert committed(user, GROUP) == {}


def test_offsets_are_deleted_in_portions_though_the_client_leaves(wide: GroupUser) -> None:
    leaving = GroupUser(wide.hand)
    wide.client.ask(api_keys.OFFSET_COMMIT, 8, a_commit("portions"))
    rows = [OffsetDeleteRequestPartition(index) for index in range(MANY)]
    request = OffsetDeleteRequest("portions", [OffsetDeleteRequestTopic(WIDE, rows)])
    leaving.client.send(api_keys.OFFSET_DELETE, 0, request)
    wide.hand.turn()

    wide.hand.turn(disconnected(leaving.client.connection_id))
    take_turns(wide.hand)

    assert committed(wide, "portions") == {}


def test_each_partition_of_a_deletion_in_portions_is_answered(wide: GroupUser) -> None:
    wide.client.ask(api_keys.OFFSET_COMMIT, 8, a_commit("answered"))
    rows = [OffsetDeleteRequestPartition(index) for index in range(MANY + 3)]
    request = OffsetDeleteRequest("answered", [OffsetDeleteRequestTopic(WIDE, rows)])

    answer = wide.client.ask(api_keys.OFFSET_DELETE, 0, request)

    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    assert codes_of(answer) == [errors.NONE] * MANY + [unknown] * 3


def test_a_deletion_of_offsets_in_a_group_that_is_none_is_refused_once(wide: GroupUser) -> None:
    rows = [OffsetDeleteRequestPartition(index) for index in range(MANY)]
    request = OffsetDeleteRequest("nobody", [OffsetDeleteRequestTopic(WIDE, rows)])

    answer = wide.client.ask(api_keys.OFFSET_DELETE, 0, request)

    assert isinstance(answer, OffsetDeleteResponse)
    assert answer.error_code == errors.GROUP_ID_NOT_FOUND
    assert answer.topics == []


def test_a_deletion_of_offsets_that_was_refused_deletes_nothing_of_a_group_that_comes(
    wide: GroupUser,
) -> None:
    other = GroupUser(wide.hand)
    other.create("late", 1)
    wide_rows = [OffsetDeleteRequestPartition(index) for index in range(MANY)]
    topics = [
        OffsetDeleteRequestTopic(WIDE, wide_rows),
        OffsetDeleteRequestTopic("late", [OffsetDeleteRequestPartition(0)]),
    ]
    wide.client.send(api_keys.OFFSET_DELETE, 0, OffsetDeleteRequest("late", topics))
    late = [OffsetCommitRequestTopic("late", partitions=[OffsetCommitRequestPartition(0, 5)])]
    other.client.send(api_keys.OFFSET_COMMIT, 8, OffsetCommitRequest("late", topics=late))
    take_turns(wide.hand)

    [answer] = wide.answers()
    assert isinstance(answer, OffsetDeleteResponse)
    assert answer.error_code == errors.GROUP_ID_NOT_FOUND
    shard, _ = wide.hand.broker.groups.find("late")
    assert shard is not None
    assert shard.group("late").offset("late", 0) is not None


def test_thousands_who_leave_are_answered_each(wide: GroupUser) -> None:
    members = [MemberIdentity(member_id=f"{number}") for number in range(MANY)]
    wide.client.send(api_keys.LEAVE_GROUP, 5, LeaveGroupRequest(GROUP, members=members))

    turns = take_turns(wide.hand)

    [answer] = wide.answers()
    assert isinstance(answer, LeaveGroupResponse)
    assert [each.member_id for each in answer.members] == [each.member_id for each in members]
    assert {each.error_code for each in answer.members} == {errors.UNKNOWN_MEMBER_ID}
    assert turns >= MANY // LONG_ANSWER_UNITS_PER_TURN


# --- To the end though the client leaves.


def test_all_groups_of_a_deletion_go_though_the_client_leaves(wide: GroupUser) -> None:
    one = [OffsetCommitRequestTopic(WIDE, partitions=[OffsetCommitRequestPartition(0, 1)])]
    names = [f"deleted-{number}" for number in range(150)]
    for name in names:
        wide.client.ask(api_keys.OFFSET_COMMIT, 8, OffsetCommitRequest(name, topics=one))
    leaving = GroupUser(wide.hand)
    frame = leaving.client.encode(api_keys.DELETE_GROUPS, 2, DeleteGroupsRequest(names))
    leaving_id = leaving.client.connection_id

    wide.hand.turn(received(leaving_id, frame), disconnected(leaving_id))
    take_turns(wide.hand)

    assert [name for name in names if committed(wide, name)] == []


def test_all_logs_of_a_deletion_begin_later_though_the_client_leaves() -> None:
    user = GroupUser(group_broker())
    user.create(WIDE, 150)
    fill(user, 150)
    leaving = GroupUser(user.hand)
    rows = [DeleteRecordsPartition(index, 1) for index in range(150)]
    request = DeleteRecordsRequest([DeleteRecordsTopic(WIDE, rows)], timeout_ms=30_000)
    frame = leaving.client.encode(api_keys.DELETE_RECORDS, 2, request)
    leaving_id = leaving.client.connection_id

    user.hand.turn(received(leaving_id, frame), disconnected(leaving_id))
    user.hand.settle()
    user.hand.turn(after_ms=1)
    user.hand.settle()

    starts = [each.log.log_start_offset for each in user.hand.broker.topics[WIDE].replicas()]
    assert starts == [1] * 150


def test_all_topics_of_a_request_are_created_though_the_client_leaves() -> None:
    user = GroupUser(group_broker())
    count = 2 * TOPICS_PER_CHANGE_MAX + 1
    topics = [CreatableTopic(f"t{number}", 1, 1) for number in range(count)]
    user.client.send(api_keys.CREATE_TOPICS, 7, CreateTopicsRequest(topics, timeout_ms=30_000))

    user.hand.turn(disconnected(user.client.connection_id))
    for _ in range(100):
        user.hand.settle()
        user.hand.turn(after_ms=1)

    assert [each.name for each in topics if each.name not in user.hand.broker.topics] == []


@pytest.mark.interpreted
def test_deleting_records_looks_at_each_partition_a_few_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    user = GroupUser(group_broker())
    user.create(WIDE, 300)
    fill(user, 300)
    looks = 0
    partition_type = type(user.hand.broker.topics[WIDE].replicas()[0])
    low_watermark = partition_type.low_watermark

    def counted(self: object) -> int:
        nonlocal looks
        looks += 1
        return int(low_watermark(self))  # type: ignore[arg-type]

    monkeypatch.setattr(partition_type, "low_watermark", counted)
    rows = [DeleteRecordsPartition(index, 1) for index in range(300)]
    request = DeleteRecordsRequest([DeleteRecordsTopic(WIDE, rows)], timeout_ms=30_000)
    user.client.send(api_keys.DELETE_RECORDS, 2, request)
    for _ in range(5):
        user.hand.settle()
        user.hand.turn(after_ms=1)

    [answer] = user.answers()
    assert isinstance(answer, DeleteRecordsResponse)
    assert {each.low_watermark for each in answer.topics[0].partitions} == {1}
    assert looks < 5 * 300


# --- Many connections at once.


def test_small_requests_of_a_thousand_connections_are_decoded_over_several_turns(
    hand: BrokerByHand,
) -> None:
    elements = 1_000
    clients = [hand.connect() for _ in range(1_000)]
    request = FindCoordinatorRequest(coordinator_keys=["g"] * elements)
    frames = [each.encode(api_keys.FIND_COORDINATOR, 4, request) for each in clients]

    hand.turn(*(received(c.connection_id, f) for c, f in zip(clients, frames, strict=True)))

    connections = hand.broker.answers.connections
    untouched = [c for c in clients if connections[c.connection_id].has_unhandled()]
    assert len(clients) - len(untouched) == SMALL_ELEMENTS_PER_TURN_MAX // elements
    hand.settle()
    assert all(len(each.answers()) == 1 for each in clients)


@pytest.mark.interpreted
def test_a_turn_looks_at_some_of_the_connections_whose_large_requests_wait(
    hand: BrokerByHand, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0
    puts_off = LongAnswers.puts_off

    def counted(self: LongAnswers, frame: bytes, position: int) -> bool:
        nonlocal looks
        looks += 1
        return puts_off(self, frame, position)

    monkeypatch.setattr(LongAnswers, "puts_off", counted)
    clients = [hand.connect() for _ in range(10 * LARGE_REQUESTS_LOOKED_AT)]
    request = FindCoordinatorRequest(coordinator_keys=[f"{each}" for each in range(20_000)])
    frames = [each.encode(api_keys.FIND_COORDINATOR, 4, request) for each in clients]
    hand.turn(*(received(c.connection_id, f) for c, f in zip(clients, frames, strict=True)))

    for _ in range(20):
        looks = 0
        hand.turn()
        assert looks <= LARGE_REQUESTS_LOOKED_AT
