"""Requests of a round: joins, syncs, heartbeats and leaves of a member.

The functions are pure: they build the message of a version from the state of the member.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, Final

from tarry.base.ids import TopicPartition
from tarry.client.core.group.assignment.assignor import (
    Assignor,
    PreviousAssignment,
    told_user_data,
)
from tarry.client.core.group.assignment.consumer_protocol import (
    PROTOCOL_TYPE,
    SubscribedMember,
    Subscription,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from tarry.client.core.group.identity import GroupIdentity
from tarry.client.settings import ConsumerSettings
from tarry.link.errors import UnsupportedVersion
from tarry.protocol.message import Message
from tarry.protocol.messages.heartbeat import HeartbeatRequest
from tarry.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
)
from tarry.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tarry.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tarry.wire.reader import MalformedData

log = logging.getLogger("tarry.client")

# First versions that support static members (KIP-345).
JOIN_VERSION_WITH_INSTANCE: Final = 5
SYNC_VERSION_WITH_INSTANCE: Final = 3
HEARTBEAT_VERSION_WITH_INSTANCE: Final = 3
LEAVE_VERSION_WITH_MEMBERS: Final = 3

# First versions with a reason (KIP-800), which the broker's log and `tarry groups why` show.
JOIN_VERSION_WITH_REASON: Final = 8
LEAVE_VERSION_WITH_REASON: Final = 5
REASON_LENGTH_MAX: Final = 255

SYNC_VERSION_WITH_PROTOCOL: Final = 5


def join_request(
    who: GroupIdentity,
    settings: ConsumerSettings,
    protocols: list[JoinGroupRequestProtocol],
    reason: str,
    version: int,
) -> Message:
    if who.instance_id is not None and version < JOIN_VERSION_WITH_INSTANCE:
        raise UnsupportedVersion(
            "this broker does not support static members; remove group.instance.id"
        )
    return JoinGroupRequest(
        group_id=who.group_id,
        session_timeout_ms=settings.session_timeout_ms,
        rebalance_timeout_ms=settings.poll_interval_ms_max,
        member_id=who.member_id,
        group_instance_id=who.instance_id,
        protocol_type=PROTOCOL_TYPE,
        protocols=protocols,
        reason=reason[:REASON_LENGTH_MAX] if version >= JOIN_VERSION_WITH_REASON else None,
    )


def protocols_of(
    assignors: Iterable[Assignor], said: Subscription, previous: PreviousAssignment
) -> list[JoinGroupRequestProtocol]:
    """Return the protocols that a member offers, in order of preference.  Raises AssignorFailed."""
    return [
        JoinGroupRequestProtocol(
            assignor.name,
            encode_subscription(said._replace(user_data=told_user_data(assignor, previous))),
        )
        for assignor in assignors
    ]


def sync_request(
    who: GroupIdentity,
    protocol_name: str,
    assignment: Mapping[str, list[TopicPartition]],
    version: int,
) -> Message:
    request = SyncGroupRequest(
        group_id=who.group_id,
        generation_id=who.generation_id,
        member_id=who.member_id,
        assignments=[
            SyncGroupRequestAssignment(member_id, encode_assignment(places))
            for member_id, places in assignment.items()
        ],
    )
    if version >= SYNC_VERSION_WITH_INSTANCE:
        request.group_instance_id = who.instance_id
    if version >= SYNC_VERSION_WITH_PROTOCOL:
        request.protocol_type = PROTOCOL_TYPE
        request.protocol_name = protocol_name
    return request


def heartbeat_request(who: GroupIdentity, version: int) -> Message:
    request = HeartbeatRequest(who.group_id, who.generation_id, who.member_id)
    if version >= HEARTBEAT_VERSION_WITH_INSTANCE:
        request.group_instance_id = who.instance_id
    return request


def leave_request(who: GroupIdentity, reason: str, version: int) -> Message:
    if version < LEAVE_VERSION_WITH_MEMBERS:
        return LeaveGroupRequest(who.group_id, who.member_id)
    member = MemberIdentity(who.member_id, who.instance_id)
    if version >= LEAVE_VERSION_WITH_REASON:
        member.reason = reason[:REASON_LENGTH_MAX]
    return LeaveGroupRequest(who.group_id, members=[member])


def members_of(answers: Iterable[Any]) -> list[SubscribedMember]:
    """Return the members in the leader's answer; a member whose subscription cannot be read wants
    no topics."""
    members: list[SubscribedMember] = []
    for answer in answers:
        try:
            said = decode_subscription(answer.metadata)
        except MalformedData as error:
            log.warning("the subscription of member %s cannot be read: %s", answer.member_id, error)
            said = Subscription([])
        members.append(SubscribedMember(answer.member_id, answer.group_instance_id, said))
    return members


def topics_of(members: Iterable[SubscribedMember]) -> list[str]:
    """Return the topics that any member wants, sorted by name."""
    return sorted({topic for member in members for topic in member.subscription.topics})
