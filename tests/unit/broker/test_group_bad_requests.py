"""Requests that no sane client sends to a group: Kafka's error code, and other groups go on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.broker.broker_user import ORDERS
from tests.support.broker.group_user import (
    OFFSETS_TOPIC,
    READERS,
    SESSION_MS,
    GroupUser,
    Member,
    commit_codes,
    group_broker,
    join_together,
    pass_time,
    stabilize,
    stable_group,
    waiting_in,
)

from tarry.base import errors
from tarry.base.limits import PROTOCOLS_PER_MEMBER_MAX
from tarry.group.classic.joining import PENDING_MEMBERS_MAX
from tarry.protocol import api_keys
from tarry.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tarry.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tarry.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from tarry.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tarry.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupResponse,
)
from tarry.simulation.by_hand import BrokerByHand

# The longest text that a record of a group can hold.
NAME_MAX = 32_767


@pytest.fixture
def hand() -> Iterator[BrokerByHand]:
    """A broker with a group that must go on whatever another one does."""
    hand = group_broker()
    (member,) = stable_group(hand, 1, "bystanders")
    yield hand
    assert not hand.broker.is_stopped
    assert member.heartbeat() == errors.NONE
    assert member.commit_as_member({0: 7}) == [errors.NONE]


# --- Names.


def test_an_empty_group_id_is_refused_where_members_are_concerned(hand: BrokerByHand) -> None:
    member = Member(hand, "")
    member.member_id, member.generation_id = "anybody", 1

    join = member.join_answer()
    sync = member.request(SyncGroupResponse, api_keys.SYNC_GROUP, 5, member.sync_request())
    leave = member.leave()

    assert join.error_code == errors.INVALID_GROUP_ID
    # Kafka looks at the protocols of a sync first, where both are named.
    assert sync.error_code in (errors.INVALID_GROUP_ID, errors.INCONSISTENT_GROUP_PROTOCOL)
    assert member.heartbeat() == errors.INVALID_GROUP_ID
    assert leave == errors.INVALID_GROUP_ID
    assert member.delete_offsets(0, group="") == [errors.INVALID_GROUP_ID]


def test_the_empty_group_id_is_good_for_offsets_as_it_always_was(hand: BrokerByHand) -> None:
    user = GroupUser(hand)

    unknown = (user.state(""), user.delete_groups(""))
    committed = user.commit({0: 7}, "")
    known = (user.offset(""), user.state(""))
    deleted = user.delete_groups("")

    assert unknown == ("Dead", [errors.GROUP_ID_NOT_FOUND])
    assert (committed, known, deleted) == ([errors.NONE], (7, "Empty"), [errors.NONE])
    assert user.all_offsets("") == {}


def test_a_group_name_of_32_kilobytes_is_a_name() -> None:
    hand = group_broker()
    name = "g" * NAME_MAX
    (member,) = stable_group(hand, 1, name)

    committed = member.commit_as_member({0: 7})
    hand.crash()
    hand.settle()
    user = GroupUser(hand)

    assert committed == [errors.NONE]
    assert user.offset(name) == 7
    assert user.state(name) == "Stable"
    assert user.find(name).error_code == errors.NONE


def test_a_group_name_that_no_record_holds_is_refused(hand: BrokerByHand) -> None:
    name = "g" * (NAME_MAX + 1)
    user, member = GroupUser(hand), Member(hand, name)

    join = member.join_answer()
    committed = user.commit({0: 7}, name)

    assert join.error_code == errors.INVALID_GROUP_ID
    assert committed == [errors.INVALID_GROUP_ID]
    assert user.all_offsets(name) == {}
    assert user.describe(name).error_code == errors.GROUP_ID_NOT_FOUND
    assert user.delete_groups(name) == [errors.GROUP_ID_NOT_FOUND]


@pytest.mark.parametrize("length", [NAME_MAX, NAME_MAX + 1, 1 << 20])
def test_long_member_ids_and_instance_ids_are_strangers(hand: BrokerByHand, length: int) -> None:
    stable_group(hand)
    stranger = Member(hand)
    stranger.member_id, stranger.generation_id = "m" * length, 1

    codes = [stranger.heartbeat(), stranger.leave(), stranger.join_answer().error_code]
    stranger.instance_id = "i" * length
    codes.append(stranger.heartbeat())

    assert codes == [errors.UNKNOWN_MEMBER_ID] * 4


def test_a_long_instance_id_is_taken_as_far_as_a_record_holds_it(hand: BrokerByHand) -> None:
    longest = Member(hand, "longest", instance_id="i" * NAME_MAX)
    too_long = Member(hand, "too long", instance_id="i" * (NAME_MAX + 1))

    stabilize(longest)
    refused = too_long.join_answer()

    assert longest.heartbeat() == errors.NONE
    assert refused.error_code == errors.INVALID_REQUEST
    assert too_long.group_ids() == ["bystanders", "longest"]


# --- Sessions and protocols.


@pytest.mark.parametrize("session_ms", [-1, 0, 5_999, 1_800_001, 2**31 - 1])
def test_a_session_outside_its_bounds_is_refused(hand: BrokerByHand, session_ms: int) -> None:
    member = Member(hand, session_ms=session_ms)

    assert member.join_answer().error_code == errors.INVALID_SESSION_TIMEOUT
    assert member.group_ids() == ["bystanders"]


@pytest.mark.parametrize("session_ms", [6_000, 1_800_000])
def test_the_bounds_themselves_are_good(hand: BrokerByHand, session_ms: int) -> None:
    assert Member(hand, session_ms=session_ms).join().error_code == errors.NONE


def test_the_bounds_are_settings() -> None:
    hand = group_broker(group_min_session_timeout_ms="100", group_max_session_timeout_ms="200")

    codes = [
        Member(hand, f"g{session_ms}", session_ms=session_ms).join_answer(3).error_code
        for session_ms in (99, 100, 200, 201)
    ]

    assert codes == [
        errors.INVALID_SESSION_TIMEOUT,
        errors.NONE,
        errors.NONE,
        errors.INVALID_SESSION_TIMEOUT,
    ]


@pytest.mark.parametrize("rebalance_ms", [-1, 0, 2**31 - 1])
def test_any_rebalance_timeout_is_lived_with(hand: BrokerByHand, rebalance_ms: int) -> None:
    member = Member(hand, rebalance_ms=rebalance_ms)

    joined = member.join()
    pass_time(hand, 1_000)

    assert joined.error_code == errors.NONE


def test_no_protocols_and_no_type_are_refused(hand: BrokerByHand) -> None:
    without = Member(hand, protocols=())
    untyped = Member(hand, protocol_type="")

    codes = [
        each.join_answer(version).error_code for each in (without, untyped) for version in (3, 9)
    ]

    assert codes == [errors.INCONSISTENT_GROUP_PROTOCOL] * 4
    assert without.group_ids() == ["bystanders"]


def test_no_common_protocol_is_refused_and_the_group_works_on(hand: BrokerByHand) -> None:
    (member,) = stable_group(hand)
    other = Member(hand, protocols=(("elsewhere", b""),))
    connect = Member(hand, protocol_type="connect")

    codes = [other.join_answer(3).error_code, connect.join_answer(3).error_code]

    assert codes == [errors.INCONSISTENT_GROUP_PROTOCOL] * 2
    assert member.heartbeat() == errors.NONE


def test_a_hundred_protocols_are_taken(hand: BrokerByHand) -> None:
    protocols = tuple((f"protocol-{number}", b"m") for number in range(PROTOCOLS_PER_MEMBER_MAX))
    leader, other = Member(hand, protocols=protocols), Member(hand, protocols=protocols[::-1])

    stabilize(leader, other)

    described = leader.describe()
    assert described.group_state == "Stable"
    assert described.protocol_data in ("protocol-0", "protocol-99")
    assert [each.member_metadata for each in described.members] == [b"m", b"m"]


def test_more_protocols_are_refused(hand: BrokerByHand) -> None:
    protocols = tuple((f"{number}", b"m") for number in range(PROTOCOLS_PER_MEMBER_MAX + 1))

    joined = Member(hand, protocols=protocols).join_answer()

    assert joined.error_code == errors.INCONSISTENT_GROUP_PROTOCOL


# --- Sizes.


def test_metadata_of_12_megabytes_is_refused_by_the_log_and_not_before(
    hand: BrokerByHand,
) -> None:
    """As in Kafka: what is said in a join is the members' own, until it is to be written."""
    member = Member(hand, protocols=(("range", b"m" * 12_000_000),))
    joined = member.join()

    synced = member.sync()

    assert (joined.error_code, len(joined.members[0].metadata)) == (errors.NONE, 12_000_000)
    assert synced.error_code == errors.UNKNOWN_SERVER_ERROR
    assert member.state() == "PreparingRebalance"
    end = hand.broker.topics[OFFSETS_TOPIC].partitions[0].log.log_end_offset
    assert end == 1


def test_an_assignment_of_20_megabytes_is_refused_by_the_log(hand: BrokerByHand) -> None:
    member = Member(hand)
    member.join()

    synced = member.sync({member.member_id: b"a" * 20_000_000})

    assert synced.error_code == errors.UNKNOWN_SERVER_ERROR
    assert member.heartbeat() == errors.REBALANCE_IN_PROGRESS


def test_a_commit_that_names_partitions_99999_times_takes_the_last_of_each(
    hand: BrokerByHand,
) -> None:
    user = GroupUser(hand)

    codes = commit_many(user, 99_999)

    assert codes == {errors.NONE}
    assert sorted(user.all_offsets().values()) == [99_995, 99_996, 99_997, 99_998]


def test_a_commit_of_as_many_partitions_as_a_batch_holds_is_taken(hand: BrokerByHand) -> None:
    user = GroupUser(hand)

    codes = commit_many(user, 10_000)

    assert codes == {errors.NONE}
    assert user.all_offsets() == {(ORDERS, index): 9_996 + index for index in range(4)}


def test_a_commit_for_99999_partitions_that_are_not_there_is_refused(hand: BrokerByHand) -> None:
    user = GroupUser(hand)

    codes = commit_many(user, 99_999, topic="nowhere")

    assert codes == {errors.UNKNOWN_TOPIC_OR_PARTITION}


def commit_many(user: GroupUser, count: int, topic: str = ORDERS) -> set[int]:
    rows = [
        OffsetCommitRequestPartition(partition_index=number % 4, committed_offset=number)
        for number in range(count)
    ]
    request = OffsetCommitRequest(
        group_id=READERS, topics=[OffsetCommitRequestTopic(name=topic, partitions=rows)]
    )
    answer = user.client.ask(api_keys.OFFSET_COMMIT, 9, request)
    return set(commit_codes(answer))


# --- Members that behave badly.


def test_ids_that_are_asked_for_in_a_loop_are_bounded() -> None:
    hand = group_broker()
    user = Member(hand)
    # The same correlation id each time: nobody reads the answers.
    frame = user.client.encode(api_keys.JOIN_GROUP, 9, user.join_request())
    shard = hand.broker.groups.shards[0]
    purgatory = hand.broker.groups.shared.heartbeats

    for _ in range(PENDING_MEMBERS_MAX // 500 + 1):
        user.client.send_bytes(frame * 500)
        hand.settle()
    group = shard.group(READERS)

    assert len(group.round.pending_members) == PENDING_MEMBERS_MAX
    assert len(group.heartbeats) == PENDING_MEMBERS_MAX
    assert purgatory.delayed == PENDING_MEMBERS_MAX
    assert purgatory.watched == PENDING_MEMBERS_MAX
    assert hand.broker.groups.waiting == 0
    pass_time(hand, SESSION_MS)
    assert READERS not in shard.groups.by_id
    assert waiting_in(hand) == {}


def test_members_of_old_clients_that_join_in_a_loop_are_bounded_by_the_group_s_size() -> None:
    hand = group_broker(group_max_size="100", group_initial_rebalance_delay_ms="3000")
    codes = []
    for _ in range(150):
        member = Member(hand)
        member.client.send(api_keys.JOIN_GROUP, 3, member.join_request())
        codes += [answer.error_code for answer in member.answers()]  # type: ignore[attr-defined]

    assert codes == [errors.GROUP_MAX_SIZE_REACHED] * 50
    assert len(hand.broker.groups.shards[0].group(READERS).round.members) == 100


def test_an_assignment_for_strangers_goes_nowhere(hand: BrokerByHand) -> None:
    leader, other = Member(hand), Member(hand)
    leader.join()
    join_together(other, leader)
    other.send_sync()

    synced = leader.sync({"stranger": b"x", other.member_id: b"yours"})

    assert (synced.error_code, synced.assignment) == (errors.NONE, b"")
    assert other.answer(SyncGroupResponse).assignment == b"yours"
    described = leader.describe()
    assert [each.member_assignment for each in described.members] == [b"", b"yours"]
    kept = hand.broker.groups.shards[0].group(READERS).round.assignments
    assert list(kept) == [leader.member_id, other.member_id]


def test_an_assignment_of_somebody_who_does_not_lead_goes_nowhere(hand: BrokerByHand) -> None:
    leader, other = Member(hand), Member(hand)
    leader.join()
    join_together(other, leader)

    other.send_sync({leader.member_id: b"stolen", other.member_id: b"all"})
    hand.settle()
    before = other.answers()
    leader.sync()

    assert before == []
    assert other.answer(SyncGroupResponse).assignment == b"for 1"


def test_an_assignment_with_10000_strangers_is_read_and_forgotten(hand: BrokerByHand) -> None:
    member = Member(hand)
    member.join()
    strangers = {f"stranger-{number}": b"" for number in range(10_000)}

    synced = member.sync({**strangers, member.member_id: b"mine"})

    assert (synced.error_code, synced.assignment) == (errors.NONE, b"mine")


def test_who_leaves_10000_times_at_once_leaves_once(hand: BrokerByHand) -> None:
    (member,) = stable_group(hand)
    leaving = [MemberIdentity(member_id=member.member_id)] * 10_000
    request = LeaveGroupRequest(group_id=READERS, members=leaving)

    answer = member.request(LeaveGroupResponse, api_keys.LEAVE_GROUP, 5, request)

    codes = [each.error_code for each in answer.members]
    assert codes == [errors.NONE]


@pytest.mark.parametrize("generation_id", [-1, -2, 0, 2, 2**31 - 1])
def test_generations_that_were_never_begun_are_illegal(
    hand: BrokerByHand, generation_id: int
) -> None:
    (member,) = stable_group(hand)
    heartbeat = HeartbeatRequest(
        group_id=READERS, generation_id=generation_id, member_id=member.member_id
    )
    sync = SyncGroupRequest(
        group_id=READERS,
        generation_id=generation_id,
        member_id=member.member_id,
        protocol_type="consumer",
        protocol_name="range",
    )

    beaten = member.request(HeartbeatResponse, api_keys.HEARTBEAT, 4, heartbeat)
    synced = member.request(SyncGroupResponse, api_keys.SYNC_GROUP, 5, sync)

    assert beaten.error_code == errors.ILLEGAL_GENERATION
    assert synced.error_code == errors.ILLEGAL_GENERATION


# --- Coordinators that do not exist.


@pytest.mark.parametrize("version", range(1, 7))
@pytest.mark.parametrize("key_type", [1, 2, 3, -1])
def test_coordinators_of_other_kinds_are_refused_for_good(version: int, key_type: int) -> None:
    """Not as unavailable, which clients would ask for again and again; codes: trap 20."""
    hand = BrokerByHand()
    user = GroupUser(hand)
    if version < 4:
        request = FindCoordinatorRequest(key="name", key_type=key_type)
    else:
        request = FindCoordinatorRequest(coordinator_keys=["a", "b"], key_type=key_type)

    answer = user.request(FindCoordinatorResponse, api_keys.FIND_COORDINATOR, version, request)

    found = [answer] if version < 4 else answer.coordinators
    is_old_transaction = key_type == 1 and version < 4
    code = errors.INVALID_REQUEST
    if is_old_transaction:
        code = errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert [(each.error_code, each.node_id, each.host, each.port) for each in found] == [
        (code, -1, "", -1)
    ] * (1 if version < 4 else 2)
    assert all((each.error_message or "")[-1:] not in ("", ".") for each in found)
    assert OFFSETS_TOPIC not in hand.broker.topics


@pytest.mark.parametrize("version", range(7))
def test_groups_are_found_in_every_version(version: int) -> None:
    hand = group_broker()
    user = GroupUser(hand)
    if version < 4:
        request = FindCoordinatorRequest(key=READERS, key_type=0)
    else:
        request = FindCoordinatorRequest(coordinator_keys=[READERS, "", "other"], key_type=0)

    answer = user.request(FindCoordinatorResponse, api_keys.FIND_COORDINATOR, version, request)

    found = [answer] if version < 4 else answer.coordinators
    where = (errors.NONE, hand.broker.broker_id, "127.0.0.1", 9092)
    assert [(each.error_code, each.node_id, each.host, each.port) for each in found] == [
        where
    ] * len(found)
    if version >= 4:
        assert [each.key for each in answer.coordinators] == [READERS, "", "other"]


def test_a_find_of_nothing_finds_nothing() -> None:
    user = GroupUser(group_broker())
    request = FindCoordinatorRequest(coordinator_keys=[], key_type=0)

    answer = user.request(FindCoordinatorResponse, api_keys.FIND_COORDINATOR, 6, request)

    assert answer.coordinators == []


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


def test_members_beyond_a_groups_metadata_are_turned_away_with_a_line_in_the_log(
    hand: BrokerByHand, caplog: pytest.LogCaptureFixture
) -> None:
    greedy = [Member(hand, "greedy") for _ in range(5)]
    for member in greedy:
        member.get_id()
        request = member.join_request()
        request.protocols[0].metadata = bytes(5 << 20)
        member.client.send(api_keys.JOIN_GROUP, 9, request)
    pass_time(hand, 4_000)

    codes = [answer.error_code for member in greedy for answer in member.client.answers()]

    # The first is in; the next two wait until it has joined again.
    assert sorted(codes) == [0, *[errors.GROUP_MAX_SIZE_REACHED] * 2]
    assert [r.getMessage() for r in caplog.records if "JoinGroup: members" in r.getMessage()]
