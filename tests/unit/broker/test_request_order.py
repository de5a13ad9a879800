"""A request sees what those before it on its connection did; what may follow at once does.

Requests are written together, as clients do that pipeline (docs/explanation/protocol-traps.md, 19).
"""

from __future__ import annotations

import pytest
from tests.support.broker.admin_user import SET, TOPIC, Operator
from tests.support.broker.broker_user import ORDERS, User, a_batch, fetched, produced, values_in
from tests.support.broker.group_user import (
    READERS,
    GroupUser,
    Member,
    commit_codes,
    group_broker,
    stable_group,
)

from tarry.base import errors
from tarry.base.doors import disconnected, drained, received
from tarry.base.limits import REQUESTS_IN_FLIGHT_MAX
from tarry.protocol import api_keys
from tarry.protocol.message import Message
from tarry.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tarry.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from tarry.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from tarry.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tarry.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from tarry.protocol.messages.fetch import FetchResponse
from tarry.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tarry.protocol.messages.join_group import JoinGroupResponse
from tarry.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from tarry.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tarry.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tarry.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from tarry.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tarry.protocol.messages.produce import ProduceResponse
from tarry.simulation.by_hand import BrokerByHand

LATEST, EARLIEST = -1, -2
# The last versions that name topics; the others are asked in their newest.
VERSIONS = {
    api_keys.PRODUCE: 12,
    api_keys.FETCH: 12,
    api_keys.OFFSET_COMMIT: 9,
    api_keys.OFFSET_FETCH: 9,
}
Request = tuple[int, Message]


def frames(user: User, *requests: Request) -> bytes:
    routes = user.hand.broker.routes
    return b"".join(
        user.client.encode(key, VERSIONS.get(key, routes[key].version_max), request)
        for key, request in requests
    )


def together(user: User, *requests: Request) -> list[Message]:
    """The answers to requests that are written at once, when all is quiet."""
    user.client.send_bytes(frames(user, *requests))
    come_to_rest(user.hand)
    return user.answers()


def come_to_rest(hand: BrokerByHand) -> None:
    hand.settle()
    for _ in range(3):
        # Recovery points, of which a deletion of records makes one, are a duty of the timer.
        hand.turn(after_ms=1)
        hand.settle()


def list_offsets(timestamp: int) -> Request:
    asked = ListOffsetsPartition(partition_index=0, current_leader_epoch=-1, timestamp=timestamp)
    topic = ListOffsetsTopic(name=ORDERS, partitions=[asked])
    return api_keys.LIST_OFFSETS, ListOffsetsRequest(replica_id=-1, topics=[topic])


def listed(answer: Message) -> int:
    assert isinstance(answer, ListOffsetsResponse)
    return answer.topics[0].partitions[0].offset


def metadata(topic: str) -> Request:
    return api_keys.METADATA, MetadataRequest([MetadataRequestTopic(name=topic)])


def topic_seen(answer: Message) -> tuple[int, int]:
    """Error code and number of partitions."""
    assert isinstance(answer, MetadataResponse)
    return answer.topics[0].error_code, len(answer.topics[0].partitions)


def creation(topic: str) -> Request:
    wanted = CreatableTopic(name=topic, num_partitions=2, replication_factor=1)
    return api_keys.CREATE_TOPICS, CreateTopicsRequest(topics=[wanted], timeout_ms=5_000)


def api_versions() -> Request:
    return api_keys.API_VERSIONS, ApiVersionsRequest("by-hand", "1")


def offset_fetch() -> Request:
    topics = [OffsetFetchRequestTopics(name=ORDERS, partition_indexes=[0])]
    asked = OffsetFetchRequestGroup(group_id=READERS, topics=topics)
    return api_keys.OFFSET_FETCH, OffsetFetchRequest(groups=[asked])


def committed(answer: Message) -> int:
    assert isinstance(answer, OffsetFetchResponse)
    return answer.groups[0].topics[0].partitions[0].committed_offset


@pytest.fixture(params=["commit", "os"])
def user(request: pytest.FixtureRequest) -> User:
    """A user of a broker with the topic `orders`, under both flush policies."""
    hand = BrokerByHand({"flush.policy": request.param, "auto.create.topics.enable": "false"})
    user = User(hand)
    user.create(ORDERS)
    return user


# --- What was done before is seen.


@pytest.mark.parametrize("acks", [-1, 1])
def test_a_produce_is_seen_by_a_lookup_and_a_fetch_behind_it(user: User, acks: int) -> None:
    produce = user.produce_request(a_batch(b"a"), acks=acks)

    answers = together(
        user,
        (api_keys.PRODUCE, produce),
        list_offsets(LATEST),
        (api_keys.FETCH, user.fetch_request(0)),
    )

    assert produced(answers[0])[0].base_offset == 0
    assert listed(answers[1]) == 1
    assert values_in(fetched(answers[2])[0]) == [b"a"]


def test_a_produce_without_an_answer_is_seen_as_well(user: User) -> None:
    produce = user.produce_request(a_batch(b"a"), acks=0)

    user.client.send_bytes(frames(user, (api_keys.PRODUCE, produce)))
    answers = together(user, list_offsets(LATEST), (api_keys.FETCH, user.fetch_request(0)))

    assert listed(answers[0]) == 1
    assert values_in(fetched(answers[1])[0]) == [b"a"]


def test_records_can_be_deleted_behind_their_produce(user: User) -> None:
    operator = Operator(user.hand)
    produce = user.produce_request(a_batch(b"a", b"b", b"c"))

    answers = together(
        user,
        (api_keys.PRODUCE, produce),
        (api_keys.DELETE_RECORDS, operator.deletion((0, 2))),
        list_offsets(EARLIEST),
    )

    assert listed(answers[2]) == 2


def test_a_commit_of_offsets_is_seen_by_a_fetch_of_offsets() -> None:
    user = GroupUser(group_broker())

    for offset in (5, 3):
        commit = user.commit_request({0: offset})
        answers = together(user, (api_keys.OFFSET_COMMIT, commit), offset_fetch())

        assert commit_codes(answers[0]) == [errors.NONE]
        assert committed(answers[1]) == offset


def test_a_deletion_of_offsets_and_of_a_group_is_seen() -> None:
    user = GroupUser(group_broker())
    user.commit({0: 5})

    answers = together(
        user,
        (api_keys.OFFSET_DELETE, user.delete_offsets_request(0)),
        offset_fetch(),
        (api_keys.OFFSET_COMMIT, user.commit_request({0: 7})),
        (api_keys.DELETE_GROUPS, DeleteGroupsRequest(groups_names=[READERS])),
        (api_keys.LIST_GROUPS, ListGroupsRequest()),
    )

    assert committed(answers[1]) == -1
    assert isinstance(answers[3], DeleteGroupsResponse)
    assert answers[3].results[0].error_code == errors.NONE
    assert isinstance(answers[4], ListGroupsResponse)
    assert answers[4].groups == []


def test_changes_of_topics_are_seen(user: User) -> None:
    operator = Operator(user.hand)
    deletion = DeleteTopicsRequest(topics=[DeleteTopicState(name="fresh")], timeout_ms=5_000)

    answers = together(
        user,
        creation("fresh"),
        metadata("fresh"),
        (api_keys.PRODUCE, user.produce_request(a_batch(b"a"), topic="fresh")),
        (api_keys.CREATE_PARTITIONS, operator.growth(("fresh", 3))),
        metadata("fresh"),
        (api_keys.DELETE_TOPICS, deletion),
        metadata("fresh"),
        creation("fresh"),
        metadata("fresh"),
    )

    assert topic_seen(answers[1]) == (errors.NONE, 2)
    assert produced(answers[2])[0].error_code == errors.NONE
    assert topic_seen(answers[4]) == (errors.NONE, 3)
    assert topic_seen(answers[6])[0] == errors.UNKNOWN_TOPIC_OR_PARTITION
    assert topic_seen(answers[8]) == (errors.NONE, 2)


def test_a_change_of_settings_is_seen(user: User) -> None:
    operator = Operator(user.hand)
    change = operator.change_request((TOPIC, ORDERS, [("retention.ms", SET, "77")]))
    ask = DescribeConfigsRequest([DescribeConfigsResource(TOPIC, ORDERS, ["retention.ms"])])

    answers = together(
        user, (api_keys.INCREMENTAL_ALTER_CONFIGS, change), (api_keys.DESCRIBE_CONFIGS, ask)
    )

    assert isinstance(answers[1], DescribeConfigsResponse)
    assert answers[1].results[0].configs[0].value == "77"


# --- What waits for others is waited for.


def test_a_fetch_that_waits_does_not_see_what_is_produced_behind_it(user: User) -> None:
    produce = user.produce_request(a_batch(b"mine"))
    user.send_fetch(0, max_wait_ms=100)

    early = together(user, (api_keys.PRODUCE, produce), list_offsets(LATEST))
    user.hand.turn(after_ms=100)
    user.hand.settle()
    fetch, produced_later, lookup = user.answers()

    assert early == []
    assert isinstance(fetch, FetchResponse)
    assert values_in(fetched(fetch)[0]) == []
    assert isinstance(produced_later, ProduceResponse)
    assert listed(lookup) == 1


def test_a_member_leaves_after_the_join_that_it_wrote_before() -> None:
    hand = group_broker()
    (first,) = stable_group(hand)
    second = Member(hand)
    second.get_id()
    identity = MemberIdentity(member_id=second.member_id)

    early = together(
        second,
        (api_keys.JOIN_GROUP, second.join_request()),
        (api_keys.LEAVE_GROUP, LeaveGroupRequest(group_id=READERS, members=[identity])),
    )
    first.join()
    joined, left = second.answers()

    assert early == []
    assert isinstance(joined, JoinGroupResponse)
    assert joined.generation_id == first.generation_id
    assert isinstance(left, LeaveGroupResponse)
    assert left.members[0].error_code == errors.NONE


def test_other_connections_are_served_while_a_frame_is_held_back(user: User) -> None:
    other = User(user.hand)
    user.send_fetch(0, max_wait_ms=60_000)
    user.client.send_bytes(frames(user, api_versions()))

    other.produce(a_batch(b"a"))

    assert [type(answer) for answer in user.answers()] == [FetchResponse, ApiVersionsResponse]


def test_what_follows_a_standstill_of_the_broker_is_handled(user: User) -> None:
    user.send_fetch(0, max_wait_ms=500)
    user.client.send_bytes(frames(user, api_versions()))

    user.hand.turn(after_ms=60_000)
    during = user.answers()
    for _ in range(2):
        user.hand.turn(after_ms=499)
    user.hand.settle()

    assert during == []
    assert [type(answer) for answer in user.answers()] == [FetchResponse, ApiVersionsResponse]


# --- What may follow at once.


def test_produces_written_together_share_one_flush(user: User) -> None:
    produce = user.produce_request(a_batch(b"a"))

    user.client.send_bytes(frames(user, *[(api_keys.PRODUCE, produce)] * 20))
    user.hand.turn(*user.hand.disk.complete_flushes())

    offsets = [produced(answer)[0].base_offset for answer in user.answers()]
    assert offsets == list(range(20))


def test_commits_of_offsets_written_together_share_one_flush() -> None:
    user = GroupUser(group_broker())
    commits = [user.commit_request({0: offset}) for offset in range(20)]

    user.client.send_bytes(frames(user, *[(api_keys.OFFSET_COMMIT, each) for each in commits]))
    user.hand.turn(*user.hand.disk.complete_flushes())

    assert [commit_codes(answer) for answer in user.answers()] == [[errors.NONE]] * 20
    assert user.offset() == 19


def test_a_commit_does_not_follow_a_produce_at_once() -> None:
    user = GroupUser(group_broker())
    produce = user.produce_request(a_batch(b"a"))

    user.client.send_bytes(
        frames(
            user,
            (api_keys.PRODUCE, produce),
            (api_keys.OFFSET_COMMIT, user.commit_request({0: 1})),
        )
    )
    user.hand.turn(*user.hand.disk.complete_flushes())
    first = user.answers()
    user.hand.settle()

    assert [type(answer) for answer in first] == [ProduceResponse]
    assert [commit_codes(answer) for answer in user.answers()] == [[errors.NONE]]


@pytest.mark.parametrize("quick", [1, 63, 64, 100, 200])
def test_a_fetch_that_waits_behind_many_quick_requests_is_answered(user: User, quick: int) -> None:
    fetch = user.fetch_request(0, max_wait_ms=60_000)
    asked = [*[api_versions()] * quick, (api_keys.FETCH, fetch), *[api_versions()] * 3]

    early = together(user, *asked)
    User(user.hand).produce(a_batch(b"a"))
    late = user.answers()

    assert len(early) == quick
    assert [type(answer) for answer in late] == [FetchResponse, *[ApiVersionsResponse] * 3]


def test_produces_without_an_answer_are_bounded(user: User) -> None:
    user.produce(a_batch(b"a"))
    produce = user.produce_request(a_batch(b"a"), acks=0)
    asked = REQUESTS_IN_FLIGHT_MAX + 10
    connection = user.hand.broker.answers.connections[user.client.connection_id]

    user.client.send_bytes(frames(user, *[(api_keys.PRODUCE, produce)] * asked))
    slots = len(connection.slots) - connection.first_slot
    lookup = together(user, list_offsets(LATEST))

    assert slots <= REQUESTS_IN_FLIGHT_MAX
    assert listed(lookup[-1]) == asked + 1


# --- What is held back is bounded, and goes with its peer.


def test_nothing_is_read_from_a_peer_whose_next_frame_waits(user: User) -> None:
    connection = user.hand.broker.answers.connections[user.client.connection_id]
    paused = user.hand.transport.paused
    one = frames(user, api_versions())

    user.send_fetch(0, max_wait_ms=60_000)
    without = paused.get(user.client.connection_id, False)
    user.client.send_bytes(one[:5])
    with_a_part = paused.get(user.client.connection_id, False)
    user.client.send_bytes(one[5:7])
    while_held = paused[user.client.connection_id]
    # Bytes that the transport had read before it was told to pause.
    user.client.send_bytes(one[7:] + frames(user, *[api_versions()] * 500))
    slots = len(connection.slots) - connection.first_slot
    User(user.hand).produce(a_batch(b"a"))

    assert (without, with_a_part, while_held) == (False, False, True)
    assert slots == 1
    assert len(user.answers()) == 502
    assert not paused[user.client.connection_id]


def test_a_peer_that_takes_its_answers_does_not_free_what_is_held_back(user: User) -> None:
    user.send_fetch(0, max_wait_ms=60_000)
    user.client.send_bytes(frames(user, list_offsets(LATEST)))

    user.hand.turn(drained(user.client.connection_id))
    user.hand.settle()

    assert user.answers() == []


def test_what_is_held_back_goes_with_its_connection(user: User) -> None:
    produce = user.produce_request(a_batch(b"late"))
    before = len(user.hand.broker.timer)
    gone = User(user.hand)
    gone.send_fetch(0, max_wait_ms=60_000)
    gone.client.send_bytes(frames(gone, (api_keys.PRODUCE, produce)))

    user.hand.turn(disconnected(gone.client.connection_id))
    user.hand.settle()

    assert user.list_offsets(LATEST).offset == 0
    assert len(user.hand.broker.timer) == before
    assert user.hand.broker.fetches.purgatory.delayed == 0


def test_a_peer_whose_request_is_still_to_be_handled_is_not_idle() -> None:
    hand = BrokerByHand({"connections.max.idle.ms": "1000"})
    user = User(hand)
    user.client.send_bytes(frames(user, creation(ORDERS), api_versions()))
    for _ in range(3):
        hand.turn(after_ms=400)
    # The watch of the connection is due in the turn that answers the first request.
    watch = hand.broker.answers.connections[user.client.connection_id].watch
    assert watch is not None
    hand.turn(
        *hand.disk.complete_flushes(), after_ms=watch.deadline_ms - hand.broker.this_turn.now_ms
    )
    hand.settle()

    assert not user.client.is_closed
    assert len(user.answers()) == 2


def test_a_broker_that_stops_answers_what_waits_and_leaves_what_is_held_back(user: User) -> None:
    produce = user.produce_request(a_batch(b"late"))
    user.send_fetch(0, max_wait_ms=60_000)
    user.client.send_bytes(frames(user, (api_keys.PRODUCE, produce)))

    user.hand.stop()
    answers = user.answers()
    user.hand.start()

    assert [type(answer) for answer in answers] == [FetchResponse]
    assert User(user.hand).list_offsets(LATEST).offset == 0


def test_a_heartbeat_behind_a_commit_is_answered_when_the_commit_is() -> None:
    hand = group_broker()
    (member,) = stable_group(hand)
    beat = HeartbeatRequest(
        group_id=READERS, generation_id=member.generation_id, member_id=member.member_id
    )
    commit = member.commit_request(
        {0: 1}, member_id=member.member_id, generation_id=member.generation_id
    )

    answers = together(member, (api_keys.OFFSET_COMMIT, commit), (api_keys.HEARTBEAT, beat))

    assert commit_codes(answers[0]) == [errors.NONE]
    assert isinstance(answers[1], HeartbeatResponse)
    assert answers[1].error_code == errors.NONE


def test_a_produce_without_an_answer_that_the_disk_refuses_costs_the_connection(
    user: User,
) -> None:
    other = User(user.hand)
    user.hand.disk.fail_writes(1, f"{ORDERS}-0")
    produce = user.produce_request(a_batch(b"lost"), acks=0)

    user.client.send_bytes(frames(user, *[(api_keys.PRODUCE, produce)] * 3, list_offsets(LATEST)))
    user.hand.settle()

    assert user.client.is_closed
    assert other.produce(a_batch(b"kept")).base_offset == 0


def test_bytes_that_are_no_request_close_the_connection_without_waiting(user: User) -> None:
    user.send_fetch(0, max_wait_ms=60_000)

    user.hand.turn(received(user.client.connection_id, b"GET / HTTP/1.1\r\n\r\n"))

    assert user.client.is_closed
