"""When a group is gone, or whoever waited in it, nothing of it is left in the broker."""

from __future__ import annotations

from tests.support.broker.broker_user import ORDERS
from tests.support.broker.group_user import (
    READERS,
    SESSION_MS,
    GroupUser,
    Member,
    commit_codes,
    delayed_in,
    group_broker,
    join_together,
    operations_of,
    pass_time,
    stabilize,
    stable_group,
    waiting_in,
)

from tarry.base import errors
from tarry.base.doors import disconnected, stop_requested
from tarry.protocol.messages.join_group import JoinGroupResponse


def test_nothing_is_left_when_all_members_have_left() -> None:
    hand = group_broker()
    members = stable_group(hand, 3)
    newcomer = Member(hand)
    newcomer.get_id()

    for member in (*members, newcomer):
        assert member.leave() == errors.NONE

    assert waiting_in(hand) == {}
    assert operations_of(hand.broker.groups.shards[0]) == []


def test_nothing_is_left_when_all_members_have_died_in_different_phases() -> None:
    hand = group_broker()
    stable_group(hand, 3, "stable")
    joining = stable_group(hand, 2, "joining")
    joining[0].send_join()
    syncing = stable_group(hand, 2, "syncing")
    for member in syncing:
        member.send_join()
    hand.settle()
    Member(hand, "pending").get_id()
    Member(hand, "first").send_join()

    pass_time(hand, 400_000)

    assert waiting_in(hand) == {}
    assert operations_of(hand.broker.groups.shards[0]) == []


def test_nothing_is_left_after_a_group_was_deleted() -> None:
    hand = group_broker()
    (member,) = stable_group(hand)
    member.commit_as_member({0: 7})
    member.leave()
    pending = Member(hand)
    pending.get_id()

    deleted = member.delete_groups()

    assert deleted == [errors.NONE]
    assert member.group_ids() == []
    assert waiting_in(hand) == {}


def test_a_join_whose_peer_is_gone_ends_with_its_round_and_leaves_nothing() -> None:
    hand = group_broker()
    goes, stays = stable_group(hand, 2)
    goes.send_join()
    hand.turn(disconnected(goes.client.connection_id))

    stays.send_join()
    hand.settle()
    joined = stays.take_join()
    waiting = delayed_in(hand)
    pass_time(hand, 100_000)

    assert (joined.error_code, joined.generation_id) == (errors.NONE, 3)
    assert waiting == {"Sync": 1, "Heartbeat": 2}
    assert waiting_in(hand) == {}
    assert hand.broker.groups.waiting == 0


def test_a_sync_and_a_commit_whose_peers_are_gone_leave_nothing() -> None:
    hand = group_broker()
    leader, other = stable_group(hand, 2)
    join_together(leader, other)
    other.send_sync()
    committer = GroupUser(hand)
    committer.send_commit({0: 7}, "simple")

    hand.turn(
        disconnected(other.client.connection_id), disconnected(committer.client.connection_id)
    )
    leader.sync()
    for member in (leader, Member(hand)):
        member.member_id, member.leader_id = other.member_id, ""
        member.leave()
    pass_time(hand, 100_000)

    assert waiting_in(hand) == {}
    assert hand.broker.groups.waiting == 0


def test_a_hundred_rounds_leave_what_one_leaves() -> None:
    hand = group_broker()
    (member,) = stable_group(hand)

    for _ in range(100):
        stabilize(member)

    assert delayed_in(hand) == {"Heartbeat": 1}
    assert waiting_in(hand) == {"Heartbeat": (1, 1)}
    assert hand.broker.groups.waiting == 0


def test_a_commit_on_its_way_is_answered_before_a_clean_stop_ends() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    user.send_commit({0: 7})

    hand.turn(stop_requested())
    before = (user.answers(), hand.broker.is_stopped)
    hand.settle()

    assert before == ([], False)
    (answer,) = user.answers()
    assert commit_codes(answer) == [errors.NONE]
    hand.start()
    hand.settle()
    assert GroupUser(hand).offset() == 7


def test_groups_that_are_named_in_a_loop_are_forgotten_with_their_ids() -> None:
    hand = group_broker()
    shard = hand.broker.groups.shards[0]
    for number in range(1_000):
        asking = Member(hand, f"group-{number}")
        asking.get_id()
        hand.turn(disconnected(asking.client.connection_id))
    before = len(shard.groups.by_id)

    pass_time(hand, SESSION_MS)

    assert before == 1_000
    assert shard.groups.by_id == {}
    assert operations_of(shard) == []
    assert waiting_in(hand) == {}


def test_a_clean_stop_tells_who_waits_to_look_for_another_coordinator() -> None:
    hand = group_broker()
    waiting, _ = stable_group(hand, 2)
    waiting.send_join()

    hand.stop()

    assert waiting.answer(JoinGroupResponse).error_code == errors.NOT_COORDINATOR
    hand.start()
    hand.settle()
    user = GroupUser(hand)
    assert [(each.group_id, each.group_state) for each in user.list_groups().groups] == [
        (READERS, "Stable")
    ]
    assert user.commit({0: 1}, "others") == [errors.NONE]
    assert user.all_offsets("others") == {(ORDERS, 0): 1}
