"""JoinGroup (key 11): a member joins a group, or joins it again."""

from __future__ import annotations

from typing import Final

from tarry.base import errors
from tarry.base.doors import Random
from tarry.base.limits import PROTOCOLS_PER_MEMBER_MAX
from tarry.broker.coordinator.groups.coordinator import GroupCoordinator
from tarry.broker.coordinator.tickets import Asked
from tarry.broker.request import RequestContext
from tarry.group.classic.joining import decide_join
from tarry.group.classic.kind import CLASSIC
from tarry.group.classic.requests import (
    JoinAnswer,
    JoinRequest,
    kept_reason,
)
from tarry.protocol.message import Message
from tarry.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupResponse,
    JoinGroupResponseMember,
)

# KIP-394: from this version on a new member is given its id first and joins again with it.
VERSION_OF_KNOWN_IDS: Final = 4
# From this version on null stands for a group without a protocol.
VERSION_OF_NO_PROTOCOL: Final = 7
# KIP-814: from this version on a leader may be told not to assign.
VERSION_OF_SKIPPED_ASSIGNMENTS: Final = 9


class AskedJoin(Asked[JoinAnswer]):
    """A JoinGroup that waits for the end of the join phase."""

    def answer(self, answer: JoinAnswer) -> None:
        if answer.reason:
            self.context.report(f"JoinGroup: {answer.reason}", "metadata")
        self.context.respond(response_of(answer, self.context.api_version))


def handle(
    coordinator: GroupCoordinator,
    random: Random,
    context: RequestContext,
    request: JoinGroupRequest,
) -> Message | None:
    """Decide now; the answer comes when the join phase ends, or at once."""
    shard, error_code = coordinator.find_named(request.group_id)
    group = None if shard is None else shard.groups.of_kind(CLASSIC, request.group_id)
    if shard is not None and group is None:
        # Kafka answers with this code if a group is of a kind that takes no classic members.
        error_code = errors.INCONSISTENT_GROUP_PROTOCOL
    if len(request.protocols) > PROTOCOLS_PER_MEMBER_MAX:
        context.report(f"a member offers at most {PROTOCOLS_PER_MEMBER_MAX} protocols")
        group, error_code = None, errors.INCONSISTENT_GROUP_PROTOCOL
    if shard is None or group is None:
        refusal = JoinAnswer(0, error_code, member_id=request.member_id)
        return response_of(refusal, context.api_version)
    timeout_ms = request.session_timeout_ms
    asked = JoinRequest(
        coordinator.ticket(AskedJoin(context)),
        request.member_id,
        request.group_instance_id,
        client_id=context.client_id or "",
        client_host=client_host(context),
        protocol_type=request.protocol_type,
        protocols=tuple((each.name, each.metadata) for each in request.protocols),
        session_timeout_ms=timeout_ms,
        rebalance_timeout_ms=(
            # A negative time-out counts as 0: in a record -1 would stand for the session time-out.
            max(request.rebalance_timeout_ms, 0) if context.api_version >= 1 else timeout_ms
        ),
        must_know_id=context.api_version >= VERSION_OF_KNOWN_IDS,
        may_skip_assignment=context.api_version >= VERSION_OF_SKIPPED_ASSIGNMENTS,
        reason=kept_reason(request.reason),
    )
    shard.carry_out(group, decide_join(group, asked, coordinator.moment(), random))
    return None


def client_host(context: RequestContext) -> str:
    """Return the peer's address as Kafka writes it: with a slash and without its port."""
    host, _, port = context.connection.peer.rpartition(":")
    return f"/{host.strip('[]')}" if port else f"/{context.connection.peer}"


def response_of(answer: JoinAnswer, api_version: int) -> JoinGroupResponse:
    """Return the message for an answer."""
    name = answer.protocol_name
    if name is None and api_version < VERSION_OF_NO_PROTOCOL:
        name = ""
    return JoinGroupResponse(
        error_code=answer.error_code,
        generation_id=answer.generation_id,
        protocol_type=answer.protocol_type,
        protocol_name=name,
        leader=answer.leader_id,
        skip_assignment=answer.skip_assignment,
        member_id=answer.member_id,
        members=[
            JoinGroupResponseMember(
                member_id=each.member_id,
                group_instance_id=each.instance_id,
                metadata=each.metadata,
            )
            for each in answer.members
        ],
    )
