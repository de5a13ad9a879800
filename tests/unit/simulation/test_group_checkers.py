"""Each checker of groups finds the anomaly that it is there for, and allows what is legal."""

from __future__ import annotations

from tarry.base import errors
from tarry.simulation.checkers.groups import check_groups
from tarry.simulation.exchange import ObservedExchange
from tarry.simulation.groups.history import (
    ACKNOWLEDGED,
    ALL,
    COMMIT,
    HEARTBEAT,
    JOIN,
    LEAVE,
    REFUSED,
    SYNC,
    GroupHistory,
    MemberRequest,
    OffsetRead,
    OffsetWrite,
)

REGISTER = ("g", "t", 0)


def a_history() -> GroupHistory:
    """Turn n is at n seconds."""
    return GroupHistory([1_000 * turn for turn in range(100)])


def exchange(turns: tuple[int, int]) -> ObservedExchange:
    made = ObservedExchange(11, 9, 1)
    made.delivered_turn, made.answered_turn = turns
    return made


def asked(
    history: GroupHistory,
    kind: str,
    member_id: str,
    generation_id: int,
    turns: tuple[int, int],
    *,
    error_code: int = errors.NONE,
    instance_id: str | None = None,
    given_id: str = "",
    token: str = "",
    partitions: tuple[tuple[str, int], ...] = (),
) -> None:
    made = MemberRequest(kind, "g", f"client of {member_id}", member_id)
    made.instance_id = instance_id
    made.generation_id = generation_id
    made.given_id = given_id or member_id
    made.session_timeout_ms = 6_000
    made.rebalance_timeout_ms = 10_000
    made.token = token
    made.partitions = list(partitions)
    made.error_code = error_code
    made.exchange = exchange(turns)
    history.asked.append(made)


def commit(
    history: GroupHistory, offset: int, turns: tuple[int, int], outcome: int = ACKNOWLEDGED
) -> None:
    write = OffsetWrite(REGISTER, f"mark {offset}", offset)
    write.outcome = outcome
    write.exchange = exchange(turns)
    history.writes.append(write)


def delete(history: GroupHistory, turns: tuple[int, int], outcome: int = ACKNOWLEDGED) -> None:
    write = OffsetWrite(REGISTER, "", -1)
    write.outcome = outcome
    write.exchange = exchange(turns)
    history.writes.append(write)


def read(history: GroupHistory, offset: int, turns: tuple[int, int]) -> None:
    mark = "" if offset < 0 else f"mark {offset}"
    history.reads.append(OffsetRead(REGISTER, mark, offset, -1, exchange(turns)))


# -- generations


def test_a_generation_that_went_well_has_nothing_wrong() -> None:
    history = a_history()
    asked(history, JOIN, "a", 1, (1, 2))
    asked(history, JOIN, "b", 1, (1, 2))
    asked(history, SYNC, "a", 1, (3, 4), token="x", partitions=(("t", 0),))
    asked(history, SYNC, "b", 1, (3, 4), token="x", partitions=(("t", 1),))
    asked(history, COMMIT, "a", 1, (5, 6))

    assert check_groups(history) == []


def test_two_owners_of_a_partition_are_found() -> None:
    history = a_history()
    asked(history, SYNC, "a", 1, (3, 4), token="x", partitions=(("t", 0),))
    asked(history, SYNC, "b", 1, (3, 4), token="x", partitions=(("t", 0),))

    assert "both own t-0" in check_groups(history)[0]


def test_a_static_member_owns_the_same_under_its_new_id() -> None:
    history = a_history()
    partitions = (("t", 0),)
    asked(history, SYNC, "a1", 1, (3, 4), instance_id="a", token="x", partitions=partitions)
    asked(history, SYNC, "a2", 1, (5, 6), instance_id="a", token="x", partitions=partitions)

    assert check_groups(history) == []


def test_two_assignments_of_one_generation_are_found_over_a_crash() -> None:
    history = a_history()
    history.last_turns = [5]
    asked(history, SYNC, "a", 1, (3, 4), token="x")
    asked(history, SYNC, "b", 1, (7, 8), token="y")

    assert "generation 1 of group g has two assignments" in check_groups(history)[0]


def test_a_group_that_was_removed_may_begin_with_its_first_generation_again() -> None:
    history = a_history()
    asked(history, SYNC, "a", 1, (3, 4), token="x")
    history.ends = {"g": [5]}
    asked(history, SYNC, "b", 1, (7, 8), token="y")

    assert check_groups(history) == []


def test_a_commit_of_an_older_generation_that_was_accepted_is_found() -> None:
    history = a_history()
    asked(history, JOIN, "b", 2, (3, 4))
    asked(history, COMMIT, "a", 1, (5, 6))

    assert "a commit of client of a was accepted in generation 1" in check_groups(history)[0]


def test_a_commit_that_was_under_way_when_the_generation_began_is_legal() -> None:
    history = a_history()
    asked(history, JOIN, "b", 2, (3, 4))
    asked(history, COMMIT, "a", 1, (4, 6))

    assert check_groups(history) == []


def test_a_generation_that_no_sync_was_told_of_is_lost_with_the_broker() -> None:
    history = a_history()
    history.last_turns = [4]
    asked(history, JOIN, "b", 2, (3, 4))
    asked(history, COMMIT, "a", 1, (6, 7))

    assert check_groups(history) == []


def test_a_generation_that_a_sync_was_told_of_outlives_the_broker() -> None:
    history = a_history()
    history.last_turns = [4]
    asked(history, SYNC, "b", 2, (3, 4), token="x")
    asked(history, COMMIT, "a", 1, (6, 7))

    assert "generation 2 had begun in turn 4" in check_groups(history)[0]


def test_a_join_into_an_older_generation_is_found() -> None:
    history = a_history()
    asked(history, JOIN, "b", 2, (3, 4))
    asked(history, JOIN, "a", 1, (5, 6))

    assert "was let into generation 1" in check_groups(history)[0]


# -- sessions


def test_a_member_that_is_unknown_within_its_session_is_found() -> None:
    history = a_history()
    asked(history, JOIN, "a", 1, (1, 2))
    asked(history, SYNC, "a", 1, (3, 3), token="x")
    asked(history, HEARTBEAT, "a", 1, (6, 6))
    unknown = errors.UNKNOWN_MEMBER_ID
    asked(history, HEARTBEAT, "a", 1, (11, 11), error_code=unknown)

    assert "is unknown 5000 ms after it was heard; it has 6000 ms" in check_groups(history)[0]


def test_a_member_may_be_unknown_after_its_session_in_another_life_and_after_it_left() -> None:
    unknown = errors.UNKNOWN_MEMBER_ID
    late = a_history()
    asked(late, JOIN, "a", 1, (1, 2))
    asked(late, SYNC, "a", 1, (3, 3), token="x")
    asked(late, HEARTBEAT, "a", 1, (9, 9), error_code=unknown)
    restarted = a_history()
    restarted.last_turns = [4]
    asked(restarted, JOIN, "a", 1, (1, 2))
    asked(restarted, SYNC, "a", 1, (3, 3), token="x")
    asked(restarted, HEARTBEAT, "a", 1, (5, 5), error_code=unknown)
    left = a_history()
    asked(left, JOIN, "a", 1, (1, 2))
    asked(left, SYNC, "a", 1, (3, 3), token="x")
    asked(left, LEAVE, "", -1, (4, 4), given_id="a")
    asked(left, HEARTBEAT, "a", 1, (5, 5), error_code=unknown)

    found = [check_groups(each) for each in (late, restarted, left)]

    assert found == [[], [], []]


def test_a_session_begins_anew_when_the_broker_itself_was_stopped() -> None:
    history = a_history()
    history.stall_turns = [8]
    asked(history, JOIN, "a", 1, (1, 2))
    asked(history, SYNC, "a", 1, (3, 3), token="x")
    unknown = errors.UNKNOWN_MEMBER_ID
    asked(history, HEARTBEAT, "a", 1, (10, 10), error_code=unknown)

    assert "is unknown 2000 ms after it was heard" in check_groups(history)[0]


def test_an_id_that_was_given_out_and_is_unknown_at_once_is_found() -> None:
    history = a_history()
    asked(history, JOIN, "", -1, (1, 1), error_code=errors.MEMBER_ID_REQUIRED, given_id="a")
    asked(history, JOIN, "a", -1, (3, 3), error_code=errors.UNKNOWN_MEMBER_ID)

    assert "is unknown 2000 ms after it was given that id" in check_groups(history)[0]


def test_a_static_id_that_is_accepted_beside_its_successor_is_found() -> None:
    history = a_history()
    asked(history, JOIN, "", 1, (1, 2), instance_id="a", given_id="a1")
    asked(history, JOIN, "", 1, (3, 4), instance_id="a", given_id="a2")
    asked(history, HEARTBEAT, "a1", 1, (5, 5), instance_id="a")

    assert "was a2 since turn 4" in check_groups(history)[0]


def test_the_newest_static_id_is_accepted() -> None:
    history = a_history()
    asked(history, JOIN, "", 1, (1, 2), instance_id="a", given_id="a1")
    asked(history, JOIN, "", 1, (3, 4), instance_id="a", given_id="a2")
    fenced = errors.FENCED_INSTANCE_ID
    asked(history, HEARTBEAT, "a1", 1, (5, 5), instance_id="a", error_code=fenced)
    asked(history, HEARTBEAT, "a2", 1, (6, 6), instance_id="a")

    assert check_groups(history) == []


# -- offsets


def test_offsets_that_are_committed_read_and_deleted_have_nothing_wrong() -> None:
    history = a_history()
    read(history, -1, (1, 1))
    commit(history, 5, (2, 3))
    read(history, 5, (4, 4))
    commit(history, 7, (5, 6))
    read(history, 5, (5, 5))
    read(history, 7, (7, 7))
    delete(history, (8, 9))
    read(history, -1, (10, 10))

    assert check_groups(history) == []


def test_a_commit_that_is_lost_is_found() -> None:
    history = a_history()
    commit(history, 5, (2, 3))
    read(history, -1, (4, 4))

    assert "t-0 of group g has no offset in turn 4" in check_groups(history)[0]


def test_an_offset_that_goes_back_without_a_commit_is_found() -> None:
    history = a_history()
    commit(history, 5, (2, 3))
    commit(history, 7, (5, 6))
    read(history, 5, (8, 8))

    assert "offset 7 with 'mark 7' came after it" in check_groups(history)[0]


def test_an_offset_that_was_read_and_is_gone_is_found_though_its_commit_got_no_answer() -> None:
    history = a_history()
    history.last_turns = [5]
    commit(history, 5, (2, -1), 0)
    read(history, 5, (4, 4))
    read(history, -1, (7, 7))

    assert "'mark 5' is lost" in check_groups(history)[0]


def test_a_commit_without_an_answer_may_be_there_or_not_and_may_come_late() -> None:
    history = a_history()
    history.last_turns = [9]
    commit(history, 3, (1, 1))
    commit(history, 5, (2, -1), 0)
    read(history, 3, (4, 4))
    commit(history, 6, (5, 6))
    read(history, 5, (8, 8))

    assert check_groups(history) == []


def test_a_commit_without_an_answer_has_no_effect_after_its_broker_is_gone() -> None:
    history = a_history()
    history.last_turns = [4]
    commit(history, 5, (2, -1), 0)
    commit(history, 6, (5, 6))
    read(history, 5, (8, 8))

    assert "came after it" in check_groups(history)[0]


def test_a_refused_commit_that_counts_is_found() -> None:
    history = a_history()
    commit(history, 5, (2, 3), REFUSED)
    read(history, 5, (8, 8))

    assert "that commit was refused" in check_groups(history)[0]


def test_a_deleted_offset_that_comes_back_is_found() -> None:
    history = a_history()
    commit(history, 5, (2, 3))
    delete(history, (4, 5))
    read(history, 5, (8, 8))

    assert "a deletion came after it" in check_groups(history)[0]


def test_an_offset_may_be_gone_by_a_deletion_that_got_no_answer() -> None:
    history = a_history()
    commit(history, 5, (2, 3))
    delete(history, (4, -1), 0)
    read(history, -1, (8, 8))

    assert check_groups(history) == []


def test_an_offset_is_not_gone_by_a_deletion_that_was_refused() -> None:
    history = a_history()
    commit(history, 5, (2, 3))
    delete(history, (4, 4), REFUSED)
    read(history, -1, (8, 8))

    assert "is lost" in check_groups(history)[0]


def test_an_offset_that_nobody_committed_is_found() -> None:
    history = a_history()
    read(history, 5, (8, 8))

    assert "which nobody committed" in check_groups(history)[0]


def test_an_offset_may_be_gone_with_its_topic() -> None:
    history = a_history()
    commit(history, 5, (2, 3))
    with_its_topic = OffsetWrite(("", "t", ALL), "", -1)
    with_its_topic.sent_turn = 6
    history.writes.append(with_its_topic)
    read(history, -1, (8, 8))

    assert check_groups(history) == []


def test_a_deletion_of_the_group_is_one_of_all_its_offsets() -> None:
    history = a_history()
    commit(history, 5, (2, 3))
    deletion = OffsetWrite(("g", "", ALL), "", -1)
    deletion.outcome = ACKNOWLEDGED
    deletion.exchange = exchange((4, 5))
    history.writes.append(deletion)
    read(history, -1, (6, 6))
    read(history, 5, (8, 8))

    assert check_groups(history) == [
        "t-0 of group g has offset 5 with 'mark 5' in turn 8, and a deletion came after it"
    ]
