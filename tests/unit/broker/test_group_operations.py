"""What waits in a broker's groups: one operation a round, one a member, none when all is over."""

from __future__ import annotations

import re

import pytest
from tests.support.broker.group_user import (
    READERS,
    SESSION_MS,
    GroupUser,
    Member,
    commit_codes,
    delayed_in,
    group_broker,
    join_together,
    pass_time,
    pass_time_without_disk,
    stabilize,
    stable_group,
    waiting_in,
)

from tarry.base import errors
from tarry.base.probe import Probe
from tarry.protocol import api_keys
from tarry.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from tarry.protocol.messages.leave_group import (
    LeaveGroupRequest,
    MemberIdentity,
)
from tarry.protocol.messages.offset_delete import OffsetDeleteResponse
from tarry.protocol.messages.sync_group import (
    SyncGroupResponse,
)
from tarry.simulation.by_hand import START_MS, BrokerByHand

REMOVED = re.compile(
    r"group (?P<group>\S+): member (?P<member>\S+?)( \(instance (?P<instance>\S+)\))?"
    r" of client (?P<client>\S*) at (?P<host>\S*) was removed: (?P<reason>[^;]+);"
    r" silent for (?P<silent>\d+) ms; (?P<follows>.+)"
)


def removals(caplog: pytest.LogCaptureFixture) -> list[dict[str, str | None]]:
    """The parts of every line about a member that was removed."""
    lines = [each.getMessage() for each in caplog.records if "was removed" in each.getMessage()]
    found = [REMOVED.fullmatch(line) for line in lines]
    assert None not in found, lines
    return [each.groupdict() for each in found if each is not None]


def beat(members: list[Member], ms: int) -> None:
    """So much time, in which these members send heartbeats."""
    while ms > 0:
        step_ms = min(ms, 2_000)
        pass_time(members[0].hand, step_ms)
        for member in members:
            member.heartbeat()
        ms -= step_ms


# --- DelayedJoin.


def test_a_first_join_waits_out_the_initial_delay_to_the_millisecond() -> None:
    hand = group_broker(group_initial_rebalance_delay_ms="3000")
    member = Member(hand)
    member.send_join()

    pass_time(hand, 2_999)
    early = member.answers()
    pass_time(hand, 1)

    assert early == []
    assert member.take_join().generation_id == 1


def test_the_initial_delay_goes_on_while_members_come_and_ends_at_the_rebalance_timeout() -> None:
    hand = group_broker(group_initial_rebalance_delay_ms="1000")
    members = [Member(hand, rebalance_ms=2_500) for _ in range(4)]
    for member, wait_ms in zip(members, (500, 1_000, 900, 99), strict=True):
        member.send_join()
        pass_time(hand, wait_ms)

    early = [member.answers() for member in members]
    pass_time(hand, 1)

    assert early == [[]] * 4
    assert [member.take_join().generation_id for member in members] == [1] * 4
    assert [member.is_leader for member in members] == [True, False, False, False]


def test_the_initial_delay_does_not_end_early_though_one_leaves_and_all_others_are_there() -> None:
    hand = group_broker(group_initial_rebalance_delay_ms="1000")
    stays, goes, by_the_way = Member(hand), Member(hand), GroupUser(hand)
    stays.send_join()
    goes.send_join()
    other = Member(hand)
    other.member_id = goes.member_id

    left = other.leave()
    pass_time(hand, 999)
    early = stays.answers()
    pass_time(hand, 1_001)

    assert (left, early) == (errors.NONE, [])
    assert goes.take_join().error_code == errors.UNKNOWN_MEMBER_ID
    assert stays.take_join().generation_id == 1
    assert by_the_way.state() == "CompletingRebalance"


def test_a_round_has_one_join_operation_however_many_join() -> None:
    hand = group_broker()
    members = stable_group(hand, 2)
    before = hand.broker.groups.shared.phases["Join"].completed_total

    newcomers = [Member(hand) for _ in range(5)]
    counts = []
    for member in newcomers:
        member.send_join()
        counts.append(delayed_in(hand)["Join"])
    for member in members:
        member.send_join()
    hand.settle()

    assert counts == [1] * 5
    assert [each.take_join().generation_id for each in (*members, *newcomers)] == [3] * 7
    assert hand.broker.groups.shared.phases["Join"].completed_total == before + 1
    assert "Join" not in waiting_in(hand)


def test_the_log_tells_who_leads_a_generation_and_how_long_the_group_stood_still(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "tarry.group")
    hand = group_broker(group_initial_rebalance_delay_ms="3000")
    member = Member(hand)

    member.send_join()
    pass_time(hand, 3_000)
    member.take_join()
    told = list(caplog.messages)
    member.sync()

    joined = f"group {READERS}: generation 1: 1 joined, assignor range, leader {member.member_id}"
    assert told == [joined]
    assert caplog.messages == [
        joined,
        f"group {READERS}: generation 1 is stable; the rebalance took 3000 ms",
    ]


def test_a_join_phase_ends_without_who_does_not_come_and_names_them(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "tarry.group")
    hand = group_broker()
    quick, slow = Member(hand, session_ms=60_000), Member(hand, session_ms=60_000)
    quick.rebalance_ms = slow.rebalance_ms = 20_000
    stabilize(quick, slow)

    quick.send_join()
    pass_time(hand, 19_999)
    early = quick.answers()
    pass_time(hand, 1)

    assert early == []
    assert quick.take_join().generation_id == 3
    assert slow.heartbeat() == errors.UNKNOWN_MEMBER_ID
    (removed,) = removals(caplog)
    assert removed == {
        "group": READERS,
        "member": slow.member_id,
        "instance": None,
        "client": "by-hand",
        "host": "/10.0.0.1",
        "reason": "it did not rejoin within the rebalance time-out",
        "silent": "20000",
        "follows": "the next generation begins",
    }


def test_an_id_that_was_given_out_holds_the_join_phase_until_its_session_ends() -> None:
    hand = group_broker()
    (member,) = stable_group(hand)
    pending, _newcomer = Member(hand, session_ms=6_000), Member(hand)
    pending.get_id()
    _newcomer.send_join()

    member.send_join()
    pass_time(hand, 5_999)
    early = member.answers()
    pass_time(hand, 1)

    assert early == []
    assert member.take_join().error_code == errors.NONE
    assert delayed_in(hand) == {"Sync": 1, "Heartbeat": 2}


# --- DelayedSync.


def test_the_sync_operation_holds_the_round_after_the_leaders_answer() -> None:
    hand = group_broker()
    leader, other = stable_group(hand, 2)
    join_together(leader, other)

    leader.send_sync()
    hand.settle()
    answered = leader.answer(SyncGroupResponse)
    waiting = delayed_in(hand)["Sync"]
    late = other.sync()

    assert answered.error_code == errors.NONE
    assert waiting == 1
    assert (late.error_code, late.assignment) == (errors.NONE, b"for 1")
    assert "Sync" not in waiting_in(hand)


def test_who_never_syncs_is_removed_though_its_heartbeats_come(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "tarry.group")
    hand = group_broker()
    leader, other = stable_group(hand, 2)
    leader.rebalance_ms = other.rebalance_ms = 20_000
    join_together(leader, other)
    assert leader.sync().error_code == errors.NONE

    beat([leader, other], 18_000)
    pass_time(hand, 1_999)
    early = (leader.heartbeat(), other.heartbeat())
    pass_time(hand, 1)

    assert early == (errors.NONE, errors.NONE)
    assert "Sync" not in waiting_in(hand)
    assert other.heartbeat() == errors.UNKNOWN_MEMBER_ID
    assert leader.heartbeat() == errors.REBALANCE_IN_PROGRESS
    (removed,) = removals(caplog)
    assert removed["member"] == other.member_id
    assert removed["reason"] == "it did not sync within the rebalance time-out"
    assert (removed["silent"], removed["follows"]) == ("1", "the others rejoin")


def test_a_rebalance_ends_the_sync_operation_of_the_generation_before() -> None:
    hand = group_broker()
    leader, other = stable_group(hand, 2)
    join_together(leader, other)
    other.send_sync()

    newcomer = Member(hand)
    newcomer.send_join()
    hand.settle()

    assert other.answer(SyncGroupResponse).error_code == errors.REBALANCE_IN_PROGRESS
    assert delayed_in(hand) == {"Join": 1, "Heartbeat": 3}
    assert "Sync" not in waiting_in(hand)


# --- DelayedHeartbeat.


def test_a_heartbeat_moves_the_deadline_of_its_one_operation() -> None:
    hand = group_broker()
    (member,) = stable_group(hand)
    purgatory = hand.broker.groups.shared.heartbeats
    shard = hand.broker.groups.shards[0]
    operation = shard.sessions.operations[READERS, member.member_id]
    completed = purgatory.completed_total

    for _ in range(5):
        pass_time(hand, SESSION_MS - 1)
        assert member.heartbeat() == errors.NONE

    assert shard.sessions.operations[READERS, member.member_id] is operation
    assert (purgatory.delayed, purgatory.completed_total) == (1, completed)


@pytest.mark.parametrize("sign", ["heartbeat", "commit", "sync"])
def test_any_sign_of_life_keeps_the_session(sign: str) -> None:
    hand = group_broker()
    (member,) = stable_group(hand)

    for _ in range(3):
        pass_time(hand, SESSION_MS - 1)
        if sign == "heartbeat":
            member.heartbeat()
        elif sign == "commit":
            member.commit_as_member({0: 1})
        else:
            member.sync()

    assert member.heartbeat() == errors.NONE


def test_a_silent_member_is_removed_when_its_session_ends_and_not_before(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "tarry.group")
    hand = group_broker()
    silent = Member(hand, instance_id="one")
    other = Member(hand, session_ms=30_000)
    stabilize(other, silent)

    pass_time(hand, SESSION_MS - 1)
    early = removals(caplog)
    pass_time(hand, 1)

    assert early == []
    (removed,) = removals(caplog)
    assert removed == {
        "group": READERS,
        "member": silent.member_id,
        "instance": "one",
        "client": "by-hand",
        "host": "/10.0.0.1",
        "reason": "its session ended",
        "silent": "10000",
        "follows": "the others rejoin",
    }
    assert other.heartbeat() == errors.REBALANCE_IN_PROGRESS


def test_the_probe_is_told_of_every_removal() -> None:
    class Recorder(Probe):
        def __init__(self) -> None:
            self.removed: list[tuple[str, str, str, int]] = []

        def on_member_removed(
            self, group_id: str, member_id: str, reason: str, silent_ms: int
        ) -> None:
            self.removed.append((group_id, member_id, reason, silent_ms))

    hand = group_broker()
    recorder = hand.broker.groups.history.probe = Recorder()
    (member,) = stable_group(hand)
    pending = Member(hand, "others")
    pending.get_id()

    pass_time(hand, 2 * SESSION_MS)

    assert recorder.removed == [
        (READERS, member.member_id, "its session ended", SESSION_MS),
        (
            "others",
            pending.member_id,
            "it did not come back with the id it was given",
            SESSION_MS,
        ),
    ]


def test_a_member_that_leaves_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tarry.group")
    hand = group_broker()
    (member,) = stable_group(hand)
    pass_time(hand, 3_000)

    member.leave()
    pass_time(hand, 60_000)

    (removed,) = removals(caplog)
    assert (removed["reason"], removed["silent"]) == ("it left", "3000")
    assert removed["follows"] == "the group is empty"


def test_an_id_that_nobody_came_back_with_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "tarry.group")
    hand = group_broker()
    member = Member(hand)

    member.get_id()
    pass_time(hand, 60_000)

    (removed,) = removals(caplog)
    assert removed["member"] == member.member_id
    assert removed["reason"] == "it did not come back with the id it was given"
    assert removed["silent"] == "10000"
    assert member.group_ids() == []
    assert waiting_in(hand) == {}


# --- DelayedCommit.


def test_a_commit_times_out_while_the_disk_hangs_and_counts_once_it_is_durable() -> None:
    hand = group_broker()
    user, reader = GroupUser(hand), GroupUser(hand)
    user.send_commit({0: 7, 9: 7})

    pass_time_without_disk(hand, 4_999)
    early = user.answers()
    pass_time_without_disk(hand, 1)
    (late,) = user.answers()
    waiting = delayed_in(hand)
    hand.settle()

    assert early == []
    assert set(commit_codes(late)) == {errors.COORDINATOR_NOT_AVAILABLE}
    assert waiting == {}
    assert user.answers() == []
    assert reader.offset() == 7
    assert waiting_in(hand) == {}


def test_the_time_that_a_commit_may_take_is_a_setting() -> None:
    hand = group_broker(offsets_commit_timeout_ms="1500")
    user = GroupUser(hand)
    user.send_commit({0: 7})

    pass_time_without_disk(hand, 1_499)
    early = user.answers()
    pass_time_without_disk(hand, 1)

    assert early == []
    assert [commit_codes(each) for each in user.answers()] == [[errors.COORDINATOR_NOT_AVAILABLE]]


def test_deletions_time_out_while_the_disk_hangs() -> None:
    hand = group_broker()
    user, other = GroupUser(hand), GroupUser(hand)
    user.commit({0: 1})
    user.commit({0: 1}, "others")
    user.client.send(api_keys.OFFSET_DELETE, 0, user.delete_offsets_request(0))
    other.client.send(
        api_keys.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=["others", "nobody"])
    )

    pass_time_without_disk(hand, 5_000)

    assert user.answer(OffsetDeleteResponse).error_code == errors.COORDINATOR_NOT_AVAILABLE
    codes = [each.error_code for each in other.answer(DeleteGroupsResponse).results]
    assert codes == [errors.COORDINATOR_NOT_AVAILABLE, errors.GROUP_ID_NOT_FOUND]
    hand.settle()
    assert user.group_ids() == []
    assert waiting_in(hand) == {}


def test_joins_and_syncs_do_not_time_out_with_the_disk() -> None:
    """A member waits for its assignment as long as the disk needs."""
    hand = group_broker()
    leader, other = stable_group(hand, 2)
    join_together(leader, other)
    other.send_sync()
    leader.send_sync()

    pass_time_without_disk(hand, 30_000)
    early = (leader.answers(), other.answers())
    hand.settle()

    assert early == ([], [])
    assert leader.answer(SyncGroupResponse).error_code == errors.NONE
    assert other.answer(SyncGroupResponse).error_code == errors.NONE


def stable_pair(hand: BrokerByHand) -> tuple[Member, Member]:
    """Two members whose sessions end shortly after the time that they have for a rejoin."""
    first, second = (Member(hand, session_ms=10_300, rebalance_ms=10_000) for _ in range(2))
    stabilize(first, second)
    return first, second


def member_ids(hand: BrokerByHand) -> list[str]:
    """Who is a member now."""
    return list(hand.broker.groups.shards[0].group(READERS).round.members)


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
    assert hand.broker.groups.shared.heartbeats.delayed == 1


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

    live = hand.broker.groups.shards[0].group(READERS).round.members
    hand.crash()
    hand.settle()
    loaded = hand.broker.groups.shards[0].group(READERS).round.members

    assert live[member.member_id].rebalance_timeout_ms == 0
    assert loaded[member.member_id].rebalance_timeout_ms == 0


# --- Topics without their logs.


def refuse_directories(hand: BrokerByHand) -> None:
    for index in range(2):
        hand.disk.refuse_directory(f"late-{index}")


def test_offsets_ask_the_metadata_what_there_is_and_not_which_logs_are_here() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    refuse_directories(hand)
    user.create("late", 2)
    assert hand.broker.topics.partition("late", 0) is None

    codes = user.commit({0: 7, 1: 8, 2: 9}, topic="late")
    found = [user.offset(topic="late", index=index) for index in range(2)]
    everything = user.all_offsets()
    deleted = user.delete_offsets(0, 2, topic="late")

    assert codes == [errors.NONE, errors.NONE, errors.UNKNOWN_TOPIC_OR_PARTITION]
    assert found == [7, 8]
    assert everything == {("late", 0): 7, ("late", 1): 8}
    assert deleted == [errors.NONE, errors.UNKNOWN_TOPIC_OR_PARTITION]
