"""JoinGroup: which members are admitted, under which id, and whether the others must rejoin.

The checks come in Kafka's order: group id, session time-out, `group.max.size`, a Dead group, the
protocols.  Then a member without an id is new (KIP-394 gives it an id first), a static member
replaces its predecessor, and a known member rejoins.

As in Kafka, `group.max.size` is checked before the member is identified.  In a full group a static
member that comes back without its id is refused, though it would replace its predecessor.

There are three differences from Kafka.  A member id that was given out and comes back with an
instance id is answered as an unknown member; Kafka fails without a proper code.  When a full group
refuses a member, the join phase of the others may end at once.  Texts that a record cannot hold are
refused.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from tarry.base import errors
from tarry.base.doors import Random
from tarry.base.ids import random_uuid, uuid_text
from tarry.base.limits import GROUP_METADATA_BYTES_MAX
from tarry.group.classic.appends import StaticAppend
from tarry.group.classic.requests import JoinAnswer, JoinRequest
from tarry.group.classic.round import (
    COMPLETING_REBALANCE,
    DEAD,
    EMPTY,
    PENDING_MEMBERS_MAX,
    PREPARING_REBALANCE,
    STABLE,
    Member,
    Protocol,
    protocols_size,
)
from tarry.group.classic.state import ClassicGroup, member_error
from tarry.group.classic.subscriptions import topics_of_subscription
from tarry.group.classic.transitions import Draft
from tarry.group.decision import Decision, Moment, refused
from tarry.group.records import can_be_written
from tarry.group.requests import TOO_MUCH_METADATA

# Characters of a client's or instance's name in a member id, so that a record can hold the id.
_NAME_CHARACTERS_MAX: Final = 1_000


def decide_join(
    group: ClassicGroup, request: JoinRequest, moment: Moment, random: Random
) -> Decision:
    """Admit, update, refuse, or give an id; the answer may come at the end of the join phase."""
    request = replace(request, protocols=_by_name(request.protocols))
    error_code = _request_error(group, request, moment)
    if error_code != errors.NONE:
        return _refused(request, moment, error_code, request.member_id)
    if not _is_accepted(group, request, moment):
        reason = "the group has as many members as group.max.size allows"
        return _turn_away(group, request, moment, reason)
    if not _is_metadata_accepted(group, request):
        return _turn_away(group, request, moment, TOO_MUCH_METADATA)
    now = group.round
    if now.phase == DEAD:
        return _refused(request, moment, errors.COORDINATOR_NOT_AVAILABLE, request.member_id)
    if not now.supports(request.protocol_type, request.protocols):
        return _refused(request, moment, errors.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
    if request.member_id != "":
        if request.instance_id is None and request.member_id in now.pending_members:
            draft = Draft(group, moment)
            _add(draft, request, request.member_id)
            return draft.finish()
        error_code = member_error(now, request.member_id, request.instance_id)
        if error_code != errors.NONE:
            return _refused(request, moment, error_code, request.member_id)
        return _rejoin(group, request, moment)
    draft = Draft(group, moment)
    member_id = _new_member_id(request, random)
    if request.instance_id is None and request.must_know_id:
        _give_id(draft, request, member_id)
    elif request.instance_id is not None and request.instance_id in now.static_members:
        _take_place(draft, request, now.static_members[request.instance_id], member_id)
    else:
        _add(draft, request, member_id)
    return draft.finish()


def _refused(request: JoinRequest, moment: Moment, error_code: int, member_id: str) -> Decision:
    return refused(moment.now_ms, JoinAnswer(request.ticket, error_code, member_id=member_id))


def _by_name(protocols: tuple[Protocol, ...]) -> tuple[Protocol, ...]:
    """Keep each protocol name once, with its first metadata."""
    by_name: dict[str, bytes] = {}
    for name, metadata in protocols:
        by_name.setdefault(name, metadata)
    return tuple(by_name.items())


def _request_error(group: ClassicGroup, request: JoinRequest, moment: Moment) -> int:
    """Return the error of a request that does not depend on the member; NONE if there is none."""
    settings = moment.settings
    if group.group_id == "" or not can_be_written(group.group_id):
        return errors.INVALID_GROUP_ID
    if not (
        settings.group_min_session_timeout_ms
        <= request.session_timeout_ms
        <= settings.group_max_session_timeout_ms
    ):
        return errors.INVALID_SESSION_TIMEOUT
    names = [name for name, _ in request.protocols]
    if not can_be_written(request.protocol_type, *names):
        return errors.INCONSISTENT_GROUP_PROTOCOL
    if not can_be_written(request.instance_id, request.client_id, request.client_host):
        return errors.INVALID_REQUEST
    if not group.exists and request.member_id != "":
        return errors.UNKNOWN_MEMBER_ID
    return errors.NONE


# -- group.max.size


def _is_accepted(group: ClassicGroup, request: JoinRequest, moment: Moment) -> bool:
    now = group.round
    size_max = moment.settings.group_max_size
    if now.phase in (EMPTY, DEAD):
        return True
    if now.phase == PREPARING_REBALANCE:
        # Count the members that have rejoined: if the limit was lowered, the last to rejoin are
        # refused.
        return request.member_id in now.joins or len(now.joins) < size_max
    return request.member_id in now.members or len(now.members) < size_max


def _is_metadata_accepted(group: ClassicGroup, request: JoinRequest) -> bool:
    """Return False if the group's metadata would become too large with this member's."""
    now = group.round
    member_id = request.member_id or now.static_members.get(request.instance_id or "", "")
    known = now.members.get(member_id)
    growth = protocols_size(request.protocols)
    if known is not None:
        growth -= protocols_size(known.protocols)
    return growth <= 0 or group.metadata_size + growth <= GROUP_METADATA_BYTES_MAX


def _turn_away(group: ClassicGroup, request: JoinRequest, moment: Moment, reason: str) -> Decision:
    draft = Draft(group, moment)
    if request.member_id in draft.round.members:
        draft.remove_member(request.member_id, reason)
    elif request.member_id in draft.round.pending_members:
        draft.remove_pending_member(request.member_id, reason)
    draft.decision.answers.append(
        JoinAnswer(request.ticket, errors.GROUP_MAX_SIZE_REACHED, reason, member_id="")
    )
    draft.maybe_complete_join()
    return draft.finish()


# -- new members


def _new_member_id(request: JoinRequest, random: Random) -> str:
    name = request.client_id if request.instance_id is None else request.instance_id
    return f"{name[:_NAME_CHARACTERS_MAX]}-{uuid_text(random_uuid(random))}"


def _give_id(draft: Draft, request: JoinRequest, member_id: str) -> None:
    """Give an id to a client without one; it must join again with it (KIP-394), so that clients
    that crash in a loop do not fill the group with dead members."""
    now = draft.round
    if len(now.pending_members) >= PENDING_MEMBERS_MAX:
        oldest = next(iter(now.pending_members))
        draft.remove_pending_member(oldest, "too many ids were given out and not used")
    now.pending_members[member_id] = request.session_timeout_ms
    draft.hear_until(member_id, request.session_timeout_ms)
    draft.decision.answers.append(
        JoinAnswer(request.ticket, errors.MEMBER_ID_REQUIRED, member_id=member_id)
    )


def _add(draft: Draft, request: JoinRequest, member_id: str) -> None:
    member = Member(
        member_id,
        request.instance_id,
        request.client_id,
        request.client_host,
        request.rebalance_timeout_ms,
        request.session_timeout_ms,
        request.protocols,
        is_new=True,
    )
    draft.add_member(member, request.protocol_type, request.ticket)
    draft.hear(member)
    draft.rebalance_or_complete_join(_because(f"{_name(member)} joined", request))


# -- a static member comes back


def _take_place(draft: Draft, request: JoinRequest, old_id: str, member_id: str) -> None:
    now = draft.round
    previous = now.members[old_id]
    leader_id = now.leader_id or ""
    member = replace(_updated(previous, request), member_id=member_id, is_new=False)
    draft.replace_member(old_id, member)
    now.joins[member_id] = request.ticket
    draft.hear(member)
    if now.phase == PREPARING_REBALANCE:
        draft.maybe_complete_join()
    elif now.phase == STABLE and now.selected_protocol() == now.protocol_name:
        # The other members can work on, since nothing changes for them.  The new id must be durable
        # before it is used.
        answer = draft.joined(request.ticket, member_id)
        is_leader = now.leader_id == member_id
        if request.may_skip_assignment:
            answer = replace(answer, skip_assignment=is_leader)
        else:
            # An older client that leads is told that its old id leads, so that it assigns nothing.
            answer = replace(answer, leader_id=leader_id, members=())
        record = draft.metadata(now.assignments)
        draft.append(
            StaticAppend([record], answer, previous, leader_id, _on_its_way(draft.group, old_id))
        )
    else:
        # A rebalance is needed: an assignment under way does not know the new id.
        assert now.phase in (STABLE, COMPLETING_REBALANCE)
        draft.begin_rebalance(_because(f"{_name(member)} came back", request))


def _on_its_way(group: ClassicGroup, member_id: str) -> StaticAppend | None:
    """Return the append that will make this id durable; None if there is none."""
    for append in group.appends:
        if isinstance(append, StaticAppend) and append.joined.member_id == member_id:
            return append
    return None


# -- a known member comes back


def _rejoin(group: ClassicGroup, request: JoinRequest, moment: Moment) -> Decision:
    now = group.round
    member = now.members[request.member_id]
    is_same = member.protocols == request.protocols
    is_leader = now.leader_id == member.member_id
    draft = Draft(group, moment)
    if now.phase == COMPLETING_REBALANCE and is_same:
        # The member has lost the answer to its earlier join.
        draft.hear(member)
        draft.decision.answers.append(draft.joined(request.ticket, member.member_id))
        return draft.finish()
    if now.phase == STABLE and is_same and not is_leader:
        draft.hear(member)
        draft.decision.answers.append(draft.joined(request.ticket, member.member_id))
        return draft.finish()
    assert now.phase in (PREPARING_REBALANCE, COMPLETING_REBALANCE, STABLE)
    updated = _updated(member, request)
    draft.update_member(updated, request.ticket)
    draft.hear(updated)
    if now.phase == PREPARING_REBALANCE and not _wants_other(member, updated):
        # In a rebalance every member rejoins with its owned partitions in its metadata: no change.
        draft.maybe_complete_join()
        return draft.finish()
    # A leader joins again to ask for a rebalance, since the topics' partitions may have changed.
    what = f"{_name(member)} joined again" if is_same else f"{_name(member)} changed"
    draft.rebalance_or_complete_join(_because(what, request))
    return draft.finish()


def _wants_other(member: Member, updated: Member) -> bool:
    """Return True if a member has changed its list of protocols, or the topics that it reads."""
    if [name for name, _ in member.protocols] != [name for name, _ in updated.protocols]:
        return True
    return any(
        topics_of_subscription(before) != topics_of_subscription(after)
        for (_, before), (_, after) in zip(member.protocols, updated.protocols, strict=True)
    )


def _updated(member: Member, request: JoinRequest) -> Member:
    return replace(
        member,
        protocols=request.protocols,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        session_timeout_ms=request.session_timeout_ms,
    )


def _name(member: Member) -> str:
    if member.instance_id is None:
        return f"member {member.member_id}"
    return f"member {member.member_id} of instance {member.instance_id}"


def _because(what: str, request: JoinRequest) -> str:
    return f"{what}: {request.reason}" if request.reason else what
