"""A request costs by its bytes: names once, elements bounded, long answers in steps."""

from __future__ import annotations

import pytest
from tests.support.broker.group_user import Member, group_broker

from tarry.base import doors, errors
from tarry.base.limits import (
    LONG_ANSWER_BYTES_MAX,
    LONG_ANSWER_UNITS_PER_TURN,
    REQUEST_ELEMENTS_MAX,
    REQUEST_TAGGED_FIELDS_MAX,
)
from tarry.protocol import api_keys
from tarry.protocol.messages.api_versions import ApiVersionsRequest
from tarry.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from tarry.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tarry.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tarry.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tarry.simulation.by_hand import BrokerByHand, ClientByHand
from tarry.wire.writer import Writer

# Steps that a turn may take past its share: the last one of a round.
OVERSHOOT = 100


def keys(count: int) -> FindCoordinatorRequest:
    return FindCoordinatorRequest(coordinator_keys=[f"{number}" for number in range(count)])


def with_coordinator(hand: BrokerByHand) -> ClientByHand:
    client = hand.connect()
    client.ask(api_keys.FIND_COORDINATOR, 0, FindCoordinatorRequest(key="g"))
    return client


def test_a_name_that_comes_a_hundred_thousand_times_is_answered_once(hand: BrokerByHand) -> None:
    client = with_coordinator(hand)
    names = [""] * (REQUEST_ELEMENTS_MAX - 1)

    found = client.ask(api_keys.FIND_COORDINATOR, 4, FindCoordinatorRequest("", 0, names))
    described = client.ask(api_keys.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(names))

    assert isinstance(found, FindCoordinatorResponse)
    assert len(found.coordinators) == 1
    assert isinstance(described, DescribeGroupsResponse)
    assert len(described.groups) == 1


def test_a_partition_that_comes_again_is_answered_once_with_its_topic(hand: BrokerByHand) -> None:
    again = OffsetForLeaderTopic("orders", [OffsetForLeaderPartition(0, -1, 0)] * 100)
    other = OffsetForLeaderTopic("orders", [OffsetForLeaderPartition(1, -1, 0)])

    answer = hand.connect().ask(
        api_keys.OFFSET_FOR_LEADER_EPOCH, 4, OffsetForLeaderEpochRequest(-2, [again, other, again])
    )

    assert isinstance(answer, OffsetForLeaderEpochResponse)
    [topic] = answer.topics
    assert [each.partition for each in topic.partitions] == [0, 1]


def test_a_long_answer_is_made_in_steps_and_another_connection_is_served_meanwhile(
    hand: BrokerByHand,
) -> None:
    client, other = with_coordinator(hand), hand.connect()
    client.send(api_keys.FIND_COORDINATOR, 4, keys(REQUEST_ELEMENTS_MAX))

    turns = 0
    while hand.broker.long_answers.has_work_left():
        other.send(api_keys.API_VERSIONS, 0, ApiVersionsRequest())
        assert len(other.answers()) == 1
        assert hand.broker.long_answers.units_spent <= LONG_ANSWER_UNITS_PER_TURN + OVERSHOOT
        turns += 1

    [answer] = client.answers()
    assert isinstance(answer, FindCoordinatorResponse)
    assert [each.key for each in answer.coordinators] == keys(REQUEST_ELEMENTS_MAX).coordinator_keys
    assert turns > 100


def test_all_that_a_request_asks_for_is_done_though_its_answer_is_too_long() -> None:
    member = Member(group_broker())
    member.join()
    member.sync({member.member_id: b""})
    strangers = [MemberIdentity(f"{number:030000}") for number in range(1_400)]
    leaving = [*strangers, MemberIdentity(member.member_id)]
    other = member.hand.connect()

    other.send(api_keys.LEAVE_GROUP, 5, LeaveGroupRequest(member.group, members=leaving))
    held_most = 0
    while member.hand.broker.long_answers.has_work_left():
        member.hand.turn()
        held_most = max(held_most, int(member.hand.broker.long_answers._held_bytes))

    assert other.is_closed
    assert LONG_ANSWER_BYTES_MAX < 1_200 * 30_000
    assert held_most < LONG_ANSWER_BYTES_MAX + 4_000_000
    assert member.heartbeat() == errors.UNKNOWN_MEMBER_ID


def test_a_short_answer_is_ready_in_the_turn_of_its_request(hand: BrokerByHand) -> None:
    client = with_coordinator(hand)

    client.send(api_keys.FIND_COORDINATOR, 4, keys(50))

    assert len(client.answers()) == 1


def test_a_short_request_is_answered_in_its_turn_beside_many_long_answers(
    hand: BrokerByHand,
) -> None:
    for _ in range(10):
        with_coordinator(hand).send(api_keys.FIND_COORDINATOR, 4, keys(5_000))
    honest = hand.connect()

    honest.send(api_keys.FIND_COORDINATOR, 4, keys(2))

    assert len(honest.answers()) == 1
    assert hand.broker.long_answers.has_work_left()


def test_what_follows_a_long_request_is_answered_behind_it(hand: BrokerByHand) -> None:
    client = with_coordinator(hand)
    frames = [
        client.encode(api_keys.FIND_COORDINATOR, 4, keys(5_000)),
        client.encode(api_keys.FIND_COORDINATOR, 4, keys(1)),
    ]

    client.send_bytes(b"".join(frames))
    hand.settle()

    sizes = [
        len(answer.coordinators)
        for answer in client.answers()
        if isinstance(answer, FindCoordinatorResponse)
    ]
    assert sizes == [5_000, 1]


def test_a_long_answer_ends_with_its_connection(hand: BrokerByHand) -> None:

    client = with_coordinator(hand)
    client.send(api_keys.FIND_COORDINATOR, 4, keys(50_000))

    hand.turn(doors.disconnected(client.connection_id))

    assert not hand.broker.long_answers.has_work_left()


@pytest.mark.heavy
def test_an_answer_over_its_bound_closes_the_connection(hand: BrokerByHand) -> None:
    client = with_coordinator(hand)
    names = [f"{number:03}" + "x" * (1 << 19) for number in range(100)]
    assert sum(map(len, names)) > LONG_ANSWER_BYTES_MAX

    client.send(api_keys.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=names))
    hand.settle()

    assert client.is_closed
    assert client.answers() == []


def test_a_request_of_more_elements_than_it_may_have_closes_the_connection(
    hand: BrokerByHand,
) -> None:
    client = with_coordinator(hand)

    client.send(api_keys.FIND_COORDINATOR, 4, keys(REQUEST_ELEMENTS_MAX + 1))

    assert client.is_closed


def tagged_request(count: int) -> bytes:
    """ApiVersions 3 with tagged fields that nobody knows."""
    writer = Writer()
    writer.i32(0)
    writer.i16(api_keys.API_VERSIONS)
    writer.i16(3)
    writer.i32(1)
    writer.nullable_string("someone")
    writer.unsigned_varint(0)
    writer.compact_string("kio")
    writer.compact_string("1")
    writer.unsigned_varint(count)
    for tag in range(count):
        writer.unsigned_varint(tag)
        writer.unsigned_varint(0)
    writer.set_i32(0, writer.size - 4)
    return writer.finish()


def test_a_request_holds_a_thousand_tagged_fields_and_no_more(hand: BrokerByHand) -> None:
    taken, refused = hand.connect(), hand.connect()

    taken.send_bytes(tagged_request(REQUEST_TAGGED_FIELDS_MAX))
    refused.send_bytes(tagged_request(REQUEST_TAGGED_FIELDS_MAX + 1))

    assert hand.transport.sent[taken.connection_id]
    assert not taken.is_closed
    assert refused.is_closed


def test_each_partition_of_a_followers_fetch_names_its_directory(hand: BrokerByHand) -> None:
    follower = hand.connect()
    asked = [
        FetchPartition(number, replica_directory_id=b"directory" + bytes(7), high_watermark=0)
        for number in range(2 * REQUEST_TAGGED_FIELDS_MAX)
    ]
    topic = FetchTopic(topic_id=b"topic" + bytes(11), partitions=asked)

    answer = follower.ask(api_keys.FETCH, 18, FetchRequest(topics=[topic]))

    assert isinstance(answer, FetchResponse)


def test_large_requests_that_come_in_one_turn_are_decoded_in_several(hand: BrokerByHand) -> None:

    clients = [with_coordinator(hand) for _ in range(4)]
    frame = [client.encode(api_keys.FIND_COORDINATOR, 4, keys(30_000)) for client in clients]

    hand.turn(
        *(
            doors.received(client.connection_id, data)
            for client, data in zip(clients, frame, strict=True)
        )
    )
    waiting = [hand.broker.answers.connections[each.connection_id].waiting for each in clients]
    hand.settle()

    assert waiting == [1, 0, 0, 0]
    assert [len(client.answers()) for client in clients] == [1, 1, 1, 1]
