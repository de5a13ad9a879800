"""What waits for the log: answers come once the records are durable, and a failure goes back."""

from __future__ import annotations

import pytest
from tests.support.group_scene import BOTH, RANGE, WALL_MS, Scene

from tarry.base import errors
from tarry.group.classic.kind import CLASSIC
from tarry.group.classic.notes import AssignmentMissing, BecameStable
from tarry.group.classic.records import GroupMetadata, MemberRow
from tarry.group.classic.requests import (
    JoinAnswer,
    LeavingMember,
    SyncAnswer,
)
from tarry.group.classic.round import (
    COMPLETING_REBALANCE,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
)
from tarry.group.notes import AppendFailed
from tarry.group.offsets.requests import CommitAnswer


def two_who_joined() -> tuple[Scene, str, str]:
    """A leader and a follower, both static, that have not synced."""
    scene = Scene()
    leader_id = scene.static_member("i")
    follower_id = scene.static_member("j")
    scene.advance(6_000)
    assert scene.group.round.phase == COMPLETING_REBALANCE
    return scene, leader_id, follower_id


def two_who_work() -> tuple[Scene, str, str]:
    scene, leader_id, follower_id = two_who_joined()
    scene.sync_all()
    assert scene.group.round.phase == STABLE
    return scene, leader_id, follower_id


def assignment(scene: Scene, ticket: int) -> bytes:
    answer = scene.answers[ticket]
    assert isinstance(answer, SyncAnswer)
    assert answer.error_code == errors.NONE
    return answer.assignment


# -- assignments


def test_nobody_is_told_an_assignment_before_it_is_durable() -> None:
    scene, leader_id, follower_id = two_who_joined()
    scene.holds = True
    first = scene.sync(follower_id)
    second = scene.sync(leader_id, assignments=((leader_id, b"l"), (follower_id, b"f")))
    before = [scene.error(first), scene.error(second)]

    scene.commit()

    assert before == ["waits", "waits"]
    assert [assignment(scene, first), assignment(scene, second)] == [b"f", b"l"]
    assert scene.group.round.phase == STABLE


def test_the_group_is_not_stable_before_its_assignment_is_durable() -> None:
    scene, leader_id, _ = two_who_joined()
    scene.holds = True
    scene.sync(leader_id)

    assert scene.group.round.phase == COMPLETING_REBALANCE
    assert scene.error(scene.commit_offsets(leader_id, 1, "i")) == "NONE"
    assert scene.group.recorded is None


def test_who_syncs_while_the_assignment_is_on_its_way_waits_for_it() -> None:
    scene, leader_id, follower_id = two_who_joined()
    scene.holds = True
    scene.sync(leader_id, assignments=((follower_id, b"f"),))
    late = scene.sync(follower_id)

    scene.commit()

    assert assignment(scene, late) == b"f"


def test_a_leader_that_assigns_again_changes_nothing_that_is_on_its_way() -> None:
    scene, leader_id, follower_id = two_who_joined()
    scene.holds = True
    scene.sync(leader_id, assignments=((follower_id, b"first"),))
    scene.sync(leader_id, assignments=((follower_id, b"second"),))
    waiting = len(scene.waiting)

    scene.commit()

    assert waiting == 1
    assert assignment(scene, scene.sync(follower_id)) == b"first"


def test_an_assignment_for_strangers_goes_nowhere_and_who_was_forgotten_gets_none() -> None:
    scene, leader_id, follower_id = two_who_joined()

    scene.sync(leader_id, assignments=((leader_id, b"l"), ("stranger", b"s")))

    recorded = scene.group.recorded
    assert recorded is not None
    assert [(row.member_id, row.assignment) for row in recorded.members] == [
        (leader_id, b"l"),
        (follower_id, b""),
    ]
    assert AssignmentMissing((follower_id,)) in scene.notes


def test_a_failed_assignment_is_told_to_all_who_wait_and_begins_a_rebalance() -> None:
    scene, leader_id, follower_id = two_who_joined()
    scene.holds = True
    tickets = [scene.sync(follower_id), scene.sync(leader_id)]

    scene.fail(errors.MESSAGE_TOO_LARGE)

    assert [scene.error(each) for each in tickets] == ["UNKNOWN_SERVER_ERROR"] * 2
    assert scene.group.round.phase == PREPARING_REBALANCE
    assert AppendFailed("the assignment", errors.MESSAGE_TOO_LARGE) in scene.notes


def test_an_assignment_of_an_older_generation_means_nothing_to_the_next() -> None:
    scene, leader_id, follower_id = two_who_joined()
    scene.holds = True
    scene.sync(leader_id, assignments=((leader_id, b"old"),))
    scene.join(follower_id, "j", protocols=RANGE)
    scene.join(leader_id, "i")
    assert scene.group.round.phase == COMPLETING_REBALANCE
    waiting = scene.sync(follower_id)

    scene.commit()

    assert scene.error(waiting) == "waits"
    assert scene.group.round.phase == COMPLETING_REBALANCE
    assert scene.group.recorded is not None
    assert scene.group.recorded.generation_id == 1
    assert scene.group.round.generation_id == 2


def test_an_older_assignment_that_fails_means_nothing_to_the_next_generation() -> None:
    scene, leader_id, follower_id = two_who_joined()
    scene.holds = True
    scene.sync(leader_id)
    scene.join(follower_id, "j", protocols=RANGE)
    scene.join(leader_id, "i")

    scene.fail()

    assert scene.group.round.phase == COMPLETING_REBALANCE
    assert scene.group.round.generation_id == 2


def test_the_time_for_which_a_group_stood_still_counts_from_the_first_rebalance() -> None:
    scene, leader_id, follower_id = two_who_work()
    scene.notes.clear()
    scene.join(leader_id, "i")
    scene.advance(2_000)
    scene.join(follower_id, "j")
    scene.advance(1_000)
    scene.join(follower_id, "j", protocols=RANGE)
    scene.advance(500)
    scene.join(leader_id, "i")
    scene.advance(250)
    scene.sync_all()

    assert BecameStable(3, 3_750) in scene.notes


# -- static members


def test_a_static_member_hears_of_its_new_id_once_that_is_durable() -> None:
    scene, _, follower_id = two_who_work()
    scene.holds = True
    ticket = scene.join("", "j")
    before = scene.error(ticket)

    scene.commit()

    answer = scene.answers[ticket]
    assert before == "waits"
    assert isinstance(answer, JoinAnswer)
    assert answer.error_code == errors.NONE
    assert answer.generation_id == 1
    assert answer.member_id != follower_id
    assert scene.error(scene.heartbeat(follower_id, 1, "j")) == "FENCED_INSTANCE_ID"
    assert assignment(scene, scene.sync(answer.member_id, 1, "j")) == f"{follower_id}'s".encode()


def test_each_id_of_a_static_member_is_another_one() -> None:
    scene, _, follower_id = two_who_work()

    ids = {follower_id}
    for _ in range(3):
        scene.join("", "j")
        ids.add(scene.group.round.static_members["j"])

    assert len(ids) == 4
    assert all(each.startswith("j-") for each in ids)


def test_a_static_members_new_id_that_fails_leaves_the_old_one_as_it_was() -> None:
    scene, leader_id, follower_id = two_who_work()
    before = vars(scene.group.round.copy())
    scene.holds = True
    for instance_id in ("i", "j"):
        ticket = scene.join("", instance_id, protocols=(("range", b"new"), *BOTH[1:]))
        scene.fail()

        assert scene.error(ticket) == "COORDINATOR_NOT_AVAILABLE"
    assert vars(scene.group.round) == before
    assert scene.group.round.leader_id == leader_id
    assert scene.error(scene.heartbeat(follower_id, 1, "j")) == "NONE"


@pytest.mark.parametrize("newest_first", [True, False])
def test_two_new_ids_of_a_static_member_that_both_fail_leave_the_durable_one(
    newest_first: bool,
) -> None:
    scene, _, follower_id = two_who_work()
    scene.holds = True
    second = scene.join("", "j")
    third = scene.join("", "j")
    if not newest_first:
        scene.waiting.rotate()

    scene.fail()
    scene.fail()

    assert scene.error(second) == "FENCED_INSTANCE_ID"
    assert scene.error(third) == "COORDINATOR_NOT_AVAILABLE"
    assert scene.group.round.static_members["j"] == follower_id
    assert scene.error(scene.heartbeat(follower_id, 1, "j")) == "NONE"


def test_a_static_members_newer_id_that_fails_goes_back_to_the_one_that_did_not() -> None:
    scene, _, follower_id = two_who_work()
    scene.holds = True
    scene.join("", "j")
    second_id = scene.group.round.static_members["j"]
    scene.join("", "j")
    scene.fail()
    scene.commit()

    assert scene.group.round.static_members["j"] == second_id != follower_id


def test_a_static_member_that_is_overtaken_by_a_rebalance_is_answered_at_its_end() -> None:
    scene, leader_id, _ = two_who_work()
    scene.holds = True
    ticket = scene.join("", "j")
    scene.join(leader_id, "i")
    # Both have joined: the next generation begins though the record is still on its way.
    answer = scene.answers[ticket]

    scene.commit()

    assert isinstance(answer, JoinAnswer)
    assert answer.generation_id == 2
    assert scene.group.round.phase == COMPLETING_REBALANCE


def test_a_static_members_failed_record_means_nothing_to_a_later_generation() -> None:
    scene, leader_id, _ = two_who_work()
    scene.holds = True
    scene.join("", "j")
    new_id = scene.group.round.static_members["j"]
    scene.join(leader_id, "i")
    failing = scene.waiting.popleft()
    scene.sync_all()
    scene.commit()
    assert scene.group.round.phase == STABLE
    scene.waiting.append(failing)

    scene.fail()

    assert scene.group.round.static_members["j"] == new_id
    assert scene.error(scene.heartbeat(new_id, 2, "j")) == "NONE"


def test_a_static_member_is_fenced_by_a_third_while_its_record_is_on_its_way() -> None:
    scene, _, _ = two_who_work()
    scene.holds = True
    second = scene.join("", "j")
    third = scene.join("", "j")

    scene.commit()

    assert [scene.error(second), scene.error(third)] == ["FENCED_INSTANCE_ID", "NONE"]


def test_a_static_member_that_was_to_sync_still_is_under_its_new_id() -> None:
    scene, leader_id, follower_id = two_who_joined()
    scene.sync(leader_id, assignments=((follower_id, b"f"),))
    scene.join("", "j")
    new_id = scene.group.round.static_members["j"]

    assert list(scene.group.round.unsynced) == [new_id]
    assert assignment(scene, scene.sync(new_id, 1, "j")) == b"f"
    assert scene.group.round.sync_deadline_ms is None


# -- the group becomes empty


def test_a_group_is_empty_at_once_and_its_record_follows() -> None:
    scene, _, _ = two_who_work()
    scene.holds = True

    ticket = scene.leave(LeavingMember("", "i"), LeavingMember("", "j"))

    assert scene.error(ticket) == "NONE"
    assert scene.group.round.phase == EMPTY
    assert scene.group.round.generation_id == 2
    scene.commit()
    assert scene.group.recorded is not None
    assert scene.group.recorded.members == []


def test_without_the_record_of_its_emptiness_a_group_comes_back_and_dies_again() -> None:
    scene, _, _ = two_who_work()
    scene.holds = True
    scene.leave(LeavingMember("", "i"), LeavingMember("", "j"))
    scene.fail()
    scene.restart()
    back = scene.group.round.phase

    scene.holds = False
    scene.advance(10_000)

    assert back == STABLE
    assert scene.group.round.phase == EMPTY
    assert scene.group.round.generation_id == 2


# -- loading and unloading


def test_a_loaded_group_goes_on_with_fresh_sessions() -> None:
    scene, leader_id, follower_id = two_who_work()
    scene.advance(9_000)

    scene.restart()
    scene.advance(9_999)

    assert scene.error(scene.heartbeat(leader_id, 1, "i")) == "NONE"
    assert assignment(scene, scene.sync(follower_id, 1, "j")) == f"{follower_id}'s".encode()


def test_a_loaded_follower_that_rejoins_unchanged_begins_no_rebalance() -> None:
    scene, _, follower_id = two_who_work()
    scene.restart()

    ticket = scene.join(follower_id, "j", protocols=RANGE)

    assert scene.error(ticket) == "NONE"
    assert scene.group.round.phase == STABLE


def test_a_record_that_contradicts_itself_gives_a_group_that_works() -> None:
    def row(member_id: str) -> MemberRow:
        return MemberRow(member_id, None, "c", "/h", 10_000, 10_000, b"", b"")

    record = GroupMetadata(
        "g",
        protocol_type="consumer",
        generation_id=3,
        protocol_name="range",
        leader_id="nobody",
        state_timestamp_ms=WALL_MS,
        members=[row("a"), row("b"), row("a")],
    )
    group = CLASSIC.new_group("g")
    record.apply_to(group)

    group.take(CLASSIC.decide_load(group, Scene().moment))

    assert group.round.leader_id == "a"
    assert list(group.round.members) == ["a", "b"]
    assert group.round.phase == STABLE


def test_who_waits_when_the_partition_goes_is_sent_to_the_other_coordinator() -> None:
    scene, leader_id, follower_id = two_who_work()
    scene.holds = True
    commit = scene.commit_offsets(follower_id, 1, "j")
    join = scene.join(leader_id, "i")

    scene.unload()

    assert scene.error(join) == "NOT_COORDINATOR"
    answer = scene.answers[commit]
    assert isinstance(answer, CommitAnswer)
    assert answer.partition_error_codes == (errors.NOT_COORDINATOR,)


def test_a_stall_of_the_broker_removes_nobody_who_is_to_rejoin_or_to_sync() -> None:
    scene, leader_id, follower_id = two_who_joined()
    scene.stall(200_000)
    scene.advance(9_999)
    joined = list(scene.group.round.members)
    scene.sync_all()
    scene.join(leader_id, "i")
    scene.stall(200_000)
    scene.advance(9_999)

    assert joined == [leader_id, follower_id]
    assert list(scene.group.round.members) == [leader_id, follower_id]
    assert scene.group.round.phase == PREPARING_REBALANCE
