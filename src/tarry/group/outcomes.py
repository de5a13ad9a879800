"""Outcomes that come without a request: deadlines that pass, records that are durable or failed,
the partition that comes and goes, and a broker that was away itself.

A deadline that has moved since its operation was made is no deadline: the operation's decision
changes nothing.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from tarry.base import errors
from tarry.group.appends import (
    Append,
    AssignmentAppend,
    EmptyAppend,
    OffsetsAppend,
    StaticAppend,
    TombstonesAppend,
)
from tarry.group.decision import Decision, HeartbeatWait
from tarry.group.notes import AppendFailed, BecameStable
from tarry.group.requests import JoinAnswer, SyncAnswer
from tarry.group.round import (
    COMPLETING_REBALANCE,
    DEAD,
    STABLE,
    GroupRound,
    Member,
)
from tarry.group.state import GroupState
from tarry.group.transitions import Draft, Moment

# What a client is told of an error of the log: Kafka's table, and one code of its older
# coordinator's.  Others are told as they are.
APPEND_ERRORS: Final[dict[int, int]] = {
    errors.UNKNOWN_TOPIC_OR_PARTITION: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_ENOUGH_REPLICAS: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND: errors.COORDINATOR_NOT_AVAILABLE,
    errors.REQUEST_TIMED_OUT: errors.COORDINATOR_NOT_AVAILABLE,
    errors.NOT_LEADER_OR_FOLLOWER: errors.NOT_COORDINATOR,
    errors.KAFKA_STORAGE_ERROR: errors.NOT_COORDINATOR,
    errors.MESSAGE_TOO_LARGE: errors.UNKNOWN_SERVER_ERROR,
    errors.RECORD_LIST_TOO_LARGE: errors.UNKNOWN_SERVER_ERROR,
    errors.INVALID_FETCH_SIZE: errors.UNKNOWN_SERVER_ERROR,
}


# -- deadlines


def decide_session_expired(group: GroupState, member_id: str, moment: Moment) -> Decision:
    """Decide about a member whose heartbeat operation expired: it is removed unless it waits for
    us.
    """
    now = group.round
    heartbeat = group.heartbeats.get(member_id)
    if heartbeat is None or heartbeat.deadline_ms is None or moment.now_ms < heartbeat.deadline_ms:
        return Decision(moment.now_ms)
    if member_id in now.pending_members:
        draft = Draft(group, moment)
        draft.remove_pending_member(member_id, "it did not come back with the id it was given")
        draft.maybe_complete_join()
        return draft.finish()
    member = now.members[member_id]
    if not member.is_new and (member_id in now.joins or member_id in now.syncs):
        decision = Decision(moment.now_ms)
        decision.heartbeats.append(HeartbeatWait(member_id, None))
        return decision
    draft = Draft(group, moment)
    reason = "its first join was not answered in time" if member.is_new else "its session ended"
    draft.remove_member(member_id, reason)
    draft.rebalance_or_complete_join(f"member {member_id} was removed: {reason}")
    return draft.finish()


def decide_join_expired(group: GroupState, moment: Moment) -> Decision:
    """Decide about a join operation that expired: the join phase ends, or is extended."""
    now = group.round
    if now.join_deadline_ms is None or moment.now_ms < now.join_deadline_ms:
        return Decision(moment.now_ms)
    draft = Draft(group, moment)
    if not draft.extend_initial_delay():
        draft.complete_join()
    return draft.finish()


def decide_sync_expired(group: GroupState, generation_id: int, moment: Moment) -> Decision:
    """Decide about a sync operation that expired: a member without SyncGroup is removed, though it
    may live.
    """
    now = group.round
    if now.sync_deadline_ms is None or moment.now_ms < now.sync_deadline_ms:
        return Decision(moment.now_ms)
    if generation_id != now.generation_id:
        return Decision(moment.now_ms)
    draft = Draft(group, moment)
    assert now.phase in (COMPLETING_REBALANCE, STABLE)
    removed = list(now.unsynced)
    for member_id in removed:
        draft.remove_member(member_id, "it did not sync within the rebalance time-out")
    draft.begin_rebalance(f"removed because they did not sync: {', '.join(removed)}")
    return draft.finish()


# -- the log


def decide_recorded(group: GroupState, append: Append, moment: Moment) -> Decision:
    """Decide what follows when an append's records are below the high watermark and applied."""
    match append:
        case AssignmentAppend() | StaticAppend():
            draft = Draft(group, moment)
            if isinstance(append, AssignmentAppend):
                _become_stable(draft, append)
            else:
                _answer_static(draft, append)
            decision = draft.finish()
        case OffsetsAppend() | TombstonesAppend():
            # The round stays as it is: commits are many, and need no copy of it.
            decision = Decision(moment.now_ms)
            if append.answer is not None:
                decision.answers.append(append.answer)
        case EmptyAppend():
            decision = Decision(moment.now_ms)
        case _:
            raise AssertionError(f"{type(append).__name__} has no outcome")
    decision.settled = append
    return decision


def _become_stable(draft: Draft, append: AssignmentAppend) -> None:
    now = draft.round
    if now.phase != COMPLETING_REBALANCE or append.generation_id != now.generation_id:
        # The others have moved on while it was written.
        return
    draft.enter_stable(append.assignments)
    for member_id, ticket in list(now.syncs.items()):
        draft.decision.answers.append(draft.synced(ticket, member_id))
        draft.restart_session(now.members[member_id])
    now.syncs = {}
    stood_ms = draft.moment.now_ms - now.stands_since_ms
    draft.decision.notes.append(BecameStable(now.generation_id, stood_ms))


def _is_static_waiting(now: GroupRound, append: StaticAppend) -> bool:
    """Return true if a member's join still waits for this record and not for the end of a join
    phase.
    """
    answer = append.answer
    return now.phase == STABLE and now.joins.get(answer.member_id) == answer.ticket


def _answer_static(draft: Draft, append: StaticAppend) -> None:
    now = draft.round
    if _is_static_waiting(now, append):
        del now.joins[append.answer.member_id]
        draft.decision.answers.append(append.answer)
        draft.restart_session(now.members[append.answer.member_id])


def decide_append_failed(
    group: GroupState, append: Append, error_code: int, moment: Moment
) -> Decision:
    """Decide what follows when an append's records are not in the log: the state goes back."""
    draft = Draft(group, moment)
    draft.decision.settled = append
    draft.decision.has_failed = True
    told = APPEND_ERRORS.get(error_code, error_code)
    draft.decision.notes.append(AppendFailed(append.what, error_code))
    answers = draft.decision.answers
    match append:
        case AssignmentAppend():
            _fail_assignment(draft, append, told)
        case StaticAppend():
            _fail_static(draft, append, told)
        case OffsetsAppend():
            codes = tuple(each or told for each in append.answer.partition_error_codes)
            answers.append(replace(append.answer, partition_error_codes=codes))
        case TombstonesAppend():
            if append.is_group:
                draft.revive()
            if append.answer is not None:
                codes = tuple(each or told for each in append.answer.partition_error_codes)
                answers.append(replace(append.answer, error_code=told, partition_error_codes=codes))
        case EmptyAppend():
            pass
        case _:
            raise AssertionError(f"{type(append).__name__} has no outcome")
    return draft.finish()


def _fail_assignment(draft: Draft, append: AssignmentAppend, error_code: int) -> None:
    now = draft.round
    if now.phase != COMPLETING_REBALANCE or append.generation_id != now.generation_id:
        return
    for member_id in list(now.syncs):
        draft.fail_sync(member_id, error_code)
        draft.restart_session(now.members[member_id])
    draft.begin_rebalance(f"the assignment could not be stored: {errors.error_name(error_code)}")


def _fail_static(draft: Draft, append: StaticAppend, error_code: int) -> None:
    now = draft.round
    answer = append.answer
    is_same_round = now.phase == STABLE and now.generation_id == answer.generation_id
    if not is_same_round or answer.member_id not in now.members:
        # A rebalance began meanwhile: it goes on with the new id, and its end is the answer.  Or
        # another took the place, and goes back past this one should it fail as well.
        return
    is_waiting = _is_static_waiting(now, append)
    now.joins.pop(answer.member_id, None)
    previous = append.member_to_go_back_to()
    draft.replace_member(answer.member_id, previous)
    draft.restart_session(previous)
    if not is_waiting:
        return
    draft.decision.answers.append(
        JoinAnswer(
            answer.ticket,
            error_code,
            member_id="",
            generation_id=now.generation_id,
            protocol_type=now.protocol_type,
            protocol_name=now.protocol_name,
            leader_id=append.leader_id,
        )
    )


# -- the partition comes and goes


def decide_load(group: GroupState, moment: Moment) -> Decision:
    """Decide how the round goes on when all records are applied: every member has a fresh session.

    A group beyond `group.max.size` rebalances, so that the last to join are dropped.
    """
    assert not group.appends
    draft = Draft(group, moment)
    recorded = group.recorded
    now = draft.decision.round = draft.round = GroupRound()
    if recorded is None:
        return draft.finish()
    now.generation_id = recorded.generation_id
    now.protocol_type = recorded.protocol_type or None
    now.state_timestamp_ms = recorded.state_timestamp_ms
    for row in recorded.members:
        member = Member(
            row.member_id,
            row.instance_id,
            row.client_id,
            row.client_host,
            row.rebalance_timeout_ms,
            row.session_timeout_ms,
            ((recorded.protocol_name or "", row.subscription),),
        )
        if member.member_id in now.members:
            continue
        draft.add_member(member, recorded.protocol_type, None)
        now.assignments[member.member_id] = row.assignment
        draft.hear(member)
    if not now.members:
        return draft.finish()
    now.phase = STABLE
    now.protocol_name = recorded.protocol_name or ""
    if recorded.leader_id in now.members:
        now.leader_id = recorded.leader_id
    if len(now.members) > moment.settings.group_max_size:
        draft.begin_rebalance("the group has more members than group.max.size allows")
    return draft.finish()


def decide_unload(group: GroupState, moment: Moment) -> Decision:
    """Decide what is told when the partition is led elsewhere: all operations end, the state is
    dropped.

    What waits for records is told here too: whether they are durable, the other leader knows.
    """
    decision = Decision(moment.now_ms)
    code = errors.NOT_COORDINATOR
    now = group.round
    for member_id, ticket in now.joins.items():
        decision.answers.append(JoinAnswer(ticket, code, member_id=member_id))
    for ticket in now.syncs.values():
        decision.answers.append(SyncAnswer(ticket, code))
    for append in group.appends:
        if isinstance(append, OffsetsAppend):
            codes = tuple(each or code for each in append.answer.partition_error_codes)
            decision.answers.append(replace(append.answer, partition_error_codes=codes))
        elif isinstance(append, TombstonesAppend) and append.answer is not None:
            decision.answers.append(replace(append.answer, error_code=code))
    for member_id in group.heartbeats:
        decision.heartbeats.append(HeartbeatWait(member_id, None, ends=True))
    decision.round = GroupRound()
    decision.round.phase = DEAD
    return decision


# -- the broker was away


def decide_fresh_sessions(group: GroupState, moment: Moment) -> Decision:
    """Decide that every session begins anew: the broker itself was stopped and could hear no
    member.

    So do the join and the sync phase: nobody is removed for the broker's own absence.
    """
    draft = Draft(group, moment)
    now = draft.round
    for member_id, heartbeat in group.heartbeats.items():
        if heartbeat.deadline_ms is None:
            continue
        # Its silence counts from here too: what went before was ours.
        member = now.members.get(member_id)
        if member is None:
            draft.hear_until(member_id, now.pending_members[member_id])
        else:
            draft.hear(member)
    if now.join_deadline_ms is not None:
        wait_ms = now.initial_delay_ms if now.is_initial else now.rebalance_timeout_ms()
        now.join_deadline_ms = moment.now_ms + wait_ms
    if now.sync_deadline_ms is not None:
        now.sync_deadline_ms = moment.now_ms + now.rebalance_timeout_ms()
    return draft.finish()
