"""How offsets and groups end: by age, with their topic, by request; and they do not come back."""

from __future__ import annotations

import pytest
from tests.support.broker.broker_user import ORDERS
from tests.support.broker.group_user import (
    OFFSETS_TOPIC,
    READERS,
    GroupUser,
    Member,
    commit_codes,
    group_broker,
    pass_time,
    stabilize,
    stable_group,
    subscription,
    waiting_in,
)

from tarry.base import errors
from tarry.protocol import api_keys
from tarry.protocol.messages.delete_groups import DeleteGroupsRequest
from tarry.simulation.by_hand import BrokerByHand

MINUTE_MS = 60_000
DAY_MS = 24 * 3_600_000
# Offsets are looked at every second, so that an age is seen soon.
SHORT = {"offsets_retention_minutes": "1", "offsets_retention_check_interval_ms": "1000"}


def aging_broker() -> BrokerByHand:
    return group_broker(**SHORT)


def records_in_log(hand: BrokerByHand) -> int:
    return hand.broker.topics[OFFSETS_TOPIC].partitions[0].log.log_end_offset


def keep_alive(member: Member, ms: int) -> None:
    while ms > 0:
        step_ms = min(ms, 5_000)
        pass_time(member.hand, step_ms)
        member.heartbeat()
        ms -= step_ms


# --- By age.


def test_an_offset_without_a_group_expires_so_long_after_its_commit() -> None:
    hand = aging_broker()
    user = GroupUser(hand)
    user.commit({0: 7, 1: 7})
    pass_time(hand, 30_000)
    user.commit({1: 8})

    pass_time(hand, MINUTE_MS - 30_000 - 1_000)
    early = user.all_offsets()
    pass_time(hand, 2_000)
    first_gone = user.all_offsets()
    pass_time(hand, 30_000)

    assert early == {(ORDERS, 0): 7, (ORDERS, 1): 8}
    assert first_gone == {(ORDERS, 1): 8}
    assert user.all_offsets() == {}


def test_with_its_last_offset_an_empty_group_is_gone() -> None:
    hand = aging_broker()
    user = GroupUser(hand)
    user.commit({0: 7})
    before = user.group_ids()

    pass_time(hand, MINUTE_MS + 2_000)

    assert before == [READERS]
    assert user.group_ids() == []
    assert user.describe().error_code == errors.GROUP_ID_NOT_FOUND
    assert waiting_in(hand) == {}


def test_a_group_that_had_members_keeps_its_offsets_from_when_it_became_empty() -> None:
    hand = aging_broker()
    (member,) = stable_group(hand)
    member.commit_as_member({0: 7})
    keep_alive(member, 2 * MINUTE_MS)
    member.leave()

    pass_time(hand, MINUTE_MS - 1_000)
    early = (member.all_offsets(), member.group_ids())
    pass_time(hand, 2_000)

    assert early == ({(ORDERS, 0): 7}, [READERS])
    assert (member.all_offsets(), member.group_ids()) == ({}, [])


def test_a_working_group_loses_only_offsets_of_topics_that_nobody_reads() -> None:
    hand = aging_broker()
    user = GroupUser(hand)
    user.create("once")
    (member,) = stable_group(hand)
    member.commit_as_member({0: 7})
    user.commit(
        {0: 8}, topic="once", member_id=member.member_id, generation_id=member.generation_id
    )

    keep_alive(member, MINUTE_MS + 2_000)

    assert member.all_offsets() == {(ORDERS, 0): 7}


def test_a_working_group_that_is_no_consumer_s_loses_nothing() -> None:
    hand = aging_broker()
    member = Member(hand, protocol_type="connect", protocols=(("default", b"\xff"),))
    stabilize(member)
    member.commit_as_member({0: 7})

    keep_alive(member, 2 * MINUTE_MS)

    assert member.all_offsets() == {(ORDERS, 0): 7}


def test_an_empty_group_without_offsets_goes_at_the_next_look() -> None:
    hand = aging_broker()
    (member,) = stable_group(hand)
    member.leave()

    pass_time(hand, 1_500)

    assert member.group_ids() == []


def test_a_time_of_its_own_that_an_old_client_asks_for_is_kept() -> None:
    hand = group_broker(offsets_retention_check_interval_ms="1000")
    user = GroupUser(hand)
    user.commit({0: 7}, version=4, retention_ms=5_000)

    pass_time(hand, 4_000)
    early = user.offset()
    pass_time(hand, 2_000)

    assert (early, user.offset()) == (7, -1)


def test_what_has_expired_does_not_come_back_after_a_crash() -> None:
    hand = aging_broker()
    user = GroupUser(hand)
    user.commit({0: 7})
    user.commit({0: 9}, "others")
    pass_time(hand, MINUTE_MS - 5_000)
    user.commit({1: 8}, "others")
    pass_time(hand, 7_000)

    hand.crash()
    hand.settle()

    user = GroupUser(hand)
    assert user.group_ids() == ["others"]
    assert user.all_offsets("others") == {(ORDERS, 1): 8}


def test_tombstones_that_the_log_refuses_are_written_at_a_later_look() -> None:
    hand = aging_broker()
    user = GroupUser(hand)
    user.commit({0: 7})
    pass_time(hand, MINUTE_MS - 500)
    hand.disk.fail_writes(1, OFFSETS_TOPIC)

    pass_time(hand, 3_000)

    assert user.group_ids() == []
    hand.crash()
    hand.settle()
    assert GroupUser(hand).group_ids() == []


@pytest.mark.parametrize("set_ms", [30_000, 70_000])
def test_a_clock_that_is_set_wrong_for_a_while_takes_no_offsets(
    set_ms: int, caplog: pytest.LogCaptureFixture
) -> None:
    hand = group_broker(offsets_retention_check_interval_ms="60000")
    user = GroupUser(hand)
    user.commit({0: 7})
    pass_time(hand, set_ms)
    hand.now_wall_ms += 30 * DAY_MS
    pass_time(hand, 60_000)
    hand.now_wall_ms -= 30 * DAY_MS

    pass_time(hand, 120_000)

    assert user.offset() == 7
    told = [line for line in caplog.messages if "the expiry of offsets waits" in line]
    assert len(told) == 2


def test_a_clock_that_was_set_right_is_believed_at_the_next_look() -> None:
    hand = group_broker(offsets_retention_check_interval_ms="60000")
    user = GroupUser(hand)
    user.commit({0: 7})
    hand.now_wall_ms += 8 * DAY_MS

    pass_time(hand, 61_000)
    at_the_jump = user.offset()
    pass_time(hand, 60_000)

    assert (at_the_jump, user.offset()) == (7, -1)


# --- With their topic.


def test_a_deleted_topic_takes_its_offsets_out_of_every_group() -> None:
    hand = group_broker(offsets_topic_num_partitions="3")
    user = GroupUser(hand)
    user.create("other")
    groups = [f"group-{number:03d}" for number in range(300)]
    for group in groups:
        user.commit({0: 7, 3: 8}, group)
    for group in groups[:5]:
        user.commit({0: 9}, group, topic="other")

    user.delete(ORDERS)
    hand.settle()

    assert [user.all_offsets(group) for group in groups[:5]] == [{("other", 0): 9}] * 5
    assert all(user.all_offsets(group) == {} for group in groups[5:])
    user.create(ORDERS, 4)
    assert user.offset(groups[0]) == -1


def test_offsets_of_a_deleted_topic_go_though_members_work() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    user.create("other")
    both = (("range", subscription(ORDERS, "other")),)
    member = Member(hand, protocols=both)
    stabilize(member)
    member.commit_as_member({0: 7})

    user.delete(ORDERS)
    hand.settle()

    assert member.all_offsets() == {}
    assert member.heartbeat() == errors.NONE


def test_a_commit_on_its_way_goes_with_the_topic() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    user.send_delete()
    late = GroupUser(hand)
    late.send_commit({0: 7})

    hand.settle()

    assert len(late.answers()) == 1
    assert GroupUser(hand).all_offsets() == {}


def test_tombstones_of_a_deleted_topic_that_the_log_refuses_are_written_later() -> None:
    hand = group_broker(offsets_retention_check_interval_ms="60000")
    user = GroupUser(hand)
    user.commit({0: 7})
    hand.disk.fail_writes(1, OFFSETS_TOPIC)

    user.delete(ORDERS)
    user.create(ORDERS, 4)
    pass_time(hand, 62_000)

    assert user.all_offsets() == {}
    hand.crash()
    hand.settle()
    assert GroupUser(hand).all_offsets() == {}


@pytest.mark.parametrize("flushes", range(8))
def test_after_a_crash_a_deleted_topic_has_offsets_nowhere(flushes: int) -> None:
    hand = group_broker(seed=flushes)
    user = GroupUser(hand)
    user.create("other")
    for number in range(3):
        user.commit({0: 7}, f"group-{number}")
        user.commit({0: 9}, f"group-{number}", topic="other")
    user.send_delete()
    for _ in range(flushes):
        hand.turn(*hand.disk.complete_flushes())
    was_told = bool(user.answers())

    hand.crash()
    hand.settle()

    user = GroupUser(hand)
    is_there = ORDERS in hand.broker.topics
    kept = {(ORDERS, 0): 7} if is_there else {}
    assert not (was_told and is_there)
    for number in range(3):
        assert user.all_offsets(f"group-{number}") == {**kept, ("other", 0): 9}


@pytest.mark.parametrize("flushes", range(10))
def test_after_a_crash_a_new_topic_of_the_same_name_has_no_old_offsets(flushes: int) -> None:
    hand = group_broker(seed=flushes)
    user, other = GroupUser(hand), GroupUser(hand)
    for number in range(3):
        user.commit({0: 7}, f"group-{number}")
    user.delete(ORDERS)
    user.create(ORDERS, 4)
    other.send_commit({1: 5}, "group-0")
    for _ in range(flushes):
        hand.turn(*hand.disk.complete_flushes())

    hand.crash()
    hand.settle()

    user = GroupUser(hand)
    assert ORDERS in hand.broker.topics
    assert user.all_offsets("group-0") in ({}, {(ORDERS, 1): 5})
    assert user.all_offsets("group-1") == {}


# --- By request.


def test_groups_are_deleted_each_by_its_own_state() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    stable_group(hand)
    user.commit({0: 7}, "others")

    codes = user.delete_groups("others", READERS, "nobody")

    assert codes == [errors.NONE, errors.NON_EMPTY_GROUP, errors.GROUP_ID_NOT_FOUND]
    assert user.group_ids() == [READERS]
    assert user.all_offsets("others") == {}
    assert user.state("others") == "Dead"


def test_a_group_that_is_named_twice_is_deleted_once() -> None:
    user = GroupUser(group_broker())
    user.commit({0: 7})

    assert user.delete_groups(READERS, READERS) == [errors.NONE]
    assert user.delete_groups(READERS) == [errors.GROUP_ID_NOT_FOUND]


def test_a_deleted_group_may_come_back_with_nothing() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    (member,) = stable_group(hand)
    member.commit_as_member({0: 7})
    member.leave()
    user.delete_groups()

    (again,) = stable_group(hand)

    assert again.generation_id == 1
    assert again.offset() == -1


@pytest.mark.parametrize("what", ["group", "offsets"])
@pytest.mark.parametrize("flushes", range(4))
def test_what_was_deleted_does_not_come_back_after_a_crash(what: str, flushes: int) -> None:
    hand = group_broker(seed=flushes)
    user = GroupUser(hand)
    (member,) = stable_group(hand)
    member.commit_as_member({0: 7, 1: 8})
    member.leave()
    if what == "group":
        request = DeleteGroupsRequest(groups_names=[READERS])
        user.client.send(api_keys.DELETE_GROUPS, 2, request)
    else:
        user.client.send(api_keys.OFFSET_DELETE, 0, user.delete_offsets_request(0, 1))
    for _ in range(flushes):
        hand.turn(*hand.disk.complete_flushes())
    was_told = bool(user.answers())

    hand.crash()
    hand.settle()

    user = GroupUser(hand)
    whole = {(ORDERS, 0): 7, (ORDERS, 1): 8}
    left = user.all_offsets()
    assert was_told == (flushes > 0)
    assert left == {} if was_told else left in ({}, whole)
    assert user.group_ids() == ([READERS] if what == "offsets" or left else [])


def test_a_group_that_was_deleted_and_used_again_has_only_what_is_new() -> None:
    hand = group_broker()
    user = GroupUser(hand)
    user.commit({0: 7, 1: 8})
    user.delete_groups()
    user.commit({1: 9})

    hand.crash()
    hand.settle()

    assert GroupUser(hand).all_offsets() == {(ORDERS, 1): 9}


def test_a_group_that_is_about_to_go_takes_no_commits_and_has_no_offsets() -> None:
    """While its tombstones are on their way: who commits is to ask again."""
    hand = group_broker()
    user, other = GroupUser(hand), GroupUser(hand)
    user.commit({0: 7})
    request = DeleteGroupsRequest(groups_names=[READERS])
    user.client.send(api_keys.DELETE_GROUPS, 2, request)

    other.send_commit({0: 8})
    (refused,) = other.answers()
    hand.settle()
    taken = other.commit({0: 9})

    assert commit_codes(refused) == [errors.COORDINATOR_NOT_AVAILABLE]
    assert taken == [errors.NONE]
    assert other.all_offsets() == {(ORDERS, 0): 9}


def test_looking_for_old_offsets_writes_nothing_where_there_are_none() -> None:
    hand = aging_broker()
    user = GroupUser(hand)
    user.commit({0: 7})
    before = records_in_log(hand)

    pass_time(hand, MINUTE_MS - 2_000)

    assert records_in_log(hand) == before
