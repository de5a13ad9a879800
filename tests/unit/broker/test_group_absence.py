"""A broker that stood still or was started again: nobody is removed for its own absence."""

from __future__ import annotations

import pytest
from tests.support.broker.group_user import (
    SESSION_MS,
    GroupUser,
    Member,
    group_broker,
    join_together,
    pass_time,
    stabilize,
    stable_group,
)

from tarry.base import errors
from tarry.base.doors import received
from tarry.base.limits import TIMER_MOVES_PER_TURN_MAX
from tarry.base.settings import Settings
from tarry.protocol import api_keys
from tarry.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tarry.protocol.messages.sync_group import SyncGroupResponse
from tarry.simulation.by_hand import BrokerByHand

STOOD_MS = 60_000


def stand_still(hand: BrokerByHand) -> None:
    """The process is stopped, and goes on a minute later: the clock has moved, nothing else."""
    hand.turn(after_ms=STOOD_MS)
    hand.settle()


@pytest.fixture(autouse=True)
def _told(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tarry.group")


def assert_nobody_was_removed(caplog: pytest.LogCaptureFixture) -> None:
    assert [line for line in caplog.messages if "was removed" in line] == []


# --- Stood still.


def test_a_broker_that_stood_still_gives_every_member_a_fresh_session(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hand = group_broker()
    members = stable_group(hand, 3)
    pass_time(hand, SESSION_MS - 1)

    stand_still(hand)
    pass_time(hand, SESSION_MS - 1)
    first = members[0].heartbeat()

    assert first == errors.NONE
    assert_nobody_was_removed(caplog)
    pass_time(hand, 1)
    assert members[1].heartbeat() == errors.UNKNOWN_MEMBER_ID
    assert members[0].heartbeat() == errors.REBALANCE_IN_PROGRESS


def test_heartbeats_that_arrived_while_it_stood_are_answered_as_ever() -> None:
    hand = group_broker()
    (member,) = stable_group(hand)
    request = HeartbeatRequest(
        group_id=member.group, generation_id=member.generation_id, member_id=member.member_id
    )
    frame = member.client.encode(api_keys.HEARTBEAT, 4, request)

    hand.turn(received(member.client.connection_id, frame), after_ms=STOOD_MS)

    assert member.answer(HeartbeatResponse).error_code == errors.NONE


def test_a_join_phase_goes_on_with_all_its_time(caplog: pytest.LogCaptureFixture) -> None:
    hand = group_broker()
    leader, other = Member(hand, rebalance_ms=20_000), Member(hand, rebalance_ms=20_000)
    stabilize(leader, other)
    leader.send_join()
    pass_time(hand, 9_000)

    stand_still(hand)
    for _ in range(2):
        pass_time(hand, 9_000)
        assert other.heartbeat() == errors.REBALANCE_IN_PROGRESS
    other.send_join()
    hand.settle()

    assert leader.take_join().error_code == errors.NONE
    assert other.take_join().error_code == errors.NONE
    assert_nobody_was_removed(caplog)


def test_an_initial_delay_is_waited_out_in_attended_time() -> None:
    hand = group_broker(group_initial_rebalance_delay_ms="3000")
    member = Member(hand)
    member.send_join()

    stand_still(hand)
    early = member.answers()
    pass_time(hand, 3_000)

    assert early == []
    assert member.take_join().generation_id == 1


def test_a_sync_phase_goes_on_with_all_its_time(caplog: pytest.LogCaptureFixture) -> None:
    hand = group_broker()
    leader, other = Member(hand, rebalance_ms=20_000), Member(hand, rebalance_ms=20_000)
    stabilize(leader, other)
    join_together(leader, other)
    other.send_sync()
    pass_time(hand, 9_000)

    stand_still(hand)
    for _ in range(2):
        pass_time(hand, 9_000)
        leader.heartbeat()
    answer = leader.sync()

    assert answer.error_code == errors.NONE
    assert other.answer(SyncGroupResponse).error_code == errors.NONE
    assert_nobody_was_removed(caplog)


def test_an_id_that_was_given_out_is_good_for_a_fresh_session(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hand = group_broker()
    member = Member(hand)
    member.get_id()
    pass_time(hand, SESSION_MS - 1)

    stand_still(hand)
    pass_time(hand, SESSION_MS - 1)

    assert member.join().error_code == errors.NONE
    assert_nobody_was_removed(caplog)


def test_a_commit_is_given_its_whole_time_though_the_broker_stood() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    user.send_commit({0: 7})

    hand.turn(after_ms=STOOD_MS)
    early = user.answers()
    hand.settle()

    assert early == []
    assert len(user.answers()) == 1
    assert user.offset() == 7


def test_a_second_that_it_is_late_is_no_absence() -> None:
    """Otherwise a busy broker would never remove anybody."""
    hand = group_broker()
    (member,) = stable_group(hand)

    for _ in range(12):
        hand.turn(after_ms=900)

    assert member.heartbeat() == errors.UNKNOWN_MEMBER_ID


def test_more_deadlines_than_a_turn_has_room_for_are_no_absence(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What is left of them is overdue in the next turn; the broker was there all the time."""
    hand = group_broker()
    asking = Member(hand, "asking")
    frame = asking.client.encode(api_keys.JOIN_GROUP, 9, asking.join_request())
    asking.client.send_bytes(frame * 3 * TIMER_MOVES_PER_TURN_MAX)
    pass_time(hand, SESSION_MS - 400)

    for _ in range(8):
        hand.turn(after_ms=400)

    assert [line for line in caplog.messages if "did not run for" in line] == []
    assert GroupUser(hand).group_ids() == []


# --- Started again.


@pytest.mark.parametrize("end", ["power", "kill", "stop"])
def test_after_a_start_every_member_has_a_fresh_session(
    end: str, caplog: pytest.LogCaptureFixture
) -> None:
    hand = group_broker()
    members = stable_group(hand, 2)
    pass_time(hand, SESSION_MS - 1)

    if end == "stop":
        hand.stop()
    elif end == "kill":
        hand.disk.kill()
    else:
        hand.disk.crash()
    hand.now_ms += STOOD_MS
    hand.now_wall_ms += STOOD_MS
    hand.start()
    hand.settle()
    again = reconnected(members, hand)
    pass_time(hand, SESSION_MS - 1)
    codes = [member.heartbeat() for member in again]

    assert codes == [errors.NONE] * 2
    assert_nobody_was_removed(caplog)
    pass_time(hand, SESSION_MS)
    assert GroupUser(hand).describe().members == []


def reconnected(members: list[Member], hand: BrokerByHand) -> list[Member]:
    """The same members over new connections."""
    for member in members:
        member.client = hand.connect()
    return members


def test_members_work_on_after_a_start_in_the_generation_they_had() -> None:
    hand = group_broker()
    members = stable_group(hand, 2)
    members[0].commit_as_member({0: 7})

    hand.crash()
    hand.settle()
    leader, other = reconnected(members, hand)

    assert leader.commit_as_member({0: 8}) == [errors.NONE]
    assert other.sync().assignment == b"for 1"
    assert leader.offset() == 8


def test_a_round_that_a_crash_ended_begins_again_without_a_loss() -> None:
    """What was not recorded is forgotten: the generation before is there, and members rejoin."""
    hand = group_broker()
    members = stable_group(hand, 2)
    join_together(*members)

    hand.crash()
    hand.settle()
    again = reconnected(members, hand)
    told = [member.heartbeat() for member in again]
    stabilize(*again)

    assert told == [errors.ILLEGAL_GENERATION] * 2
    assert [member.generation_id for member in again] == [3, 3]
    assert GroupUser(hand).state() == "Stable"


def test_a_group_beyond_a_size_that_was_lowered_rebalances_and_the_last_to_join_are_dropped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    hand = group_broker()
    members = stable_group(hand, 3)
    hand.stop()
    hand.settings = Settings({"group.max.size": "2"})

    hand.start()
    hand.settle()
    again = reconnected(members, hand)
    told = [member.heartbeat() for member in again]
    for member in again:
        member.send_join()
    hand.settle()
    codes = [member.take_join().error_code for member in again]

    assert told == [errors.REBALANCE_IN_PROGRESS] * 3
    assert codes == [errors.NONE, errors.NONE, errors.GROUP_MAX_SIZE_REACHED]


def test_an_id_that_was_given_out_does_not_survive_a_crash() -> None:
    hand = group_broker()
    member = Member(hand)
    member.get_id()

    hand.crash()
    hand.settle()
    (again,) = reconnected([member], hand)

    assert again.join_answer().error_code == errors.UNKNOWN_MEMBER_ID
