"""Requests to a group and its answers: plain objects, no messages of the wire.

A ticket is the broker's number for a request that waits for its answer; the core keeps it and
gives it back in exactly one answer.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tarry.base import errors
from tarry.group.records import NO_LEADER_EPOCH, NO_TOPIC_ID
from tarry.group.round import Protocol

# Kafka's "no generation" in requests of clients outside a group.
NO_GENERATION: Final = -1
# As a retention time of a commit: the broker's setting.
DEFAULT_RETENTION: Final = -1

# So much of a reason Kafka's own clients send; it is kept and logged.
REASON_CHARACTERS_MAX: Final = 255


def kept_reason(reason: str | None) -> str:
    """Return what is kept of the reason that a client gives."""
    return (reason or "")[:REASON_CHARACTERS_MAX]


class GroupSettings(msgspec.Struct, frozen=True):
    """The settings that decisions depend on, by Kafka's keys."""

    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = 2**31 - 1
    offset_metadata_max_bytes: int = 4_096
    offsets_retention_ms: int = 7 * 24 * 3_600_000


# -- requests


class Request(msgspec.Struct, frozen=True):
    """Request of a member, with what all of them have."""

    ticket: int
    member_id: str
    instance_id: str | None = None


class JoinRequest(Request, frozen=True, kw_only=True):
    """JoinGroup.  Before version 1 the rebalance time-out is the session's.

    `must_know_id`: version 4 and later, an unknown dynamic member comes back with its id.
    `may_skip_assignment`: version 9 and later, a leader can be told not to assign.
    """

    client_id: str
    client_host: str
    protocol_type: str
    protocols: tuple[Protocol, ...]
    session_timeout_ms: int
    rebalance_timeout_ms: int
    must_know_id: bool = True
    may_skip_assignment: bool = True
    reason: str = ""


class SyncRequest(Request, frozen=True, kw_only=True):
    """SyncGroup; the leader's brings assignments.  Before version 5 no protocol is named."""

    generation_id: int
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


class HeartbeatRequest(Request, frozen=True, kw_only=True):
    """Heartbeat."""

    generation_id: int


class LeavingMember(msgspec.Struct, frozen=True):
    """Member in LeaveGroup; a static one may be named by its instance id alone."""

    member_id: str
    instance_id: str | None = None
    reason: str = ""


class LeaveRequest(msgspec.Struct, frozen=True):
    """LeaveGroup; before version 3 with one member."""

    ticket: int
    members: tuple[LeavingMember, ...]


class CommitPartition(msgspec.Struct, frozen=True):
    """Partition of a commit; with an error code it was refused before it came here."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = NO_LEADER_EPOCH
    metadata: str | None = ""
    topic_id: bytes = NO_TOPIC_ID
    error_code: int = errors.NONE


class CommitRequest(Request, frozen=True, kw_only=True):
    """OffsetCommit.  `knows_group_not_found`: version 9 and later, which name that error."""

    generation_id: int
    partitions: tuple[CommitPartition, ...]
    retention_ms: int = DEFAULT_RETENTION
    knows_group_not_found: bool = True


# -- answers


class Answer(msgspec.Struct, frozen=True):
    """The one answer to the request with this ticket."""

    ticket: int
    error_code: int = errors.NONE


class JoinedMember(msgspec.Struct, frozen=True):
    """A member as its leader is told of it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinAnswer(Answer, frozen=True, kw_only=True):
    """Answer to JoinGroup; the leader alone is told the members."""

    member_id: str
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()


class SyncAnswer(Answer, frozen=True, kw_only=True):
    """Answer to SyncGroup."""

    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""


class HeartbeatAnswer(Answer, frozen=True):
    """Answer to Heartbeat."""


class LeaveAnswer(Answer, frozen=True, kw_only=True):
    """Answer to LeaveGroup: an error code for each member, in the order of the request."""

    member_error_codes: tuple[int, ...] = ()


class CommitAnswer(Answer, frozen=True, kw_only=True):
    """Answer to OffsetCommit: an error code for each partition; Kafka has none for the whole."""

    partition_error_codes: tuple[int, ...] = ()


class DeleteAnswer(Answer, frozen=True, kw_only=True):
    """Answer to DeleteGroups for one group, or to OffsetDelete with a code for each partition."""

    partition_error_codes: tuple[int, ...] = ()
