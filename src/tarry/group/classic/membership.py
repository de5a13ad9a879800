"""Heartbeat, SyncGroup and LeaveGroup: the requests of members that have joined.

The checks come in Kafka's order: a Dead group, the member and its instance id, the generation, the
protocol.  `joining` has JoinGroup.

There are two differences from Kafka.  If an id that was given out leaves unused, a working group
does not rebalance.  A leader that repeats its assignment while the first is under way waits for
the first.
"""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.limits import GROUP_METADATA_BYTES_MAX
from tarry.group.classic.appends import AssignmentAppend
from tarry.group.classic.notes import AssignmentMissing
from tarry.group.classic.requests import (
    LeaveAnswer,
    LeaveRequest,
    LeavingMember,
    SyncAnswer,
    SyncRequest,
)
from tarry.group.classic.round import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PREPARING_REBALANCE,
    STABLE,
    Member,
)
from tarry.group.classic.state import ClassicGroup, member_error
from tarry.group.classic.transitions import Draft
from tarry.group.decision import Decision, Moment, refused
from tarry.group.requests import TOO_MUCH_METADATA

# Answer to a heartbeat with the right member and generation, by the phase of the group.
HEARTBEAT_ANSWERS: Final[dict[int, int]] = {
    EMPTY: errors.UNKNOWN_MEMBER_ID,
    PREPARING_REBALANCE: errors.REBALANCE_IN_PROGRESS,
    COMPLETING_REBALANCE: errors.NONE,
    STABLE: errors.NONE,
    DEAD: errors.COORDINATOR_NOT_AVAILABLE,
}


def decide_heartbeat(
    group: ClassicGroup, member_id: str, instance_id: str | None, generation_id: int
) -> tuple[int, Member | None]:
    """Return the error code for a heartbeat, and the member whose session restarts.

    Heartbeats are the most frequent requests of groups and change nothing else, so they need no
    `Decision`.
    """
    error_code = _claim_error(group, member_id, instance_id, generation_id)
    if error_code != errors.NONE:
        return error_code, None
    now = group.round
    member = now.members[member_id]
    # A new member does not know its id before its first join is answered, so it sends no
    # heartbeats.  Its longer first time-out must not become shorter here.
    return HEARTBEAT_ANSWERS[now.phase], None if member.is_new else member


def _claim_error(
    group: ClassicGroup, member_id: str, instance_id: str | None, generation_id: int
) -> int:
    """Return the error of a request that claims this member and generation, or NONE."""
    now = group.round
    if group.group_id == "":
        return errors.INVALID_GROUP_ID
    if now.phase == DEAD:
        return errors.COORDINATOR_NOT_AVAILABLE
    error_code = member_error(now, member_id, instance_id)
    if error_code != errors.NONE:
        return error_code
    return errors.NONE if generation_id == now.generation_id else errors.ILLEGAL_GENERATION


# -- SyncGroup


def decide_sync(group: ClassicGroup, request: SyncRequest, moment: Moment) -> Decision:
    """Answer with the assignment, or let the request wait for it; the leader's goes to the log."""
    now = group.round
    error_code = _sync_error(group, request)
    if error_code == errors.NONE and now.phase == PREPARING_REBALANCE:
        error_code = errors.REBALANCE_IN_PROGRESS
    if error_code != errors.NONE:
        return refused(moment.now_ms, SyncAnswer(request.ticket, error_code))
    draft = Draft(group, moment)
    member = now.members[request.member_id]
    draft.hear(member)
    if now.phase == STABLE:
        draft.note_sync(member.member_id)
        draft.decision.answers.append(draft.synced(request.ticket, member.member_id))
        return draft.finish()
    assert now.phase == COMPLETING_REBALANCE
    # The member may have given up an older request; answer that one too, in case it has not.
    draft.fail_sync(member.member_id, errors.REBALANCE_IN_PROGRESS)
    draft.round.syncs[member.member_id] = request.ticket
    draft.note_sync(member.member_id)
    if member.member_id == now.leader_id and not _is_assigned(group):
        if _is_too_large(group, request):
            _refuse_assignment(draft, request)
        else:
            _assign(draft, request)
    return draft.finish()


def _sync_error(group: ClassicGroup, request: SyncRequest) -> int:
    now = group.round
    error_code = _claim_error(group, request.member_id, request.instance_id, request.generation_id)
    if error_code != errors.NONE:
        return error_code
    if _differ(request.protocol_type, now.protocol_type):
        return errors.INCONSISTENT_GROUP_PROTOCOL
    if _differ(request.protocol_name, now.protocol_name):
        return errors.INCONSISTENT_GROUP_PROTOCOL
    return errors.NONE


def _differ(asked: str | None, known: str | None) -> bool:
    """Return True if both are known and differ; requests of older versions name none."""
    return asked is not None and known is not None and asked != known


def _is_assigned(group: ClassicGroup) -> bool:
    """Return True if this generation's assignment is under way to the log.

    A leader that sends it again changes nothing.
    """
    return any(
        isinstance(each, AssignmentAppend) and each.generation_id == group.round.generation_id
        for each in group.appends
    )


def _is_too_large(group: ClassicGroup, request: SyncRequest) -> bool:
    """Return True if the group's metadata would become too large with these assignments."""
    size = sum(len(assignment) for _, assignment in request.assignments)
    return group.metadata_size + size > GROUP_METADATA_BYTES_MAX


def _refuse_assignment(draft: Draft, request: SyncRequest) -> None:
    """Refuse the leader's assignment with Kafka's code for a too large one; let all rejoin."""
    leader_id = request.member_id
    ticket = draft.round.syncs.pop(leader_id)
    code = errors.UNKNOWN_SERVER_ERROR
    draft.decision.answers.append(SyncAnswer(ticket, code, TOO_MUCH_METADATA))
    draft.restart_session(draft.round.members[leader_id])
    draft.begin_rebalance(f"the assignment was refused: {TOO_MUCH_METADATA}")


def _assign(draft: Draft, request: SyncRequest) -> None:
    now = draft.round
    given = dict(request.assignments)
    # Drop assignments of unknown members; a member without an assignment gets an empty one.
    assignments = {member_id: given.get(member_id, b"") for member_id in now.members}
    missing = tuple(member_id for member_id in now.members if member_id not in given)
    if missing:
        draft.decision.notes.append(AssignmentMissing(missing))
    draft.append(AssignmentAppend([draft.metadata(assignments)], now.generation_id, assignments))


# -- LeaveGroup


def decide_leave(group: ClassicGroup, request: LeaveRequest, moment: Moment) -> Decision:
    """Remove the members of the request, each with its own code; the others rebalance once."""
    error_code = errors.NONE
    if group.group_id == "":
        error_code = errors.INVALID_GROUP_ID
    elif group.round.phase == DEAD:
        error_code = errors.COORDINATOR_NOT_AVAILABLE
    elif not group.exists:
        error_code = errors.UNKNOWN_MEMBER_ID
    if error_code != errors.NONE:
        return refused(moment.now_ms, LeaveAnswer(request.ticket, error_code))
    draft = Draft(group, moment)
    codes = tuple(_leave(draft, each) for each in request.members)
    draft.decision.answers.append(LeaveAnswer(request.ticket, member_error_codes=codes))
    if errors.NONE in codes and draft.round.phase != EMPTY:
        left = [each for each, code in zip(request.members, codes, strict=True) if code == 0]
        names = ", ".join(each.member_id or f"instance {each.instance_id}" for each in left)
        if draft.round.phase == PREPARING_REBALANCE or _was_any_a_member(group, draft):
            draft.rebalance_or_complete_join(f"left: {names}")
    return draft.finish()


def _was_any_a_member(group: ClassicGroup, draft: Draft) -> bool:
    """Return False if only unused ids have left, which had no partitions to share again."""
    return len(draft.round.members) < len(group.round.members)


def _leave(draft: Draft, leaving: LeavingMember) -> int:
    now = draft.round
    member_id = leaving.member_id
    reason = f"it left: {leaving.reason}" if leaving.reason else "it left"
    if member_id == "":
        # An operator removes a static member by its instance id.
        known_id = now.static_members.get(leaving.instance_id or "")
        if leaving.instance_id is None or known_id is None:
            return errors.UNKNOWN_MEMBER_ID
        draft.remove_member(known_id, reason)
        return errors.NONE
    if member_id in now.pending_members:
        draft.remove_pending_member(member_id, reason)
        return errors.NONE
    error_code = member_error(now, member_id, leaving.instance_id)
    if error_code == errors.NONE:
        draft.remove_member(member_id, reason)
    return error_code
