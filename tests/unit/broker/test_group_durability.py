"""Answers of groups leave when their records are durable; what the log refuses goes back."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS, User, a_batch
from tests.support.broker.group_user import (
    OFFSETS_TOPIC,
    READERS,
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
from tarry.protocol import api_keys
from tarry.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from tarry.protocol.messages.join_group import JoinGroupResponse
from tarry.protocol.messages.offset_delete import OffsetDeleteResponse
from tarry.protocol.messages.sync_group import SyncGroupResponse
from tarry.simulation.by_hand import BrokerByHand


def turns_without_flush(hand: BrokerByHand) -> None:
    """Turns enough for all that does not need the disk."""
    for _ in range(5):
        hand.turn()


def refuse_writes(hand: BrokerByHand, fault: str) -> None:
    """From now on the disk takes nothing for the groups' topic."""
    if fault == "EIO":
        hand.disk.fail_writes(1, OFFSETS_TOPIC)
    else:
        hand.disk.capacity_bytes = hand.disk.used_bytes()


# --- Nobody is answered before the flush.


def test_a_commit_is_answered_when_it_is_flushed_and_not_before() -> None:
    hand = group_broker()
    user, reader = GroupUser(hand), GroupUser(hand)

    user.send_commit({0: 7})
    turns_without_flush(hand)
    before = user.answers()
    hand.settle()

    assert before == []
    (after,) = user.answers()
    assert commit_codes(after) == [errors.NONE]
    assert reader.offset() == 7


def test_an_offset_is_fetched_when_it_is_flushed_and_not_before() -> None:
    hand = group_broker()
    user, reader = GroupUser(hand), GroupUser(hand)
    user.commit({0: 6})

    user.send_commit({0: 7})
    (flush_id,) = hand.disk.pending_flushes()
    shard = hand.broker.groups.shards[0]
    before = shard.group(READERS).offset(ORDERS, 0)
    hand.turn(hand.disk.complete_flush(flush_id))

    assert before is not None
    assert before.offset == 6
    assert reader.offset() == 7


def test_syncs_are_answered_when_the_assignment_is_flushed_and_not_before() -> None:
    hand = group_broker()
    leader, other = stable_group(hand, 2)
    join_together(leader, other)

    other.send_sync()
    leader.send_sync()
    turns_without_flush(hand)
    before = (leader.answers(), other.answers())
    state = leader.hand.broker.groups.shards[0].group(READERS).round.phase
    hand.settle()

    assert before == ([], [])
    assert state == 2  # CompletingRebalance
    assert leader.answer(SyncGroupResponse).assignment == b"for 0"
    assert other.answer(SyncGroupResponse).assignment == b"for 1"


def test_a_static_member_that_comes_back_is_answered_when_its_new_id_is_flushed() -> None:
    hand = group_broker()
    member = Member(hand, instance_id="one")
    stabilize(member)
    again = Member(hand, instance_id="one")

    again.send_join()
    turns_without_flush(hand)
    before = again.answers()
    hand.settle()

    assert before == []
    assert again.take_join().error_code == errors.NONE
    assert again.heartbeat() == errors.NONE
    assert member.heartbeat() == errors.FENCED_INSTANCE_ID


def test_deletions_are_answered_when_their_tombstones_are_flushed() -> None:
    hand = group_broker()
    user, other = GroupUser(hand), GroupUser(hand)
    user.commit({0: 1})
    user.commit({0: 1}, "others")

    user.client.send(api_keys.OFFSET_DELETE, 0, user.delete_offsets_request(0))
    other.client.send(api_keys.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=["others"]))
    turns_without_flush(hand)
    before = (user.answers(), other.answers())
    hand.settle()

    assert before == ([], [])
    assert user.answer(OffsetDeleteResponse).topics[0].partitions[0].error_code == errors.NONE
    assert other.answer(DeleteGroupsResponse).results[0].error_code == errors.NONE


def test_under_flush_policy_os_what_is_written_is_answered() -> None:
    hand = group_broker(flush_policy="os")
    user = GroupUser(hand)

    user.send_commit({0: 7})
    hand.turn()

    (answer,) = user.answers()
    assert commit_codes(answer) == [errors.NONE]


# --- The log refuses.


@pytest.mark.parametrize("fault", ["EIO", "ENOSPC"])
def test_a_commit_that_is_not_written_is_refused_and_the_older_one_stays(fault: str) -> None:
    hand = group_broker()
    user = GroupUser(hand)
    user.commit({0: 6})
    refuse_writes(hand, fault)

    refused = user.commit({0: 7, 9: 7})
    kept = user.offset()
    left = waiting_in(hand)
    hand.disk.heal()
    taken = user.commit({0: 8})

    assert refused == [errors.NOT_COORDINATOR, errors.UNKNOWN_TOPIC_OR_PARTITION]
    assert (kept, left) == (6, {})
    assert (taken, user.offset()) == ([errors.NONE], 8)
    assert waiting_in(hand) == {}


@pytest.mark.parametrize("fault", ["EIO", "ENOSPC"])
def test_an_assignment_that_is_not_written_fails_the_syncs_and_the_others_rejoin(
    fault: str,
) -> None:
    hand = group_broker()
    leader, other = stable_group(hand, 2)
    join_together(leader, other)
    refuse_writes(hand, fault)

    other.send_sync()
    leader.send_sync()
    hand.settle()
    told = [each.answer(SyncGroupResponse).error_code for each in (leader, other)]
    state = GroupUser(hand).state()
    hand.disk.heal()
    stabilize(leader, other)

    assert told == [errors.NOT_COORDINATOR] * 2
    assert state == "PreparingRebalance"
    assert (leader.generation_id, GroupUser(hand).state()) == (4, "Stable")


@pytest.mark.parametrize("fault", ["EIO", "ENOSPC"])
def test_a_static_member_whose_new_id_is_not_written_has_its_old_one(fault: str) -> None:
    hand = group_broker()
    member = Member(hand, instance_id="one")
    stabilize(member)
    again = Member(hand, instance_id="one")
    refuse_writes(hand, fault)

    again.send_join()
    hand.settle()
    refused = again.take_join()
    hand.disk.heal()
    old = member.heartbeat()
    taken = again.join()

    assert (refused.error_code, refused.member_id) == (errors.NOT_COORDINATOR, "")
    assert old == errors.NONE
    assert taken.error_code == errors.NONE
    assert member.heartbeat() == errors.FENCED_INSTANCE_ID


@pytest.mark.parametrize("fault", ["EIO", "ENOSPC"])
def test_deletions_that_are_not_written_leave_group_and_offsets(fault: str) -> None:
    hand = group_broker()
    user = GroupUser(hand)
    user.commit({0: 6, 1: 7})

    refuse_writes(hand, fault)
    group = user.delete_groups()
    if fault == "EIO":
        refuse_writes(hand, fault)
    offsets = user.delete_offsets(0)
    hand.disk.heal()

    assert (group, offsets) == ([errors.NOT_COORDINATOR], [errors.NOT_COORDINATOR])
    assert user.all_offsets() == {(ORDERS, 0): 6, (ORDERS, 1): 7}
    assert user.state() == "Empty"
    assert user.delete_groups() == [errors.NONE]


def test_several_answers_of_one_turn_fail_together_and_in_order() -> None:
    """Two commits of one partition in one turn: neither may win over the older one."""
    hand = group_broker()
    user, other = GroupUser(hand), GroupUser(hand)
    user.commit({0: 5})
    frames = [
        user.client.encode(api_keys.OFFSET_COMMIT, 9, user.commit_request({0: offset}))
        for offset in (6, 7)
    ]
    hand.disk.fail_writes(1, OFFSETS_TOPIC)

    user.client.send_bytes(b"".join(frames))
    hand.settle()

    assert [commit_codes(each) for each in user.answers()] == [[errors.NOT_COORDINATOR]] * 2
    assert other.offset() == 5


def test_the_last_member_that_goes_is_gone_though_the_log_refuses() -> None:
    """Nobody waits for the record of an Empty group; the next generation is written anyway."""
    hand = group_broker()
    (member,) = stable_group(hand)
    hand.disk.fail_writes(1, OFFSETS_TOPIC)

    left = member.leave()
    state = member.state()
    (next_one,) = stable_group(hand)
    hand.crash()
    hand.settle()

    assert (left, state) == (errors.NONE, "Empty")
    assert next_one.generation_id == 3
    assert GroupUser(hand).state() == "Stable"


@pytest.mark.parametrize("restarts", [1, 2])
def test_an_empty_group_goes_on_with_its_generation_after_a_restart(restarts: int) -> None:
    """A generation that was used before must not come back: its members are fenced by it."""
    hand = group_broker()
    (member,) = stable_group(hand)
    assert member.leave() == errors.NONE
    hand.settle()

    for _ in range(restarts):
        hand.crash()
        hand.settle()
    (next_one,) = stable_group(hand)

    assert (member.generation_id, next_one.generation_id) == (1, 3)


def test_a_flush_that_fails_acknowledges_nothing() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    user.commit({0: 6})
    hand.disk.fail_flushes(1, OFFSETS_TOPIC)

    user.send_commit({0: 7})
    hand.settle()
    answers = user.answers()
    hand.start()
    pass_time(hand, 1)

    assert answers == []
    assert GroupUser(hand).offset() in (6, 7)


# --- What was acknowledged survives.


def test_what_was_acknowledged_survives_a_loss_of_power() -> None:
    hand = group_broker()
    members = stable_group(hand, 2)
    members[0].commit_as_member({0: 7})

    hand.crash()
    hand.settle()

    user = GroupUser(hand)
    described = user.describe()
    assert user.offset() == 7
    assert described.group_state == "Stable"
    assert [each.member_id for each in described.members] == [each.member_id for each in members]
    assert [each.member_assignment for each in described.members] == [b"for 0", b"for 1"]


def test_an_answer_to_a_peer_that_is_gone_goes_nowhere_and_the_commit_counts() -> None:
    hand = group_broker()
    user, reader = GroupUser(hand), GroupUser(hand)

    user.send_commit({0: 7})
    hand.broker.answers.close(
        hand.broker.answers.connections[user.client.connection_id], "the peer is gone"
    )
    hand.settle()

    assert reader.offset() == 7
    assert hand.broker.groups.waiting == 0


def test_a_join_waits_for_no_record() -> None:
    """The generation is durable with its assignment; a join alone writes nothing."""
    hand = group_broker()
    member = Member(hand)
    member.send_join()

    hand.turn()

    assert member.answer(JoinGroupResponse).generation_id == 1
    assert hand.disk.pending_flushes() == []


def test_a_produce_beside_the_groups_is_answered_though_their_log_refuses() -> None:
    hand = group_broker()
    user, producer = GroupUser(hand), User(hand)
    hand.disk.fail_writes(100, OFFSETS_TOPIC)

    refused = user.commit({0: 7})
    produced = producer.produce(a_batch(b"a"))

    assert refused == [errors.NOT_COORDINATOR]
    assert produced.error_code == errors.NONE
