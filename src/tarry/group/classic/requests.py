"""Requests of members to a classic group, and their answers."""

from __future__ import annotations

from typing import Final

import msgspec

from tarry.base import errors
from tarry.group.classic.round import Protocol
from tarry.group.requests import Answer, Request

# Generation in requests of clients outside a group: Kafka's "none".
NO_GENERATION: Final = -1

# Characters of a reason that are kept and logged: Kafka's own clients send no more.
REASON_CHARACTERS_MAX: Final = 255


def kept_reason(reason: str | None) -> str:
    """Return the part of a client's reason that is kept."""
    return (reason or "")[:REASON_CHARACTERS_MAX]


# -- requests


class JoinRequest(Request, frozen=True, kw_only=True):
    """JoinGroup.  Before version 1 the session time-out is also the rebalance time-out.

    `must_know_id` (version 4 and later): an unknown dynamic member gets an id and joins again
    with it.  `may_skip_assignment` (version 9 and later): the answer can tell a leader not to
    assign.
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
    """SyncGroup; the leader's has the assignments.  Before version 5 it names no protocol."""

    generation_id: int
    protocol_type: str | None = None
    protocol_name: str | None = None
    assignments: tuple[tuple[str, bytes], ...] = ()


class LeavingMember(msgspec.Struct, frozen=True):
    """Member in LeaveGroup; a static one may be named by its instance id alone."""

    member_id: str
    instance_id: str | None = None
    reason: str = ""


class LeaveRequest(msgspec.Struct, frozen=True):
    """LeaveGroup; before version 3 with one member."""

    ticket: int
    members: tuple[LeavingMember, ...]


# -- answers


class JoinedMember(msgspec.Struct, frozen=True):
    """A member as the answer to the leader describes it."""

    member_id: str
    instance_id: str | None
    metadata: bytes


class JoinAnswer(Answer, frozen=True, kw_only=True):
    """Answer to JoinGroup; only the leader gets the members."""

    member_id: str
    generation_id: int = NO_GENERATION
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str = ""
    skip_assignment: bool = False
    members: tuple[JoinedMember, ...] = ()

    def failed(self, error_code: int) -> JoinAnswer:
        return JoinAnswer(self.ticket, error_code, member_id=self.member_id)

    def sent_away(self) -> JoinAnswer:
        # Another broker may coordinate, so no client may use a generation that this broker begins.
        return self.failed(errors.NOT_COORDINATOR)


class SyncAnswer(Answer, frozen=True, kw_only=True):
    """Answer to SyncGroup."""

    protocol_type: str | None = None
    protocol_name: str | None = None
    assignment: bytes = b""

    def sent_away(self) -> SyncAnswer:
        return SyncAnswer(self.ticket, errors.NOT_COORDINATOR)


class LeaveAnswer(Answer, frozen=True, kw_only=True):
    """Answer to LeaveGroup: an error code for each member, in the order of the request."""

    member_error_codes: tuple[int, ...] = ()
